"""What every page and every API answer carries, and how many a second there may be."""

from __future__ import annotations

import math
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
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}
A_MINUTE: Final = 1_200
LOGINS_A_MINUTE: Final = 10


class Limiter:
    """A moving window over the last minute, for one purpose."""

    def __init__(self, a_minute: int) -> None:
        self._item = RateLimitItemPerMinute(a_minute)
        self._limiter = MovingWindowRateLimiter(MemoryStorage())

    def admits(self) -> bool:
        """Whether one more is within the limit; it is counted."""
        return self._limiter.hit(self._item, "all")

    def retry_after(self) -> int:
        """Seconds until the next one may be admitted, at least 1."""
        import time

        return max(1, math.ceil(self._limiter.get_window_stats(self._item, "all").reset_time - time.time()))


class ConsoleGuard:
    """Adds HEADERS to what is below one of `prefixes`, and refuses (429) what comes too fast."""

    def __init__(self, app: ASGIApp, prefixes: tuple[str, ...]) -> None:
        self._app = app
        self._prefixes = prefixes
        self._limiter = Limiter(A_MINUTE)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or not scope["path"].startswith(self._prefixes):
            await self._app(scope, receive, send)
            return

        async def send_guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    headers.setdefault(name, value)
            await send(message)

        if not self._limiter.admits():
            body = {"error": "too-many-requests", "message": f"More than {A_MINUTE} a minute.", "remedy": "Wait and try again."}
            refusal = JSONResponse(body, status_code=429, headers={"Retry-After": str(self._limiter.retry_after())})
            await refusal(scope, receive, send_guarded)
            return
        await self._app(scope, receive, send_guarded)
