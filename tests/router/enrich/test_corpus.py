"""One fingerprint for what the files are: the same only while they are the same."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from search_router.adapters.local.live_listing import TRUST_SECONDS
from search_router.router.enrich.corpus import CorpusWatch
from search_router.schema import Project
from tests.repositories import commit_all, git, make_repository

pytestmark = pytest.mark.anyio
FILES = {"a.py": "one = 1\n", "lib/b.py": "two = 2\n", "lib/deep/c.py": "three = 3\n", ".gitignore": "*.log\nbuild/\n"}


class Desk:
    """A repository and a watch on it, with a clock of its own."""

    def __init__(self, root: Path, *, kind: str = "git") -> None:
        self.root = root
        self.now = 0.0
        self.watch = CorpusWatch(lambda: self.now)
        self.projects = ((Project("p", root, kind), ()),)  # type: ignore[arg-type] - kind is one of the two words

    async def fingerprint(self) -> str | None:
        """As it is now, by whatever is cheapest."""
        moment = self.watch.moment(self.projects)
        return moment.fingerprint or await self.watch.look(self.projects)

    async def settled(self) -> str:
        begin = self.watch.moment(self.projects)._replace(fingerprint=await self.watch.look(self.projects))
        found = await self.watch.confirm(self.projects, begin)
        assert found is not None
        return found


async def test_a_silent_tree_keeps_its_fingerprint_without_looking(tmp_path: Path) -> None:
    desk = Desk(make_repository(tmp_path / "r", FILES))
    first = await desk.settled()
    assert desk.watch.moment(desk.projects).fingerprint == first
    desk.now += TRUST_SECONDS + 1
    assert desk.watch.moment(desk.projects).fingerprint is None
    assert not desk.watch.is_stirred(desk.projects, desk.watch.moment(desk.projects))
    assert await desk.watch.look(desk.projects) == first
    desk.watch.close()


EDITS: dict[str, Callable[[Path], object]] = {
    "write": lambda r: (r / "a.py").write_text("one = 2\n"),
    "same size in place": lambda r: (r / "lib/b.py").write_text("two = 3\n"),
    "new": lambda r: (r / "new.py").write_text("x\n"),
    "new folder": lambda r: shutil.copytree(r / "lib", r / "other"),
    "delete": lambda r: (r / "a.py").unlink(),
    "delete folder": lambda r: shutil.rmtree(r / "lib/deep"),
    "rename": lambda r: (r / "a.py").rename(r / "z.py"),
    "ignore": lambda r: (r / ".gitignore").write_text("*.py\n"),
    "old time": lambda r: ((r / "a.py").write_text("one = 7\n"), os.utime(r / "a.py", (1, 1))),
    "replace": lambda r: ((r / "t").write_text("one = 9\n"), (r / "t").replace(r / "a.py")),
}


@pytest.mark.parametrize("edit", EDITS)
@pytest.mark.parametrize("kind", ["git", "directory"])
async def test_every_change_changes_it_and_is_not_confirmed_as_silence(tmp_path: Path, edit: str, kind: str) -> None:
    root = make_repository(tmp_path / "r", FILES)
    if kind == "directory":
        shutil.rmtree(root / ".git")
    desk = Desk(root, kind=kind)
    before = await desk.settled()
    begin = desk.watch.moment(desk.projects)._replace(fingerprint=before)
    EDITS[edit](root)
    assert await desk.watch.confirm(desk.projects, begin) is None
    after = await desk.fingerprint()
    assert after not in (None, before)
    assert await desk.settled() == after
    desk.watch.close()


async def test_what_is_ignored_does_not_change_it(tmp_path: Path) -> None:
    desk = Desk(make_repository(tmp_path / "r", FILES))
    before = await desk.settled()
    (desk.root / "noise.log").write_text("noise")
    (desk.root / "build").mkdir()
    (desk.root / "build/out.py").write_text("x")
    assert await desk.fingerprint() == before
    desk.watch.close()


async def test_two_edits_within_one_tick_of_the_clock_differ(tmp_path: Path) -> None:
    """Same size, microseconds apart: a coarse clock gives them one stamp, and then only the content tells."""
    root = make_repository(tmp_path / "r", FILES)
    found: set[str | None] = set()
    for n in range(20):
        descriptor = os.open(root / "a.py", os.O_WRONLY)
        os.pwrite(descriptor, b"one = %d" % (n % 10), 0)
        os.close(descriptor)
        desk = Desk(root)
        found.add(await desk.watch.look(desk.projects))
        desk.watch.close()
    assert len(found) == 20


STEP = st.sampled_from(["write", "touch", "new", "delete", "commit", "branch", "back", "stash", "folder"])


@settings(max_examples=12, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(steps=st.lists(STEP, min_size=3, max_size=10), number=st.integers(0, 5))
async def test_whatever_is_done_equal_fingerprints_mean_equal_files(tmp_path: Path, steps: list[str], number: int) -> None:
    root = tmp_path / f"r{time.monotonic_ns()}"
    desk = Desk(make_repository(root, FILES))
    git(root, "branch", "other")
    seen: dict[str | None, dict[str, bytes]] = {}
    for n, step in enumerate(steps):
        try_step(root, step, n + number)
        fingerprint = await desk.fingerprint()
        files = {str(p.relative_to(root)): p.read_bytes() for p in sorted(root.rglob("*.py"))}
        assert seen.setdefault(fingerprint, files) == files, (step, n)
        if n % 2:
            await desk.watch.confirm(desk.projects, desk.watch.moment(desk.projects)._replace(fingerprint=fingerprint))
    desk.watch.close()


def try_step(root: Path, step: str, n: int) -> None:
    some = root / ("a.py", "lib/b.py", "lib/deep/c.py")[n % 3]
    match step:
        case "write":
            some.parent.mkdir(parents=True, exist_ok=True)
            some.write_text(f"value = {n % 4}\n")
        case "touch":
            if some.exists():
                some.touch()
        case "new":
            (root / f"new{n % 3}.py").write_text(f"new = {n}\n")
        case "delete":
            some.unlink(missing_ok=True)
        case "folder":
            shutil.rmtree(root / "lib", ignore_errors=True)
        case "commit":
            (root / "mark").write_text(str(time.monotonic_ns()))
            commit_all(root, f"step {n}")
        case "branch":
            git(root, "checkout", "--force", "--quiet", "other")
        case "back":
            git(root, "checkout", "--force", "--quiet", "main")
        case _:
            (root / "mark").write_text(str(time.monotonic_ns()))
            git(root, "stash", "--include-untracked", "--quiet")
