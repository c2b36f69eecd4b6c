"""Priors from what was used: an off-policy estimate of other weights over logged answers, and whether the difference is more than chance.

Each answer of which something was used is ranked again by weighted RRF with other weights. A used item counts its reward by the inverse of
the chance that it was looked at, (1/position)**ETA, clipped (Joachims, Swaminathan, Schnabel, WSDM 2017), and a ranking is worth the sum of
that over log2(1 + new position); values are normalised by the weights themselves (Swaminathan and Joachims, NIPS 2015). Weights are fitted
on some sessions and valued on others; sessions are what is resampled and swapped, and none counts more than a share of all. Pure.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from search_router.router.enrich.logged import Used

ETA: Final = 1.0
LEAST_PROPENSITY: Final = 0.1
MIN_QUESTIONS: Final = 50
MIN_SESSIONS: Final = 8
SESSION_SHARE: Final = 0.1
FOLDS: Final = 5
RESAMPLES: Final = 2000
ALPHA: Final = 0.05
FACTORS: Final = (0.5, 0.67, 0.8, 1.0, 1.25, 1.5, 2.0)
"""What one run may do to a prior; the next run starts from there."""
ROUNDS: Final = 2
MAX_QUESTIONS: Final = 20_000
MAX_ITEMS: Final = 50
SEED: Final = 20260
DISCOUNTS: Final = np.array([1 / math.log2(1 + place) for place in range(1, MAX_ITEMS + 1)])
"""Of a place, 1-based: the discount of DCG (Järvelin and Kekäläinen 2002)."""

Floats = NDArray[np.float64]
Weights = dict[str, int]


@dataclass(frozen=True, slots=True)
class ClassTuning:
    """What became of one class: priors per mille before and after (the same where nothing changes) and why.

    `gain` is the expected change of the mean discounted position of what is used, out of fold, with its 95 % interval; `p` of the paired
    test is corrected for the number of classes. `effective` is Kish's effective number of questions under the propensities.
    """

    task_class: str
    questions: int
    sessions: int
    before: Weights
    after: Weights
    reason: str
    gain: float | None = None
    low: float | None = None
    high: float | None = None
    p: float | None = None
    effective: float | None = None

    @property
    def changed(self) -> bool:
        return self.after != self.before


@dataclass(frozen=True, slots=True)
class _Matrix:
    """A class's questions as arrays: 1/(k + rank) of each (question, item, expert), what each used item counts, and whose it is."""

    experts: tuple[str, ...]
    votes: Floats
    worth: Floats
    there: NDArray[np.bool_]
    session: NDArray[np.int64]
    sessions: tuple[str, ...]


def tune(used: Sequence[Used], priors_pm: Mapping[str, Weights], k: int, least_pm: int) -> tuple[ClassTuning, ...]:
    """Every class of `priors_pm` (class to expert to prior per mille), sorted. `least_pm` is the gate's least: nobody falls below it."""
    seen = [each for each in used if any(each.rewards[:MAX_ITEMS])]
    of_class = {name: [each for each in seen if each.task_class == name][-MAX_QUESTIONS:] for name in priors_pm}
    enough = [name for name, answers in of_class.items() if _lack(answers, priors_pm[name], least_pm) is None]
    return tuple(
        _tune_class(name, of_class[name], dict(priors), k, least_pm, max(1, len(enough))) for name, priors in sorted(priors_pm.items())
    )


def _lack(answers: Sequence[Used], priors: Weights, least_pm: int) -> str | None:
    """What is missing to say anything of a class; None when nothing is."""
    sessions = len({each.session for each in answers})
    if sum(prior >= least_pm for prior in priors.values()) < 2:
        return "fewer than two experts have a prior"
    if len(answers) < MIN_QUESTIONS or sessions < MIN_SESSIONS:
        return f"too little data: {len(answers)} questions of {sessions} sessions, and {MIN_QUESTIONS} of {MIN_SESSIONS} are needed"
    return None


def _tune_class(name: str, answers: Sequence[Used], priors: Weights, k: int, least_pm: int, tests: int) -> ClassTuning:
    count = (len(answers), len({each.session for each in answers}))
    lack = _lack(answers, priors, least_pm)
    if lack is not None:
        return ClassTuning(name, *count, priors, priors, lack)
    data = _matrix(answers, tuple(sorted(n for n, prior in priors.items() if prior >= least_pm)), k)
    everybody = np.arange(len(answers))
    fold = _fold_of(data.sessions)[data.session]
    differences = np.zeros(len(answers))
    for number in range(FOLDS):
        fitted = _fit(data, everybody[fold != number], priors, least_pm)
        apart = everybody[fold == number]
        differences[apart] = _values(data, apart, fitted) - _values(data, apart, priors)
    counts = data.worth.sum(axis=1)
    caps = session_weights(_by_session(data, counts))
    change, norm = _by_session(data, differences) * caps, _by_session(data, counts) * caps
    gain, (low, high), p = float(change.sum() / norm.sum()), _interval(change, norm), min(1.0, _sign_flip(change) * tests)
    figures = {"gain": gain, "low": low, "high": high, "p": p, "effective": float(counts.sum() ** 2 / (counts**2).sum())}
    after = _fit(data, everybody, priors, least_pm)
    if after == priors:
        return ClassTuning(name, *count, priors, priors, "no other weights are better", **figures)
    if low <= 0 or p > ALPHA:
        return ClassTuning(name, *count, priors, priors, "the gain may be chance", **figures)
    return ClassTuning(name, *count, priors, after, "better on sessions that it was not fitted on", **figures)


def session_weights(totals: Floats) -> Floats:
    """A factor for each session, so that none counts more than SESSION_SHARE of all; with too few sessions for that, all count the same."""
    share = max(SESSION_SHARE, 1 / len(totals))
    low, high = 0.0, float(totals.max())
    for _ in range(60):  # the largest cap c with c <= share * sum(min(total, c))
        cap = (low + high) / 2
        if cap <= share * float(np.minimum(totals, cap).sum()) + 1e-12:
            low = cap
        else:
            high = cap
    cap = low if low > 1e-9 else float(totals.min())
    return np.minimum(1.0, cap / np.maximum(totals, 1e-12))


def moved(priors: Weights, factors: Mapping[str, float], least_pm: int) -> Weights:
    """The priors times their factors, scaled so that none is above 1000, and none that the gate lets through below its least prior."""
    raised = {name: prior * factors.get(name, 1.0) for name, prior in priors.items()}
    scale = 1000 / max(1000.0, *raised.values())
    lowest = max(1, least_pm)
    return {name: priors[name] if priors[name] < least_pm else max(lowest, round(value * scale)) for name, value in raised.items()}


def _fit(data: _Matrix, rows: NDArray[np.int64], priors: Weights, least_pm: int) -> Weights:
    """The best weights by coordinate ascent over FACTORS; a change must be better, so ties stay with the priors."""
    part = _Matrix(data.experts, data.votes[rows], data.worth[rows], data.there[rows], data.session[rows], data.sessions)
    totals = _by_session(part, part.worth.sum(axis=1))
    present = totals > 0
    factor = np.zeros(len(totals))
    factor[present] = session_weights(totals[present])
    weight = factor[part.session]
    rows = np.arange(len(rows))
    chosen = dict.fromkeys(data.experts, 1.0)
    best = float((_values(part, rows, priors) * weight).sum())
    for _ in range(ROUNDS):
        for name in data.experts:
            for each in FACTORS:
                tried = chosen | {name: each}
                value = float((_values(part, rows, moved(priors, tried, least_pm)) * weight).sum())
                if value > best * (1 + 1e-9):
                    best, chosen = value, tried
    return moved(priors, chosen, least_pm) if any(each != 1.0 for each in chosen.values()) else dict(priors)


def _values(data: _Matrix, rows: NDArray[np.int64], weights: Weights) -> Floats:
    """What each question's ranking is worth under these weights; equal scores stay in the order of the page."""
    scores: Floats = data.votes[rows] @ np.array([float(weights[name]) for name in data.experts])
    minus: Floats = np.where(data.there[rows], np.negative(scores), 1.0)
    order = np.argsort(minus, axis=1, kind="stable")
    worth: Floats = np.take_along_axis(data.worth[rows], order, axis=1)
    values: Floats = worth @ DISCOUNTS[: worth.shape[1]]
    return values


def _matrix(answers: Sequence[Used], experts: tuple[str, ...], k: int) -> _Matrix:
    items = min(MAX_ITEMS, max(len(each.sources) for each in answers))
    column = {name: number for number, name in enumerate(experts)}
    votes, worth = np.zeros((len(answers), items, len(experts))), np.zeros((len(answers), items))
    there = np.zeros((len(answers), items), dtype=np.bool_)
    names = {name: number for number, name in enumerate(dict.fromkeys(each.session for each in answers))}
    for row, each in enumerate(answers):
        for place, (sources, reward) in enumerate(zip(each.sources[:items], each.rewards[:items], strict=True)):
            there[row, place] = True
            chance = 1.0 if each.judged else max(LEAST_PROPENSITY, (1 / (place + 1)) ** ETA)
            worth[row, place] = reward / chance
            for expert, rank in sources:
                if expert in column:
                    votes[row, place, column[expert]] = 1 / (k + rank)
    return _Matrix(experts, votes, worth, there, np.array([names[each.session] for each in answers], dtype=np.int64), tuple(names))


def _fold_of(sessions: Sequence[str]) -> NDArray[np.int64]:
    """Each session's fold: in the order of their hashes, so that it depends on nothing else, and folds are of one size."""
    order = sorted(range(len(sessions)), key=lambda n: hashlib.sha256(sessions[n].encode("utf-8", "surrogatepass")).digest())
    folds = np.zeros(len(sessions), dtype=np.int64)
    for place, number in enumerate(order):
        folds[number] = place % FOLDS
    return folds


def _by_session(data: _Matrix, values: Floats) -> Floats:
    sums: Floats = np.bincount(data.session, weights=values, minlength=len(data.sessions)).astype(np.float64)
    return sums


def _interval(change: Floats, norm: Floats) -> tuple[float, float]:
    """The 95 % interval of the gain: percentile bootstrap over sessions (Efron 1979), the same every time."""
    chance: Any = np.random.default_rng(SEED)
    drawn: NDArray[np.int64] = chance.integers(0, len(change), size=(RESAMPLES, len(change)))
    gains: Floats = change[drawn].sum(axis=1) / norm[drawn].sum(axis=1)
    return float(np.quantile(gains, 0.025)), float(np.quantile(gains, 0.975))


def _sign_flip(change: Floats) -> float:
    """Two-sided p of the paired randomisation test over sessions (Fisher): how often swapped signs give as large a sum."""
    chance: Any = np.random.default_rng(SEED + 1)
    signs: Floats = chance.choice(np.array([-1.0, 1.0]), size=(RESAMPLES, len(change)))
    as_large = int((np.abs(signs @ change) >= abs(float(change.sum())) - 1e-12).sum())
    return (1 + as_large) / (1 + RESAMPLES)
