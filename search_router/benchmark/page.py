"""A static page of measurements: headings, tables, plots inside. No script, no font, nothing from anywhere else."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from pathlib import Path
from typing import Final

from search_router.benchmark.plots import Plot

STYLE: Final = """
:root { color-scheme: light dark; --line: #8884; --good: #009e73; --bad: #d55e00; }
body { font: 15px/1.5 system-ui, sans-serif; max-width: 62rem; margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.5rem; margin-bottom: .2rem } h2 { font-size: 1.15rem; margin-top: 2.2rem; border-bottom: 1px solid var(--line) }
table { border-collapse: collapse; margin: .6rem 0; display: block; overflow-x: auto }
td, th { padding: .2rem .7rem; border-bottom: 1px solid var(--line); text-align: right; white-space: nowrap }
td:first-child, th:first-child { text-align: left } .wide td { white-space: normal; text-align: left; vertical-align: top }
.verdict { font-weight: 600 } .good { color: var(--good) } .bad { color: var(--bad) } .dim { opacity: .7 }
figure { margin: 1rem 0; background: #fff; padding: .5rem; border-radius: 6px } figure svg { width: 100%; height: auto }
figcaption { color: #555; font-size: .85rem } .tiles { display: flex; flex-wrap: wrap; gap: .8rem; margin: 1rem 0 }
.tile { border: 1px solid var(--line); border-radius: 8px; padding: .6rem 1rem; min-width: 8.5rem }
.tile b { display: block; font-size: 1.5rem }
"""
Cell = str | float | int | None


def write_page(path: Path, title: str, body: Sequence[str]) -> Path:
    """The page at `path`; the parts of the body are HTML."""
    head = f'<!doctype html><html lang="en"><meta charset="utf-8"><title>{escape(title)}</title><style>{STYLE}</style>'
    path.write_text(head + "\n".join(body) + "</html>\n", "utf-8")
    return path


def figure(plots: Mapping[str, Plot], name: str) -> str:
    """The plot of this name; nothing where it was not drawn."""
    plot = plots.get(name)
    return "" if plot is None else f"<figure>{plot.svg}<figcaption>{escape(plot.caption)}</figcaption></figure>"


def table(header: Sequence[str], rows: Sequence[Sequence[Cell]], *, wide: bool = False) -> str:
    """Figures to the right, the first column to the left; None is a dash. `wide` is for text."""
    head = "".join(f"<th>{escape(name)}</th>" for name in header)
    lines = "".join("<tr>" + "".join(f"<td>{escape(_shown(cell))}</td>" for cell in row) + "</tr>" for row in rows)
    return f"<table{' class=wide' if wide else ''}><tr>{head}</tr>{lines}</table>"


def _shown(cell: Cell) -> str:
    if cell is None:
        return "–"
    return (f"{cell:.3f}" if cell < 10 else f"{cell:.1f}") if isinstance(cell, float) else str(cell)
