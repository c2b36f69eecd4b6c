"""Opening the file of a `DerivedStore`: to read and write, or, where it cannot be written, to read what is in it."""

from __future__ import annotations

import contextlib
import os
import sqlite3
from pathlib import Path
from typing import Final, NamedTuple
from urllib.parse import quote

from search_router.plain_files import check_database

PAGE: Final = 4096
READ_ONLY_CODES: Final = frozenset({sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN})
"""What a directory or a file system gives that must not be written."""
TABLES: Final = frozenset({"derived", "seen"})
_SCHEMA: Final = """
CREATE TABLE IF NOT EXISTS derived (
    kind TEXT NOT NULL, blob BLOB NOT NULL, version TEXT NOT NULL,
    content_hash BLOB NOT NULL, payload BLOB NOT NULL, day INTEGER NOT NULL,
    PRIMARY KEY (kind, blob, version));
CREATE TABLE IF NOT EXISTS seen (
    root BLOB NOT NULL, path BLOB NOT NULL, size INTEGER NOT NULL, mtime_ns INTEGER NOT NULL, inode INTEGER NOT NULL, blob BLOB NOT NULL,
    PRIMARY KEY (root, path)) WITHOUT ROWID;
"""


class Opened(NamedTuple):
    """The connection, and whether it can only read."""

    connection: sqlite3.Connection
    read_only: bool


def open_store(path: Path, *, busy_ms: int, max_pages: int) -> Opened:
    """Open the store's file, made where it is missing; one that is there and cannot be written is opened to be read.

    Raises:
        sqlite3.Error: neither is possible, or what is there is no store.
        OSError: its directory cannot be made.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    check_database(path)
    try:
        return Opened(_open_for_writing(path, busy_ms, max_pages), False)
    except sqlite3.OperationalError as error:
        if error.sqlite_errorcode & 0xFF not in READ_ONLY_CODES or not path.exists():
            raise
        try:
            return Opened(open_to_read(path, busy_ms=busy_ms), True)
        except sqlite3.Error:
            raise error from None


def open_to_read(path: Path, *, busy_ms: int) -> sqlite3.Connection:
    """Open a store's file without touching it. Raises sqlite3.Error, also where there is none or it is no store."""
    check_database(path)
    uri = f"file:{quote(os.fspath(path.absolute()))}?mode=ro"
    if not is_writable(path.parent) and not _has_bytes(path.with_name(f"{path.name}-wal")):
        # SQLite cannot put its shared memory beside the file; and with nothing in a write-ahead log there is nobody whose rows are missed.
        uri += "&immutable=1"
    connection = sqlite3.connect(uri, uri=True, isolation_level=None, check_same_thread=False, timeout=busy_ms / 1000)
    try:
        names = {name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
        if missing := sorted(TABLES - names):
            raise sqlite3.DatabaseError(f"there is no table {', '.join(missing)}")
    except BaseException:
        connection.close()
        raise
    return connection


def _open_for_writing(path: Path, busy_ms: int, max_pages: int) -> sqlite3.Connection:
    connection = sqlite3.connect(path, isolation_level=None, check_same_thread=False, timeout=busy_ms / 1000)
    try:
        connection.execute(f"PRAGMA max_page_count = {max_pages}")
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = NORMAL")
        if connection.execute("SELECT count(*) FROM sqlite_master WHERE name IN ('derived', 'seen')").fetchone() != (2,):
            connection.executescript(_SCHEMA)
        if not (is_writable(path) and is_writable(path.parent)):
            # SQLite opens such a file to read and says nothing until the first row is to be written.
            raise _read_only()
    except BaseException:
        connection.close()
        raise
    return connection


def _read_only() -> sqlite3.OperationalError:
    error = sqlite3.OperationalError("it cannot be written")
    error.sqlite_errorcode = sqlite3.SQLITE_READONLY
    return error


def is_writable(path: Path) -> bool:
    """Whether this user may write in this directory or file, as far as its mode and its file system tell."""
    return os.access(path, os.W_OK, effective_ids=os.access in os.supports_effective_ids)


def _has_bytes(path: Path) -> bool:
    with contextlib.suppress(OSError):
        return path.stat().st_size > 0
    return False
