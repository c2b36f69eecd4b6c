"""What freshness costs by size of the repository, as a page: building, asking cold and warm, saving, switching, memory and disk."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from html import escape
from pathlib import Path
from typing import Any, Final

from search_router.benchmark.page import Cell, figure, table, write_page
from search_router.benchmark.plots import BLUE, GREEN, ORANGE, RED, SKY, Plot, can_plot, draw_plot

PAGE: Final = "report.html"
Size = Mapping[str, Any]
Line = tuple[str, str, Callable[[Size], float | None]]
BUILD: Final[tuple[Line, ...]] = (
    ("first index", BLUE, lambda s: s["build"]["s"]),
    ("processor time", SKY, lambda s: s["build"]["cpu_s"]),
    ("restart", GREEN, lambda s: s["restart"]["s"]),
)
ASKED: Final[tuple[Line, ...]] = (
    ("warm p50", GREEN, lambda s: s["questions"]["p50_ms"]),
    ("warm p95", BLUE, lambda s: s["questions"]["p95_ms"]),
    ("after a save p50", ORANGE, lambda s: s["saves"] and s["saves"]["p50_ms"]),
    ("after a switch, never seen", RED, lambda s: s["switches"] and s["switches"]["never_seen"]["complete_ms"]),
    ("after a switch, seen p50", SKY, lambda s: s["switches"] and s["switches"]["seen"]["complete"]["p50_ms"]),
)
MEMORY: Final[tuple[Line, ...]] = (
    ("resident", BLUE, lambda s: s["memory"]["rss_mib"]),
    ("highest", RED, lambda s: s["memory"]["peak_rss_mib"]),
    ("after a restart", GREEN, lambda s: s["memory"]["rss_after_restart_mib"]),
)
PLOTS: Final = (
    ("build", "Seconds until every expert has read everything.", "s", BUILD),
    ("asked", "Milliseconds of a question, warm and after changes, until its answer is complete.", "ms", ASKED),
    ("memory", "Memory of the server process.", "MiB", MEMORY),
)


def write_index_report(folder: Path, result: Mapping[str, Any]) -> Path:
    """FOLDER/index.json, report.html, and each plot as SVG and PNG below FOLDER/plots where matplotlib is installed."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "index.json").write_text(json.dumps(result, indent=1), "utf-8")
    sizes: Sequence[Size] = result["sizes"]
    plots = _draw(folder / "plots", sizes)
    body = ["<h1>Freshness by size</h1>", f'<p class="dim">{escape(str(result["circumstances"]))}</p>']
    for name, _, unit, lines in PLOTS:
        rows: list[list[Cell]] = [[s["lines"], *(value_of(s) for _, _, value_of in lines)] for s in sizes]
        body += [figure(plots, name), table((f"lines \\ {unit}", *(label for label, _, _ in lines)), rows)]
    found = [[s["lines"], _found(s["saves"], "found"), _right(s["switches"]), s["disk_of_source"], s["load_1m"]] for s in sizes]
    body.append(table(("lines", "saves found at once", "switches answered rightly at once", "disk / source", "load"), found))
    return write_page(folder / PAGE, "search-router: freshness by size", body)


def _found(saves: Mapping[str, Any] | None, key: str) -> str | None:
    return None if saves is None else str(saves[key])


def _right(switches: Mapping[str, Any] | None) -> str | None:
    return None if switches is None else f"{switches['seen']['right']} of {switches['seen']['of']}"


def _draw(folder: Path, sizes: Sequence[Size]) -> dict[str, Plot]:
    if not can_plot():
        return {}

    def curves(axes: Any, unit: str, lines: Sequence[Line]) -> None:
        for label, colour, value_of in lines:
            points = [(s["lines"], value) for s in sizes if (value := value_of(s)) is not None]
            axes.plot([x for x, _ in points], [y for _, y in points], marker="o", color=colour, label=label)
        axes.set_xscale("log")
        axes.set_yscale("log")
        axes.set_xlabel("lines of text")
        axes.set_ylabel(unit)
        axes.legend(frameon=False)

    return {name: draw_plot(folder, name, said, lambda a, u=unit, x=lines: curves(a, u, x)) for name, said, unit, lines in PLOTS}
