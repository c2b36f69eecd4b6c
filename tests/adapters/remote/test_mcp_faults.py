"""Everything that a server can do wrong, over each transport: the class that it gets, and that the next call works."""

from __future__ import annotations

import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest

from search_router.errors import ExpertError, FailureClass
from tests.adapters.remote.desk import SERVER, call_for, config_of, expert_of, http_server, stdio_config

pytestmark = [pytest.mark.anyio, pytest.mark.network]

REJECTED, PROTOCOL, TIMEOUT, CRASHED = (
    FailureClass.REJECTED,
    FailureClass.PROTOCOL_ERROR,
    FailureClass.TIMEOUT,
    FailureClass.CRASHED,
)
FAULTS = {
    "truncated": PROTOCOL,
    "wrong-id": PROTOCOL,
    "null-result-id": PROTOCOL,
    "surrogate": PROTOCOL,
    "nan": PROTOCOL,
    "prose": PROTOCOL,
    "empty-result": PROTOCOL,
    "no-content": PROTOCOL,
    "is-error": REJECTED,
    "rpc-error": REJECTED,
    "null-id": PROTOCOL,
    "never": TIMEOUT,
    "die": CRASHED,
}
SHORT = {"never": 400, "null-id": 400, "null-result-id": 400}
"""Budgets of faults that can only be told at the end of the time."""


@contextmanager
def config_on(transport: str, start: str = "none", **more: Any) -> Generator[Any]:
    if transport == "stdio":
        yield stdio_config(start, **more)
        return
    with http_server("sse" if transport == "sse" else "http", "events" if transport == "events" else start) as url:
        yield config_of("mcp", transport="sse" if transport == "sse" else "http", url=url, **more)


@pytest.mark.parametrize("transport", ["stdio", "http", "events", "sse"])
async def test_each_fault_has_its_class_and_the_next_call_works(tmp_path: Path, transport: str) -> None:
    with config_on(transport) as config:
        async with expert_of(config) as expert:
            for fault, expected in FAULTS.items():
                if fault == "die":
                    continue
                with pytest.raises(ExpertError) as caught:
                    await expert.search(call_for(tmp_path, f"fault={fault}", budget_ms=SHORT.get(fault, 5000)))
                if transport in ("http", "events") and fault == "null-id":
                    assert caught.value.failure is REJECTED, fault  # the only answer in its response, so it is about this call
                else:
                    assert caught.value.failure is expected, (fault, str(caught.value))
                good = await expert.search(call_for(tmp_path))
                assert [h.path for h in good.hits] == ["src/app.py", "notes.txt"]
            with pytest.raises(ExpertError) as caught:
                await expert.search(call_for(tmp_path, "fault=die"))
            assert caught.value.failure is CRASHED


@pytest.mark.parametrize("transport", ["stdio", "sse"])
async def test_noise_beside_messages_is_counted_and_harmless(tmp_path: Path, transport: str) -> None:
    with config_on(transport) as config:
        async with expert_of(config) as expert:
            result = await expert.search(call_for(tmp_path, "fault=junk"))
            assert len(result.hits) == 2
            again = await expert.search(call_for(tmp_path))
            assert again.notes == ("its server printed 4 lines that are no messages",)


@pytest.mark.parametrize("transport", ["stdio", "http", "events", "sse"])
async def test_bytes_that_are_not_utf_8_are_replaced(tmp_path: Path, transport: str) -> None:
    with config_on(transport) as config:
        async with expert_of(config) as expert:
            result = await expert.search(call_for(tmp_path, "fault=invalid-utf8"))
            assert [h.path for h in result.hits] == ["src/app.py", "n\ufffdtes.txt"]


@pytest.mark.parametrize(
    "transport", ["stdio", "http", pytest.param("events", marks=pytest.mark.slow), pytest.param("sse", marks=pytest.mark.slow)]
)
async def test_fifty_megabytes_are_cut_at_the_cap_and_what_came_before_is_used(tmp_path: Path, transport: str) -> None:
    with config_on(transport, max_bytes=100_000) as config:
        async with expert_of(config) as expert:
            result = await expert.search(call_for(tmp_path, "fault=huge", budget_ms=60_000, limit=50))
            assert len(result.hits) == 50
            assert result.bytes_cut > 45_000_000
            assert result.partial == f"its answer was cut by {result.bytes_cut} bytes"


@pytest.mark.parametrize(
    ("fault", "expected"),
    [
        ("status-401", FailureClass.UNCONFIGURED),
        ("status-404", None),
        ("status-429", FailureClass.BUSY),
        ("status-500", FailureClass.UNAVAILABLE),
        ("status-400", REJECTED),
        ("status-302", FailureClass.UNCONFIGURED),
        ("not-mcp", PROTOCOL),
        ("accepted", PROTOCOL),
    ],
)
async def test_each_status_has_its_class_and_leaks_nothing(tmp_path: Path, fault: str, expected: FailureClass | None) -> None:
    with config_on("http") as config:
        async with expert_of(config) as expert:
            with pytest.raises(ExpertError) as caught:
                await expert.search(call_for(tmp_path, f"fault={fault}"))
            assert caught.value.failure is (expected or PROTOCOL)  # 404 with a session: forgotten, and forgotten again
            assert "abc123secret" not in f"{caught.value} {caught.value.detail}"


async def test_a_forgotten_session_is_opened_anew(tmp_path: Path) -> None:
    with config_on("http") as config:
        async with expert_of(config) as expert:
            await expert.search(call_for(tmp_path))
            with pytest.raises(ExpertError):  # it forgets all sessions, and the new one for the same question too
                await expert.search(call_for(tmp_path, "fault=lost"))
            assert len((await expert.search(call_for(tmp_path))).hits) == 2


@pytest.mark.parametrize(
    ("start", "expected", "words"),
    [
        ("die-start", CRASHED, "exited with code 3: cannot open the database"),
        ("old-version", PROTOCOL, "speaks MCP 1999-01-01"),
        ("no-version", PROTOCOL, "of no version"),
        ("null-start", PROTOCOL, "an answer without an id"),
        ("refuse-start", FailureClass.UNAVAILABLE, "refused to start a session: no model"),
        ("never-start", TIMEOUT, "still starting"),
    ],
)
async def test_a_start_that_fails_has_its_class_and_its_words(tmp_path: Path, start: str, expected: FailureClass, words: str) -> None:
    async with expert_of(stdio_config(start)) as expert:
        with pytest.raises(ExpertError, match=words) as caught:
            await expert.search(call_for(tmp_path, budget_ms=1500))
        assert caught.value.failure is expected
        assert not any(secret in f"{caught.value} {caught.value.detail}" for secret in ("sk-abcdefgh", "abc123secret"))


async def test_the_last_words_of_a_child_that_dies_are_kept_without_secrets(tmp_path: Path) -> None:
    async with expert_of(stdio_config()) as expert:
        with pytest.raises(ExpertError) as caught:
            await expert.search(call_for(tmp_path, "fault=die"))
        assert caught.value.detail == "The server exited with code 7; standard error: segmentation fault, password: [removed]"


async def test_a_program_that_is_not_there_is_spawn_failed_and_unconfigured_in_health(tmp_path: Path) -> None:
    async with expert_of(config_of("mcp", command=["no-such-program-anywhere"])) as expert:
        with pytest.raises(ExpertError) as caught:
            await expert.search(call_for(tmp_path))
        assert caught.value.failure is FailureClass.SPAWN_FAILED
        health = await expert.health(())
        assert (health.available, health.failure and health.failure.value) == (False, "unconfigured")


async def test_nobody_listening_is_unavailable(tmp_path: Path) -> None:
    with http_server() as url:
        pass
    async with expert_of(config_of("mcp", transport="http", url=url)) as expert:
        with pytest.raises(ExpertError) as caught:
            await expert.search(call_for(tmp_path))
        assert caught.value.failure is FailureClass.UNAVAILABLE


async def test_a_tool_or_mode_that_the_server_does_not_have_is_unavailable(tmp_path: Path) -> None:
    async with expert_of(stdio_config(tool="find")) as expert:
        with pytest.raises(ExpertError, match="no tool 'find'; it has bare, search"):
            await expert.search(call_for(tmp_path))
    async with expert_of(stdio_config(arguments={"question": "{question}", "mode": "deep"})) as expert:
        with pytest.raises(ExpertError, match="mode can only be 'fast', not 'deep'"):
            await expert.search(call_for(tmp_path))


async def test_a_slow_call_holds_up_nobody_else(tmp_path: Path) -> None:
    done: list[str] = []

    async with expert_of(stdio_config()) as expert:
        await expert.search(call_for(tmp_path))

        async def ask(question: str) -> None:
            await expert.search(call_for(tmp_path, question))
            done.append(question)

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(ask, "fault=slow")
            tasks.start_soon(ask, "quick")
    assert done == ["quick", "fault=slow"]


def test_the_fault_server_needs_nothing_but_python() -> None:
    assert SERVER.is_file() and sys.executable
