"""Judges whole logs: every envelope, the chain, the columns, the tree, key rotations, and the log's checkpoints. See `verify`.

Rows are read a bounded number at a time, so memory does not grow with the log, also while another process appends.
"""

from __future__ import annotations

import math
import sqlite3
from collections import deque
from collections.abc import Iterator
from pathlib import Path

from search_router.errors import StoreUnavailable
from search_router.receipts.checkpoint import Checkpoint
from search_router.receipts.crew import Crew, members_for
from search_router.receipts.log import (
    SCHEMA_VERSION,
    SELECT_ROWS_AND_NODES,
    Row,
    check_identity,
    check_schema,
    node_reader,
    open_for_reading,
    read_rotations,
)
from search_router.receipts.log_audit import LogAudit, LogVerdict, Witness
from search_router.receipts.merkle import prove_consistency, tree_at, verify_consistency
from search_router.receipts.row_check import StoredRow
from search_router.receipts.statement import first_prev
from search_router.receipts.trust import Trust

BATCH = 100
BATCH_BYTES = 4 * 2**20
"""Receipts may have megabytes: a batch ends with the one that goes beyond this."""


def rotations_of(path: Path) -> list[bytes]:
    """The envelopes of a log's key rotations, for `Trust.following`; none where the log cannot be read, as judging it will say."""
    try:
        with open_for_reading(path) as database:
            check_schema(path, database)
            return read_rotations(database)
    except (sqlite3.Error, StoreUnavailable):
        return []


def verify_log(
    path: Path, trust: Trust, witness: Witness | None = None, *, since: Checkpoint | None = None, members: int | None = None
) -> LogVerdict:
    """Judge a whole log file: every envelope, one unbroken chain from the first receipt, columns and stored subtrees that say what the
    envelopes say, and each of the witness's checkpoints.

    With `since`, a checkpoint of this log that the caller trusts, only later receipts are read; that the log still begins as it did then is
    shown by a consistency proof over its stored subtrees. `members` is how many processes judge; None: as many as pay off.
    """
    log = path.name.removesuffix(".sqlite")
    audit = LogAudit(log, trust, witness or Witness())
    try:
        with open_for_reading(path) as database:
            version, owner = check_identity(path, database)
            if version < SCHEMA_VERSION:
                audit.cannot_check(f"It has schema version {version}, without a tree: the next start of search-router upgrades it.")
                return audit.verdict()
            audit.expect_owner(owner)
            if since is not None:
                _begin_after(since, path, database, audit)
            (size,) = database.execute("SELECT count(*) FROM receipts WHERE seq > ?", (audit.head.seq,)).fetchone()
            with Crew(trust, members_for(size) if members is None else members) as crew:
                _read_through(database, audit, crew)
    except StoreUnavailable as error:
        audit.cannot_check(error.message)
    except (sqlite3.Error, TypeError, ValueError, OSError) as error:
        audit.cannot_check(f"The file cannot be read after receipt {audit.head.seq}: {error}.")
    return audit.verdict()


def _read_through(database: sqlite3.Connection, audit: LogAudit, crew: Crew) -> None:
    looked_again_for: Checkpoint | None = None
    while True:
        rows = audit.rows
        _read_once(database, audit, crew)
        if audit.awaited is None or (audit.awaited == looked_again_for and audit.rows == rows):
            break
        # The checkpoint may be newer than the rows that were read; what it counts was on disk before it.
        looked_again_for = audit.awaited
    audit.end()


def _read_once(database: sqlite3.Connection, audit: LogAudit, crew: Crew) -> None:
    """All rows after the audit's last one."""
    on_the_way: deque[list[StoredRow]] = deque()

    def read() -> Iterator[list[StoredRow]]:
        last = float(audit.head.seq) if audit.rows or audit.head.seq else -math.inf
        while rows := _read_batch(database, last):
            on_the_way.append(rows)
            last = rows[-1][0]
            yield rows

    for found in crew.judge(read()):
        for row, findings in zip(on_the_way.popleft(), found, strict=True):
            audit.add(Row(*row), findings)


def _read_batch(database: sqlite3.Connection, last: float) -> list[StoredRow]:
    """The rows after number `last`, as many as make a batch."""
    rows: list[StoredRow] = []
    size = 0
    for row in database.execute(f"{SELECT_ROWS_AND_NODES} WHERE seq > ? ORDER BY seq LIMIT ?", (last, BATCH)):
        rows.append(row)
        size += len(row[3] or b"")
        if size >= BATCH_BYTES:
            break
    return rows


def _begin_after(since: Checkpoint, path: Path, database: sqlite3.Connection, audit: LogAudit) -> None:
    """Stand where the checkpoint was made, if the log still begins as it did then; else say so and begin at the beginning."""
    (size,) = database.execute("SELECT coalesce(max(seq), 0) FROM receipts").fetchone()
    if since.size > size:
        audit.find(f"It has {size} receipts, and had {since.size} at the given checkpoint: its end was cut off.")
        return
    read = node_reader(path, database)
    then, now = tree_at(read, since.size), tree_at(read, size)
    proof = prove_consistency(read, since.size, size)
    if then.root() != since.root or not verify_consistency(since.size, size, since.root, now.root(), proof):
        audit.find(f"Its first {since.size} receipts are not those of the given checkpoint: it was rebuilt, forked or restored.")
        return
    found = database.execute("SELECT hash FROM receipts WHERE seq = ?", (since.size,)).fetchone()
    audit.begin(then, found[0] if found else first_prev(audit.log), now)
