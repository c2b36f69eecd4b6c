"""The HTTP doors: streamable HTTP at /mcp, the older SSE transport at /sse, /healthz, /metrics, and what else is given. One set of guards.

The SDK's default HTTP mode is kept (answers as event streams, sessions for older clients): JSON answers and stateless mode lose progress
and cancellation. uvicorn parses with h11: httptools keeps trailing spaces of header values, which the protocol forbids (SEP-2243).
"""

from __future__ import annotations

import hashlib
import hmac
import ipaddress
from collections.abc import Callable, Sequence
from typing import Any, Literal, NamedTuple

from mcp.server import Server
from mcp.server.sse import SseServerTransport
from mcp.server.streamable_http import EventStore
from mcp.server.transport_security import TransportSecurityMiddleware, TransportSecuritySettings
from starlette.applications import Starlette
from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, RedirectResponse, Response
from starlette.routing import Mount, Route
from starlette.types import ASGIApp, Receive, Scope, Send

from search_router import __version__
from search_router.config.schema import HttpConfig
from search_router.errors import ConfigError, ConfigProblem
from search_router.mcp_body import BodyClock
from search_router.mcp_departure import DepartureWatch, EarlyLeave

HttpKind = Literal["http", "sse"]
PATHS: dict[HttpKind, str] = {"http": "/mcp", "sse": "/sse"}
HEALTH_PATH = "/healthz"
METRICS_PATH = "/metrics"
METRICS_TYPE = "text/plain; version=0.0.4; charset=utf-8"
LOOPBACK_NAMES = ("127.0.0.1", "localhost", "[::1]")
RETRY_MS = 500


def principal_of(token: str | None) -> str:
    """Who asks, for receipts: `local`, or the first 8 hexadecimal digits of the token's SHA-256."""
    return f"token:{hashlib.sha256(token.encode()).hexdigest()[:8]}" if token else "local"


def check_exposure(http: HttpConfig, token: str | None) -> None:
    """Refuse to be reachable from other machines without a token, and anywhere with a token that nobody could send.

    Raises:
        ConfigError: the token is nothing but white space, or the host is not a loopback address and there is no token.
    """
    if token and not token.strip():
        message = "is nothing but white space, which no client can send. Set a token, or unset the variable."
        raise ConfigError((ConfigProblem("environment", 0, "SEARCH_ROUTER_TOKEN", message),))
    if not token and not _is_loopback(http.host):
        message = f"{http.host!r} is reachable from other machines, so a bearer token is required. "
        message += "Set SEARCH_ROUTER_TOKEN, or use host 127.0.0.1."
        raise ConfigError((ConfigProblem("effective configuration", 0, "http.host", message),))


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return host == "localhost"


def allowed_callers(http: HttpConfig) -> TransportSecuritySettings:
    """The Host and Origin values that are served: loopback names and the configured host with the port, and what was configured."""
    port = http.port or "*"
    names = dict.fromkeys((*LOOPBACK_NAMES, f"[{http.host}]" if ":" in http.host else http.host))
    own = [f"{name}:{port}" for name in names] + (list(names) if http.port == 80 else [])  # clients leave out the default port
    return TransportSecuritySettings(
        enable_dns_rebinding_protection=True,
        allowed_hosts=[*own, *http.allowed_hosts],
        allowed_origins=[*(f"http://{name}" for name in own), *http.allowed_origins],
    )


class Console(NamedTuple):
    """What a console adds to the server: its routes, who is admitted to them without the bearer token, and a guard around them."""

    routes: Sequence[Route]
    pages: tuple[str, ...]
    """Paths of pages begin like this; who may not see one is sent to `login`."""
    login: str
    admits: Callable[[Scope], bool]
    guard: Callable[[ASGIApp], ASGIApp]
    """Around what was admitted."""
    dress: Callable[[ASGIApp], ASGIApp]
    """Around everything, refusals too."""
    explain: Callable[[Request, Exception], Response]
    """The answer to a path that is not there, or not with this method."""


class CallerGuard:
    """Refuse a foreign Host (421) or Origin (403) on every path, before anything is read: against DNS rebinding."""

    def __init__(self, app: ASGIApp, settings: TransportSecuritySettings) -> None:
        self._app = app
        self._check = TransportSecurityMiddleware(settings)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        refusal = await self._check.validate_request(Request(scope)) if scope["type"] == "http" else None
        await (self._app if refusal is None else refusal)(scope, receive, send)


class TokenGuard:
    """Refuse a request without the bearer token (401) on every path but /healthz, unless the console admits it.

    Digests are compared in constant time.
    """

    def __init__(self, app: ASGIApp, token: str, console: Console | None = None) -> None:
        self._app = app
        self._digest = hashlib.sha256(token.strip().encode()).digest()  # as it comes out of a header
        self._console = console

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        console = self._console
        is_open = scope["type"] != "http" or scope["path"] == HEALTH_PATH or (console is not None and console.admits(scope))
        if is_open or self._knows(Headers(scope=scope)):
            await self._app(scope, receive, send)
            return
        if console is not None and scope["method"] in ("GET", "HEAD") and _is_page(scope["path"], console.pages):
            await RedirectResponse(console.login, status_code=303)(scope, receive, send)
            return
        challenge = {"WWW-Authenticate": 'Bearer realm="search-router"'}
        said = "The bearer token is missing or wrong."
        body = {
            "error": "unauthorized",
            "message": said,
            "remedy": "Send the header 'Authorization: Bearer TOKEN' with the configured token.",
        }
        await JSONResponse(body, status_code=401, headers=challenge)(scope, receive, send)

    def _knows(self, headers: Headers) -> bool:
        scheme, _, token = headers.get("authorization", "").partition(" ")
        given = hashlib.sha256(token.strip().encode("latin-1")).digest()
        return hmac.compare_digest(given, self._digest) and scheme.lower() == "bearer"


def _is_page(path: str, pages: tuple[str, ...]) -> bool:
    """Whether a person looks there, who is better sent to the login than refused."""
    return path.startswith(pages) or (path == "/" and bool(pages))


class _SseDoor:
    """GET /sse: one client's stream, for as long as it stays."""

    def __init__(self, server: Server[Any], transport: SseServerTransport) -> None:
        self._server = server
        self._transport = transport

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async with self._transport.connect_sse(scope, receive, send) as (from_client, to_client):
            await self._server.run(from_client, to_client, self._server.create_initialization_options())


async def _tell_health(_: Request) -> JSONResponse:
    return JSONResponse({"status": "ok", "version": __version__})


def _metrics_route(scrape: Callable[[], bytes]) -> Route:
    async def tell_metrics(_: Request) -> Response:
        return Response(scrape(), headers={"Content-Type": METRICS_TYPE, "Cache-Control": "no-store"})

    return Route(METRICS_PATH, tell_metrics, methods=["GET"])


def mount_server(
    server: Server[Any],
    http: HttpConfig,
    token: str | None,
    kind: HttpKind = "http",
    events: EventStore | None = None,
    console: Console | None = None,
    scrape: Callable[[], bytes] | None = None,
) -> Starlette:
    """Any MCP server behind our guards, limits and health check, with a console beside it; `scrape` makes the page at /metrics.

    With `events`, older clients can resume a broken stream; the router keeps none, because asking again costs less than remembering.
    """
    callers = allowed_callers(http)
    routes: list[Route | Mount] = [Route(HEALTH_PATH, _tell_health, methods=["GET"]), *(console.routes if console is not None else ())]
    if scrape is not None:
        routes.append(_metrics_route(scrape))
    if kind == "http":
        app = server.streamable_http_app(
            streamable_http_path=PATHS["http"],
            max_request_body_size=http.max_body_bytes,
            transport_security=callers,
            host=http.host,
            event_store=events,
            retry_interval=RETRY_MS if events is not None else None,
            custom_starlette_routes=[route for route in routes if isinstance(route, Route)],
        )
    else:
        transport = SseServerTransport("/messages/", security_settings=callers, max_request_body_size=http.max_body_bytes)
        routes += [
            Route(PATHS["sse"], _SseDoor(server, transport), methods=["GET"]),
            Mount("/messages/", app=transport.handle_post_message),
        ]
        app = Starlette(routes=routes)
    if kind == "http" and events is None:
        app.add_middleware(DepartureWatch)
    app.add_middleware(BodyClock, seconds=http.body_timeout_ms / 1000, max_bytes=http.max_body_bytes)
    if console is not None:
        app.add_exception_handler(HTTPException, console.explain)
        app.add_middleware(console.guard)
    if token:
        app.add_middleware(TokenGuard, token=token, console=console)
    app.add_middleware(CallerGuard, settings=callers)
    if console is not None:
        app.add_middleware(console.dress)
    app.add_middleware(EarlyLeave)
    return app
