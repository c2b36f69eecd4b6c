"""A file that takes for ever holds nobody up for ever: progress is kept, it comes last, and in the end it is set aside with the reason."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import pytest

from search_router.adapters.local.grammars import ExtractionFailed
from search_router.adapters.local.slow_files import BIG_BYTES, MOST_TRIES, SlowFiles, is_set_aside
from search_router.adapters.local.symbol_index import SymbolIndex
from search_router.adapters.local.symbol_state import Changed, Identified, reason_key
from search_router.adapters.local.symbol_store import DerivedStore, FileStamp
from search_router.adapters.local.syntax import DEEPEST, extract
from search_router.schema import Project
from tests.repositories import make_repository

pytestmark = pytest.mark.anyio
SLOW = "int a[\n" * (2**21 // 7 - 1)
"""Seconds of parsing: every line is one more error to recover from."""


@asynccontextmanager
async def opened(folder: Path) -> AsyncGenerator[SymbolIndex]:
    index = SymbolIndex(DerivedStore(folder / "cache"), max_file_bytes=2**21, workers=1)
    try:
        yield index
    finally:
        await index.aclose()


async def until(holds: Callable[[], bool]) -> None:
    with anyio.fail_after(20):
        while not holds():
            await anyio.sleep(0.02)


def slow_file(blob: str = "ab" * 20) -> Identified:
    return Identified(Changed("slow.c", "c", FileStamp(1, 1, 1)), blob, True)


async def test_a_file_that_was_tried_often_enough_is_set_aside_and_only_then(tmp_path: Path) -> None:
    store = DerivedStore(tmp_path)
    slow = SlowFiles(store, again=False)
    assert await slow.among([slow_file()]) == set()
    for _ in range(MOST_TRIES - 1):
        assert await slow.tried_in_vain(slow_file(), "it was broken off") is None
        assert await slow.among([slow_file(), slow_file("cd" * 20)._replace(changed=Changed("b.c", "c", FileStamp(1, 1, 1)))]) == {"slow.c"}
    said = await slow.tried_in_vain(slow_file(), "it was broken off")
    assert said == "set aside, it was broken off (3 times); `search-router index refresh` tries again"
    assert is_set_aside(said)
    key = reason_key("c", "ab" * 20)
    assert store.load([key])[key].payload.decode() == said
    store.close()


async def test_what_a_refresh_did_before_it_was_broken_off_is_not_done_again(tmp_path: Path) -> None:
    files = {f"m{i}.py": f"def f{i}(): pass\n" for i in range(20)} | {"slow.c": SLOW}
    project = Project("shop", make_repository(tmp_path / "shop", files), "git")
    async with opened(tmp_path) as index:
        refreshing = asyncio.create_task(index.refresh(project))
        await until(lambda: index.progress(project).ready == 20)
    with pytest.raises(Exception, match="closed"):
        await refreshing
    stored = DerivedStore(tmp_path / "cache")
    assert len(stored.stamps(project.root)) == 20
    stored.close()


async def test_runs_that_are_broken_off_get_to_an_end_all_the_same(tmp_path: Path) -> None:
    project = Project("shop", make_repository(tmp_path / "shop", {"a.py": "def f(): pass\n", "slow.c": SLOW}), "git")
    for _ in range(MOST_TRIES):
        async with opened(tmp_path) as index:
            refreshing = asyncio.create_task(index.refresh(project))
            await until(lambda: index.progress(project).ready == 1)
            await asyncio.wait({refreshing}, timeout=1.5)
            if refreshing.done():
                break
        await asyncio.wait({refreshing})
        assert refreshing.exception() is not None
    async with opened(tmp_path) as index:
        report = await index.refresh(project)
    assert [left.path for left in report.left_out] == ["slow.c"] and report.missing == ()
    assert report.parsed == 0 or "parsing it took longer" in report.left_out[0].reason


def test_a_tree_that_is_too_deep_to_be_asked_is_left_out_for_good() -> None:
    chain = b"(a" + b"\n.b" * (DEEPEST + 20_000) + b")\n"
    with pytest.raises(ExtractionFailed, match="nested more than 50000 levels deep"):
        extract(chain, "python")
    assert extract(b"def f():\n    return (a" + b"\n.b" * 1000 + b")\n", "python").definitions[0].name == "f"


async def test_a_big_file_is_no_work_for_a_thread_of_ours(tmp_path: Path) -> None:
    big = "def f():\n    pass\n" * (BIG_BYTES // 17)
    project = Project("shop", make_repository(tmp_path / "shop", {"big.py": big, "small.py": "def g(): pass\n"}), "git")
    async with opened(tmp_path) as index:
        assert await index.definitions(project, "big.py", "00" * 20) is None
        report = await index.refresh(project)
        assert (report.files, report.missing) == (2, ())
        table = index.table(project)
        assert len(table.definitions_named("g")) == 1
        big_file = table.get("big.py")
        assert big_file is not None
        assert await index.definitions(project, "big.py", big_file.blob) is not None
