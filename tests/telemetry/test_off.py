"""Switched off, telemetry costs next to nothing: no import, and less than 10 µs of a request."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import pytest

from search_router.observing import NO_HEADERS, NOBODY, current, trace_headers
from search_router.router.fanout import Reply
from search_router.router.stages import StageLog
from search_router.schema import ExpertCall, ExpertStatus, QueryForm, StageReport, SubQuery
from search_router.server import create_server
from tests.fake_router import FakeRouter
from tests.scripted_router import FILES, environ, scripted_router, write_files
from tests.server_child import child_env

ASK = """
import anyio, sys, search_router
async def main():
    async with search_router.open_router(roots=["."]) as router:
        answer = await router.search({"question": "where does it start"})
        assert answer.receipt is not None and router.observer.scrape is None
anyio.run(main)
print(*sorted(n for n in sys.modules if n.startswith(('opentelemetry', 'prometheus_client', 'search_router.telemetry.'))))
"""
SERVE = """
import sys, search_router.server, search_router.mcp_listener
heavy = ('opentelemetry.sdk', 'opentelemetry.exporter', 'prometheus_client', 'search_router.telemetry.')
print(*sorted(n for n in sys.modules if n.startswith(heavy)))
"""
STAGES, EXPERTS = 10, 6
MOST_MICROSECONDS = 10.0


def modules_of(script: str, folder: Path) -> list[str]:
    done = subprocess.run(
        [sys.executable, "-c", script],
        cwd=folder,
        env=child_env(**environ(folder)),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout.split()


@pytest.mark.behaviour("telemetry-off-costs-nothing")
def test_a_question_imports_nothing_of_it(tmp_path: Path) -> None:
    write_files(tmp_path, FILES)
    assert modules_of(ASK, tmp_path) == ["search_router.telemetry.opening"]


def test_the_server_imports_neither_sdk_nor_exporters(tmp_path: Path) -> None:
    assert modules_of(SERVE, tmp_path) == []


def test_the_servers_messages_have_no_telemetry_middleware() -> None:
    names = [type(each).__module__ for each in create_server(FakeRouter()).middleware]
    assert not [name for name in names if "otel" in name or "watched" in name]


@pytest.mark.behaviour("telemetry-off-costs-nothing")
def test_all_joints_of_one_request_cost_less_than_ten_microseconds() -> None:
    call = ExpertCall("grep", SubQuery(QueryForm.TEXT, (), "q"), (), None, None, 10, 1000, 500, "test")
    reply = Reply(call, ExpertStatus.OK, 0, "")
    report = StageReport(stage="plan", active=True, reason="ran", in_=0, out=0, ms=0)

    def joints() -> None:
        with NOBODY.request("search", {}) as request:
            for _ in range(STAGES):
                with current().stage("plan") as stage:
                    stage.tell(report)
            for _ in range(EXPERTS):
                with current().expert(call) as expert:
                    expert.tell(reply)
            request.tell(reply)  # pyright: ignore[reportArgumentType] - nobody looks at it, which is the test

    best = min(cpu_of(joints) for _ in range(20))
    assert best < MOST_MICROSECONDS, f"{best:.2f} µs"


def cpu_of(work: object, repeats: int = 500) -> float:
    """Microseconds of processor time for one call."""
    assert callable(work)
    started = time.process_time_ns()
    for _ in range(repeats):
        work()
    return (time.process_time_ns() - started) / repeats / 1000


@pytest.mark.anyio
async def test_without_an_observer_no_trace_is_sent_along(tmp_path: Path) -> None:
    async with scripted_router(tmp_path, {"a": [{"when": "*", "hits": []}]}) as router:
        assert router.observer is NOBODY
        await router.search({"question": "where does it start"})
    assert trace_headers() is NO_HEADERS
    with StageLog().run("plan"):
        assert current() is NOBODY
