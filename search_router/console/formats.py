"""Numbers as people read them. Pure."""

from __future__ import annotations

import datetime
from collections.abc import Callable, Mapping
from typing import Any, Final


def clock(time_us: int | None) -> str:
    """A Unix time in microseconds as UTC, to the second."""
    if time_us is None:
        return "–"
    return datetime.datetime.fromtimestamp(time_us / 1e6, datetime.UTC).strftime("%Y-%m-%d %H:%M:%S")


def duration(milliseconds: float | None) -> str:
    """Milliseconds in a readable unit."""
    if milliseconds is None:
        return "–"
    return f"{milliseconds / 1000:.2f} s" if milliseconds >= 1000 else f"{milliseconds:.1f} ms"


def percent(part: int, whole: int) -> str:
    """A share with one decimal."""
    return f"{100 * part / whole:.1f} %" if whole else "–"


def figure(value: float | None) -> str:
    """A count as it is, anything else with three decimals."""
    if value is None:
        return "–"
    return str(value) if isinstance(value, int) else f"{value:.3f}"


def signed(value: float | None) -> str:
    """A difference with its sign."""
    return "–" if value is None else f"{value:+.4f}"


def size(count: int) -> str:
    """Bytes in a readable unit."""
    for unit, of in (("GiB", 2**30), ("MiB", 2**20), ("KiB", 2**10)):
        if count >= of:
            return f"{count / of:.1f} {unit}"
    return f"{count} B"


FORMATS: Final[Mapping[str, Callable[..., Any]]] = {
    "clock": clock,
    "duration": duration,
    "percent": percent,
    "size": size,
    "figure": figure,
    "signed": signed,
}
"""What templates call them."""
