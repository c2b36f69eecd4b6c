"""Several systems on the same questions: one table and one plot, as a page and as files."""

from __future__ import annotations

import json
from collections.abc import Mapping
from html import escape
from pathlib import Path
from typing import Any, Final

from search_router.benchmark.page import table, write_page
from search_router.benchmark.plots import BLUE, GREY, RED, can_plot, draw_plot

PAGE: Final = "report.html"
COLUMNS: Final = (
    ("NDCG@10", "ndcg10"),
    ("MRR@10", "mrr10"),
    ("Recall@10", "recall10"),
    ("index ms/kline", "index_ms_a_thousand_lines"),
    ("query p50 ms", "p50_ms"),
    ("p95 ms", "p95_ms"),
)


def write_peers(folder: Path, result: Mapping[str, Any]) -> Path:
    """FOLDER/peers.json, report.html, and the plot as peers.svg and peers.png where matplotlib is installed."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "peers.json").write_text(json.dumps(result, indent=1), "utf-8")
    systems: Mapping[str, Mapping[str, Any]] = result["systems"]
    kinds = sorted({kind for figures in systems.values() for kind in figures["by"]["category"]})
    rows = [[name, *(figures[key] for _, key in COLUMNS)] for name, figures in systems.items()]
    by_kind = [[name, *(figures["by"]["category"].get(kind) for kind in kinds)] for name, figures in systems.items()]
    said = f"{result['questions']} questions, {result['repositories']} repositories, {result['lines']} lines; {result['circumstances']}"
    plot = (
        draw_plot(folder, "peers", "Quality over time of a query; the bar ends at p95.", lambda a: _scatter(a, systems))
        if can_plot()
        else None
    )
    body = [
        "<h1>Systems side by side</h1>",
        f'<p class="dim">{escape(said)}</p>',
        f"<figure>{plot.svg}<figcaption>{escape(plot.caption)}</figcaption></figure>" if plot else "",
        table(("system", *(name for name, _ in COLUMNS)), rows),
        "<h2>NDCG@10 by class</h2>",
        table(("system", *kinds), by_kind),
        "<h2>What each is</h2>",
        table(
            ("system", "what", "failed experts"),
            [[n, f["what"], str(f["failed_experts"] or "none")] for n, f in systems.items()],
            wide=True,
        ),
    ]
    return write_page(folder / PAGE, "search-router beside other systems", body)


def _scatter(axes: Any, systems: Mapping[str, Mapping[str, Any]]) -> None:
    for at, (name, figures) in enumerate(systems.items()):
        colour = RED if at == 0 else BLUE
        axes.plot([figures["p50_ms"], figures["p95_ms"]], [figures["ndcg10"]] * 2, color=GREY, linewidth=1.5, zorder=1)
        axes.scatter([figures["p50_ms"]], [figures["ndcg10"]], color=colour, s=45, zorder=2)
        axes.annotate(name, (figures["p50_ms"], figures["ndcg10"]), xytext=(0, 8), textcoords="offset points", ha="center")
    axes.set_xscale("log")
    axes.set_xlabel("ms a query, p50 (dot) to p95")
    axes.set_ylabel("NDCG@10")
    axes.set_ylim(0, 1.05)
    axes.margins(x=0.15)
