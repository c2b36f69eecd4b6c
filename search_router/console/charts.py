"""Pictures of numbers as SVG, without a script and without a style attribute: the console's content policy allows neither."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final
from xml.sax.saxutils import escape, quoteattr

WIDTH: Final = 640
HEIGHT: Final = 120
GAP: Final = 2


def bars(values: Sequence[float], labels: Sequence[str], title: str) -> str:
    """A bar chart of WIDTH x HEIGHT units; each bar tells its label and value on hovering, the title is read aloud."""
    top = max(values, default=0) or 1
    each = WIDTH / max(1, len(values))
    parts = [f'<svg class="chart" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label={quoteattr(title)} preserveAspectRatio="none">']
    for number, (value, label) in enumerate(zip(values, labels, strict=True)):
        height = round(value / top * (HEIGHT - 4), 1)
        parts.append(
            f'<rect class="bar" x="{number * each + GAP / 2:.1f}" y="{HEIGHT - height:.1f}" width="{max(1.0, each - GAP):.1f}" '
            f'height="{height:.1f}"><title>{escape(label)}: {value:g}</title></rect>'
        )
    return "".join([*parts, "</svg>"])


class Span:
    """One bar of a timeline: a name, where it begins and how long it is (ms), its kind (a class name) and words about it."""

    __slots__ = ("begin_ms", "kind", "name", "took_ms", "words")

    def __init__(self, name: str, begin_ms: float, took_ms: float, kind: str, words: str) -> None:
        self.name = name
        self.begin_ms = begin_ms
        self.took_ms = took_ms
        self.kind = kind if kind.replace("-", "").isalpha() else "other"
        self.words = words


ROW: Final = 22
LABEL: Final = 150


def timeline(spans: Sequence[Span], whole_ms: float, title: str) -> str:
    """Spans under each other on one axis of `whole_ms`."""
    scale = (WIDTH - LABEL) / max(whole_ms, 0.001)
    height = ROW * len(spans) + 4
    parts = [f'<svg class="timeline" viewBox="0 0 {WIDTH} {height}" role="img" aria-label={quoteattr(title)}>']
    for number, span in enumerate(spans):
        y = number * ROW + 4
        x = LABEL + min(span.begin_ms, whole_ms) * scale
        width = max(2.0, min(span.took_ms, max(whole_ms - span.begin_ms, 0)) * scale)
        parts.append(
            f'<text class="label" x="0" y="{y + 13}">{escape(span.name[:22])}</text>'
            f'<rect class="span {span.kind}" x="{x:.1f}" y="{y}" width="{width:.1f}" height="{ROW - 6}" rx="2">'
            f"<title>{escape(span.words)}</title></rect>"
        )
    return "".join([*parts, "</svg>"])
