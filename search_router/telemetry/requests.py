"""What is seen of a whole request: classes, ids and numbers of its answer, and the question only where that is wanted."""

from __future__ import annotations

from collections.abc import Mapping
from contextvars import Token
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Self, cast

from opentelemetry.trace import format_span_id, format_trace_id

from search_router.observing import OBSERVER, Finished, Observer, Operation
from search_router.schema import Answer, ExpertStatus, Status
from search_router.telemetry import words
from search_router.telemetry.watch import Attributes, Parts, SpanWatch, class_of, told_text

UNFAILED = frozenset({ExpertStatus.OK, ExpertStatus.EMPTY, ExpertStatus.SKIPPED})
FAULTS = frozenset({Status.FAILED, Status.CANCELLED})
"""A refused request is the caller's mistake and no error of this service."""


class RequestWatch(SpanWatch[Finished]):
    """The whole of a request, from whichever door. While it is open, the rooms of the path find this observer."""

    def __init__(self, parts: Parts, observer: Observer, operation: Operation, raw: object) -> None:
        fields: dict[str, str | bool | int | float] = {words.KIND: operation}
        self._question = _question_in(raw) if parts.content else None
        if operation == "search":
            fields[words.OPERATION] = words.RETRIEVAL
            if self._question is not None:
                fields[words.QUERY_TEXT] = self._question
        super().__init__(parts, words.RETRIEVAL if operation == "search" else "fetch_evidence", fields)
        self._operation: Operation = operation
        self._observer = observer

    def __enter__(self) -> Self:
        self._observer_token: Token[Observer] = OBSERVER.set(self._observer)
        return super().__enter__()

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None, /) -> None:
        super().__exit__(kind, error, trace)
        OBSERVER.reset(self._observer_token)

    def finish(self, told: Finished | None, error: BaseException | None, seconds: float) -> None:
        seen = _Seen.of(told, error)
        self.describe(seen.attributes())
        if seen.fault:
            self.fault(seen.fault)
        if (metrics := self.parts.metrics) is not None:
            at = metrics.instruments
            known = {words.KIND: self._operation, words.STATUS: seen.status, words.INTENT: seen.intent}
            at.requests.add(1, known)
            at.request_duration.record(seconds, known)
            at.receipts.add(1, {words.KIND: self._operation, words.OUTCOME: "written" if seen.receipt else "failed"})
            if seen.status == Status.CACHED:
                at.cache_hits.add(1)
        if (events := self.parts.events) is not None:
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
        return {r.id: r.status.value for r in reports if r.status not in UNFAILED}

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


def _question_in(raw: object) -> str | None:
    question = cast("Mapping[Any, Any]", raw).get("question") if isinstance(raw, Mapping) else None
    return told_text(question) if isinstance(question, str) else None
