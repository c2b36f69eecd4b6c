"""The live index follows the work tree, and parses nothing twice."""

from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
import sys
from collections.abc import AsyncGenerator, Callable
from contextlib import AsyncExitStack
from hashlib import sha256
from pathlib import Path

import anyio
import pytest

from search_router.adapters.local.left_out import LeftOut
from search_router.adapters.local.symbol_index import SymbolIndex
from search_router.adapters.local.symbol_store import FILE_NAME, DerivedStore
from search_router.adapters.local.symbol_table import SymbolTable
from search_router.errors import ExpertError, FailureClass
from search_router.schema import Project
from tests.adapters.local.test_extract_pool import children

pytestmark = pytest.mark.anyio
MAX = 1 << 16
OLD = 1_000_000_000_000_000_000


@pytest.fixture
async def open_index(tmp_path: Path) -> AsyncGenerator[Callable[..., SymbolIndex]]:
    """Makes indexes on one store (or another directory) and closes them."""
    async with AsyncExitStack() as stack:

        def make(directory: Path = tmp_path / "cache") -> SymbolIndex:
            index = SymbolIndex(DerivedStore(directory), max_file_bytes=MAX, workers=2)
            stack.push_async_callback(index.aclose)
            return index

        yield make


@pytest.fixture
def project(tmp_path: Path) -> Project:
    root = tmp_path / "project"
    root.mkdir()
    return Project("project", root, "directory")


def git(root: Path, *arguments: str) -> str:
    command = ["git", "-c", "user.name=a", "-c", "user.email=a@b", "-c", "commit.gpgsign=false", *arguments]
    return subprocess.run(command, cwd=root, check=True, capture_output=True, text=True).stdout.strip()


def write(project: Project, path: str, text: str | bytes, *, old: bool = True) -> None:
    """Write a file; an old one is not read again for its times alone."""
    file = project.root / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(text if isinstance(text, bytes) else text.encode())
    if old:
        os.utime(file, ns=(OLD, OLD))


def places(table: SymbolTable, name: str) -> list[tuple[str, int]]:
    return sorted((found.file.path, found.definition.start_line) for found in table.definitions_named(name))


async def test_every_text_file_is_indexed_once_and_prose_has_no_symbols(project: Project, open_index: Callable[..., SymbolIndex]) -> None:
    write(project, "a.py", "def one(): pass\n")
    write(project, "b/c.go", "package c\nfunc One() {}\n")
    write(project, "notes.md", "# one\n")
    index = open_index()
    first, second = await index.refresh(project), await index.refresh(project)
    assert (first.files, first.parsed, first.reused, first.left_out, first.missing) == (3, 3, 0, (), ())
    assert (second.files, second.parsed, second.reused) == (3, 0, 0)
    assert index.progress(project) == (3, 3) and index.notes == ()
    prose = index.table(project).get("notes.md")
    assert prose and prose.language == "markdown" and prose.terms and not prose.syntax.definitions
    found = index.table(project).definitions_named("one")[0]
    assert found.file.content_hash == sha256(b"def one(): pass\n").hexdigest()


async def test_an_edit_a_deletion_and_a_new_file_are_seen_at_the_next_call(
    project: Project, open_index: Callable[..., SymbolIndex]
) -> None:
    write(project, "a.py", "def one(): pass\n")
    write(project, "b.py", "def two(): pass\n")
    index = open_index()
    await index.refresh(project)
    write(project, "a.py", "\ndef one(): pass\n", old=False)
    write(project, "c.py", "def three(): pass\n", old=False)
    (project.root / "b.py").unlink()
    report = await index.refresh(project)
    table = index.table(project)
    assert (report.files, report.parsed, report.reused) == (2, 2, 0)
    assert places(table, "one") == [("a.py", 2)] and places(table, "two") == [] and places(table, "three") == [("c.py", 1)]


async def test_an_edit_within_one_tick_of_the_clock_is_seen(project: Project, open_index: Callable[..., SymbolIndex]) -> None:
    write(project, "a.py", "def aa(): pass\n", old=False)
    index = open_index()
    await index.refresh(project)
    before = (project.root / "a.py").stat()
    write(project, "a.py", "def bb(): pass\n", old=False)
    os.utime(project.root / "a.py", ns=(before.st_atime_ns, before.st_mtime_ns))
    await index.refresh(project)
    assert places(index.table(project), "bb") == [("a.py", 1)] and places(index.table(project), "aa") == []


async def test_a_branch_switch_and_a_rename_parse_nothing_again(tmp_path: Path, open_index: Callable[..., SymbolIndex]) -> None:
    root = tmp_path / "repository"
    root.mkdir()
    project = Project("repository", root, "git")
    git(root, "init", "-q", "-b", "main")
    for number in range(6):
        write(project, f"m{number}.py", f"def f{number}(): pass\n")
    git(root, "add", ".")
    git(root, "commit", "-qm", "main")
    index = open_index()
    assert (await index.refresh(project)).parsed == 6
    git(root, "checkout", "-qb", "other")
    write(project, "m0.py", "def changed(): pass\n")
    git(root, "mv", "m1.py", "renamed.py")
    git(root, "commit", "-qam", "other")
    report = await index.refresh(project)
    assert (report.parsed, report.reused) == (1, 1)
    assert places(index.table(project), "f1") == [("renamed.py", 1)]
    git(root, "checkout", "-q", "main")
    report = await index.refresh(project)
    assert (report.files, report.parsed, report.reused) == (6, 0, 2)
    assert places(index.table(project), "f0") == [("m0.py", 1)] and places(index.table(project), "changed") == []
    git(root, "worktree", "add", "-q", "../second", "other")
    second = Project("second", tmp_path / "second", "worktree")
    assert (await index.refresh(second)).parsed == 0
    assert places(index.table(second), "changed") == [("m0.py", 1)] and places(index.table(project), "changed") == []


async def test_equal_files_are_parsed_once(project: Project, open_index: Callable[..., SymbolIndex]) -> None:
    for number in range(5):
        write(project, f"p{number}/__init__.py", "def same(): pass\n")
    index = open_index()
    report = await index.refresh(project)
    assert (report.files, report.parsed, report.reused) == (5, 1, 4) and len(places(index.table(project), "same")) == 5


async def test_another_process_finds_everything_in_the_store(
    project: Project, open_index: Callable[..., SymbolIndex], tmp_path: Path
) -> None:
    for number in range(20):
        write(project, f"m{number}.py", f"def f{number}(): pass\n")
    code = """
import anyio, sys
from pathlib import Path
from search_router.adapters.local.symbol_index import SymbolIndex
from search_router.adapters.local.symbol_store import DerivedStore
from search_router.schema import Project
async def main():
    index = SymbolIndex(DerivedStore(Path(sys.argv[2])), max_file_bytes=65536, workers=1)
    print((await index.refresh(Project('project', Path(sys.argv[1]), 'directory'))).files)
    await index.aclose()
anyio.run(main)
"""
    argv = [sys.executable, "-c", code, str(project.root), str(tmp_path / "cache")]
    both = [subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) for _ in range(2)]
    assert [process.communicate(timeout=60) for process in both] == [("20\n", "")] * 2
    report = await open_index().refresh(project)
    assert (report.files, report.parsed, report.reused) == (20, 0, 20)


async def test_two_indexes_share_one_store_at_the_same_time(project: Project, open_index: Callable[..., SymbolIndex]) -> None:
    for number in range(40):
        write(project, f"m{number}.py", f"def f{number}(): pass\n")
    indexes = [open_index(), open_index()]
    async with anyio.create_task_group() as tasks:
        for index in indexes:
            tasks.start_soon(index.refresh, project)
    assert [len(index.table(project)) for index in indexes] == [40, 40] and [index.notes for index in indexes] == [(), ()]


async def test_files_without_symbols_are_named_with_the_reason(project: Project, open_index: Callable[..., SymbolIndex]) -> None:
    write(project, "big.py", "x = 1\n" * MAX)
    write(project, "zero.py", b"a\0b")
    write(project, "junk.ts", "{[\n" * 20_000)
    write(project, "squeezed.js", "function a(b){return b};" * 400)
    write(project, "long.md", "words and words, " * 600)
    write(project, "wide.py", "def wide(): pass\n".encode("utf-16"))
    write(project, "latin.py", "def café(): pass\n".encode("latin-1"))
    write(project, "bad\udcff.py", "def odd(): pass\n")
    (project.root / "link.py").symlink_to("wide.py")
    index = open_index()
    for _ in range(2):
        report = await index.refresh(project)
        assert report.left_out == (
            LeftOut("big.py", f"larger than {MAX} bytes"),
            LeftOut("junk.ts", "it is not typescript: no part of it could be parsed"),
            LeftOut("link.py", "symlink"),
            LeftOut("squeezed.js", "minified"),
            LeftOut("zero.py", "binary"),
        )
        assert report.missing == () and report.files == 4
    table = index.table(project)
    assert places(table, "wide") and places(table, "café") and places(table, "odd") == [("bad\udcff.py", 1)]
    again = await open_index().refresh(project)
    assert ([left.path for left in again.left_out], again.parsed) == (["big.py", "junk.ts", "link.py", "squeezed.js", "zero.py"], 0), (
        "what cannot be parsed is not tried again by every process"
    )
    write(project, "zero.py", "def whole(): pass\n", old=False)
    assert "zero.py" not in [left.path for left in (await index.refresh(project)).left_out]


@pytest.mark.parametrize("cache", ["damaged", "one row damaged", "cannot be made"])
async def test_whatever_happens_to_the_store_the_symbols_are_right(
    project: Project, open_index: Callable[..., SymbolIndex], tmp_path: Path, cache: str
) -> None:
    for number in range(10):
        write(project, f"m{number}.py", f"def f{number}(): pass\n")
    directory = tmp_path / "other"
    if cache == "cannot be made":
        directory.write_text("a file")
    else:
        before = open_index(directory)
        await before.refresh(project)
        await before.aclose()
        if cache == "damaged":
            (directory / FILE_NAME).write_bytes(b"garbage" * 1000)
        else:
            with sqlite3.connect(directory / FILE_NAME) as connection:
                connection.execute("UPDATE derived SET payload = x'00' WHERE rowid = 3")
            connection.close()
    index = open_index(directory)
    report = await index.refresh(project)
    assert report.files == 10 and places(index.table(project), "f3") == [("m3.py", 1)]
    assert report.parsed == (1 if cache == "one row damaged" else 10)
    assert len(index.notes) == 1
    if cache != "cannot be made":
        assert (await open_index(directory).refresh(project)).parsed == 0


async def test_a_worker_killed_in_the_middle_leaves_no_hole(project: Project, open_index: Callable[..., SymbolIndex]) -> None:
    text = "".join(f"def g{i}(x):\n    return h{i}(x)\n" for i in range(300))
    for number in range(260):
        write(project, f"m{number:03}.py", f"def f{number}(): pass\n{text}")
    index = open_index()
    with anyio.fail_after(60):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(index.refresh, project)
            while not len(index.table(project)):
                await anyio.lowlevel.checkpoint()
            for pid in children()[:1]:
                os.kill(pid, signal.SIGKILL)
        report = await index.refresh(project)
    assert report.files == 260 and report.missing == ()
    assert all(places(index.table(project), f"f{n}") == [(f"m{n:03}.py", 1)] for n in range(260))


async def test_a_refresh_that_is_left_goes_on_and_is_shared(project: Project, open_index: Callable[..., SymbolIndex]) -> None:
    for number in range(60):
        write(project, f"m{number}.py", f"def f{number}(): pass\n" * 50)
    index = open_index()
    with anyio.move_on_after(0):
        await index.refresh(project)
    reports: list[int] = []

    async def ask() -> None:
        reports.append((await index.refresh(project)).files)

    async with anyio.create_task_group() as tasks:
        for _ in range(10):
            tasks.start_soon(ask)
    assert reports == [60] * 10


async def test_closing_ends_the_refresh_its_children_and_who_waits(project: Project, open_index: Callable[..., SymbolIndex]) -> None:
    for number in range(240):
        write(project, f"m{number}.py", f"def f{number}(): pass\n" * 20)
    index = open_index()
    failures: list[ExpertError] = []

    async def ask() -> None:
        try:
            await index.refresh(project)
        except ExpertError as error:
            failures.append(error)

    with anyio.fail_after(30):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(ask)
            while not children():
                await anyio.lowlevel.checkpoint()
            await index.aclose()
    assert [error.failure for error in failures] == [FailureClass.UNAVAILABLE] and children() == []
    await index.aclose()


async def test_a_project_that_git_cannot_list_is_an_error(tmp_path: Path, open_index: Callable[..., SymbolIndex]) -> None:
    with pytest.raises(ExpertError, match="not a git repository"):
        await open_index().refresh(Project("none", tmp_path, "git"))


async def test_definitions_of_a_file_come_by_its_bytes(project: Project, open_index: Callable[..., SymbolIndex]) -> None:
    write(project, "a.py", "class A:\n    def f(self): pass\n")
    index = open_index()
    blob = git(project.root, "hash-object", "--no-filters", "a.py")
    for _ in range(2):  # from the file, then from memory
        found = await index.definitions(project, "a.py", blob)
        assert found is not None and [d.qualified for d in found] == ["A", "A.f"]
        await index.refresh(project)
    write(project, "a.py", "class B: pass\n")
    stored = await open_index().definitions(project, "a.py", blob)
    assert stored is not None and [d.qualified for d in stored] == ["A", "A.f"]
    assert await index.definitions(project, "a.py", "00" * 20) is None
    assert await index.definitions(project, "a.md", blob) is None
