"""Where the path of a request says what it does, to whoever watches. Nobody watches by default, and then saying it costs next to nothing.

The rooms of the path ask for `current()` and open a watch around a piece of work; `telemetry` is the one that watches, when the
configuration wants it. Remote adapters send `trace_headers()` along. This file imports nothing of OpenTelemetry, and no room of the path
does: what is switched off is not even read from the disk.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextvars import ContextVar
from dataclasses import dataclass, field
from types import MappingProxyType, TracebackType
from typing import Literal, Protocol, Self, TypeVar

from search_router.schema import ExpertCall, ExpertReport, StageReport, Status

Operation = Literal["search", "fetch"]
Told = TypeVar("Told", contravariant=True)


class Watch(Protocol[Told]):
    """Open around one piece of work. It sees how long that takes and the exception that ends it; the rest it is told."""

    def __enter__(self) -> Self: ...

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None, /) -> None: ...

    def tell(self, what: Told, /) -> None:
        """What came of it. Without a word and without an exception nothing is known of it."""
        ...


class Finished(Protocol):
    """A request that has its receipt."""

    @property
    def status(self) -> Status: ...


class Reported(Protocol):
    """What became of a call to an expert; its report is made when somebody looks."""

    @property
    def report(self) -> ExpertReport: ...


@dataclass(frozen=True, slots=True)
class RemoteCall:
    """One tool of another system's MCP server, about to be called. `tool` and `url` are of the configuration."""

    tool: str
    transport: str
    url: str = ""
    protocol: str = ""


@dataclass(frozen=True, slots=True)
class Incoming:
    """One message of an MCP client. `method` and `tool` are words of ours; `meta` and `headers` are as the client sent them."""

    method: str
    tool: str | None
    protocol: str
    request_id: int | None
    transport: Literal["pipe", "tcp"]
    meta: Mapping[str, object] = field(default_factory=dict[str, object])
    headers: Mapping[str, str] = field(default_factory=dict[str, str])


class Observer(Protocol):
    """Watches requests. Nothing that it does may fail, delay or change an answer."""

    @property
    def scrape(self) -> Callable[[], bytes] | None:
        """Makes the page of metrics in Prometheus' text format; None where there is none."""
        ...

    def incoming(self, message: Incoming) -> Watch[str]:
        """A client's message, until it is answered. It is told the class of an error."""
        ...

    def request(self, operation: Operation, raw: object = None) -> Watch[Finished]:
        """A request as it came in, until its receipt is written."""
        ...

    def stage(self, name: str) -> Watch[StageReport]:
        """One step of a request."""
        ...

    def expert(self, call: ExpertCall) -> Watch[Reported]:
        """One expert's part in it."""
        ...

    def remote(self, call: RemoteCall) -> Watch[str]:
        """One call to another system. It is told the class of an error that is no exception."""
        ...


class _Unwatched:
    """A watch that looks at nothing."""

    __slots__ = ()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None, /) -> None:
        return None

    def tell(self, what: object, /) -> None:
        return None


_UNWATCHED = _Unwatched()


class _Nobody:
    """Watches nothing: the default. One object serves for everything, so that nothing is made."""

    __slots__ = ()

    @property
    def scrape(self) -> None:
        return None

    def incoming(self, message: Incoming) -> _Unwatched:
        return _UNWATCHED

    def request(self, operation: Operation, raw: object = None) -> _Unwatched:
        return _UNWATCHED

    def stage(self, name: str) -> _Unwatched:
        return _UNWATCHED

    def expert(self, call: ExpertCall) -> _Unwatched:
        return _UNWATCHED

    def remote(self, call: RemoteCall) -> _Unwatched:
        return _UNWATCHED


NOBODY: Observer = _Nobody()
NO_HEADERS: Mapping[str, str] = MappingProxyType({})

OBSERVER: ContextVar[Observer] = ContextVar("search_router.observer", default=NOBODY)
"""Who watches the request that runs here. Set by a request's watch, for as long as it is open."""
HEADERS: ContextVar[Mapping[str, str]] = ContextVar("search_router.trace_headers", default=NO_HEADERS)
"""W3C Trace Context of the call that runs here. Set by an expert's and a remote call's watch."""


def current() -> Observer:
    """Who watches the request that runs here."""
    return OBSERVER.get()


def trace_headers() -> Mapping[str, str]:
    """`traceparent` and, where there is one, `tracestate` for a call to another system; empty when no trace is kept."""
    return HEADERS.get()
