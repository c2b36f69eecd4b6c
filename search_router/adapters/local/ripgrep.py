"""ripgrep as the engine of the `grep` expert: its command line, its `--json` stream, its exit codes.

The stream is one JSON object a line: begin, match, end (each with a path) and a closing summary. Paths and lines that are not UTF-8
come as base64. `--max-columns` has no effect on it (measured, 15.2): a line of 10 MB is a record of 10 MB, so records are read in
bounded memory here.
"""

from __future__ import annotations

import base64
import json
import os
import re
from collections.abc import Iterable, Sequence
from typing import Any

from pydantic_core import from_json

from search_router.adapters.local.grep_matches import (
    LINE_KEPT,
    FileEnd,
    LineMatch,
    MatchEvent,
    RunEnd,
    Unread,
    cut_line,
    decode_line,
    for_system,
    is_utf8,
)
from search_router.adapters.local.grep_patterns import Patterns
from search_router.errors import ExpertError, FailureClass

MAX_LINES_PER_FILE = 2000
"""Matching lines of one file that ripgrep reports; counts are dampened, so that more would not change the ranking."""
_GLOB_SPECIAL = re.compile(r"([\\*?\[\]{}!])")
_BAD_PATTERN = ("regex parse error", "size limit", "not allowed in a regex", "error parsing")
# A quote inside a JSON string stands behind a backslash, so that none of these can be part of a string.
_MATCH, _TEXT, _NUMBER = b'{"type":"match"', b'},"lines":{"text":', b'},"line_number":'
_AFTER_TEXT = re.compile(rb'"\},"line_number":(\d+)')
_SUBMATCH = re.compile(r'"match":\{"text":("(?:[^"\\]|\\.)*")\}')
_SUBMATCHES_KEPT = 4096
_NO_FILES = "No files were searched"
_SPECIAL = re.compile(r"[\\.+*?()|\[\]{}^$#&~-]")
_UNREAD = re.compile(r"^(?:rg: )?(?:\./)?(.*): ([^:]*) \(os error (\d+)\)$")
_GONE = "2"
_UTF_32_MARKS = (r"(?-u)^\xFF\xFE\x00\x00", r"(?-u)^\x00\x00\xFE\xFF")


def ripgrep_listing(
    program: str, *, threads: int, max_file_bytes: int | None, is_git: bool, nested: Sequence[str], globs: Sequence[str]
) -> list[str]:
    """The part of the command line that chooses files by git's own ignore rules, without `--files` or patterns.

    Hidden files are searched, `.git` is not; `.ignore` and `.rgignore` are no rules of git. A language is a file type and not a
    `--glob`, because ripgrep takes a positive glob as an order to search ignored files too (measured).
    """
    argv = [program, "--no-config", "--hidden", "--glob", "!.git", "--no-ignore-dot", "-j", str(threads)]
    if max_file_bytes is not None:
        argv += ["--max-filesize", str(max_file_bytes)]
    if not is_git:
        argv.append("--no-require-git")
    # A name that is not UTF-8 cannot be in a glob; what is found below it is left out afterwards.
    for root in (name for name in nested if is_utf8(name)):
        argv += ["--glob", "!/" + _GLOB_SPECIAL.sub(r"\\\1", root)]
    for glob in globs:
        argv += ["--type-add", f"scoped:{glob}"]
    return [*argv, "--type", "scoped"] if globs else argv


def ripgrep_search(listing: Sequence[str], patterns: Patterns, paths: Sequence[str]) -> list[str]:
    """The whole command line: user text only behind `-e`, paths only behind `--`."""
    return [*listing, "--json", *_pattern_options(patterns), "--", *paths]


def ripgrep_count(listing: Sequence[str], patterns: Patterns, paths: Sequence[str]) -> list[str]:
    """The command line that prints `path NUL match` for every match, a line each, and how many files were searched."""
    bare = ("--only-matching", "--with-filename", "--null", "--no-line-number", "--no-heading", "--color", "never", "--stats")
    return [*listing, *bare, *_pattern_options(patterns), "--", *paths]


def _pattern_options(patterns: Patterns) -> list[str]:
    argv = ["--max-count", str(MAX_LINES_PER_FILE)]
    spellings: Sequence[str] = patterns.spellings
    if patterns.fixed and not patterns.is_ascii:
        latin_1 = [in_latin_1(spelling, ignore_case=patterns.ignore_case) for spelling in spellings if _has_latin_1_bytes(spelling)]
        spellings = [*map(_escaped, spellings), *latin_1]
    elif patterns.fixed:
        argv.append("--fixed-strings")
    if patterns.ignore_case:
        argv.append("--ignore-case")
    if patterns.whole_words:
        argv.append("--word-regexp")
    for spelling in spellings:
        argv += ["-e", for_system(spelling)]
    return argv


def _escaped(text: str) -> str:
    """A regular expression that matches exactly this text."""
    return _SPECIAL.sub(r"\\\g<0>", text)


def _has_latin_1_bytes(text: str) -> bool:
    return not text.isascii() and all(ord(c) < 256 for c in text)


def in_latin_1(text: str, *, ignore_case: bool) -> str:
    """A regular expression for this text in a Latin-1 file, where each character is one byte. ripgrep folds case in UTF-8 only."""
    parts: list[str] = []
    for c in text:
        spelled = {c, c.swapcase()} if ignore_case else {c}
        one_byte = sorted(ord(each) for each in spelled if len(each) == 1 and ord(each) < 256)
        parts.append(_escaped(c) if c.isascii() else "(?-u:[" + "".join(f"\\x{byte:02X}" for byte in one_byte) + "])")
    return "".join(parts)


def ripgrep_utf_32(listing: Sequence[str], paths: Sequence[str]) -> list[str]:
    """The command line that lists, each with a NUL, the files that begin with the mark of UTF-32, which ripgrep takes for binary."""
    argv = [*listing, "--files-with-matches", "--null", "--max-count", "1", "--text", "--encoding", "none"]
    for mark in _UTF_32_MARKS:
        argv += ["-e", mark]
    return [*argv, "--", *paths]


def unread_by_ripgrep(stderr: str) -> tuple[Unread, ...]:
    """Files and directories that it could not read. One that has gone meanwhile hides nothing."""
    found = (_UNREAD.match(line) for line in stderr.splitlines())
    return tuple(Unread(each[1], each[2]) for each in found if each is not None and each[3] != _GONE)


def judge_ripgrep(code: int, stderr: str, *, found: bool) -> str | None:
    """A note for the caller when ripgrep complained, None when it did not.

    Exit code 2 can come with matches (one unreadable file among many): they count, and the complaint becomes the note.

    Raises:
        ExpertError: `rejected` for a pattern that is no regex, `crashed` for any other failure without matches.
    """
    lines = [line for line in stderr.splitlines() if line.strip()]
    if code in (0, 1):
        complaints = [line.removeprefix("rg: ") for line in lines if line.startswith("rg: ") and _NO_FILES not in line]
        return f"ripgrep could not apply every ignore rule, so ignored files may be found: {complaints[0][:200]}" if complaints else None
    if not found and any(marker in stderr for marker in _BAD_PATTERN):
        said = next((line.removeprefix("error: ") for line in lines if line.startswith("error: ")), lines[0].removeprefix("rg: "))
        raise ExpertError(
            FailureClass.REJECTED,
            f"The pattern is not a regular expression that ripgrep can run: {said[:200]}.",
            remedy="Mend the pattern, or ask for it as a quoted string.",
        )
    unread = [line for line in lines if "os error" in line]
    if code == 2 and unread:
        return f"{len(unread)} path(s) could not be read, the first: {unread[0].removeprefix('rg: ')[:200]}"
    if found:
        return f"ripgrep ended with exit code {code}: {lines[0][:200] if lines else 'no message'}"
    raise ExpertError(FailureClass.CRASHED, f"ripgrep ended with exit code {code} and no matches.", detail=stderr)


class RipgrepReader:
    """Reads the `--json` stream. Holds at most one record, and of a record at most LINE_KEPT bytes."""

    def __init__(self, max_columns: int) -> None:
        self._max_columns = max_columns
        self._held = bytearray()
        self._long: _LongRecord | None = None
        self._path = ""

    def feed(self, chunk: bytes) -> Iterable[MatchEvent]:
        first = chunk.find(b"\n")
        if first < 0 or self._long is not None or max(len(chunk), len(self._held) + first) > LINE_KEPT:
            yield from self._feed_long(chunk)
            return
        last = chunk.rfind(b"\n")
        block = bytes(self._held) + chunk[:last]
        self._held[:] = chunk[last + 1 :]
        for record in block.split(b"\n"):
            event = self._read(record)
            if event is not None:
                yield event

    def _feed_long(self, chunk: bytes) -> Iterable[MatchEvent]:
        """Record by record, because one may be too long to hold."""
        *records, rest = chunk.split(b"\n")
        for record in records:
            if self._long is not None:
                self._long.feed(record)
                event, self._long = self._long.match(self._path, self._max_columns), None
            elif len(self._held) + len(record) > LINE_KEPT:
                self._long = self._open_long(record)
                event, self._long = self._long.match(self._path, self._max_columns), None
            else:
                event = self._read(bytes(self._held) + record)
                self._held.clear()
            if event is not None:
                yield event
        if self._long is not None:
            self._long.feed(rest)
        elif len(self._held) + len(rest) > LINE_KEPT:
            self._long = self._open_long(rest)
        else:
            self._held += rest

    def _open_long(self, more: bytes) -> _LongRecord:
        long = _LongRecord()
        long.feed(bytes(self._held))
        long.feed(more)
        self._held.clear()
        return long

    def _read(self, record: bytes) -> MatchEvent | None:
        return self._read_plain_match(record) or self._read_any(record)

    def _read_plain_match(self, record: bytes) -> LineMatch | None:
        """A match in its usual form, a third of the time of parsing all of it; None for any other record."""
        text_at = record.find(_TEXT) if record.startswith(_MATCH) else -1
        text_end = record.find(_NUMBER, text_at)
        if text_at < 0 or text_end < 0:
            return None
        text: str = from_json(record[text_at + len(_TEXT) : text_end], cache_strings="none")
        number_at = text_end + len(_NUMBER)
        line = int(record[number_at : record.index(b",", number_at)])
        return LineMatch(self._path, line, text) if len(text) <= self._max_columns else None

    def _read_any(self, record: bytes) -> MatchEvent | None:
        parsed: dict[str, Any] = from_json(record)
        data: dict[str, Any] = parsed["data"]
        match parsed["type"]:
            case "match":
                text, is_cut = _text_of(data["lines"]), False
                if len(text) > self._max_columns:
                    text, is_cut = cut_line(text, (_text_of(part["match"]) for part in data["submatches"]), self._max_columns)
                return LineMatch(self._path, data["line_number"], text, is_cut)
            case "begin":
                self._path = _path_of(data["path"])
                return None
            case "end":
                return FileEnd(self._path, data["binary_offset"] is not None)
            case "summary":
                return RunEnd(int(data["stats"]["searches"]))
            case _:
                return None


class _LongRecord:
    """A record that is too long to hold: its head, its line number, and what matched in the first kilobytes of its match list."""

    def __init__(self) -> None:
        self._head = bytearray()
        self._seam = b""
        self._line: int | None = None
        self._matched = bytearray()

    def feed(self, part: bytes) -> None:
        if len(self._head) < LINE_KEPT:
            self._head += part[: LINE_KEPT - len(self._head)]
        if self._line is None:
            window = self._seam + part
            # The number must be complete: ask for the comma behind it.
            found = _AFTER_TEXT.search(window)
            if found is None or found.end() == len(window):
                self._seam = window[-64:]
                return
            self._line = int(found[1])
            part = window[found.end() :]
        self._matched += part[: max(0, _SUBMATCHES_KEPT - len(self._matched))]

    def match(self, path: str, max_columns: int) -> LineMatch | None:
        """The match, or None when the record was none (only matches grow that long)."""
        if self._line is None:
            return None
        head = self._head.decode("utf-8", "replace").partition('"lines":{"text":"')[2]
        texts = (json.loads(found) for found in _SUBMATCH.findall(self._matched.decode("utf-8", "replace")))
        text, _ = cut_line(head, texts, max_columns)
        return LineMatch(path, self._line, text, True)


def _path_of(data: dict[str, str]) -> str:
    path = for_system(data["text"]) if "text" in data else os.fsdecode(base64.b64decode(data["bytes"]))
    return path.removeprefix("./")


def _text_of(data: dict[str, str]) -> str:
    return data["text"] if "text" in data else decode_line(base64.b64decode(data["bytes"]))
