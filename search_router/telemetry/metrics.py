"""The instruments. Attributes are ids and classes of the configuration and the schema: their number is bounded."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
from opentelemetry.metrics import Counter, Histogram, Meter
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader, MetricReader, PeriodicExportingMetricReader
from opentelemetry.sdk.resources import Resource

from search_router.telemetry import words
from search_router.telemetry.exposition import render_metrics


@dataclass(frozen=True, slots=True)
class Instruments:
    """What is counted and measured. Times are in seconds."""

    requests: Counter
    request_duration: Histogram
    expert_duration: Histogram
    expert_failures: Counter
    receipts: Counter
    cache_hits: Counter
    server_duration: Histogram
    client_duration: Histogram


@dataclass(frozen=True, slots=True)
class Metrics:
    """The instruments, the page of them where one is wanted, and how it ends."""

    instruments: Instruments
    scrape: Callable[[], bytes] | None
    shutdown: Callable[[], None]


def open_metrics(resource: Resource, version: str, *, otlp: bool, prometheus: bool) -> Metrics:
    """Instruments whose values go to an OTLP endpoint at intervals (OTEL_METRIC_EXPORT_INTERVAL), onto a page, or both.

    Raises:
        ValueError: a variable has a value that the exporter cannot use.
    """
    page = InMemoryMetricReader() if prometheus else None
    readers: list[MetricReader] = [PeriodicExportingMetricReader(OTLPMetricExporter())] if otlp else []
    if page is not None:
        readers.append(page)
    provider = MeterProvider(readers, resource=resource, shutdown_on_exit=False)
    instruments = _make(provider.get_meter(words.SCOPE, version, schema_url=words.SCHEMA_URL))
    scrape = None if page is None else lambda: render_metrics(page.get_metrics_data(), resource)
    return Metrics(instruments, scrape, provider.shutdown)


def _make(meter: Meter) -> Instruments:
    def seconds(name: str, about: str, bounds: tuple[float, ...] = words.BOUNDS) -> Histogram:
        return meter.create_histogram(name, "s", about, explicit_bucket_boundaries_advisory=bounds)

    return Instruments(
        requests=meter.create_counter(words.REQUESTS, "{request}", "Requests that were answered, refused or failed."),
        request_duration=seconds(words.REQUEST_DURATION, "Time of a request from its arrival to its receipt."),
        expert_duration=seconds(words.EXPERT_DURATION, "Time of one expert's part in a request."),
        expert_failures=meter.create_counter(words.EXPERT_FAILURES, "{failure}", "Calls to experts without a usable answer."),
        receipts=meter.create_counter(words.RECEIPTS, "{receipt}", "Receipts that were written, or could not be."),
        cache_hits=meter.create_counter(words.CACHE_HITS, "{request}", "Requests that were answered from the cache."),
        server_duration=seconds(words.SERVER_DURATION, "Time of an MCP client's request or notification here.", words.CONVENTIONAL_BOUNDS),
        client_duration=seconds(words.CLIENT_DURATION, "Time of a call to another system's MCP server.", words.CONVENTIONAL_BOUNDS),
    )
