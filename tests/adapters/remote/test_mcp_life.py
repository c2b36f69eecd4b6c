"""The life of a remote server: one start for many first calls, back-off, a bounded end, and nothing that outlives us."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import anyio
import pytest

from search_router.adapters.remote.mcp import McpAsker
from search_router.adapters.remote.session import Circuit, ServerPool
from search_router.errors import ExpertError, FailureClass
from tests.adapters.remote.desk import SERVER, call_for, config_of, expert_of, project_at, stdio_config

pytestmark = pytest.mark.anyio


def alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def started(pids: Path) -> list[int]:
    return [int(line) for line in pids.read_text().split()] if pids.exists() else []


async def wait_until_gone(pids: list[int], seconds: float = 10) -> None:
    with anyio.fail_after(seconds):
        while any(alive(pid) for pid in pids):
            await anyio.sleep(0.02)


def children_of(pid: int) -> list[int]:
    found = subprocess.run(["ps", "-o", "pid=", "--ppid", str(pid)], capture_output=True, text=True, check=False).stdout
    return [int(line) for line in found.split()]


async def test_fifty_first_calls_at_once_start_one_server(tmp_path: Path) -> None:
    pids = tmp_path / "pids"
    async with expert_of(stdio_config(env={"FAULT_PIDS": str(pids)}, max_parallel=64)) as expert:
        found: list[int] = []

        async def ask() -> None:
            found.append(len((await expert.search(call_for(tmp_path, budget_ms=20_000))).hits))

        async with anyio.create_task_group() as tasks:
            for _ in range(50):
                tasks.start_soon(ask)
        assert found == [2] * 50
        assert len(started(pids)) == 1
    assert not any(alive(pid) for pid in started(pids))


async def test_a_server_a_project_where_its_command_names_the_root(tmp_path: Path) -> None:
    pids = tmp_path / "pids"
    roots = [tmp_path / name for name in "ab"]
    for root in roots:
        root.mkdir()
    config = stdio_config(env={"FAULT_PIDS": str(pids)}, cwd="{root}", max_servers=1)
    async with expert_of(config) as expert:
        for root in (*roots, roots[0]):
            await expert.search(call_for(root))
        assert len(started(pids)) == 3  # one place only: the older one makes room
        assert [alive(pid) for pid in started(pids)] == [False, False, True]
        both = await expert.search(call_for(tmp_path, projects=tuple(project_at(root, root.name) for root in roots)))
        assert {hit.project for hit in both.hits} <= {"a", "b"}


async def test_nothing_runs_before_the_first_question(tmp_path: Path) -> None:
    pids = tmp_path / "pids"
    async with expert_of(stdio_config(env={"FAULT_PIDS": str(pids)})) as expert:
        assert (await expert.health(())).reason == "is started by the first question"
        assert not pids.exists()
        await expert.search(call_for(tmp_path))
        health = await expert.health(())
        assert (health.available, health.reason, health.version) == (True, "running: faulty", "9.1")


@pytest.mark.parametrize("start", ["stubborn", "grandchild", "stubborn-grandchild"])
@pytest.mark.parametrize("wrapped", [False, True])
async def test_closing_is_bounded_and_leaves_nothing(tmp_path: Path, start: str, wrapped: bool) -> None:
    pids = tmp_path / "pids"
    direct = [sys.executable, "-I", "-S", str(SERVER), "stdio", start]
    # The wrapper waits for its child, as npx and uvx do, instead of becoming it.
    command = ["sh", "-c", '"$@"; exit $?', "sh", *direct] if wrapped else direct
    async with expert_of(config_of("mcp", command=command, env={"FAULT_PIDS": str(pids)})) as expert:
        await expert.search(call_for(tmp_path, budget_ms=20_000))
        (server,) = started(pids)
        everybody = [server, *children_of(server)]
        assert len(everybody) == (2 if "grandchild" in start else 1)
        begun = time.monotonic()
    assert time.monotonic() - begun < 3
    await wait_until_gone(everybody, 2)


async def test_nothing_outlives_us_after_kill_9(tmp_path: Path) -> None:
    pids = tmp_path / "pids"
    code = f"""
import anyio
from pathlib import Path
from tests.adapters.remote.desk import *
async def main():
    command = ["sh", "-c", '"$@"; exit $?', "sh", sys.executable, "-I", "-S", str(SERVER), "stdio", "stubborn-grandchild"]
    async with expert_of(config_of("mcp", command=command, env={{"FAULT_PIDS": {str(pids)!r}}})) as expert:
        await expert.search(call_for(Path({str(tmp_path)!r}), budget_ms=30_000))
        print("ready", flush=True)
        await anyio.sleep(600)
anyio.run(main)
"""
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None and parent.stdout.readline() == "ready\n"
        (server,) = started(pids)
        everybody = [server, *children_of(server)]
        assert len(everybody) == 2
        os.kill(parent.pid, signal.SIGKILL)
    await wait_until_gone(everybody)


async def test_a_server_that_crashes_is_backed_off_from_with_its_reason_and_the_next_try(tmp_path: Path) -> None:
    pids = tmp_path / "pids"
    async with expert_of(stdio_config("die-start", env={"FAULT_PIDS": str(pids)})) as expert:
        said = ""
        for _ in range(5):
            with pytest.raises(ExpertError) as caught:
                await expert.search(call_for(tmp_path))
            assert caught.value.failure is FailureClass.CRASHED
            said = str(caught.value)
        assert "Not tried again for" in said
        assert len(started(pids)) == 1
        health = await expert.health(())
        assert (health.available, health.failure and health.failure.value) == (False, "crashed")
        assert "Next try in" in health.reason and 0 < float(health.details["next_try_in_s"]) <= 1


async def test_a_caller_that_leaves_does_not_stop_the_start_for_the_others(tmp_path: Path) -> None:
    pids = tmp_path / "pids"
    async with expert_of(stdio_config(env={"FAULT_PIDS": str(pids)})) as expert:
        with anyio.move_on_after(0.01):
            await expert.search(call_for(tmp_path))
        assert len((await expert.search(call_for(tmp_path, budget_ms=20_000))).hits) == 2
        assert len(started(pids)) == 1


async def test_a_cancelled_call_leaves_the_server_usable_and_its_late_answer_is_dropped(tmp_path: Path) -> None:
    async with expert_of(stdio_config()) as expert:
        await expert.search(call_for(tmp_path))
        for _ in range(3):
            with anyio.move_on_after(0.05):
                await expert.search(call_for(tmp_path, "fault=slow"))
            assert len((await expert.search(call_for(tmp_path))).hits) == 2


async def test_three_silent_calls_replace_the_server(tmp_path: Path) -> None:
    asker = McpAsker(stdio_config(), ServerPool())
    await asker.ask({"question": "warm"}, project_at(tmp_path), 20)
    for _ in range(3):
        with pytest.raises(ExpertError):
            await asker.ask({"question": "fault=never"}, project_at(tmp_path), 0.1)
    (session,) = asker.sessions
    assert session.circuit.openings == 1
    assert session.connected is None
    await asker.aclose()


async def test_an_error_of_the_tool_never_condemns_the_server(tmp_path: Path) -> None:
    async with expert_of(stdio_config()) as expert:
        for _ in range(8):
            with pytest.raises(ExpertError) as caught:
                await expert.search(call_for(tmp_path, "fault=is-error"))
            assert caught.value.failure is FailureClass.REJECTED
            assert "hunter22" not in str(caught.value)
        assert (await expert.health(())).available
        assert len((await expert.search(call_for(tmp_path))).hits) == 2


async def test_only_named_variables_reach_the_child(tmp_path: Path) -> None:
    os.environ |= {"REMOTE_TEST_WANTED": "1", "REMOTE_TEST_SECRET": "2", "SEARCH_ROUTER_TOKEN_OF_TEST": "3"}
    try:
        config = stdio_config(pass_env=["REMOTE_TEST_WANTED"], answer={"form": "json", "items": "env", "fields": {"path": ""}})
        async with expert_of(config) as expert:
            names = {hit.path for hit in (await expert.search(call_for(tmp_path, limit=1000))).hits}
        assert "REMOTE_TEST_WANTED" in names and "PATH" in names
        assert not names & {"REMOTE_TEST_SECRET", "SEARCH_ROUTER_TOKEN_OF_TEST"}
    finally:
        for name in ("REMOTE_TEST_WANTED", "REMOTE_TEST_SECRET", "SEARCH_ROUTER_TOKEN_OF_TEST"):
            del os.environ[name]


async def test_a_missing_variable_is_unconfigured_and_named(tmp_path: Path) -> None:
    async with expert_of(stdio_config(requires_env=["REMOTE_TEST_NOT_SET"])) as expert:
        with pytest.raises(ExpertError, match="REMOTE_TEST_NOT_SET") as caught:
            await expert.search(call_for(tmp_path))
        assert caught.value.failure is FailureClass.UNCONFIGURED
        assert not (await expert.health(())).available


async def test_more_calls_than_places_wait_and_then_are_busy(tmp_path: Path) -> None:
    async with expert_of(stdio_config(max_parallel=1)) as expert:
        await expert.search(call_for(tmp_path))
        classes: dict[int, FailureClass] = {}

        async def ask(budget_ms: int) -> None:
            try:
                await expert.search(call_for(tmp_path, "fault=never", budget_ms=budget_ms))
            except ExpertError as error:
                classes[budget_ms] = error.failure

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(ask, 1500)  # has the place, and more time than the one that waits for it
            await anyio.sleep(0)
            tasks.start_soon(ask, 300)
        assert classes == {300: FailureClass.BUSY, 1500: FailureClass.TIMEOUT}


def test_the_back_off_doubles_and_is_bounded() -> None:
    now = 0.0
    circuit = Circuit(lambda: now)
    error = ExpertError(FailureClass.CRASHED, "It fell over.")
    waits: list[float] = []
    for _ in range(12):
        circuit.open(error)
        waits.append(circuit.next_try_in)
        now = circuit.until
        circuit.check()
    assert waits[:4] == [1, 2, 4, 8] and waits[-1] == 300
    circuit.close()
    circuit.open(error)
    assert circuit.next_try_in == 1
