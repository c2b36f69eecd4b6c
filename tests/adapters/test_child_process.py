"""Children of ours, when whoever waits for one is cancelled while it starts."""

from __future__ import annotations

import asyncio
import os
import signal
from pathlib import Path
from typing import Any

import anyio
import pytest
from anyio.abc import Process

from search_router.adapters.process import open_child, run_command
from search_router.errors import ExpertError, FailureClass


def test_a_task_that_is_cancelled_while_a_child_starts_leaves_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """asyncio itself gave such a start up half-way, reaped the child twice, and said on standard error that it knew no such process."""
    started: list[Process] = []
    whole = asyncio.Event()
    real = anyio.open_process

    async def slow(*argv: Any, **more: Any) -> Process:
        started.append(await real(*argv, **more))
        await asyncio.sleep(0.05)
        whole.set()
        return started[-1]

    monkeypatch.setattr(anyio, "open_process", slow)

    async def cancel_while_it_starts() -> None:
        task = asyncio.create_task(run_command(["sleep", "300"], cwd=tmp_path))
        while not started:
            await asyncio.sleep(0.001)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert whole.is_set(), "the start was given up half-way"
        assert started[0].returncode == -signal.SIGKILL

    asyncio.run(cancel_while_it_starts())


@pytest.mark.anyio
async def test_a_start_that_is_cancelled_and_fails_is_cancelled(tmp_path: Path) -> None:
    with anyio.move_on_after(0) as scope:
        await run_command(["sleep", "300"], cwd=tmp_path)
    assert scope.cancelled_caught
    with pytest.raises(ExpertError) as caught:
        async with open_child([os.fspath(tmp_path / "missing")], cwd=tmp_path):
            pass
    assert caught.value.failure is FailureClass.SPAWN_FAILED
