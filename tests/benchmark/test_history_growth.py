"""A long history is read once; after one more commit only that one is read."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from search_router.adapters.local.history import HistoryExpert
from search_router.benchmark.history_growth import add_commit, fast_import_stream, make_history, part_name, run
from search_router.config.experts import HistoryConfig
from search_router.config.loader import load_config
from search_router.schema import ExpertCall, Intent, Project, QueryForm, SubQuery

pytestmark = pytest.mark.anyio


def test_the_same_seed_gives_the_same_history() -> None:
    assert list(fast_import_stream(5, 1)) == list(fast_import_stream(5, 1)) != list(fast_import_stream(5, 2))


async def rows_after_a_commit(folder: Path, commits: int) -> tuple[list[int], str]:
    """The rows of the table that are new after one more commit, and the subject that a question for it gave first."""
    root = folder / "work"
    make_history(root, commits)
    config = load_config(roots=[], environ={"SEARCH_ROUTER_HOME": str(folder / "home")}).config.experts["history"]
    assert isinstance(config, HistoryConfig)
    expert = HistoryExpert("history", config, folder / "cache")

    def rows() -> set[int]:
        (store,) = (folder / "cache").glob("history-*.sqlite")
        with sqlite3.connect(store) as db:
            found = {row for (row,) in db.execute("SELECT id FROM commits")}
        db.close()
        return found

    def call(question: str) -> ExpertCall:
        project = Project("work", root, "git")
        return ExpertCall("history", SubQuery(QueryForm.TEXT, (), question), (project,), None, None, 5, 300_000, 1000, "t", Intent.HISTORY)

    try:
        first = await expert.search(call(f"when was the retry of {part_name(commits // 2)} changed"))
        assert first.partial is None
        before = rows()
        add_commit(root, "zebrafish")
        found = await expert.search(call("which commit brought in zebrafish"))
        assert found.partial is None
        return sorted(rows() - before), next(hit.commit.subject for hit in found.hits if hit.commit)
    finally:
        await expert.aclose()


async def test_one_new_commit_is_all_that_is_read_after_it(tmp_path: Path) -> None:
    assert await rows_after_a_commit(tmp_path, 300) == ([301], "Bring in zebrafish")


@pytest.mark.slow
async def test_of_a_hundred_thousand_commits_only_the_new_one_is_read(tmp_path: Path) -> None:
    assert await rows_after_a_commit(tmp_path, 100_000) == ([100_001], "Bring in zebrafish")


def test_the_measurement_finds_each_new_commit() -> None:
    result = run(200, 3, 2)
    assert result["commits"] == 200 and isinstance(result["after_a_commit"], dict) and result["after_a_commit"]["n"] == 2
