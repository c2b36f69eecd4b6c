"""Which ranked results hit which targets, and NDCG@10, MRR@10 and Recall@10 of that. Pure.

A result hits a target when their paths are equal or either is a whole-component suffix of the other, and, where both have lines, these
overlap. A target counts once, at its first hit; two targets first met at one result are one gain there, while the ideal counts both.
Gains are binary: DCG = sum of 1 / log2(rank + 1) (Järvelin and Kekäläinen 2002), NDCG = DCG / DCG of all targets at the top.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final, NamedTuple

from search_router.benchmark.questions import Target

DEPTH: Final = 10


class Result(NamedTuple):
    """One ranked place; lines 1-based and closed, or None for the whole file."""

    path: str
    start: int | None = None
    end: int | None = None


class Metrics(NamedTuple):
    ndcg: float
    mrr: float
    recall: float


def is_hit(result: Result, target: Target) -> bool:
    ours, theirs = result.path.replace("\\", "/"), target.path.replace("\\", "/")
    if not (ours == theirs or ours.endswith(f"/{theirs}") or theirs.endswith(f"/{ours}")):
        return False
    if target.start_line is None or target.end_line is None or result.start is None or result.end is None:
        return True
    return result.start <= target.end_line and result.end >= target.start_line


def first_hits(results: Sequence[Result], targets: Sequence[Target]) -> tuple[int | None, ...]:
    """For each target the 0-based rank of its first hit among the first ten results."""
    top = results[:DEPTH]
    return tuple(next((rank for rank, result in enumerate(top) if is_hit(result, target)), None) for target in targets)


def score(hits: Sequence[int | None]) -> Metrics:
    """From the first hits of one question's targets."""
    ranks = {rank for rank in hits if rank is not None}
    ideal = sum(discount(rank) for rank in range(min(len(hits), DEPTH)))
    found = min(sum(hit is not None for hit in hits), DEPTH)
    return Metrics(sum(discount(rank) for rank in ranks) / ideal, 1 / (min(ranks) + 1) if ranks else 0.0, found / len(hits))


def discount(rank: int) -> float:
    """What a gain at this 0-based rank is worth."""
    return 1 / math.log2(rank + 2)


def distinct_files(results: Sequence[Result]) -> list[Result]:
    """The first result of each file."""
    first: dict[str, Result] = {}
    for result in results:
        first.setdefault(result.path, result)
    return list(first.values())
