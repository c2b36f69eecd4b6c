"""Whether the difference of two runs on the same questions is more than chance. The one file that knows scipy, which comes with ranx.

Student's paired t-test, two-sided (the test that Urbano et al., SIGIR 2019, find best for NDCG), with Holm's correction over the groups
that are looked at together.
"""

from __future__ import annotations

import importlib
import importlib.util
import math
import statistics
from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

from search_router.benchmark.questions import UnusableData

ALPHA: Final = 0.05


class Difference(NamedTuple):
    """Second minus first: the mean, its standard error, how many questions changed for the better and worse, and p (1.0 for no change)."""

    mean: float
    error: float
    better: int
    worse: int
    p: float


def paired(first: Sequence[float], second: Sequence[float]) -> Difference:
    """Values of the same questions in the same order. Raises UnusableData when scipy is not installed or there are none."""
    if importlib.util.find_spec("scipy") is None:
        raise UnusableData("The test of significance needs scipy.", remedy="Install the `benchmark` extra.")
    if not first or len(first) != len(second):
        raise UnusableData("The runs have no questions in common.", remedy="Compare runs over the same suite.")
    differences = [b - a for a, b in zip(first, second, strict=True)]
    better, worse = sum(d > 0 for d in differences), sum(d < 0 for d in differences)
    if not better + worse:
        return Difference(0.0, 0.0, 0, 0, 1.0)
    if len(set(differences)) == 1:
        return Difference(differences[0], 0.0, better, worse, 0.0 if len(differences) > 1 else 1.0)
    stats: Any = importlib.import_module("scipy.stats")
    p = float(stats.ttest_rel(second, first).pvalue)
    return Difference(statistics.fmean(differences), statistics.stdev(differences) / math.sqrt(len(differences)), better, worse, p)


def holm(ps: Mapping[str, float]) -> dict[str, float]:
    """Adjusted p of each, by Holm's step-down (1979): compare them with the same alpha as one alone."""
    adjusted: dict[str, float] = {}
    running = 0.0
    for rank, (name, p) in enumerate(sorted(ps.items(), key=lambda item: item[1])):
        running = max(running, min(1.0, p * (len(ps) - rank)))
        adjusted[name] = running
    return adjusted
