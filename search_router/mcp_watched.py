"""A client's messages as an observer sees them: who may be named, and which trace they belong to.

It stands in place of the SDK's own middleware, which names spans after whatever a client sends and records the text of exceptions.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, cast

from mcp.server import ServerRequestContext
from mcp.server.context import CallNext, HandlerResult
from mcp.shared.exceptions import MCPError
from mcp_types import INVALID_PARAMS, CallToolResult
from pydantic import ValidationError
from starlette.requests import Request

from search_router.observing import Incoming, Observer

METHODS = frozenset(
    "initialize ping server/discover tools/list tools/call resources/list resources/templates/list resources/read resources/subscribe"
    " resources/unsubscribe prompts/list prompts/get completion/complete logging/setLevel subscriptions/listen notifications/initialized"
    " notifications/cancelled notifications/progress notifications/roots/list_changed".split()
)
OTHER = "_OTHER"
SDK_OWN = "OpenTelemetryMiddleware"
_REVISION = re.compile(r"\d{4}-\d{2}-\d{2}")
_CARRIED = ("traceparent", "tracestate")


class WatchedMessages:
    """Middleware: one watch around each message."""

    def __init__(self, observer: Observer, tools: frozenset[str]) -> None:
        self._observer = observer
        self._tools = tools

    async def __call__(self, ctx: ServerRequestContext[Any, Any], call_next: CallNext) -> HandlerResult:
        with self._observer.incoming(self._describe(ctx)) as watch:
            try:
                result = await call_next(ctx)
            except MCPError as error:
                watch.tell(str(error.error.code))
                raise
            except ValidationError:
                watch.tell(str(INVALID_PARAMS))
                raise
            if ctx.method == "tools/call" and _is_error(result):
                watch.tell("tool_error")
            return result

    def _describe(self, ctx: ServerRequestContext[Any, Any]) -> Incoming:
        """Bounded words: what a client made up is `_OTHER`, or left out."""
        name = ctx.params.get("name") if ctx.method == "tools/call" and ctx.params else None
        request = cast("Request | object", ctx.request)
        headers = request.headers if isinstance(request, Request) else None
        number = ctx.request_id
        meta: Mapping[str, Any] = ctx.meta or {}
        return Incoming(
            method=ctx.method if ctx.method in METHODS else OTHER,
            tool=name if isinstance(name, str) and name in self._tools else OTHER if name is not None else None,
            protocol=ctx.protocol_version if _REVISION.fullmatch(ctx.protocol_version) else OTHER,
            request_id=number if isinstance(number, int) else None,
            transport="pipe" if headers is None else "tcp",
            meta={key: meta[key] for key in _CARRIED if key in meta},
            headers={key: headers[key] for key in _CARRIED if key in headers} if headers is not None else {},
        )


def _is_error(result: HandlerResult) -> bool:
    match result:
        case CallToolResult(is_error=True) | {"isError": True}:
            return True
        case _:
            return False
