"""Which experts were asked against which should have been: precision, recall and F1, micro and macro. Pure.

Micro sums over all pairs of a question and an expert; macro is the mean of each question's own F1. A question with nobody asked and nobody
wanted is right. `oracle_gap` is what the best single expert of each question would have gained over the fused answer: the mean over
questions of max(0, best alone - fused) in NDCG@10.
"""

from __future__ import annotations

import statistics
from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple


class Choice(NamedTuple):
    """One question: the experts that should have been asked, and those that were."""

    gold: frozenset[str]
    fired: frozenset[str]


class SelectionScores(NamedTuple):
    """Shares, 0 to 1. `exact` is the share of questions whose set was exactly right."""

    questions: int
    precision_micro: float
    recall_micro: float
    f1_micro: float
    precision_macro: float
    recall_macro: float
    f1_macro: float
    exact: float


def score_selection(choices: Sequence[Choice]) -> SelectionScores:
    """Scores of at least one question."""
    hits = sum(len(c.gold & c.fired) for c in choices)
    fired, gold = sum(len(c.fired) for c in choices), sum(len(c.gold) for c in choices)
    precision, recall = _share(hits, fired), _share(hits, gold)
    own = [(_share(len(c.gold & c.fired), len(c.fired)), _share(len(c.gold & c.fired), len(c.gold))) for c in choices]
    return SelectionScores(
        len(choices),
        precision,
        recall,
        f1(precision, recall),
        statistics.fmean(p for p, _ in own),
        statistics.fmean(r for _, r in own),
        statistics.fmean(f1(p, r) for p, r in own),
        statistics.fmean(c.gold == c.fired for c in choices),
    )


def f1(precision: float, recall: float) -> float:
    return 2 * precision * recall / (precision + recall) if precision + recall else 0.0


def by_expert(choices: Sequence[Choice]) -> dict[str, dict[str, int]]:
    """How often each expert was rightly asked, wrongly asked, and missed."""
    names = sorted(frozenset[str]().union(*(c.gold | c.fired for c in choices)))
    return {
        name: {
            "right": sum(name in c.gold and name in c.fired for c in choices),
            "extra": sum(name not in c.gold and name in c.fired for c in choices),
            "missed": sum(name in c.gold and name not in c.fired for c in choices),
        }
        for name in names
    }


def oracle_gap(fused: Mapping[str, float], alone: Collection[Mapping[str, float]]) -> float:
    """Over the questions of `fused`; `alone` are the same questions asked of one expert each."""
    return statistics.fmean(max(0.0, max((each.get(name, 0.0) for each in alone), default=0.0) - value) for name, value in fused.items())


def _share(part: int, whole: int) -> float:
    """Nothing of nothing is all of it."""
    return part / whole if whole else 1.0
