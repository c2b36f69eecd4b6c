"""What was derived from file contents, kept on disk and shared by all processes of this machine: a cache, never the truth.

Content-addressed: a row is named by what was derived (`symbols/python`), the git blob id of the bytes, and the version of what derived
it, so that a branch switch, a rename or a second work tree finds everything done. A second table remembers which blob a path held for
which size, times and inode, so that unchanged files are not read at all.

The store lies in a cache directory that is passed in. Whatever happens to it costs time and never an answer: damaged, it is moved
aside and built anew; unwritable, full or busy, the caller works from memory. `notes` says so.
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Final, NamedTuple, TypeVar

from search_router.adapters.local.disk_space import DEFAULT_RESERVE, Reserve
from search_router.adapters.local.manifest import FileEntry
from search_router.adapters.local.store_opening import PAGE, open_store
from search_router.adapters.local.textfile import decode_path, encode_path
from search_router.databases import transaction

FILE_NAME: Final = "index-1.sqlite3"
BUSY_MS: Final = 2000
MAX_BYTES: Final = 4 * 2**30
KEEP_DAYS: Final = 90
"""Rows that no one used for so long are deleted, once a day."""

_AT_ONCE = 500  # below SQLite's limit of bound variables
_DAY_SECONDS = 86_400
# Primary result codes that say nothing about the file's health: PERM, BUSY, LOCKED, NOMEM, READONLY, IOERR, FULL, CANTOPEN.
_NOT_DAMAGE = frozenset({3, 5, 6, 7, 8, 10, 13, 14})
_BUSY = frozenset({5, 6})
_FULL = 13
T = TypeVar("T")


class FileStamp(NamedTuple):
    """What tells that a file did not change since it was read. The inode is cut to the 63 bits that SQLite keeps."""

    size: int
    mtime_ns: int
    inode: int

    @classmethod
    def of(cls, entry: FileEntry) -> FileStamp:
        return cls(entry.size, entry.mtime_ns, entry.inode & 0x7FFF_FFFF_FFFF_FFFF)


class DerivedKey(NamedTuple):
    """Names one row: what was derived, from which bytes (git blob id in hexadecimal), by which version."""

    kind: str
    blob: str
    version: str


class Derived(NamedTuple):
    """One row: the SHA-256 of the file's bytes in hexadecimal, and what was made of them."""

    content_hash: str
    payload: bytes


class DerivedStore:
    """One SQLite file. Every method blocks, so call it in a thread; one connection, used by one thread at a time.

    Args:
        directory: where the file lies; made when it is missing.
        file_name: stores of things that are derived from different things lie in different files.
        max_bytes: the file does not grow beyond this; then new rows are not kept.
        busy_ms: so long another process is waited for.
        reserve: what is left free on the disk; below it nothing new is kept.
    """

    def __init__(
        self,
        directory: Path,
        *,
        file_name: str = FILE_NAME,
        max_bytes: int = MAX_BYTES,
        busy_ms: int = BUSY_MS,
        reserve: Reserve = DEFAULT_RESERVE,
    ) -> None:
        self.path = directory / file_name
        self._max_pages = max(max_bytes // PAGE, 1)
        self.reserve = reserve
        self._busy_ms = busy_ms
        self._lock = threading.Lock()
        self._connection: sqlite3.Connection | None = None
        self._inode = 0
        self._usable = True
        self._failed = False
        self._read_only = False
        self._notes: dict[str, str] = {}

    @property
    def notes(self) -> tuple[str, ...]:
        """What went wrong with the store since it was made, for the caller to read."""
        return tuple(self._notes.values())

    @property
    def is_read_only(self) -> bool:
        """Whether the file, once it was opened, could only be read."""
        return self._read_only

    @property
    def failed(self) -> bool:
        """Whether something that was asked of the store could not be done; what it then gave says nothing of what is in it."""
        return self._failed

    def note_space(self) -> None:
        """Say in the notes whether the disk has room for more."""
        if lack := self.reserve.lack(self.path):
            self._note("space", f"Nothing more is written to the index cache {self.path}, what is new is kept in memory: {lack}.")
        else:
            self._notes.pop("space", None)

    def load(self, keys: Iterable[DerivedKey]) -> dict[DerivedKey, Derived]:
        """The rows that are there, for any number of keys."""
        groups: dict[tuple[str, str], list[bytes]] = {}
        for key in keys:
            groups.setdefault((key.kind, key.version), []).append(bytes.fromhex(key.blob))

        def read(connection: sqlite3.Connection) -> dict[DerivedKey, Derived]:
            found: dict[DerivedKey, Derived] = {}
            for (kind, version), blobs in groups.items():
                for start in range(0, len(blobs), _AT_ONCE):
                    part = blobs[start : start + _AT_ONCE]
                    marks = ",".join("?" * len(part))
                    rows = connection.execute(
                        f"SELECT blob, content_hash, payload FROM derived WHERE kind = ? AND version = ? AND blob IN ({marks})",  # noqa: S608 - only question marks
                        (kind, version, *part),
                    )
                    found.update({DerivedKey(kind, b.hex(), version): Derived(h.hex(), p) for b, h, p in rows})
            return found

        return self.run(read, {})

    def keep(self, rows: Mapping[DerivedKey, Derived]) -> None:
        """Write these rows, in one transaction; a row that is there is replaced by its equal."""
        day = _today()
        values = [(k.kind, bytes.fromhex(k.blob), k.version, bytes.fromhex(d.content_hash), d.payload, day) for k, d in rows.items()]
        self._write("INSERT OR REPLACE INTO derived VALUES (?, ?, ?, ?, ?, ?)", values)

    def mark_used(self, keys: Iterable[DerivedKey]) -> None:
        """Remember that these rows were used today, so that they are not deleted as forgotten."""
        day = _today()
        values = [(day, k.kind, bytes.fromhex(k.blob), k.version, day) for k in keys]
        self._write("UPDATE derived SET day = ? WHERE kind = ? AND blob = ? AND version = ? AND day < ?", values)

    def stamps(self, root: Path) -> dict[str, tuple[FileStamp, str]]:
        """For each path below `root` that was read before: its stamp then, and its blob id."""

        def read(connection: sqlite3.Connection) -> dict[str, tuple[FileStamp, str]]:
            rows = connection.execute("SELECT path, size, mtime_ns, inode, blob FROM seen WHERE root = ?", (os.fsencode(root),))
            return {decode_path(path): (FileStamp(size, mtime, inode), blob.hex()) for path, size, mtime, inode, blob in rows}

        return self.run(read, {})

    def keep_stamps(self, root: Path, stamps: Mapping[str, tuple[FileStamp, str]], gone: Iterable[str] = ()) -> None:
        """Remember what these paths hold, and forget those that are gone."""
        top = os.fsencode(root)
        self._write("DELETE FROM seen WHERE root = ? AND path = ?", [(top, encode_path(path)) for path in gone], grows=False)
        values = [(top, encode_path(path), *stamp, bytes.fromhex(blob)) for path, (stamp, blob) in stamps.items()]
        self._write("INSERT OR REPLACE INTO seen VALUES (?, ?, ?, ?, ?, ?)", values)

    def note_damaged_row(self) -> None:
        """A row's bytes were not what was written; the reader makes it anew, and keeping that replaces it."""
        self._note("row", f"A row of the index cache {self.path} was damaged and is made anew.")

    def drop(self, keys: Iterable[DerivedKey]) -> None:
        """Forget these rows, so that they are made anew."""
        self._write(
            "DELETE FROM derived WHERE kind = ? AND blob = ? AND version = ?",
            [(k.kind, bytes.fromhex(k.blob), k.version) for k in keys],
            grows=False,
        )

    def set_aside(self, why: str) -> None:
        """Move the file out of the way, so that everything is made anew; notes say where it is."""
        with self._lock:
            self._move_aside(sqlite3.DatabaseError(why))

    def close(self) -> None:
        """Release the file; safe to call twice. A later call opens it again."""
        with self._lock:
            self._drop_connection()

    def _write(self, statement: str, values: Sequence[tuple[str | bytes | int, ...]], *, grows: bool = True) -> None:
        def write(connection: sqlite3.Connection) -> None:
            with transaction(connection):
                connection.executemany(statement, values)

        if values and grows:
            self.note_space()
        if values and not (grows and "space" in self._notes):
            self.run(write, None, writes=True)

    def run(self, work: Callable[[sqlite3.Connection], T], otherwise: T, *, writes: bool = False) -> T:
        """`work` done on the open store, or `otherwise` when the store cannot do it; notes say why. Blocks, for a bounded time.

        What `writes` is not tried on a store that can only be read.
        """
        with self._lock:
            if not self._usable:
                return otherwise
            try:
                connection = self._open()
                return otherwise if writes and self._read_only else work(connection)
            except OSError as error:
                self._usable, self._failed = False, True
                self._note(
                    "unusable",
                    f"The index cache {self.path.parent} cannot be used ({error.strerror}); what was derived is kept in memory only. "
                    f"{self._remedy()}",
                )
            except sqlite3.Error as error:
                code = getattr(error, "sqlite_errorcode", 1) & 0xFF
                if code in _NOT_DAMAGE:
                    self._cannot(error, code)
                else:
                    self._move_aside(error)
            return otherwise

    def _cannot(self, error: sqlite3.Error, code: int) -> None:
        remedy = "" if code in _BUSY or code == _FULL else f" {self._remedy()}"
        if type(error) is sqlite3.DatabaseError:  # what `check_database` refuses: permissions are not what is wrong
            remedy = " Move it away; it is built anew."
        self._note(str(code), f"The index cache {self.path} was not used ({error}); what was derived is kept in memory.{remedy}")
        self._failed = True
        if self._connection is None and code not in _BUSY:
            self._usable = False

    def _remedy(self) -> str:
        place = f"{self.path.parent}, or SEARCH_ROUTER_HOME names another place"
        return f"Every process derives it anew until user {os.geteuid()} can write in {place}."

    def _move_aside(self, error: sqlite3.Error) -> None:
        """Put the damaged file out of the way, unless another process has put a new one in its place already."""
        with contextlib.suppress(sqlite3.Error):
            self._drop_connection()
        self._connection = None
        aside = self.path.with_name(f"{self.path.name}.damaged")
        try:
            if self.path.stat().st_ino == self._inode or not self._inode:
                for suffix in ("-wal", "-shm"):
                    self.path.with_name(self.path.name + suffix).unlink(missing_ok=True)
                self.path.replace(aside)
        except FileNotFoundError:
            pass
        except OSError as second:
            self._usable, self._failed = False, True
            self._note("unusable", f"The index cache {self.path} is damaged and cannot be moved aside ({second.strerror}); delete it.")
            return
        self._note("damaged", f"The index cache was damaged ({error}); it was moved to {aside} and is being built anew.")

    def _open(self) -> sqlite3.Connection:
        if self._connection is None:
            connection, self._read_only = open_store(self.path, busy_ms=self._busy_ms, max_pages=self._max_pages)
            self._inode = self.path.stat().st_ino
            try:
                if self._read_only:
                    said = f"The index cache {self.path} can be read and not written: what is new is kept in memory only."
                    self._note("read-only", f"{said} {self._remedy()}")
                else:
                    _delete_forgotten(connection)
            except BaseException:
                connection.close()
                raise
            self._connection = connection
        return self._connection

    def _drop_connection(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()

    def _note(self, kind: str, text: str) -> None:
        self._notes[kind] = text


def _today() -> int:
    return int(time.time()) // _DAY_SECONDS


def _delete_forgotten(connection: sqlite3.Connection) -> None:
    """Once a day (the day stands in user_version): rows unused for KEEP_DAYS, and the stamps of roots that are gone."""
    today = _today()
    if connection.execute("PRAGMA user_version").fetchone()[0] == today:
        return
    with transaction(connection):
        connection.execute("DELETE FROM derived WHERE day < ?", (today - KEEP_DAYS,))
        for (root,) in connection.execute("SELECT DISTINCT root FROM seen").fetchall():
            if not Path(os.fsdecode(root)).exists():
                connection.execute("DELETE FROM seen WHERE root = ?", (root,))
        connection.execute(f"PRAGMA user_version = {today}")
