"""Bytes to messages: lines with a cap, events of an event stream, JSON that may be cut or broken. No IO.

A server may print anything. A line that is no JSON-RPC is noise and is counted; one that is meant to be and cannot be read is broken.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, cast

from pydantic_core import from_json

HEAD_BYTES = 512
_ID = re.compile(rb'"id"\s*:\s*(\d{1,18})\s*[,}]')
_MEANT = re.compile(rb'"jsonrpc"|"result"\s*:|"error"\s*:|"id"\s*:')


@dataclass(frozen=True, slots=True)
class Line:
    """One line or event, without its end; `cut` counts the bytes beyond the cap, which were not kept."""

    data: bytes
    cut: int = 0


@dataclass(slots=True)
class LineReader:
    """Lines out of chunks, in linear time, of which at most `limit` bytes each are kept."""

    limit: int
    _parts: list[bytes] = field(default_factory=list[bytes])
    _kept: int = 0
    _cut: int = 0

    def feed(self, chunk: bytes) -> list[Line]:
        """The lines that this chunk completes."""
        *ends, rest = chunk.split(b"\n")
        lines: list[Line] = []
        for end in ends:
            self._keep(end)
            lines.append(self._take())
        self._keep(rest)
        return lines

    def finish(self) -> Line | None:
        """What stands in the unfinished line, if anything does."""
        return self._take() if self._kept or self._cut else None

    def _keep(self, part: bytes) -> None:
        room = self.limit - self._kept
        if part and room > 0:
            self._parts.append(part[:room])
            self._kept += min(len(part), room)
        self._cut += max(0, len(part) - max(0, room))

    def _take(self) -> Line:
        line = Line(b"".join(self._parts), self._cut)
        self._parts, self._kept, self._cut = [], 0, 0
        return line


@dataclass(slots=True)
class EventReader:
    """Events out of the lines of an event stream (WHATWG HTML, 9.2.6): (event name, data)."""

    limit: int
    _lines: LineReader = field(init=False)
    _name: str = "message"
    _data: list[bytes] = field(default_factory=list[bytes])
    _size: int = 0
    _cut: int = 0

    def __post_init__(self) -> None:
        self._lines = LineReader(self.limit)

    def feed(self, chunk: bytes) -> list[tuple[str, Line]]:
        """The events that this chunk completes; those without data are left out."""
        events: list[tuple[str, Line]] = []
        for line in self._lines.feed(chunk):
            text = line.data.removesuffix(b"\r")
            if text:
                self._field(text, line.cut)
            elif self._data:
                events.append((self._name, Line(b"\n".join(self._data), self._cut)))
                self._name, self._data, self._size, self._cut = "message", [], 0, 0
            else:
                self._name = "message"
        return events

    def _field(self, text: bytes, cut: int) -> None:
        name, _, value = text.partition(b":")
        value = value.removeprefix(b" ")
        if name == b"event":
            self._name = value.decode("utf-8", "replace")
        elif name == b"data":
            room = max(0, self.limit - self._size)
            if room or not self._data:
                self._data.append(value[:room])
            self._size += min(len(value), room) + 1  # and its line break: empty lines have a size too
            self._cut += cut + max(0, len(value) - room)


# ------------------------------------------------------------------ messages


@dataclass(frozen=True, slots=True)
class Message:
    """A JSON object that came in; `cut` as in `Line`: then its tail is missing, and its id may be in that tail."""

    body: Mapping[str, Any]
    cut: int = 0

    @property
    def id(self) -> object:
        return self.body.get("id")

    @property
    def is_answer(self) -> bool:
        return "method" not in self.body and ("result" in self.body or "error" in self.body)


@dataclass(frozen=True, slots=True)
class Broken:
    """What was meant as a message and cannot be read. `id` is the number that stands in it, if one does."""

    why: str
    id: int | None


@dataclass(frozen=True, slots=True)
class Noise:
    """Anything else: banners, log lines, JSON that is no JSON-RPC."""


def decode_message(line: Line) -> Message | Broken | Noise:
    """What a line is. Bytes that are not UTF-8 are replaced; NaN and lone surrogates make a message broken."""
    data = line.data.strip()
    if not data.startswith(b"{"):
        return Broken("it is an array", None) if data.startswith(b"[{") and _MEANT.search(data, 0, HEAD_BYTES) else Noise()
    partial = "trailing-strings" if line.cut else "off"
    try:
        value: Any = from_json(data, allow_inf_nan=False, allow_partial=partial)
    except ValueError as error:
        try:
            value = from_json(data.decode("utf-8", "replace").encode(), allow_inf_nan=False, allow_partial=partial)
        except ValueError:
            return _broken(data, str(error))
    body = cast("dict[str, Any]", value)
    if body.get("jsonrpc") != "2.0" and not line.cut:
        meant = "id" in body and ("result" in body or "error" in body)
        return _broken(data, 'it lacks "jsonrpc": "2.0"') if meant else Noise()
    return Message(body, line.cut)


def _broken(data: bytes, why: str) -> Broken | Noise:
    if not _MEANT.search(data, 0, HEAD_BYTES) and not _MEANT.search(data, max(0, len(data) - HEAD_BYTES)):
        return Noise()
    found = _ID.search(data, 0, HEAD_BYTES) or _ID.search(data, max(0, len(data) - HEAD_BYTES))
    return Broken(why[:200], int(found[1]) if found is not None else None)
