"""Where a log goes on, and whose it is: found and checked before anyone appends to it.

Synchronous; the store calls it off the event loop.
"""

from __future__ import annotations

import sqlite3
from dataclasses import dataclass
from pathlib import Path

from search_router.errors import ReceiptError
from search_router.receipts.envelope import parse_envelope
from search_router.receipts.log import (
    SELECT_ROWS_AND_NODES,
    SUFFIX,
    Head,
    Row,
    check_identity,
    damaged,
    node_reader,
    open_for_reading,
    read_rotations,
    read_rows,
    store_failure,
    unusable_path,
)
from search_router.receipts.merkle import ReadNode, Tree, tree_at
from search_router.receipts.statement import first_prev, read_statement

CHECKED_ROWS = 16
QUICK_CHECK_BYTES = 4 * 2**20


@dataclass(frozen=True, slots=True)
class Tip:
    """Where a log goes on: its head, the tree over all payload hashes up to it, and the id of the key that signs next."""

    head: Head
    tree: Tree
    keyid: str


@dataclass(frozen=True, slots=True)
class Ownership:
    """Whose log it is: the schema's version, the key it was made for, the key that signs next, and those that signed before."""

    version: int
    first: str
    current: str
    retired: frozenset[str]


def log_ownership(path: Path) -> Ownership:
    """Whose log it is. Raises StoreUnavailable as `check_log` does."""
    try:
        with open_for_reading(path) as database:
            version, first = check_identity(path, database)
            return _follow(path, version, first, read_rotations(database) if version > 1 else [])
    except sqlite3.Error as error:
        raise store_failure(path, error) from error


def _follow(path: Path, version: int, first: str, rotations: list[bytes]) -> Ownership:
    """What the log says of its keys; whether it is true is for verification."""
    current, retired = first, set[str]()
    for written in rotations:
        try:
            rotation = read_statement(parse_envelope(written).payload).rotation
        except (ReceiptError, ValueError) as error:
            raise damaged(path, f"a key rotation cannot be read: {error}") from error
        if rotation is None or rotation.old != current:
            raise damaged(path, "a key rotation is not one of the key before it")
        retired.add(current)
        current = rotation.new
    return Ownership(version, first, current, frozenset(retired))


def check_log(path: Path) -> Tip:
    """Where a log goes on; its last rows are sound: envelope, hash, chain and tree agree. Small files are checked page by page, too.

    Raises:
        StoreUnavailable: damaged, from a newer version, or not to be opened.
    """
    owner = log_ownership(path)
    try:
        with open_for_reading(path) as database:
            if path.stat().st_size <= QUICK_CHECK_BYTES:
                found = database.execute("PRAGMA quick_check(1)").fetchone()
                if found != ("ok",):
                    raise damaged(path, str(found[0]))
            rows = read_rows(database, f"{SELECT_ROWS_AND_NODES} ORDER BY seq DESC LIMIT ?", (CHECKED_ROWS,))
            head = _check_tail(path, list(reversed(rows)))
            tree = _check_tree(path, list(reversed(rows)), node_reader(path, database))
    except sqlite3.Error as error:
        raise store_failure(path, error) from error
    except OSError as error:
        raise unusable_path(path, error) from error
    return Tip(head, tree, owner.current)


def _check_tail(path: Path, rows: list[Row]) -> Head:
    """The rows are the log's last ones in order, so that a row with number 1 among them must be the first of the log."""
    log = path.name.removesuffix(SUFFIX)
    before = Head(0, first_prev(log))
    if rows and len(rows) == CHECKED_ROWS and rows[0].seq > 1:
        before = Head(rows[0].seq - 1, rows[0].prev)
    for row in rows:
        try:
            envelope = parse_envelope(row.envelope)
            facts = read_statement(envelope.payload)
        except (ReceiptError, ValueError) as error:
            raise damaged(path, f"receipt {row.seq} cannot be read: {error}") from error
        if Row.of(facts, envelope) != row or facts.position.log != log:
            raise damaged(path, f"receipt {row.seq} differs from its own envelope")
        if row.seq != before.seq + 1 or row.prev != before.hash:
            raise damaged(path, f"receipt {row.seq} does not follow the one before it")
        before = Head(row.seq, row.hash)
    return before


def _check_tree(path: Path, rows: list[Row], read: ReadNode) -> Tree:
    """The tree up to the last of the log's last rows; what these rows store of it must follow from what is stored before them."""
    tree = tree_at(read, rows[0].seq - 1) if rows else Tree()
    for row in rows:
        tree, completed = tree.append(bytes.fromhex(row.hash))
        if row.nodes != b"".join(completed):
            raise damaged(path, f"receipt {row.seq} and its part of the tree do not agree")
    return tree
