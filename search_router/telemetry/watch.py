"""A span around a piece of work, and what may be said of how it ended."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from contextvars import Token
from dataclasses import dataclass
from types import TracebackType
from typing import TYPE_CHECKING, Generic, Self, TypeVar

from opentelemetry.context import Context, attach, detach, get_current
from opentelemetry.trace import Link, Span, SpanKind, StatusCode, set_span_in_context

from search_router.observing import HEADERS
from search_router.redact import scrub
from search_router.telemetry import words
from search_router.telemetry.context import headers_of

if TYPE_CHECKING:  # logs alone need no SDK
    from search_router.telemetry.events import EventLog
    from search_router.telemetry.metrics import Metrics
    from search_router.telemetry.spans import Spans

Attributes = Mapping[str, str | bool | int | float]
Told = TypeVar("Told")
CONTENT_CHARACTERS = 1000
MAX_CODE = 64
RESERVED_CODES = (-32768, -32000)
"""Of JSON-RPC 2.0, section 5.1."""


@dataclass(frozen=True, slots=True)
class Parts:
    """What is switched on. Each part is there when its setting is."""

    spans: Spans | None = None
    metrics: Metrics | None = None
    events: EventLog | None = None
    content: bool = False
    """Whether questions, sub-queries and reasons may be told."""
    propagate: bool = True
    """Whether other systems are told the trace."""


class SpanWatch(Generic[Told]):
    """A span around a piece of work, current while that runs. Neither messages nor traces of exceptions are recorded: they hold content."""

    kind = SpanKind.INTERNAL
    tells_others = False

    def __init__(self, parts: Parts, name: str, attributes: Attributes) -> None:
        self.parts = parts
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
        spans = self.parts.spans
        if spans is not None:
            parent, links = self.parent()
            span = self._span = spans.tracer.start_span(self._name, parent, self.kind, self._attributes, links or None)
            context = set_span_in_context(span, parent if parent is not None else get_current())
            self._context_token = attach(context)
            if self.tells_others and self.parts.propagate:
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


def class_of(error: BaseException) -> str:
    """The class of an error: its code where it has one (failure class, JSON-RPC code), else the name of its type. Never its message."""
    code: object = getattr(error, "code", None)
    return str(code)[:MAX_CODE] if isinstance(code, int | str) and code != "" else type(error).__name__


def bounded(fault: str) -> str:
    """The class of an error for a metric: a foreign server may answer with any number, so those that JSON-RPC does not reserve are one."""
    is_code = fault.lstrip("-").isdigit()
    return words.OTHER if is_code and not RESERVED_CODES[0] <= int(fault) <= RESERVED_CODES[1] else fault


def told_text(text: str) -> str:
    """Content as it may be told: scrubbed, cut, and valid UTF-8, which a path need not be and an exporter needs."""
    return scrub(text.encode("utf-8", "replace").decode(), CONTENT_CHARACTERS)
