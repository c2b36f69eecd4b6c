"""A request's body has to be here within a time of its own, however it trickles: nobody holds a place of the server with half a request."""

from __future__ import annotations

import anyio
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

CLOSE = {"Connection": "close"}


class BodyClock:
    """Middleware: 408 to who has not sent the whole body within `seconds` after its head; 503 when the server ends meanwhile.

    The body is held here until it is whole or larger than `max_bytes`: then the rest is the application's, which refuses it.
    """

    def __init__(self, app: ASGIApp, seconds: float, max_bytes: int) -> None:
        self._app = app
        self._seconds = seconds
        self._max_bytes = max_bytes

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        held: list[Message] = []
        refusal: JSONResponse | None = None
        try:
            with anyio.move_on_after(self._seconds) as waiting:
                await self._hold(receive, held)
            if waiting.cancelled_caught:
                said = f"The body did not come whole within {self._seconds:g} s (http.body_timeout_ms)."
                refusal = JSONResponse(
                    {"error": "request-timeout", "message": "The body did not come in time.", "remedy": said},
                    status_code=408,
                    headers=CLOSE,
                )
        except anyio.get_cancelled_exc_class():
            # The server ends; or the client has left, and then the scope around us cancels the answer too. Nothing has begun yet.
            refusal = JSONResponse(
                {"error": "shutting-down", "message": "The server ends.", "remedy": "Ask again later."}, status_code=503, headers=CLOSE
            )
        if refusal is not None:
            await refusal(scope, receive, send)
            return
        coming = iter(held)

        async def replay() -> Message:
            return next(coming, None) or await receive()

        await self._app(scope, replay, send)

    async def _hold(self, receive: Receive, held: list[Message]) -> None:
        size = 0
        while size <= self._max_bytes:
            message = await receive()
            held.append(message)
            size += len(message.get("body", b""))
            if message["type"] != "http.request" or not message.get("more_body", False):
                return
