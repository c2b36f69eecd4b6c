"""The index can be looked at, cleaned and checked, and what is wrong in it is found and mended."""

from __future__ import annotations

import sqlite3
import zlib
from collections.abc import AsyncGenerator, Iterator
from pathlib import Path

import pytest

from search_router.adapters.local.index_care import collect_unused, integrity_problems, summarise_store
from search_router.adapters.local.index_survey import NOT_TEXT, ProjectIndex, survey_index
from search_router.adapters.local.index_verify import Verified, verify_index
from search_router.adapters.local.left_out import LeftOut
from search_router.adapters.local.symbol_index import SymbolIndex
from search_router.adapters.local.symbol_packing import join_payload, pack_syntax, split_payload, unpack_syntax
from search_router.adapters.local.symbol_store import Derived, DerivedKey, DerivedStore
from search_router.schema import Project
from tests.repositories import commit_all, git, make_repository, write_files

pytestmark = pytest.mark.anyio
MAX = 1 << 16
FILES = {f"m{number}.py": f"def f{number}():\n    return {number}\n" for number in range(12)} | {"notes.md": "# notes\n"}


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project("shop", make_repository(tmp_path / "shop", FILES), "git")


@pytest.fixture
def store(tmp_path: Path) -> Iterator[DerivedStore]:
    made = DerivedStore(tmp_path / "cache")
    yield made
    made.close()


@pytest.fixture
async def index(tmp_path: Path) -> AsyncGenerator[SymbolIndex]:
    made = SymbolIndex(DerivedStore(tmp_path / "cache"), max_file_bytes=MAX, workers=1)
    yield made
    await made.aclose()


async def survey(project: Project, store: DerivedStore) -> ProjectIndex:
    return await survey_index(project, store, max_bytes=MAX)


async def verify(project: Project, store: DerivedStore, *, repair: bool = False) -> Verified:
    return await verify_index((project,), store, max_bytes=MAX, sample=None, seed=0, repair=repair)


def change(store: DerivedStore, statement: str, *values: object) -> int:
    """Change the store behind everybody's back; how many rows were touched."""
    with sqlite3.connect(store.path) as connection:
        touched = connection.execute(statement, values).rowcount
    connection.close()
    return touched


async def test_every_listed_path_is_indexed_waiting_damaged_or_left_out_for_a_reason(
    project: Project, index: SymbolIndex, store: DerivedStore
) -> None:
    before = await survey(project, store)
    assert (before.indexed, len(before.waiting), before.left_out) == (0, 13, ())
    write_files(
        project.root,
        {"big.py": "x = 1\n" * MAX, "squeezed.js": "function a(b){return b};" * 400, "tests/test_a.py": "def test_a(): pass\n"},
    )
    write_files(project.root, {"junk.ts": "{[\n" * 20_000, "image.png": "png"})
    (project.root / "zero.py").write_bytes(b"a\0b")
    (project.root / "link.py").symlink_to("m1.py")
    await index.refresh(project)
    write_files(project.root, {"m1.py": "def other(): pass\n", "new.py": "def new(): pass\n"})
    assert change(
        store, "UPDATE derived SET payload = x'00' WHERE rowid = (SELECT max(rowid) FROM derived WHERE kind = 'symbols/markdown')"
    )
    found = await survey(project, store)
    assert found.waiting == ("m1.py", "new.py") and found.damaged == ("notes.md",) and found.indexed == 12
    assert found.left_out == (
        LeftOut("big.py", f"larger than {MAX} bytes"),
        LeftOut("image.png", NOT_TEXT),
        LeftOut("junk.ts", "it is not typescript: no part of it could be parsed"),
        LeftOut("link.py", "symlink"),
        LeftOut("squeezed.js", "minified"),
        LeftOut("zero.py", "binary"),
    )
    listed = git(project.root, "ls-files", "--cached", "--others", "--exclude-standard").splitlines()
    assert found.indexed + len(found.waiting) + len(found.damaged) + len(found.left_out) == len(listed)
    assert found.languages == {"python": 14, "markdown": 1} and found.damped == {"test": 1}
    await index.refresh(project)
    assert (await survey(project, store)).waiting == ()


async def test_what_no_work_tree_has_any_more_is_deleted_when_it_was_unused_for_long(
    project: Project, index: SymbolIndex, store: DerivedStore
) -> None:
    await index.refresh(project)
    (project.root / "m0.py").unlink()
    await index.refresh(project)
    change(store, "UPDATE derived SET version = 'old' WHERE kind = 'symbols/markdown'")
    assert store.keep({DerivedKey("vectors/any", "ab" * 20, "7"): Derived("00" * 32, b"of another expert")}) is None
    summary = summarise_store(store)
    assert (summary.rows, summary.outdated, summary.unused) == (14, 1, 2) and summary.roots == ((project.root, 12),)
    kept = collect_unused(store, unused_days=7)
    assert kept is not None and (kept.deleted, kept.kept) == (0, 14)
    change(store, "UPDATE derived SET day = day - 7")
    done = collect_unused(store, unused_days=7)
    assert done is not None and (done.deleted, done.kept) == (3, 11) and done.bytes_after <= done.bytes_before
    report = await SymbolIndex(store, max_file_bytes=MAX, workers=1).refresh(project)
    assert (report.parsed, report.reused) == (1, 11), "only the outdated row is made anew"


async def test_a_second_work_tree_keeps_what_the_first_has_lost(
    project: Project, index: SymbolIndex, store: DerivedStore, tmp_path: Path
) -> None:
    git(project.root, "worktree", "add", "--quiet", "-b", "other", str(tmp_path / "other"))
    other = Project("other", tmp_path / "other", "worktree")
    await index.refresh(project)
    await index.refresh(other)
    (project.root / "m0.py").unlink()
    commit_all(project.root, "without m0")
    await index.refresh(project)
    done = collect_unused(store, unused_days=0)
    assert done is not None and (done.deleted, done.kept) == (0, 13)
    git(project.root, "worktree", "remove", "--force", str(tmp_path / "other"))
    done = collect_unused(store, unused_days=0)
    assert done is not None and (done.deleted, done.kept) == (1, 12)


async def test_deleting_makes_the_file_smaller(store: DerivedStore) -> None:
    store.keep({DerivedKey("symbols/go", f"{i:040x}", "1"): Derived("00" * 32, bytes(4000)) for i in range(500)})
    done = collect_unused(store, unused_days=0)
    assert done is not None and done.deleted == 500 and done.bytes_after < done.bytes_before / 10


async def test_a_store_that_another_process_holds_is_said_and_not_called_clean(store: DerivedStore) -> None:
    store.keep({DerivedKey("symbols/go", "00" * 20, "1"): Derived("00" * 32, b"x")})
    hurried = DerivedStore(store.path.parent, busy_ms=20)
    other = sqlite3.connect(store.path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    assert collect_unused(hurried, unused_days=0) is None and "locked" in hurried.notes[0]
    other.execute("ROLLBACK")
    other.close()
    hurried.close()


async def test_a_sound_index_is_called_sound(project: Project, index: SymbolIndex, store: DerivedStore) -> None:
    assert (await verify(project, store)).sound, "an index that is not there yet"
    await index.refresh(project)
    found = await verify(project, store)
    assert found.sound and (found.rows, found.compared, found.damaged, found.different) == (13, 13, (), ())
    sampled = await verify_index((project,), store, max_bytes=MAX, sample=5, seed=1, repair=False)
    assert sampled.compared == 5


async def test_a_damaged_row_and_one_that_says_something_else_are_found_and_made_anew(
    project: Project, index: SymbolIndex, store: DerivedStore
) -> None:
    await index.refresh(project)
    blob = bytes.fromhex(git(project.root, "hash-object", "m3.py"))
    row = sqlite3.connect(store.path).execute("SELECT payload FROM derived WHERE blob = ?", (blob,)).fetchone()[0]
    syntax, *others = split_payload(row)
    lying = unpack_syntax(syntax)
    other = join_payload(pack_syntax(type(lying)((), lying.names, lying.starts, lying.uses)), *others)
    assert change(store, "UPDATE derived SET payload = ? WHERE blob = ?", other, blob) == 1
    blob = bytes.fromhex(git(project.root, "hash-object", "m4.py"))
    assert change(store, "UPDATE derived SET payload = substr(payload, 1, 20) WHERE blob = ?", blob) == 1
    found = await verify(project, store)
    assert not found.sound and found.different == ("shop: m3.py",) and [key.blob for key in found.damaged] == [blob.hex()]
    assert (await verify(project, store, repair=True)).sound
    again = SymbolIndex(DerivedStore(store.path.parent), max_file_bytes=MAX, workers=1)
    report = await again.refresh(project)
    assert (report.parsed, report.reused, again.notes) == (2, 11, ())
    await again.aclose()
    assert (await verify(project, store)).sound


@pytest.mark.parametrize("damage", ["page", "not a database", "no table"])
async def test_a_damaged_file_is_found_without_touching_it_and_set_aside_on_demand(
    project: Project, index: SymbolIndex, store: DerivedStore, damage: str
) -> None:
    await index.refresh(project)
    await index.aclose()
    whole = store.path.read_bytes()
    if damage == "page":
        store.path.write_bytes(whole[:4096] + zlib.compress(bytes(1000)) * 20 + whole[8192:])
    elif damage == "not a database":
        store.path.write_bytes(b"not a database" * 1000)
    else:
        change(store, "DROP TABLE seen")
    hurt = store.path.read_bytes()
    assert integrity_problems(store) and not (await verify(project, store)).sound
    assert store.path.read_bytes() == hurt
    assert (await verify(project, store, repair=True)).sound and not store.path.exists()
    assert (await SymbolIndex(store, max_file_bytes=MAX, workers=1).refresh(project)).parsed == 13
    assert (await verify(project, store)).sound
