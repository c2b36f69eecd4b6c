"""Writes SCIP indexes for tests, byte by byte, so that the reader under test is not its own judge."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any


def varint(value: int) -> bytes:
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes((*out, value))


def number(field_number: int, value: int) -> bytes:
    return varint(field_number << 3) + varint(value)


def message(field_number: int, content: bytes | str) -> bytes:
    data = content.encode() if isinstance(content, str) else content
    return varint(field_number << 3 | 2) + varint(len(data)) + data


def packed(field_number: int, values: Sequence[int]) -> bytes:
    return message(field_number, b"".join(map(varint, values)))


def python(name: str, package: str = "demo") -> str:
    """A global symbol of a made-up Python indexer: `python("shop.cart/Cart#total().")`."""
    module, _, rest = name.partition("/")
    return f"scip-python python {package} 0.1 `{module}`/{rest}"


@dataclass
class Document:
    """One document; lines and characters are 0-based, as on the wire."""

    path: str
    encoding: int = 0
    parts: list[bytes] = field(default_factory=list)

    def occurrence(
        self, symbol: str, place: Sequence[int], roles: int = 0, *, around: Sequence[int] = (), form: str = "packed"
    ) -> Document:
        if form == "packed":
            body = packed(1, place)
        elif form == "one by one":
            body = b"".join(number(1, value) for value in place)
        else:  # the typed ranges that take the place of the packed ones
            body = message(8 if len(place) == 3 else 9, b"".join(number(n, v) for n, v in enumerate(place, start=1)))
        body += message(2, symbol) + (number(3, roles) if roles else b"")
        if around:
            body += packed(7, around) if form != "typed" else message(11, b"".join(number(n, v) for n, v in enumerate(around, start=1)))
        self.parts.append(message(2, body))
        return self

    def implements(self, symbol: str, implemented: str) -> Document:
        relation = message(1, implemented) + number(3, 1)
        self.parts.append(message(3, message(1, symbol) + message(4, relation)))
        return self

    def encoded(self) -> bytes:
        tail = message(4, "python") + (number(6, self.encoding) if self.encoding else b"")
        return message(2, message(1, self.path) + b"".join(self.parts) + tail)


def index_bytes(*documents: Document, tool: str = "scip-python", root: str = "") -> bytes:
    info = message(1, tool) + message(2, "0.6.6")
    return message(1, message(2, info) + message(3, root)) + b"".join(d.encoded() for d in documents)


def write_index(
    file: Path, *documents: Document, tool: str = "scip-python", root: str = "", sidecar: Mapping[str, Any] | None = None
) -> Path:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(index_bytes(*documents, tool=tool, root=root))
    if sidecar is not None:
        file.with_name(f"{file.name}.json").write_text(json.dumps(sidecar))
    return file
