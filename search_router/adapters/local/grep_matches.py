"""What a grep engine reports, in one form for ripgrep and git: matching lines, ends of files, and a closing count."""

from __future__ import annotations

import codecs
import os
from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple, Protocol

LINE_KEPT = 64 * 1024
"""Bytes of one output record that are held in memory; the rest of a longer one is read and dropped."""
LONG_LINE_MATCHES = 50
"""Of a cut line the text of so many matches is kept, so that it is still known what was found in it."""


class LineMatch(NamedTuple):
    """One matching line: path relative to the root in the file system's spelling (os.fsdecode), 1-based line.

    `is_cut` says that the line is longer than what `text` has of it.
    """

    path: str
    line: int
    text: str
    is_cut: bool = False


@dataclass(frozen=True, slots=True)
class FileEnd:
    """The end of a file that had matches, and whether a NUL byte stopped the reading."""

    path: str
    is_binary: bool


@dataclass(frozen=True, slots=True)
class RunEnd:
    """The end of a run: how many files were read, matching or not."""

    files: int


MatchEvent = LineMatch | FileEnd | RunEnd


class MatchReader(Protocol):
    """Turns the engine's standard output into events, chunk by chunk, in bounded memory."""

    def feed(self, chunk: bytes) -> Iterable[MatchEvent]: ...


def cut_line(text: str, matched: Iterable[str], max_columns: int) -> tuple[str, bool]:
    """(text, is_cut): a line of at most `max_columns` characters as it is, a longer one as its head and what matched in it."""
    if len(text) <= max_columns:
        return text, False
    return " ".join((text[:max_columns], *list(matched)[:LONG_LINE_MATCHES])), True


class Unread(NamedTuple):
    """What an engine could not read: a file or a directory, relative to the root, and its words for why."""

    path: str
    reason: str


def decode_line(data: bytes) -> str:
    """A line as text: UTF-8, and each byte that is none as the character that it is in Latin-1."""
    return data.decode("utf-8", _AS_LATIN_1)


def _as_latin_1(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeDecodeError):
        raise error
    return error.object[error.start : error.end].decode("latin-1"), error.end


_AS_LATIN_1 = "search-router-latin-1"
codecs.register_error(_AS_LATIN_1, _as_latin_1)


def for_system(text: str) -> str:
    """Text as the operating system takes it in an argument or a path; another string only where the locale has no UTF-8."""
    return os.fsdecode(text.encode("utf-8"))


def is_utf8(path: str) -> bool:
    """Whether a path's bytes are UTF-8."""
    try:
        os.fsencode(path).decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True
