"""W3C Trace Context, from clients and to other systems. Uses OpenTelemetry's API alone, which the MCP SDK brings along."""

from __future__ import annotations

from collections.abc import Mapping

from opentelemetry.context import Context
from opentelemetry.trace import Link, get_current_span
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

CARRIED = ("traceparent", "tracestate")
"""Baggage is neither read nor sent: it is the client's own data, and experts may be other people's systems."""
MAX_CARRIED = 2048
"""Characters of one value. A traceparent has 55, and a tracestate must be accepted up to 512 (W3C Trace Context, 3.3.1.5)."""

_propagator = TraceContextTextMapPropagator()


def read_context(meta: Mapping[str, object], headers: Mapping[str, str]) -> tuple[Context | None, list[Link]]:
    """The parent that a client names, and a link to the HTTP request's own when that is another one.

    `params._meta` comes first, as the conventions want; the HTTP header is the parent where there is nothing in `_meta`. None: neither
    names a valid one.
    """
    from_meta, from_headers = _extract(meta), _extract(headers)
    if from_meta is None or from_headers is None:
        return from_meta or from_headers, []
    ambient = get_current_span(from_headers).get_span_context()
    same = get_current_span(from_meta).get_span_context().span_id == ambient.span_id
    return from_meta, [] if same else [Link(ambient)]


def _extract(carrier: Mapping[str, object]) -> Context | None:
    found = {name: value for name in CARRIED if isinstance(value := carrier.get(name), str) and len(value) <= MAX_CARRIED}
    if "traceparent" not in found:
        return None
    context = _propagator.extract(found, Context())
    return context if get_current_span(context).get_span_context().is_valid else None


def headers_of(context: Context) -> Mapping[str, str]:
    """The context as headers for another system; empty when it holds no span."""
    carrier: dict[str, str] = {}
    _propagator.inject(carrier, context)
    return carrier
