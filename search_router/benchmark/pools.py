"""Candidates of every question as arrays, so that a set of weights is judged in milliseconds instead of by asking everything again.

A pool holds the best files of the code index under the weights it was asked with. Weights that would have brought in other files are
judged on these alone, so a figure from a pool is an estimate; the one for the shipped weights says how good an estimate.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np
import numpy.typing as npt

from search_router.benchmark.asking import Asked
from search_router.benchmark.gains import DEPTH, Result, discount, is_hit

Floats = npt.NDArray[np.float64]
DISCOUNTS: Final[Floats] = np.array([discount(rank) for rank in range(DEPTH)])


class Pools:
    """Questions by candidates by signals.

    Attributes:
        names: of the signals, in the order of the last axis.
        repositories, languages: of each question.
    """

    def __init__(self, asked: Sequence[Asked], names: Sequence[str]) -> None:
        self.names = tuple(names)
        self.repositories = [a.question.repo for a in asked]
        self.languages = [a.question.language for a in asked]
        most = max(DEPTH, *(len(a.candidates) for a in asked))
        targets = max(len(a.question.targets) for a in asked)
        self._signals = np.zeros((len(asked), most, len(self.names)), np.float32)
        self._damping = np.zeros((len(asked), most), np.float32)
        self._hits = np.zeros((len(asked), targets, most), np.bool_)
        for row, each in enumerate(asked):
            for at, candidate in enumerate(each.candidates):
                self._signals[row, at] = [candidate.signals.get(name, 0.0) for name in self.names]
                self._damping[row, at] = candidate.damping
                file = Result(candidate.path)
                for number, target in enumerate(each.question.targets):
                    self._hits[row, number, at] = is_hit(file, target)
        self._targets = sum(len(a.question.targets) for a in asked)
        self._ideal: Floats = np.array([DISCOUNTS[: len(a.question.targets)].sum() for a in asked])

    def __len__(self) -> int:
        return len(self.repositories)

    def ndcg(self, weights: Mapping[str, float]) -> Floats:
        """NDCG@10 of each question's files, lines not looked at; equal scores in the order of the pool."""
        vector = np.array([weights.get(name, 0.0) for name in self.names], np.float32)
        scores = (self._signals @ vector) * self._damping
        top = np.argsort(-scores, axis=1, kind="stable")[:, :DEPTH]
        hits = np.take_along_axis(self._hits, top[:, None, :], axis=2)
        hits &= np.take_along_axis(scores, top, axis=1)[:, None, :] > 0
        first = hits & (np.cumsum(hits, axis=2) == 1)
        gains: Floats = first.any(axis=1).astype(np.float64)
        return (gains @ DISCOUNTS) / self._ideal

    def reachable(self) -> float:
        """Share of all targets that are in the pools at all."""
        return float(self._hits.any(axis=2).sum()) / self._targets
