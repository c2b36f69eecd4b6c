"""One trace from a client through the router to another system's server: three real processes, one collector."""

from __future__ import annotations

import socket
import subprocess
import sys
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest

from tests.adapters.remote.desk import COMMON
from tests.adapters.remote.test_remote_router import INTENTS, toml
from tests.scripted_router import EMBEDDED, write_files
from tests.server_child import PRODUCT, ROOT, child_env, running
from tests.telemetry.collector import Collector, SeenSpan, collecting

pytestmark = pytest.mark.network
QUESTION = "where does the application start"
SERVER, CLIENT = 2, 3


@pytest.fixture
def collector() -> Generator[Collector]:
    with collecting() as found:
        yield found


def configure(folder: Path, block: dict[str, Any]) -> dict[str, str]:
    """The environment of a router whose one expert is the traced server."""
    write_files(folder / "work")
    whole = {
        **COMMON,
        "kind": "mcp",
        "intents": INTENTS,
        "tool": "search",
        "arguments": {"question": "{question}"},
        "cap_ms": 20_000,
        **block,
    }
    lines = [f"experts.other = {toml(whole)}", 'gate.default_set = ["other"]', "budget.latency_ms = 20000", "telemetry.traces = true"]
    lines += [f"experts.{name}.enabled = false" for name in EMBEDDED]
    lines += [f"priors.{intent}.other = 0.5" for intent in (*INTENTS, "unknown")]
    (folder / "user.toml").write_text("\n".join(lines) + "\n")
    return {"SEARCH_ROUTER_HOME": str(folder / "home"), "SEARCH_ROUTER_CONFIG": str(folder / "user.toml")}


def exporting(collector: Collector, service: str) -> dict[str, str]:
    return {"OTEL_EXPORTER_OTLP_ENDPOINT": collector.url, "OTEL_SERVICE_NAME": service, "OTEL_BSP_SCHEDULE_DELAY": "50"}


def ask(collector: Collector, *target: str, **env: str) -> None:
    argv = [sys.executable, "-m", "tests.telemetry.traced_client", *target]
    done = subprocess.run(argv, cwd=ROOT, env=child_env(**env), capture_output=True, text=True, timeout=90, check=False)
    assert done.returncode == 0, done.stderr[-3000:]


def check_one_trace(collector: Collector) -> tuple[SeenSpan, SeenSpan]:
    """Each span hangs on the one that it should; what the router and the other system said of the call."""
    turn = collector.find("the agent's turn")
    sent = collector.find("MCP send tools/call search_knowledge")
    served = collector.find("tools/call search_knowledge")
    request = collector.find("retrieval")
    fanout = collector.find("stage fanout")
    expert = collector.find("retrieval other")
    call = collector.find("tools/call search", "search-router")
    remote = collector.find("tools/call search", "other")
    chain = [turn, sent, served, request, fanout, expert, call, remote]
    assert [span.parent_id for span in chain[1:]] == [span.span_id for span in chain[:-1]]
    assert {span.trace_id for span in chain} == {turn.trace_id}
    assert (served.kind, call.kind) == (SERVER, CLIENT)
    assert {s.service for s in (served, request, fanout, expert, call)} == {"search-router"}
    assert served.attributes["mcp.method.name"] == "tools/call"
    assert served.attributes["gen_ai.operation.name"] == "execute_tool"
    assert expert.attributes["gen_ai.data_source.id"] == "other"
    assert (request.attributes["search_router.status"], request.attributes["search_router.intent"]) == ("answered", "conceptual")
    assert not any(span.is_error for span in chain)
    assert all(QUESTION.encode() not in body and b"src/app.py" not in body for body in collector.raw)
    return call, remote


@pytest.mark.slow
def test_over_stdio_on_both_sides(tmp_path: Path, collector: Collector) -> None:
    command = [sys.executable, "-m", "tests.telemetry.traced_server", "stdio"]
    env = {"PYTHONPATH": str(ROOT), **exporting(collector, "other")}
    home = configure(tmp_path, {"command": command, "cwd": str(ROOT), "env": env})
    server = [*PRODUCT, "serve", "--root", str(tmp_path / "work")]
    ask(collector, "--", *server, **home, **(exporting(collector, "") | {"OTEL_SERVICE_NAME": ""}))
    call, _ = check_one_trace(collector)
    assert call.attributes["network.transport"] == "pipe"


def test_over_http_on_both_sides(tmp_path: Path, collector: Collector) -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "tests.telemetry.traced_server"]
    with running("http", str(port), command=command, **exporting(collector, "other")) as other:  # pyright: ignore[reportArgumentType] - the environment, by keywords
        while "running on" not in other.lines.get(timeout=30):
            pass
        home = configure(tmp_path, {"transport": "http", "url": f"http://127.0.0.1:{port}/mcp"})
        router = [*PRODUCT, "serve", "--transport", "http", "--port", "0", "--root", str(tmp_path / "work")]
        env = home | exporting(collector, "search-router")
        with running(command=router, **env) as served:  # pyright: ignore[reportArgumentType] - the environment, by keywords
            ask(collector, served.url(), **exporting(collector, "client"))
            call, _ = check_one_trace(collector)
            assert (call.attributes["server.address"], call.attributes["server.port"]) == ("127.0.0.1", port)
            said = f"headers 00-{call.trace_id}-{call.span_id}-"  # the HTTP header says the same as `_meta`
            assert [span for span in collector.spans if span.name.startswith(said)]
