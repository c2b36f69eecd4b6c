"""Silence is believed only where the kernel would have told: every change that a listing of the files could show ends it at once."""

from __future__ import annotations

import errno
import os
import shutil
import sys
import time
from collections.abc import AsyncGenerator, Callable
from pathlib import Path

import pytest

from search_router.adapters.local.inotify import Inotify
from search_router.adapters.local.quiet_tree import RETRY_SECONDS, QuietTree, is_local, searchable_folders
from search_router.router.opening import open_router
from search_router.schema import Project
from tests.repositories import git, make_repository, write_files
from tests.scripted_router import environ

pytestmark = [pytest.mark.anyio, pytest.mark.skipif(not sys.platform.startswith("linux"), reason="inotify is Linux's")]

FILES = {"a.py": "A = 1\n", "src/deep/b.py": "B = 1\n", ".gitignore": "build/\n*.log\n", "logs/keep.py": "K = 1\n"}


async def listed(project: Project) -> QuietTree:
    """A tree that was listed twice without a change between: the first time nothing was watched yet."""
    tree = QuietTree(project)
    for _ in range(2):
        tree.begin_listing()
        await tree.end_listing()
    return tree


@pytest.fixture
async def root(tmp_path: Path) -> Path:
    made = make_repository(tmp_path / "work", FILES)
    write_files(made, {"build/out/x.py": "X = 1\n", "empty/.keep": "", "onlylogs/a.log": "a\n"})
    (made / "empty/.keep").unlink()
    return made


@pytest.fixture
async def tree(root: Path) -> AsyncGenerator[QuietTree]:
    made = await listed(Project("work", root, "git"))
    yield made
    made.close()


def append(path: Path) -> None:
    with path.open("a") as file:
        file.write("# more\n")


STIRS: dict[str, Callable[[Path], object]] = {
    "a file is written": lambda r: append(r / "src/deep/b.py"),
    "a file is made": lambda r: (r / "new.py").write_text("N = 1\n"),
    "a file is made in a folder that had none": lambda r: (r / "empty/first.py").write_text("F = 1\n"),
    "a file is made beside ignored ones": lambda r: (r / "logs/new.py").write_text("N = 1\n"),
    "a file goes": lambda r: (r / "a.py").unlink(),
    "a file is renamed": lambda r: (r / "a.py").rename(r / "c.py"),
    "a file is replaced": lambda r: shutil.move(_beside(r), r / "a.py"),
    "a mode changes": lambda r: (r / "a.py").chmod(0o600),
    "a folder is made": lambda r: (r / "src/newer").mkdir(),
    "a folder goes": lambda r: shutil.rmtree(r / "src"),
    "a folder is moved": lambda r: (r / "src/deep").rename(r / "deeper"),
    "a file is made in a folder of ignored files": lambda r: (r / "onlylogs/new.py").write_text("N = 1\n"),
    "a file is replaced by an older one": lambda r: _replace_keeping_the_time(r / "a.py"),
    "an ignore rule changes": lambda r: append(r / ".gitignore"),
    "an ignored file is added by force": lambda r: git(r, "add", "-f", "build/out/x.py"),
    "another commit is checked out": lambda r: git(r, "checkout", "-q", "--orphan", "other"),
    "the repository's own exclude file changes": lambda r: (r / ".git/info/exclude").write_text("*.py\n"),
}


def _beside(root: Path) -> Path:
    other = root.parent / "beside.py"
    other.write_text("A = 2\n")
    return other


def _replace_keeping_the_time(file: Path) -> None:
    before = file.stat()
    file.write_text("A = 2\n")
    os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))


@pytest.mark.parametrize("name", STIRS)
async def test_a_change_ends_the_silence_at_once(root: Path, tree: QuietTree, name: str) -> None:
    assert tree.is_quiet()
    STIRS[name](root)
    assert not tree.is_quiet()


async def test_what_a_listing_does_not_show_disturbs_nothing(root: Path, tree: QuietTree) -> None:
    (root / "build/out/y.py").write_text("Y = 1\n")
    (root / "build/more").mkdir()
    (root / "a.py").read_text()
    git(root, "status", "--short")
    assert tree.is_quiet() or _index_was_refreshed(root)


def _index_was_refreshed(root: Path) -> bool:
    """git may write the index anew when it is asked for the status; then one listing too many is made."""
    return time.time() - (root / ".git/index").stat().st_mtime < 5


async def test_a_file_in_a_new_folder_is_seen_after_the_folder_was(root: Path, tree: QuietTree) -> None:
    (root / "fresh").mkdir()
    for _ in range(2):
        tree.begin_listing()
        await tree.end_listing()
    assert tree.is_quiet()
    (root / "fresh/late.py").write_text("L = 1\n")
    assert not tree.is_quiet()


async def test_a_folder_that_was_made_anew_under_its_name_is_watched(root: Path, tree: QuietTree) -> None:
    shutil.rmtree(root / "src/deep")
    (root / "src/deep").mkdir()
    for _ in range(2):
        tree.begin_listing()
        await tree.end_listing()
    assert tree.is_quiet()
    (root / "src/deep/late.py").write_text("L = 1\n")
    assert not tree.is_quiet()


async def test_a_folder_that_moved_is_watched_under_its_new_name(root: Path, tree: QuietTree) -> None:
    (root / "src/deep").rename(root / "src/moved")
    (root / "src/deep").mkdir()
    for _ in range(2):
        tree.begin_listing()
        await tree.end_listing()
    assert tree.is_quiet()
    (root / "src/moved/b.py").write_text("B = 2\n")
    assert not tree.is_quiet()


async def test_an_ignore_file_above_the_searched_root_ends_the_silence(root: Path) -> None:
    tree = await listed(Project("src", root / "src", "git"))
    assert tree.is_quiet()
    append(root / "a.py")
    assert tree.is_quiet()
    append(root / ".gitignore")
    assert not tree.is_quiet()
    tree.close()


async def test_a_change_between_the_listing_and_its_end_counts(root: Path, tree: QuietTree) -> None:
    tree.begin_listing()
    append(root / "a.py")
    await tree.end_listing()
    assert not tree.is_quiet()


async def test_a_closed_or_never_listed_tree_is_never_quiet(root: Path, tree: QuietTree) -> None:
    assert not QuietTree(Project("work", root, "git")).is_quiet()
    tree.close()
    tree.close()
    assert not tree.is_quiet()


async def test_a_tree_that_could_not_be_watched_is_tried_again_later(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(self: Inotify) -> None:
        raise OSError(errno.EMFILE, "Too many open files")

    with monkeypatch.context() as patch:
        patch.setattr(Inotify, "__init__", refuse)
        tree = await listed(Project("work", root, "git"))
    assert not tree.can_watch and not tree.is_quiet()
    now = time.monotonic()
    monkeypatch.setattr(time, "monotonic", lambda: now + RETRY_SECONDS + 1)
    for _ in range(2):
        tree.begin_listing()
        await tree.end_listing()
    assert tree.can_watch and tree.is_quiet()
    tree.close()


PLAIN = ["a file is written", "a file is made in a folder that had none", "a file goes", "a folder is moved", "an ignore rule changes"]


@pytest.mark.parametrize("name", PLAIN)
async def test_a_plain_directory_is_watched_as_a_repository_is(root: Path, name: str) -> None:
    shutil.rmtree(root / ".git")
    tree = await listed(Project("plain", root, "directory"))
    assert tree.is_quiet()
    STIRS[name](root)
    assert not tree.is_quiet()
    tree.close()


async def test_a_folder_that_becomes_a_repository_within_a_plain_directory_ends_the_silence(root: Path) -> None:
    shutil.rmtree(root / ".git")
    tree = await listed(Project("plain", root, "directory"))
    (root / "src/.git").mkdir()
    assert not tree.is_quiet()
    tree.close()


async def test_a_linked_work_tree_is_watched_with_its_own_index(root: Path, tmp_path: Path) -> None:
    git(root, "worktree", "add", "-q", str(tmp_path / "linked"), "-b", "linked")
    tree = await listed(Project("linked", tmp_path / "linked", "worktree"))
    assert tree.is_quiet()
    write_files(tmp_path / "linked", {"made.log": "x\n"})
    for _ in range(2):
        tree.begin_listing()
        await tree.end_listing()
    assert tree.is_quiet()
    git(tmp_path / "linked", "add", "-f", "made.log")
    assert not tree.is_quiet()
    tree.close()


async def test_folders_that_are_ignored_as_a_whole_are_not_watched(root: Path) -> None:
    assert await searchable_folders(Project("work", root, "git")) == {"", "src", "src/deep", "logs", "empty", "onlylogs"}


def test_a_file_system_whose_changes_come_from_elsewhere_is_not_believed() -> None:
    assert not is_local(Path("/proc/self"))


def test_a_queue_tells_of_a_change_before_the_call_that_made_it_returns(tmp_path: Path) -> None:
    queue = Inotify()
    watch = queue.watch(os.fsencode(tmp_path))
    assert list(queue.events()) == []
    (tmp_path / "x").write_text("1")
    assert {(e.watch, e.name) for e in queue.events()} == {(watch, b"x")}
    queue.close()
    queue.close()


async def test_answers_follow_every_edit_while_silence_saves_the_listing(root: Path, tmp_path: Path) -> None:
    old = time.time() - 60
    for path in root.rglob("*.py"):
        os.utime(path, (old, old))
    async with open_router(roots=[root], environ=environ(tmp_path)) as router:

        async def names(question: str) -> set[str | None]:
            return {item.path for item in (await router.search({"question": question, "intent": "typed-symbol"})).evidence}

        for _ in range(3):
            assert await names("zebra_new") == set()
        for number in range(3):
            write_files(root, {f"src/made_{number}.py": f"def zebra_new_{number}():\n    pass\n"})
            assert await names(f"zebra_new_{number}") == {f"src/made_{number}.py"}
            (root / f"src/made_{number}.py").unlink()
            assert await names(f"zebra_new_{number}") == set()


async def test_of_many_changes_no_list_is_kept(tree: QuietTree, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("search_router.adapters.local.quiet_tree.MOST_TOLD", 3)
    tree.begin_listing()
    append(root / "a.py")
    assert tree.begin_listing() == {"a.py"}
    for number in range(4):
        (root / f"n{number}.py").write_text("N = 1\n")
    assert tree.begin_listing() is None and tree.begin_listing() == frozenset()
