"""Names of spans, attributes and metrics.

`gen_ai.*` and `mcp.*` follow the OpenTelemetry semantic conventions for generative AI, v0.1.0
(open-telemetry/semantic-conventions-genai, status Development), on top of the general semantic conventions v1.45.0; `search_router.*` are
ours. Every value is one of a bounded set, or a number, but for `search_router.receipt.id` and what `telemetry.content` adds.
"""

from __future__ import annotations

from typing import Final

GENAI_CONVENTIONS: Final = "0.1.0"
SCHEMA_URL: Final = "https://opentelemetry.io/schemas/1.45.0"
SCOPE: Final = "search_router"

# the conventions' own
ERROR_TYPE: Final = "error.type"
OPERATION: Final = "gen_ai.operation.name"
TOOL: Final = "gen_ai.tool.name"
DATA_SOURCE: Final = "gen_ai.data_source.id"
QUERY_TEXT: Final = "gen_ai.retrieval.query.text"
METHOD: Final = "mcp.method.name"
PROTOCOL_VERSION: Final = "mcp.protocol.version"
REQUEST_ID: Final = "jsonrpc.request.id"
RPC_STATUS: Final = "rpc.response.status_code"
TRANSPORT: Final = "network.transport"
SERVER_ADDRESS: Final = "server.address"
SERVER_PORT: Final = "server.port"

EXECUTE_TOOL: Final = "execute_tool"
RETRIEVAL: Final = "retrieval"
TOOL_ERROR: Final = "tool_error"
OTHER: Final = "_OTHER"

SERVER_DURATION: Final = "mcp.server.operation.duration"
CLIENT_DURATION: Final = "mcp.client.operation.duration"
CONVENTIONAL_BOUNDS: Final = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0)
"""Of both MCP histograms, in seconds."""

# ours
STATUS: Final = "search_router.status"
INTENT: Final = "search_router.intent"
KIND: Final = "search_router.operation"
EMPTY_REASON: Final = "search_router.empty_reason"
ABSTAINED: Final = "search_router.abstained"
EVIDENCE: Final = "search_router.evidence"
ASKED: Final = "search_router.experts.asked"
FAILED: Final = "search_router.experts.failed"
RECEIPT: Final = "search_router.receipt.id"
CONFIG: Final = "search_router.config.hash"
STAGE: Final = "search_router.stage"
STAGE_ACTIVE: Final = "search_router.stage.active"
STAGE_IN: Final = "search_router.stage.in"
STAGE_OUT: Final = "search_router.stage.out"
EXPERT: Final = "search_router.expert"
RESULTS: Final = "search_router.results"
BUDGET_MS: Final = "search_router.budget_ms"
OUTCOME: Final = "search_router.outcome"
SUB_QUERY: Final = "search_router.sub_query"
REASON: Final = "search_router.reason"

REQUESTS: Final = "search_router.requests"
REQUEST_DURATION: Final = "search_router.request.duration"
EXPERT_DURATION: Final = "search_router.expert.duration"
EXPERT_FAILURES: Final = "search_router.expert.failures"
RECEIPTS: Final = "search_router.receipts"
CACHE_HITS: Final = "search_router.cache.hits"
BOUNDS: Final = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0)
"""Of our histograms, in seconds: finer than the conventional ones at the fast end, where embedded experts answer."""

NO_INTENT: Final = "none"
"""Of requests that were refused before they were classified."""
