"""Listening for HTTP: the socket, uvicorn around the application, and an orderly end."""

from __future__ import annotations

import asyncio
import socket
import sys
from types import FrameType

import uvicorn
from starlette.applications import Starlette

from search_router.config.schema import HttpConfig
from search_router.errors import ConfigError, ConfigProblem
from search_router.mcp_connections import (
    ACCEPT_AT_ONCE,
    BoundedProtocol,
    ListenerConfig,
    Room,
    connections_allowed,
    quiet_when_out_of_descriptors,
)

BACKLOG = 512
GRACE_SECONDS = 3
FEW_CONNECTIONS = 64


class _Listener(uvicorn.Server):
    """uvicorn that says where it listens, and that ends with a return instead of raising the signal again, so that callers clean up."""

    url: str = ""

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        for sock in sockets or ():
            sock.listen(BACKLOG)  # asyncio has set it to what it accepts at once, and clients that come together would wait a second
        sys.stderr.write(f"search-router: listening on {self.url}\n")
        if isinstance(self.config, ListenerConfig) and self.config.room.most < FEW_CONNECTIONS:
            sys.stderr.write(f"search-router: at most {self.config.room.most} HTTP connections at once; raise `ulimit -n` for more\n")
        sys.stderr.flush()

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        self.force_exit = self.should_exit
        self.should_exit = True


def bind(http: HttpConfig) -> socket.socket:
    """A listening socket on the configured host and port; port 0 takes a free one.

    Raises:
        ConfigError: the address is in use, not ours, or not an address.
    """
    host = http.host.strip("[]")
    try:
        sock = socket.create_server((host, http.port), family=socket.AF_INET6 if ":" in host else socket.AF_INET, backlog=BACKLOG)
    except OSError as error:
        message = f"cannot listen on {http.host} port {http.port}: {error.strerror or error}. Choose another port, or 0 for any free one."
        raise ConfigError((ConfigProblem("effective configuration", 0, "http.port", message),)) from error
    # asyncio sets this only on sockets that name their protocol, which these do not. Accepted connections inherit it; without it every
    # answer of head and body waits some 40 ms for the client's delayed acknowledgement.
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return sock


def listener_config(app: Starlette, http: HttpConfig) -> ListenerConfig:
    """uvicorn with bounded connections, and the h11 parser whatever else is installed.

    h11, because httptools keeps trailing spaces of header values, which the protocol forbids (SEP-2243).
    """
    config = ListenerConfig(
        app,
        http=BoundedProtocol,
        ws="none",
        lifespan="on",
        access_log=False,
        log_config=None,
        proxy_headers=False,
        server_header=False,
        backlog=ACCEPT_AT_ONCE,
        timeout_graceful_shutdown=GRACE_SECONDS,
    )
    config.room = Room(connections_allowed(http.max_connections), http.header_timeout_ms / 1000)
    return config


async def listen(app: Starlette, sock: socket.socket, url: str, http: HttpConfig) -> None:
    """Serve until SIGTERM or SIGINT; running requests have GRACE_SECONDS to end, then they are cancelled and waited for briefly."""
    listener = _Listener(listener_config(app, http))
    listener.url = url
    loop = asyncio.get_running_loop()
    before = loop.get_exception_handler()
    loop.set_exception_handler(quiet_when_out_of_descriptors())
    try:
        await listener.serve(sockets=[sock])
        if running := set(listener.server_state.tasks):
            await asyncio.wait(running, timeout=1)
    finally:
        loop.set_exception_handler(before)
