"""What all writers of SQLite files of ours share. The connections are in autocommit mode (`isolation_level=None`)."""

from __future__ import annotations

import sqlite3
from collections.abc import Generator
from contextlib import contextmanager, suppress


@contextmanager
def transaction(database: sqlite3.Connection) -> Generator[None]:
    """All or nothing, with the write lock from the start: a second process waits instead of failing half way. Raises sqlite3.Error."""
    database.execute("BEGIN IMMEDIATE")
    try:
        yield
    except BaseException:
        with suppress(sqlite3.Error):  # the disk that failed the write may fail this too: what went wrong first is what is told
            if database.in_transaction:
                database.execute("ROLLBACK")
        raise
    database.execute("COMMIT")
