"""Three ways to find documents behind one protocol: by the words of their sections, by meaning, by what they are about as a whole.

Each is called for every question. One that is switched off is called too, gives nothing and says why. What they may look at comes in
as a `Space`: nothing outside of it can be in a result.
"""

from __future__ import annotations

import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple, Protocol

import numpy as np

from search_router.adapters.local.code_segment import Floats, Postings, Segment
from search_router.adapters.local.knowledge_document import Document
from search_router.adapters.local.knowledge_shelf import Mask
from search_router.schema import StageFacts

ABOUT: Final = 0.4
"""The least share of the question's information that a document's title, summary, tags and path must have together."""
K1: Final = 1.2
B: Final = 0.75
DEPTH: Final = 200
"""So many chunks, or documents, of one retriever go into the fusion."""


@dataclass(frozen=True, slots=True)
class Part:
    """One segment of one project, the documents in it, their numbers by path, and which of them may be found."""

    project: str
    segment: Segment
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
    """The question as it stands, and its index words with their weights."""

    text: str
    words: Mapping[str, float]


class Place(NamedTuple):
    """A document (number of the part, number in it) and one of its chunks; None where the whole document was found."""

    part: int
    document: int
    chunk: int | None


class Retrieved(NamedTuple):
    """Places with raw scores, best first, each document at most once, and how the retriever fared."""

    places: tuple[tuple[Place, float], ...]
    stage: StageFacts


class Retriever(Protocol):
    """One way to find documents."""

    @property
    def name(self) -> str: ...

    def retrieve(self, query: Query, space: Space) -> Retrieved:
        """Blocks. Never raises for a question or a space of any kind."""
        ...


class SectionWords:
    """BM25 (Robertson, Zaragoza 2009) over chunks; a document stands at its best chunk."""

    name = "lexical"

    def retrieve(self, query: Query, space: Space) -> Retrieved:
        started = time.perf_counter()
        scores = bm25(
            space, [p.segment.body for p in space.parts], [p.segment.chunk_words for p in space.parts], query.words, by_chunk=True
        )
        places: list[tuple[float, str, str, Place]] = []
        for at, (part, score) in enumerate(zip(space.parts, scores, strict=True)):
            for chunk in _best(score, DEPTH):
                number = int(part.segment.owner[chunk])
                place = Place(at, number, int(chunk - part.segment.first_chunk[number]))
                places.append((-float(score[chunk]), part.project, part.rows[number].path, place))
        return _report(self.name, places, space.chunk_count, started)


class DocumentWords:
    """BM25 over what each document is about: title, summary, tags and path. It must be about a good part of the question: a position in
    this list says nothing of how well the first one fits, and one shared word would win against the section with the answer."""

    name = "document"

    def retrieve(self, query: Query, space: Space) -> Retrieved:
        started = time.perf_counter()
        fields = [p.segment.comments for p in space.parts]
        scores = bm25(space, fields, [p.segment.comment_words for p in space.parts], query.words, by_chunk=False)
        information = information_of(query, space)
        places: list[tuple[float, str, str, Place]] = []
        for at, (part, score) in enumerate(zip(space.parts, scores, strict=True)):
            about = np.zeros(len(part.segment), np.float32)
            for word, share in information.items():
                about[part.segment.comments.of(part.segment.number.get(word))[0]] += share
            score = np.where(about >= ABOUT, score, 0)
            places += [(-float(score[n]), part.project, part.rows[n].path, Place(at, n, None)) for n in _best(score, DEPTH)]
        return _report(self.name, places, space.document_count, started)


def bm25(
    space: Space, fields: Sequence[Postings], lengths: Sequence[Floats], words: Mapping[str, float], *, by_chunk: bool
) -> list[Floats]:
    """Scores by part, 0 for what may not be found. The statistics are those of the living documents of the whole space."""
    admitted = [p.mask & p.segment.alive for p in space.parts]
    alive = [a[p.segment.owner] for a, p in zip(admitted, space.parts, strict=True)] if by_chunk else admitted
    count = sum(int(a.sum()) for a in alive)
    average = sum(float(n[a].sum()) for n, a in zip(lengths, alive, strict=True)) / max(count, 1)
    scores = [np.zeros(len(n), np.float32) for n in lengths]
    for word, weight in words.items():
        rows = [field.of(p.segment.number.get(word)) for field, p in zip(fields, space.parts, strict=True)]
        holders = sum(int(a[docs].sum()) for (docs, _), a in zip(rows, alive, strict=True))
        if not holders:
            continue
        information = math.log(1 + (count - holders + 0.5) / (holders + 0.5)) * weight * (K1 + 1)
        for score, n, (docs, counts) in zip(scores, lengths, rows, strict=True):
            score[docs] += information * counts / (counts + K1 * (1 - B + B * n[docs] / max(average, 1e-9)))
    return [s * a for s, a in zip(scores, alive, strict=True)]


def information_of(query: Query, space: Space) -> dict[str, float]:
    """Each word's share of the question's information, by idf over the chunks of the space; all of them are 1 together."""
    count = space.chunk_count
    bits: dict[str, float] = {}
    for word, weight in query.words.items():
        holders = sum(len(p.segment.body.of(p.segment.number.get(word))[0]) for p in space.parts)
        bits[word] = math.log(1 + (count - holders + 0.5) / (holders + 0.5)) * weight
    total = sum(bits.values())
    return {word: value / total for word, value in bits.items()} if total > 0 else {}


def coverage(information: Mapping[str, float], part: Part, places: Sequence[tuple[int, int | None]]) -> list[float]:
    """For each (document, chunk) of a part: the share of the question's information that stands in the chunk, or for None anywhere in the
    document; 0 to 1."""
    segment = part.segment
    documents = np.array([document for document, _ in places], np.int64)
    first, last = segment.first_chunk[documents], segment.first_chunk[documents + 1]
    for at, (_, chunk) in enumerate(places):
        if chunk is not None:
            first[at] += chunk
            last[at] = first[at] + 1
    met = np.zeros(len(places))
    for word, share in information.items():
        chunks, _ = segment.body.of(segment.number.get(word))  # ascending
        if len(chunks):
            at = np.searchsorted(chunks, first)
            met[(at < len(chunks)) & (chunks[np.minimum(at, len(chunks) - 1)] < last)] += share
    return [round(min(float(share), 1.0), 4) for share in met]


def _best(score: Floats, most: int) -> list[int]:
    """Numbers of the best scores above 0, unordered; ties at the edge are kept, so that their order can be decided by path."""
    if len(score) <= most:
        return [int(n) for n in np.nonzero(score)[0]]
    edge = float(np.partition(score, len(score) - most)[len(score) - most])
    return [int(n) for n in np.nonzero((score >= edge) & (score > 0))[0][: most * 4]]


def _report(name: str, places: list[tuple[float, str, str, Place]], looked_at: int, started: float) -> Retrieved:
    places.sort(key=lambda p: (*p[:3], p[3].chunk or 0))
    seen: set[tuple[int, int]] = set()
    kept: list[tuple[Place, float]] = []
    for minus, _, _, place in places:
        if place[:2] not in seen:
            seen.add(place[:2])
            kept.append((place, -minus))
    ms = round((time.perf_counter() - started) * 1000, 3)
    return Retrieved(tuple(kept[:DEPTH]), StageFacts(stage=name, active=True, reason="ran", in_=looked_at, out=len(kept[:DEPTH]), ms=ms))
