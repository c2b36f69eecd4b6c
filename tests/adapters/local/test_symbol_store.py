"""The store is a cache: shared, bounded, and never a reason to fail."""

from __future__ import annotations

import sqlite3
import threading
import time
from pathlib import Path

import pytest

from search_router.adapters.local.symbol_store import FILE_NAME, KEEP_DAYS, Derived, DerivedKey, DerivedStore, FileStamp

KEY = DerivedKey("symbols/python", "ab" * 20, "1")
ROW = Derived("cd" * 32, b"payload")


def many(count: int, size: int = 10) -> dict[DerivedKey, Derived]:
    return {DerivedKey("symbols/go", f"{i:040x}", "1"): Derived("00" * 32, bytes(size)) for i in range(count)}


def test_a_row_is_found_by_kind_blob_and_version_only(tmp_path: Path) -> None:
    store = DerivedStore(tmp_path)
    store.keep({KEY: ROW})
    others = [KEY._replace(kind="chunks/python"), KEY._replace(blob="00" * 20), KEY._replace(version="2")]
    assert store.load([KEY, *others]) == {KEY: ROW}
    assert store.notes == ()
    store.close()


def test_rows_and_stamps_outlive_the_process_that_wrote_them(tmp_path: Path) -> None:
    first = DerivedStore(tmp_path / "made" / "when missing")
    rows = many(1200)
    first.keep(rows)
    stamps = {"a/b.py": (FileStamp(1, -2, 2**63 - 1), "ab" * 20), "bad\udcff.py": (FileStamp(0, 0, 0), "00" * 20)}
    first.keep_stamps(Path("/somewhere"), stamps)
    first.close()
    second = DerivedStore(tmp_path / "made" / "when missing")
    assert second.load(rows) == rows
    assert second.stamps(Path("/somewhere")) == stamps
    second.keep_stamps(Path("/somewhere"), {}, gone=["a/b.py"])
    assert list(second.stamps(Path("/somewhere"))) == ["bad\udcff.py"]
    assert second.stamps(Path("/elsewhere")) == {}
    second.close()


def test_stores_in_many_threads_and_connections_share_one_file(tmp_path: Path) -> None:
    rows = many(400)
    stores = [DerivedStore(tmp_path) for _ in range(4)]
    parts = [dict(list(rows.items())[i::4]) for i in range(4)]
    threads = [threading.Thread(target=store.keep, args=(part,)) for store, part in zip(stores, parts, strict=True)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all(store.load(rows) == rows and store.notes == () for store in stores)
    for store in stores:
        store.close()


@pytest.mark.parametrize("damage", ["not a database", "middle", "foreign schema"])
def test_a_damaged_file_is_moved_aside_and_built_anew(tmp_path: Path, damage: str) -> None:
    store, path = DerivedStore(tmp_path), tmp_path / FILE_NAME
    rows = many(2000, 200)
    store.keep(rows)
    store.close()
    if damage == "not a database":
        path.write_bytes(b"not a database at all" * 100)
    elif damage == "middle":
        whole = path.read_bytes()
        path.write_bytes(whole[:4096] + b"\xaa" * (len(whole) - 4096))
    else:
        path.unlink()
        with sqlite3.connect(path) as connection:
            connection.executescript("CREATE TABLE derived (x); CREATE TABLE seen (y);")
        connection.close()
    again = DerivedStore(tmp_path)
    assert again.load(rows) == {}
    assert again.notes and "was damaged" in again.notes[0] and "built anew" in again.notes[0]
    assert (tmp_path / f"{FILE_NAME}.damaged").exists()
    again.keep({KEY: ROW})
    assert again.load([KEY]) == {KEY: ROW}
    again.close()


def test_a_file_that_another_process_has_renewed_is_not_moved_aside_again(tmp_path: Path) -> None:
    path = tmp_path / FILE_NAME
    late = DerivedStore(tmp_path)
    late.keep(many(2000, 200))
    late.close()
    whole = path.read_bytes()
    path.write_bytes(whole[:4096] + b"\xaa" * (len(whole) - 4096))
    late.stamps(Path("/x"))  # opened: the first page is whole
    other = DerivedStore(tmp_path)
    other.load(many(2000))
    other.keep({KEY: ROW})
    late.load(many(2000))
    assert late.load([KEY]) == {KEY: ROW} == other.load([KEY])
    late.close()
    other.close()


def test_a_directory_that_cannot_be_made_is_said_and_does_no_harm(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    store = DerivedStore(tmp_path / "file" / "cache")
    store.keep({KEY: ROW})
    assert store.load([KEY]) == {} and store.stamps(tmp_path) == {}
    assert len(store.notes) == 1 and "in memory" in store.notes[0]
    store.close()


def test_a_full_store_keeps_what_it_has_and_says_so(tmp_path: Path) -> None:
    store = DerivedStore(tmp_path, max_bytes=256 * 1024)
    store.keep({KEY: ROW})
    store.keep(many(500, 4000))
    assert store.load([KEY]) == {KEY: ROW}
    assert len(store.notes) == 1 and "full" in store.notes[0]
    store.close()


def test_a_store_that_another_holds_for_long_is_said_and_works_again_after(tmp_path: Path) -> None:
    store = DerivedStore(tmp_path, busy_ms=20)
    store.keep({KEY: ROW})
    other = sqlite3.connect(tmp_path / FILE_NAME, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    store.keep(many(1))
    assert "locked" in store.notes[0] and store.load(many(1)) == {}
    other.execute("ROLLBACK")
    other.close()
    store.keep(many(1))
    assert store.load(many(1)) == many(1)
    store.close()


def test_rows_that_nobody_uses_are_forgotten_once_a_day(tmp_path: Path) -> None:
    store = DerivedStore(tmp_path)
    store.keep(many(2) | {KEY: ROW})
    store.keep_stamps(tmp_path, {"a.py": (FileStamp(1, 1, 1), "ab" * 20)})
    store.keep_stamps(tmp_path / "gone", {"a.py": (FileStamp(1, 1, 1), "ab" * 20)})
    store.close()
    today = int(time.time()) // 86_400
    with sqlite3.connect(tmp_path / FILE_NAME) as connection:
        connection.execute("UPDATE derived SET day = ?", (today - KEEP_DAYS,))
        connection.execute("PRAGMA user_version = 0")
    connection.close()
    reader = DerivedStore(tmp_path)
    reader.mark_used([KEY])
    reader.close()
    with sqlite3.connect(tmp_path / FILE_NAME) as connection:
        connection.execute("UPDATE derived SET day = day - 1")
        connection.execute("PRAGMA user_version = 0")
    connection.close()
    after = DerivedStore(tmp_path)
    assert after.load([KEY, *many(2)]) == {KEY: ROW}
    assert after.stamps(tmp_path) != {} and after.stamps(tmp_path / "gone") == {}
    after.close()
