"""What is seen of a message, a stage, an expert's part and a call to another system."""

from __future__ import annotations

from collections.abc import Sequence
from urllib.parse import urlsplit

from opentelemetry.context import Context
from opentelemetry.trace import Link, SpanKind

from search_router.observing import Incoming, RemoteCall, Reported
from search_router.schema import ExpertCall, ExpertStatus, StageReport
from search_router.telemetry import words
from search_router.telemetry.context import read_context
from search_router.telemetry.watch import Attributes, Parts, SpanWatch, bounded, class_of, told_text

ANSWERED = frozenset({ExpertStatus.OK, ExpertStatus.EMPTY})


class StageWatch(SpanWatch[StageReport]):
    def __init__(self, parts: Parts, name: str) -> None:
        super().__init__(parts, f"stage {name}", {words.STAGE: name})

    def finish(self, told: StageReport | None, error: BaseException | None, seconds: float) -> None:
        if told is not None:
            self.describe({words.STAGE_ACTIVE: told.active, words.STAGE_IN: told.in_, words.STAGE_OUT: told.out})
        if error is not None:
            self.fault(class_of(error))


class ExpertWatch(SpanWatch[Reported]):
    """The conventions' retrieval span. Its name carries the expert's id as well, or nobody could tell a trace's branches apart."""

    tells_others = True

    def __init__(self, parts: Parts, call: ExpertCall) -> None:
        fields: dict[str, str | bool | int | float] = {
            words.OPERATION: words.RETRIEVAL,
            words.DATA_SOURCE: call.expert,
            words.EXPERT: call.expert,
            words.BUDGET_MS: call.budget_ms,
        }
        if parts.content:
            fields[words.SUB_QUERY] = told_text(str(call.sub_query))
        super().__init__(parts, f"{words.RETRIEVAL} {call.expert}", fields)
        self._expert = call.expert

    def finish(self, told: Reported | None, error: BaseException | None, seconds: float) -> None:
        report = told.report if told is not None else None
        status = report.status if report is not None else ExpertStatus.CANCELLED
        self.describe({words.STATUS: status.value, words.RESULTS: report.results if report is not None else 0})
        if self.parts.content and report is not None:
            self.describe({words.REASON: told_text(report.reason)})
        if status not in ANSWERED:
            self.fault(status.value)
        if (metrics := self.parts.metrics) is not None:
            known = {words.EXPERT: self._expert}
            metrics.instruments.expert_duration.record(seconds, {**known, words.STATUS: status.value})
            if status not in ANSWERED:
                metrics.instruments.expert_failures.add(1, {**known, words.ERROR_TYPE: status.value})


class RemoteWatch(SpanWatch[str]):
    """The conventions' MCP client span."""

    kind = SpanKind.CLIENT
    tells_others = True

    def __init__(self, parts: Parts, call: RemoteCall) -> None:
        known: dict[str, str] = {
            words.METHOD: "tools/call",
            words.OPERATION: words.EXECUTE_TOOL,
            words.TOOL: call.tool,
            words.TRANSPORT: "pipe" if call.transport == "stdio" else "tcp",
        }
        fields: dict[str, str | bool | int | float] = {**known, **_place(call.url)}
        if call.protocol:
            fields[words.PROTOCOL_VERSION] = call.protocol
        super().__init__(parts, f"tools/call {call.tool}", fields)
        self._known = known

    def finish(self, told: str | None, error: BaseException | None, seconds: float) -> None:
        fault = told or (class_of(error) if error is not None else "")
        if fault:
            self.fault(fault)
            if fault.lstrip("-").isdigit():
                self.describe({words.RPC_STATUS: fault})
        if (metrics := self.parts.metrics) is not None:
            known = bounded(fault)
            metrics.instruments.client_duration.record(seconds, {**self._known, **({words.ERROR_TYPE: known} if known else {})})


def _place(url: str) -> Attributes:
    """Host and port of a URL; not its path, query, user and password, which may hold secrets. Nothing of a URL that is none."""
    try:
        place = urlsplit(url)
        port = place.port
    except ValueError:
        return {}
    if not place.hostname:
        return {}
    return {words.SERVER_ADDRESS: place.hostname, words.SERVER_PORT: port or (443 if place.scheme == "https" else 80)}


class IncomingWatch(SpanWatch[str]):
    """The conventions' MCP server span. A client's trace goes on in it."""

    kind = SpanKind.SERVER

    def __init__(self, parts: Parts, message: Incoming) -> None:
        known = {words.METHOD: message.method, words.TRANSPORT: message.transport}
        if message.method == "tools/call":
            known[words.OPERATION] = words.EXECUTE_TOOL
        if message.tool is not None:
            known[words.TOOL] = message.tool
        fields: dict[str, str | bool | int | float] = {**known, words.PROTOCOL_VERSION: message.protocol}
        if message.request_id is not None:
            fields[words.REQUEST_ID] = str(message.request_id)
        super().__init__(parts, message.method if message.tool is None else f"{message.method} {message.tool}", fields)
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
        if (metrics := self.parts.metrics) is not None:
            metrics.instruments.server_duration.record(seconds, {**self._known, **({words.ERROR_TYPE: fault} if fault else {})})
