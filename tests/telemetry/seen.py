"""An observer whose spans stay in memory, for routers in the test's own process."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from search_router.telemetry.metrics import Metrics, open_metrics
from search_router.telemetry.observer import Telemetry
from search_router.telemetry.spans import Spans


@dataclass
class Seen:
    content: bool = False
    exporter: InMemorySpanExporter = field(default_factory=InMemorySpanExporter)
    metrics: Metrics = field(init=False)
    observer: Telemetry = field(init=False)

    def __post_init__(self) -> None:
        provider = TracerProvider(shutdown_on_exit=False)
        provider.add_span_processor(SimpleSpanProcessor(self.exporter))
        self.metrics = open_metrics(Resource.create({"service.name": "test"}), "0", otlp=False, prometheus=True)
        self.observer = Telemetry(Spans(provider.get_tracer("test"), provider.shutdown), self.metrics, None, self.content)

    @property
    def spans(self) -> tuple[ReadableSpan, ...]:
        return self.exporter.get_finished_spans()

    def named(self, name: str) -> ReadableSpan:
        (span,) = [span for span in self.spans if span.name == name]
        return span

    def attributes(self, name: str) -> dict[str, Any]:
        return dict(self.named(name).attributes or {})

    @property
    def page(self) -> str:
        assert self.metrics.scrape is not None
        return self.metrics.scrape().decode()

    def told(self) -> str:
        """All that has been told, as one text."""
        return "\n".join(span.to_json() for span in self.spans) + self.page
