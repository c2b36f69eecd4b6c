"""What happens to machines: killed processes, broken and full disks, huge and restless files. The index is right, or says what is not."""

from __future__ import annotations

import os
import shutil
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import AsyncGenerator, Callable
from contextlib import AsyncExitStack
from pathlib import Path

import anyio
import pytest

from search_router.adapters.local.index_verify import verify_index
from search_router.adapters.local.symbol_index import SymbolIndex
from search_router.adapters.local.symbol_store import FILE_NAME, DerivedStore
from search_router.router.opening import open_router
from search_router.schema import EmptyReason, Project, Status
from tests.repositories import make_repository
from tests.scripted_router import environ

pytestmark = pytest.mark.anyio
MAX = 1 << 16
FULL = 64 * 1024
REFRESH = """
import anyio, resource, sys
from pathlib import Path
from search_router.adapters.local.symbol_index import SymbolIndex
from search_router.adapters.local.symbol_store import DerivedStore
from search_router.schema import Project
if len(sys.argv) > 3:
    resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[3]), int(sys.argv[3])))
async def main():
    index = SymbolIndex(DerivedStore(Path(sys.argv[2])), max_file_bytes=65536, workers=2)
    report = await index.refresh(Project('project', Path(sys.argv[1]), 'directory'))
    print(report.files, len(index.table(Project('project', Path(sys.argv[1]), 'directory')).definitions_named('f7')), *index.notes)
    await index.aclose()
anyio.run(main)
"""


@pytest.fixture
async def open_index(tmp_path: Path) -> AsyncGenerator[Callable[..., SymbolIndex]]:
    """Makes indexes on one store (or another directory) and closes them."""
    async with AsyncExitStack() as stack:

        def make(directory: Path = tmp_path / "cache") -> SymbolIndex:
            index = SymbolIndex(DerivedStore(directory), max_file_bytes=MAX, workers=2)
            stack.push_async_callback(index.aclose)
            return index

        yield make


def make_project(root: Path, count: int, lines: int = 1) -> Project:
    """So many files: `m7.py` defines `f7`."""
    root.mkdir()
    for number in range(count):
        (root / f"m{number}.py").write_text(f"def f{number}(): pass\n" + f"value_{number} = other(1)\n" * (lines - 1))
    return Project("project", root, "directory")


def refresh_process(project: Project, cache: Path, *more: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", REFRESH, str(project.root), str(cache), *more]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True)


def rows_in(cache: Path) -> int:
    try:
        with sqlite3.connect(f"{(cache / FILE_NAME).as_uri()}?mode=ro", uri=True) as connection:
            count = connection.execute("SELECT count(*) FROM derived").fetchone()[0]
        connection.close()
    except sqlite3.Error:
        return 0
    return count


def workers_reading(root: Path) -> list[int]:
    """Extraction workers anywhere on this machine whose parent has died."""
    found: list[int] = []
    for entry in Path("/proc").iterdir():
        try:
            if entry.name.isdigit() and b"extract_worker" in (entry / "cmdline").read_bytes():
                environment = (entry / "environ").read_bytes()
                found += [int(entry.name)] if os.fsencode(str(root)) in environment else []
        except OSError:
            continue
    return found


async def test_an_indexing_process_killed_half_way_leaves_what_it_had_and_no_worker(
    tmp_path: Path, open_index: Callable[..., SymbolIndex]
) -> None:
    project = make_project(tmp_path / "project", 900, lines=40)
    os.environ["TEST_INDEX_ROOT"] = str(tmp_path)  # how the workers of this test are told from others
    try:
        process = refresh_process(project, tmp_path / "cache")
    finally:
        del os.environ["TEST_INDEX_ROOT"]
    with anyio.fail_after(60):
        while not rows_in(tmp_path / "cache"):
            assert process.poll() is None, process.communicate()
            await anyio.sleep(0.005)
    process.kill()
    process.communicate()
    kept = rows_in(tmp_path / "cache")
    index = open_index()
    report = await index.refresh(project)
    assert (report.files, report.parsed + report.reused, report.missing, index.notes) == (900, 900, (), ())
    assert 0 < kept <= report.reused and report.parsed > 0
    assert (await verify_index((project,), index.store, max_bytes=MAX, sample=100, seed=0, repair=False)).sound
    with anyio.fail_after(10):
        while workers_reading(tmp_path):
            await anyio.sleep(0.01)


async def test_two_processes_that_index_the_same_tree_at_once_both_get_it_right(
    tmp_path: Path, open_index: Callable[..., SymbolIndex]
) -> None:
    project = make_project(tmp_path / "project", 260)
    both = [refresh_process(project, tmp_path / "cache") for _ in range(2)]
    assert [process.communicate(timeout=90) for process in both] == [("260 1\n", "")] * 2
    index = open_index()
    assert (await index.refresh(project)).parsed == 0
    assert (await verify_index((project,), index.store, max_bytes=MAX, sample=None, seed=0, repair=False)).compared == 260


@pytest.mark.parametrize("damage", ["truncated", "random", "empty", "a directory", "tables of another program"])
async def test_whatever_stands_where_the_index_was_the_answer_is_right(
    tmp_path: Path, open_index: Callable[..., SymbolIndex], damage: str
) -> None:
    project = make_project(tmp_path / "project", 30)
    before = open_index()
    await before.refresh(project)
    await before.aclose()
    path = tmp_path / "cache" / FILE_NAME
    whole = path.read_bytes()
    path.unlink()
    if damage == "truncated":
        path.write_bytes(whole[: len(whole) // 3])
    elif damage == "random":
        path.write_bytes(os.urandom(len(whole)))
    elif damage == "empty":
        path.touch()
    elif damage == "a directory":
        path.mkdir()
    else:
        with sqlite3.connect(path) as connection:
            connection.executescript("CREATE TABLE derived (x); CREATE TABLE seen (y); INSERT INTO derived VALUES (1)")
        connection.close()
    index = open_index()
    report = await index.refresh(project)
    assert (report.files, report.missing) == (30, ()) and len(index.table(project).definitions_named("f7")) == 1
    assert len(index.notes) == (0 if damage == "empty" else 1), index.notes
    again = await open_index().refresh(project)
    assert (again.files, again.parsed) == (30, 30 if damage == "a directory" else 0)


def test_a_full_disk_is_said_and_the_symbols_are_right(tmp_path: Path) -> None:
    project = make_project(tmp_path / "project", 300, lines=30)
    out, err = refresh_process(project, tmp_path / "cache", str(FULL)).communicate(timeout=60)
    assert out.startswith("300 1 ") and "kept in memory" in out and err == "", (out, err)


@pytest.mark.skipif(os.geteuid() != 0 or not shutil.which("mount"), reason="mounts a file system")
async def test_a_file_system_that_fills_up_is_said_and_the_symbols_are_right(
    tmp_path: Path, open_index: Callable[..., SymbolIndex]
) -> None:
    project = make_project(tmp_path / "project", 300, lines=30)
    small = tmp_path / "small"
    small.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={FULL}", "tmpfs", str(small)], capture_output=True, check=False)
    if mounted.returncode != 0:
        pytest.skip("no right to mount")
    try:
        index = open_index(small)
        report = await index.refresh(project)
        assert (report.files, report.missing) == (300, ()) and len(index.table(project).definitions_named("f7")) == 1
        assert index.notes and all("memory" in note for note in index.notes)
        await index.aclose()
    finally:
        subprocess.run(["umount", str(small)], check=True)


async def test_a_file_that_never_rests_is_read_whole_or_not_at_all(tmp_path: Path, open_index: Callable[..., SymbolIndex]) -> None:
    project = make_project(tmp_path / "project", 3)
    restless = project.root / "restless.py"
    versions = [f"def version_{n}(): pass\n" + "x = 1\n" * (500 * n) for n in range(4)]
    restless.write_text(versions[0])
    stop = threading.Event()

    def rewrite() -> None:
        number = 0
        while not stop.is_set():
            number += 1
            restless.write_text(versions[number % 4])

    index = open_index()
    writer = threading.Thread(target=rewrite)
    writer.start()
    try:
        for _ in range(25):
            report = await index.refresh(project)
            assert report.files + len(report.missing) + len(report.left_out) in (3, 4)
            file = index.table(project).get("restless.py")
            assert file is None or sum(d.kind == "function" for d in file.syntax.definitions) <= 1
    finally:
        stop.set()
        writer.join()
    restless.write_text("def at_rest(): pass\n")
    await index.refresh(project)
    assert [found.file.path for found in index.table(project).definitions_named("at_rest")] == ["restless.py"]


async def test_one_file_of_half_a_gigabyte_is_left_out_with_its_reason_and_costs_no_time(tmp_path: Path) -> None:
    root = make_repository(tmp_path / "work", {"a.py": "def zebra_small(): pass\n"})
    with (root / "huge.py").open("wb") as huge:
        huge.write(b"def zebra_huge(): pass\n")
        huge.truncate(500 * 2**20)
    async with open_router(roots=[root], environ=environ(tmp_path)) as router:
        began = time.monotonic()
        answer = await router.search({"question": "zebra_small"})
        assert [item.path for item in answer.evidence] == ["a.py"] and time.monotonic() - began < 10
        assert any("huge.py" in note and "larger than" in note for note in answer.notes), answer.notes
        nothing = await router.search({"question": "zebra_huge"})
        assert nothing.status is Status.EMPTY and nothing.empty_reason is EmptyReason.NO_MATCHES
        assert any("huge.py" in note for note in nothing.notes), "a reader must learn that it was not looked at"


@pytest.mark.slow
@pytest.mark.timeout(900)
async def test_a_hundred_thousand_files_are_indexed_and_then_answered_at_once(
    tmp_path: Path, open_index: Callable[..., SymbolIndex]
) -> None:
    root = tmp_path / "project"
    for number in range(100_000):
        folder = root / f"d{number // 500}"
        if number % 500 == 0:
            folder.mkdir(parents=True)
        (folder / f"m{number}.py").write_text(f"def f{number}(): pass\n")
    project = Project("project", root, "directory")
    index = open_index()
    with anyio.move_on_after(1.0):
        await index.refresh(project)
    report = await index.refresh(project)
    assert (report.files, report.missing) == (100_000, ())
    assert [found.file.path for found in index.table(project).definitions_named("f99999")] == ["d199/m99999.py"]
    await anyio.sleep(2.1)  # what was written within two seconds is read once more
    await index.refresh(project)
    began = time.monotonic()
    assert (await index.refresh(project)).parsed == 0 and time.monotonic() - began < 10
