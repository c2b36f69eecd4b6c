"""Bounds on HTTP connections, so that clients that open many and send little cannot keep others out.

uvicorn counts requests, not connections, and waits for the head of a request without end. Here a connection has a limited time to send
a request, there is a greatest number of them, and when it is reached the one that has been silent for longest makes room.
"""

from __future__ import annotations

import asyncio
import errno
import logging
import resource
import time
from collections.abc import Callable
from enum import Enum
from pathlib import Path
from typing import Any

import h11
import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol
from uvicorn.server import ServerState

ACCEPT_AT_ONCE = 16
"""Connections that the event loop accepts before it looks at any of them."""
OWN_DESCRIPTORS = 96
"""Left for what answers need: the pipes of child processes, files, and ACCEPT_AT_ONCE connections, twice, on their way to be refused."""
FEWEST = 8
BODY_SECONDS = 60.0
"""For the whole body of a request, once its head is there."""
SAY_SECONDS = 10.0
_OUT_OF_RESOURCES = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM})
_BUSY_BODY = b'{"error": "too-many-clients", "remedy": "Ask again in a moment."}'
_BUSY = (
    b"HTTP/1.1 503 Service Unavailable\r\nConnection: close\r\nRetry-After: 1\r\nContent-Type: application/json\r\n"
    b"Content-Length: %d\r\n\r\n%b" % (len(_BUSY_BODY), _BUSY_BODY)
)

_log = logging.getLogger(__name__)


def connections_allowed(configured: int) -> int:
    """How many connections may be open: as configured, or fewer where the limit of open files (RLIMIT_NOFILE) leaves less."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY:
        return configured
    left = soft - _open_descriptors() - min(OWN_DESCRIPTORS, soft // 2)
    return max(FEWEST, min(configured, left))


def _open_descriptors() -> int:
    try:
        return len(list(Path("/dev/fd").iterdir()))
    except OSError:
        return 32


class Seldom:
    """Says something at most once in SAY_SECONDS, and then how often it happened."""

    def __init__(self, say: Callable[[str], None], clock: Callable[[], float] = time.monotonic) -> None:
        self._say = say
        self._clock = clock
        self._silent_until = 0.0
        self._times = 0

    def tell(self, text: str) -> None:
        self._times += 1
        if (now := self._clock()) >= self._silent_until:
            self._say(text if self._times == 1 else f"{text} ({self._times} times)")
            self._silent_until, self._times = now + SAY_SECONDS, 0


class Wait(Enum):
    """What a connection owes us; nothing while we answer it."""

    HEAD = "head"
    BODY = "body"


class Room:
    """The connections of one listener."""

    def __init__(self, most: int, header_seconds: float) -> None:
        self.most = most
        self.header_seconds = header_seconds
        self.full = Seldom(_log.warning)
        self.silent: dict[BoundedProtocol, None] = {}
        """Those that owe us something, longest first."""

    def make_room(self, taken: int) -> bool:
        """Whether one more may come in; the longest silent one goes for it."""
        if taken < self.most:
            return True
        oldest = next(iter(self.silent), None)
        self.full.tell(
            f"All {self.most} HTTP connections are taken: "
            + ("a new client was refused." if oldest is None else "one that had been silent was closed for a new client.")
        )
        if oldest is None:
            return False
        oldest.drop()
        return True


class ListenerConfig(uvicorn.Config):
    """uvicorn's configuration, and the room that its connections share."""

    room: Room


class BoundedProtocol(H11Protocol):
    """One connection. Event streams and slow answers are not limited: only what the client has still to send is."""

    def __init__(
        self, config: uvicorn.Config, server_state: ServerState, app_state: dict[str, Any], _loop: asyncio.AbstractEventLoop | None = None
    ) -> None:
        super().__init__(config, server_state, app_state, _loop)
        assert isinstance(config, ListenerConfig)
        self._room = config.room
        self._waits_for: Wait | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._refused = False

    def connection_made(self, transport: asyncio.Transport) -> None:
        if not self._room.make_room(len(self.connections)):
            self._refused = True
            transport.write(_BUSY)
            transport.close()
            return
        super().connection_made(transport)
        self._watch()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        self._watch()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        self._watch()

    def connection_lost(self, exc: Exception | None) -> None:
        self._wait_for(None)
        if not self._refused:
            super().connection_lost(exc)

    def drop(self) -> None:
        """Close it now, without waiting for a peer that does not read."""
        self._wait_for(None)
        self.connections.discard(self)
        self.transport.abort()

    def _watch(self) -> None:
        if self.transport.is_closing():
            self._wait_for(None)
        elif self.conn.their_state is h11.SEND_BODY:
            self._wait_for(Wait.BODY)
        elif self.conn.their_state is h11.IDLE:  # no request, or the last one is answered
            self._wait_for(Wait.HEAD)
        else:
            self._wait_for(None)

    def _wait_for(self, what: Wait | None) -> None:
        """Begin to wait; what is waited for already keeps its end, however many bytes have come."""
        if what is self._waits_for:
            return
        self._waits_for = what
        self._room.silent.pop(self, None)
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if what is not None:
            self._room.silent[self] = None
            self._timer = self.loop.call_later(self._room.header_seconds if what is Wait.HEAD else BODY_SECONDS, self.drop)


def quiet_when_out_of_descriptors() -> Callable[[asyncio.AbstractEventLoop, dict[str, Any]], None]:
    """An exception handler for the loop: one line now and then where asyncio would write a traceback for every failed accept."""
    seldom = Seldom(_log.warning)

    def handle(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        error = context.get("exception")
        if "socket" in context and isinstance(error, OSError) and error.errno in _OUT_OF_RESOURCES:
            seldom.tell(
                f"No connection can be accepted for the moment: {error.strerror}. Raise `ulimit -n`, or lower http.max_connections."
            )
        else:
            loop.default_exception_handler(context)

    return handle
