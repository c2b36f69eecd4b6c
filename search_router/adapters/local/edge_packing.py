"""The edges of one file as bytes: what all files are searched by in front, what is read only for a file that is looked at behind.

The front part holds imports, base types and return types; the back part calls and bindings. Each is a compressed JSON array: names once
in a table, then numbers, with lines as differences.
"""

from __future__ import annotations

import json
import struct
import sys
import zlib
from collections.abc import Iterable
from typing import Any, Final

from search_router.adapters.local.edges import MAX_SHIFT, Base, Binding, Call, FileEdges
from search_router.adapters.local.import_statements import Import
from search_router.adapters.local.symbol_packing import DamagedPayload

_LENGTH: Final = struct.Struct("<I")
_LEVEL: Final = 1


def pack_edges(edges: FileEdges) -> bytes:
    """Bytes of a file's edges; empty when it has none."""
    if edges == FileEdges():
        return b""
    front = zlib.compress(_dump([edges.imports, edges.bases, edges.returns]), _LEVEL)
    texts: dict[str, int] = {}

    def number(text: str) -> int:
        return texts.setdefault(text, len(texts))

    calls: list[int] = []
    before = 0
    for call in edges.calls:
        calls += (number(call.name), call.line - before, min(call.end_line - call.line, MAX_SHIFT), number(call.receiver))
        before = call.line
    bindings = [value for b in edges.bindings for value in (b.line, number(b.name), number(b.type))]
    return _LENGTH.pack(len(front)) + front + zlib.compress(_dump([list(texts), calls, bindings]), _LEVEL)


def unpack_front(data: bytes) -> FileEdges:
    """Imports, base types and return types alone. Raises DamagedPayload for what `pack_edges` did not make."""
    if not data:
        return FileEdges()
    try:
        (length,) = _LENGTH.unpack_from(data)
        imports, bases, returns = json.loads(zlib.decompress(data[_LENGTH.size : _LENGTH.size + length]))
        return FileEdges(
            tuple(Import(line, *map(sys.intern, texts)) for line, *texts in imports),
            tuple(Base(line, sys.intern(name)) for line, name in bases),
            tuple(Binding(line, sys.intern(name), sys.intern(made)) for line, name, made in returns),
        )
    except (zlib.error, struct.error, ValueError, TypeError) as error:
        raise DamagedPayload(f"a packed record of edges is damaged: {error}") from error


def unpack_edges(data: bytes) -> FileEdges:
    """All edges that were packed. Raises DamagedPayload for what `pack_edges` did not make."""
    front = unpack_front(data)
    if not data:
        return front
    try:
        (length,) = _LENGTH.unpack_from(data)
        texts, calls, bindings = json.loads(zlib.decompress(data[_LENGTH.size + length :]))
        return front._replace(
            calls=tuple(_calls(texts, calls)),
            bindings=tuple(Binding(line, texts[name], texts[made]) for line, name, made in _threes(bindings)),
        )
    except (zlib.error, struct.error, ValueError, TypeError, IndexError) as error:
        raise DamagedPayload(f"a packed record of edges is damaged: {error}") from error


def _calls(texts: list[str], numbers: list[int]) -> Iterable[Call]:
    line = 0
    values = iter(numbers)
    for name, difference, lines, receiver in zip(values, values, values, values, strict=True):
        line += difference
        yield Call(line, texts[name], texts[receiver], line + lines)


def _threes(numbers: list[int]) -> Iterable[tuple[int, int, int]]:
    values = iter(numbers)
    return zip(values, values, values, strict=True)


def _dump(value: Any) -> bytes:
    return json.dumps(value, separators=(",", ":")).encode()


def raw_edges(data: bytes) -> tuple[bytes, ...]:
    """The two parts of packed edges as they were before compression, none for a file without edges. Raises DamagedPayload."""
    if not data:
        return ()
    try:
        (length,) = _LENGTH.unpack_from(data)
        return zlib.decompress(data[_LENGTH.size : _LENGTH.size + length]), zlib.decompress(data[_LENGTH.size + length :])
    except (zlib.error, struct.error) as error:
        raise DamagedPayload(f"a packed record of edges is damaged: {error}") from error
