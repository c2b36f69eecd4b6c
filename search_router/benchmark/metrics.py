"""The figures of a run: by ranx where it is installed (the `benchmark` extra), checked against our own, else our own, and said so.

This is the one file that knows ranx; its import takes seconds.
"""

from __future__ import annotations

import importlib
import importlib.metadata
import importlib.util
import statistics
import warnings
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from search_router.benchmark.gains import DEPTH, Metrics, Result, first_hits
from search_router.benchmark.gains import score as score_hits
from search_router.benchmark.graded import Judged, score_judged
from search_router.benchmark.questions import Question
from search_router.errors import SearchRouterError

TOLERANCE: Final = 1e-9
GRADED_TOLERANCE: Final = 1e-6
Rankings = Mapping[str, Sequence[Result]]
"""Question id to results, best first."""


class ScorersDisagree(SearchRouterError):
    """ranx and our own computation gave different figures for one question: neither is to be trusted."""

    code = "scorers-disagree"


@dataclass(frozen=True, slots=True)
class Spread:
    """NDCG@10 by group: mean of each, their mean, population standard deviation, and the lowest with its name."""

    by_group: Mapping[str, float]
    mean: float
    deviation: float
    lowest: float
    lowest_at: str


def scorer_name() -> str:
    """What computes the figures here."""
    if importlib.util.find_spec("ranx") is None:
        return "own (install the `benchmark` extra for ranx)"
    return f"ranx {importlib.metadata.version('ranx')}, equal to our own"


def score_run(questions: Sequence[Question], rankings: Rankings) -> dict[str, Metrics]:
    """Metrics of each question; one without a ranking counts as zero.

    Raises:
        ScorersDisagree: ranx and our own computation differ.
    """
    hits = {q.id: first_hits(rankings.get(q.id, ()), q.targets) for q in questions}
    own = {name: score_hits(found) for name, found in hits.items()}
    if importlib.util.find_spec("ranx") is None:
        return own
    theirs = _by_ranx(hits, {q.id: min(len(rankings.get(q.id, ())), DEPTH) for q in questions})
    for name, metrics in theirs.items():
        if max(abs(a - b) for a, b in zip(metrics, own[name], strict=True)) > TOLERANCE:
            raise ScorersDisagree(f"{name}: ranx says {metrics}, we say {own[name]}.", remedy="Report it; use neither.")
    return theirs


def _by_ranx(hits: Mapping[str, Sequence[int | None]], lengths: Mapping[str, int]) -> dict[str, Metrics]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of its plotting and compiling dependencies
        ranx: Any = importlib.import_module("ranx")
        qrels: dict[str, dict[str, int]] = {}
        ranked: dict[str, dict[str, float]] = {}
        covered: dict[str, dict[str, float]] = {}
        for name, found in hits.items():
            qrels[name] = {f"t{number}": 1 for number in range(len(found))}
            slots: dict[int, str] = {}
            for number, rank in enumerate(found):
                if rank is not None:
                    slots.setdefault(rank, f"t{number}")
            ranked[name] = {slots.get(rank, f"x{rank}"): float(DEPTH - rank) for rank in range(lengths[name])} or {"x": 0.0}
            covered[name] = {f"t{number}": 1.0 for number, rank in enumerate(found) if rank is not None} or {"x": 0.0}
        judged = ranx.Qrels(qrels)
        names = [f"ndcg@{DEPTH}", f"mrr@{DEPTH}"]
        values: dict[str, Any] = ranx.evaluate(judged, ranx.Run(ranked), names, return_mean=False)
        recall: Any = ranx.evaluate(judged, ranx.Run(covered), f"recall@{DEPTH}", return_mean=False)
        order: list[str] = list(judged.keys())
    return {
        name: Metrics(float(n), float(m), float(r)) for name, n, m, r in zip(order, values[names[0]], values[names[1]], recall, strict=True)
    }


def score_graded(judged: Mapping[str, Judged]) -> dict[str, Metrics]:
    """Metrics of each question from graded judgements, by our own computation; where ranx is installed it has to agree.

    Raises:
        ScorersDisagree: it does not.
    """
    own = {name: score_judged(each) for name, each in judged.items()}
    if own and importlib.util.find_spec("ranx") is not None:
        for name, theirs in _graded_by_ranx(judged).items():
            if max(abs(a - b) for a, b in zip(theirs, own[name], strict=True)) > GRADED_TOLERANCE:
                raise ScorersDisagree(f"{name}: ranx says {theirs}, we say {own[name]}.", remedy="Report it; use neither.")
    return own


def as_trec(judged: Judged) -> tuple[dict[str, int], dict[str, float], dict[str, float]]:
    """(qrels, run, run of everything that was met) of one question, for any library that reads TREC's forms: a label is a document `tN`,
    an item that earns a grade is the label that it earned it by, any other item a document that nobody judged."""
    qrels = {f"t{number}": grade for number, grade in enumerate(judged.grades)}
    earned: dict[int, int] = {}
    for number, rank in enumerate(judged.met):
        if rank is not None and judged.grades[number] == judged.gains[rank]:
            earned.setdefault(rank, number)
    run = {f"t{earned[rank]}" if rank in earned else f"x{rank}": float(DEPTH - rank) for rank in range(len(judged.gains))}
    met = {f"t{number}": 1.0 for number, rank in enumerate(judged.met) if rank is not None}
    return qrels, run or {"x": 0.0}, met or {"x": 0.0}


def _graded_by_ranx(judged: Mapping[str, Judged]) -> dict[str, Metrics]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of its plotting and compiling dependencies
        ranx: Any = importlib.import_module("ranx")
        forms = {name: as_trec(each) for name, each in judged.items()}
        qrels = ranx.Qrels({name: form[0] for name, form in forms.items()})
        names = [f"ndcg@{DEPTH}", f"mrr@{DEPTH}"]
        values: dict[str, Any] = ranx.evaluate(qrels, ranx.Run({n: form[1] for n, form in forms.items()}), names, return_mean=False)
        met = ranx.Run({n: form[2] for n, form in forms.items()})
        recall: Any = ranx.evaluate(qrels, met, f"recall@{max(DEPTH, *(len(form[0]) for form in forms.values()))}", return_mean=False)
        order: list[str] = list(qrels.keys())
    return {n: Metrics(float(a), float(b), float(c)) for n, a, b, c in zip(order, values[names[0]], values[names[1]], recall, strict=True)}


def mean_metrics(per: Mapping[str, Metrics]) -> Metrics:
    """Means over questions."""
    return Metrics(*(statistics.fmean(values) for values in zip(*per.values(), strict=True)))


def spread_over(questions: Sequence[Question], per: Mapping[str, Metrics], key: str) -> Spread:
    """NDCG@10 by `repo`, `language` or `category`."""
    groups: dict[str, list[float]] = defaultdict(list)
    for question in questions:
        groups[str(getattr(question, key))].append(per[question.id].ndcg)
    means = {name: statistics.fmean(values) for name, values in sorted(groups.items())}
    lowest = min(means, key=lambda name: (means[name], name))
    return Spread(means, statistics.fmean(means.values()), statistics.pstdev(means.values()), means[lowest], lowest)
