"""The console as the HTTP server mounts it beside MCP: pages and API, a login where the server has a token, and guards around both."""

from __future__ import annotations

from functools import partial

from starlette.datastructures import Headers
from starlette.types import Scope

from search_router.console.api import api_routes
from search_router.console.guard import ConsoleGuard
from search_router.console.pages import LOGIN, OPEN_PATHS, Pages
from search_router.console.readings import Readings
from search_router.console.session import Sessions
from search_router.mcp_http import Console
from search_router.router.service import Router

PAGES = ("/console",)
PREFIXES = (*PAGES, "/api/")


def open_console(router: Router, principal: str, token: str | None, *, pages: bool) -> Console:
    """The console over what this principal may see of the router; without `pages` the API alone, which then needs the bearer token."""
    sessions, readings = Sessions(token), Readings(router, principal)
    routes = [*api_routes(readings), *(Pages(readings, sessions).routes() if pages else ())]

    def admits(scope: Scope) -> bool:
        path: str = scope["path"]
        return pages and (path in OPEN_PATHS or (path.startswith(PREFIXES) and sessions.is_open(Headers(scope=scope))))

    return Console(routes, PAGES if pages else (), LOGIN, admits, partial(ConsoleGuard, prefixes=PREFIXES))
