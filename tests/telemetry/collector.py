"""An OTLP/HTTP receiver on 127.0.0.1: decodes what arrives with the protocol's own messages and lets tests wait for it."""

from __future__ import annotations

import contextlib
import gzip
import threading
from collections.abc import Callable, Generator
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

WAIT_SECONDS = 20.0


@dataclass(frozen=True)
class SeenSpan:
    name: str
    kind: int
    trace_id: str
    span_id: str
    parent_id: str
    attributes: dict[str, Any]
    is_error: bool
    links: tuple[str, ...]
    service: str


def value_of(value: Any) -> Any:
    return getattr(value, value.WhichOneof("value") or "string_value")


def attributes_of(pairs: Any) -> dict[str, Any]:
    return {pair.key: value_of(pair.value) for pair in pairs}


class Collector:
    def __init__(self) -> None:
        self.spans: list[SeenSpan] = []
        self.metrics: set[str] = set()
        self.raw: list[bytes] = []
        self.changed = threading.Condition()
        self.url = ""

    def receive(self, path: str, body: bytes) -> None:
        with self.changed:
            self.raw.append(body)
            if path == "/v1/traces":
                self._receive_spans(ExportTraceServiceRequest.FromString(body))
            elif path == "/v1/metrics":
                said = ExportMetricsServiceRequest.FromString(body)
                self.metrics |= {m.name for r in said.resource_metrics for s in r.scope_metrics for m in s.metrics}
            self.changed.notify_all()

    def _receive_spans(self, said: ExportTraceServiceRequest) -> None:
        for resource in said.resource_spans:
            service = attributes_of(resource.resource.attributes).get("service.name", "")
            for span in (span for scope in resource.scope_spans for span in scope.spans):
                self.spans.append(
                    SeenSpan(
                        span.name,
                        span.kind,
                        span.trace_id.hex(),
                        span.span_id.hex(),
                        span.parent_span_id.hex(),
                        attributes_of(span.attributes),
                        span.status.code == 2,
                        tuple(link.trace_id.hex() for link in span.links),
                        service,
                    )
                )

    def wait(self, enough: Callable[[], Any]) -> None:
        with self.changed:
            assert self.changed.wait_for(enough, WAIT_SECONDS), [(s.service, s.name) for s in self.spans]

    def find(self, name: str, service: str = "") -> SeenSpan:
        """The one span of this name, which may still be on its way."""

        def found() -> list[SeenSpan]:
            return [s for s in self.spans if s.name == name and service in ("", s.service)]

        self.wait(found)
        (span,) = found()
        return span


@contextlib.contextmanager
def collecting(*, answers: bool = True) -> Generator[Collector]:
    """A collector; with `answers=False` one that takes requests and never answers them."""
    collector = Collector()
    over = threading.Event()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            if not answers:
                collector.receive("", body)
                over.wait(60)
                return
            collector.receive(self.path, gzip.decompress(body) if self.headers.get("Content-Encoding") == "gzip" else body)
            self.send_response(200)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_request(self, code: int | str = "-", size: int | str = "-") -> None:
            """Quiet."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    collector.url = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
    thread.start()
    try:
        yield collector
    finally:
        over.set()
        server.shutdown()
        server.server_close()
        thread.join(5)
