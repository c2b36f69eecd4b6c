"""Files of our own state are plain files: whatever else lies under such a name is refused before it is opened.

A pipe would keep its reader waiting for ever, a device has no end, a directory gives each library another error. A link to a plain file is
one. What the caller's shell hands over below `/dev/fd` is the caller's own business and is read as it is.
"""

from __future__ import annotations

import errno
import os
import sqlite3
import stat
from pathlib import Path
from typing import BinaryIO, Final

_KINDS: Final = {
    stat.S_IFIFO: "a named pipe",
    stat.S_IFSOCK: "a socket",
    stat.S_IFDIR: "a directory",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
}
_HANDED_OVER: Final = ("/dev/fd/", "/proc/self/fd/", "/dev/stdin")
_SQLITE_PIECES: Final = ("", "-wal", "-shm", "-journal")


def open_plain(path: Path) -> BinaryIO:
    """The file, open for reading. Never waits for a writer.

    Raises:
        OSError: it cannot be opened, or it is no plain file; `strerror` says which.
    """
    if str(path).startswith(_HANDED_OVER):
        return path.open("rb")
    _refuse(path, path.stat().st_mode)  # before opening: that alone can do something to a device
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    try:
        check_plain_descriptor(descriptor, path)
        return os.fdopen(descriptor, "rb")
    except BaseException:
        os.close(descriptor)
        raise


def read_plain(path: Path, max_bytes: int = -1) -> bytes:
    """All bytes of the file, or the first `max_bytes`. Raises OSError as `open_plain`."""
    with open_plain(path) as file:
        return file.read(max_bytes)


def check_plain_descriptor(descriptor: int, path: Path) -> None:
    """Refuse what was opened, for writing or locking, and is no plain file. Raises OSError."""
    _refuse(path, os.fstat(descriptor).st_mode)


def check_database(path: Path) -> None:
    """Refuse a database, or a file that SQLite keeps beside it, that is there and is no plain file. SQLite itself would read a pipe.

    Raises:
        sqlite3.DatabaseError: as SQLite raises it for a file that is no database, with the code of one that it cannot open.
    """
    for piece in _SQLITE_PIECES:
        place = Path(f"{path}{piece}")
        try:
            mode = place.stat().st_mode
        except OSError:  # not there, or not to be reached: SQLite says so
            continue
        try:
            _refuse(place, mode)
        except OSError as error:
            refused = sqlite3.DatabaseError(f"{place.name}: {error.strerror}")
            refused.sqlite_errorcode = sqlite3.SQLITE_CANTOPEN
            raise refused from error


def _refuse(path: Path, mode: int) -> None:
    if not stat.S_ISREG(mode):
        raise OSError(errno.EINVAL, f"it is {_KINDS.get(stat.S_IFMT(mode), 'something else')} and not a plain file", os.fspath(path))
