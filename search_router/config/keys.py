"""The names of configuration values: key paths, their dotted form, and how a value is shown to people."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, cast

KeyPath = tuple[str | int, ...]
"""Keys from the top down; an integer is the 0-based index into an array."""
Table = Mapping[str, Any]
"""A TOML table: values are str, int, float, bool, dates, lists and tables."""

SHOWN_CHARACTERS = 60
_ESCAPES = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\t": "\\t", "\r": "\\r"}
_BARE_KEY = re.compile(r"[A-Za-z0-9_-]+")
_SECRET = re.compile(r"token|secret|password|key|authorization|cookie", re.IGNORECASE)
_CHOSEN_BY_USERS = {"workspace": {2}, "priors": {1, 2}, "experts": {1}}
_NO_SECRETS = frozenset({("receipts", "key"), ("receipts", "checkpoint_key")})  # paths of files, never their content


def as_table(value: object) -> Table | None:
    """The value as a table, or None when it is anything else."""
    return cast("Table", value) if isinstance(value, dict) else None


def as_array(value: object) -> list[Any] | None:
    """The value as an array, or None when it is anything else."""
    return cast("list[Any]", value) if isinstance(value, list) else None


def dotted(path: KeyPath) -> str:
    """The path as TOML writes it: `experts.grep.cap_ms`, `workspace.names."/a.b"`; array elements as `gate.default_set[0]`."""
    text = ""
    for part in path:
        if isinstance(part, int):
            text += f"[{part}]"
        else:
            name = part if _BARE_KEY.fullmatch(part) else quote(part)
            text += f".{name}" if text else name
    return text


def table_path(path: KeyPath) -> tuple[str, ...]:
    """The path up to its first array index."""
    names: list[str] = []
    for part in path:
        if isinstance(part, int):
            break
        names.append(part)
    return tuple(names)


def value_at(tree: Table, path: KeyPath) -> Any:
    """The value at a path, or None when there is none."""
    value: Any = tree
    for part in path:
        table, array = as_table(value), as_array(value)
        if table is not None and isinstance(part, str):
            value = table.get(part)
        elif array is not None and isinstance(part, int) and 0 <= part < len(array):
            value = array[part]
        else:
            return None
    return value


def walk_leaves(tree: Table, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Every value that is not a table, in order; arrays are one leaf, and so is an empty table."""
    for name, value in tree.items():
        below = as_table(value)
        if below:
            yield from walk_leaves(below, (*path, name))
        else:
            yield (*path, name), value


def is_secret(path: KeyPath) -> bool:
    """Whether the value must not be shown: a schema key on the path contains token, secret, password or key.

    Names that users choose (expert ids, groups, directories) do not count: an expert called `keywords` has no secrets.
    """
    names = table_path(path)
    if names in _NO_SECRETS or not names:
        return False
    chosen = _CHOSEN_BY_USERS.get(names[0], set[int]())
    return any(_SECRET.search(name) for at, name in enumerate(names) if at not in chosen)


def show_value(value: object) -> str:
    """The value as TOML writes it, on one line."""
    table, array = as_table(value), as_array(value)
    if table is not None:
        return "{" + ", ".join(f"{dotted((k,))} = {show_value(v)}" for k, v in table.items()) + "}"
    if array is not None:
        return "[" + ", ".join(map(show_value, array)) + "]"
    if isinstance(value, str):
        return quote(value)
    return str(value).lower() if isinstance(value, bool) else str(value)


def quote(text: str) -> str:
    """The text as a TOML basic string. What does not print is escaped: a stranger's file must not steer the reader's terminal."""
    return f'"{"".join(_ESCAPES.get(character) or _printable(character) for character in text)}"'


def _printable(character: str) -> str:
    code = ord(character)
    if character.isprintable():
        return character
    return f"\\u{code:04x}" if code <= 0xFFFF else f"\\U{code:08x}"


def show_briefly(path: KeyPath, value: object) -> str:
    """The value for an error message: cut, and never a secret."""
    if is_secret(path):
        return "a value that is not shown"
    text = show_value(value)
    return text if len(text) <= SHOWN_CHARACTERS else f"{text[:SHOWN_CHARACTERS]}…"
