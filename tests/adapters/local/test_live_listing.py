"""A list that is kept in step by what the kernel tells is the list that would be made anew, whatever happens to the tree."""

from __future__ import annotations

import asyncio
import os
import random
import shutil
import sys
import time
from collections.abc import Callable
from pathlib import Path

import anyio
import pytest

from search_router.adapters.local import live_listing, quiet_tree
from search_router.adapters.local.live_listing import LiveListing
from search_router.adapters.local.manifest import Manifest, read_manifest
from search_router.schema import Project
from tests.repositories import commit_all, git, make_repository, write_files

pytestmark = [pytest.mark.anyio, pytest.mark.skipif(not sys.platform.startswith("linux"), reason="the kernel tells on Linux only")]

FILES = {f"d{at % 4}/f{at}.py": f"A = {at}\n" for at in range(20)} | {".gitignore": "*.log\nbuild/\n", "top.md": "# Top\n"}


class Counted:
    """A listing, and how often it listed everything."""

    def __init__(self, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.project = Project("work", root, "git")
        self.listing = LiveListing(self.project)
        self.whole = 0
        self.settles = True

        async def count(project: Project, *, nested: tuple[Path, ...] = ()) -> Manifest:
            self.whole += 1
            return await read_manifest(project, nested=nested)

        monkeypatch.setattr(live_listing, "read_manifest", count)

    async def read(self) -> Manifest:
        manifest = await self.listing.read(self.project, ())
        if self.settles:
            await self.listing.settle()
        return manifest


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return make_repository(tmp_path / "work", FILES)


def change_something(root: Path, rng: random.Random) -> str:
    files = sorted(p for p in root.rglob("*") if p.is_file() and not p.is_symlink() and ".git" not in p.parts)
    folders = sorted({p.parent for p in files})
    one, folder, name = rng.choice(files), rng.choice(folders), f"n{rng.randrange(1000)}"
    ways: dict[str, Callable[[], object]] = {
        "write": lambda: one.write_text(f"B = {rng.random()}\n"),
        "append": lambda: one.write_text(one.read_text() + "x\n"),
        "delete": one.unlink,
        "new": lambda: (folder / f"{name}.py").write_text("N = 1\n"),
        "ignored": lambda: (folder / f"{name}.log").write_text("log\n"),
        "rename": lambda: one.rename(folder / f"{name}.ts"),
        "replace": lambda: shutil.move(_beside(folder), one),
        "mode": lambda: one.chmod(0o600),
        "link": lambda: (folder / f"{name}.py").symlink_to(one),
        "file to link": lambda: (one.unlink(), one.symlink_to("nowhere")),
        "folder": lambda: write_files(root, {f"{name}/deep/x.py": "X = 1\n"}),
        "folder away": lambda: shutil.rmtree(root / "d1", ignore_errors=True),
        "folder moves": lambda: (root / "d2").rename(root / name) if (root / "d2").is_dir() else None,
        "track": lambda: git(root, "add", "-A", "--force"),
        "commit": lambda: commit_all(root, "more"),
        "rule": lambda: (root / ".gitignore").write_text(f"*.log\n{name}*\n"),
        "pipe": lambda: os.mkfifo(folder / name),
        "twice": lambda: (one.write_text("1\n"), one.unlink(), one.write_text("2\n")),
        "temporary": lambda: ((folder / "t.tmp").write_text("t"), (folder / "t.tmp").unlink()),
    }
    way = rng.choice(sorted(ways))
    ways[way]()
    return way


def _beside(folder: Path) -> Path:
    made = folder / ".new~"
    made.write_text("R = 1\n")
    return made


@pytest.mark.parametrize("seed", range(4))
async def test_the_list_is_the_one_that_would_be_made_anew(root: Path, monkeypatch: pytest.MonkeyPatch, seed: int) -> None:
    rng = random.Random(seed)
    counted = Counted(root, monkeypatch)
    for step in range(40):
        counted.settles = rng.random() < 0.7
        done = [change_something(root, rng) for _ in range(rng.choice([0, 1, 1, 3]))]
        assert await counted.read() == await read_manifest(counted.project), (step, done)
    await counted.listing.aclose()
    assert counted.whole < 40


async def test_edits_new_files_and_ignored_ones_list_nothing_again(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    counted = Counted(root, monkeypatch)
    for _ in range(2):
        await counted.read()
    for at in range(5):
        (root / "d0/f0.py").write_text(f"A = {at}\n")
        (root / f"d1/new{at}.py").write_text("N = 1\n")
        (root / f"d1/new{at}.log").write_text("ignored\n")
        shutil.move(_beside(root / "d2"), root / "d2/f2.py")
        assert await counted.read() == await read_manifest(counted.project)
    assert counted.whole == 2
    await counted.listing.aclose()


async def test_a_whole_list_that_is_old_is_made_again_in_a_quiet_moment(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(live_listing, "TRUST_SECONDS", 0.05)
    monkeypatch.setattr(live_listing, "PAUSE_SECONDS", 0.01)
    counted = Counted(root, monkeypatch)
    for _ in range(2):
        await counted.read()
    done = anyio.Event()

    async def again() -> None:
        await counted.listing.read(counted.project, (), whole=True)
        done.set()

    counted.listing.list_again_if_due(again)
    assert counted.listing.is_quiet() and counted.whole == 2
    await anyio.sleep(0.1)
    for _ in range(3):  # one is enough, however many ask
        counted.listing.list_again_if_due(again)
    with anyio.fail_after(5):
        await done.wait()
    assert counted.whole == 3 and counted.listing.is_quiet()
    await counted.listing.aclose()


async def test_a_reading_that_was_broken_off_is_made_good(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    counted = Counted(root, monkeypatch)
    for _ in range(2):
        await counted.read()
    (root / "d0/f0.py").write_text("broken off\n")
    (root / "d0/new.py").write_text("N = 1\n")
    with anyio.move_on_after(0):
        await counted.read()
    assert await counted.read() == await read_manifest(counted.project)
    await counted.listing.aclose()


async def settled(counted: Counted) -> None:
    for _ in range(3):
        await counted.read()
    assert counted.listing.is_quiet()


def become_repository(root: Path) -> None:
    shutil.rmtree(root / ".git")
    git(root, "init", "-q")
    git(root, "add", "--force", "build/x.py")


DECIDING: dict[str, Callable[[Path], object]] = {
    "a file in an ignored folder is tracked": lambda r: git(r, "add", "--force", "build/x.py"),
    "a plain directory becomes a repository": become_repository,
    "an exclude file where there was no folder for it": lambda r: write_files(r, {".git/info/exclude": "d0/\n"}),
    "a repository inside becomes a folder": lambda r: (r / "sub/.git").unlink(),
}


@pytest.mark.parametrize("what", DECIDING)
async def test_after_what_decides_on_others_every_later_edit_is_seen(root: Path, monkeypatch: pytest.MonkeyPatch, what: str) -> None:
    write_files(root, {"build/x.py": "X = 1\n", "sub/f.py": "F = 1\n"})
    shutil.rmtree(root / ".git/info", ignore_errors=True)
    git(root, "init", "-q", "--separate-git-dir", str(root.parent / "elsewhere.git"), "sub")
    counted = Counted(root, monkeypatch)
    await settled(counted)
    DECIDING[what](root)
    counted.project = Project("work", root, "git" if (root / ".git").exists() else "directory")
    for _ in range(3):
        assert await counted.read() == await read_manifest(counted.project)
    for edited in ("build/x.py", "sub/f.py", "d0/f0.py", ".git/info/exclude"):
        if (root / edited).exists():
            (root / edited).write_text("d3/\n")
            assert await counted.read() == await read_manifest(counted.project), edited
    await counted.listing.aclose()


async def test_a_folder_that_is_made_while_the_tree_is_walked_is_watched_in_the_end(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    walk = quiet_tree._walk  # pyright: ignore[reportPrivateUsage] - the moment between two steps cannot be met otherwise
    made: list[Path] = []

    def slowly(at: Path, ignored: frozenset[str]) -> frozenset[str]:
        found = walk(at, ignored)
        if len(made) < 2:
            made.append(root / f"late{len(made)}")
            made[-1].mkdir()
            (made[-1] / "x.py").write_text("X = 1\n")
        return found

    monkeypatch.setattr(quiet_tree, "_walk", slowly)
    counted = Counted(root, monkeypatch)
    for _ in range(5):
        await counted.read()
    assert counted.listing.is_quiet() and len(made) == 2
    for folder in made:
        (folder / "x.py").write_text("X = 22\n")
        assert not counted.listing.is_quiet()
        assert await counted.read() == await read_manifest(counted.project)
    await counted.listing.aclose()


async def test_a_settling_that_is_underway_ends_with_its_listing(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(quiet_tree, "_walk", lambda at, ignored: time.sleep(0.2) or frozenset({""}))  # pyright: ignore - a slow tree
    listing = LiveListing(Project("work", root, "git"))
    tasks, queues = asyncio.all_tasks(), inotify_queues()
    for _ in range(3):
        await listing.read(Project("work", root, "git"), ())
        listing.settle_soon()
        await anyio.sleep(0.02)
    await listing.aclose()
    assert asyncio.all_tasks() == tasks
    await anyio.sleep(0.3)
    assert inotify_queues() == queues


def inotify_queues() -> int:
    names = (f"/proc/self/fd/{number}" for number in os.listdir("/proc/self/fd"))
    return sum("inotify" in os.readlink(name) for name in names if os.path.lexists(name))
