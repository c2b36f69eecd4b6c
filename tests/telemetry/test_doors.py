"""Telemetry of real servers: metrics over OTLP, the page behind the guards, JSON lines on standard error, dead collectors."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Generator
from pathlib import Path
from typing import Any

import httpx2
import pytest
from prometheus_client.parser import text_string_to_metric_families

from search_router.benchmark.mcp_client import call_message
from tests.scripted_router import EMBEDDED, expert_flags, hit, write_files
from tests.server_child import PRODUCT, Child, child_env, running
from tests.telemetry.collector import collecting

pytestmark = [pytest.mark.heavy, pytest.mark.network]
TOKEN = "correct-horse-battery-staple"
SECRET = "ghp_PlantedSecret0123456789"
QUESTION = f"how does zanzibar start with {SECRET}"
MODERN = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientCapabilities": {},
    "io.modelcontextprotocol/clientInfo": {"name": "raw", "version": "0"},
}
HEADERS = {
    "Content-Type": "application/json",
    "Accept": "application/json, text/event-stream",
    "MCP-Protocol-Version": "2026-07-28",
    "Mcp-Method": "tools/call",
    "Authorization": f"Bearer {TOKEN}",
}
UNREACHABLE = "http://127.0.0.1:9"


def workspace(folder: Path) -> tuple[list[str], dict[str, str]]:
    """Arguments and environment of a router over a few files, with one scripted expert."""
    write_files(folder / "work")
    (folder / "user.toml").touch()
    script = folder / "a.json"
    script.write_text(json.dumps({"answers": [{"when": "*", "hits": [hit()]}]}))
    flags = [*(f"experts.{name}.enabled=false" for name in EMBEDDED), 'gate.default_set=["a"]', *expert_flags("a", script)]
    options = [part for flag in flags for part in ("--set", flag)]
    home = {"SEARCH_ROUTER_HOME": str(folder / "home"), "SEARCH_ROUTER_CONFIG": str(folder / "user.toml")}
    return ["--root", str(folder / "work"), *options], home


def switched_on(*names: str) -> dict[str, str]:
    return {f"SEARCH_ROUTER__TELEMETRY__{name.upper()}": "true" for name in names}


def post(url: str, tool: str, **arguments: Any) -> httpx2.Response:
    params = {"name": tool, "arguments": arguments, "_meta": MODERN}
    body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
    return httpx2.post(url, headers=HEADERS | {"Mcp-Name": tool}, json=body, timeout=20)


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Generator[tuple[str, Child]]:
    """A router with everything on, whose collector is not there."""
    options, home = workspace(tmp_path_factory.mktemp("served"))
    env = home | switched_on("traces", "metrics", "prometheus", "logs")
    env |= {"OTEL_EXPORTER_OTLP_ENDPOINT": UNREACHABLE, "OTEL_BSP_SCHEDULE_DELAY": "50", "SEARCH_ROUTER_TOKEN": TOKEN}
    serve = ["serve", "--transport", "http", "--port", "0", *options]
    with running(*serve, command=PRODUCT, **env) as child:  # pyright: ignore[reportArgumentType] - the environment, by keywords
        yield child.url(), child


def page(url: str, **headers: str) -> httpx2.Response:
    return httpx2.get(url.rsplit("/", 1)[0] + "/metrics", headers={"Authorization": f"Bearer {TOKEN}"} | headers, timeout=20)


def test_the_page_is_what_prometheus_reads_and_counts_this_request(served: tuple[str, Child]) -> None:
    url, _ = served
    assert post(url, "search_knowledge", question=QUESTION, intent="conceptual").status_code == 200
    post(url, "no-such-tool-zanzibar")
    answer = page(url)
    assert answer.headers["content-type"] == "text/plain; version=0.0.4; charset=utf-8"
    families = {family.name: family for family in text_string_to_metric_families(answer.text)}
    (counted,) = [s for s in families["search_router_requests"].samples if s.labels["search_router_status"] == "answered"]
    assert (counted.labels["search_router_intent"], counted.value >= 1) == ("conceptual", True)
    operations = families["mcp_server_operation_duration_seconds"].samples
    assert {"search_knowledge", "_OTHER"} <= {s.labels.get("gen_ai_tool_name") for s in operations}
    assert "zanzibar" not in answer.text
    assert SECRET not in answer.text


def test_the_page_has_the_guards_of_every_other_path(served: tuple[str, Child]) -> None:
    url, _ = served
    assert page(url, Authorization="Bearer wrong").status_code == 401
    assert page(url, Host="evil.example").status_code == 421
    assert page(url, Origin="https://evil.example").status_code == 403
    assert httpx2.post(url.rsplit("/", 1)[0] + "/metrics", headers=HEADERS, timeout=20).status_code == 405


def test_the_log_is_json_lines_without_content(served: tuple[str, Child]) -> None:
    url, child = served
    assert post(url, "search_knowledge", question=QUESTION).status_code == 200
    until = time.monotonic() + 20
    while not any('"event": "request"' in line for line in child.errors):
        child.lines.get(timeout=max(0.1, until - time.monotonic()))
    lines = [line for line in child.errors if line.startswith("{")]
    (first, *_) = [event for line in lines if (event := json.loads(line))["event"] == "request"]
    assert (first["status"], first["operation"], first["level"], first["receipt_written"]) == ("answered", "search", "info", True)
    assert len(first["trace_id"]) == 32
    assert all(word not in line for line in child.errors for word in (SECRET, "zanzibar", "src/app.py"))
    plain = [line for line in child.errors if not line.startswith("{")]
    assert all(line.startswith("search-router: ") for line in plain), plain


def stdio_answers(folder: Path, *questions: str, **env: str) -> tuple[list[Any], float, str]:
    """The answers of a stdio server, how long it took to leave when its input ended, and its standard error."""
    options, home = workspace(folder)
    argv = [*PRODUCT, "serve", *options]
    with subprocess.Popen(
        argv, env=child_env(**home, **env), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as server:
        assert server.stdin is not None
        assert server.stdout is not None
        assert server.stderr is not None
        for number, question in enumerate(questions):
            server.stdin.write(json.dumps(call_message(number, {"question": question})) + "\n")
            server.stdin.flush()
        answers: list[Any] = []
        while len(answers) < len(questions):
            message = json.loads(server.stdout.readline())  # every line is a message: nothing else is on standard output
            answers += [message] if "id" in message else []
        started = time.monotonic()
        server.stdin.close()
        assert server.stdout.read() == ""
        server.wait(20)
        return answers, time.monotonic() - started, server.stderr.read()


def test_spans_and_metrics_arrive_before_a_server_leaves(tmp_path: Path) -> None:
    with collecting() as collector:
        answers, _, errors = stdio_answers(
            tmp_path, QUESTION, **switched_on("traces", "metrics"), OTEL_EXPORTER_OTLP_ENDPOINT=collector.url, OTEL_SERVICE_NAME="mine"
        )
        assert answers[0]["result"]["isError"] is False
        span = collector.find("tools/call search_knowledge")
        assert (span.service, span.attributes["network.transport"]) == ("mine", "pipe")
        wanted = {"search_router.requests", "search_router.request.duration", "search_router.expert.duration", "search_router.receipts"}
        collector.wait(lambda: collector.metrics >= {*wanted, "mcp.server.operation.duration"})
        assert all(word.encode() not in body for body in collector.raw for word in (SECRET, "zanzibar", "src/app.py"))
        assert "zanzibar" not in errors


@pytest.mark.behaviour("telemetry-delays-nothing")
def test_a_collector_that_never_answers_holds_up_neither_answers_nor_the_end(tmp_path: Path) -> None:
    with collecting(answers=False) as collector:
        started = time.monotonic()
        answers, leaving, _ = stdio_answers(
            tmp_path,
            *["how does it start"] * 30,
            **switched_on("traces", "metrics"),
            OTEL_EXPORTER_OTLP_ENDPOINT=collector.url,
            OTEL_BSP_SCHEDULE_DELAY="1",
            OTEL_BSP_MAX_QUEUE_SIZE="16",
            OTEL_BSP_MAX_EXPORT_BATCH_SIZE="4",
            OTEL_EXPORTER_OTLP_TIMEOUT="120",
        )
        assert len(answers) == 30
        assert collector.raw
        assert leaving < 8, leaving
        assert time.monotonic() - started < 60


def test_a_missing_package_or_a_foreign_protocol_is_said_at_the_start(tmp_path: Path) -> None:
    options, home = workspace(tmp_path)
    env = home | switched_on("traces") | {"OTEL_EXPORTER_OTLP_PROTOCOL": "grpc"}
    done = subprocess.run([*PRODUCT, "serve", *options], env=child_env(**env), capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 5
    assert "OTEL_EXPORTER_OTLP_PROTOCOL" in done.stderr
    without = "import sys; sys.modules['prometheus_client'] = None; from search_router.__main__ import main; main()"
    argv = [sys.executable, "-c", without, "serve", *options]
    done = subprocess.run(argv, env=child_env(**home, **switched_on("prometheus")), capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 5
    assert "pip install 'search-router[telemetry]'" in done.stderr
