"""Vectors of a project's chunks, searched by cosine: one byte a dimension for all of them, exact floats for the best. Pure but for
numpy and one unnamed file.

Every vector is kept twice: as signed bytes with one scale a row, which is what a search reads, and as float32 in an unnamed temporary
file that is mapped into memory, of which a search reads only the rows of an over-fetched pool. New vectors are searched exactly, as
floats, until they are enough to be packed with the others.
"""

from __future__ import annotations

import itertools
import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from search_router.adapters.local.embed_protocol import Floats, unit_rows

POOL: Final = 256
"""So many of the best chunks by bytes are scored again exactly. Bytes err by less than 0.005 in a cosine."""
RECENT_CHUNKS: Final = 2048
"""More new chunks than this, and more than a quarter of all, and everything is packed anew."""
_BLOCK = 1024
_PATHS_KEPT = 32

Codes = npt.NDArray[np.int8]


class FileScore(NamedTuple):
    """A file's best cosine, -1 to 1, and the 0-based number of the chunk that has it."""

    score: float
    chunk: int


class Packed:
    """Vectors of some files as bytes and, on disk, as floats. Files are numbered in the order given; those without chunks are left out."""

    def __init__(self, files: Sequence[tuple[str, Floats]], dimensions: int, directory: Path | None = None) -> None:
        held = [(path, rows) for path, rows in files if len(rows)]
        self.paths = tuple(path for path, _ in held)
        self.starts = np.cumsum([0, *(len(rows) for _, rows in held)])
        self.owner = np.repeat(np.arange(len(held), dtype=np.int32), np.diff(self.starts))
        count = int(self.starts[-1])
        self.codes: Codes = np.zeros((count, dimensions), np.int8)
        self.scales = np.zeros(count, np.float32)
        for at, (_, rows) in enumerate(held):
            part = slice(int(self.starts[at]), int(self.starts[at + 1]))
            self.codes[part], self.scales[part] = quantise(unit_rows(rows))
        self.exact = _keep_exact([rows for _, rows in held], dimensions, directory)

    def __len__(self) -> int:
        return len(self.codes)

    @property
    def resident_bytes(self) -> int:
        """Of codes, scales and file numbers: dimensions + 8 a chunk."""
        return self.codes.nbytes + self.scales.nbytes + self.owner.nbytes

    def top(self, query: Floats, count: int, pool: int = POOL) -> list[int]:
        """The rows of the best `count` chunks, best first."""
        scores = self.scores(query, pool)
        best = np.argpartition(-scores, count - 1)[:count] if len(scores) > count else np.arange(len(scores))
        return [int(row) for row in best[np.argsort(-scores[best], kind="stable")]]

    def scores(self, query: Floats, pool: int = POOL) -> Floats:
        """The cosine of every chunk: exact for the best `pool` by bytes, within 0.005 for the others."""
        scores = np.empty(len(self), np.float32)
        room = np.empty((_BLOCK, self.codes.shape[1]), np.float32)
        for first in range(0, len(self), _BLOCK):
            codes = self.codes[first : first + _BLOCK]
            np.copyto(room[: len(codes)], codes)  # into room that stays in the processor's cache
            np.dot(room[: len(codes)], query, out=scores[first : first + len(codes)])
        scores *= self.scales
        if len(scores) > pool:
            best = np.argpartition(-scores, pool)[:pool]
            best.sort()
        else:
            best = np.arange(len(scores))
        scores[best] = np.asarray(self.exact[best]) @ query
        return scores


class VectorMatrix:
    """The vectors of one project at one moment. Never changed after it was made, so that it is read while its successor is built."""

    def __init__(self, packed: Packed, dead: frozenset[str], recent: Mapping[str, Floats], dimensions: int, directory: Path | None) -> None:
        self.packed = packed
        self._dead = dead
        self._recent = recent
        self._dimensions = dimensions
        self._directory = directory
        self._numbered: dict[int, tuple[tuple[str, ...], npt.NDArray[np.int32]]] = {}
        self._dead_files = np.array([path in dead for path in packed.paths], np.bool_)

    @classmethod
    def build(cls, files: Mapping[str, Floats], dimensions: int, directory: Path | None = None) -> VectorMatrix:
        """Pack these files, by path: each [chunks, dimensions].

        The floats go to an unnamed file in `directory`; without one, or where none can be made there, they stay in memory.
        """
        return cls(Packed(sorted(files.items()), dimensions, directory), frozenset(), {}, dimensions, directory)

    def __len__(self) -> int:
        """How many chunks are searched."""
        dead = int(np.diff(self.packed.starts)[self._dead_files].sum()) if self._dead else 0
        return len(self.packed) - dead + sum(map(len, self._recent.values()))

    @property
    def file_count(self) -> int:
        """How many files are searched."""
        return len(self.packed.paths) - int(np.count_nonzero(self._dead_files)) + len(self._recent)

    @property
    def resident_bytes(self) -> int:
        """Memory that stays taken: what is packed, and the new vectors. The mapped floats are the system's to drop."""
        return self.packed.resident_bytes + sum(rows.nbytes for rows in self._recent.values())

    def successor(self, changed: Mapping[str, Floats], gone: Iterable[str]) -> VectorMatrix:
        """The same without the files that are gone and with the vectors of those that changed."""
        touched = {*changed, *gone}
        dead = self._dead | touched
        kept = {path: rows for path, rows in self._recent.items() if path not in touched}
        recent = kept | {path: unit_rows(rows) for path, rows in changed.items()}
        if sum(map(len, recent.values())) > max(RECENT_CHUNKS, len(self.packed) // 4):
            return VectorMatrix.build(self._all(dead) | recent, self._dimensions, self._directory)
        return VectorMatrix(self.packed, dead.intersection(self.packed.paths), recent, self._dimensions, self._directory)

    def scores_of(self, query: Floats, pool: int = POOL) -> Callable[[tuple[str, ...]], Floats]:
        """What gives for some paths the score of each one's best chunk, 0 where that is negative or there is none. Zeros find nothing."""
        query = unit_rows(query)
        best = np.zeros(len(self.packed.paths) + len(self._recent) + 1, np.float32)
        if query.any():
            if len(self.packed):
                np.maximum.reduceat(self.packed.scores(query, pool), self.packed.starts[:-1], out=best[: len(self.packed.paths)])
                best[: len(self.packed.paths)][self._dead_files] = 0
            for at, rows in enumerate(self._recent.values(), start=len(self.packed.paths)):
                best[at] = (rows @ query).max(initial=0.0)
            np.maximum(best, 0, out=best)
        return lambda paths: best[self._numbers_of(paths)]

    def _numbers_of(self, paths: tuple[str, ...]) -> npt.NDArray[np.int32]:
        """Where the scores of these paths stand; the last place is of those that have none. Asked with the same paths again and again."""
        known = self._numbered.get(id(paths))
        if known is None or known[0] is not paths:
            number = {path: at for at, path in enumerate((*self.packed.paths, *self._recent))}  # a new one in place of a dead one
            numbers = np.fromiter(map(number.get, paths, itertools.repeat(-1)), np.int32, len(paths))
            if len(self._numbered) >= _PATHS_KEPT:
                self._numbered.clear()
            known = self._numbered[id(paths)] = paths, numbers
        return known[1]

    def best_of_files(self, query: Floats, pool: int = POOL) -> dict[str, FileScore]:
        """Every file that has chunks, with its best one. A query of zeros finds nothing."""
        query = unit_rows(query)
        if not query.any():
            return {}
        found: dict[str, FileScore] = {}
        packed = self.packed
        if len(packed):
            scores = packed.scores(query, pool)
            starts = packed.starts[:-1]
            best = np.maximum.reduceat(scores, starts)
            top = np.nonzero(scores == best[packed.owner])[0]
            first = top[np.searchsorted(packed.owner[top], np.arange(len(starts)))] - starts
            scored = zip(packed.paths, best.tolist(), first.tolist(), self._dead_files.tolist(), strict=True)
            found = {path: FileScore(score, chunk) for path, score, chunk, dead in scored if not dead}
        for path, rows in self._recent.items():
            if len(rows):
                exact = rows @ query
                found[path] = FileScore(float(exact.max()), int(exact.argmax()))
        return found

    def nearest_files(self, query: Floats, most: int, pool: int = POOL) -> list[tuple[str, FileScore]]:
        """The nearest `most` files with their best chunks, best first; ties by path. A query of zeros finds nothing."""
        query = unit_rows(query)
        if not query.any():
            return []
        found = [
            (path, FileScore(float(exact.max()), int(exact.argmax()))) for path, rows in self._recent.items() for exact in _of(rows, query)
        ]
        packed = self.packed
        if len(packed):
            scores, starts = packed.scores(query, pool), packed.starts[:-1]
            best = np.maximum.reduceat(scores, starts)
            best[self._dead_files] = -np.inf
            wanted = np.argpartition(-best, most)[:most] if len(best) > most else np.arange(len(best))
            for number in wanted:
                first, last = int(packed.starts[number]), int(packed.starts[number + 1])
                if not self._dead_files[number]:
                    found.append((packed.paths[number], FileScore(float(best[number]), int(scores[first:last].argmax()))))
        return sorted(found, key=lambda f: (-f[1].score, f[0]))[:most]

    def _all(self, without: Iterable[str]) -> dict[str, Floats]:
        """The exact vectors of what is packed, by path."""
        left_out, packed = frozenset(without), self.packed
        ranges = zip(packed.paths, packed.starts[:-1], packed.starts[1:], strict=True)
        return {path: np.asarray(packed.exact[first:last]) for path, first, last in ranges if path not in left_out}


def _of(rows: Floats, query: Floats) -> list[Floats]:
    """The cosines of a file's chunks, once; nothing for a file without chunks."""
    return [rows @ query] if len(rows) else []


def quantise(unit: Floats) -> tuple[Codes, Floats]:
    """(codes, scales) so that codes * scales is about the rows: the largest number of each row becomes 127."""
    scales = (np.abs(unit).max(axis=1, initial=0.0) / 127).astype(np.float32)
    codes = np.rint(unit / np.where(scales > 0, scales, 1)[:, None]).astype(np.int8)
    return codes, scales


def _keep_exact(files: Sequence[Floats], dimensions: int, directory: Path | None) -> Floats:
    """The unit rows of all files: in a file that has no name, so that nothing is left behind whatever happens to us, or in memory."""
    if directory is None or not files:
        return np.concatenate([np.zeros((0, dimensions), np.float32), *map(unit_rows, files)])
    try:
        directory.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=directory) as file:
            for rows in files:
                file.write(unit_rows(rows).tobytes())
            file.flush()
            return np.memmap(file, np.float32, "r", shape=(sum(map(len, files)), dimensions))
    except OSError:
        return _keep_exact(files, dimensions, None)
