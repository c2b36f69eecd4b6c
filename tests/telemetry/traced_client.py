"""A client made with the SDK and traced by it: `python -m tests.telemetry.traced_client URL` or `… -- COMMAND…`. Asks one question."""

from __future__ import annotations

import os
import sys
from typing import Any

import anyio
from mcp import Client, StdioServerParameters
from opentelemetry import trace
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor

provider = TracerProvider(resource=Resource.create({"service.name": "client"}))
provider.add_span_processor(SimpleSpanProcessor(OTLPSpanExporter()))
trace.set_tracer_provider(provider)


async def main() -> None:
    target: Any = sys.argv[1]
    if target == "--":
        target = StdioServerParameters(command=sys.argv[2], args=sys.argv[3:], env=dict(os.environ))
    async with Client(target) as client:
        with trace.get_tracer("client").start_as_current_span("the agent's turn"):
            answer = await client.call_tool("search_knowledge", {"question": "where does the application start", "intent": "conceptual"})
    assert not answer.is_error, answer


anyio.run(main)
