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
from search_router.router.identity import Candidate, Ranked, engine_of
from search_router.schema import ExpertCard, PrecisionClass

MAX_CORROBORATIONS = 3
DAMPED = "damped path"
SECTION = 1000
"""More than kinds of source can agree."""


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
        if weights[vote.expert] > 0:
            kinds.setdefault(engine_of(vote, cards), cards[vote.expert].precision_class)
    return {(precision, engine) for engine, precision in kinds.items()}


def fuse_rankings(
    candidates: Sequence[Candidate],
    *,
    weights: Mapping[str, float],
    cards: Mapping[str, ExpertCard],
    config: FusionConfig,
    names: Collection[str] = (),
    damped: Collection[tuple[str, ...]] = (),
    by_place: bool = False,
    sections_first: bool = False,
) -> list[Fused]:
    """Rank the candidates, best first.

    Args:
        weights: expert id to its prior for this request, 0 to 1. An expert of weight 0 adds nothing and corroborates nothing.
        names: lower-cased identifiers of the question; an exact definition of one of them earns the definition bonus.
        damped: keys of candidates in tests, vendored or generated files that the question does not ask for.
        by_place: fuse places alone, whatever their files: for questions whose answers are places, such as who calls what.
        sections_first: among the places of one file those that are sections of a document stand first: others only agree by chance on
            where they cut it. The order of the files is the same.

    Returns:
        Every candidate once: the best place of each file by the files' scores, then the second places, and so on; equal scores by best
        rank, then by key, so the order is total.
    """
    k, unit = config.k, 1 / (config.k + 1)
    files: dict[tuple[str, ...], list[_Entry]] = {}
    for candidate in candidates:
        key, votes = candidate.key, candidate.votes
        if len(votes) == 1 and (candidate.definition is None or not names):  # most are: no agreement, no bonus
            vote = votes[0]
            score = base = weights[vote.expert] / (k + vote.rank)
            agreeing, best, boosts = 1, vote.rank, ()
        else:
            base = rrf_score(votes, weights, k)
            agreeing = len(independent_kinds(votes, cards, weights))
            bonus, boosts = _bonus(candidate, agreeing, weights, config, names)
            score = base + bonus * unit
            best = min([v.rank for v in votes if weights[v.expert] > 0] or [v.rank for v in votes])
        if key in damped:
            score *= 1 - config.test_penalty
            boosts = (*boosts, DAMPED)
        if sections_first and base > 0 and any(_is_section(vote, weights) for vote in votes):
            agreeing += SECTION
        entry = (-agreeing if base > 0 else 0, -score, best, key, Fused(candidate, score, base, boosts))
        file = key if by_place else key[:3]
        if file in files:
            files[file].append(entry)
        else:
            files[file] = [entry]
    ranked: list[tuple[bool, int, float, int, tuple[str, ...], Fused]] = []
    for group in files.values():
        if len(group) == 1:
            _, minus, best, key, fused = group[0]
            ranked.append((minus >= 0, 0, minus, best, key, fused))
            continue
        group.sort()  # keys are unique, so the last member is never compared
        minus = -_file_score([entry[4] for entry in group], weights, config)
        ranked += [(score >= 0, depth, minus, best, key, fused) for depth, (_, score, best, key, fused) in enumerate(group)]
    ranked.sort()
    return [entry[5] for entry in ranked]


_Entry = tuple[int, float, int, tuple[str, ...], Fused]
"""Minus the kinds that agree, minus the score, the best rank, the key: places of one file sort in this order."""


def _is_section(vote: Ranked, weights: Mapping[str, float]) -> bool:
    """Whether an expert that counts read the file as a document and names a part of it."""
    return weights[vote.expert] > 0 and vote.hit.about is not None


def _bonus(
    candidate: Candidate, agreeing: int, weights: Mapping[str, float], config: FusionConfig, names: Collection[str]
) -> tuple[float, tuple[str, ...]]:
    """What agreement and being the exact definition earn, in units of a first place, with the words for it."""
    bonus, boosts = 0.0, ()
    further = min(agreeing - 1, MAX_CORROBORATIONS)
    if further > 0:
        bonus, boosts = further * config.corroboration_bonus, (f"corroborated x{further}",)
    if names and candidate.definition is not None and is_exact_definition(candidate, names, weights):
        bonus, boosts = bonus + config.definition_bonus, (*boosts, "exact definition")
    return bonus, boosts


def _file_score(places: Sequence[Fused], weights: Mapping[str, float], config: FusionConfig) -> float:
    """The weighted RRF of a whole file, at each expert's best rank in it, with the best bonus and the damping of its places."""
    ranks: dict[str, int] = {}
    best = 0.0
    factor = 1 - config.test_penalty if DAMPED in places[0].boosts else 1.0
    for place in places:
        best = max(best, place.score - place.base * factor)
        for vote in place.candidate.votes:
            expert, rank = vote.expert, vote.rank
            if expert not in ranks or rank < ranks[expert]:
                ranks[expert] = rank
    k = config.k
    return sum([weights[expert] / (k + ranks[expert]) for expert in sorted(ranks)]) * factor + best


def is_exact_definition(candidate: Candidate, names: Collection[str], weights: Mapping[str, float]) -> bool:
    """Whether a weighted expert says that this is the definition of a name in the question."""
    definition = candidate.definition
    if definition is None or not names:
        return False
    named = definition.name.lower() in names or definition.qualified.lower() in names
    return named and any(v.hit.is_definition and weights[v.expert] > 0 for v in candidate.votes)
