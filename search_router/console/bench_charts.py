"""Plots of benchmark runs as SVG: one for each family of figures, one for the differences of two runs. No script, no style attribute.

Every bar says its value beside it, so that nothing is told by colour alone.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Final, NamedTuple
from xml.sax.saxutils import escape, quoteattr

from search_router.console.bench_records import BenchComparison, BenchRunView, Figure
from search_router.console.charts import WIDTH

LABEL: Final = 150
VALUE: Final = 110
"""Room for the names on the left and the values on the right, in units of the picture."""
BAR: Final = 12
GAP: Final = 8
FASTEST_MS: Final = 1.0
FEWEST_ROWS: Final = 60
"""More rows than anybody reads are left to the table."""


class Bar(NamedTuple):
    """One bar: how long (0 to 1), of which series (a, b or c), and what is written beside it."""

    share: float
    series: str
    said: str


class Row(NamedTuple):
    """Bars of one name under each other."""

    name: str
    bars: tuple[Bar, ...]


def retrieval_plot(view: BenchRunView) -> str:
    """NDCG, MRR and recall of each class and of all questions, from 0 to 1."""
    rows = [
        _row(g.name, ((g.ndcg10, "a", "NDCG@10"), (g.mrr10, "b", "MRR@10"), (g.recall10, "c", "Recall@10")), _of_one)
        for g in view.retrieval
        if g.kind in ("all", "class")
    ]
    return plot(rows, "Retrieval of each class: NDCG, MRR and recall at 10, from 0 to 1")


def selection_plot(view: BenchRunView) -> str:
    """Questions of which each expert was rightly asked, asked too much, missed."""
    most = max((n for e in view.experts for n in (e.right, e.extra, e.missed) if n), default=1)
    rows = [
        _row(
            e.expert,
            ((e.right, "a", "right"), (e.extra, "b", "too much"), (e.missed, "c", "missed")),
            lambda value: min(1.0, value / most),
            "{:.0f}",
        )
        for e in view.experts
    ]
    return plot(rows, "Questions of which each expert was rightly asked, asked too much and missed")


def latency_plot(view: BenchRunView) -> str:
    """p50, p95 and p99 of requests and of experts, on a logarithmic axis that begins at FASTEST_MS."""
    shown = [row for row in view.latency if row.kind != "class"]
    slowest = max((v for row in shown for v in (row.p50, row.p95, row.p99) if v is not None), default=10.0)
    scale = math.log10(max(slowest, 10 * FASTEST_MS) / FASTEST_MS)

    def share(value: float) -> float:
        return max(0.0, math.log10(max(value, FASTEST_MS) / FASTEST_MS) / scale)

    rows = [_row(row.name, ((row.p50, "a", "p50"), (row.p95, "b", "p95"), (row.p99, "c", "p99")), share, "{:.1f} ms") for row in shown]
    return plot(rows, "Latencies of requests and experts in milliseconds, on a logarithmic axis")


def arms_plot(view: BenchRunView) -> str:
    """NDCG@10 of every arm, the best first."""
    ordered = sorted(view.arms, key=lambda arm: -(arm.ndcg10 if arm.ndcg10 is not None else -1.0))
    series = {True: "a", False: "b"}
    rows = [_row(arm.arm, ((arm.ndcg10, series[arm.arm == view.arm], ""),), _of_one) for arm in ordered]
    return plot(rows, "NDCG at 10 of every arm, from 0 to 1")


def plot(rows: Sequence[Row], title: str) -> str:
    """Horizontal bars with their names and values; empty without a bar."""
    rows = [row for row in rows if row.bars][:FEWEST_ROWS]
    if not rows:
        return ""
    room = WIDTH - LABEL - VALUE
    parts: list[str] = []
    y = GAP
    for row in rows:
        middle = y + BAR * len(row.bars) / 2 + 4
        parts.append(f'<text class="label" x="0" y="{middle:.0f}">{escape(row.name[:22])}<title>{escape(row.name)}</title></text>')
        for bar in row.bars:
            width = max(1.0, bar.share * room)
            parts.append(f'<rect class="series {bar.series}" x="{LABEL}" y="{y}" width="{width:.1f}" height="{BAR - 2}"></rect>')
            parts.append(f'<text class="value" x="{LABEL + width + 4:.1f}" y="{y + BAR - 3}">{escape(bar.said)}</text>')
            y += BAR
        y += GAP
    return f'<svg class="timeline" viewBox="0 0 {WIDTH} {y}" role="img" aria-label={quoteattr(title)}>{"".join(parts)}</svg>'


def changes_plot(compared: BenchComparison) -> str:
    """The change of NDCG@10 of each group around zero, with twice its standard error; empty without one."""
    rows = [(n.group, n.mean, n.error or 0.0) for n in compared.ndcg10 if n.mean is not None][:FEWEST_ROWS]
    if not rows:
        return ""
    most = max(0.01, *(abs(mean) + 2 * error for _, mean, error in rows))
    room = (WIDTH - LABEL - VALUE) / 2
    zero = LABEL + room
    parts: list[str] = []
    for number, (name, mean, error) in enumerate(rows):
        y = GAP + number * (BAR + GAP)
        begin, end = sorted((zero, zero + mean / most * room))
        low, high = (zero + (mean + sign * 2 * error) / most * room for sign in (-1, 1))
        series = "c" if mean < 0 else "a"
        parts.append(
            f'<text class="label" x="0" y="{y + BAR - 2}">{escape(name[:22])}</text>'
            f'<rect class="series {series}" x="{begin:.1f}" y="{y}" width="{max(1.0, end - begin):.1f}" height="{BAR}"></rect>'
            f'<rect class="whisker" x="{low:.1f}" y="{y + BAR / 2 - 0.5}" width="{high - low:.1f}" height="1"></rect>'
            f'<text class="value" x="{WIDTH - VALUE + 8}" y="{y + BAR - 2}">{mean:+.4f}</text>'
        )
    height = GAP + len(rows) * (BAR + GAP)
    axis = f'<rect class="whisker" x="{zero:.1f}" y="0" width="1" height="{height}"></rect>'
    title = "Change of NDCG at 10 of each group of questions, second run minus first"
    return f'<svg class="timeline" viewBox="0 0 {WIDTH} {height}" role="img" aria-label={quoteattr(title)}>{axis}{"".join(parts)}</svg>'


def _row(name: str, figures: Sequence[tuple[Figure, str, str]], share: Callable[[float], float], form: str = "{:.3f}") -> Row:
    bars = [Bar(share(value), series, f"{form.format(value)} {said}".strip()) for value, series, said in figures if value is not None]
    return Row(name, tuple(bars))


def _of_one(value: float) -> float:
    return min(1.0, max(0.0, value))
