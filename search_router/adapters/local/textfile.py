"""Read one file of a project as text: contained in its root, hashed, decoded, with what was odd about it said in flags.

Paths are POSIX and relative to the root. A name that is not UTF-8 carries its bytes as lone surrogates (PEP 383), whatever the
locale says, so that a path means the same bytes under `LANG=C`.
"""

from __future__ import annotations

import codecs
import errno
import hashlib
import os
import re
import stat
from dataclasses import dataclass
from pathlib import Path

from search_router.errors import EvidenceError

LONG_LINE = 10_000
"""A line of more characters than this is flagged `long-line`."""
BINARY_HEAD = 8000
"""git calls a file binary that has a NUL among so many first bytes."""
CHUNK = 1 << 20

_BIDI = re.compile("[\u202a-\u202e\u2066-\u2069]")
# UTF-32 first: its little-endian mark starts with UTF-16's.
_MARKS = (
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
    (codecs.BOM_UTF8, "utf-8"),
)


@dataclass(frozen=True, slots=True)
class TextFile:
    """A file as it was read, once.

    `content_hash` is SHA-256 and `blob` git's SHA-1 blob id, both in hexadecimal and of all the file's raw bytes, also of those
    beyond the cap (`git hash-object --no-filters`). `text` has no byte order mark and `\\n` for `\\r\\n`; of a
    binary it is the whole lines before the first NUL, none if that is near the start.
    """

    text: str
    content_hash: str
    blob: str
    encoding: str
    size: int
    flags: tuple[str, ...] = ()


def encode_path(path: str) -> bytes:
    """The bytes of a file name. Raises UnicodeEncodeError for surrogates that stand for no byte."""
    return path.encode("utf-8", "surrogateescape")


def decode_path(name: bytes) -> str:
    """A file name as text that `encode_path` turns back into the same bytes."""
    return name.decode("utf-8", "surrogateescape")


def split_lines(text: str) -> list[str]:
    """Lines without their ends, counted as ripgrep and git count them: only `\\n` ends a line (not `\\r`, `\\x0b`, U+2028 …)."""
    lines = text.split("\n")
    if not lines[-1]:
        lines.pop()
    return lines


def read_text_file(root: Path, path: str, *, max_bytes: int) -> TextFile:
    """The file at `path` below `root`, its first `max_bytes` bytes as text. Blocks: call it in a thread.

    Flags: `binary` (a NUL), `utf-16`, `utf-32` (by their mark), `latin-1` (not UTF-8), `crlf`, `long-line`, `bidi` (controls that
    reorder what a person sees), `truncated` (longer than the cap), `changing` (written to while it was read).

    Raises:
        EvidenceError: `evidence-refused` for a path that is malformed, leads outside the root, loops, or lies in `.git`;
            `evidence-gone` where there is no file; `evidence-unreadable` for no permission or for what is not a regular file;
            `evidence-changing` for a large file that shrank while it was read.
    """
    descriptor = _open_contained(root, path)
    try:
        before = os.fstat(descriptor)
        if not stat.S_ISREG(before.st_mode):
            raise EvidenceError(f"{path!r} is not a regular file.", remedy="Ask for a file.", code="evidence-unreadable")
        kept, content_hash, blob = _read_and_hash(descriptor, path, before.st_size, max_bytes)
        after = os.fstat(descriptor)
    finally:
        os.close(descriptor)
    truncated = before.st_size > max_bytes
    text, encoding, flags = _decode(kept, truncated)
    if truncated:
        flags.append("truncated")
    if (before.st_size, before.st_mtime_ns) != (after.st_size, after.st_mtime_ns):
        flags.append("changing")
    return TextFile(text, content_hash, blob, encoding, before.st_size if truncated else len(kept), tuple(flags))


def _read_and_hash(descriptor: int, path: str, size: int, max_bytes: int) -> tuple[bytes, str, str]:
    """(first bytes, SHA-256, blob id) of the first `size` bytes of an open file, in one pass and bounded memory."""
    kept = bytearray()
    content = hashlib.sha256()
    blob = hashlib.sha1(b"blob %d\0" % size, usedforsecurity=False)
    left = size
    while left and (chunk := os.read(descriptor, min(CHUNK, left))):
        left -= len(chunk)
        content.update(chunk)
        blob.update(chunk)
        kept += chunk[: max_bytes - len(kept)]
    if left:  # it shrank; the blob's header is wrong, and only a file that is wholly in memory can be hashed again
        if size - left > len(kept):
            raise EvidenceError(f"{path!r} shrank while it was read.", remedy="Ask again.", code="evidence-changing")
        blob = hashlib.sha1(b"blob %d\0" % len(kept) + kept, usedforsecurity=False)
    return bytes(kept), content.hexdigest(), blob.hexdigest()


def _decode(data: bytes, truncated: bool) -> tuple[str, str, list[str]]:
    """(text, encoding, flags). A cut in the middle of a character loses that character only."""
    flags: list[str] = []
    mark, encoding = next(((m, e) for m, e in _MARKS if data.startswith(m)), (b"", "utf-8"))
    body = data[len(mark) :]
    if encoding == "utf-8":
        try:
            text = codecs.getincrementaldecoder("utf-8")().decode(body, final=not truncated)
        except UnicodeDecodeError:
            text, encoding = body.decode("latin-1"), "latin-1"
            flags.append("latin-1")
    else:
        text = codecs.getincrementaldecoder(encoding)("replace").decode(body, final=not truncated)
        flags.append(encoding[:6])
    if "\0" in text:
        return _text_before_nul(text), "binary", ["binary"]
    if "\r\n" in text:
        text = text.replace("\r\n", "\n")
        flags.append("crlf")
    if len(text) > LONG_LINE and max(map(len, text.split("\n"))) > LONG_LINE:
        flags.append("long-line")
    if not text.isascii() and _BIDI.search(text):
        flags.append("bidi")
    return text, encoding, flags


def _text_before_nul(text: str) -> str:
    """What ripgrep searches of a file with a NUL: nothing when it is near the start (as git judges), else the whole lines before it."""
    at = text.index("\0")
    return "" if at < BINARY_HEAD else text[: text.rfind("\n", 0, at) + 1]


def _open_contained(root: Path, path: str) -> int:
    """A descriptor of the real file, opened a component at a time without following links, so that no swap leads outside."""
    try:
        wanted = encode_path(path)
    except UnicodeEncodeError:
        raise _refused(path, "is not a file name") from None
    parts = wanted.split(b"/")
    if not wanted or b"\0" in wanted or wanted.startswith(b"/") or b".." in parts:
        raise _refused(path, "is not a path relative to the project")
    if any(part.lower() == b".git" for part in parts):
        raise _refused(path, "belongs to git itself")
    plain = [part for part in parts if part not in (b"", b".")]
    try:
        if plain:
            return _open_steps(os.fsencode(root), plain)  # the usual case: no link on the way
    except OSError as error:
        if error.errno not in (errno.ELOOP, errno.ENOTDIR):
            raise _open_failure(path, error) from error
    base = os.path.realpath(os.fsencode(root))
    inside = base.rstrip(b"/") + b"/"
    try:
        real = os.path.realpath(inside + wanted)
    except RecursionError:  # a chain of hundreds of links; the kernel follows 40
        raise _refused(path, "is a loop of symbolic links") from None
    if not real.startswith(inside):
        raise _refused(path, "leads outside the project")
    steps = real[len(inside) :].split(b"/")
    if any(part.lower() == b".git" for part in steps):
        raise _refused(path, "belongs to git itself")
    try:
        return _open_steps(base, steps)
    except OSError as error:
        raise _open_failure(path, error) from error


def _open_steps(base: bytes, steps: list[bytes]) -> int:
    # Not O_DIRECTORY: with it a link is ENOTDIR, the same as a missing directory. O_NONBLOCK: a pipe without a writer must not hang.
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    descriptor = os.open(base, flags & ~os.O_NOFOLLOW)
    for step in steps:
        try:
            below = os.open(step, flags, dir_fd=descriptor)
        finally:
            os.close(descriptor)
        descriptor = below
    return descriptor


def _refused(path: str, why: str) -> EvidenceError:
    return EvidenceError(f"{path!r} {why}.", remedy="Give a path below the project's root.", code="evidence-refused")


def _open_failure(path: str, error: OSError) -> EvidenceError:
    if error.errno == errno.ELOOP:
        return _refused(path, "is a loop of symbolic links")
    if error.errno in (errno.ENOENT, errno.ENOTDIR):
        return EvidenceError(f"{path!r} does not exist any more.", remedy="Search again.", code="evidence-gone")
    reason = os.strerror(error.errno) if error.errno else "unknown error"
    return EvidenceError(f"{path!r} cannot be read: {reason}.", remedy="Check its permissions.", code="evidence-unreadable")
