"""Ways to find documents behind one protocol: by the words of their sections, and by what they are about as a whole; by meaning stands in
`knowledge_meaning`.

Each is called for every question. One that is switched off is called too, gives nothing and says why. What they may look at comes in
as a `Space`: nothing outside of it can be in a result.
"""

from __future__ import annotations

import functools
import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple, Protocol

import numpy as np

from search_router.adapters.local.code_segment import Floats, Ints, Postings, Segment
from search_router.adapters.local.code_words import count_words
from search_router.adapters.local.knowledge_document import Document
from search_router.adapters.local.knowledge_shelf import Mask
from search_router.schema import StageFacts

WHOLE_TEXT: Final = 0.5
"""What the BM25 of a whole document, as a part of the best one's, counts beside the share of the question that its title has."""
K1: Final = 1.2
B: Final = 0.75
HEADING: Final = 0.7
"""So much more a section's score is worth whose heading has all of the question's information; see docs/decisions/0051."""
DEPTH: Final = 200
"""So many chunks, or documents, of one retriever go into the fusion."""


@dataclass(frozen=True, slots=True)
class Part:
    """One segment of one project, the postings of whole texts, the documents in it, their numbers by path, and which may be found."""

    project: str
    segment: Segment
    whole: Postings
    rows: tuple[Document, ...]
    numbers: Mapping[str, int]
    mask: Mask


@dataclass(frozen=True, slots=True)
class Space:
    """Everything that one question may look at."""

    parts: tuple[Part, ...]

    @property
    def chunk_count(self) -> int:
        return sum(len(part.segment.owner) for part in self.parts)

    @property
    def document_count(self) -> int:
        return sum(int((part.mask & part.segment.alive).sum()) for part in self.parts)


class Query(NamedTuple):
    """The question as it stands, its index words with their weights, and what each is of the question's information (`information_of`)."""

    text: str
    words: Mapping[str, float]
    information: Mapping[str, float]


class Place(NamedTuple):
    """A document (number of the part, number in it) and one of its chunks; None where the whole document was found."""

    part: int
    document: int
    chunk: int | None


class Retrieved(NamedTuple):
    """Places with raw scores, best first, each document at most once, and how the retriever fared.

    `own` is the least raw score with which a document is in the answer that no other retriever found.
    """

    places: tuple[tuple[Place, float], ...]
    stage: StageFacts
    own: float = 0.0


class Retriever(Protocol):
    """One way to find documents."""

    @property
    def name(self) -> str: ...

    def retrieve(self, query: Query, space: Space) -> Retrieved:
        """Blocks. Never raises for a question or a space of any kind."""
        ...


_Placed = tuple[float, str, str, int, Place, float]
"""What sorts a place (its order, less is better; project; path; chunk), the place, and its raw score."""


class SectionWords:
    """BM25 (Robertson, Zaragoza 2009) over chunks, ordered by it times the share of the question's information that the chunk has: a
    chunk that repeats one rare word does not stand before one that has them all. A document stands at its best chunk."""

    name = "lexical"

    def retrieve(self, query: Query, space: Space) -> Retrieved:
        started = time.perf_counter()
        fields = [p.segment.body for p in space.parts]
        scores = bm25(space, fields, [p.segment.chunk_words for p in space.parts], query.words, by_chunk=True)
        placed: list[_Placed] = []
        for at, (part, score) in enumerate(zip(space.parts, scores, strict=True)):
            order = score * shares(part.segment.body, part.segment.number, query.information, len(score))
            best = _best(order, DEPTH)
            owners = part.segment.owner[best]
            numbers: list[int] = owners.tolist()
            chunks: list[int] = (best - part.segment.first_chunk[owners]).tolist()
            headed = [_headed(part.rows[n].headings[c][0], query.information) for n, c in zip(numbers, chunks, strict=True)]
            order[best] *= 1 + HEADING * np.array(headed, np.float32)
            for minus, raw, number, chunk in zip((-order[best]).tolist(), score[best].tolist(), numbers, chunks, strict=True):
                placed.append((minus, part.project, part.rows[number].path, chunk, Place(at, number, chunk), raw))
        return _report(self.name, placed, space.chunk_count, started)


def _headed(heading: str | None, information: Mapping[str, float]) -> float:
    """The share of the question's information in a section's own heading, 0 to 1."""
    return sum(information.get(word, 0.0) for word in _words_of(heading)) if heading else 0.0


@functools.lru_cache(maxsize=16_384)
def _words_of(heading: str) -> tuple[str, ...]:
    return tuple(count_words(heading))


class DocumentWords:
    """What each document is about as a whole: the share of the question's information in its title, summary, tags and path, and the BM25
    of all of its text. The words of a question about a decision stand in several of its sections, and in its title."""

    name = "document"

    def retrieve(self, query: Query, space: Space) -> Retrieved:
        started = time.perf_counter()
        fields = [p.whole for p in space.parts]
        whole = bm25(space, fields, [p.segment.file_words for p in space.parts], query.words, by_chunk=False)
        most = max((float(score.max(initial=0)) for score in whole), default=0.0)
        placed: list[_Placed] = []
        for at, (part, score) in enumerate(zip(space.parts, whole, strict=True)):
            admitted = part.mask & part.segment.alive
            about = shares(part.segment.comments, part.segment.number, query.information, len(part.segment)) * admitted
            order = (about + score * (WHOLE_TEXT / max(most, 1e-9))).astype(np.float32)
            best = _best(order, DEPTH)
            numbers: list[int] = best.tolist()
            for value, number in zip(order[best].tolist(), numbers, strict=True):
                placed.append((-value, part.project, part.rows[number].path, 0, Place(at, number, None), value))
        return _report(self.name, placed, space.document_count, started)


def bm25(
    space: Space, fields: Sequence[Postings], lengths: Sequence[Floats], words: Mapping[str, float], *, by_chunk: bool
) -> list[Floats]:
    """Scores by part, 0 for what may not be found. The statistics are those of the living documents of the whole space."""
    alive = [_admitted(p, by_chunk=by_chunk) for p in space.parts]
    count = sum(len(n) if a is None else int(a.sum()) for n, a in zip(lengths, alive, strict=True))
    norms = _length_norms(lengths, alive, count)
    scores = [np.zeros(len(n), np.float32) for n in lengths]
    for word, weight in words.items():
        rows = [field.of(p.segment.number.get(word)) for field, p in zip(fields, space.parts, strict=True)]
        holders = sum(len(docs) if a is None else int(a[docs].sum()) for (docs, _), a in zip(rows, alive, strict=True))
        if not holders:
            continue
        information = np.float32(_idf(count, holders) * weight * (K1 + 1))
        for score, norm, (docs, counts) in zip(scores, norms, rows, strict=True):
            held = counts.astype(np.float32)
            score[docs] += information * held / (held + norm[docs])
    return [s if a is None else s * a for s, a in zip(scores, alive, strict=True)]


def _admitted(part: Part, *, by_chunk: bool) -> Mask | None:
    """Which documents, or chunks, of a part may be found; None for all, as it mostly is."""
    admitted = part.mask & part.segment.alive
    if admitted.all():
        return None
    return admitted[part.segment.owner] if by_chunk else admitted


def shares(field: Postings, number: Mapping[str, int], information: Mapping[str, float], size: int) -> Floats:
    """The share of the question's information in each document of a field, 0 to 1."""
    met = np.zeros(size, np.float32)
    for word, share in information.items():
        met[field.of(number.get(word))[0]] += np.float32(share)
    return met


def _length_norms(lengths: Sequence[Floats], alive: Sequence[Mask | None], count: int) -> list[Floats]:
    """The part of BM25's denominator that a document's length makes."""
    average = sum(float(n.sum() if a is None else n[a].sum()) for n, a in zip(lengths, alive, strict=True)) / max(count, 1)
    return [(K1 * (1 - B + B * n / max(average, 1e-9))).astype(np.float32) for n in lengths]


def _idf(count: int, holders: int) -> float:
    return math.log(1 + (count - holders + 0.5) / (holders + 0.5))


def information_of(words: Mapping[str, float], space: Space) -> dict[str, float]:
    """Each word's share of the question's information, by idf over the chunks of the space; all of them are 1 together."""
    count = space.chunk_count
    bits: dict[str, float] = {}
    for word, weight in words.items():
        holders = sum(len(p.segment.body.of(p.segment.number.get(word))[0]) for p in space.parts)
        bits[word] = _idf(count, holders) * weight
    total = sum(bits.values())
    return {word: value / total for word, value in bits.items()} if total > 0 else {}


def coverage(information: Mapping[str, float], part: Part, places: Sequence[tuple[int, int | None]]) -> list[float]:
    """For each (document, chunk) of a part: the share of the question's information that stands in the chunk, or for None anywhere in the
    document; 0 to 1."""
    segment = part.segment
    documents = np.array([document for document, _ in places], np.int64)
    chunk = np.array([-1 if chunk is None else chunk for _, chunk in places], np.int64)
    first = segment.first_chunk[documents] + np.maximum(chunk, 0)
    last = np.where(chunk < 0, segment.first_chunk[documents + 1], first + 1).astype(np.int32)
    first = first.astype(np.int32)  # as the postings: another type would copy those
    met = np.zeros(len(places))
    for word, share in information.items():
        chunks, _ = segment.body.of(segment.number.get(word))  # ascending
        if len(chunks):
            at = np.searchsorted(chunks, first)
            met[(at < len(chunks)) & (chunks[np.minimum(at, len(chunks) - 1)] < last)] += share
    return [round(min(share, 1.0), 4) for share in met.tolist()]


def _best(score: Floats, most: int) -> Ints:
    """Numbers of the best scores above 0, ascending; ties at the edge are kept, so that their order can be decided by path."""
    if len(score) <= most:
        return np.flatnonzero(score).astype(np.int32)
    edge = float(np.partition(score, len(score) - most)[len(score) - most])
    return np.flatnonzero((score >= edge) & (score > 0))[: most * 4].astype(np.int32)


def _report(name: str, placed: list[_Placed], looked_at: int, started: float) -> Retrieved:
    placed.sort()
    kept: dict[tuple[int, int], tuple[Place, float]] = {}
    for *_, place, raw in placed:
        kept.setdefault(place[:2], (place, raw))
    places = tuple(kept.values())[:DEPTH]
    ms = round((time.perf_counter() - started) * 1000, 3)
    reason = "ran" if places else "no word of the question stands there" if looked_at else "there is nothing to look at"
    return Retrieved(places, StageFacts(stage=name, active=True, reason=reason, in_=looked_at, out=len(places), ms=ms))
