"""Plots of a run. The one file that knows matplotlib, whose import takes a second; without it a report has tables only.

Each plot is drawn once and kept twice: SVG for the page, PNG for where pages cannot go. Colours are told apart by people who see few of
them (Okabe and Ito 2008).
"""

from __future__ import annotations

import importlib
import importlib.util
import io
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

from search_router.benchmark.run_arms import KS

BLUE, ORANGE, GREEN, RED, GREY, SKY = "#0072B2", "#E69F00", "#009E73", "#D55E00", "#999999", "#56B4E9"
METRICS: Final = (("ndcg10", "NDCG@10", BLUE), ("mrr10", "MRR@10", SKY), ("recall10", "Recall@10", GREEN))
PARTS: Final = (("right", GREEN), ("extra", ORANGE), ("missed", RED))
WIDTH: Final = 8.0
_DATE: Final = re.compile(r"\s*<dc:date>.*?</dc:date>", re.DOTALL)


class Plot(NamedTuple):
    """A drawn figure: its file name without ending, what it shows, and the SVG."""

    name: str
    caption: str
    svg: str


def can_plot() -> bool:
    return importlib.util.find_spec("matplotlib") is not None


def draw_plots(summary: Mapping[str, Any], folder: Path) -> list[Plot]:
    """Every plot that the run has data for, each also as FOLDER/NAME.svg and .png. Nothing without matplotlib."""
    if not can_plot():
        return []
    arms: Mapping[str, Any] = summary["arms"]
    fused = arms["fused"]
    drawn = [
        draw_plot(folder, "retrieval", "Retrieval by class, the product as it is.", lambda axes: _classes(axes, fused)),
        draw_plot(
            folder, "latency", "Latency of requests and experts; the bar ends are p50, p95 and p99.", lambda axes: _latency(axes, fused)
        ),
        draw_plot(
            folder, "selection", "Questions that each expert was rightly asked, asked too much, missed.", lambda axes: _experts(axes, fused)
        ),
    ]
    if len(arms) > 1:
        drawn.append(draw_plot(folder, "arms", "NDCG@10 of every arm over all questions.", lambda axes: _arms(axes, arms), tall=len(arms)))
    if all(f"k={k}" in arms for k in KS):
        drawn.append(draw_plot(folder, "k", "NDCG@10 by the constant of reciprocal rank fusion.", lambda axes: _sweep(axes, arms)))
    return drawn


def draw_plot(folder: Path, name: str, caption: str, draw: Callable[[Any], None], tall: int = 0) -> Plot:
    """One figure, `tall` rows high if it has rows. Needs matplotlib."""
    figures: Any = importlib.import_module("matplotlib.figure")
    matplotlib: Any = importlib.import_module("matplotlib")
    with matplotlib.rc_context({"svg.hashsalt": name, "svg.fonttype": "none", "font.size": 9}):
        figure = figures.Figure(figsize=(WIDTH, max(3.2, 0.28 * tall + 1)), layout="constrained")
        axes = figure.subplots()
        for side in ("top", "right"):
            axes.spines[side].set_visible(False)
        draw(axes)
        text = io.StringIO()
        figure.savefig(text, format="svg", metadata={"Date": None})
        folder.mkdir(parents=True, exist_ok=True)
        figure.savefig(folder / f"{name}.png", format="png", dpi=140)
    svg = _DATE.sub("", text.getvalue())
    (folder / f"{name}.svg").write_text(svg, "utf-8")
    return Plot(name, caption, svg[svg.index("<svg") :])


def _classes(axes: Any, arm: Mapping[str, Any]) -> None:
    classes: Mapping[str, Any] = arm["retrieval"]["by_class"]
    names = [*classes, "all"]
    groups = [*classes.values(), arm["retrieval"]["all"]]
    for at, (key, label, colour) in enumerate(METRICS):
        places = [place + (at - 1) * 0.26 for place in range(len(names))]
        bars = axes.bar(places, [group[key] for group in groups], 0.24, label=label, color=colour)
        axes.bar_label(bars, fmt="%.2f", fontsize=7)
    axes.set_xticks(range(len(names)), [f"{name}\n{group['questions']}" for name, group in zip(names, groups, strict=True)], fontsize=8)
    axes.set_ylim(0, 1.2)
    axes.legend(ncols=3, frameon=False, loc="upper left")


def _latency(axes: Any, arm: Mapping[str, Any]) -> None:
    latency: Mapping[str, Any] = arm["latency"]
    rows = [("request", latency["warm"], latency["budget_ms"])]
    rows += [(name, row, row["cap_ms"]) for name, row in latency["experts"].items()]
    for at, (_, row, cap) in enumerate(reversed(rows)):
        for key, colour in (("p99", SKY), ("p95", BLUE), ("p50", GREEN)):
            axes.barh(at, row.get(key, 0), 0.6, color=colour, label=key if at == 0 else None)
        if cap:
            axes.plot([cap, cap], [at - 0.38, at + 0.38], color=RED, linewidth=2, label="cap" if at == 0 else None)
    axes.set_yticks(range(len(rows)), [name for name, _, _ in reversed(rows)])
    axes.set_xscale("log")
    for set_formatter in (axes.xaxis.set_major_formatter, axes.xaxis.set_minor_formatter):
        set_formatter(_round_number)
    axes.set_xlabel("ms, warm")
    axes.legend(ncols=4, frameon=False, loc="lower right", bbox_to_anchor=(1, 1))


def _round_number(value: float, _: object) -> str:
    """Only 1, 2 and 5 of each decade, as plain numbers."""
    return f"{value:g}" if f"{value:.0e}"[0] in "125" else ""


def _experts(axes: Any, arm: Mapping[str, Any]) -> None:
    experts: Mapping[str, Any] = arm["selection"]["by_expert"]
    left = [0] * len(experts)
    for part, colour in PARTS:
        values = [row[part] for row in experts.values()]
        axes.barh(range(len(experts)), values, 0.6, left=left, color=colour, label=part)
        left = [a + b for a, b in zip(left, values, strict=True)]
    axes.set_yticks(range(len(experts)), list(experts))
    axes.set_xlabel("questions")
    axes.legend(ncols=3, frameon=False, loc="lower right", bbox_to_anchor=(1, 1))


def _arms(axes: Any, arms: Mapping[str, Any]) -> None:
    ordered = sorted(arms.items(), key=lambda item: item[1]["retrieval"]["all"]["ndcg10"])
    values = [arm["retrieval"]["all"]["ndcg10"] for _, arm in ordered]
    bars = axes.barh(range(len(ordered)), values, 0.7, color=[RED if name == "fused" else GREY for name, _ in ordered])
    axes.bar_label(bars, fmt="%.3f", fontsize=7)
    axes.set_yticks(range(len(ordered)), [name for name, _ in ordered])
    axes.set_xlim(0, 1.08)
    axes.set_xlabel("NDCG@10")


def _sweep(axes: Any, arms: Mapping[str, Any]) -> None:
    values: Sequence[float] = [arms[f"k={k}"]["retrieval"]["all"]["ndcg10"] for k in KS]
    axes.plot(KS, values, marker="o", color=BLUE)
    axes.set_xlabel("k")
    axes.set_ylabel("NDCG@10")
    axes.margins(y=0.3)
