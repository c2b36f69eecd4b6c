"""What every page and every API answer carries, and how many a minute one caller may have."""

from __future__ import annotations

import math
import time
from typing import Final

from limits import RateLimitItemPerMinute
from limits.storage import MemoryStorage
from limits.strategies import MovingWindowRateLimiter
from starlette.datastructures import MutableHeaders
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

CONTENT_POLICY: Final = "default-src 'none'; style-src 'self'; img-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
"""Content Security Policy Level 3: no script at all, nothing from elsewhere, no frame around us."""
HEADERS: Final = {
    "Content-Security-Policy": CONTENT_POLICY,
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    # Not `no-referrer`: with it a browser sends `Origin: null` with our own forms (Fetch, "append a request Origin header").
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}
A_MINUTE: Final = 1_200
LOGINS_A_MINUTE: Final = 10


class Limiter:
    """A moving window over the last minute for every caller, for one purpose."""

    def __init__(self, a_minute: int) -> None:
        self._item = RateLimitItemPerMinute(a_minute)
        self._limiter = MovingWindowRateLimiter(MemoryStorage())

    def admits(self, caller: str) -> bool:
        """Whether one more of this caller is within the limit; it is counted."""
        return self._limiter.hit(self._item, caller)

    def retry_after(self, caller: str) -> int:
        """Seconds until the next one may be admitted, at least 1."""
        return max(1, math.ceil(self._limiter.get_window_stats(self._item, caller).reset_time - time.time()))


def caller_of(scope: Scope) -> str:
    """The address that a request comes from."""
    client: tuple[str, int] | None = scope.get("client")
    return client[0] if client else "nobody"


def is_console(scope: Scope, prefixes: tuple[str, ...]) -> bool:
    """Whether a request is for what is below one of `prefixes`, or for the front page."""
    return scope["type"] == "http" and (scope["path"] == "/" or scope["path"].startswith(prefixes))


class HeaderGuard:
    """Adds HEADERS to every answer for the console, whoever gives it: the outermost, so that refusals have them too."""

    def __init__(self, app: ASGIApp, prefixes: tuple[str, ...]) -> None:
        self._app = app
        self._prefixes = prefixes

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def send_guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    headers.setdefault(name, value)
            await send(message)

        await self._app(scope, receive, send_guarded if is_console(scope, self._prefixes) else send)


class RateGuard:
    """Refuses (429) what comes too fast from one address."""

    def __init__(self, app: ASGIApp, prefixes: tuple[str, ...], a_minute: int = A_MINUTE) -> None:
        self._app = app
        self._prefixes = prefixes
        self._a_minute = a_minute
        self._limiter = Limiter(a_minute)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if is_console(scope, self._prefixes) and not self._limiter.admits(caller_of(scope)):
            body = {"error": "too-many-requests", "message": f"More than {self._a_minute} a minute.", "remedy": "Wait and try again."}
            after = str(self._limiter.retry_after(caller_of(scope)))
            await JSONResponse(body, status_code=429, headers={"Retry-After": after})(scope, receive, send)
            return
        await self._app(scope, receive, send)
