"""Changes in a watched tree lead to a refresh; what cannot be watched is said; nothing is left behind."""

from __future__ import annotations

import os
from collections.abc import AsyncGenerator, Callable
from pathlib import Path

import anyio
import pytest

from search_router.adapters.local.symbol_index import SymbolIndex
from search_router.adapters.local.symbol_store import DerivedStore
from search_router.adapters.local.tree_watch import TreeWatch, directories_of
from search_router.router.opening import open_router
from search_router.schema import Project
from tests.repositories import git, make_repository, write_files
from tests.scripted_router import environ

pytestmark = [pytest.mark.anyio, pytest.mark.skipif(not Path("/proc/sys/fs/inotify").exists(), reason="counts inotify's own watches")]
SOON = 10.0


def inotify_watches() -> int:
    """How many directories this process watches."""
    found = 0
    for entry in Path("/proc/self/fdinfo").iterdir():
        try:
            found += entry.read_text().count("inotify wd:")
        except OSError:
            continue
    return found


@pytest.fixture
async def index(tmp_path: Path) -> AsyncGenerator[SymbolIndex]:
    made = SymbolIndex(DerivedStore(tmp_path / "cache"), max_file_bytes=1 << 16, workers=1)
    made.watch()
    before = inotify_watches()
    yield made
    await made.aclose()
    await until(lambda: inotify_watches() == before)  # the library's own thread closes them a moment later


@pytest.fixture
def project(tmp_path: Path) -> Project:
    files = {"a.py": "def one(): pass\n", "deep/er/b.py": "def two(): pass\n", ".gitignore": "build/\n*.log\nnode_modules/\n"}
    root = make_repository(tmp_path / "shop", files)
    write_files(root, {f"build/{number}/out.py": "x = 1\n" for number in range(20)} | {"node_modules/x/index.js": "x\n"})
    return Project("shop", root, "git")


async def until(true: Callable[[], object]) -> None:
    with anyio.fail_after(SOON):
        while not true():
            await anyio.sleep(0.01)


async def test_an_edit_a_new_file_and_a_deletion_are_indexed_before_anybody_asks(index: SymbolIndex, project: Project) -> None:
    await index.refresh(project)
    table = index.table(project)
    await until(lambda: inotify_watches() == 3)  # the root, deep, deep/er: not .git, build or node_modules
    (project.root / "a.py").write_text("def changed(): pass\n")
    await until(lambda: table.definitions_named("changed"))
    (project.root / "deep/er/c.py").write_text("def added(): pass\n")
    await until(lambda: table.definitions_named("added"))
    (project.root / "deep/er/b.py").unlink()
    await until(lambda: not table.definitions_named("two"))
    assert index.notes == ()


async def test_directories_that_come_are_watched_too(index: SymbolIndex, project: Project) -> None:
    await index.refresh(project)
    table = index.table(project)
    await until(lambda: inotify_watches() == 3)
    (project.root / "empty").mkdir()
    await until(lambda: inotify_watches() == 4)
    (project.root / "empty" / "d.py").write_text("def later(): pass\n")
    await until(lambda: table.definitions_named("later"))
    write_files(project.root, {"whole/tree/e.py": "def within(): pass\n"})
    await until(lambda: table.definitions_named("within"))
    await until(lambda: inotify_watches() == 6)


async def test_a_branch_switch_is_indexed(index: SymbolIndex, project: Project) -> None:
    git(project.root, "checkout", "--quiet", "-b", "other")
    write_files(project.root, {"a.py": "def other_branch(): pass\n"})
    git(project.root, "commit", "--quiet", "--all", "--message", "other")
    git(project.root, "checkout", "--quiet", "main")
    await index.refresh(project)
    table = index.table(project)
    await until(lambda: inotify_watches() == 3)
    assert not table.definitions_named("other_branch")
    git(project.root, "checkout", "--quiet", "other")
    await until(lambda: table.definitions_named("other_branch"))


async def test_what_is_ignored_stops_waking_the_index(project: Project) -> None:
    refreshed = 0

    async def refresh(_: Project, __: tuple[Path, ...]) -> None:
        nonlocal refreshed
        refreshed += 1

    watch = TreeWatch(refresh)
    watch.follow(project, (), ("a.py", "deep/er/b.py", ".gitignore"))
    await until(lambda: inotify_watches() == 3)
    (project.root / "noise.log").write_text("1\n")
    await until(lambda: refreshed == 1)
    for number in range(20):
        (project.root / "noise.log").write_text(f"{number}\n")
    (project.root / "a.py").write_text("x = 1\n")
    await until(lambda: refreshed == 2)
    watched = watch._watched[project.root]
    assert watched.foreign == {str(project.root / "noise.log")}
    await watch.aclose()
    watch.follow(project, (), ("a.py",))  # a closed watch follows nothing
    await until(lambda: inotify_watches() == 0)


async def test_more_directories_than_can_be_watched_are_said_and_do_no_harm(project: Project) -> None:
    async def refresh(_: Project, __: tuple[Path, ...]) -> None: ...

    watch = TreeWatch(refresh, most_directories=2)
    for _ in range(2):
        watch.follow(project, (), ("a.py", "deep/er/b.py"))
        await until(lambda: watch.notes)
    assert watch.notes == ("shop is not watched (3 directories, and 2 can be); its changes are indexed when it is asked about.",)
    assert inotify_watches() == 0
    await watch.aclose()


async def test_a_project_that_vanishes_ends_its_watch(index: SymbolIndex, project: Project) -> None:
    await index.refresh(project)
    await until(lambda: inotify_watches() == 3)
    os.rename(project.root / "deep", project.root.parent / "elsewhere")
    os.rename(project.root, project.root.parent / "gone")
    await until(lambda: inotify_watches() == 0)


@pytest.mark.parametrize("wanted", [True, False])
async def test_a_router_watches_what_it_was_asked_about_when_it_is_told_to(tmp_path: Path, project: Project, wanted: bool) -> None:
    flags = [f"index.watch={str(wanted).lower()}", "experts.knowledge.enabled=false"]  # whose own silence is watched at once
    async with open_router(roots=[project.root], environ=environ(tmp_path), flags=flags) as router:
        router.watch()
        assert inotify_watches() == 0, "nothing was asked yet"
        await router.search({"question": "changed parcel labels"})
        if wanted:
            await until(lambda: inotify_watches() == 3)
        else:
            assert inotify_watches() == 0
    await until(lambda: inotify_watches() == 0)


def test_the_directories_of_paths_are_those_that_hold_them_and_all_above() -> None:
    assert directories_of(["a/b/c.py", "d.py", "a/e/f.py"]) == {"", "a", "a/b", "a/e"}
    assert directories_of([]) == {""} and directories_of(["bad\udcff/x.py"]) == {""}
