"""Notice that an HTTP client has gone, and stop what runs for it.

On 2026-07-28 the SDK does this itself. On older revisions it lets a request run on after a disconnect, because a client with an event
store could come back for the answer; we keep none, so nobody could ever read it.
"""

from __future__ import annotations

import contextlib
from collections.abc import Generator

import anyio
import anyio.lowlevel
from starlette.requests import Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

KEY = "search_router.departure"


class Departure:
    """One HTTP request's client: here until `leave` is called."""

    def __init__(self) -> None:
        self._gone = False
        self._running: set[anyio.CancelScope] = set()

    def leave(self) -> None:
        self._gone = True
        for scope in self._running:
            scope.cancel()

    @contextlib.contextmanager
    def cancels(self) -> Generator[None]:
        """Cancel the body when the client leaves; then the body ends early and what follows it runs."""
        with anyio.CancelScope() as scope:
            self._running.add(scope)
            if self._gone:
                scope.cancel()
            try:
                yield
            finally:
                self._running.discard(scope)


class DepartureWatch:
    """Middleware: gives every HTTP request a `Departure` in its scope, told by whoever next reads from the client."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        departure = Departure()

        async def watched() -> Message:
            message = await receive()
            if message["type"] == "http.disconnect":
                departure.leave()
            return message

        await self._app({**scope, KEY: departure}, watched, send)


class EarlyLeave:
    """Middleware: what handles a request ends quietly when its client leaves before all of it has come.

    Cancelled, because the SDK logs the exception that it would get instead, with a traceback, as a fault of ours.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        is_whole = False

        async def watched() -> Message:
            nonlocal is_whole
            message = await receive()
            if message["type"] == "http.disconnect" and not is_whole:
                handling.cancel()
                await anyio.lowlevel.checkpoint()
            is_whole = is_whole or (message["type"] == "http.request" and not message.get("more_body", False))
            return message

        with anyio.CancelScope() as handling:
            await self._app(scope, watched, send)


def departure_of(request: object) -> Departure:
    """The departure of the HTTP request that carries a call; one that never happens where there is no such request."""
    found = request.scope.get(KEY) if isinstance(request, Request) else None
    return found if isinstance(found, Departure) else Departure()
