"""Checkpoints: how large a log was and the root of its tree, signed by a second key and kept outside the database.

Signatures and chain cannot show that a log's end was cut off, or that the key's owner rebuilt or forked the log; a checkpoint can.
Source: https://c2sp.org/tlog-checkpoint in a signed note. A log's checkpoints stand one after the other in `<log>.txt`, each with a blank
line below it; the file is only ever appended to.
"""

from __future__ import annotations

import base64
import errno
import itertools
import os
import re
import sqlite3
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

from search_router.errors import StoreUnavailable
from search_router.plain_files import check_plain_descriptor, open_plain
from search_router.receipts.log import node_reader, open_for_reading, store_failure
from search_router.receipts.merkle import Tree, tree_at
from search_router.receipts.note import Note, NoteKey, is_signed_by, parse_note, sign_note
from search_router.receipts.tip import Tip

ORIGIN = "search-router.dev/receipts/"
"""With a log's id behind it, the origin line of the log's checkpoints and the name of the key that signs them."""
NEWEST_BYTES = 4096
"""So much of a file's end is read for its newest notes: some 16 of ours."""

_TEXT = re.compile(rf"{re.escape(ORIGIN)}([0-9a-f]{{12}})\n(0|[1-9][0-9]{{0,17}})\n([A-Za-z0-9+/]{{43}}=)\n((?:[^\n]+\n)*)")


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """The first `size` receipts of a log, as the root of their tree."""

    log: str
    size: int
    root: bytes

    @property
    def origin(self) -> str:
        return f"{ORIGIN}{self.log}"

    def text(self) -> str:
        return f"{self.origin}\n{self.size}\n{base64.b64encode(self.root).decode('ascii')}\n"

    def signed(self, key: NoteKey) -> bytes:
        return sign_note(self.text(), self.origin, key)


def checkpoint_of(log: str, tree: Tree) -> Checkpoint:
    return Checkpoint(log, tree.size, tree.root())


def read_checkpoint(note: Note) -> Checkpoint:
    """What a note says, if it is a checkpoint of one of our logs; else ValueError. Its signatures are not judged."""
    parts = _TEXT.fullmatch(note.text)
    if parts is None:
        raise ValueError("not a checkpoint of a receipt log")
    root = base64.b64decode(parts[3])
    if base64.b64encode(root).decode("ascii") != parts[3]:
        raise ValueError("its root is not canonical base64")
    return Checkpoint(parts[1], int(parts[2]), root)


def is_checkpoint_signed(note: Note, checkpoint: Checkpoint, public: Ed25519PublicKey) -> bool:
    return is_signed_by(note, checkpoint.origin, public)


def checkpoint_path(directory: Path, log: str) -> Path:
    return directory / f"{log}.txt"


def append_checkpoint(path: Path, note: bytes) -> None:
    """Add a note to a log's file and return once it is on disk; when that fails the file is as it was before.

    What an earlier crash left half-written stays, and is closed off.

    Raises:
        StoreUnavailable: the file cannot be written.
    """
    try:
        made = not path.exists()
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        descriptor = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        try:
            check_plain_descriptor(descriptor, path)
            size = os.fstat(descriptor).st_size
            torn = b"" if size < 2 or os.pread(descriptor, 2, size - 2) == b"\n\n" else b"\n\n"
            block = torn + note + b"\n"
            try:
                if os.write(descriptor, block) != len(block):
                    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))  # a disk that fills up takes what it can
                os.fsync(descriptor)
            except OSError:
                os.ftruncate(descriptor, size)  # its log is locked, so nobody else has written behind it
                if made:
                    path.unlink()
                raise
        finally:
            os.close(descriptor)
        if made:
            _sync_directory(path.parent)
    except OSError as error:
        raise unwritable(path, error) from error


def read_notes(path: Path) -> Iterator[Note]:
    """All notes of a file in order; half-written ones are left out. OSError when it cannot be read."""
    with open_plain(path) as file:
        yield from _split_notes(file)


def newest_notes(path: Path) -> list[Note]:
    """The last whole notes of a file; empty when there is no file or no note in it. OSError when it cannot be read."""
    try:
        with open_plain(path) as file:
            left_out = max(0, file.seek(0, os.SEEK_END) - NEWEST_BYTES)
            file.seek(left_out)
            end = file.read()
    except FileNotFoundError:
        return []
    if left_out:
        end = end[end.find(b"\n" + ORIGIN.encode()) + 1 :]  # the first one may have lost its beginning
    return list(_split_notes(end.splitlines(keepends=True)))


def _split_notes(lines: Iterable[bytes]) -> Iterator[Note]:
    """A note is three or more lines, a blank one and signature lines; what has another form is passed over."""
    block: list[bytes] = []
    signing = False
    for line in itertools.chain(lines, (b"\n",)):
        is_signature = line.startswith("— ".encode())
        if signing and not is_signature:
            yield from _try_parse(b"".join(block))
            block, signing = [], False
        elif line == b"\n" and not (block and block[-1] != b"\n"):
            block = []
        block.append(line)
        signing = signing or is_signature


def _try_parse(block: bytes) -> Iterator[Note]:
    # A half-written note may stand above a whole one: the text then begins at the last origin line.
    start = block.rfind(ORIGIN.encode(), 0, block.rfind(b"\n\n"))
    try:
        yield parse_note(block[max(0, start) :])
    except ValueError:
        return


def refuse_rollback(path: Path, public: Ed25519PublicKey, log: Path, tip: Tip) -> int:
    """The size of the largest of the newest checkpoints at `path` (0 without one), which the log must still contain.

    Raises:
        StoreUnavailable: the log is smaller than it was or has another past (a restored backup, a cut tail, a rebuilt log), or the file or
            its newest notes are not ours. No receipt may be added then.
    """
    try:
        checkpoints = [_read_own(note, path, public, log) for note in newest_notes(path)]
    except OSError as error:
        raise unwritable(path, error) from error
    if not checkpoints:
        return 0
    checkpoint = max(checkpoints, key=lambda each: each.size)  # an old note that was put behind it does not hide it
    if checkpoint.size > tip.tree.size:
        raise _refused(log, f"it has {tip.tree.size} receipts, and had {checkpoint.size} at its newest checkpoint in {path}")
    try:
        with open_for_reading(log) as database:
            root = tree_at(node_reader(log, database), checkpoint.size).root()
    except sqlite3.Error as error:
        raise store_failure(log, error) from error
    if root != checkpoint.root:
        raise _refused(log, f"its first {checkpoint.size} receipts are not those of its newest checkpoint in {path}")
    return checkpoint.size


def _read_own(note: Note, path: Path, public: Ed25519PublicKey, log: Path) -> Checkpoint:
    try:
        checkpoint = read_checkpoint(note)
    except ValueError as error:
        raise _refused(log, f"the newest checkpoint in {path} is {error}") from error
    if checkpoint.log != log.stem or not is_checkpoint_signed(note, checkpoint, public):
        raise _refused(log, f"the newest checkpoint in {path} is not signed by the checkpoint key of this store")
    return checkpoint


def _refused(log: Path, why: str) -> StoreUnavailable:
    return StoreUnavailable(
        f"The receipt log {log} was rolled back or rebuilt: {why}.",
        remedy=f"Put the newest copy of the log back; or `search-router receipts repair {log.stem}` sets the log and its checkpoints aside "
        "unchanged and the next start makes a new log.",
    )


def unwritable(path: Path, error: OSError) -> StoreUnavailable:
    return StoreUnavailable(
        f"The checkpoint file {path} cannot be used: {error.strerror or error}.",
        remedy="Make it and its directory readable and writable for this user, or set another `receipts.checkpoints`.",
    )


def _sync_directory(directory: Path) -> None:
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
