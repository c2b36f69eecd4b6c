"""Text that can leave: every string of an answer as encodable Unicode.

A file name that is not UTF-8 arrives here with surrogate escapes (PEP 383), and a JSON request may smuggle in a lone surrogate.
Neither has UTF-8 bytes, so a serialiser would refuse the whole answer. The replacement is visible and lossy on purpose:
U+DC80..U+DCFF becomes the byte it stood for, `\\xNN`; any other lone surrogate becomes `\\uNNNN`. A name that really contains the
four characters `\\xff` looks the same.
"""

from __future__ import annotations

import re
from typing import Any

_SURROGATE = re.compile("[\ud800-\udfff]")


def _spelled(match: re.Match[str]) -> str:
    code = ord(match[0])
    return f"\\x{code - 0xDC00:02x}" if 0xDC80 <= code <= 0xDCFF else f"\\u{code:04x}"


def encodable(text: str) -> str:
    """The same text with every surrogate spelled out. What has none comes back as it is; doing it twice changes nothing."""
    return text if text.isascii() else _SURROGATE.sub(_spelled, text)


def visible(text: str) -> str:
    """Text without what could steer a terminal or reorder a line: control and bidi characters are shown as escapes."""
    return "".join(
        c
        if c == "\n" or c == "\t" or (c.isprintable() and not "\u202a" <= c <= "\u202e" and not "\u2066" <= c <= "\u2069")
        else f"\\u{ord(c):04x}"
        for c in text
    )


def visible_line(text: str) -> str:
    """The same for what belongs on one line, such as a file name: with a line break in it, it could pass for another item."""
    return visible(text).replace("\n", "\\n").replace("\t", "\\t")


def encodable_json(value: Any) -> Any:
    """A JSON value with `encodable` applied to every string and every key, at any depth. Tuples become lists."""
    match value:
        case str():
            return encodable(value)
        case dict():
            return {encodable(str(k)): encodable_json(v) for k, v in value.items()}  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType] - any JSON value
        case list() | tuple():
            return [encodable_json(v) for v in value]  # pyright: ignore[reportUnknownVariableType] - any JSON value
        case _:
            return value
