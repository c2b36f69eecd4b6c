"""The console as the HTTP server mounts it beside MCP: pages and API, a login where the server has a token, and guards around both."""

from __future__ import annotations

from functools import partial

from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.types import Scope

from search_router.console.api import API, api_routes, refuse
from search_router.console.guard import HeaderGuard, RateGuard
from search_router.console.pages import LOGIN, OPEN_PATHS, Pages
from search_router.console.readings import Readings
from search_router.console.session import Sessions
from search_router.mcp_http import METRICS_PATH, Console
from search_router.router.service import Router

PAGES = ("/console",)
PREFIXES = (*PAGES, API)
WORDS = {404: "There is no such page.", 405: "This path does not take this method."}


def open_console(router: Router, principal: str, token: str | None, *, pages: bool) -> Console:
    """The console over what this principal may see of the router; without `pages` the API alone, which then needs the bearer token."""
    sessions, readings = Sessions(token), Readings(router, principal)
    shown = Pages(readings, sessions) if pages else None
    routes = [*api_routes(readings), *(shown.routes() if shown is not None else ())]

    def admits(scope: Scope) -> bool:
        path: str = scope["path"]
        if shown is None:
            return False
        of_ours = path in ("/", METRICS_PATH) or path.startswith(PREFIXES)
        return path in OPEN_PATHS or (of_ours and sessions.is_open(Headers(scope=scope)))

    def explain(request: Request, error: Exception) -> Response:
        """What Starlette refuses itself: no such path, or not with this method."""
        assert isinstance(error, HTTPException)
        words = WORDS.get(error.status_code, error.detail)
        if request.url.path.startswith(API):
            answer = refuse(error.status_code, error.detail.lower().replace(" ", "-"), words)
        elif shown is not None and request.url.path.startswith(PAGES):
            answer = shown.problem(request, error.status_code, error.detail, words)
        else:
            answer = PlainTextResponse(error.detail, error.status_code)
        answer.headers.update(error.headers or {})
        return answer

    begins = PAGES if pages else ()
    return Console(routes, begins, LOGIN, admits, partial(RateGuard, prefixes=PREFIXES), partial(HeaderGuard, prefixes=PREFIXES), explain)
