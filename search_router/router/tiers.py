"""Tier, confidence and nuance of one item: how far to trust it, from which kinds of source agree. Pure.

Confidence never looks at the fused score: it comes from agreement, exactness and freshness alone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from search_router.router.identity import Candidate, Ranked, engine_of
from search_router.schema import Confidence, ExpertCard, PrecisionClass, Scores, Tier

PRECISION = {
    PrecisionClass.TYPED: 1.0,
    PrecisionClass.SYNTACTIC: 0.8,
    PrecisionClass.HYBRID: 0.6,
    PrecisionClass.SEMANTIC: 0.4,
    PrecisionClass.LEXICAL: 0.3,
}
"""Order of the precision classes, typed > syntactic > hybrid > semantic > lexical, as a sub-score; history and docs stand outside it."""

DEFINERS = frozenset({PrecisionClass.TYPED, PrecisionClass.SYNTACTIC})
STALE = "stale-index"


@dataclass(frozen=True, slots=True)
class Trust:
    tier: Tier
    confidence: Confidence
    nuance: str


def sub_scores(candidate: Candidate, cards: Mapping[str, ExpertCard], rrf: float, scope: float | None) -> Scores:
    """The sub-scores that somebody can tell; the others stay None."""
    precisions = [PRECISION[p] for v in candidate.votes if (p := cards[v.expert].precision_class) in PRECISION]
    return Scores(rrf=round(rrf, 6), precision=max(precisions, default=None), freshness=freshness(candidate.votes, cards), scope=scope)


def freshness(votes: Sequence[Ranked], cards: Mapping[str, ExpertCard]) -> float | None:
    """Share of the sources that can tell whose content is what the file holds now; None when none can tell."""
    told = [
        0.0 if vote.stale else 1.0
        for vote in votes
        if vote.hit.content_hash is not None or cards[vote.expert].freshness.startswith("live") or vote.stale
    ]
    return round(sum(told) / len(told), 3) if told else None


def judge_trust(candidate: Candidate, cards: Mapping[str, ExpertCard], scores: Scores, flags: Sequence[str]) -> Trust:
    """Tier, confidence and one plain sentence."""
    votes = candidate.votes
    names = " and ".join(v.expert for v in votes)
    tier = choose_tier(candidate, cards)
    independent = len({engine_of(v, cards) for v in votes})
    exact = any(v.hit.is_exact for v in votes)
    confidence = _confidence(tier, independent, exact)
    nuance = _sentence(tier, names, votes)
    if tier not in (Tier.HISTORY, Tier.DOCS) and scores.freshness is None:
        nuance += " Nobody could tell how fresh it is."
        confidence = _lower(confidence)
    if STALE in flags:
        nuance += " The file has changed since an index saw it: read it before relying on it."
        confidence = Confidence.LOW
    if "shallow-boundary" in flags:
        nuance += " It is the edge of a shallow clone and may only seem to add this."
        confidence = Confidence.LOW
    return Trust(tier, confidence, nuance)


def choose_tier(candidate: Candidate, cards: Mapping[str, ExpertCard]) -> Tier:
    """The strongest tier whose condition holds. Two experts on one engine are one source."""
    votes = candidate.votes
    classes = {cards[v.expert].precision_class for v in votes}
    if candidate.key[0] == "commit":
        return Tier.HISTORY
    if candidate.key[0] == "document" or classes == {PrecisionClass.DOCS} or all(v.hit.about is not None for v in votes):
        return Tier.DOCS
    typed_engines = {engine_of(v, cards) for v in votes if cards[v.expert].precision_class is PrecisionClass.TYPED}
    if len(typed_engines) >= 2:
        return Tier.TYPED_GRAPH_CONFIRMED
    engines = {engine_of(v, cards) for v in votes}
    defined = {engine_of(v, cards) for v in votes if v.hit.is_definition and cards[v.expert].precision_class in DEFINERS}
    if defined and len(engines) > 1:
        return Tier.SYMBOL_CONFIRMED
    if len(engines) > 1:
        return Tier.HYBRID_CONFIRMED
    return Tier.LEXICAL_EXACT if any(v.hit.is_exact for v in votes) else Tier.SEMANTIC_ONLY


def _confidence(tier: Tier, independent: int, exact: bool) -> Confidence:
    match tier:
        case Tier.TYPED_GRAPH_CONFIRMED:
            return Confidence.HIGH
        case Tier.SYMBOL_CONFIRMED:
            return Confidence.HIGH if exact or independent > 2 else Confidence.MEDIUM
        case Tier.HYBRID_CONFIRMED:
            return Confidence.HIGH if independent > 2 else Confidence.MEDIUM
        case Tier.LEXICAL_EXACT:
            return Confidence.MEDIUM
        case Tier.HISTORY | Tier.DOCS:
            return Confidence.HIGH if independent > 1 else Confidence.MEDIUM if exact else Confidence.LOW
        case Tier.SEMANTIC_ONLY:
            return Confidence.LOW


def _lower(confidence: Confidence) -> Confidence:
    return Confidence.MEDIUM if confidence is Confidence.HIGH else Confidence.LOW


def _sentence(tier: Tier, names: str, votes: Sequence[Ranked]) -> str:
    match tier:
        case Tier.TYPED_GRAPH_CONFIRMED:
            return f"Typed engines agree: {names}."
        case Tier.SYMBOL_CONFIRMED:
            return f"A definition; {names} agree."
        case Tier.HYBRID_CONFIRMED:
            return f"{names} agree on this place."
        case Tier.LEXICAL_EXACT:
            what = "defines the name" if any(v.hit.is_definition for v in votes) else "has the exact text"
            return f"It {what}; only {names} says so."
        case Tier.SEMANTIC_ONLY:
            return f"Matched by words or meaning by {names} alone: verify."
        case Tier.DOCS:
            return f"Documentation, from {names}."
        case Tier.HISTORY:
            how = "its diff touches the term" if any(v.hit.is_exact for v in votes) else "its message or paths match"
            return f"A commit, from {names}: {how}."
