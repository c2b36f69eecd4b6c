"""What other systems are told of a trace: traceparent and tracestate, of this very call, and only when traces are kept and may be told."""

from __future__ import annotations

import json
import sys
import threading
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from search_router.adapters.remote.expert import RemoteExpert
from search_router.observing import NOBODY, Incoming, Observer
from tests.adapters.remote.desk import call_for, config_of, expert_of
from tests.scripted_router import write_files
from tests.telemetry.seen import Seen

pytestmark = [pytest.mark.anyio, pytest.mark.network]
ECHO = [sys.executable, "-I", "-S", str(Path(__file__).parent / "echo_server.py")]
PARENT = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
STATE = "rojo=00f067aa0ba902b7,congo=t61rcWkgMzE"


async def ask(expert: RemoteExpert, root: Path, observer: Observer, **meta: str) -> str:
    """The symbol of what a server found."""
    call = call_for(root)
    message = Incoming("tools/call", "search_knowledge", "2025-06-18", 1, "pipe", dict(meta))
    with observer.incoming(message), observer.request("search"), observer.expert(call):
        result = await expert.search(call)
    return result.hits[0].symbol or ""


async def test_an_mcp_call_carries_the_trace_of_its_own_span_in_meta(tmp_path: Path) -> None:
    write_files(tmp_path)
    seen = Seen()
    async with expert_of(config_of(command=ECHO)) as expert:
        first, second = [json.loads(await ask(expert, tmp_path, seen.observer, traceparent=PARENT, tracestate=STATE)) for _ in range(2)]
    spans = [span.context.span_id for span in seen.spans if span.name == "tools/call search" and span.context is not None]
    assert [int(carried["traceparent"].split("-")[2], 16) for carried in (first, second)] == spans
    assert {carried["traceparent"].split("-")[1] for carried in (first, second)} == {PARENT.split("-")[1]}
    assert first["tracestate"] == STATE


async def test_baggage_of_a_client_goes_nowhere(tmp_path: Path) -> None:
    write_files(tmp_path)
    seen = Seen()
    async with expert_of(config_of(command=ECHO)) as expert:
        said = await ask(expert, tmp_path, seen.observer, traceparent=PARENT, baggage="userId=alice,token=hunter2")
    assert set(json.loads(said)) == {"traceparent"}
    assert "alice" not in seen.told()


async def test_nothing_is_carried_without_traces_or_when_it_may_not_be_told(tmp_path: Path) -> None:
    write_files(tmp_path)
    silent = [NOBODY, replace(Seen().observer, propagate=False), replace(Seen().observer, spans=None)]
    async with expert_of(config_of(command=ECHO)) as expert:
        for observer in silent:
            assert await ask(expert, tmp_path, observer, traceparent=PARENT) == "null"


@contextmanager
def http_service() -> Generator[str]:
    """A service that finds the `traceparent` of its request."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            item: dict[str, Any] = {"path": "src/app.py", "start": 4, "end": 6, "symbol": self.headers.get("traceparent", "none")}
            body = json.dumps({"items": [item]}).encode()
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_request(self, code: int | str = "-", size: int | str = "-") -> None:
            """Quiet."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}/search"
    finally:
        server.shutdown()
        server.server_close()
        thread.join(5)


async def test_an_http_service_gets_the_trace_in_its_header(tmp_path: Path) -> None:
    write_files(tmp_path)
    seen = Seen()
    with http_service() as url:
        async with expert_of(config_of("http-json", url=url, method="GET", query={"q": "{question}"})) as expert:
            said = await ask(expert, tmp_path, seen.observer, traceparent=PARENT)
            assert await ask(expert, tmp_path, NOBODY) == "none"
    context = seen.named("retrieval faulty").context
    assert context is not None
    assert said.split("-")[1:3] == [PARENT.split("-")[1], f"{context.span_id:016x}"]
