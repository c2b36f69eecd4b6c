"""The SDK's metrics as a page in Prometheus' text format 0.0.4.

Names follow "Prometheus and OpenMetrics compatibility" of the OpenTelemetry specification (1.55): dots become underscores, the unit `s`
becomes `_seconds`, a counter ends in `_total`, resource attributes stand once in `target_info`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate

from opentelemetry.sdk.metrics.export import Histogram, HistogramDataPoint, Metric, MetricsData, NumberDataPoint, Sum
from opentelemetry.sdk.resources import Resource
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, HistogramMetricFamily, InfoMetricFamily
from prometheus_client.metrics_core import Metric as Family
from prometheus_client.registry import Collector

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
_NO_NAME = re.compile(r"[^a-zA-Z0-9_]")


class _Page(Collector):
    def __init__(self, families: Iterable[Family]) -> None:
        self._families = tuple(families)

    def collect(self) -> Iterable[Family]:
        return self._families


def render_metrics(data: MetricsData | None, resource: Resource) -> bytes:
    """The page."""
    registry = CollectorRegistry(auto_describe=False)
    about = InfoMetricFamily("target", "The process that these metrics are of.")
    about.add_metric([], {_label(name): str(value) for name, value in resource.attributes.items()})
    registry.register(_Page([about, *_families(data)]))
    return generate_latest(registry)


def _families(data: MetricsData | None) -> Iterator[Family]:
    for of_resource in data.resource_metrics if data is not None else ():
        for scope in of_resource.scope_metrics:
            for metric in scope.metrics:
                if (family := _family(metric)) is not None:
                    yield family


def _family(metric: Metric) -> Family | None:
    name = _label(metric.name) + ("_seconds" if metric.unit == "s" else "")
    data = metric.data
    if isinstance(data, Sum):
        labels = _labels(data.data_points)
        counter = CounterMetricFamily(name, metric.description or "", labels=[_label(label) for label in labels])
        for point in data.data_points:
            counter.add_metric(_values(point, labels), point.value)
        return counter
    if isinstance(data, Histogram):
        labels = _labels(data.data_points)
        histogram = HistogramMetricFamily(name, metric.description or "", labels=[_label(label) for label in labels])
        for point in data.data_points:
            bounds = (*(str(bound) for bound in point.explicit_bounds), "+Inf")
            histogram.add_metric(_values(point, labels), list(zip(bounds, accumulate(point.bucket_counts), strict=True)), point.sum)
        return histogram
    return None


def _labels(points: Sequence[NumberDataPoint | HistogramDataPoint]) -> tuple[str, ...]:
    """All attributes that any point has; a point without one has the empty value, which Prometheus takes as absent."""
    return tuple(dict.fromkeys(name for point in points for name in point.attributes or ()))


def _values(point: NumberDataPoint | HistogramDataPoint, labels: Iterable[str]) -> list[str]:
    attributes = point.attributes or {}
    return [str(attributes.get(name, "")) for name in labels]


def _label(name: str) -> str:
    return _NO_NAME.sub("_", name)
