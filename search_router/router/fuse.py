"""Weighted reciprocal rank fusion with bonuses in its own currency, and a total order.

score(d) = sum over experts e of w_e / (k + rank_e(d))     Cormack, Clarke, Buettcher, SIGIR 2009; in federated search: results merging.
A bonus is a fraction of 1 / (k + 1), what one first place of weight 1 is worth, so it can lift an item by places, never swamp the fusion.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

from search_router.config.schema import FusionConfig
from search_router.router.identity import Candidate, Ranked
from search_router.schema import ExpertCard, PrecisionClass

MAX_CORROBORATIONS = 3


class Fused(NamedTuple):
    """A candidate with its fused score. `base` is the plain weighted RRF sum, before bonuses and penalties."""

    candidate: Candidate
    score: float
    base: float
    boosts: tuple[str, ...]


def rrf_score(votes: Sequence[Ranked], weights: Mapping[str, float], k: int) -> float:
    """The plain weighted RRF sum. Votes come and are summed in expert order, so the float result is always the same one."""
    if len(votes) == 1:
        return weights[votes[0].expert] / (k + votes[0].rank)
    return sum([weights[v.expert] / (k + v.rank) for v in votes])


def independent_kinds(
    votes: Sequence[Ranked], cards: Mapping[str, ExpertCard], weights: Mapping[str, float]
) -> set[tuple[PrecisionClass, str]]:
    """The kinds of source behind an item: (precision class, engine) of each expert with a weight. One engine counts once."""
    kinds: dict[str, PrecisionClass] = {}
    for vote in votes:
        card = cards[vote.expert]
        if weights[vote.expert] > 0:
            kinds.setdefault(card.engine, card.precision_class)
    return {(precision, engine) for engine, precision in kinds.items()}


def fuse_rankings(
    candidates: Sequence[Candidate],
    *,
    weights: Mapping[str, float],
    cards: Mapping[str, ExpertCard],
    config: FusionConfig,
    names: Collection[str] = (),
    damped: Collection[tuple[str, ...]] = (),
) -> list[Fused]:
    """Rank the candidates, best first.

    Args:
        weights: expert id to its prior for this request, 0 to 1. An expert of weight 0 adds nothing and corroborates nothing.
        names: lower-cased identifiers of the question; an exact definition of one of them earns the definition bonus.
        damped: keys of candidates in tests, vendored or generated files that the question does not ask for.

    Returns:
        Every candidate once, sorted by score; equal scores by best rank, then by key, so the order is total.
    """
    unit = 1 / (config.k + 1)
    ranked: list[tuple[float, int, tuple[str, ...], Fused]] = []
    for candidate in candidates:
        votes = candidate.votes
        base = rrf_score(votes, weights, config.k)
        score, boosts = base, ()
        if len(votes) > 1:
            further = min(len(independent_kinds(votes, cards, weights)) - 1, MAX_CORROBORATIONS)
            if further > 0:
                score += further * config.corroboration_bonus * unit
                boosts = (f"corroborated x{further}",)
        if base > 0 and names and candidate.definition is not None and is_exact_definition(candidate, names, weights):
            score += config.definition_bonus * unit
            boosts = (*boosts, "exact definition")
        if candidate.key in damped:
            score *= 1 - config.test_penalty
            boosts = (*boosts, "damped path")
        best = votes[0].rank if len(votes) == 1 else min([v.rank for v in votes])
        ranked.append((-score, best, candidate.key, Fused(candidate, score, base, boosts)))
    ranked.sort()  # keys are unique, so the last member is never compared
    return [fused for _, _, _, fused in ranked]


def is_exact_definition(candidate: Candidate, names: Collection[str], weights: Mapping[str, float]) -> bool:
    """Whether a weighted expert says that this is the definition of a name in the question."""
    definition = candidate.definition
    if definition is None or not names:
        return False
    named = definition.name.lower() in names or definition.qualified.lower() in names
    return named and any(v.hit.is_definition and weights[v.expert] > 0 for v in candidate.votes)
