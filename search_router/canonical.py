"""Canonical bytes and hashes: RFC 8785 (JCS), SHA-256, and the one normal form of a question.

The bottom layer: every room may import it and it imports only the error tree.
"""

from __future__ import annotations

import hashlib
import json
import unicodedata
from typing import Any, cast

import rfc8785

Json = Any  # what json.loads returns; pyright has no recursive JSON type that rfc8785 accepts

MAX_INTEGER = 2**53 - 1
DESCRIBED_DEPTH, DESCRIBED_VALUES = 100, 100_000
"""Of a value that no encoder takes, so much is described."""
_PLAIN_ENCODER = json.JSONEncoder(sort_keys=True, separators=(",", ":"), ensure_ascii=False, check_circular=False)


class NotPlain(Exception):
    """The value is outside the domain where the standard library's encoder writes RFC 8785 bytes."""


def canonical_bytes(value: Json) -> bytes:
    """RFC 8785 bytes of a JSON value.

    Integers beyond 2**53 - 1, NaN, infinities and lone surrogates are refused with ValueError (`rfc8785` raises its own
    subclasses of it), because two readers could not agree on them.
    """
    try:
        # The C encoder is some five times faster than rfc8785, which is pure Python and remains the authority for the rest.
        return _PLAIN_ENCODER.encode(_plain(value)).encode("utf-8")
    except NotPlain:
        pass
    except (UnicodeEncodeError, RecursionError) as error:
        raise _not_canonical(error) from error
    try:
        return rfc8785.dumps(value)
    except (UnicodeEncodeError, RecursionError) as error:
        raise _not_canonical(error) from error


def _plain(value: object) -> Json:
    """The value with whole floats as integers, if the standard encoder then writes what RFC 8785 demands; else NotPlain.

    So it is for the exact JSON types, ASCII keys (code points sort as UTF-16 units do), integers within +-(2**53 - 1), and floats that both
    Python and ECMAScript write without an exponent, which is in the same shortest digits.
    """
    kind = type(value)
    if kind is str or value is None or kind is bool:
        return value
    if kind is dict:
        plain: dict[str, Json] = {}
        for key, member in cast("dict[object, object]", value).items():
            if type(key) is not str or not key.isascii():
                raise NotPlain
            plain[key] = member if type(member) is str or member is None else _plain(member)  # most are: no call for them
        return plain
    if kind is list or kind is tuple:
        return [item if type(item) is str else _plain(item) for item in cast("list[object]", value)]
    if kind is int and -MAX_INTEGER <= cast("int", value) <= MAX_INTEGER:
        return value
    if kind is float:
        return plain_number(cast("float", value))
    raise NotPlain


def plain_number(number: float | None) -> float | int | None:
    """A number as the standard encoder must get it to write what RFC 8785 demands. Raises NotPlain where that encoder cannot."""
    if number is None:
        return None
    if number.is_integer() and abs(number) <= MAX_INTEGER:
        return int(number)
    if 1e-4 <= abs(number) < MAX_INTEGER:
        return number
    raise NotPlain


def canonical_plain(value: Json) -> bytes:
    """RFC 8785 bytes of a JSON value of which the caller knows that its names are ASCII and its numbers plain (see `plain_number`)."""
    try:
        return _PLAIN_ENCODER.encode(value).encode("utf-8")
    except (UnicodeEncodeError, RecursionError) as error:
        raise _not_canonical(error) from error


def _not_canonical(error: UnicodeEncodeError | RecursionError) -> ValueError:
    if isinstance(error, UnicodeEncodeError):
        return ValueError(f"not canonical JSON: lone surrogate at position {error.start}")
    return ValueError("not canonical JSON: nested too deeply")


def sha256_hex(data: bytes) -> str:
    """Lower-case hexadecimal SHA-256, 64 characters."""
    return hashlib.sha256(data).hexdigest()


def digest(value: Json) -> str:
    """SHA-256 of the canonical bytes of a JSON value."""
    return sha256_hex(canonical_bytes(value))


def tolerant_digest(value: object) -> tuple[str, str]:
    """(method, SHA-256 hex) of any value; of one that has no canonical form too, and of one that is no JSON at all. Never raises.

    Method is `jcs`, or `ascii-json` (sorted keys, \\uXXXX escapes) for what RFC 8785 refuses, such as lone surrogates or NaN:
    a rejected request must still be bound to its receipt. What is no JSON goes in as JSON that describes it.
    """
    try:
        return "jcs", digest(value)
    except (ValueError, TypeError, AttributeError):  # the last two are rfc8785's, for names that are no text
        pass
    try:
        text = _ascii_json(value)
    except (ValueError, TypeError, RecursionError):  # a number of thousands of digits or a circle; names of two kinds; nested too deeply
        text = _ascii_json(_described(value, (), [DESCRIBED_VALUES]))
    return "ascii-json", sha256_hex(text.encode("ascii"))


def _ascii_json(value: object) -> str:
    return json.dumps(value, sort_keys=True, ensure_ascii=True, separators=(",", ":"), default=_describe_odd)


def _described(value: object, above: tuple[int, ...], left: list[int]) -> Json:
    """The value as JSON that the standard encoder takes. `above` are the containers around it, `left` how many values may still follow."""
    left[0] -= 1
    if left[0] < 0 or len(above) >= DESCRIBED_DEPTH or id(value) in above:
        return "<more>"
    around = (*above, id(value))
    if isinstance(value, dict):
        members = cast("dict[object, object]", value)
        return {_described_name(name): _described(member, around, left) for name, member in members.items()}
    if isinstance(value, list | tuple):
        return [_described(item, around, left) for item in cast("list[object]", value)]
    if isinstance(value, int) and not isinstance(value, bool):
        return f"<int {value:x}>"  # decimal digits are limited, these are not
    return value if value is None or isinstance(value, str | float | bool) else _describe_odd(value)


def _described_name(name: object) -> str:
    if isinstance(name, str):
        return name
    return f"<int {name:x}>" if isinstance(name, int) else _describe_odd(name)


def _describe_odd(value: object) -> str:
    """What kind of thing it is: its own words for itself could fail. Bytes are harmless."""
    return repr(value) if type(value) is bytes else f"<{type(value).__name__}>"


def normal_question(question: str) -> str:
    """NFC, control characters as spaces, runs of white space as one space, trimmed. Case and punctuation stay."""
    if question.isascii() and question.isprintable():
        return " ".join(question.split())
    text = unicodedata.normalize("NFC", question)
    return " ".join("".join(" " if unicodedata.category(c) == "Cc" else c for c in text).split())
