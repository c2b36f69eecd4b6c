"""The roots that an older client announces: asked for once a session, and then its questions are answered within them.

Off unless `workspace.client_roots` says so: roots are deprecated since 2026-07-28, where nobody can be asked any more. Over stdio alone: an
HTTP client may be on another machine, where its directories mean nothing, and must not choose among ours.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Protocol
from urllib.parse import unquote_to_bytes, urlsplit

import anyio
import mcp_types as types
from mcp.server import ServerRequestContext
from mcp.shared.exceptions import MCPError
from mcp.shared.message import ServerMessageMetadata
from mcp_types.version import MODERN_PROTOCOL_VERSIONS
from pydantic import ValidationError

from search_router.errors import SearchRouterError
from search_router.router_api import RouterApi

ANSWER_SECONDS = 2.0
MAX_ROOTS = 64
LIST_CHANGED = "notifications/roots/list_changed"

_log = logging.getLogger(__name__)


class MovableRouter(RouterApi, Protocol):
    """A router that can look elsewhere."""

    async def within(self, roots: Sequence[Path], note: str = "") -> RouterApi:
        """The same router over these roots (none: its own), with a note on each answer. Raises WorkspaceError."""
        ...


class ClientRoots:
    """Which router answers the questions of the one client of a stdio server."""

    def __init__(self, router: MovableRouter) -> None:
        self._router = router
        self._chosen: RouterApi | None = None
        self._asking = anyio.Lock()
        self._changes = 0

    async def router_for(self, context: ServerRequestContext[Any, Any]) -> RouterApi:
        """The router over the client's roots; the configured one, with a note, when the client announced roots and did not tell them."""
        if context.protocol_version in MODERN_PROTOCOL_VERSIONS:
            return self._router
        capabilities = context.session.client_capabilities
        if capabilities is None or capabilities.roots is None:
            return self._router
        async with self._asking:
            while self._chosen is None:
                changes = self._changes
                chosen = await self._choose(context)
                if changes == self._changes:  # else they changed while we asked
                    self._chosen = chosen
            return self._chosen

    async def forget(self, context: ServerRequestContext[Any, Any], params: types.NotificationParams) -> None:
        """The client's roots have changed: ask again before the next answer."""
        self._changes += 1
        self._chosen = None

    async def _choose(self, context: ServerRequestContext[Any, Any]) -> RouterApi:
        told = await _ask(context)
        if isinstance(told, str):
            return await self._stay(told)
        roots, left_out = local_directories(told)
        if not roots:
            return await self._stay("none of them is a directory of this machine" if told else "it announced none")
        note = f"left out of the client's roots, not directories of this machine: {', '.join(left_out)}" if left_out else ""
        try:
            return await self._router.within(roots, note)
        except SearchRouterError as error:
            return await self._stay(str(error))

    async def _stay(self, why: str) -> RouterApi:
        note = f"the client's roots were not used ({why}); the configured workspace was searched"
        _log.warning("%s", note)
        return await self._router.within((), note)


async def _ask(context: ServerRequestContext[Any, Any]) -> list[str] | str:
    """The client's root URIs, or why there are none. Never longer than ANSWER_SECONDS."""
    try:
        with anyio.fail_after(ANSWER_SECONDS):
            result = await context.session.send_request(
                types.ListRootsRequest(),
                types.ListRootsResult,
                metadata=ServerMessageMetadata(related_request_id=context.request_id),
            )
    except TimeoutError:
        return f"it did not tell them within {ANSWER_SECONDS:g} s"
    except MCPError as error:
        return f"it refused to tell them: {error.error.message[:200]}"
    except ValidationError:
        return "what it told is no list of file:// addresses"
    return [str(root.uri) for root in result.roots]


def local_directories(uris: Sequence[str]) -> tuple[list[Path], list[str]]:
    """(existing local directories, without repetition, of at most MAX_ROOTS file:// URIs (RFC 8089); the URIs that are none)."""
    found: dict[Path, None] = {}
    left_out: list[str] = []
    for uri in uris:
        path = _path_of(uri)
        if path is None or len(found) >= MAX_ROOTS or not os.path.isdir(path):  # noqa: PTH112 - Path.is_dir raises where it may not look
            left_out.append(uri[:200])
        else:
            found[path] = None
    return list(found), left_out


def _path_of(uri: str) -> Path | None:
    try:
        parts = urlsplit(uri)
    except ValueError:
        return None
    name = unquote_to_bytes(parts.path)
    if parts.scheme != "file" or parts.netloc not in ("", "localhost") or not name.startswith(b"/") or b"\0" in name:
        return None
    return Path(os.fsdecode(name))
