"""Extraction in child processes: complete, or the files that were lost are named."""

from __future__ import annotations

import contextlib
import os
import signal
from pathlib import Path

import anyio
import pytest

from search_router.adapters.local.extract_pool import MAX_DEATHS, ExtractPool, WantedFile
from search_router.adapters.local.extract_worker import ReadSyntax, read_syntax
from search_router.adapters.local.left_out import LeftOut

pytestmark = pytest.mark.anyio
MAX = 1 << 20


def children() -> list[int]:
    """Extraction workers that this process has started and that are running."""
    found: list[int] = []
    for entry in Path("/proc").iterdir():
        try:
            command = (entry / "cmdline").read_bytes() if entry.name.isdigit() else b""
            parent = int((entry / "stat").read_text().rpartition(")")[2].split()[1]) if b"extract_worker" in command else 0
        except (OSError, ValueError):
            continue
        if parent == os.getpid():
            found.append(int(entry.name))
    return found


def make_files(root: Path, count: int) -> list[WantedFile]:
    for number in range(count):
        (root / f"m{number:03}.py").write_text(f"def f{number}(): g()\n")
    return [WantedFile(f"m{number:03}.py", "python") for number in range(count)]


async def test_children_give_what_this_process_would(tmp_path: Path) -> None:
    wanted = make_files(tmp_path, 60)
    (tmp_path / "bad\udcff.py").write_text("x = 1\n")
    (tmp_path / "zero.py").write_bytes(b"a\0b")
    wanted += [WantedFile("bad\udcff.py", "python"), WantedFile("zero.py", "python"), WantedFile("absent.py", "python")]
    got: dict[str, ReadSyntax | LeftOut] = {}

    async def deliver(outcome: ReadSyntax | LeftOut) -> None:
        got[outcome.path] = outcome

    assert await ExtractPool(tmp_path, MAX, deliver).run(wanted, workers=2) == ()
    assert got == {each.path: read_syntax(tmp_path, each.path, each.language, max_bytes=MAX) for each in wanted}
    assert got["zero.py"] == LeftOut("zero.py", "binary") and got["absent.py"] == LeftOut("absent.py", "gone")
    assert children() == []


async def test_a_killed_child_costs_one_file_and_it_is_named(tmp_path: Path) -> None:
    wanted = make_files(tmp_path, 60)
    got: list[str] = []

    async def deliver(outcome: ReadSyntax | LeftOut) -> None:
        got.append(outcome.path)
        if len(got) == 5:
            for pid in children():
                os.kill(pid, signal.SIGSTOP)  # so that it cannot have answered more than was asked
                os.kill(pid, signal.SIGKILL)

    lost = await ExtractPool(tmp_path, MAX, deliver).run(wanted, workers=1)
    assert sorted(got + [left.path for left in lost]) == [each.path for each in wanted]
    assert len(lost) <= 1 and all(left.reason == "the extraction worker was killed by signal 9 while reading it" for left in lost)
    assert len(got) == len(set(got))


async def test_when_children_keep_dying_what_is_left_is_named(tmp_path: Path) -> None:
    wanted = make_files(tmp_path, 200)
    got: list[str] = []

    async def deliver(outcome: ReadSyntax | LeftOut) -> None:
        got.append(outcome.path)
        for pid in children():
            with contextlib.suppress(ProcessLookupError):  # it was still dying of the last one
                os.kill(pid, signal.SIGKILL)

    lost = await ExtractPool(tmp_path, MAX, deliver).run(wanted, workers=2)
    assert sorted(got + [left.path for left in lost]) == [each.path for each in wanted]
    reasons = [left.reason for left in lost]
    assert any(f"not read: {MAX_DEATHS} extraction workers died" in reason for reason in reasons)
    assert children() == []


async def test_cancelling_leaves_no_child(tmp_path: Path) -> None:
    wanted = make_files(tmp_path, 120)
    scope = anyio.CancelScope()

    async def deliver(outcome: ReadSyntax | LeftOut) -> None:
        scope.cancel()

    with scope:
        await ExtractPool(tmp_path, MAX, deliver).run(wanted, workers=2)
    assert scope.cancelled_caught and children() == []
