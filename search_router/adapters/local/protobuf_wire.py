"""A reader of protobuf's wire format that trusts nothing: fields of one message, without a schema and without copying.

The format is the encoding page of the protobuf documentation: a message is a sequence of (tag, value), the tag a varint of
`field number << 3 | wire type`. Groups (wire types 3 and 4) are deprecated, written by nobody here, and refused.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple

VARINT: Final = 0
FIXED64: Final = 1
BYTES: Final = 2
FIXED32: Final = 5

_VARINT_BITS: Final = 64
_FIXED: Final = {FIXED64: 8, FIXED32: 4}


class MalformedMessage(ValueError):
    """These bytes are no protobuf message, or they end too early."""


class WireField(NamedTuple):
    """One field. A varint's value is `value`; of bytes, the content is `data[value:end]`; fixed widths are only stepped over."""

    number: int
    wire: int
    value: int
    end: int


def read_varint(data: bytes, at: int, end: int) -> tuple[int, int]:
    """(unsigned value, position after it). Raises MalformedMessage for one that has no end or more than 64 bits."""
    value = shift = 0
    while at < end:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
        shift += 7
        if shift >= _VARINT_BITS:
            raise MalformedMessage(f"a number of more than 64 bits at byte {at}")
    raise MalformedMessage(f"a number that is cut off at byte {at}")


def read_fields(data: bytes, at: int, end: int) -> Iterator[WireField]:
    """The fields of the message in `data[at:end]`, in order; unknown ones too.

    Raises:
        MalformedMessage: a tag or a length that points outside the message, or a wire type that does not exist.
    """
    while at < end:
        tag = data[at]
        at += 1
        if tag >= 0x80:
            tag, at = read_varint(data, at - 1, end)
        number, wire = tag >> 3, tag & 7
        if number == 0:
            raise MalformedMessage(f"field number 0 at byte {at}")
        if wire == BYTES:
            size, at = read_varint(data, at, end)
            if size > end - at:
                raise MalformedMessage(f"a field of {size} bytes at byte {at}, where {end - at} are left")
            yield WireField(number, wire, at, at + size)
            at += size
        elif wire == VARINT:
            value, at = read_varint(data, at, end)
            yield WireField(number, wire, value, at)
        elif wire in _FIXED:
            if _FIXED[wire] > end - at:
                raise MalformedMessage(f"a number that is cut off at byte {at}")
            yield WireField(number, wire, at, at + _FIXED[wire])
            at += _FIXED[wire]
        else:
            raise MalformedMessage(f"wire type {wire} at byte {at}")


def read_packed(data: bytes, at: int, end: int, *, most: int) -> list[int]:
    """The numbers of a packed repeated field, at most `most` of them. Raises MalformedMessage, also for more."""
    numbers: list[int] = []
    while at < end:
        if len(numbers) == most:
            raise MalformedMessage(f"more than {most} numbers at byte {at}")
        value, at = read_varint(data, at, end)
        numbers.append(value)
    return numbers
