"""What is seen of the work on a request: a span, measurements and an event for each piece of it, as far as each is switched on."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from contextvars import Token
from dataclasses import dataclass
from types import TracebackType
from typing import TYPE_CHECKING, Any, Generic, Self, TypeVar, cast
from urllib.parse import urlsplit

from opentelemetry.context import Context, attach, detach, get_current
from opentelemetry.trace import Link, Span, SpanKind, StatusCode, format_span_id, format_trace_id, set_span_in_context

from search_router.errors import ReceiptError
from search_router.observing import HEADERS, OBSERVER, Finished, Incoming, Observer, Operation, RemoteCall, Reported
from search_router.redact import scrub
from search_router.schema import Answer, ExpertCall, ExpertStatus, StageReport, Status
from search_router.telemetry import words
from search_router.telemetry.context import headers_of, read_context

if TYPE_CHECKING:  # logs alone need no SDK
    from search_router.telemetry.events import EventLog
    from search_router.telemetry.metrics import Metrics
    from search_router.telemetry.spans import Spans

Attributes = Mapping[str, str | bool | int | float]
Told = TypeVar("Told")
ANSWERED = frozenset({ExpertStatus.OK, ExpertStatus.EMPTY})
NOT_ASKED = frozenset({ExpertStatus.SKIPPED})
FAULTS = frozenset({Status.FAILED, Status.CANCELLED})
"""A refused request is the caller's mistake and no error of this service."""
CONTENT_CHARACTERS = 1000
MAX_CODE = 64
RESERVED_CODES = (-32768, -32000)
"""Of JSON-RPC 2.0, section 5.1."""


@dataclass(frozen=True, slots=True)
class Telemetry:
    """The observer. Each part is there when its setting is on."""

    spans: Spans | None = None
    metrics: Metrics | None = None
    events: EventLog | None = None
    content: bool = False
    """Whether questions, sub-queries and reasons may be told."""
    propagate: bool = True
    """Whether other systems are told the trace."""

    @property
    def scrape(self) -> Callable[[], bytes] | None:
        return self.metrics.scrape if self.metrics is not None else None

    def incoming(self, message: Incoming) -> _IncomingWatch:
        return _IncomingWatch(self, message)

    def request(self, operation: Operation, raw: object = None) -> _RequestWatch:
        return _RequestWatch(self, operation, raw)

    def stage(self, name: str) -> _StageWatch:
        return _StageWatch(self, name)

    def expert(self, call: ExpertCall) -> _ExpertWatch:
        return _ExpertWatch(self, call)

    def remote(self, call: RemoteCall) -> _RemoteWatch:
        return _RemoteWatch(self, call)


class _Watch(Generic[Told]):
    """A span around a piece of work, current while that runs. Neither messages nor traces of exceptions are recorded: they hold content."""

    kind = SpanKind.INTERNAL
    tells_others = False

    def __init__(self, telemetry: Telemetry, name: str, attributes: Attributes) -> None:
        self._telemetry = telemetry
        self._name = name
        self._attributes = attributes
        self._told: Told | None = None
        self._span: Span | None = None

    def parent(self) -> tuple[Context | None, Sequence[Link]]:
        """Where the span hangs. None: on the one that is current."""
        return None, ()

    def finish(self, told: Told | None, error: BaseException | None, seconds: float) -> None:
        """Tell span, instruments and log what came of it."""

    def tell(self, what: Told, /) -> None:
        self._told = what

    def __enter__(self) -> Self:
        spans = self._telemetry.spans
        if spans is not None:
            parent, links = self.parent()
            span = self._span = spans.tracer.start_span(self._name, parent, self.kind, self._attributes, links or None)
            context = set_span_in_context(span, parent if parent is not None else get_current())
            self._context_token = attach(context)
            if self.tells_others and self._telemetry.propagate:
                self._headers_token: Token[Mapping[str, str]] | None = HEADERS.set(headers_of(context))
            else:
                self._headers_token = None
        self._started = time.perf_counter()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None, /) -> None:
        seconds = time.perf_counter() - self._started
        self.finish(self._told, error, seconds)
        if self._span is not None:
            if self._headers_token is not None:
                HEADERS.reset(self._headers_token)
            detach(self._context_token)
            self._span.end()

    def describe(self, attributes: Attributes) -> None:
        if self._span is not None:
            self._span.set_attributes(attributes)

    def fault(self, what: str) -> None:
        """The span ended in an error of this class."""
        if self._span is not None:
            self._span.set_attribute(words.ERROR_TYPE, what)
            self._span.set_status(StatusCode.ERROR)


class _StageWatch(_Watch[StageReport]):
    def __init__(self, telemetry: Telemetry, name: str) -> None:
        super().__init__(telemetry, f"stage {name}", {words.STAGE: name})

    def finish(self, told: StageReport | None, error: BaseException | None, seconds: float) -> None:
        if told is not None:
            self.describe({words.STAGE_ACTIVE: told.active, words.STAGE_IN: told.in_, words.STAGE_OUT: told.out})
        if error is not None:
            self.fault(class_of(error))


class _ExpertWatch(_Watch[Reported]):
    """The conventions' retrieval span. Its name carries the expert's id as well, or nobody could tell a trace's branches apart."""

    tells_others = True

    def __init__(self, telemetry: Telemetry, call: ExpertCall) -> None:
        fields: dict[str, str | bool | int | float] = {
            words.OPERATION: words.RETRIEVAL,
            words.DATA_SOURCE: call.expert,
            words.EXPERT: call.expert,
            words.BUDGET_MS: call.budget_ms,
        }
        if telemetry.content:
            fields[words.SUB_QUERY] = scrub(str(call.sub_query), CONTENT_CHARACTERS)
        super().__init__(telemetry, f"{words.RETRIEVAL} {call.expert}", fields)
        self._expert = call.expert

    def finish(self, told: Reported | None, error: BaseException | None, seconds: float) -> None:
        report = told.report if told is not None else None
        status = report.status if report is not None else ExpertStatus.CANCELLED
        self.describe({words.STATUS: status.value, words.RESULTS: report.results if report is not None else 0})
        if self._telemetry.content and report is not None:
            self.describe({words.REASON: scrub(report.reason, CONTENT_CHARACTERS)})
        if status not in ANSWERED:
            self.fault(status.value)
        if (metrics := self._telemetry.metrics) is not None:
            known = {words.EXPERT: self._expert}
            metrics.instruments.expert_duration.record(seconds, {**known, words.STATUS: status.value})
            if status not in ANSWERED:
                metrics.instruments.expert_failures.add(1, {**known, words.ERROR_TYPE: status.value})


class _RemoteWatch(_Watch[str]):
    """The conventions' MCP client span."""

    kind = SpanKind.CLIENT
    tells_others = True

    def __init__(self, telemetry: Telemetry, call: RemoteCall) -> None:
        known: dict[str, str] = {
            words.METHOD: "tools/call",
            words.OPERATION: words.EXECUTE_TOOL,
            words.TOOL: call.tool,
            words.TRANSPORT: "pipe" if call.transport == "stdio" else "tcp",
        }
        place = urlsplit(call.url)
        fields: dict[str, str | bool | int | float] = dict(known)
        if place.hostname:  # without path, query, user and password, which may hold secrets
            fields |= {words.SERVER_ADDRESS: place.hostname, words.SERVER_PORT: place.port or (443 if place.scheme == "https" else 80)}
        if call.protocol:
            fields[words.PROTOCOL_VERSION] = call.protocol
        super().__init__(telemetry, f"tools/call {call.tool}", fields)
        self._known = known

    def finish(self, told: str | None, error: BaseException | None, seconds: float) -> None:
        fault = told or (class_of(error) if error is not None else "")
        if fault:
            self.fault(fault)
            if fault.lstrip("-").isdigit():
                self.describe({words.RPC_STATUS: fault})
        if (metrics := self._telemetry.metrics) is not None:
            known = bounded(fault)
            metrics.instruments.client_duration.record(seconds, {**self._known, **({words.ERROR_TYPE: known} if known else {})})


class _IncomingWatch(_Watch[str]):
    """The conventions' MCP server span. A client's trace goes on in it."""

    kind = SpanKind.SERVER

    def __init__(self, telemetry: Telemetry, message: Incoming) -> None:
        known = {words.METHOD: message.method, words.TRANSPORT: message.transport}
        if message.method == "tools/call":
            known[words.OPERATION] = words.EXECUTE_TOOL
        if message.tool is not None:
            known[words.TOOL] = message.tool
        fields: dict[str, str | bool | int | float] = {**known, words.PROTOCOL_VERSION: message.protocol}
        if message.request_id is not None:
            fields[words.REQUEST_ID] = str(message.request_id)
        super().__init__(telemetry, message.method if message.tool is None else f"{message.method} {message.tool}", fields)
        self._known = known
        self._message = message

    def parent(self) -> tuple[Context | None, Sequence[Link]]:
        return read_context(self._message.meta, self._message.headers)

    def finish(self, told: str | None, error: BaseException | None, seconds: float) -> None:
        fault = told or (class_of(error) if error is not None else "")
        if fault:
            self.fault(fault)
            if fault.lstrip("-").isdigit():
                self.describe({words.RPC_STATUS: fault})
        if (metrics := self._telemetry.metrics) is not None:
            metrics.instruments.server_duration.record(seconds, {**self._known, **({words.ERROR_TYPE: fault} if fault else {})})


class _RequestWatch(_Watch[Finished]):
    """The whole of a request, from whichever door. While it is open, the rooms of the path find this observer."""

    def __init__(self, telemetry: Telemetry, operation: Operation, raw: object) -> None:
        fields: dict[str, str | bool | int | float] = {words.KIND: operation}
        self._question = _question_in(raw) if telemetry.content else None
        if operation == "search":
            fields[words.OPERATION] = words.RETRIEVAL
            if self._question is not None:
                fields[words.QUERY_TEXT] = self._question
        super().__init__(telemetry, words.RETRIEVAL if operation == "search" else "fetch_evidence", fields)
        self._operation: Operation = operation

    def __enter__(self) -> Self:
        self._observer_token: Token[Observer] = OBSERVER.set(self._telemetry)
        return super().__enter__()

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None, /) -> None:
        super().__exit__(kind, error, trace)
        OBSERVER.reset(self._observer_token)

    def finish(self, told: Finished | None, error: BaseException | None, seconds: float) -> None:
        seen = _Seen.of(told, error)
        self.describe(seen.attributes())
        if seen.fault:
            self.fault(seen.fault)
        if (metrics := self._telemetry.metrics) is not None:
            at = metrics.instruments
            known = {words.KIND: self._operation, words.STATUS: seen.status, words.INTENT: seen.intent}
            at.requests.add(1, known)
            at.request_duration.record(seconds, known)
            at.receipts.add(1, {words.KIND: self._operation, words.OUTCOME: "written" if seen.receipt else "failed"})
            if seen.status == Status.CACHED:
                at.cache_hits.add(1)
        if (events := self._telemetry.events) is not None:
            fields = {
                "operation": self._operation,
                "ms": round(seconds * 1000, 3),
                **seen.fields(),
                **self._ids(),
                "question": self._question,
            }
            events.say("request", fields, "error" if seen.fault else "info")

    def _ids(self) -> dict[str, str]:
        if self._span is None:
            return {}
        context = self._span.get_span_context()
        return {"trace_id": format_trace_id(context.trace_id), "span_id": format_span_id(context.span_id)}


@dataclass(frozen=True, slots=True)
class _Seen:
    """What is told of a request: classes, ids and numbers only."""

    status: str
    intent: str = words.NO_INTENT
    fault: str = ""
    receipt: str = ""
    config: str = ""
    answer: Answer | None = None

    @classmethod
    def of(cls, told: Finished | None, error: BaseException | None) -> Self:
        if told is None:
            fault = class_of(error) if error is not None else words.OTHER
            return cls(Status.FAILED.value if isinstance(error, Exception) else Status.CANCELLED.value, fault=fault)
        body: Any = told
        answer = told if isinstance(told, Answer) else None
        fault = ""
        if told.status in FAULTS:
            fault = body.error.code if body.error is not None else told.status.value
        return cls(
            status=told.status.value,
            intent=answer.classification.intent.value if answer is not None and answer.classification is not None else words.NO_INTENT,
            fault=fault,
            receipt=body.receipt.id if body.receipt is not None else "",
            config=body.config.hash[:12],
            answer=answer,
        )

    @property
    def failed_experts(self) -> dict[str, str]:
        reports = self.answer.experts if self.answer is not None else ()
        return {r.id: r.status.value for r in reports if r.status not in ANSWERED | NOT_ASKED}

    def attributes(self) -> Attributes:
        fields: dict[str, str | bool | int | float] = {words.STATUS: self.status, words.INTENT: self.intent}
        if self.receipt:
            fields |= {words.RECEIPT: self.receipt, words.CONFIG: self.config}
        if (answer := self.answer) is not None:
            failed = len(self.failed_experts)
            fields |= {words.EVIDENCE: len(answer.evidence), words.ASKED: answer.budget.asked, words.FAILED: failed}
            if answer.classification is not None:
                fields[words.ABSTAINED] = answer.classification.abstained
            if answer.empty_reason is not None:
                fields[words.EMPTY_REASON] = answer.empty_reason.value
        return fields

    def fields(self) -> dict[str, Any]:
        """For the log."""
        answer = self.answer
        return {
            "status": self.status,
            "intent": self.intent,
            "error": self.fault or None,
            "empty_reason": answer.empty_reason.value if answer is not None and answer.empty_reason is not None else None,
            "evidence": len(answer.evidence) if answer is not None else None,
            "asked": answer.budget.asked if answer is not None else None,
            "failed": self.failed_experts or None,
            "receipt": self.receipt or None,
            "receipt_written": bool(self.receipt),
        }


def class_of(error: BaseException) -> str:
    """The class of an error: its code where it has one (a failure class, a JSON-RPC code), else the name of its type. Never its message."""
    code: object = getattr(error, "code", None)
    if isinstance(error, ReceiptError):
        return error.code
    return str(code)[:MAX_CODE] if isinstance(code, int | str) and code != "" else type(error).__name__


def bounded(fault: str) -> str:
    """The class of an error for a metric. A foreign server may answer with any number; those beyond JSON-RPC's reserved ones are one class."""
    is_code = fault.lstrip("-").isdigit()
    return words.OTHER if is_code and not RESERVED_CODES[0] <= int(fault) <= RESERVED_CODES[1] else fault


def _question_in(raw: object) -> str | None:
    question = cast("Mapping[Any, Any]", raw).get("question") if isinstance(raw, Mapping) else None
    return scrub(question.encode("utf-8", "replace").decode(), CONTENT_CHARACTERS) if isinstance(question, str) else None
