"""Care of the file that the index is kept in: how large it is, which rows are damaged, and deleting what no work tree has any more.

Everything here blocks: call it in a thread.
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
import time
import zlib
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from search_router.adapters.local.edge_packing import raw_edges
from search_router.adapters.local.store_opening import open_to_read
from search_router.adapters.local.symbol_packing import DamagedPayload, split_payload
from search_router.adapters.local.symbol_state import current_names
from search_router.adapters.local.symbol_store import BUSY_MS, Derived, DerivedKey, DerivedStore

DAY_SECONDS: Final = 86_400
_PIECES: Final = ("", "-wal", ".damaged")
_TOLD_PROBLEMS: Final = 10


@dataclass(frozen=True, slots=True)
class StoreSummary:
    """The store as it is: `outdated` rows were made by another version, `unused` ones are of contents that no known work tree has.

    `state` is `in use`, `read-only` or `unusable`: then the counts say nothing, and the store's notes say why.
    """

    path: Path
    bytes: int
    rows: int
    outdated: int
    unused: int
    roots: tuple[tuple[Path, int], ...]
    state: str


@dataclass(frozen=True, slots=True)
class Collected:
    """What `collect_unused` did."""

    deleted: int
    kept: int
    bytes_before: int
    bytes_after: int


def parts_of(row: Derived) -> tuple[bytes, ...] | None:
    """The parts of a row of symbols as they were before compression; None for a damaged row."""
    try:
        syntax, terms, edges = split_payload(row.payload)
        return zlib.decompress(syntax), zlib.decompress(terms), *raw_edges(edges)
    except (DamagedPayload, zlib.error):
        return None


def bytes_on_disk(store: DerivedStore) -> int:
    """Of the file, what SQLite keeps beside it, and a damaged file that was moved aside."""
    total = 0
    for piece in _PIECES:
        with contextlib.suppress(OSError):
            total += store.path.with_name(store.path.name + piece).stat().st_size
    return total


def summarise_store(store: DerivedStore) -> StoreSummary:
    """Counts, without reading any row's content. Zeros where the store cannot be used; its notes say why."""

    def read(connection: sqlite3.Connection) -> StoreSummary:
        names = connection.execute("SELECT kind, version, count(*) FROM derived GROUP BY kind, version").fetchall()
        unused = connection.execute("SELECT count(*) FROM derived WHERE blob NOT IN (SELECT blob FROM seen)").fetchone()[0]
        roots = connection.execute("SELECT root, count(*) FROM seen GROUP BY root ORDER BY root").fetchall()
        current = current_names()
        ours = {kind for kind, _ in current}
        outdated = sum(count for kind, version, count in names if kind in ours and (kind, version) not in current)
        counted = tuple((Path(os.fsdecode(root)), files) for root, files in roots)
        state = "read-only" if store.is_read_only else "in use"
        return StoreSummary(store.path, bytes_on_disk(store), sum(count for *_, count in names), outdated, unused, counted, state)

    store.note_space()
    return store.run(read, StoreSummary(store.path, bytes_on_disk(store), 0, 0, 0, (), "unusable"))


def collect_unused(store: DerivedStore, *, unused_days: int) -> Collected | None:
    """Delete rows that nobody used for so many days and whose content no known work tree has, or that another version made.

    A work tree is known when it was indexed and its directory is still there; what it had when it was indexed last counts. The file is
    then made as small as it can be. None when the store could not do it, because another process holds it or it cannot be written; its
    notes say which.
    """
    before = bytes_on_disk(store)

    def collect(connection: sqlite3.Connection) -> tuple[int, int]:
        for (root,) in connection.execute("SELECT DISTINCT root FROM seen").fetchall():
            if not Path(os.fsdecode(root)).is_dir():
                connection.execute("DELETE FROM seen WHERE root = ?", (root,))
        connection.execute("CREATE TEMP TABLE IF NOT EXISTS current (kind TEXT, version TEXT)")
        connection.execute("DELETE FROM temp.current")
        connection.executemany("INSERT INTO temp.current VALUES (?, ?)", sorted(current_names()))
        deleted = connection.execute(
            """DELETE FROM derived WHERE day <= ? AND (
                blob NOT IN (SELECT blob FROM seen)
                OR (kind IN (SELECT kind FROM temp.current) AND (kind, version) NOT IN (SELECT kind, version FROM temp.current)))""",
            (int(time.time()) // DAY_SECONDS - unused_days,),
        ).rowcount
        connection.execute("VACUUM")
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        return deleted, connection.execute("SELECT count(*) FROM derived").fetchone()[0]

    done = store.run(collect, None, writes=True)
    if done is None:
        return None
    with contextlib.suppress(FileNotFoundError, IsADirectoryError, PermissionError):  # it may not be ours: what lay there was moved, too
        store.path.with_name(f"{store.path.name}.damaged").unlink()
    return Collected(*done, before, bytes_on_disk(store))


def damaged_rows(store: DerivedStore) -> tuple[int, tuple[DerivedKey, ...]]:
    """(rows of symbols, those whose checksum does not fit). Reads the whole store."""

    def read(connection: sqlite3.Connection) -> tuple[int, tuple[DerivedKey, ...]]:
        found: list[DerivedKey] = []
        count = 0
        rows = connection.execute("SELECT kind, blob, version, payload FROM derived WHERE kind GLOB 'symbols/*' ORDER BY rowid")
        for kind, blob, version, payload in rows:
            count += 1
            if not isinstance(payload, bytes) or parts_of(Derived("", payload)) is None:
                found.append(DerivedKey(kind, blob.hex(), version))
        return count, tuple(found)

    return store.run(read, (0, ()))


def integrity_problems(store: DerivedStore) -> tuple[str, ...]:
    """What SQLite says of its file, read without touching it; empty for a sound file, or none at all."""
    if not os.path.lexists(store.path):
        return ()
    try:
        with contextlib.closing(open_to_read(store.path, busy_ms=BUSY_MS)) as connection:
            rows: Iterable[tuple[str]] = connection.execute(f"PRAGMA integrity_check({_TOLD_PROBLEMS})").fetchall()
    except sqlite3.Error as error:
        return (str(error),)
    return tuple(text for (text,) in rows if text != "ok")
