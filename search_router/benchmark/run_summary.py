"""The four families of figures of one arm, from its rows; nothing is averaged across families or blended into one score.

Retrieval: NDCG@10, MRR@10, Recall@10 by class, by half and by where the wording came from. Selection: fired against gold experts, micro and
macro, questions for one expert alone apart. Latency: by expert and end to end, cold and warm, cached and not, with breaches by class.
Emission: answers with their receipt in the store (`run_receipts`). Hostile questions are counted by how they were handled, never ranked.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from search_router.benchmark.fixture_suite import ADVERSARIAL, CLASSES
from search_router.benchmark.gains import Metrics
from search_router.benchmark.metrics import mean_metrics
from search_router.benchmark.run_rows import Row
from search_router.benchmark.selection import Choice, by_expert, score_selection
from search_router.benchmark.timing import quantile

HALVES: Final = ("dev", "test")
DIGITS: Final = 4


def summarise_arm(rows: Sequence[Row], ready: Mapping[str, Any], cold_ms: Sequence[float]) -> dict[str, Any]:
    """Everything about one arm but its receipts."""
    scored = [row for row in rows if row["kind"] not in ADVERSARIAL]
    hostile = [row for row in rows if row["kind"] in ADVERSARIAL]
    return {
        "config": ready["config"],
        "questions": len(scored),
        "retrieval": {
            "all": retrieval(scored),
            "by_class": _by(scored, "kind", retrieval, CLASSES),
            "by_half": _by(scored, "half", retrieval, HALVES),
            "by_source": _by(scored, "source", retrieval),
            "items": sum(len(row["results"]) for row in scored),
            "unmapped": sum(row["unmapped"] for row in scored),
            "commits": sum(row["commits"] for row in scored),
        },
        "selection": selection(scored),
        "latency": latency(rows, ready, cold_ms),
        "hostile": {
            "handled": sum(row["handled"] for row in hostile),
            "questions": len(hostile),
            "by_kind": {
                k: f"{sum(r['handled'] for r in hostile if r['kind'] == k)}/{sum(r['kind'] == k for r in hostile)}" for k in ADVERSARIAL
            },
            "mishandled": [row["id"] for row in hostile if not row["handled"]],
        },
        "errors": dict(sorted(Counter(error for row in rows for error in row["errors"]).items())),
        "unstable": [row["id"] for row in rows if row["unstable"]],
    }


def retrieval(rows: Sequence[Row]) -> dict[str, float | int]:
    """Means over questions."""
    means = mean_metrics({row["id"]: Metrics(row["ndcg"], row["mrr"], row["recall"]) for row in rows})
    return {
        "ndcg10": round(means.ndcg, DIGITS),
        "mrr10": round(means.mrr, DIGITS),
        "recall10": round(means.recall, DIGITS),
        "questions": len(rows),
    }


def selection(rows: Sequence[Row]) -> dict[str, Any]:
    """Questions for several experts, by half and class; those for one alone apart; and who was asked too often or too seldom."""
    several = [row for row in rows if not row["sole"]]
    sole = [row for row in rows if row["sole"]]
    return {
        "all": _scores(several),
        "by_half": _by(several, "half", _scores, HALVES),
        "by_class": _by(several, "kind", _scores, CLASSES),
        "sole": _scores(sole) if sole else None,
        "by_expert": by_expert([_choice(row) for row in rows]),
        "recognised": {half: _recognised([r for r in several if r["half"] == half]) for half in HALVES},
    }


def _recognised(rows: Sequence[Row]) -> float:
    """Share of questions whose class is the one that the router gave."""
    return round(sum(row["intent"] == row["kind"] for row in rows) / len(rows), DIGITS) if rows else 0.0


def _choice(row: Row) -> Choice:
    return Choice(frozenset(row["gold"]), frozenset(row["fired"]))


def _scores(rows: Sequence[Row]) -> dict[str, float | int]:
    return {name: round(value, DIGITS) for name, value in score_selection([_choice(row) for row in rows])._asdict().items()}


def latency(rows: Sequence[Row], ready: Mapping[str, Any], cold_ms: Sequence[float]) -> dict[str, Any]:
    """Milliseconds. `gate` is over each question's median round, which `bench compare` looks at; `warm` is over every single request."""
    warm, cached = [list[float]() for _ in range(2)]
    for row in rows:
        for ms, was_cached in zip(row["ms"], row["cached"], strict=True):
            (cached if was_cached else warm).append(ms)
    experts: dict[str, list[float]] = defaultdict(list)
    for row in rows:
        for name, values in row["expert_us"].items():
            experts[name] += [us / 1000 for us in values]
    return {
        "ready_ms": round(ready["ready_ms"], 1),
        "cold": quantiles(cold_ms),
        "warm": quantiles(warm),
        "cached": quantiles(cached),
        "gate": quantiles([median(row["ms"]) for row in rows]),
        "cpu": quantiles([median(row["cpu_ms"]) for row in rows]),
        "by_class": {k: quantiles([ms for row in rows if row["kind"] == k for ms in row["ms"]]) for k in CLASSES},
        "experts": {name: {**quantiles(values), "cap_ms": ready["caps_ms"].get(name)} for name, values in sorted(experts.items())},
        "budget_ms": ready["budget_ms"],
        "breaches": dict(sorted(Counter(b for row in rows for b in row["breaches"]).items())),
    }


def quantiles(values: Sequence[float]) -> dict[str, float | int]:
    """p50, p95, p99 and the count; only the count where there is nothing."""
    if not values:
        return {"n": 0}
    return {
        "p50": round(quantile(values, 0.5), 3),
        "p95": round(quantile(values, 0.95), 3),
        "p99": round(quantile(values, 0.99), 3),
        "n": len(values),
    }


def median(values: Sequence[float]) -> float:
    """The lower middle one: a value that was really measured."""
    return quantile(values, 0.5)


def _by(rows: Sequence[Row], key: str, of: Callable[[Sequence[Row]], dict[str, Any]], order: Sequence[str] = ()) -> dict[str, Any]:
    groups: dict[str, list[Row]] = {name: [] for name in order}
    for row in rows:
        groups.setdefault(row[key], []).append(row)
    return {name: of(found) for name, found in groups.items() if found}
