"""One log on disk: an SQLite file named after its id, its rows, its stored tree, and what its errors mean.

Synchronous. A log that is damaged is an error with the repair command. `tip` checks where a log goes on.
"""

from __future__ import annotations

import contextlib
import os
import re
import sqlite3
from collections.abc import Generator
from dataclasses import dataclass, field
from pathlib import Path
from typing import cast
from urllib.parse import quote

from search_router.canonical import sha256_hex
from search_router.errors import StoreUnavailable
from search_router.plain_files import check_database
from search_router.receipts.envelope import Envelope
from search_router.receipts.merkle import HASH_BYTES, ReadNode, hash_leaf
from search_router.receipts.statement import ROTATED, StatementFacts

APPLICATION_ID = 0x53525231
SCHEMA_VERSION = 2
"""1 had no tree; claiming such a log upgrades it in place."""
SUFFIX = ".sqlite"
SIDE_FILES = ("", "-wal", "-shm", "-journal")
LOCK_WAIT_SECONDS = 2.0

LOG_ID = re.compile(r"[0-9a-f]{12}")

SCHEMA = f"""
PRAGMA journal_mode = WAL;
BEGIN;
PRAGMA application_id = {APPLICATION_ID};
PRAGMA user_version = {SCHEMA_VERSION};
CREATE TABLE log (
    only_row INTEGER PRIMARY KEY CHECK (only_row = 1),
    id TEXT NOT NULL,
    keyid TEXT NOT NULL,
    created_us INTEGER NOT NULL
);
CREATE TABLE receipts (
    seq INTEGER PRIMARY KEY,
    prev TEXT NOT NULL UNIQUE,
    hash TEXT NOT NULL,
    envelope BLOB NOT NULL,
    time_us INTEGER NOT NULL,
    status TEXT NOT NULL,
    intent TEXT,
    question_digest TEXT,
    keyid TEXT NOT NULL,
    nodes BLOB NOT NULL DEFAULT x''
);
CREATE INDEX receipts_by_time ON receipts (time_us, seq);
CREATE INDEX rotations ON receipts (seq) WHERE status = '{ROTATED}';
"""
"""A row's `nodes` are the subtrees of level 1, 2, … of the log's tree that its receipt completes, 32 bytes each: so they need no table of
their own and are written with the receipt or not at all. Subtree (level, number) stands in row (number + 1) * 2**level."""
COLUMNS = ("seq", "prev", "hash", "envelope", "time_us", "status", "intent", "question_digest", "keyid", "nodes")
SELECT_ROWS = "SELECT seq, prev, hash, CAST(envelope AS BLOB), time_us, status, intent, question_digest, keyid FROM receipts"
SELECT_ROWS_AND_NODES = SELECT_ROWS.replace(" FROM", ", CAST(nodes AS BLOB) FROM")
SELECT_ROTATIONS = f"SELECT CAST(envelope AS BLOB) FROM receipts WHERE status = '{ROTATED}' ORDER BY seq"  # noqa: S608 - a constant
SELECT_FORMAT = """SELECT application_id, user_version, (SELECT count(*) FROM sqlite_master
WHERE type = 'table' AND name IN ('log', 'receipts') AND lower(sql) NOT LIKE 'create virtual%')
FROM pragma_application_id, pragma_user_version"""
"""What `check_format` judges."""


@dataclass(frozen=True, slots=True)
class Row:
    """One stored receipt: the envelope, and columns that repeat what it says so that it can be found."""

    seq: int
    prev: str
    hash: str
    envelope: bytes
    time_us: int
    status: str
    intent: str | None
    question_digest: str | None
    keyid: str
    nodes: bytes = field(default=b"", compare=False)
    """Follows from all rows up to this one and so is not compared with the envelope; see SCHEMA."""

    @classmethod
    def of(cls, facts: StatementFacts, envelope: Envelope) -> Row:
        place = facts.position
        return cls(
            seq=place.seq,
            prev=place.prev,
            hash=cls.payload_hash(envelope),
            envelope=envelope.to_bytes(),
            time_us=place.time_us,
            status=facts.status,
            intent=facts.intent,
            question_digest=facts.question_digest,
            keyid=envelope.keyid,
        )

    @staticmethod
    def payload_hash(envelope: Envelope) -> str:
        """What the chain and the tree are made of: SHA-256 (hex) of the payload."""
        return sha256_hex(envelope.payload)

    def values(self, completed: tuple[bytes, ...]) -> tuple[int | str | bytes | None, ...]:
        """In the order of COLUMNS, with the subtrees that this receipt completes."""
        place = (self.seq, self.prev, self.hash, self.envelope)
        return (*place, self.time_us, self.status, self.intent, self.question_digest, self.keyid, b"".join(completed))


@dataclass(frozen=True, slots=True)
class Head:
    """The last receipt of a log: its number and payload hash; number 0 and the hash of the log id when there is none."""

    seq: int
    hash: str


def log_path(directory: Path, log: str) -> Path:
    return directory / f"{log}{SUFFIX}"


def log_ids(directory: Path) -> list[str]:
    """The ids of the logs in a directory, sorted; empty when there is no directory.

    Raises:
        StoreUnavailable: the directory cannot be read.
    """
    try:
        names = sorted(entry.name for entry in directory.iterdir())
    except FileNotFoundError:
        return []
    except OSError as error:
        raise unusable_path(directory, error) from error
    return [name.removesuffix(SUFFIX) for name in names if name.endswith(SUFFIX) and LOG_ID.fullmatch(name.removesuffix(SUFFIX))]


def log_uri(path: Path, mode: str) -> str:
    """The SQLite URI that opens an existing file and never makes one: mode `ro` or `rw`.

    Raises:
        sqlite3.DatabaseError: what is there is no plain file; SQLite would wait for a pipe to end.
    """
    check_database(path)
    uri = f"file:{quote(str(path.absolute()))}?mode={mode}"
    if mode == "ro" and _has_nothing_ahead(path) and not _can_share_memory(path, uri):
        # With no write-ahead log there is no writer whose commits would be missed, and none can begin here.
        uri += "&immutable=1"
    return uri


def _has_nothing_ahead(path: Path) -> bool:
    """Whether there is no write-ahead log, or an empty one, as a connection leaves it that failed to share its memory."""
    try:
        return path.with_name(f"{path.name}-wal").stat().st_size == 0
    except FileNotFoundError:
        return True
    except OSError:
        return False  # SQLite will say what is wrong with it


def _can_share_memory(path: Path, uri: str) -> bool:
    """Whether SQLite can put its shared memory beside the file. It cannot on a disk that is read-only or full."""
    if not os.access(path.parent, os.W_OK):
        return False
    try:
        with contextlib.closing(sqlite3.connect(uri, uri=True, timeout=LOCK_WAIT_SECONDS)) as database:
            database.execute("SELECT count(*) FROM sqlite_master")
    except (sqlite3.Error, UnicodeDecodeError) as error:
        return getattr(error, "sqlite_errorcode", 0) & 0xFF != sqlite3.SQLITE_IOERR
    return True


@contextlib.contextmanager
def open_for_reading(path: Path) -> Generator[sqlite3.Connection]:
    """A read-only connection that works while another process writes.

    Raises:
        sqlite3.Error: as SQLite says it; `store_failure` translates.
    """
    with contextlib.closing(sqlite3.connect(log_uri(path, "ro"), uri=True, isolation_level=None, timeout=LOCK_WAIT_SECONDS)) as database:
        # Text that is not UTF-8 is a wrong value, and must not keep the rest from being read.
        database.text_factory = _decode
        with legible_errors():
            yield database


@contextlib.contextmanager
def legible_errors() -> Generator[None]:
    """What SQLite says about a damaged schema can quote bytes that are no UTF-8, and Python then raises this instead of SQLite's error."""
    try:
        yield
    except UnicodeDecodeError as error:
        raise sqlite3.DatabaseError("malformed database: a message about it is not UTF-8") from error


def _decode(data: bytes) -> str:
    return data.decode("utf-8", "surrogateescape")


def read_rotations(database: sqlite3.Connection) -> list[bytes]:
    """The envelopes of a log's key rotations, in order."""
    return [envelope for (envelope,) in database.execute(SELECT_ROTATIONS)]


def node_reader(path: Path, database: sqlite3.Connection) -> ReadNode:
    """Reads one stored subtree of a log. What it returns raises StoreUnavailable where the log has none, and sqlite3.Error."""

    def read(level: int, number: int) -> bytes:
        seq = (number + 1) << level
        found = database.execute("SELECT hash, CAST(nodes AS BLOB) FROM receipts WHERE seq = ?", (seq,)).fetchone()
        node: bytes = b""
        if found is not None and level == 0:
            with contextlib.suppress(ValueError, TypeError):
                node = hash_leaf(bytes.fromhex(found[0]))
        elif found is not None:
            node = found[1][(level - 1) * HASH_BYTES : level * HASH_BYTES]
        if len(node) != HASH_BYTES:
            raise damaged(path, f"receipt {seq} lacks its part of the tree")
        return node

    return read


def read_rows(database: sqlite3.Connection, sql: str, parameters: tuple[float | str, ...]) -> list[Row]:
    """Rows of a statement that selects COLUMNS."""
    return [Row(*values) for values in database.execute(sql, parameters)]


def check_format(path: Path, application: int, version: int, tables: int) -> None:
    """Whether a file with these pragmas and so many of a log's tables is a log that this program knows. Raises StoreUnavailable."""
    if application != APPLICATION_ID:
        raise damaged(path, "it is not a receipt log")
    if version > SCHEMA_VERSION:
        raise StoreUnavailable(
            f"The receipt log {path} has schema version {version}; this program knows up to {SCHEMA_VERSION}.",
            remedy="Use the newer search-router that wrote it, or set another `receipts.directory`.",
        )
    if tables != 2:
        raise damaged(path, "its tables are not there as plain tables")  # a view in a table's place could give rows without end


def check_schema(path: Path, database: sqlite3.Connection) -> int:
    """The version of a log's schema. Raises StoreUnavailable and sqlite3.Error."""
    application, version, tables = cast("tuple[int, int, int]", database.execute(SELECT_FORMAT).fetchone())
    check_format(path, application, version, tables)
    return version


def check_identity(path: Path, database: sqlite3.Connection) -> tuple[int, str]:
    """The schema's version and the id of the key that a log was made for. Raises StoreUnavailable and sqlite3.Error."""
    version = check_schema(path, database)
    found = database.execute("SELECT id, keyid FROM log").fetchall()
    if len(found) != 1 or found[0][0] != path.name.removesuffix(SUFFIX):
        raise damaged(path, "the log id inside is not the one in its name")
    return version, cast("str", found[0][1])


def damaged(path: Path, what: str) -> StoreUnavailable:
    """The error for a log whose content is wrong."""
    log = path.name.removesuffix(SUFFIX)
    return StoreUnavailable(
        f"The receipt log {path} is damaged: {what}.",
        remedy=f"See what is wrong with `search-router receipts verify --log {log}`; then `search-router receipts repair {log}` sets it "
        "aside unchanged and the next start makes a new log.",
    )


def store_failure(path: Path, error: sqlite3.Error) -> StoreUnavailable:
    """What an SQLite error means for the store: content that is wrong, or a log that cannot be reached now."""
    # SQLite's CORRUPT and NOTADB arrive as the base class itself; a broken constraint means that a second writer was here.
    if type(error) in (sqlite3.DatabaseError, sqlite3.IntegrityError) or str(error).startswith(("no such table", "no such column")):
        return damaged(path, str(error))
    return StoreUnavailable(
        f"The receipt log {path} cannot be used: {error}.",
        remedy="Check that its disk has room and that this user may read and write the file and its directory; then ask again.",
    )


def unusable_path(path: Path, error: OSError) -> StoreUnavailable:
    return StoreUnavailable(
        f"The receipt store {path} cannot be used: {error.strerror or error}.",
        remedy="Make it readable and writable for this user, or set another `receipts.directory`.",
    )
