"""How measurements are printed: aligned tables for people, one JSON object for programs."""

from __future__ import annotations

import json
import os
import platform
import sys
from collections.abc import Sequence
from dataclasses import asdict, is_dataclass
from typing import Any

import search_router

Cell = str | float | int | None


def write_json(value: Any) -> None:
    """One JSON object on one line; dataclasses as objects."""
    sys.stdout.write(json.dumps(value, default=_plain) + "\n")


def _plain(value: Any) -> Any:
    if is_dataclass(value) and not isinstance(value, type):
        return asdict(value)
    raise TypeError(f"{type(value).__name__} has no JSON form")


def write_table(header: Sequence[str], rows: Sequence[Sequence[Cell]], title: str = "") -> None:
    """Columns as wide as their widest cell: the first to the left, figures to the right. None is a dash."""
    shown = [list(header), *([_cell(value) for value in row] for row in rows)]
    widths = [max(len(row[column]) for row in shown) for column in range(len(header))]
    if title:
        sys.stdout.write(f"\n{title}\n")
    for row in shown:
        cells = [
            cell.ljust(width) if column == 0 else cell.rjust(width) for column, (cell, width) in enumerate(zip(row, widths, strict=True))
        ]
        sys.stdout.write("  ".join(cells).rstrip() + "\n")


def write_line(text: str) -> None:
    sys.stdout.write(f"{text}\n")


def _cell(value: Cell) -> str:
    if value is None:
        return "–"
    return f"{value:.3f}" if isinstance(value, float) else str(value)


def circumstances() -> dict[str, object]:
    """What the figures depend on: version, interpreter, processors, and how busy the machine is (load over the last minute)."""
    return {
        "search_router": search_router.__version__,
        "python": platform.python_version(),
        "cpus": os.cpu_count(),
        "load_1m": round(os.getloadavg()[0], 2),
    }
