"""BM25 and shares over the fields of a project's segments, as if they were one. Pure but for numpy.

BM25 is Robertson and Zaragoza 2009 with k1 = 1.2, b = 0.75 (0.5 for paths), idf = ln(1 + (N - n + 0.5) / (n + 0.5)).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np
import numpy.typing as npt

from search_router.adapters.local.code_segment import Floats, Postings, Segment

K1: Final = 1.2
B: Final = 0.75
B_PATH: Final = 0.5

Mask = npt.NDArray[np.bool_]


class Fields:
    """The fields of these segments, of which only what is alive counts. What no question changes is computed once, so it is kept with them.

    Results are arrays by segment, then by file or chunk.
    """

    def __init__(self, segments: Sequence[Segment]) -> None:
        self.segments = tuple(segments)
        self._whole = [bool(s.alive.all()) for s in self.segments]
        self._alive_chunks = [s.alive[s.owner] for s in self.segments]
        self._norms: dict[tuple[str, float], list[Floats]] = {}
        self.files = sum(int(s.alive.sum()) for s in self.segments)
        self.chunks = sum(int(a.sum()) for a in self._alive_chunks)

    def bm25(self, field: str, length: str, words: Mapping[str, float], b: float) -> list[Floats]:
        """A field of whole files."""
        return self._bm25(field, length, words, b, [s.alive for s in self.segments], self.files, None)

    def bm25_of_chunks(self, words: Mapping[str, float], within: Sequence[Mask] | None = None) -> list[Floats]:
        """The text of every chunk; only of the files of `within`, where that is given. The statistics are those of all."""
        owned = None if within is None else [w[s.owner] for w, s in zip(within, self.segments, strict=True)]
        return self._bm25("body", "chunk_words", words, B, self._alive_chunks, self.chunks, owned)

    def _bm25(
        self, field: str, length: str, words: Mapping[str, float], b: float, alive: list[Mask], count: int, within: list[Mask] | None
    ) -> list[Floats]:
        base = self._norm(length, b, alive, count)
        scores = [np.zeros(len(n), np.float32) for n in base]
        for word, weight in words.items():
            rows = [row(getattr(s, field), s, word) for s in self.segments]
            holders = sum(len(docs) if whole else int(a[docs].sum()) for (docs, _), a, whole in zip(rows, alive, self._whole, strict=True))
            if not holders:
                continue
            value = idf(count, holders) * weight * (K1 + 1)
            for at, (score, part, (docs, counts)) in enumerate(zip(scores, base, rows, strict=True)):
                if within is not None:
                    kept = within[at][docs]
                    docs, counts = docs[kept], counts[kept]
                score[docs] += value * counts / (counts + part[docs])
        return [s if whole else s * a for s, a, whole in zip(scores, alive, self._whole, strict=True)]

    def _norm(self, length: str, b: float, alive: list[Mask], count: int) -> list[Floats]:
        """What BM25 adds to the count of a word, by the document's length."""
        if (length, b) not in self._norms:
            lengths: list[Floats] = [getattr(s, length) for s in self.segments]
            average = sum(float((n * a).sum()) for n, a in zip(lengths, alive, strict=True)) / max(count, 1)
            self._norms[length, b] = [K1 * (1 - b + b * n / max(average, 1e-9)) for n in lengths]
        return self._norms[length, b]

    def body_by_file(self, words: Mapping[str, float], within: Sequence[Mask] | None = None) -> list[Floats]:
        """BM25 with whole files as documents; only those of `within`, where that is given. The statistics are those of all."""
        segments = self.segments
        base = self._norm("file_words", B, [s.alive for s in segments], self.files)
        scores = [np.zeros(len(s), np.float32) for s in segments]
        for word, weight in words.items():
            per_file: list[Floats] = []
            for s in segments:
                docs, counts = row(s.body, s, word)
                per_file.append((np.bincount(s.owner[docs], counts, len(s)) * s.alive).astype(np.float32))
            holders = sum(int(np.count_nonzero(p)) for p in per_file)
            if holders:
                value = idf(self.files, holders) * weight * (K1 + 1)
                for score, tf, part in zip(scores, per_file, base, strict=True):
                    score += (value * tf / (tf + part)).astype(np.float32)
        return scores if within is None else [s * w for s, w in zip(scores, within, strict=True)]

    def information(self, words: Mapping[str, float]) -> dict[str, float]:
        """Each word's share of the question's information: its weight times its idf over files, all of them 1 together."""
        bits = {word: idf(self.files, self._holders(word)) * weight for word, weight in words.items()}
        total = max(sum(bits.values()), 1e-9)
        return {word: value / total for word, value in bits.items()}

    def _holders(self, word: str) -> int:
        """How many living files have the word in their text."""
        count = 0
        for s in self.segments:
            holding = np.zeros(len(s), np.bool_)
            holding[s.owner[row(s.body, s, word)[0]]] = True
            count += int(np.count_nonzero(holding & s.alive))
        return count

    def stem_exact(self, information: Mapping[str, float]) -> list[Floats]:
        """For files whose whole name consists of words of the question: the share of the question's information that the name has."""
        found: list[Floats] = []
        for s in self.segments:
            mass, met = np.zeros(len(s), np.float32), np.zeros(len(s), np.float32)
            for word, share in information.items():
                docs, _ = row(s.in_stem, s, word)
                mass[docs] += share
                met[docs] += 1
            found.append(np.where((met >= s.stem_size) & (s.stem_size > 0), mass, 0) * s.alive)
        return found

    def path_cover(self, information: Mapping[str, float]) -> list[Floats]:
        """The share of the question's information that a file's path has."""
        found: list[Floats] = []
        for s in self.segments:
            mass = np.zeros(len(s), np.float32)
            for word, share in information.items():
                mass[row(s.in_path, s, word)[0]] += share
            found.append(mass * s.alive)
        return found

    def name_cover(self, information: Mapping[str, float]) -> list[Floats]:
        """For the file's definition that says it best: the share of the question's information in its name, times the share of the name's
        words that are the question's."""
        found: list[Floats] = []
        for s in self.segments:
            mass, met = np.zeros(len(s.name_owner), np.float32), np.zeros(len(s.name_owner), np.float32)
            for word, share in information.items():
                names, _ = row(s.in_name, s, word)
                mass[names] += share
                met[names] += 1
            best = np.zeros(len(s), np.float32)
            hit = np.nonzero(met)[0]
            np.maximum.at(best, s.name_owner[hit], mass[hit] * met[hit] / s.name_size[hit])
            found.append(best * s.alive)
        return found


def row(postings: Postings, segment: Segment, word: str) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.uint16]]:
    return postings.of(segment.number.get(word))


def idf(count: int, holders: int) -> float:
    return math.log(1 + (count - holders + 0.5) / (holders + 0.5))


def centrality(segments: Sequence[Segment]) -> list[Floats]:
    """How many other files speak of each file by its name: 1.0 from a quarter of all files on (a stand-in for who imports it)."""
    count = max(1, sum(int(s.alive.sum()) for s in segments))
    names = [[words[-1] if words and len(words[-1]) > 2 else "" for words in segment.stem_words] for segment in segments]
    asked = sorted({name for each in names for name in each if name})
    holders = dict(zip(asked, np.sum([_holders_of_all(s, asked) for s in segments], axis=0), strict=True)) if asked else {}
    return [np.array([min(1.0, 4 * holders.get(name, 0) / count) for name in each], np.float32) for each in names]


def _holders_of_all(segment: Segment, words: Sequence[str]) -> npt.NDArray[np.float64]:
    """How many living files have each word in their text: rows are gathered, and a file counts where a run of its chunks begins."""
    starts, docs = segment.body.starts, segment.body.docs
    known = [(at, number) for at, word in enumerate(words) if (number := segment.number.get(word)) is not None]
    ids = np.array([number for _, number in known], np.int64)
    begin, length = starts[ids], starts[ids + 1] - starts[ids]
    word = np.repeat(np.arange(len(ids)), length)
    owner = segment.owner[docs[np.arange(len(word)) + np.repeat(begin - np.cumsum(length) + length, length)]]
    first = np.ones(len(word), np.bool_)
    first[1:] = (word[1:] != word[:-1]) | (owner[1:] != owner[:-1])
    found = np.zeros(len(words))
    found[[at for at, _ in known]] = np.bincount(word, first & segment.alive[owner], len(ids))
    return found
