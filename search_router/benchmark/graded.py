"""Which ranked items earn which grades, and NDCG@10, MRR@10 and Recall@10 of that. Pure.

An item earns the best grade among the labels that it meets and that nothing above it met; a label counts at its first meeting. What meets
no new label earns nothing and keeps its place. DCG = sum of grade / log2(rank + 1) (Järvelin and Kekäläinen 2002, the gain of trec_eval
and ranx), NDCG = DCG / DCG of all labels by grade. The reciprocal rank is that of the first item that earns anything; recall is the share
of labels that were met.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from search_router.benchmark.fixture_suite import COMMIT, Label
from search_router.benchmark.gains import DEPTH, Metrics, discount


@dataclass(frozen=True, slots=True)
class Item:
    """One item of evidence as labels see it: a place in a file, a commit, or neither (`mapped` is false)."""

    project: str
    path: str | None
    start: int | None = None
    end: int | None = None
    commit: str | None = None

    @property
    def mapped(self) -> bool:
        return self.path is not None or self.commit is not None


@dataclass(frozen=True, slots=True)
class Judged:
    """Grades by rank for the first ten items, the grades of all labels, and the rank (0-based) at which each label was met."""

    gains: tuple[int, ...]
    grades: tuple[int, ...]
    met: tuple[int | None, ...]


def read_items(evidence: Sequence[dict[str, Any]]) -> list[Item]:
    """The items of an answer. A commit is never a path, whatever it touches; documentation of a library is neither."""
    items: list[Item] = []
    for each in evidence:
        commit: str | None = each["commit"]
        path: str | None = each["path"] if commit is None and each["library"] is None else None
        items.append(Item(each["project"], path, each["start_line"], each["end_line"], commit))
    return items


def judge(items: Sequence[Item], labels: Sequence[Label]) -> Judged:
    """Where no label has lines and none is a commit, files are what is ranked: later places of a file are left out."""
    whole_files = all(label.start is None and not label.path.startswith(COMMIT) for label in labels)
    ranked = _distinct_files(items) if whole_files else list(items)
    met: list[int | None] = [None] * len(labels)
    gains: list[int] = []
    for rank, item in enumerate(ranked[:DEPTH]):
        new = [n for n, label in enumerate(labels) if met[n] is None and meets(item, label)]
        for n in new:
            met[n] = rank
        gains.append(max((labels[n].grade for n in new), default=0))
    return Judged(tuple(gains), tuple(label.grade for label in labels), tuple(met))


def meets(item: Item, label: Label) -> bool:
    if item.project != label.project:
        return False
    if label.commit:
        return item.commit == label.commit
    if item.path != label.path:
        return False
    if label.start is None or label.end is None or item.start is None or item.end is None:
        return True
    return item.start <= label.end and item.end >= label.start


def score_judged(judged: Judged) -> Metrics:
    """The metrics of one question; it must have a label."""
    ideal = sum(grade * discount(rank) for rank, grade in enumerate(sorted(judged.grades, reverse=True)[:DEPTH]))
    first = next((rank for rank, gain in enumerate(judged.gains) if gain), None)
    return Metrics(
        sum(gain * discount(rank) for rank, gain in enumerate(judged.gains)) / ideal,
        0.0 if first is None else 1 / (first + 1),
        sum(rank is not None for rank in judged.met) / len(judged.met),
    )


def _distinct_files(items: Sequence[Item]) -> list[Item]:
    first: dict[object, Item] = {}
    for number, item in enumerate(items):
        first.setdefault((item.project, item.path) if item.path is not None else number, item)
    return list(first.values())
