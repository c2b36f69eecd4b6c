"""A configuration written down as TOML, for files that this program makes. Comments of a file that was read are not in it."""

from __future__ import annotations

import math
from collections.abc import Iterator
from datetime import date, datetime, time
from typing import Any

from search_router.config.keys import Table, as_array, as_table, dotted, quote


def to_toml(tree: Table) -> str:
    """The tree as TOML 1.0, values of a table before its tables. Raises ValueError for what TOML has no form for."""
    return "\n".join(_lines(tree, ())).strip("\n") + "\n"


def _lines(tree: Table, path: tuple[str, ...]) -> Iterator[str]:
    tables = {name: table for name, value in tree.items() if (table := as_table(value)) is not None}
    plain = {name: value for name, value in tree.items() if name not in tables}
    if path and (plain or not tables):
        yield f"\n[{dotted(path)}]"
    yield from (f"{dotted((name,))} = {_value(value)}" for name, value in plain.items())
    for name, table in tables.items():
        yield from _lines(table, (*path, name))


def _value(value: Any) -> str:
    array, table = as_array(value), as_table(value)
    if array is not None:
        return f"[{', '.join(map(_value, array))}]"
    if table is not None:  # in an array
        return f"{{{', '.join(f'{dotted((name,))} = {_value(below)}' for name, below in table.items())}}}"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return quote(value)
    if isinstance(value, (int, float)) and math.isfinite(value):
        return repr(value)
    if isinstance(value, (datetime, date, time)):
        return value.isoformat()
    raise ValueError(f"TOML has no form for {value!r}")
