"""A repository that is made or removed while the workspace is open is seen by the next question."""

from __future__ import annotations

import shutil
from pathlib import Path

import anyio
import pytest

from search_router.router.opening import open_router
from search_router.router.service import Router
from search_router.schema import Status
from tests.repositories import git, make_repository, write_files
from tests.scripted_router import environ

pytestmark = pytest.mark.anyio


async def ids_after(router: Router, expected: set[str]) -> set[str]:
    """The projects as questions find them; a look rests for a moment in proportion to what it took."""
    with anyio.move_on_after(10):
        while True:
            await router.search({"question": "zebra_one"})
            found = {p.id for p in router.workspace.projects}
            if found == expected:
                break
            await anyio.sleep(0.05)
    return {p.id for p in router.workspace.projects}


async def test_a_repository_made_below_a_plain_directory_is_searched_as_its_own_and_let_go_when_it_is_removed(tmp_path: Path) -> None:
    work = tmp_path / "work"
    write_files(work, {"notes.txt": "nothing\n", "sub/readme.txt": "nothing\n"})
    async with open_router(roots=[work], environ=environ(tmp_path)) as router:
        assert await ids_after(router, {"work"}) == {"work"}
        make_repository(work / "sub" / "fresh", {"a.py": "def zebra_one(): pass\n"})
        assert await ids_after(router, {"work", "fresh"}) == {"work", "fresh"}
        answer = await router.search({"question": "zebra_one", "scope": {"project": "fresh"}})
        assert answer.status is Status.ANSWERED and answer.evidence[0].project == "fresh"
        shutil.rmtree(work / "sub" / "fresh")
        assert await ids_after(router, {"work"}) == {"work"}


async def test_a_linked_work_tree_made_below_a_repository_is_seen(tmp_path: Path) -> None:
    work = make_repository(tmp_path / "work", {"a.py": "def zebra_one(): pass\n"})
    async with open_router(roots=[work], environ=environ(tmp_path)) as router:
        assert await ids_after(router, {"work"}) == {"work"}
        git(work, "worktree", "add", "--quiet", "trees/other", "-b", "other")
        assert await ids_after(router, {"work", "other"}) == {"work", "other"}
