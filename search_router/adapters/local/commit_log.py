"""The commits of one repository as a searchable table: one SQLite file, or memory when there can be no file.

A commit never changes, so its row is keyed by its name and written once; what HEAD reaches is a list of rows beside it (a reading).
A new process finds both and starts warm, a branch switch re-reads only the difference, and two work trees share the rows.
Full text is SQLite's own FTS5 with BM25 (Robertson, Zaragoza 2009) over subtokens, so that `GetHeader` is found by `header`.

Every method is synchronous and safe to call from any thread, one at a time; callers on an event loop use a worker thread.
"""

from __future__ import annotations

import contextlib
import sqlite3
import threading
import time
from array import array
from collections.abc import Collection, Generator, Iterable, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from search_router.adapters.local.commit_stream import Commit
from search_router.adapters.local.disk_space import DEFAULT_RESERVE, Reserve
from search_router.adapters.local.history_question import tokens_of
from search_router.databases import transaction
from search_router.plain_files import check_database

FORMAT_VERSION = 2
"""Part of the file's name: another version of this table or of the tokens is another file."""
SUBJECT_WEIGHT, BODY_WEIGHT, PATHS_WEIGHT = 3.0, 1.0, 1.0
INDEXED_PATHS = 200
"""So many paths of one commit are searched as words: a vendored tree is not about all of its files."""
KEPT_READINGS = 4
LOCK_SECONDS = 2.0
MAX_LINEAGE = 64
_HEALTHY = frozenset({3, 5, 6, 7, 8, 10, 13, 14})
"""Primary result codes that say nothing about the file: PERM, BUSY, LOCKED, NOMEM, READONLY, IOERR, FULL, CANTOPEN."""

_SCHEMA = """
CREATE TABLE IF NOT EXISTS commits (
    id INTEGER PRIMARY KEY, sha BLOB NOT NULL UNIQUE, time INTEGER NOT NULL, date TEXT NOT NULL,
    author TEXT NOT NULL, subject TEXT NOT NULL, is_merge INTEGER NOT NULL);
CREATE TABLE IF NOT EXISTS paths (id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, base TEXT NOT NULL);
CREATE INDEX IF NOT EXISTS paths_by_base ON paths (base);
CREATE TABLE IF NOT EXISTS changes (path INTEGER NOT NULL, commit_id INTEGER NOT NULL, source INTEGER);
CREATE INDEX IF NOT EXISTS changes_by_path ON changes (path, commit_id);
CREATE INDEX IF NOT EXISTS changes_by_source ON changes (source) WHERE source IS NOT NULL;
CREATE INDEX IF NOT EXISTS changes_by_commit ON changes (commit_id);
CREATE TABLE IF NOT EXISTS readings (
    head TEXT NOT NULL, max_commits INTEGER NOT NULL, rows BLOB NOT NULL, complete INTEGER NOT NULL, saved REAL NOT NULL,
    PRIMARY KEY (head, max_commits)) WITHOUT ROWID;
CREATE VIRTUAL TABLE IF NOT EXISTS messages USING fts5(subject, body, paths, content='', tokenize='porter unicode61');
CREATE TABLE IF NOT EXISTS summarised (id INTEGER PRIMARY KEY);
CREATE VIRTUAL TABLE IF NOT EXISTS summaries USING fts5(words, content='', tokenize='porter unicode61');
"""


@dataclass(frozen=True, slots=True)
class Reading:
    """The rows that one HEAD reaches, newest first; `complete` is false while there are more to read."""

    head: str
    rows: array[int]
    complete: bool


@dataclass(frozen=True, slots=True)
class StoredCommit:
    """A row for an answer: `time` is the committer's in Unix seconds, `date` the author's in ISO 8601."""

    row: int
    sha: str
    time: int
    date: str
    author: str
    subject: str
    is_merge: bool


class NoRoom(sqlite3.OperationalError):
    """The disk has only the reserve left, which is not for caches."""


def says_damage(error: sqlite3.Error) -> bool:
    """Whether an error tells of a damaged file, and not of a busy, full or unwritable one, or of a table that was closed."""
    code = getattr(error, "sqlite_errorcode", 1) & 0xFF
    return code not in _HEALTHY and not isinstance(error, sqlite3.ProgrammingError | NoRoom)


def move_table_aside(path: Path, inode: int | None) -> Path:
    """Put a damaged table's file out of the way; gives where it is. With `inode`, only that very file: another process may have moved it
    already, and made a new one.

    Raises:
        OSError: it cannot be moved.
    """
    aside = path.with_name(f"{path.name}.damaged")
    with contextlib.suppress(FileNotFoundError):
        if inode is None or path.stat().st_ino == inode:
            for suffix in ("-wal", "-shm"):
                path.with_name(path.name + suffix).unlink(missing_ok=True)
            path.replace(aside)
    return aside


class CommitLog:
    """The table. `path` None keeps it in memory; another table of the same file may be open elsewhere at the same time."""

    def __init__(self, path: Path | None, reserve: Reserve = DEFAULT_RESERVE) -> None:
        """Open or create it.

        Raises:
            sqlite3.Error: the file is damaged, locked or cannot be written; so does every other method. `NoRoom` where it would grow.
            OSError: its directory cannot be made.
        """
        if path is not None:
            path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            check_database(path)
        self.path, self._reserve = path, reserve
        self._lock = threading.Lock()
        self._db = sqlite3.connect(path or ":memory:", timeout=LOCK_SECONDS, check_same_thread=False, isolation_level=None)
        self.inode = path.stat().st_ino if path is not None else None
        try:
            version = self._db.execute("PRAGMA user_version").fetchone()[0]
            if version > FORMAT_VERSION:
                raise sqlite3.DatabaseError(f"it has version {version}, and this program knows {FORMAT_VERSION}")
            self._db.execute("PRAGMA journal_mode=WAL")
            self._db.execute("PRAGMA synchronous=NORMAL")
            if version != FORMAT_VERSION:  # no lock is taken for a warm start
                with self._transaction():
                    for statement in filter(str.strip, _SCHEMA.split(";\n")):
                        self._db.execute(statement)
                    self._db.execute(f"PRAGMA user_version={FORMAT_VERSION}")
        except sqlite3.Error:
            self._db.close()
            raise
        except UnicodeDecodeError as error:  # sqlite3 quotes the schema, and the schema is not text any more
            self._db.close()
            raise sqlite3.DatabaseError("the schema is damaged") from error

    def close(self) -> None:
        """Close the file; safe to call twice."""
        with self._lock:
            self._db.close()

    @contextmanager
    def _transaction(self) -> Generator[None]:
        if self.path is not None and (lack := self._reserve.lack(self.path)):
            raise NoRoom(lack)
        with transaction(self._db):
            yield

    # -------------------------------------------------------------- writing

    def add(self, commits: Sequence[Commit], reading: tuple[str, int, array[int]] | None = None) -> list[int]:
        """The rows of these commits, in order; those that are not there yet are written.

        `reading` is (head, max_commits, rows before these): what has been read so far is saved in the same step, so that a process
        that ends early leaves something to continue from.
        """
        with self._lock, self._transaction():
            known = self._rows([commit.sha for commit in commits])
            for commit in commits:
                if commit.sha not in known:
                    known[commit.sha] = self._insert(commit)
            rows = [known[commit.sha] for commit in commits]
            if reading is not None:
                head, max_commits, before = reading
                self._save(Reading(head, before + array("I", rows), complete=False), max_commits)
        return rows

    def save(self, reading: Reading, max_commits: int) -> None:
        """Remember what this HEAD reaches, and forget the oldest of the other readings (their rows stay: a branch may come back)."""
        with self._lock, self._transaction():
            self._save(reading, max_commits)
            self._db.execute(
                "DELETE FROM readings WHERE (head, max_commits) NOT IN "
                "(SELECT head, max_commits FROM readings ORDER BY saved DESC, head LIMIT ?)",
                (KEPT_READINGS,),
            )

    def _save(self, reading: Reading, max_commits: int) -> None:
        self._db.execute(
            "INSERT OR REPLACE INTO readings VALUES (?, ?, ?, ?, ?)",
            (reading.head, max_commits, reading.rows.tobytes(), reading.complete, time.time()),
        )

    def _insert(self, commit: Commit) -> int:
        values = (bytes.fromhex(commit.sha), commit.time, commit.date, commit.author, commit.subject, commit.is_merge)
        row = self._db.execute(
            "INSERT INTO commits (sha, time, date, author, subject, is_merge) VALUES (?, ?, ?, ?, ?, ?)", values
        ).lastrowid
        assert row is not None
        changes = [(self._path(c.path), row, None if c.source is None else self._path(c.source)) for c in commit.changes]
        self._db.executemany("INSERT INTO changes VALUES (?, ?, ?)", changes)
        words = dict.fromkeys(token for change in commit.changes[:INDEXED_PATHS] for token in tokens_of(change.path))
        self._db.execute(
            "INSERT INTO messages (rowid, subject, body, paths) VALUES (?, ?, ?, ?)",
            (row, " ".join(tokens_of(commit.subject)), " ".join(tokens_of(commit.body)), " ".join(words)),
        )
        return row

    def _path(self, name: str) -> int:
        found = self._db.execute("SELECT id FROM paths WHERE name = ?", (name,)).fetchone()
        if found is not None:
            return int(found[0])
        made = self._db.execute("INSERT INTO paths (name, base) VALUES (?, ?)", (name, name.rsplit("/", 1)[-1])).lastrowid
        assert made is not None
        return made

    # -------------------------------------------------------------- reading

    def reading(self, head: str, max_commits: int) -> Reading | None:
        """What was saved for this HEAD, complete or not."""
        with self._lock:
            found = self._db.execute(
                "SELECT rows, complete FROM readings WHERE head = ? AND max_commits = ?", (head, max_commits)
            ).fetchone()
        return None if found is None else Reading(head, _row_list(found[0]), bool(found[1]))

    def latest_reading(self, max_commits: int) -> Reading | None:
        """The newest complete one, of whatever HEAD: the base to read only a difference from."""
        with self._lock:
            found = self._db.execute(
                "SELECT head, rows FROM readings WHERE complete AND max_commits = ? ORDER BY saved DESC, head LIMIT 1", (max_commits,)
            ).fetchone()
        return None if found is None else Reading(str(found[0]), _row_list(found[1]), complete=True)

    def rows_of(self, shas: Iterable[str]) -> dict[str, int]:
        """Commit name to row, for those that are in the table."""
        with self._lock:
            return self._rows(list(shas))

    def _rows(self, shas: list[str]) -> dict[str, int]:
        found: dict[str, int] = {}
        for sha in shas:
            row = self._db.execute("SELECT id FROM commits WHERE sha = ?", (bytes.fromhex(sha),)).fetchone()
            if row is not None:
                found[sha] = int(row[0])
        return found

    def commits(self, rows: Iterable[int]) -> dict[int, StoredCommit]:
        """The stored commits of these rows."""
        with self._lock:
            found: dict[int, StoredCommit] = {}
            for row in rows:
                values = self._db.execute("SELECT sha, time, date, author, subject, is_merge FROM commits WHERE id = ?", (row,)).fetchone()
                if values is None:
                    raise sqlite3.DatabaseError(f"commit row {row} is gone")
                sha, seconds, date, author, subject, merge = values
                found[row] = StoredCommit(row, sha.hex(), seconds, date, author, subject, bool(merge))
        return found

    def plain_shas(self, rows: Sequence[int]) -> list[tuple[int, str]]:
        """(row, name) of those of these rows that are not merges, in the given order."""
        with self._lock:
            names: dict[int, bytes] = dict(self._db.execute("SELECT id, sha FROM commits WHERE NOT is_merge"))
        return [(row, names[row].hex()) for row in rows if row in names]

    def paths_of(self, row: int) -> tuple[str, ...]:
        """The paths that a commit touches, in git's order."""
        with self._lock:
            query = "SELECT name FROM changes JOIN paths ON paths.id = changes.path WHERE commit_id = ? ORDER BY changes.rowid"
            return tuple(name for (name,) in self._db.execute(query, (row,)))

    def matching(self, tokens: Sequence[str], among: Collection[int], limit: int) -> list[tuple[int, float]]:
        """(row, BM25 score) of the best commits of `among` whose message or paths have any of the tokens; more is better.

        Ties go to the row that was written first. The tokens must be subtokens; they are data, never query syntax.
        """
        query = " OR ".join('"' + token.replace('"', "") + '"' for token in tokens)
        if not query or not among:
            return []
        wanted, size = limit, limit * 4
        while True:
            with self._lock:
                page: list[tuple[int, float]] = self._db.execute(
                    "SELECT rowid, bm25(messages, ?, ?, ?) AS score FROM messages WHERE messages MATCH ? ORDER BY score, rowid LIMIT ?",
                    (SUBJECT_WEIGHT, BODY_WEIGHT, PATHS_WEIGHT, query, size),
                ).fetchall()
            kept = [(row, -score) for row, score in page if row in among]
            if len(kept) >= wanted or len(page) < size:
                return kept[:wanted]
            size *= 8

    def without_summary(self, rows: Sequence[int]) -> list[int]:
        """Those of these rows, in order, whose changes are not summarised yet; merges are not among them."""
        with self._lock:
            done = {row for (row,) in self._db.execute("SELECT id FROM summarised")}
            merges = {row for (row,) in self._db.execute("SELECT id FROM commits WHERE is_merge")}
        return [row for row in rows if row not in done and row not in merges]

    def add_summaries(self, summaries: Sequence[tuple[int, Sequence[str]]]) -> None:
        """Keep the words of what these rows changed."""
        with self._lock, self._transaction():
            known = {row for row, _ in summaries if self._db.execute("SELECT 1 FROM summarised WHERE id = ?", (row,)).fetchone()}
            fresh = [(row, " ".join(words)) for row, words in summaries if row not in known]
            self._db.executemany("INSERT INTO summaries (rowid, words) VALUES (?, ?)", fresh)
            self._db.executemany("INSERT INTO summarised (id) VALUES (?)", [(row,) for row, _ in fresh])

    def matching_changes(self, tokens: Sequence[str], among: Collection[int], limit: int) -> list[tuple[int, float]]:
        """(row, BM25 score) of the best commits of `among` whose changes have any of the tokens; more is better."""
        query = " OR ".join('"' + token.replace('"', "") + '"' for token in tokens)
        if not query or not among:
            return []
        with self._lock:
            page: list[tuple[int, float]] = self._db.execute(
                "SELECT rowid, bm25(summaries) AS score FROM summaries WHERE summaries MATCH ? ORDER BY score, rowid LIMIT ?",
                (query, limit * 4),
            ).fetchall()
        return [(row, -score) for row, score in page if row in among][:limit]

    def paths_named(self, name: str) -> list[str]:
        """Paths, of any time, that are this path, end in it after a `/`, or have it as their file name."""
        with self._lock:
            query = "SELECT name FROM paths WHERE base = ? ORDER BY name"
            found = [str(path) for (path,) in self._db.execute(query, (name.rsplit("/", 1)[-1],))]
        return [path for path in found if path == name or path.endswith("/" + name)]

    def lineage(self, names: Iterable[str]) -> list[str]:
        """These paths and what they were called before, along the renames of all commits; at most 64 more."""
        known = dict.fromkeys(names)
        queue = list(known)
        room = MAX_LINEAGE
        with self._lock:
            while queue and room:
                query = (
                    "SELECT DISTINCT old.name FROM changes JOIN paths new ON new.id = changes.path "
                    "JOIN paths old ON old.id = changes.source WHERE new.name = ? ORDER BY old.name"
                )
                for (name,) in self._db.execute(query, (queue.pop(0),)).fetchall():
                    if name not in known and room:
                        known[name] = None
                        queue.append(name)
                        room -= 1
        return list(known)

    def touching(self, names: Iterable[str]) -> set[int]:
        """Rows of the commits that change one of these paths, or rename it away."""
        found: set[int] = set()
        with self._lock:
            for name in names:
                path = self._db.execute("SELECT id FROM paths WHERE name = ?", (name,)).fetchone()
                if path is not None:
                    found.update(
                        row for (row,) in self._db.execute("SELECT commit_id FROM changes WHERE path = ? OR source = ?", (path[0], path[0]))
                    )
        return found

    def below(self, prefix: str) -> set[int]:
        """Rows of the commits that change this file, or a file below this folder."""
        folder = prefix.rstrip("/")
        with self._lock:
            query = (
                "SELECT DISTINCT commit_id FROM changes JOIN paths ON paths.id = changes.path WHERE name = ? OR (name >= ? AND name < ?)"
            )
            return {row for (row,) in self._db.execute(query, (folder, folder + "/", folder + "0"))}


def _row_list(blob: bytes) -> array[int]:
    try:
        return array("I", blob)
    except ValueError as error:
        raise sqlite3.DatabaseError(f"a saved reading is cut: {error}") from error
