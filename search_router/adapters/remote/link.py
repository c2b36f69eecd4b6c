"""What a connection to an MCP server can do, whatever it runs over, and the terms on which one is opened."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from search_router.adapters.remote.rpc import Reply


@dataclass(frozen=True, slots=True)
class Target:
    """Where one server is: a command to run, or a URL. Two calls with equal targets share one server."""

    transport: str
    argv: tuple[str, ...] = ()
    cwd: str = ""
    env: tuple[tuple[str, str], ...] = ()
    inherit: frozenset[str] | None = frozenset()
    """Names of our variables that the child gets; None, for a process of our own: all but SEARCH_ROUTER_*."""
    url: str = ""
    headers: tuple[tuple[str, str], ...] = ()
    max_bytes: int = 1_048_576
    roots: tuple[Path, ...] = ()

    def __repr__(self) -> str:
        """Without environment and headers: they hold secrets."""
        return f"Target({self.transport}, {' '.join(self.argv) or self.url})"


class Link(Protocol):
    """One open connection."""

    @property
    def noise(self) -> int:
        """Lines that were no message."""
        ...

    async def call(self, method: str, params: Mapping[str, Any] | None, seconds: float) -> Reply:
        """The answer to a request.

        Raises:
            RpcError: the server answered with an error.
            ExpertError: there is no answer; the class says why.
            SessionLost: the server no longer knows this session; a new one must be opened.
        """
        ...

    async def notify(self, method: str) -> None:
        """Say something that has no answer."""
        ...

    async def ended(self) -> str:
        """Wait until the connection is over, and say why."""
        ...

    def agree(self, version: str) -> None:
        """From now on this protocol version is spoken."""
        ...


class SessionLost(Exception):
    """The server has forgotten the session: it was restarted."""


class Opener(Protocol):
    """Opens a connection; on leaving, however that happens, nothing of it is left."""

    def __call__(self, target: Target) -> AbstractAsyncContextManager[Link]: ...
