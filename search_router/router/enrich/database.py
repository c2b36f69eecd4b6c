"""The one SQLite file of the flywheel: its tables, how long their rows stay, and how it is opened.

It lies beside the receipts and never in them: deleting it costs nothing but time. Synchronous; `owner` writes, anybody may read.
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
import stat
import time
from collections.abc import Generator, Sequence
from pathlib import Path
from typing import Final, NamedTuple
from urllib.parse import quote

from search_router.databases import transaction
from search_router.errors import SearchRouterError

FILE_NAME: Final = "enrich.sqlite"
APPLICATION_ID: Final = 0x53524531
WRITE_WAIT_SECONDS: Final = 5.0
READ_WAIT_SECONDS: Final = 0.05
BUSY_PAUSE_SECONDS: Final = 0.005
DAY_US: Final = 86_400 * 1_000_000

MIGRATIONS: Final[tuple[str, ...]] = (
    """
CREATE TABLE tool_benchmark_events (
    id INTEGER PRIMARY KEY,
    event_id TEXT NOT NULL UNIQUE,
    time_us INTEGER NOT NULL,
    paper_slug TEXT NOT NULL,
    run_id TEXT NOT NULL,
    kind TEXT NOT NULL CHECK (kind IN ('request', 'call')),
    operation TEXT NOT NULL,
    arm TEXT NOT NULL,
    expert_id TEXT,
    task_class TEXT,
    question_hash TEXT,
    status TEXT NOT NULL,
    latency_ms REAL NOT NULL,
    result_count INTEGER NOT NULL,
    precision_class TEXT,
    hit_miss TEXT NOT NULL CHECK (hit_miss IN ('hit', 'miss')),
    cache TEXT,
    config_version TEXT NOT NULL,
    config_hash TEXT NOT NULL,
    receipt_id TEXT NOT NULL,
    session TEXT,
    principal TEXT
);
CREATE INDEX events_by_paper ON tool_benchmark_events (paper_slug, time_us);
CREATE INDEX events_by_receipt ON tool_benchmark_events (receipt_id);
CREATE TABLE experiments (
    paper_slug TEXT PRIMARY KEY,
    created_us INTEGER NOT NULL,
    updated_us INTEGER NOT NULL,
    requests INTEGER NOT NULL DEFAULT 0,
    calls INTEGER NOT NULL DEFAULT 0,
    cached INTEGER NOT NULL DEFAULT 0
) WITHOUT ROWID;
CREATE TABLE answers (
    key TEXT PRIMARY KEY,
    stored_us INTEGER NOT NULL,
    used_us INTEGER NOT NULL,
    positive INTEGER NOT NULL,
    receipt_id TEXT NOT NULL,
    entry BLOB NOT NULL
) WITHOUT ROWID;
CREATE INDEX answers_by_use ON answers (used_us);
CREATE TABLE hints (
    key TEXT PRIMARY KEY,
    stored_us INTEGER NOT NULL,
    used_us INTEGER NOT NULL,
    receipt_id TEXT NOT NULL,
    entry BLOB NOT NULL
) WITHOUT ROWID;
CREATE INDEX hints_by_use ON hints (used_us);
CREATE TABLE confirmations (
    project TEXT NOT NULL,
    path TEXT NOT NULL,
    content_hash TEXT NOT NULL,
    symbol TEXT NOT NULL,
    experts TEXT NOT NULL,
    tier TEXT NOT NULL,
    time_us INTEGER NOT NULL,
    receipt_id TEXT NOT NULL,
    PRIMARY KEY (project, path, content_hash, symbol)
) WITHOUT ROWID;
CREATE INDEX confirmations_by_time ON confirmations (time_us);
CREATE TABLE outcomes (
    id INTEGER PRIMARY KEY,
    time_us INTEGER NOT NULL,
    receipt_id TEXT NOT NULL,
    outcome_receipt_id TEXT NOT NULL,
    source TEXT NOT NULL CHECK (source IN ('reported', 'fetched')),
    outcome TEXT NOT NULL CHECK (outcome IN ('success', 'partial', 'failure')),
    evidence_id TEXT NOT NULL,
    expert TEXT NOT NULL,
    expert_rank INTEGER NOT NULL,
    reward_pm INTEGER NOT NULL,
    share_pm INTEGER NOT NULL,
    task_class TEXT,
    session TEXT,
    principal TEXT,
    UNIQUE (receipt_id, source, evidence_id, expert)
);
CREATE INDEX outcomes_by_time ON outcomes (time_us);
CREATE INDEX outcomes_by_session ON outcomes (session, time_us);
CREATE TABLE questions (
    receipt_id TEXT PRIMARY KEY,
    time_us INTEGER NOT NULL,
    request TEXT NOT NULL
) WITHOUT ROWID;
CREATE INDEX questions_by_time ON questions (time_us);
""",
    """
CREATE TABLE observations (
    id INTEGER PRIMARY KEY,
    time_us INTEGER NOT NULL,
    session TEXT NOT NULL,
    task_class TEXT NOT NULL,
    receipt_id TEXT NOT NULL,
    outcome_receipt_id TEXT NOT NULL,
    expert TEXT NOT NULL,
    gained_pm INTEGER NOT NULL,
    lost_pm INTEGER NOT NULL,
    UNIQUE (outcome_receipt_id, receipt_id, expert)
);
CREATE INDEX observations_by_session ON observations (session, task_class, id);
CREATE INDEX observations_by_time ON observations (time_us);
""",
)
"""Statements that lead from one schema version to the next; the version is how many of them were run."""
SCHEMA_VERSION: Final = len(MIGRATIONS)


class Keep(NamedTuple):
    """How many rows of a table stay at most, and for how many days; `order` is the column that says which go first."""

    table: str
    order: str
    rows: int
    days: int


RETENTION: Final[tuple[Keep, ...]] = (
    Keep("tool_benchmark_events", "time_us", 200_000, 90),
    Keep("answers", "used_us", 1_000, 7),
    Keep("hints", "used_us", 5_000, 30),
    Keep("confirmations", "time_us", 50_000, 30),
    Keep("outcomes", "time_us", 100_000, 365),
    Keep("questions", "time_us", 10_000, 30),
    Keep("observations", "time_us", 50_000, 7),
)
"""What every table keeps. `experiments` has a row for each slug that was ever configured and is not cut. Receipts are never touched."""


class EnrichUnavailable(SearchRouterError):
    """The flywheel's file cannot be used. No answer depends on it."""

    code = "enrichment-unavailable"


def open_for_writing(path: Path, wait_seconds: float = WRITE_WAIT_SECONDS) -> sqlite3.Connection:
    """The file, made for its owner alone if it is not there, with the tables of this version. May be used from any one thread at a time.

    Raises:
        EnrichUnavailable: it is damaged, of a newer version, no plain file, or cannot be written.
    """
    with _explained(path):
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600))
        if not stat.S_ISREG(path.stat().st_mode):
            raise EnrichUnavailable(f"{path} is no plain file.", remedy="Move it away.")
        path.chmod(0o600)
        database = sqlite3.connect(path, timeout=wait_seconds, isolation_level=None, check_same_thread=False)
        try:
            _keep_a_write_ahead_log(database, wait_seconds)
            database.execute("PRAGMA synchronous=NORMAL")
            _migrate(database, path)
        except BaseException:
            database.close()
            raise
        return database


def _keep_a_write_ahead_log(database: sqlite3.Connection, wait_seconds: float) -> None:
    """Change the journal. SQLite does not wait for another process that does the same at this moment, so we do.

    Raises:
        sqlite3.OperationalError: it is still busy after `wait_seconds`.
    """
    until = time.monotonic() + wait_seconds
    while True:
        try:
            database.execute("PRAGMA journal_mode=WAL")
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY or time.monotonic() >= until:
                raise
            time.sleep(BUSY_PAUSE_SECONDS)
        else:
            return


def open_for_reading(path: Path) -> sqlite3.Connection | None:
    """The file as it is; None when there is none yet. It waits for nobody longer than READ_WAIT_SECONDS.

    Raises:
        EnrichUnavailable: as `open_for_writing`.
    """
    if not path.exists():
        return None
    with _explained(path):
        address = f"file:{quote(str(path))}?mode=ro"
        database = sqlite3.connect(address, uri=True, timeout=READ_WAIT_SECONDS, isolation_level=None, check_same_thread=False)
        try:
            version = _version(database, path)
        except BaseException:
            database.close()
            raise
    if version == SCHEMA_VERSION:
        return database
    database.close()  # its first writer brings it to this version
    return None


def cut_back(database: sqlite3.Connection, now_us: int, retention: Sequence[Keep] = RETENTION) -> int:
    """Delete what is too old or too much; how many rows went. Part of the caller's transaction."""
    gone = 0
    for keep in retention:
        table, order = keep.table, keep.order
        gone += database.execute(f"DELETE FROM {table} WHERE {order} < ?", (now_us - keep.days * DAY_US,)).rowcount  # noqa: S608 - constants
        bound = database.execute(f"SELECT {order} FROM {table} ORDER BY {order} DESC LIMIT 1 OFFSET ?", (keep.rows,)).fetchone()  # noqa: S608 - constants
        if bound is not None:
            gone += database.execute(f"DELETE FROM {table} WHERE {order} <= ?", bound).rowcount  # noqa: S608 - constants
    return gone


def explain(path: Path, error: sqlite3.Error | OSError) -> EnrichUnavailable:
    """What went wrong with the file, and what to do."""
    text = error.strerror if isinstance(error, OSError) else str(error)
    return EnrichUnavailable(
        f"The cache, hints and events in {path} are off: {text}.",
        remedy="Move the file away or mend its directory; a new one is made at the next start. Answers and receipts do not need it.",
    )


@contextlib.contextmanager
def _explained(path: Path) -> Generator[None]:
    try:
        yield
    except (sqlite3.Error, OSError) as error:
        raise explain(path, error) from error
    except UnicodeDecodeError as error:  # sqlite3 quotes the schema, and the schema is not text any more
        raise explain(path, sqlite3.DatabaseError("its schema is damaged")) from error


def _version(database: sqlite3.Connection, path: Path) -> int:
    application, version = database.execute(
        "SELECT application_id, user_version FROM pragma_application_id, pragma_user_version"
    ).fetchone()
    if application not in (0, APPLICATION_ID):
        raise EnrichUnavailable(f"{path} is a database of another program.", remedy="Move it away.")
    if version > SCHEMA_VERSION:
        raise EnrichUnavailable(
            f"{path} was written by a newer search-router (format {version}, this one knows {SCHEMA_VERSION}).",
            remedy="Run the newer version, or move the file away.",
        )
    return version


def _migrate(database: sqlite3.Connection, path: Path) -> None:
    if _version(database, path) == SCHEMA_VERSION:
        return
    with transaction(database):
        for statements in MIGRATIONS[_version(database, path) :]:  # asked again: another process may have been first
            for statement in filter(str.strip, statements.split(";\n")):
                database.execute(statement)
        database.execute(f"PRAGMA application_id={APPLICATION_ID}")
        database.execute(f"PRAGMA user_version={SCHEMA_VERSION}")
