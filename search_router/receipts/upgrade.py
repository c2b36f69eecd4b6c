"""From the first schema of a log to the present one: what every receipt completes of the tree is worked out and stored, once.

In one transaction: a crash leaves the old schema or the new one. Envelopes stay as they are.
"""

from __future__ import annotations

import contextlib
import sqlite3
from pathlib import Path

from search_router.receipts.log import LOCK_WAIT_SECONDS, SCHEMA_VERSION, damaged, log_uri, store_failure
from search_router.receipts.merkle import Tree
from search_router.receipts.statement import ROTATED

BATCH = 1000


def upgrade_log(path: Path) -> None:
    """Bring a log of schema 1, whose lock is held, to the present schema. Some 10,000 receipts a second.

    Raises:
        StoreUnavailable: the log cannot be written, or its receipts have a gap.
    """
    try:
        with contextlib.closing(
            sqlite3.connect(log_uri(path, "rw"), uri=True, isolation_level=None, timeout=LOCK_WAIT_SECONDS)
        ) as database:
            database.execute("PRAGMA synchronous = FULL")
            database.execute("BEGIN IMMEDIATE")
            database.execute("ALTER TABLE receipts ADD COLUMN nodes BLOB NOT NULL DEFAULT x''")
            database.execute(f"CREATE INDEX rotations ON receipts (seq) WHERE status = '{ROTATED}'")
            _store_nodes(path, database)
            database.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")
            database.execute("COMMIT")
    except sqlite3.Error as error:
        raise store_failure(path, error) from error


def _store_nodes(path: Path, database: sqlite3.Connection) -> None:
    tree = Tree()
    while rows := database.execute("SELECT seq, hash FROM receipts WHERE seq > ? ORDER BY seq LIMIT ?", (tree.size, BATCH)).fetchall():
        stored: list[tuple[bytes, int]] = []
        for seq, payload_hash in rows:
            if seq != tree.size + 1:
                raise damaged(path, f"receipt {seq} stands after receipt {tree.size}")
            try:
                tree, completed = tree.append(bytes.fromhex(payload_hash))
            except (ValueError, TypeError) as error:
                raise damaged(path, f"the hash of receipt {seq} is none") from error
            if completed:
                stored.append((b"".join(completed), seq))
        database.executemany("UPDATE receipts SET nodes = ? WHERE seq = ?", stored)
