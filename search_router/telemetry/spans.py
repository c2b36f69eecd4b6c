"""The tracer and where its spans go."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.trace import Tracer

from search_router.telemetry.words import SCHEMA_URL, SCOPE


@dataclass(frozen=True, slots=True)
class Spans:
    """Where spans are made, and how that ends."""

    tracer: Tracer
    shutdown: Callable[[], None]


def open_spans(resource: Resource, version: str) -> Spans:
    """Spans that go to an OTLP endpoint over HTTP in batches, from a bounded queue in a thread of the SDK's.

    Endpoint, headers, sampler, queue and batch size are those of the OTEL_* variables. The provider is not made the process's global
    one: other libraries' spans are not ours to export.

    Raises:
        ValueError: a variable has a value that the exporter cannot use.
    """
    provider = TracerProvider(resource=resource, shutdown_on_exit=False)
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
    return Spans(provider.get_tracer(SCOPE, version, schema_url=SCHEMA_URL), provider.shutdown)
