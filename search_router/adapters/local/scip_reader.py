"""Read an `index.scip` by need: a table of its documents in memory, and of the documents only what a name appears in.

A look-up searches the raw bytes for the name, some MB at a time, and decodes only the occurrences around what it found: memory stays
bounded whatever the size of the index. The file is read, never mapped: an indexer that truncates a mapped file would kill us.

Field numbers are those of scip.proto (github.com/scip-code/scip). Unknown fields are stepped over.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, NamedTuple

from search_router.adapters.local.protobuf_wire import BYTES, VARINT, MalformedMessage, WireField, read_fields, read_packed, read_varint
from search_router.errors import ExpertError, FailureClass

WINDOW: Final = 4 << 20
"""So many bytes are searched at a time; a larger document is a window of its own."""
MAX_DOCUMENT: Final = 64 << 20
MAX_DOCUMENTS: Final = 1 << 20
MAX_FOUND: Final = 20_000
"""Occurrences of one look-up; then it stops and says so."""

_HEAD = 4096
_DEFINITION, _IMPORT, _FORWARD = 0x1, 0x2, 0x40
_RANGE_NUMBERS = 4
_MAX_NUMBER = 1 << 31

Check = Callable[[], None]
"""Called often; raises to stop the reading."""


class Stamp(NamedTuple):
    """What tells that a file has changed."""

    inode: int
    size: int
    mtime_ns: int

    @classmethod
    def of(cls, status: os.stat_result) -> Stamp:
        return cls(status.st_ino, status.st_size, status.st_mtime_ns)


class DocumentEntry(NamedTuple):
    """Where one document lies in the file: the content of the message is the bytes from `start` to `end`."""

    path: str
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class ScipTable:
    """What is kept of an index between questions. `root` is the URI that the indexer wrote, as it is."""

    file: Path
    stamp: Stamp
    tool: str
    version: str
    root: str
    documents: tuple[DocumentEntry, ...]


@dataclass(frozen=True, slots=True)
class Occurrence:
    """A symbol in a document: 0-based lines and characters, half open; the span is that of the expression or definition around it."""

    symbol: str
    start: tuple[int, int]
    end: tuple[int, int]
    is_definition: bool = False
    is_import: bool = False
    is_forward: bool = False
    span: tuple[int, int] | None = None
    """First and last line, 0-based and closed."""


class Implements(NamedTuple):
    """That a symbol implements (or overrides) another one."""

    symbol: str
    implemented: str


@dataclass(frozen=True, slots=True)
class FoundDocument:
    """What one document says about a name. `encoding` is scip.proto's PositionEncoding, 0 when the indexer did not say."""

    path: str
    language: str
    encoding: int
    occurrences: tuple[Occurrence, ...]
    implements: tuple[Implements, ...]


class ScipMatches(NamedTuple):
    """The documents that a name appears in; `complete` is False when there was too much of it."""

    documents: tuple[FoundDocument, ...]
    complete: bool


def read_table(file: Path, *, max_bytes: int, check: Check = lambda: None) -> ScipTable:
    """The table of an index. Blocks: call it in a thread.

    Raises:
        ExpertError: `index-missing` where there is none or it has no document, `rejected` for one that is too large, `protocol-error`
            for bytes that are no index, `unavailable` when it cannot be read or changes meanwhile.
    """
    descriptor = _open(file)
    try:
        stamp = Stamp.of(os.fstat(descriptor))
        if stamp.size > max_bytes:
            raise ExpertError(
                FailureClass.REJECTED, f"{file} has {stamp.size} bytes.", remedy=f"Raise max_index_bytes ({max_bytes}), or index less."
            )
        return _read_table(descriptor, file, stamp, check)
    except MalformedMessage as error:
        raise _malformed(file, error) from error
    finally:
        os.close(descriptor)


def find_symbols(table: ScipTable, pattern: re.Pattern[bytes], *, check: Check = lambda: None, most: int = MAX_FOUND) -> ScipMatches:
    """Everything about the symbols that the pattern matches. Blocks: call it in a thread.

    Raises:
        ExpertError: `unavailable` when the file is no longer the one that the table was made of; else as `read_table`.
    """
    descriptor = _open(table.file)
    try:
        if Stamp.of(os.fstat(descriptor)) != table.stamp:
            raise _changed(table.file)
        found: list[FoundDocument] = []
        count = 0
        for window in _windows(table.documents):
            check()
            base = window[0].start
            data = _read_exactly(descriptor, table.file, base, window[-1].end - base)
            for entry, places in _by_document(window, base, pattern.finditer(data)):
                document = _read_document(data, entry, base, places)
                count += len(document.occurrences)
                found.append(document)
            if count > most:
                return ScipMatches(tuple(found), False)
        return ScipMatches(tuple(found), True)
    except MalformedMessage as error:
        raise _malformed(table.file, error) from error
    finally:
        os.close(descriptor)


def _open(file: Path) -> int:
    try:
        return os.open(file, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except FileNotFoundError:
        raise ExpertError(FailureClass.INDEX_MISSING, f"{file} is gone.", remedy="Index again.") from None
    except OSError as error:
        raise ExpertError(FailureClass.UNAVAILABLE, f"{file} cannot be read: {error.strerror}.", remedy="Check its permissions.") from error


def _read_table(descriptor: int, file: Path, stamp: Stamp, check: Check) -> ScipTable:
    tool = version = root = ""
    documents: list[DocumentEntry] = []
    at = 0
    while at < stamp.size:
        head = os.pread(descriptor, _HEAD, at)
        tag, after = read_varint(head, 0, len(head))
        if tag & 7 != BYTES or tag >> 3 == 0:
            raise MalformedMessage(f"wire type {tag & 7} of field {tag >> 3} at byte {at}, where only messages may be")
        size, after = read_varint(head, after, len(head))
        start, end = at + after, at + after + size
        if end > stamp.size:
            raise MalformedMessage(f"a field of {size} bytes at byte {start}, where {stamp.size - start} are left")
        if tag >> 3 == 1:
            tool, version, root = _read_metadata(_read_exactly(descriptor, file, start, min(size, MAX_DOCUMENT)))
        elif tag >> 3 == 2:
            documents.append(_read_entry(descriptor, file, start, end, head[after : after + size]))
            if len(documents) > MAX_DOCUMENTS:
                raise MalformedMessage(f"more than {MAX_DOCUMENTS} documents")
        if len(documents) % 256 == 0:
            check()
        at = end
    if not documents:
        raise ExpertError(
            FailureClass.INDEX_MISSING, f"{file} is an index without a document.", remedy="Index again, and see what it says."
        )
    return ScipTable(file, stamp, tool, version, root, tuple(documents))


def _read_entry(descriptor: int, file: Path, start: int, end: int, head: bytes) -> DocumentEntry:
    """The path mostly stands first; where it does not, the whole document is read for it."""
    if end - start > MAX_DOCUMENT:
        raise MalformedMessage(f"a document of {end - start} bytes at byte {start}")
    path = ""
    if head[:1] == b"\x0a":
        size, at = read_varint(head, 1, len(head))
        if at + size <= len(head):
            path = head[at : at + size].decode("utf-8", "surrogateescape")
    if not path:
        data = _read_exactly(descriptor, file, start, end - start)
        path = next((_text(data, f) for f in read_fields(data, 0, len(data)) if f.number == 1 and f.wire == BYTES), "")
    return DocumentEntry(path, start, end)


def _read_metadata(data: bytes) -> tuple[str, str, str]:
    """(tool name, tool version, project root)."""
    name = version = root = ""
    for found in read_fields(data, 0, len(data)):
        if found.number == 2 and found.wire == BYTES:
            for info in read_fields(data, found.value, found.end):
                if info.wire == BYTES:
                    name = _text(data, info) if info.number == 1 else name
                    version = _text(data, info) if info.number == 2 else version
        elif found.number == 3 and found.wire == BYTES:
            root = _text(data, found)
    return name, version, root


def _windows(documents: Sequence[DocumentEntry]) -> Iterator[list[DocumentEntry]]:
    """Neighbouring documents, together at most WINDOW bytes long."""
    window: list[DocumentEntry] = []
    for entry in documents:
        if window and entry.end - window[0].start > WINDOW:
            yield window
            window = []
        window.append(entry)
    if window:
        yield window


def _by_document(
    window: Sequence[DocumentEntry], base: int, matches: Iterator[re.Match[bytes]]
) -> Iterator[tuple[DocumentEntry, list[int]]]:
    """Each document with the positions of its matches in the window; those without one are left out."""
    entries = iter(window)
    entry = next(entries)
    places: list[int] = []
    for match in matches:
        while match.start() >= entry.end - base:
            if places:
                yield entry, places
                places = []
            following = next(entries, None)
            if following is None:
                return
            entry = following
        if match.start() >= entry.start - base:
            places.append(match.start())
    if places:
        yield entry, places


def _read_document(data: bytes, entry: DocumentEntry, base: int, places: list[int]) -> FoundDocument:
    language, encoding = "", 0
    occurrences: list[Occurrence] = []
    implements: list[Implements] = []
    number = 0
    for found in read_fields(data, entry.start - base, entry.end - base):
        if found.wire == VARINT:
            encoding = found.value if found.number == 6 else encoding
            continue
        if found.number == 4 and found.wire == BYTES:
            language = _text(data, found)
        while number < len(places) and places[number] < found.value:
            number += 1
        if found.wire != BYTES or number == len(places) or places[number] >= found.end:
            continue
        if found.number == 2:
            occurrence = _read_occurrence(data, found.value, found.end)
            if occurrence is not None:
                occurrences.append(occurrence)
        elif found.number == 3:
            implements += _read_relations(data, found.value, found.end)
    return FoundDocument(entry.path, language, encoding, tuple(occurrences), tuple(implements))


def _read_occurrence(data: bytes, at: int, end: int) -> Occurrence | None:
    """One occurrence; None for one without a symbol or a whole range. Ranges come as numbers (1, 7) or as messages (8 to 11)."""
    symbol, roles = "", 0
    place: list[int] = []
    around: list[int] = []
    for found in read_fields(data, at, end):
        match found.number:
            case 2 if found.wire == BYTES:
                symbol = _text(data, found)
            case 3 if found.wire == VARINT:
                roles = found.value
            case 1:
                place += _numbers(data, found)
            case 7:
                around += _numbers(data, found)
            case 8 | 9 if found.wire == BYTES:
                place = _range_message(data, found, 3 if found.number == 8 else 4)
            case 10 | 11 if found.wire == BYTES:
                around = _range_message(data, found, 3 if found.number == 10 else 4)
            case _:
                pass
    lines = _as_range(place)
    if not symbol or lines is None:
        return None
    spread = _as_range(around)
    return Occurrence(
        symbol,
        *lines,
        is_definition=bool(roles & _DEFINITION),
        is_import=bool(roles & _IMPORT),
        is_forward=bool(roles & _FORWARD),
        span=(spread[0][0], spread[1][0]) if spread else None,
    )


def _read_relations(data: bytes, at: int, end: int) -> Iterator[Implements]:
    symbol = ""
    implemented: list[str] = []
    for found in read_fields(data, at, end):
        if found.wire == BYTES and found.number == 1:
            symbol = _text(data, found)
        elif found.wire == BYTES and found.number == 4:
            related, is_implementation = "", False
            for part in read_fields(data, found.value, found.end):
                if part.number == 1 and part.wire == BYTES:
                    related = _text(data, part)
                elif part.number == 3 and part.wire == VARINT:
                    is_implementation = bool(part.value)
            if related and is_implementation:
                implemented.append(related)
    return (Implements(symbol, each) for each in implemented)


def _numbers(data: bytes, found: WireField) -> list[int]:
    """A repeated number, packed or one by one."""
    if found.wire == BYTES:
        return read_packed(data, found.value, found.end, most=_RANGE_NUMBERS)
    return [found.value] if found.wire == VARINT else []


def _range_message(data: bytes, found: WireField, count: int) -> list[int]:
    """SingleLineRange (3 numbers) or MultiLineRange (4); a number that is left out is 0."""
    numbers = [0] * count
    for part in read_fields(data, found.value, found.end):
        if part.wire == VARINT and part.number <= count:
            numbers[part.number - 1] = part.value
    return numbers


def _as_range(numbers: list[int]) -> tuple[tuple[int, int], tuple[int, int]] | None:
    """(start, end) as (line, character); None for what is no range."""
    if not numbers or max(numbers) >= _MAX_NUMBER:
        return None
    if len(numbers) == 3:
        line, first, last = numbers
        return (line, first), (line, last)
    if len(numbers) == _RANGE_NUMBERS:
        return (numbers[0], numbers[1]), (numbers[2], numbers[3])
    return None


def _text(data: bytes, found: WireField) -> str:
    return data[found.value : found.end].decode("utf-8", "surrogateescape")


def _read_exactly(descriptor: int, file: Path, at: int, size: int) -> bytes:
    data = os.pread(descriptor, size, at)
    while len(data) < size:
        more = os.pread(descriptor, size - len(data), at + len(data))
        if not more:
            raise _changed(file)
        data += more
    return data


def _changed(file: Path) -> ExpertError:
    return ExpertError(FailureClass.UNAVAILABLE, f"{file} was written to while it was read.", remedy="Ask again.")


def _malformed(file: Path, error: MalformedMessage) -> ExpertError:
    return ExpertError(FailureClass.PROTOCOL_ERROR, f"{file} is no SCIP index, or a cut one.", remedy="Index again.", detail=f"{error}")
