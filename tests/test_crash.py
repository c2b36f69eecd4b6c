"""What is left after a server process was killed, ended, or had a neighbour: every answer's receipt, and no child process.

Real processes over real repositories; the slow form asks a repository with a long history and kills while everything runs.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
import signal
import sqlite3
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from search_router.benchmark.mcp_client import Answer, BrokenAnswer, McpClient
from search_router.router.enrich.database import FILE_NAME
from tests.real_servers import Home, Server, make_work, serving

pytestmark = pytest.mark.heavy

REQUESTS = 200
CLIENTS = 8
ENDS = (OSError, asyncio.IncompleteReadError, BrokenAnswer)
MIRROR = Path(os.environ.get("SEARCH_ROUTER_LARGE_REPOSITORY", "no-large-repository"))
"""A git directory with a long history, for the slow test; without one it is skipped."""
slow = pytest.mark.slow


@pytest.fixture(scope="module")
def work(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_work(tmp_path_factory.mktemp("work") / "project")


@pytest.fixture(scope="module")
def large_work(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Indexed by worker processes, for some seconds; with a history that a pickaxe needs a while for."""
    return make_work(tmp_path_factory.mktemp("large") / "project", files=300, lines=100, commits=1000)


def question(number: int) -> dict[str, Any]:
    kinds = (
        {"question": f"where is function_{number % 40}_{number % 30} defined"},
        {"question": f"how does function {number} return a value"},
        {"question": "when was needle_of_history introduced", "intent": "history"},
        {"question": "   "},
    )
    return kinds[number % len(kinds)]


async def ask_until(port: int, enough: Callable[[list[Answer]], bool], act: Callable[[], None], total: int = REQUESTS) -> list[Answer]:
    """The answers that came before the connections broke; `act` is done once, when they are enough."""
    answers: list[Answer] = []
    done = False

    async def one(name: int) -> None:
        nonlocal done
        with contextlib.suppress(*ENDS):
            async with McpClient("127.0.0.1", port) as client:
                for number in range(name, total, CLIENTS):
                    answers.append(await client.ask(question(number)))
                    if not done and enough(answers):
                        done = True
                        act()

    async with asyncio.timeout(60):
        await asyncio.gather(*(one(name) for name in range(CLIENTS)))
    return answers


def kill(server: Server) -> dict[int, str]:
    """Kill it as `kill -9` does, and say what children it had."""
    children = server.children()
    server.process.kill()
    server.wait()
    return children


def restarts(home: Home, work: Path, name: str = "function_0_0") -> Answer:
    """The first answer of a new server on the same state, whose flywheel lost at most its last records."""
    if (kept := home.folder / "home" / FILE_NAME).exists():
        database = sqlite3.connect(kept)
        assert database.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        if database.execute("PRAGMA user_version").fetchone() != (0,):  # killed before its first record it has no table
            counted = database.execute("SELECT coalesce(sum(requests + calls), 0) FROM experiments").fetchone()
            assert counted == database.execute("SELECT count(*) FROM tool_benchmark_events").fetchone()
        database.close()
    with serving(home, work, "stdio") as again:
        again.send(1, {"question": f"where is {name} defined"})
        answer = again.hear()
    assert answer is not None and answer.content["status"] == "answered"
    return answer


def test_kill_in_the_middle_of_many_http_requests_loses_no_receipt_and_leaves_no_child(tmp_path: Path, large_work: Path) -> None:
    home = Home(tmp_path)
    children: dict[int, str] = {}
    with serving(home, large_work, "http") as server:
        answers = asyncio.run(
            ask_until(
                server.port(),
                lambda so_far: len(so_far) >= 20 and bool(server.children()),
                lambda: children.update(kill(server)),
            )
        )
        left = server.left_over(children)
    assert children and 20 <= len(answers) < REQUESTS
    assert not left
    home.check([*answers, restarts(home, large_work)])


def test_kill_in_the_middle_of_many_stdio_requests_loses_no_receipt_and_leaves_no_child(tmp_path: Path, large_work: Path) -> None:
    home = Home(tmp_path)
    answers: list[Answer] = []
    children: dict[int, str] = {}
    with serving(home, large_work, "stdio") as server:
        for number in range(REQUESTS):
            server.send(number, question(number))
            if number >= CLIENTS:
                answers += [answer for answer in [server.hear()] if answer is not None]
            if len(answers) >= 20 and (children := server.children()):
                break
        children |= kill(server)
        while (answer := server.hear()) is not None:  # what was in the pipe had left the server too
            answers.append(answer)
        left = server.left_over(children)
    assert children and len(answers) < REQUESTS
    assert not left
    home.check([*answers, restarts(home, large_work)])


@pytest.mark.parametrize("how", ["sigterm", "end of input"])
def test_a_stdio_server_that_is_told_to_end_ends_cleanly_with_its_children(tmp_path: Path, large_work: Path, how: str) -> None:
    home = Home(tmp_path)
    with serving(home, large_work, "stdio") as server:
        server.send(0, question(0))
        first = server.hear()
        assert first is not None
        for number in range(1, 20):
            server.send(number, question(number))
        children = server.children()
        if how == "end of input":
            assert server.process.stdin is not None
            server.process.stdin.close()
        else:
            server.process.send_signal(signal.SIGTERM)
        assert server.wait() == 0, server.said
        answers = [first, *server.hear_rest()]
        assert not server.left_over(children)
        assert not [line for line in server.said if "Traceback" in line or "never awaited" in line]
    home.check(answers)


def test_an_http_server_that_gets_sigterm_ends_cleanly_with_its_children(tmp_path: Path, large_work: Path) -> None:
    home = Home(tmp_path)
    children: dict[int, str] = {}

    def end() -> None:
        children.update(server.children())
        server.process.terminate()

    with serving(home, large_work, "http") as server:
        answers = asyncio.run(ask_until(server.port(), lambda so_far: len(so_far) >= 10, end))
        assert server.wait() == 0, server.said
        assert not server.left_over(children)
        assert not [line for line in server.said if "Traceback" in line or "never awaited" in line]
    home.check(answers)


def test_two_servers_on_one_state_directory_both_answer_and_both_logs_verify(tmp_path: Path, work: Path) -> None:
    home = Home(tmp_path)
    with serving(home, work, "http") as one, serving(home, work, "http") as other:

        async def ask_both() -> list[list[Answer]]:
            ports = [one.port(), other.port()]
            return list(await asyncio.gather(*(ask_until(port, lambda _: False, lambda: None, 24) for port in ports)))

        both = asyncio.run(ask_both())
    assert [len(answers) for answers in both] == [24, 24]
    logs = [{answer.receipt_id.split(":")[0] for answer in answers} for answers in both]
    assert [len(log) for log in logs] == [1, 1] and logs[0] != logs[1]
    home.check([answer for answers in both for answer in answers])


@slow
@pytest.mark.timeout(300)
@pytest.mark.parametrize("transport", ["http", "stdio"])
def test_kill_while_a_pickaxe_and_an_indexing_worker_run_leaves_nothing(tmp_path: Path, transport: str) -> None:
    if not MIRROR.exists():
        pytest.skip("SEARCH_ROUTER_LARGE_REPOSITORY names no repository")
    work = tmp_path / "work"
    subprocess.run(["git", "clone", "--quiet", "--shared", str(MIRROR), str(work)], check=True, timeout=120)
    more = make_work(tmp_path / "more", files=400, lines=300, commits=1)  # so many that worker processes index them
    more.rename(work / "more")
    shutil.rmtree(work / "more" / ".git")
    home = Home(tmp_path)
    # The commits are read first: a pickaxe needs them, and then a fresh index of symbols runs beside it.
    with serving(home, work, "stdio") as server:
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline:
            server.send(0, {"question": "fix error", "intent": "history"})
            answer = server.hear()
            assert answer is not None
            if not any("partial" in expert["reason"] for expert in answer.content["experts"]):
                break
    for index in (tmp_path / "home" / "cache").glob("index-*"):
        index.unlink()
    flags = ("gate.min_prior=0.0", "budget.latency_ms=20000", "experts.history.pickaxe_ms=15000", "experts.history.cap_ms=18000")
    with serving(home, work, transport, *flags) as server:
        slow_ones = [{"question": f"when was no_such_name_{n} introduced", "intent": "history"} for n in range(4)]
        quick_ones = [{"question": f"where is ClientSession{n} defined", "intent": "typed-symbol"} for n in range(16)]
        answers: list[Answer] = []
        seen: dict[int, str] = {}

        def is_all_running() -> bool:
            lines = " ".join(server.children().values())
            return "diff-tree" in lines and "extract_worker" in lines

        if transport == "stdio":
            for number, each in enumerate([*quick_ones, *slow_ones]):
                server.send(number, each)
            deadline = time.monotonic() + 30
            while not is_all_running():
                assert time.monotonic() < deadline, server.children()
            seen = kill(server)
            while (answer := server.hear()) is not None:
                answers.append(answer)
        else:
            answers, seen = asyncio.run(_kill_over_http(server, [*slow_ones, *quick_ones], is_all_running))
        left = server.left_over(seen)
    assert not left
    assert any("diff-tree" in line for line in seen.values()) and any("extract_worker" in line for line in seen.values())
    home.check([*answers, restarts(home, work, "ClientSession")])


async def _kill_over_http(
    server: Server, questions: list[dict[str, Any]], is_all_running: Callable[[], bool]
) -> tuple[list[Answer], dict[int, str]]:
    port, answers = server.port(), list[Answer]()

    async def one(each: dict[str, Any]) -> None:
        with contextlib.suppress(*ENDS):
            async with McpClient("127.0.0.1", port) as client:
                answers.append(await client.ask(each))

    tasks = [asyncio.create_task(one(each)) for each in questions]
    async with asyncio.timeout(30):
        while not await asyncio.to_thread(is_all_running):
            pass
    seen = kill(server)
    await asyncio.gather(*tasks)
    return answers, seen
