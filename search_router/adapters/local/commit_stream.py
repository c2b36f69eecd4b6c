"""Commits out of git's byte stream, with NUL as the only separator.

A message may hold any byte but NUL, so may a path; a separator of any other kind can be forged by whoever writes a commit. The
formats are those of git-log(1) and git-diff-tree(1) with `-z --name-status`: after a fixed number of header fields come pairs of a
status and a path (`R100` and `C75` have two paths), until the next header begins with a full object name.
"""

from __future__ import annotations

import re
from typing import NamedTuple

HEADER = ("%H", "%P", "%ct", "%aI", "%an", "%s", "%b")
FORMAT = "--format=" + "%x00".join(HEADER)
BODY_CHARACTERS = 2000
"""So much of a body is searched: bots paste whole change logs into theirs."""

_STATUS = re.compile(rb"[ACDMRTUXB]\d{0,3}")
_OBJECT_NAME = re.compile(rb"[0-9a-f]{40}(?:[0-9a-f]{24})?")
_TRAILER = re.compile(r"^[A-Z][A-Za-z-]*-by: .*$", re.MULTILINE)


class Change(NamedTuple):
    """One path that a commit touches, relative to the project's root, and the path that it was renamed or copied from."""

    path: str
    source: str | None = None


class Commit(NamedTuple):
    """One commit as read: `time` is the committer's in Unix seconds, `date` the author's in ISO 8601."""

    sha: str
    time: int
    date: str
    author: str
    subject: str
    body: str
    is_merge: bool
    changes: tuple[Change, ...]


class Record(NamedTuple):
    """Header fields as bytes, and the changes below them."""

    fields: tuple[bytes, ...]
    changes: tuple[Change, ...]


def text_of(raw: bytes) -> str:
    """Text for people out of bytes of any encoding; what is not UTF-8 becomes U+FFFD."""
    return raw.decode("utf-8", "replace")


class RecordParser:
    """Records out of chunks that may be cut anywhere; a record is given out when the next one begins, or at the end."""

    def __init__(self, fields: int) -> None:
        self._fields = fields
        self._rest = b""
        self._header: list[bytes] = []
        self._changes: list[Change] = []
        self._paths: list[str] = []
        self._wanted = 0  # paths that the last status still lacks

    def feed(self, chunk: bytes) -> list[Record]:
        """The records that this chunk completes.

        Raises:
            ValueError: the stream has another format than was asked for.
        """
        tokens = (self._rest + chunk).split(b"\0")
        self._rest = tokens.pop()
        return [record for token in tokens if (record := self._take(token)) is not None]

    def close(self) -> list[Record]:
        """The last record. Raises ValueError when the stream stopped in the middle of one."""
        if self._rest.strip(b"\n") or self._wanted or 0 < len(self._header) < self._fields:
            raise ValueError("git's output ends in the middle of a commit")
        return [self._record()] if self._header else []

    def _take(self, token: bytes) -> Record | None:
        if self._wanted:
            self._path(text_of(token))
            return None
        if 0 < len(self._header) < self._fields:
            self._header.append(token)
            return None
        token = token.lstrip(b"\n")
        if _STATUS.fullmatch(token) and self._header:
            self._wanted = 2 if token[:1] in b"RC" else 1
            return None
        if not _OBJECT_NAME.fullmatch(token):
            raise ValueError(f"git's output has {token[:60]!r} where a commit or a status belongs")
        done = self._record() if self._header else None
        self._header, self._changes = [token], []
        return done

    def _path(self, path: str) -> None:
        self._paths.append(path)
        self._wanted -= 1
        if not self._wanted:
            self._changes.append(Change(self._paths[-1], self._paths[0] if len(self._paths) == 2 else None))
            self._paths.clear()

    def _record(self) -> Record:
        return Record(tuple(self._header), tuple(self._changes))


def commit_of(record: Record) -> Commit:
    """The commit of a record that was printed with FORMAT."""
    sha, parents, time, date, author, subject, body = (text_of(field) for field in record.fields)
    said = _TRAILER.sub("", body[: BODY_CHARACTERS * 2]).strip()[:BODY_CHARACTERS]
    return Commit(sha, int(time), date, author, subject, said, " " in parents, record.changes)
