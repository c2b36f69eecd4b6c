"""Ranks the files of one project for a question: normalised signals, summed with the configured weights. Pure but for numpy.

BM25 is Robertson and Zaragoza 2009 with k1 = 1.2, b = 0.75 (0.5 for paths), idf = ln(1 + (N - n + 0.5) / (n + 0.5)).
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from search_router.adapters.local.code_chunks import Chunk
from search_router.adapters.local.code_segment import Floats, Postings, Segment
from search_router.config.schema import CodeSearchWeights

K1: Final = 1.2
B: Final = 0.75
B_PATH: Final = 0.5
SHARES: Final = frozenset({"stem", "path_cover", "name_cover"})
"""Signals that are shares, 0 to 1, and so are not scaled to their best file."""
DECAY: Final = 0.7
DECAYED: Final = 8
STRONG: Final = 0.3
"""A chunk that scores at least this share of the best one counts in its file's sum."""


@dataclass(frozen=True, slots=True)
class RankedFile:
    """A file with its score, its best chunk, and what made the score: the weighted sum of its signals, times its damping."""

    path: str
    score: float
    chunk: Chunk
    signals: Mapping[str, float]
    damping: float = 1.0


@dataclass(frozen=True, slots=True)
class Admitted:
    """What the scope and the question say of each file, by segment: whether it may be found, and the factor its path earns."""

    mask: Sequence[npt.NDArray[np.bool_]]
    damping: Sequence[Floats]


def rank_files(
    segments: Sequence[Segment],
    words: Mapping[str, float],
    defined: Mapping[str, float],
    central: Sequence[Floats],
    admitted: Admitted,
    weights: CodeSearchWeights,
    limit: int,
    similar: Mapping[str, float] | None = None,
) -> list[RankedFile]:
    """At most `limit` files, best first; equal scores by path.

    Args:
        words: index words of the question with their weights.
        defined: path to 1.0 or less for files that define a name of the question.
        central: for each segment's files, how many other files speak of them, 0 to 1.
        similar: path to the cosine of the file's vectors and the question's, 1.0 or less; None where there are no vectors.
    """
    fields = _Fields(segments)
    chunk_scores = fields.bm25("body", "chunk_words", words, B, by_chunk=True)
    information = fields.information(words)
    signals = {
        **_from_chunks(segments, chunk_scores),
        "body": fields.body_by_file(words),
        "path": fields.bm25("in_path", "path_size", words, B_PATH),
        "names": fields.bm25("names", "name_words", words, B),
        "comments": fields.bm25("comments", "comment_words", words, B),
        "stem": fields.stem_exact(information),
        "path_cover": fields.path_cover(information),
        "name_cover": fields.name_cover(information),
        "size": [np.log1p(s.line_count) for s in segments],
        "vector": [_by_path(similar or {}, s) for s in segments],
    }
    table = weights.model_dump()
    total = [np.zeros(len(s), np.float32) for s in segments]
    normal: dict[str, list[Floats]] = {}
    for name, values in signals.items():
        top = max((float((v * s.alive).max(initial=0.0)) for v, s in zip(values, segments, strict=True)), default=0.0)
        normal[name] = [v / top if top > 0 else v for v in values] if name not in SHARES else list(values)
    normal["central"] = list(central)
    normal["definition"] = [_by_path(defined, s) for s in segments]
    found = [np.zeros(len(s), np.bool_) for s in segments]
    for name, values in normal.items():
        for at, value in enumerate(values):
            total[at] += table[name] * value
            if name not in ("size", "central", "vector"):
                found[at] |= value > 0
    ranked: list[tuple[float, str, int, int]] = []
    for at, segment in enumerate(segments):
        score = total[at] * admitted.damping[at] * (found[at] & segment.alive & admitted.mask[at])
        most = min(limit, len(score))
        top = np.argpartition(-score, most - 1)[: most + 1] if most < len(score) else np.arange(len(score))
        edge = float(score[top].min()) if len(top) else 0.0
        chosen = np.nonzero((score >= edge) & (score > 0))[0]
        ranked += [(-float(score[number]), segment.paths[number], at, int(number)) for number in chosen]
    ranked.sort()
    results: list[RankedFile] = []
    for negative, path, at, number in ranked[:limit]:
        shown = {name: round(float(values[at][number]), 4) for name, values in normal.items()}
        damping = float(admitted.damping[at][number])
        results.append(RankedFile(path, -negative, _best_chunk(segments[at], chunk_scores[at], number), shown, damping))
    return results


def _by_path(values: Mapping[str, float], segment: Segment) -> Floats:
    """The value of each file, 0 where it has none or a negative one."""
    if not values:
        return np.zeros(len(segment), np.float32)
    found = np.fromiter(map(values.get, segment.paths, itertools.repeat(0.0)), np.float32, len(segment))
    return np.maximum(found, 0)


def _best_chunk(segment: Segment, scores: Floats, number: int) -> Chunk:
    first, last = int(segment.first_chunk[number]), int(segment.first_chunk[number + 1])
    if first == last:
        return Chunk(1, 1)
    return segment.chunks[number][int(np.argmax(scores[first:last]))]


def _from_chunks(segments: Sequence[Segment], scores: Sequence[Floats]) -> dict[str, list[Floats]]:
    """Two sums over a file's chunks: of the strong ones, and of the best eight with geometric decay."""
    best = max((float(s.max(initial=0.0)) for s in scores), default=0.0)
    strong: list[Floats] = []
    decayed: list[Floats] = []
    for segment, score in zip(segments, scores, strict=True):
        hit = np.nonzero(score)[0]
        owner, value = segment.owner[hit], score[hit]
        strong.append(np.bincount(owner, np.where(value >= STRONG * best, value, 0), len(segment)).astype(np.float32))
        order = np.lexsort((-value, owner))
        owner, value = owner[order], value[order]
        starts = np.searchsorted(owner, owner, side="left")
        rank = np.arange(len(owner)) - starts
        factor = np.where(rank < DECAYED, DECAY ** np.minimum(rank, DECAYED), 0)
        decayed.append(np.bincount(owner, value * factor, len(segment)).astype(np.float32))
    return {"strong": strong, "decayed": decayed}


class _Fields:
    """BM25 over the fields of several segments as if they were one: only what is alive counts."""

    def __init__(self, segments: Sequence[Segment]) -> None:
        self._segments = segments
        self._alive_chunks = [s.alive[s.owner] for s in segments]

    def bm25(self, field: str, length: str, words: Mapping[str, float], b: float, *, by_chunk: bool = False) -> list[Floats]:
        alive = self._alive_chunks if by_chunk else [s.alive for s in self._segments]
        lengths: list[Floats] = [getattr(s, length) for s in self._segments]
        count = sum(int(a.sum()) for a in alive)
        average = sum(float((n * a).sum()) for n, a in zip(lengths, alive, strict=True)) / max(count, 1)
        base = [K1 * (1 - b + b * n / max(average, 1e-9)) for n in lengths]
        scores = [np.zeros(len(n), np.float32) for n in lengths]
        for word, weight in words.items():
            rows = [_row(getattr(s, field), s, word) for s in self._segments]
            document_count = sum(int(a[docs].sum()) for (docs, _), a in zip(rows, alive, strict=True))
            if document_count:
                idf = _idf(count, document_count) * weight * (K1 + 1)
                for score, part, (docs, counts) in zip(scores, base, rows, strict=True):
                    score[docs] += idf * counts / (counts + part[docs])
        return [s * a for s, a in zip(scores, alive, strict=True)]

    def body_by_file(self, words: Mapping[str, float]) -> list[Floats]:
        """BM25 with whole files as documents."""
        segments = self._segments
        count = sum(int(s.alive.sum()) for s in segments)
        average = sum(float((s.file_words * s.alive).sum()) for s in segments) / max(count, 1)
        scores = [np.zeros(len(s), np.float32) for s in segments]
        for word, weight in words.items():
            per_file: list[Floats] = []
            for s in segments:
                docs, counts = _row(s.body, s, word)
                per_file.append((np.bincount(s.owner[docs], counts, len(s)) * s.alive).astype(np.float32))
            document_count = sum(int(np.count_nonzero(p)) for p in per_file)
            if document_count:
                idf = _idf(count, document_count) * weight * (K1 + 1)
                for score, tf, s in zip(scores, per_file, segments, strict=True):
                    score += (idf * tf / (tf + K1 * (1 - B + B * s.file_words / max(average, 1e-9)))).astype(np.float32)
        return scores

    def information(self, words: Mapping[str, float]) -> dict[str, float]:
        """Each word's share of the question's information: its weight times its idf over files, all of them 1 together."""
        count = sum(int(s.alive.sum()) for s in self._segments)
        bits = {word: _idf(count, _holders(self._segments, word)) * weight for word, weight in words.items()}
        total = max(sum(bits.values()), 1e-9)
        return {word: value / total for word, value in bits.items()}

    def stem_exact(self, information: Mapping[str, float]) -> list[Floats]:
        """For files whose whole name consists of words of the question: the share of the question's information that the name has."""
        found: list[Floats] = []
        for s in self._segments:
            mass, met = np.zeros(len(s), np.float32), np.zeros(len(s), np.float32)
            for word, share in information.items():
                docs, _ = _row(s.in_stem, s, word)
                mass[docs] += share
                met[docs] += 1
            found.append(np.where((met >= s.stem_size) & (s.stem_size > 0), mass, 0) * s.alive)
        return found

    def path_cover(self, information: Mapping[str, float]) -> list[Floats]:
        """The share of the question's information that a file's path has."""
        found: list[Floats] = []
        for s in self._segments:
            mass = np.zeros(len(s), np.float32)
            for word, share in information.items():
                mass[_row(s.in_path, s, word)[0]] += share
            found.append(mass * s.alive)
        return found

    def name_cover(self, information: Mapping[str, float]) -> list[Floats]:
        """For the file's definition that says it best: the share of the question's information in its name, times the share of the name's
        words that are the question's."""
        found: list[Floats] = []
        for s in self._segments:
            mass, met = np.zeros(len(s.name_owner), np.float32), np.zeros(len(s.name_owner), np.float32)
            for word, share in information.items():
                names, _ = _row(s.in_name, s, word)
                mass[names] += share
                met[names] += 1
            best = np.zeros(len(s), np.float32)
            hit = np.nonzero(met)[0]
            np.maximum.at(best, s.name_owner[hit], mass[hit] * met[hit] / s.name_size[hit])
            found.append(best * s.alive)
        return found


def _row(postings: Postings, segment: Segment, word: str) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.uint16]]:
    return postings.of(segment.number.get(word))


def _holders(segments: Sequence[Segment], word: str) -> int:
    """How many living files have the word in their text."""
    count = 0
    for s in segments:
        holding = np.zeros(len(s), np.bool_)
        holding[s.owner[_row(s.body, s, word)[0]]] = True
        count += int(np.count_nonzero(holding & s.alive))
    return count


def _idf(count: int, holders: int) -> float:
    return math.log(1 + (count - holders + 0.5) / (holders + 0.5))


def centrality(segments: Sequence[Segment]) -> list[Floats]:
    """How many other files speak of each file by its name: 1.0 from a quarter of all files on (a stand-in for who imports it)."""
    count = max(1, sum(int(s.alive.sum()) for s in segments))
    names = [[words[-1] if words and len(words[-1]) > 2 else "" for words in segment.stem_words] for segment in segments]
    asked = sorted({name for each in names for name in each if name})
    holders = dict(zip(asked, np.sum([_holders_of_all(s, asked) for s in segments], axis=0), strict=True)) if asked else {}
    return [np.array([min(1.0, 4 * holders.get(name, 0) / count) for name in each], np.float32) for each in names]


def _holders_of_all(segment: Segment, words: Sequence[str]) -> npt.NDArray[np.float64]:
    """As `_holders` for many words at once: rows are gathered, and a file counts where a run of its chunks begins."""
    starts, docs = segment.body.starts, segment.body.docs
    known = [(at, number) for at, word in enumerate(words) if (number := segment.number.get(word)) is not None]
    ids = np.array([number for _, number in known], np.int64)
    begin, length = starts[ids], starts[ids + 1] - starts[ids]
    row = np.repeat(np.arange(len(ids)), length)
    owner = segment.owner[docs[np.arange(len(row)) + np.repeat(begin - np.cumsum(length) + length, length)]]
    first = np.ones(len(row), np.bool_)
    first[1:] = (row[1:] != row[:-1]) | (owner[1:] != owner[:-1])
    found = np.zeros(len(words))
    found[[at for at, _ in known]] = np.bincount(row, first & segment.alive[owner], len(ids))
    return found
