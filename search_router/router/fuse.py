"""Weighted reciprocal rank fusion with bonuses in its own currency, on two levels, and a total order.

score(d) = sum over experts e of w_e / (k + rank_e(d))     Cormack, Clarke, Buettcher, SIGIR 2009; in federated search: results merging.

First whole files are fused (an expert's rank of a file is that of its best hit there), because experts point at different places of the
file that they mean; then the places within a file, where those come first on which most kinds of source agree. The list shows the best
place of each file in the order of the files, then the second places, and so on. A commit is a file of its own. A bonus is a fraction of
1 / (k + 1), what one first place of weight 1 is worth.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

from search_router.config.schema import FusionConfig
from search_router.router.identity import Candidate, Ranked
from search_router.schema import ExpertCard, PrecisionClass

MAX_CORROBORATIONS = 3
MAX_RANK = 1 << 30


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
        Every candidate once: the best place of each file by the files' scores, then the second places, and so on; equal scores by best
        rank, then by key, so the order is total.
    """
    unit = 1 / (config.k + 1)
    places: dict[tuple[str, ...], list[tuple[int, float, int, tuple[str, ...], Fused]]] = {}
    for candidate in candidates:
        votes = candidate.votes
        base = rrf_score(votes, weights, config.k)
        bonus, boosts = _bonus(candidate, weights, cards, config, names)
        score = base + bonus * unit
        if candidate.key in damped:
            score *= 1 - config.test_penalty
            boosts = (*boosts, "damped path")
        best = votes[0].rank if len(votes) == 1 else min([v.rank for v in votes if weights[v.expert] > 0] or [v.rank for v in votes])
        agreeing = 1 if len(votes) == 1 else len(independent_kinds(votes, cards, weights))
        entry = (-agreeing if base > 0 else 0, -score, best, candidate.key, Fused(candidate, score, base, boosts))
        places.setdefault(candidate.key[:3], []).append(entry)
    ranked: list[tuple[bool, int, float, int, tuple[str, ...], Fused]] = []
    for group in places.values():
        if len(group) == 1:
            _, minus, best, key, fused = group[0]
            ranked.append((fused.score <= 0, 0, minus, best, key, fused))
            continue
        group.sort()  # keys are unique, so the last member is never compared
        of_file = _file_score([entry[-1] for entry in group], weights, config)
        ranked += [(fused.score <= 0, depth, -of_file, best, key, fused) for depth, (_, _, best, key, fused) in enumerate(group)]
    ranked.sort()
    return [entry[-1] for entry in ranked]


def _bonus(
    candidate: Candidate, weights: Mapping[str, float], cards: Mapping[str, ExpertCard], config: FusionConfig, names: Collection[str]
) -> tuple[float, tuple[str, ...]]:
    """What agreement and being the exact definition earn, in units of a first place, with the words for it."""
    bonus, boosts = 0.0, ()
    if len(candidate.votes) > 1:
        further = min(len(independent_kinds(candidate.votes, cards, weights)) - 1, MAX_CORROBORATIONS)
        if further > 0:
            bonus, boosts = further * config.corroboration_bonus, (f"corroborated x{further}",)
    if names and candidate.definition is not None and is_exact_definition(candidate, names, weights):
        bonus, boosts = bonus + config.definition_bonus, (*boosts, "exact definition")
    return bonus, boosts


def _file_score(places: Sequence[Fused], weights: Mapping[str, float], config: FusionConfig) -> float:
    """The weighted RRF of a whole file, at each expert's best rank in it, with the best bonus and the damping of its places."""
    ranks: dict[str, int] = {}
    for place in places:
        for vote in place.candidate.votes:
            if vote.rank < ranks.get(vote.expert, MAX_RANK):
                ranks[vote.expert] = vote.rank
    base = sum([weights[expert] / (config.k + ranks[expert]) for expert in sorted(ranks)])
    first = places[0]
    factor = 1 - config.test_penalty if "damped path" in first.boosts else 1.0
    return base * factor + max([place.score - place.base * factor for place in places])


def is_exact_definition(candidate: Candidate, names: Collection[str], weights: Mapping[str, float]) -> bool:
    """Whether a weighted expert says that this is the definition of a name in the question."""
    definition = candidate.definition
    if definition is None or not names:
        return False
    named = definition.name.lower() in names or definition.qualified.lower() in names
    return named and any(v.hit.is_definition and weights[v.expert] > 0 for v in candidate.votes)
