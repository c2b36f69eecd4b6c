"""One order of documents out of what the retrievers found: fused by position, weighed by time, successors before what they replace. Pure.

Reciprocal rank fusion as in Cormack, Clarke, Buettcher, SIGIR 2009, over documents: each stands in a retriever's list at its best chunk.
"""

from __future__ import annotations

import datetime
from collections.abc import Callable, Mapping, Sequence
from operator import itemgetter
from typing import Final, NamedTuple

from search_router.adapters.local.code_words import count_words
from search_router.adapters.local.knowledge_document import Document
from search_router.adapters.local.knowledge_retrieve import Part, Retrieved
from search_router.adapters.local.knowledge_time import DocumentStatus, Validity, last_successor, recency
from search_router.config.experts import KnowledgeWeights

RRF_K: Final = 60
LIFTED_FROM: Final = 0.6
"""A living document is lifted above a note when it has at least this part of what the note has of the question."""


class Rank(NamedTuple):
    """How one retriever found a document: its place from 1 in a list of so many, and its raw score."""

    retriever: str
    place: int
    of: int
    raw: float

    def __str__(self) -> str:
        return f"{self.retriever} #{self.place} of {self.of}: {self.raw:.4g}"


class Found(NamedTuple):
    """One document with its best section (None: it was found as a whole), its fused score and how each retriever ranked it."""

    part: Part
    number: int
    document: Document
    chunk: int | None
    score: float
    ranks: tuple[Rank, ...]


class Judged(NamedTuple):
    """A document in its place, with its status and the share of the question that it covers."""

    found: Found
    status: DocumentStatus
    coverage: float


def fuse_documents(
    parts: Sequence[Part],
    retrieved: Sequence[Retrieved],
    weights: KnowledgeWeights,
    factor_of: Callable[[Part, Document], float] = lambda part, document: 1.0,
) -> list[Found]:
    """Every document that any retriever found, best first; ties by project and path. A chunk beats the whole of the same document, and
    the chunk of an earlier retriever that of a later one: sections are told apart best by their words.

    `factor_of` weighs each document's score; see `time_factor`.
    """
    weight_of = {"lexical": weights.lexical, "semantic": weights.semantic, "document": weights.document}
    scores: dict[tuple[int, int], float] = {}
    best: dict[tuple[int, int], int | None] = {}
    ranks: dict[tuple[int, int], list[Rank]] = {}
    for result in sorted(retrieved, key=lambda r: r.own):
        name, count = result.stage.stage, len(result.places)
        weight = weight_of.get(name, 1.0)
        for rank, (place, raw) in enumerate(result.places, start=1):
            key = place[:2]
            if key not in scores and raw < result.own:
                continue
            scores[key] = scores.get(key, 0.0) + weight / (RRF_K + rank)
            ranks.setdefault(key, []).append(Rank(name, rank, count, raw))
            if best.get(key) is None:
                best[key] = place.chunk
    found: list[tuple[float, str, str, Found]] = []
    for key, score in scores.items():
        part, number = parts[key[0]], key[1]
        document = part.rows[number]
        weighed = score * factor_of(part, document)
        found.append((-weighed, part.project, document.path, Found(part, number, document, best[key], weighed, tuple(ranks[key]))))
    found.sort(key=itemgetter(0, 1, 2))
    return [one for *_, one in found]


def time_factor(validity: Validity, status: DocumentStatus, today: datetime.date, weights: KnowledgeWeights, half_life_days: int) -> float:
    """What a document's score is multiplied with. Recent documents gain at most `weights.temporal` of it, and with weight 0 their dates
    count for exactly nothing; what is superseded, historical or expired loses a part: it stays findable, behind what is in force."""
    factor = 1.0
    if weights.temporal and validity.content_date is not None:
        factor += weights.temporal * recency(validity.content_date, today, half_life_days)
    return factor * (1 - weights.historical_damping) if status in _OLD else factor


_OLD: Final = frozenset({DocumentStatus.SUPERSEDED, DocumentStatus.HISTORICAL, DocumentStatus.EXPIRED})


def find_yields(judged: Sequence[Judged], successors: Mapping[str, Mapping[str, str]], *, asks_for_a_day: bool) -> list[tuple[int, int]]:
    """Pairs (a document, one that must stand before it) as positions in `judged`: what is superseded yields to its successor when that
    matches too; a dated note yields to the current living document about the same thing, unless the question names a day.

    `successors` are those of each project.
    """
    at = {(j.found.part.project, j.found.document.path): position for position, j in enumerate(judged)}
    pairs: list[tuple[int, int]] = []
    for position, each in enumerate(judged):
        project, path = each.found.part.project, each.found.document.path
        replaced = successors.get(project)
        new = last_successor(path, replaced) if replaced else None
        if new is not None and (project, new) in at:
            pairs.append((position, at[project, new]))
    living = [] if asks_for_a_day else [(p, j) for p, j in enumerate(judged) if _is_living(j)]
    for lifted, one in living:
        for position, note in enumerate(judged):
            if position != lifted and note.found.document.validity.dated and _is_about(one, note) and _matches_as_well(one, note):
                pairs.append((position, lifted))
    return pairs


def move_before(count: int, pairs: Sequence[tuple[int, int]]) -> list[int]:
    """An order of positions 0 to count - 1 in which each pair's second stands before its first; all else keeps its order.

    Pairs that contradict each other are left as they stand.
    """
    if not pairs:
        return list(range(count))
    before: dict[int, list[int]] = {}
    for later, earlier in pairs:
        before.setdefault(later, []).append(earlier)
    order: list[int] = []
    placed: set[int] = set()

    def place(position: int, above: frozenset[int]) -> None:
        if position in placed or position in above:
            return
        for earlier in sorted(before.get(position, ())):
            place(earlier, above | {position})
        placed.add(position)
        order.append(position)

    for position in range(count):
        place(position, frozenset())
    return order


def _is_living(judged: Judged) -> bool:
    return judged.found.document.validity.component is not None and judged.status is DocumentStatus.CURRENT


def _is_about(living: Judged, note: Judged) -> bool:
    """Whether a note speaks of what a living document is about: the same component, a tag, or all of its words."""
    component = living.found.document.validity.component or ""
    document = note.found.document
    if document.validity.component == component or component in document.tags:
        return True
    words = set(count_words(component))
    return bool(words) and words.issubset(document.terms.words)


def _matches_as_well(living: Judged, note: Judged) -> bool:
    return living.found.part.project == note.found.part.project and living.coverage >= LIFTED_FROM * note.coverage
