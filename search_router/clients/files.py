"""Other programs' configuration files on disk: read whole or refused, replaced in one step, with a copy of what was there beside them.

Nobody is locked out who does not ask: two installs wait for each other (an advisory lock on the directory, which leaves no file behind),
and a client that writes its own file meanwhile is noticed before the replacement.
"""

from __future__ import annotations

import codecs
import contextlib
import errno
import fcntl
import os
import re
import stat
import time
from collections.abc import Generator
from dataclasses import dataclass
from pathlib import Path

from search_router.errors import ClientFileError
from search_router.receipts.keys import sync_directory, write_temporary

MAX_BYTES = 16 * 2**20
KEPT_BACKUPS = 3
LOCK_SECONDS = 10.0
LOCK_PAUSE_SECONDS = 0.02
NEW_FILE_MODE = 0o600
BACKUP_SUFFIX = ".before-search-router."


@dataclass(frozen=True, slots=True)
class Content:
    """A file's bytes, and the same as text without its byte order mark. `data` is None when there is no file."""

    data: bytes | None
    text: str
    marked: bool
    mode: int

    def encode(self, text: str) -> bytes:
        """The bytes of another text in this file's manner."""
        return (codecs.BOM_UTF8 if self.marked else b"") + text.encode("utf-8")


def find_target(path: Path) -> Path:
    """The file that a name stands for, symbolic links followed; it need not exist. Raises ClientFileError."""
    try:
        return path.resolve()
    except (OSError, RuntimeError) as error:
        raise ClientFileError(f"{path} is a link that leads nowhere ({error}).", remedy="Mend or remove the link.") from error


def read_content(path: Path) -> Content:
    """The file as it is now.

    Raises:
        ClientFileError: not a regular file, larger than 16 MiB, not UTF-8, or not readable.
    """
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    except FileNotFoundError:
        return Content(None, "", False, NEW_FILE_MODE)
    except OSError as error:
        raise _refused(path, error, "Make it readable for this user") from error
    facts = os.fstat(descriptor)
    if not stat.S_ISREG(facts.st_mode):
        os.close(descriptor)  # before it is made a file object, which a directory cannot be
        raise ClientFileError(f"{path} is not a regular file.", remedy="Move it away; it is written again as a file.")
    with os.fdopen(descriptor, "rb") as file:
        try:
            data = file.read(MAX_BYTES + 1)
        except OSError as error:
            raise _refused(path, error, "Make it readable for this user") from error
    if len(data) > MAX_BYTES:
        raise ClientFileError(f"{path} is larger than {MAX_BYTES // 2**20} MiB.", remedy="Add the server by hand: see docs/install.md.")
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ClientFileError(f"{path} is not UTF-8 (byte {error.start}).", remedy="Save it as UTF-8 and try again.") from None
    return Content(data, text, data.startswith(codecs.BOM_UTF8), stat.S_IMODE(facts.st_mode))


@contextlib.contextmanager
def directory_locked(directory: Path) -> Generator[None]:
    """Alone among the installs that change files in this directory. Raises ClientFileError after LOCK_SECONDS."""
    try:
        descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError as error:
        raise _refused(directory, error, "Make it readable for this user") from error
    try:
        _lock(descriptor, directory)
        yield
    finally:
        os.close(descriptor)


def _lock(descriptor: int, directory: Path) -> None:
    deadline = time.monotonic() + LOCK_SECONDS
    while True:
        try:
            return fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            if error.errno not in (errno.EWOULDBLOCK, errno.EACCES):
                return None  # a file system without locks: the comparison before the replacement still holds
            if time.monotonic() > deadline:
                raise ClientFileError(
                    f"Another install has been changing files in {directory} for {LOCK_SECONDS:.0f} s.", remedy="Try again."
                ) from None
        time.sleep(LOCK_PAUSE_SECONDS)


def make_directory(directory: Path) -> tuple[Path, ...]:
    """The directories that had to be made so that this one is there, outermost first. Raises ClientFileError."""
    missing: list[Path] = []
    at = directory
    while not at.exists() and at != at.parent:
        missing.insert(0, at)
        at = at.parent
    try:
        directory.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise _refused(directory, error, "Make its parent writable for this user") from error
    return tuple(missing)


def replace_content(path: Path, before: Content, after: bytes, *, keep_copy: bool = True) -> Path | None:
    """Put `after` in the place of `before`, in one step and with the same mode; the copy of what was there, if there was a file.

    The directory is locked by the caller.

    Raises:
        ClientFileError: the file is not what `before` says any more, or the directory cannot be written. The file is as it was.
    """
    if read_content(path).data != before.data:
        raise ClientFileError(f"{path} was changed by another program meanwhile.", remedy="Close the client and try again.")
    try:
        backup = None if before.data is None or not keep_copy else _back_up(path, before.data, before.mode)
        write_temporary(path, after, before.mode).replace(path)
        sync_directory(path.parent)
    except OSError as error:
        raise _refused(path, error, "Make its directory writable for this user") from error
    return backup


def remove_file(path: Path, before: Content, *, keep_copy: bool = True) -> Path | None:
    """Take away a file that install made; the copy of what was there. Raises ClientFileError as `replace_content` does."""
    if read_content(path).data != before.data:
        raise ClientFileError(f"{path} was changed by another program meanwhile.", remedy="Close the client and try again.")
    try:
        backup = None if before.data is None or not keep_copy else _back_up(path, before.data, before.mode)
        path.unlink()
        sync_directory(path.parent)
    except OSError as error:
        raise _refused(path, error, "Make its directory writable for this user") from error
    return backup


def _back_up(path: Path, data: bytes, mode: int) -> Path:
    """Copy it to the next free number, and take away all but the newest KEPT_BACKUPS copies."""
    pattern = re.compile(re.escape(path.name + BACKUP_SUFFIX) + r"(\d{1,9})\Z")
    numbers = sorted(int(found[1]) for entry in path.parent.iterdir() if (found := pattern.match(entry.name)))
    backup = path.with_name(f"{path.name}{BACKUP_SUFFIX}{numbers[-1] + 1 if numbers else 1}")
    write_temporary(backup, data, mode).replace(backup)
    for number in numbers[: max(0, len(numbers) - KEPT_BACKUPS + 1)]:
        path.with_name(f"{path.name}{BACKUP_SUFFIX}{number}").unlink(missing_ok=True)
    return backup


def _refused(path: Path, error: OSError, remedy: str) -> ClientFileError:
    return ClientFileError(f"{path}: {error.strerror or error}.", remedy=f"{remedy}, or add the server by hand: see docs/install.md.")
