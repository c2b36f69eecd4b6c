"""The syntax of one file as it is kept: compact in memory, and as bytes in the store.

Names are listed once a file. Their uses are one array of numbers, `line * 4 + kind`, where the uses of name i stand between
`starts[i]` and `starts[i + 1]`: a look-up touches a slice and builds no object for the rest.
"""

from __future__ import annotations

import json
import struct
import sys
import zlib
from array import array
from dataclasses import dataclass

from search_router.adapters.local.syntax import REFERENCE_KINDS, Extracted
from search_router.inside import Definition

_HEADER = struct.Struct("<II")
_LENGTH = struct.Struct("<I")
_LEVEL = 1  # a third larger than level 9, at a fifth of the time


class DamagedPayload(ValueError):
    """These bytes are not what `pack_syntax` made."""


@dataclass(frozen=True, slots=True)
class FileSyntax:
    """Definitions in reading order, the names that are used, sorted, and where."""

    definitions: tuple[Definition, ...]
    names: tuple[str, ...]
    starts: array[int]
    uses: array[int]

    def uses_at(self, position: int) -> list[tuple[int, str]]:
        """(1-based line, kind) of each use of `names[position]`, by line."""
        return [(use >> 2, REFERENCE_KINDS[use & 3]) for use in self.uses[self.starts[position] : self.starts[position + 1]]]


def compact_syntax(extracted: Extracted) -> FileSyntax:
    """The same facts, by name instead of by line."""
    by_name: dict[str, list[int]] = {}
    for name, line, kind in extracted.references:
        by_name.setdefault(name, []).append(line << 2 | REFERENCE_KINDS.index(kind))
    names = tuple(sorted(by_name))
    starts, uses = array("I", [0]), array("I")
    for name in names:
        uses.extend(by_name[name])
        starts.append(len(uses))
    return FileSyntax(extracted.definitions, names, starts, uses)


def pack_syntax(syntax: FileSyntax) -> bytes:
    """Bytes of a file's syntax: little-endian, compressed, with zlib's checksum over them."""
    rows = [[d.name, d.kind, d.start_line, d.end_line, d.container] for d in syntax.definitions]
    text = json.dumps([rows, syntax.names], separators=(",", ":")).encode()
    starts, uses = _little_endian(syntax.starts).tobytes(), _little_endian(syntax.uses).tobytes()
    return zlib.compress(_HEADER.pack(len(text), len(starts)) + text + starts + uses, _LEVEL)


def unpack_syntax(data: bytes) -> FileSyntax:
    """The syntax that was packed. Raises DamagedPayload for anything else."""
    try:
        raw = zlib.decompress(data)
        text, starts = _HEADER.unpack_from(raw)
        middle = _HEADER.size + text
        rows, names = json.loads(raw[_HEADER.size : middle])
        definitions = tuple(Definition(*row) for row in rows)
        intern = sys.intern  # the same names stand in thousands of files
        return FileSyntax(definitions, tuple(map(intern, names)), _numbers(raw[middle : middle + starts]), _numbers(raw[middle + starts :]))
    except (zlib.error, struct.error, ValueError, TypeError) as error:
        raise DamagedPayload(f"a packed syntax record is damaged: {error}") from error


def join_payload(syntax: bytes, terms: bytes, edges: bytes = b"") -> bytes:
    """One row's payload of its three parts."""
    return _LENGTH.pack(len(syntax)) + _LENGTH.pack(len(terms)) + syntax + terms + edges


def split_payload(payload: bytes) -> tuple[bytes, bytes, bytes]:
    """(packed syntax, packed terms, packed edges) of a row's payload. Raises DamagedPayload."""
    try:
        (syntax,), (terms,) = _LENGTH.unpack_from(payload), _LENGTH.unpack_from(payload, _LENGTH.size)
    except struct.error as error:
        raise DamagedPayload("an index row is damaged: it is too short") from error
    first = 2 * _LENGTH.size + syntax
    return payload[2 * _LENGTH.size : first], payload[first : first + terms], payload[first + terms :]


def _numbers(data: bytes) -> array[int]:
    numbers = array("I")
    numbers.frombytes(data)
    return _little_endian(numbers)


def _little_endian(numbers: array[int]) -> array[int]:
    if sys.byteorder == "big":
        numbers = numbers[:]
        numbers.byteswap()
    return numbers
