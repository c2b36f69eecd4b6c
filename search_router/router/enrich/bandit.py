"""The session bandit: what a session told of its answers moves the weights of its experts, within bounds and in the open.

Discounted Thompson sampling (Thompson 1933; Raj and Kalyani 2017, arXiv:1707.09727) with a reshaped posterior (Chapelle and Li 2011, §5)
over each expert's share in the evidence that was used. A prior of the configuration is a weight and no rate, so the Beta's mean is that
prior's part of the sum over the asked experts: the share it gets of an item that everybody found at one rank. A share as expected moves
nothing; shares are counted by the configured priors, never by drawn weights, so that luck does not feed itself. Everything here is pure.
See docs/decisions/0038.
"""

from __future__ import annotations

import hashlib
import math
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from search_router.config.schema import BanditConfig

LEAST_SHAPE: Final = 0.01
"""Neither parameter of a Beta is smaller; at 0 it has no density."""
SEED_DIGITS: Final = 16
MAX_STEPS: Final = 200
"""Older outcomes count nothing; at a discount of 0.98 this one would count 2 %."""

Items = Mapping[str, Sequence[tuple[str, int]]]
"""Evidence id to its sources: (expert, 1-based rank)."""


class Observation(NamedTuple):
    """What one outcome says of one expert that was asked: the share it earned and the share it failed to, in per mille of one item."""

    expert: str
    gained_pm: int
    lost_pm: int


@dataclass(frozen=True, slots=True)
class Draw:
    """Weights that were drawn for one request, with everything that the draw was made from but the outcomes themselves.

    `outcomes` is how many the session had told of this class. Replaying `weights_pm` gives the same answer from the same hits.
    """

    seed: str
    task_class: str
    outcomes: int
    priors_pm: Mapping[str, int]
    weights_pm: Mapping[str, int]

    @classmethod
    def read(cls, predicate: Mapping[str, Any]) -> Draw | None:
        """The draw that a receipt tells of. Raises KeyError and TypeError when it is not in this form."""
        told: Mapping[str, Any] | None = predicate.get("bandit")
        return None if told is None else cls(told["seed"], told["task_class"], told["outcomes"], told["priors_pm"], told["weights_pm"])


def observe(items: Items, evidence: Sequence[str], reward_pm: int, priors_pm: Mapping[str, int]) -> tuple[Observation, ...]:
    """What an outcome says of each asked expert, on the average of the items that were used.

    For a reward r > 0 an expert whose share in an item is x gains r x and loses r (1 - x); a failure costs x those who put the item there.
    A share is the expert's part of the sum of prior / log2(1 + rank), what a reader of its own list would have had (the discount of DCG).
    An outcome without evidence says nothing of anybody.
    """
    gained, lost = dict.fromkeys(priors_pm, 0.0), dict.fromkeys(priors_pm, 0.0)
    for each in evidence:
        parts = {expert: priors_pm[expert] / math.log2(1 + rank) for expert, rank in items[each] if expert in priors_pm}
        total = sum(parts.values())
        if total <= 0:
            continue
        for expert in priors_pm:
            share = parts.get(expert, 0.0) / total
            gained[expert] += reward_pm * share
            lost[expert] += reward_pm * (1 - share) if reward_pm else 1000 * share
    count = max(1, len(evidence))
    found = (Observation(expert, round(gained[expert] / count), round(lost[expert] / count)) for expert in sorted(priors_pm))
    return tuple(each for each in found if each.gained_pm or each.lost_pm)


def posterior(priors_pm: Mapping[str, int], steps: Sequence[Sequence[Observation]], rules: BanditConfig) -> dict[str, tuple[float, float]]:
    """(alpha, beta) of each expert's share, after the outcomes in `steps`, newest first. Empty when no expert has a prior."""
    total = sum(priors_pm.values())
    if total <= 0:
        return {}
    shapes = {name: [rules.strength * prior / total, rules.strength * (1 - prior / total)] for name, prior in priors_pm.items()}
    for age, step in enumerate(steps[:MAX_STEPS]):
        worth = rules.discount**age / 1000
        for each in step:
            if each.expert in shapes:
                shapes[each.expert][0] += worth * each.gained_pm
                shapes[each.expert][1] += worth * each.lost_pm
    return {name: (max(LEAST_SHAPE, alpha), max(LEAST_SHAPE, beta)) for name, (alpha, beta) in shapes.items()}


def draw_weights(priors_pm: Mapping[str, int], steps: Sequence[Sequence[Observation]], rules: BanditConfig, seed: str) -> dict[str, int]:
    """A weight for each expert, per mille: its prior, times what was drawn in proportion to what the prior expects, within floor and cap.

    Who has a prior never gets 0. Without outcomes, and for one expert alone, the priors themselves.
    """
    if not steps or len(priors_pm) < 2:
        return dict(priors_pm)
    total = sum(priors_pm.values())
    weights = dict(priors_pm)
    for name, (alpha, beta) in posterior(priors_pm, steps, rules).items():
        prior = priors_pm[name]
        if prior:
            share = CounterRandom(f"{seed}/{name}").betavariate(alpha / rules.exploration, beta / rules.exploration)
            weights[name] = bounded(share * total, prior, rules)
    return weights


def bounded(weight: float, prior_pm: int, rules: BanditConfig) -> int:
    """The weight as whole per mille between floor and cap of its prior, and never 0."""
    lowest = max(1, math.ceil(prior_pm * rules.floor - 1e-9))
    return max(lowest, min(round(weight), math.floor(prior_pm * rules.cap + 1e-9)))


def seed_of(session: str, task_class: str, outcomes: int) -> str:
    """The seed of a session's draw for a class of questions; it changes with each outcome, so that a question repeated before is cached."""
    return hashlib.sha256(f"{session}\0{task_class}\0{outcomes}".encode("utf-8", "surrogatepass")).hexdigest()[:SEED_DIGITS]


class CounterRandom(random.Random):
    """Numbers that follow from a name and a counter alone (SHA-256), with the distributions of the standard library on top."""

    def __init__(self, name: str) -> None:
        super().__init__(0)
        self._name = name
        self._count = 0

    def random(self) -> float:
        """The next number in [0, 1), with 53 random bits."""
        self._count += 1
        digest = hashlib.sha256(f"{self._name}/{self._count}".encode("utf-8", "surrogatepass")).digest()
        return (int.from_bytes(digest[:8], "big") >> 11) * 2.0**-53
