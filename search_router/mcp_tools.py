"""The MCP face of a router: five tools and one resource template. It translates and decides nothing.

The low-level `Server` is used because `MCPServer` validates arguments before a tool sees them: a request that is wrong in any way has
to reach the router, which refuses it with a named reason and a receipt.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from typing import Any, cast

import anyio
import mcp_types as types
from mcp.server import Server, ServerRequestContext
from mcp.server.context import CallNext, HandlerResult
from mcp.shared.exceptions import MCPError
from mcp_types.version import MODERN_PROTOCOL_VERSIONS
from starlette.requests import Request

from search_router import __version__
from search_router.errors import ReceiptError, ReceiptNotFound, SearchRouterError
from search_router.mcp_catalog import DESCRIPTION, INSTRUCTIONS, RECEIPT_TEMPLATE, TITLE, tools
from search_router.mcp_departure import departure_of
from search_router.mcp_roots import LIST_CHANGED, ClientRoots
from search_router.mcp_watched import SDK_OWN, WatchedMessages
from search_router.observing import NOBODY, Observer
from search_router.router_api import Progress, RouterApi
from search_router.schema import Edge, ReceiptRef, Status
from search_router.wire_text import encodable, encodable_json

NAME = "search-router"
RECEIPT_META = "search-router/receipt"
RECEIPT_SCHEME = "receipt://"
REFUSALS = frozenset({Status.DECLINED, Status.REJECTED, Status.FAILED, Status.CANCELLED})
FIRST_VERSION_WITH_LINKS = "2025-06-18"
PROGRESS_SECONDS = 0.25
STATEMENT_CHARACTERS = 20_000

CallContext = ServerRequestContext[Any, Any]
Handler = Callable[[CallContext, Mapping[str, Any]], Awaitable[types.CallToolResult]]


def create_server(
    router: RouterApi,
    *,
    session: str | None = None,
    principal: str = "local",
    roots: ClientRoots | None = None,
    observer: Observer = NOBODY,
) -> Server[dict[str, Any]]:
    """A server that answers from this router, for any transport and both protocol eras.

    `session` names all of a process's calls (stdio); without it the name comes from the transport, see `session_of`.
    `principal` goes into every receipt. With `roots`, an older client's own roots decide what is searched for it.
    `observer` watches the messages.
    """
    front = _Front(router, session, principal, roots)
    server = Server[dict[str, Any]](
        NAME,
        version=__version__,
        title=TITLE,
        description=DESCRIPTION,
        instructions=INSTRUCTIONS,
        get_tool_input_schema=_input_schema_of,
        on_list_tools=front.list_tools,
        on_call_tool=front.call_tool,
        on_list_resources=front.list_resources,
        on_list_resource_templates=front.list_resource_templates,
        on_read_resource=front.read_resource,
    )
    # What is told of a message is ours to decide, and nothing is told unless it is configured.
    server.middleware[:] = [each for each in server.middleware if type(each).__name__ != SDK_OWN]
    if observer is not NOBODY:
        server.middleware.insert(0, WatchedMessages(observer, front.tool_names))
    server.middleware.append(accept_any_arguments)
    if roots is not None:
        server.add_notification_handler(LIST_CHANGED, types.NotificationParams, roots.forget)
    return server


def _input_schema_of(name: str) -> dict[str, Any] | None:
    """Looked up on demand: the schemas are not made before somebody asks for them."""
    return next((tool.input_schema for tool in tools() if tool.name == name), None)


async def accept_any_arguments(ctx: CallContext, call_next: CallNext) -> HandlerResult:
    """Let arguments that are not an object through, as an object with the one key `arguments`, which the router refuses by name.

    Without this the SDK answers with a protocol error before our code runs: the model would see nothing and no receipt would be left.
    """
    params = ctx.params
    if ctx.method == "tools/call" and params and not isinstance(params.get("arguments", {}), Mapping | None):
        ctx = replace(ctx, params={**params, "arguments": {"arguments": params["arguments"]}})
    return await call_next(ctx)


def session_of(context: CallContext) -> str | None:
    """The transport's session as `http:` and 16 hexadecimal digits of the SHA-256 of its id; None where there is none (2026-07-28).

    The id itself would let a reader of receipts post into somebody's session.
    """
    request = context.request
    if not isinstance(request, Request):
        return None
    identity = request.query_params.get("session_id")
    if identity is None and context.protocol_version not in MODERN_PROTOCOL_VERSIONS:
        identity = request.headers.get("mcp-session-id")
    return None if identity is None else f"http:{hashlib.sha256(identity.encode()).hexdigest()[:16]}"


class _Front:
    """The handlers of one server."""

    def __init__(self, router: RouterApi, session: str | None, principal: str, roots: ClientRoots | None) -> None:
        self._router = router
        self._roots = roots
        self._session = session
        self._principal = principal
        self._handlers: dict[str, Handler] = {
            "search_knowledge": self._search,
            "fetch_evidence": self._fetch,
            "expert_registry": self._registry,
            "get_receipt": self._receipt,
            "report_outcome": self._outcome,
        }

    @property
    def tool_names(self) -> frozenset[str]:
        return frozenset(self._handlers)

    async def list_tools(self, context: CallContext, params: types.PaginatedRequestParams | None) -> types.ListToolsResult:
        return types.ListToolsResult(tools=list(tools()))

    async def list_resources(self, context: CallContext, params: types.PaginatedRequestParams | None) -> types.ListResourcesResult:
        """None: receipts are many and private to those who hold their ids."""
        return types.ListResourcesResult(resources=[])

    async def list_resource_templates(
        self, context: CallContext, params: types.PaginatedRequestParams | None
    ) -> types.ListResourceTemplatesResult:
        return types.ListResourceTemplatesResult(resource_templates=[RECEIPT_TEMPLATE])

    async def read_resource(self, context: CallContext, params: types.ReadResourceRequestParams) -> types.ReadResourceResult:
        uri = str(params.uri)
        receipt_id = uri.removeprefix(RECEIPT_SCHEME)
        try:
            if receipt_id == uri or not receipt_id:
                raise ReceiptNotFound(f"No resource has the address {uri!r}.", remedy=f"Read {RECEIPT_TEMPLATE.uri_template}.")
            answer = await self._router.receipt(receipt_id)
        except ReceiptNotFound as error:
            raise MCPError(code=types.INVALID_PARAMS, message=encodable(str(error)), data={"uri": encodable(uri)}) from error
        except ReceiptError as error:
            raise MCPError(code=types.INTERNAL_ERROR, message=encodable(str(error)), data={"code": error.code}) from error
        text = json.dumps(encodable_json({"envelope": answer.envelope, "statement": answer.statement}), ensure_ascii=False)
        contents = types.TextResourceContents(uri=uri, mime_type="application/json", text=text)
        return types.ReadResourceResult(contents=[contents])

    async def call_tool(self, context: CallContext, params: types.CallToolRequestParams) -> types.CallToolResult:
        handler = self._handlers.get(params.name)
        if handler is None:
            known = ", ".join(self._handlers)
            raise MCPError(code=types.INVALID_PARAMS, message=f"Unknown tool: {encodable(params.name)[:100]}. The tools are {known}.")
        try:
            with departure_of(context.request).cancels():
                return await handler(context, params.arguments or {})
        except SearchRouterError as error:
            return _refusal(error.code, str(error))
        raise MCPError(code=types.CONNECTION_CLOSED, message="The client left before the answer.")

    async def _router_for(self, context: CallContext) -> RouterApi:
        return self._router if self._roots is None else await self._roots.router_for(context)

    async def _search(self, context: CallContext, raw: Mapping[str, Any]) -> types.CallToolResult:
        router = await self._router_for(context)
        answer = await router.search(
            raw, session=self._session or session_of(context), principal=self._principal, progress=_progress(context)
        )
        text = self._router.render(answer)
        refused = answer.status in REFUSALS
        error = answer.error
        if refused and error is not None and error.message not in text:
            text = f"{answer.status.value}: {error.code}: {error.message} {error.remedy}".rstrip() + f"\n{text}"
        return _result(context, text, answer, answer.receipt, is_error=refused)

    async def _fetch(self, context: CallContext, raw: Mapping[str, Any]) -> types.CallToolResult:
        router = await self._router_for(context)
        answer = await router.fetch(raw, session=self._session or session_of(context), principal=self._principal)
        failed = not answer.items and (bool(answer.problems) or answer.error is not None)
        return _result(context, self._router.render_fetch(answer), answer, answer.receipt, is_error=failed)

    async def _outcome(self, context: CallContext, raw: Mapping[str, Any]) -> types.CallToolResult:
        answer = await self._router.report_outcome(raw, session=self._session or session_of(context), principal=self._principal)
        return _result(context, self._router.render_outcome(answer), answer, answer.receipt, is_error=answer.error is not None)

    async def _registry(self, context: CallContext, raw: Mapping[str, Any]) -> types.CallToolResult:
        if raw:
            return _refusal("invalid-request", f"expert_registry takes no arguments; leave out {_names(raw)}.")
        router = await self._router_for(context)
        answer = await router.registry()
        return _result(context, self._router.render_registry(answer), answer, None)

    async def _receipt(self, context: CallContext, raw: Mapping[str, Any]) -> types.CallToolResult:
        receipt_id = raw.get("id")
        if not isinstance(receipt_id, str) or len(raw) != 1:
            return _refusal("invalid-request", f"get_receipt takes one argument, id, as a string; it got {_names(raw) or 'nothing'}.")
        answer = await self._router.receipt(receipt_id)
        statement = json.dumps(answer.statement, ensure_ascii=False)
        more = len(statement) - STATEMENT_CHARACTERS
        tail = f"\n… {more} more characters: read {RECEIPT_SCHEME}{answer.id}." if more > 0 else ""
        text = f"Receipt {answer.id}: number {answer.seq} in log {answer.log}, signed by key {answer.keyid}. Statement:\n"
        return _result(context, f"{text}{statement[:STATEMENT_CHARACTERS]}{tail}", answer, None)


def _progress(context: CallContext) -> Progress:
    """Progress notifications for this request: rising, as the protocol wants, and never longer in the way than PROGRESS_SECONDS."""
    sent = 0.0

    async def report(message: str, done: float, total: int) -> None:
        nonlocal sent
        if done > sent:
            sent = done
            with anyio.move_on_after(PROGRESS_SECONDS):
                await context.session.report_progress(done, total, encodable(message))

    return report


def _result(context: CallContext, text: str, answer: Edge, receipt: ReceiptRef | None, *, is_error: bool = False) -> types.CallToolResult:
    """Compact text first, then a link to the receipt; the whole answer as structured content; the envelope in `_meta`."""
    content: list[types.ContentBlock] = [types.TextContent(text=encodable(text))]
    meta: dict[str, Any] = {}
    structured = encodable_json(answer.model_dump(mode="json", by_alias=True))
    if receipt is not None:
        cast("dict[str, Any]", structured["receipt"]).pop("envelope")
        if receipt.envelope is not None:
            meta[RECEIPT_META] = receipt.envelope
        if context.protocol_version >= FIRST_VERSION_WITH_LINKS:
            uri = f"{RECEIPT_SCHEME}{receipt.id}"
            content.append(types.ResourceLink(uri=uri, name=f"receipt {receipt.id}", mime_type="application/json"))
    return types.CallToolResult(content=content, structured_content=structured, is_error=is_error, _meta=meta or None)


def _refusal(code: str, text: str) -> types.CallToolResult:
    """An error with no answer in it, so with no structured content either: clients check that against the output schema."""
    return types.CallToolResult(
        content=[types.TextContent(text=encodable(f"{code}: {text}"))], is_error=True, _meta={"search-router/error": {"code": code}}
    )


def _names(raw: Mapping[str, Any]) -> str:
    return ", ".join(repr(name[:40]) for name in list(raw)[:5])
