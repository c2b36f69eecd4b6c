"""What is told of a request: spans in one tree, numbers by class, and nothing of what was asked or found."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Any

import anyio
import pytest
from opentelemetry.trace import StatusCode
from prometheus_client.parser import text_string_to_metric_families

from search_router.errors import ReceiptError
from search_router.observing import Incoming, RemoteCall, trace_headers
from search_router.router.service import Router
from search_router.schema import Status
from tests.scripted_router import hit, scripted_router
from tests.telemetry.seen import Seen

pytestmark = pytest.mark.anyio
SECRETS = ("ghp_PlantedSecret0123456789", "sk-planted-0123456789abcdef", "hunter2hunter2")
QUESTION = f"where does zanzibar start with password={SECRETS[2]} and {SECRETS[0]}"
PARENT = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
OTHER_PARENT = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
SCRIPTS: dict[str, list[dict[str, Any]]] = {
    "finds": [{"when": "*", "hits": [hit()]}],
    "fails": [{"when": "*", "fault": "crashed", "message": f"token={SECRETS[1]} in /home/zanzibar/secret.txt"}],
}


async def watched(folder: Path, seen: Seen) -> Router:
    async with scripted_router(folder, SCRIPTS) as router:
        router.observer = seen.observer
        await router.search({"question": QUESTION, "intent": "conceptual"})
        return router


def samples(seen: Seen) -> dict[str, list[tuple[dict[str, str], float]]]:
    found: dict[str, list[tuple[dict[str, str], float]]] = {}
    for family in text_string_to_metric_families(seen.page):
        for sample in family.samples:
            found.setdefault(sample.name, []).append((sample.labels, sample.value))
    return found


async def test_a_request_is_one_tree_of_stages_and_experts(tmp_path: Path) -> None:
    seen = Seen()
    await watched(tmp_path, seen)
    request, fanout = seen.named("retrieval"), seen.named("stage fanout")
    names = {span.name for span in seen.spans}
    assert names >= {f"stage {n}" for n in ("request", "classify", "plan", "fanout", "identify", "fuse", "shape")}
    assert names >= {"retrieval finds", "retrieval fails"}
    for span in seen.spans:
        parent = span.parent.span_id if span.parent is not None else None
        wanted = None if span is request else (fanout if span.name.startswith("retrieval ") else request).context
        assert parent == (wanted.span_id if wanted is not None else None), span.name
    assert seen.attributes("retrieval")["search_router.status"] == "answered"
    assert seen.attributes("retrieval")["search_router.experts.failed"] == 1
    assert seen.attributes("retrieval fails")["error.type"] == "crashed"
    assert seen.named("retrieval fails").status.status_code is StatusCode.ERROR


@pytest.mark.behaviour("telemetry-tells-no-content")
async def test_nothing_of_the_question_the_answer_or_an_error_is_told(tmp_path: Path) -> None:
    seen = Seen()
    await watched(tmp_path, seen)
    told = seen.told()
    for word in (*SECRETS, "zanzibar", "src/app.py", "secret.txt", "def start", str(tmp_path)):
        assert word not in told, word


async def test_content_is_told_when_it_is_wanted_and_secrets_never(tmp_path: Path) -> None:
    seen = Seen(content=True)
    await watched(tmp_path, seen)
    assert "zanzibar" in seen.attributes("retrieval")["gen_ai.retrieval.query.text"]
    assert "zanzibar" in seen.attributes("retrieval finds")["search_router.sub_query"]
    assert "crashed" in seen.told()
    for word in SECRETS:
        assert word not in seen.told()
    assert "zanzibar" not in seen.page


async def test_requests_experts_failures_and_receipts_are_counted_by_class(tmp_path: Path) -> None:
    seen = Seen()
    async with scripted_router(tmp_path, SCRIPTS) as router:
        router.observer = seen.observer
        answer = await router.search({"question": "how does the application start", "intent": "conceptual"})
        await router.search({"question": 7})
        await router.fetch({"ids": [answer.evidence[0].id]})
    found = samples(seen)
    requests = {
        (r["search_router_operation"], r["search_router_status"], r["search_router_intent"]): n
        for r, n in found["search_router_requests_total"]
    }
    assert requests == {("search", "answered", "conceptual"): 1, ("search", "rejected", "none"): 1, ("fetch", "answered", "none"): 1}
    (failure,) = found["search_router_expert_failures_total"]
    assert failure == ({"search_router_expert": "fails", "error_type": "crashed"}, 1)
    assert {r["search_router_outcome"] for r, _ in found["search_router_receipts_total"]} == {"written"}
    assert sum(n for _, n in found["search_router_expert_duration_seconds_count"]) == 2
    assert sum(n for _, n in found["search_router_request_duration_seconds_count"]) == 3
    assert found["target_info"][0][0]["service_name"] == "test"


async def test_a_receipt_that_cannot_be_written_is_counted(tmp_path: Path) -> None:
    seen = Seen()
    async with scripted_router(tmp_path, SCRIPTS, flags=["receipts.max_wait_ms=300"]) as router:
        router.observer = seen.observer
        await router.search({"question": QUESTION})
        database = next(p for p in (tmp_path / "home" / "receipts").iterdir() if p.is_file() and p.read_bytes().startswith(b"SQLite"))
        with sqlite3.connect(database, isolation_level=None) as other:
            other.execute("BEGIN EXCLUSIVE")
            with pytest.raises(ReceiptError):
                await router.search({"question": QUESTION})
            other.execute("ROLLBACK")
        other.close()
    outcomes = {r["search_router_outcome"]: n for r, n in samples(seen)["search_router_receipts_total"]}
    assert outcomes == {"written": 1, "failed": 1}


async def test_a_cancelled_request_is_told_as_cancelled(tmp_path: Path) -> None:
    seen = Seen()
    slow = {"slow": [{"when": "*", "delay_ms": 30_000, "hits": [hit()]}]}
    async with scripted_router(tmp_path, slow, flags=["budget.latency_ms=60000"], cap_ms=60_000) as router:
        router.observer = seen.observer
        with anyio.move_on_after(0.5):
            await router.search({"question": "how does the application start"})
    assert seen.attributes("retrieval")["search_router.status"] == Status.CANCELLED.value
    assert seen.attributes("retrieval slow")["error.type"] == "cancelled"


async def test_the_number_of_series_does_not_grow_with_what_clients_send(tmp_path: Path) -> None:
    seen = Seen()
    async with scripted_router(tmp_path, SCRIPTS) as router:
        router.observer = seen.observer
        await router.search({"question": "first alpha", "intent": "conceptual"})
        before = seen.page.count("\n")
        for word in ("beta", "gamma", "delta"):
            await router.search({"question": f"other {word}", "intent": "conceptual", "scope": {"language": word}, "limit": 3})
        await router.search({"question": "x", "intent": "made-up"})
    grown = [line for line in seen.page.splitlines() if any(w in line for w in ("alpha", "beta", "made-up"))]
    assert grown == []
    assert seen.page.count("\n") < before * 3


def incoming(meta: dict[str, object], headers: dict[str, str]) -> Incoming:
    return Incoming("tools/call", "search_knowledge", "2026-07-28", 1, "tcp", meta, headers)


@pytest.mark.parametrize(
    ("meta", "headers", "parent", "links"),
    [
        ({"traceparent": PARENT}, {}, PARENT, 0),
        ({}, {"traceparent": PARENT}, PARENT, 0),
        ({"traceparent": PARENT}, {"traceparent": OTHER_PARENT}, PARENT, 1),
        ({"traceparent": PARENT}, {"traceparent": PARENT}, PARENT, 0),
        ({"traceparent": "00-nonsense"}, {"traceparent": PARENT}, PARENT, 0),
        ({"traceparent": ["a", "list"]}, {}, None, 0),
        ({"traceparent": PARENT + "x" * 9000}, {}, None, 0),
        ({"traceparent": f"00-{'0' * 32}-{'0' * 16}-01"}, {}, None, 0),
        ({"traceparent": f"ff-{PARENT[3:]}"}, {}, None, 0),
    ],
)
async def test_a_clients_trace_goes_on_when_it_is_a_valid_one(meta: Any, headers: Any, parent: str | None, links: int) -> None:
    seen = Seen()
    with seen.observer.incoming(incoming(meta, headers)):
        pass
    (span,) = seen.spans
    assert len(span.links) == links
    if parent is None:
        assert span.parent is None
    else:
        assert span.parent is not None
        assert span.context is not None
        assert (f"{span.context.trace_id:032x}", f"{span.parent.span_id:016x}") == tuple(parent.split("-")[1:3])


async def test_an_unsampled_trace_is_not_recorded_and_passed_on_as_unsampled() -> None:
    seen = Seen()
    with seen.observer.incoming(incoming({"traceparent": PARENT[:-1] + "0"}, {})), seen.observer.remote(RemoteCall("search", "stdio")):
        assert trace_headers()["traceparent"].split("-")[1] == PARENT.split("-")[1]
        assert int(trace_headers()["traceparent"][-2:], 16) & 1 == 0
    assert seen.spans == ()


async def test_a_remote_call_names_the_server_and_none_of_its_urls_secrets() -> None:
    seen = Seen()
    call = RemoteCall("search", "http", f"https://me:{SECRETS[2]}@mcp.example/{SECRETS[0]}?key={SECRETS[1]}", "2025-06-18")
    with seen.observer.remote(call) as watch:
        watch.tell("-32602")
    assert seen.attributes("tools/call search") == {
        "mcp.method.name": "tools/call",
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": "search",
        "network.transport": "tcp",
        "server.address": "mcp.example",
        "server.port": 443,
        "mcp.protocol.version": "2025-06-18",
        "error.type": "-32602",
        "rpc.response.status_code": "-32602",
    }
    assert trace_headers() == {}
    for word in SECRETS:
        assert word not in seen.told()


async def test_a_foreign_servers_own_error_numbers_are_one_class_in_metrics() -> None:
    seen = Seen()
    for number in (-32602, *range(1000, 1100)):
        with seen.observer.remote(RemoteCall("search", "stdio")) as watch:
            watch.tell(str(number))
    classes = {labels["error_type"] for labels, _ in samples(seen)["mcp_client_operation_duration_seconds_count"]}
    assert classes == {"-32602", "_OTHER"}
    assert [str((span.attributes or {})["error.type"]) for span in seen.spans[:2]] == ["-32602", "1000"]


@pytest.mark.parametrize("url", ["http://host:99999/mcp", "http://[::1/mcp", "nonsense", ""])
async def test_a_url_that_is_none_fails_nothing(url: str) -> None:
    seen = Seen()
    with seen.observer.remote(RemoteCall("search", "http", url)):
        pass
    assert "server.port" not in seen.attributes("tools/call search")
