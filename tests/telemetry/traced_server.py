"""Another system's MCP server, made with the SDK and traced by it: `python -m tests.telemetry.traced_server stdio|http PORT`.

It exports to the collector of OTEL_EXPORTER_OTLP_ENDPOINT, and says in its answer which headers came with the request.
"""

from __future__ import annotations

import sys

from mcp.server import MCPServer
from mcp.server.mcpserver import Context
from opentelemetry import trace
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from pydantic import BaseModel

provider = TracerProvider()
provider.add_span_processor(SimpleSpanProcessor(OTLPSpanExporter()))
trace.set_tracer_provider(provider)
server = MCPServer("traced", version="1")


class Hits(BaseModel):
    items: list[dict[str, str | int]]


@server.tool()
async def search(question: str, context: Context) -> Hits:
    """Finds the start."""
    headers = context.headers or {}
    with trace.get_tracer("fixture").start_as_current_span(f"headers {headers.get('traceparent', '')}"):
        return Hits(items=[{"path": "src/app.py", "start": 4, "end": 6, "symbol": question[:0]}])


if sys.argv[1] == "stdio":
    server.run("stdio")
else:
    server.run("streamable-http", host="127.0.0.1", port=int(sys.argv[2]))
