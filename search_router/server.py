"""The MCP front door: serve a router over stdio, streamable HTTP or SSE. It only translates; the rooms are `mcp_*.py`.

mcp_catalog   instructions, tools, schemas
mcp_tools     one server object from one router
mcp_watched   its messages as traces and metrics see them
mcp_stdio     standard input and output
mcp_roots     the roots that an older client announces
mcp_http      the two HTTP transports and their guards
mcp_listener  the socket, uvicorn, and the bounds on connections

`start.serve` opens a router and serves it; this module, which imports the SDK, is the slow part of that.
"""

from __future__ import annotations

import secrets

from starlette.applications import Starlette

from search_router.config.schema import HttpConfig
from search_router.mcp_http import PATHS, HttpKind, check_exposure, mount_server, principal_of
from search_router.mcp_roots import ClientRoots
from search_router.mcp_stdio import run_on_wire
from search_router.mcp_tools import NAME, create_server
from search_router.observing import NOBODY, Observer
from search_router.router_api import Progress, RouterApi
from search_router.standard_streams import Wire, claim_standard_streams

__all__ = [
    "NAME",
    "ClientRoots",
    "HttpKind",
    "Progress",
    "RouterApi",
    "Wire",
    "build_http_app",
    "claim_standard_streams",
    "create_server",
    "serve_http",
    "serve_stdio",
]


def build_http_app(
    router: RouterApi, http: HttpConfig, token: str | None, kind: HttpKind = "http", observer: Observer = NOBODY
) -> Starlette:
    """The router as an ASGI application.

    Raises:
        ConfigError: the host is reachable from other machines and there is no token.
    """
    check_exposure(http, token)
    principal, console = principal_of(token), None
    from search_router.router.service import Router  # loaded long ago, but for who serves another router

    if isinstance(router, Router):
        from search_router.console.doors import open_console  # its templates stay out of the start on stdio

        console = open_console(router, principal, token, pages=http.console)
    server = create_server(router, principal=principal, observer=observer)
    return mount_server(server, http, token, kind, console=console, scrape=observer.scrape)


async def serve_stdio(router: RouterApi, wire: Wire | None = None, roots: ClientRoots | None = None, observer: Observer = NOBODY) -> None:
    """Serve one client over standard input and output until it leaves or SIGTERM or SIGINT arrives.

    Give `wire` when `claim_standard_streams` was entered earlier, so that nothing printed while starting can reach the client. With
    `roots`, what an older client announces decides what is searched.
    """
    server = create_server(router, session=f"stdio:{secrets.token_hex(8)}", roots=roots, observer=observer)
    if wire is not None:
        await run_on_wire(server, wire)
        return
    with claim_standard_streams() as claimed:
        await run_on_wire(server, claimed)


async def serve_http(router: RouterApi, http: HttpConfig, kind: HttpKind, token: str | None, observer: Observer = NOBODY) -> None:
    """Serve many clients until SIGTERM or SIGINT. The first line on standard error says where.

    Raises:
        ConfigError: the address cannot be listened on, or it is reachable from other machines and there is no token.
    """
    from search_router.mcp_listener import bind, listen  # uvicorn's parser stays out of the start on stdio

    check_exposure(http, token)
    with bind(http) as sock:
        port: int = sock.getsockname()[1]
        app = build_http_app(router, http.model_copy(update={"port": port}), token, kind, observer)
        host = f"[{http.host}]" if ":" in http.host and not http.host.startswith("[") else http.host
        await listen(app, sock, f"http://{host}:{port}{PATHS[kind]}", http)
