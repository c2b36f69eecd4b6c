"""The one writer of the flywheel's file: never in the way, never in two minds, never silent about what it lost."""

from __future__ import annotations

import os
import sqlite3
import stat
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from search_router.router.enrich.database import (
    APPLICATION_ID,
    DAY_US,
    SCHEMA_VERSION,
    EnrichUnavailable,
    Keep,
    cut_back,
    open_for_reading,
    open_for_writing,
    transaction,
)
from search_router.router.enrich.owner import Owner


def question(database: sqlite3.Connection, name: str, time_us: int = 1) -> None:
    database.execute("INSERT OR REPLACE INTO questions VALUES (?, ?, ?)", (name, time_us, "{}"))


def names(path: Path) -> list[str]:
    database = open_for_reading(path)
    assert database is not None
    try:
        return [name for (name,) in database.execute("SELECT receipt_id FROM questions ORDER BY receipt_id")]
    finally:
        database.close()


@pytest.mark.anyio
async def test_what_is_submitted_is_in_the_file_after_a_flush_and_the_file_is_its_owners_alone(tmp_path: Path) -> None:
    owner = Owner(tmp_path / "enrich.sqlite", clock=lambda: 1)
    assert not owner.path.exists()
    assert owner.submit(lambda db: question(db, "a"))
    await owner.flush()
    assert names(owner.path) == ["a"]
    await owner.aclose()
    assert stat.S_IMODE(owner.path.stat().st_mode) == 0o600
    assert not owner.submit(lambda db: question(db, "b"))


@pytest.mark.anyio
async def test_what_the_queue_cannot_hold_is_dropped_counted_and_told(tmp_path: Path) -> None:
    owner = Owner(tmp_path / "enrich.sqlite", clock=lambda: 1, queue=3)
    taken = [owner.submit(lambda db, n=n: question(db, f"q{n}")) for n in range(5)]
    assert taken == [True, True, True, False, False]
    await owner.flush()
    assert names(owner.path) == ["q0", "q1", "q2"]
    assert owner.notes == ("2 records of cache, hints and events were dropped: the writer was behind or locked out.",)
    await owner.aclose()


@pytest.mark.anyio
@pytest.mark.parametrize("damage", ["rubbish", "other", "newer", "folder", "cut"])
async def test_a_file_that_cannot_be_used_switches_the_flywheel_off_with_its_reason(tmp_path: Path, damage: str) -> None:
    path = tmp_path / "enrich.sqlite"
    match damage:
        case "rubbish":
            path.write_bytes(b"this is no database, whatever its name says" * 100)
        case "other":
            with sqlite3.connect(path) as other:
                other.execute("PRAGMA application_id=7")
            other.close()
        case "newer":
            open_for_writing(path).close()
            with sqlite3.connect(path) as newer:
                newer.execute(f"PRAGMA user_version={SCHEMA_VERSION + 1}")
            newer.close()
        case "folder":
            path.mkdir()
        case _:
            open_for_writing(path).close()
            path.write_bytes(path.read_bytes()[:5000])
    owner = Owner(path, clock=lambda: 1)
    owner.submit(lambda db: question(db, "a"))
    await owner.flush()
    assert owner.fault is not None
    assert str(path) in str(owner.fault) and owner.fault.remedy
    assert not owner.submit(lambda db: question(db, "b"))
    assert owner.reader() is None
    await owner.aclose()


def test_rows_that_are_too_many_or_too_old_go_and_others_stay(tmp_path: Path) -> None:
    database = open_for_writing(tmp_path / "enrich.sqlite")
    now = 100 * DAY_US
    with transaction(database):
        for n in range(10):
            question(database, f"q{n}", now - n * DAY_US)
        assert cut_back(database, now, (Keep("questions", "time_us", 5, 3),)) == 6
    assert [name for (name,) in database.execute("SELECT receipt_id FROM questions ORDER BY 1")] == ["q0", "q1", "q2", "q3"]
    database.close()


def test_two_processes_write_one_file_without_loss(tmp_path: Path) -> None:
    script = textwrap.dedent("""
        import sys, anyio
        from pathlib import Path
        from search_router.router.enrich.owner import Owner
        async def work():
            owner = Owner(Path(sys.argv[1]), clock=lambda: 1)
            for n in range(200):
                name = f"{sys.argv[2]}{n:03}"
                assert owner.submit(lambda db, name=name: db.execute("INSERT INTO questions VALUES (?, 1, '{}')", (name,)))
                if n % 10 == 9:
                    await owner.flush()
            await owner.aclose()
            assert owner.tally.written == 200, owner.notes
        anyio.run(work)
    """)
    path = tmp_path / "enrich.sqlite"
    children = [subprocess.Popen([sys.executable, "-c", script, str(path), name], env=os.environ) for name in "ab"]
    assert [child.wait(60) for child in children] == [0, 0]
    assert names(path) == [f"{name}{n:03}" for name in "ab" for n in range(200)]
    database = open_for_reading(path)
    assert database is not None
    assert database.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    assert database.execute("SELECT application_id FROM pragma_application_id").fetchone() == (APPLICATION_ID,)
    database.close()


@pytest.mark.anyio
async def test_a_writer_that_is_locked_out_loses_only_its_records_and_says_so(tmp_path: Path) -> None:
    path = tmp_path / "enrich.sqlite"
    other = open_for_writing(path)
    owner = Owner(path, clock=lambda: 1, wait_seconds=0.05)
    owner.submit(lambda db: question(db, "first"))
    await owner.flush()
    with transaction(other):
        question(other, "theirs")
        owner.submit(lambda db: question(db, "lost"))
        await owner.flush()
    owner.submit(lambda db: question(db, "later"))
    await owner.flush()
    assert names(path) == ["first", "later", "theirs"]
    assert owner.fault is None and owner.tally.locked_out == 1
    await owner.aclose()
    other.close()


def test_a_link_in_its_place_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "enrich.sqlite").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(EnrichUnavailable):
        open_for_writing(tmp_path / "enrich.sqlite")
    assert not (tmp_path / "elsewhere").exists()
