"""The embedder that is made of the indexed code itself: latent semantic analysis over the words of its chunks. Pure but for numpy.

Deerwester et al. 1990: documents and questions are projected onto the first right singular vectors of the TF-IDF matrix, which stand
for words that occur together. The vectors come from the randomised method of Halko, Martinsson and Tropp 2011 (algorithms 4.4 and
5.1), on a sample of the chunks; all other text is folded in. Needs no download and no licence.
"""

from __future__ import annotations

import hashlib
import json
import struct
import zlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from search_router.adapters.local.code_terms import FileTerms
from search_router.adapters.local.code_words import count_words, question_words
from search_router.adapters.local.embed_protocol import Floats
from search_router.adapters.local.symbol_packing import DamagedPayload

LSA_VERSION: Final = "lsa-1"
DIMENSIONS: Final = 128
SAMPLE_CHUNKS: Final = 4000
MAX_WORDS: Final = 16_384
"""Of the sample's words the most frequent so many have a place in the basis."""
RARE_FROM: Final = 50
"""In a sample of so many chunks, words of a single one are left out: they cannot occur together with anything."""

_EXTRA = 16
_POWER_STEPS = 2
_SEED = 20_110_501
_BLOCK_CELLS = 4_000_000
_HEADER = struct.Struct("<III")
_LEVEL = 1

Ints = npt.NDArray[np.int32]


class Counts(NamedTuple):
    """Words of some chunks in compressed rows: those of row i stand in `words` and `counts` from `starts[i]` to `starts[i + 1]`."""

    starts: npt.NDArray[np.int64]
    words: Ints
    counts: Floats

    def __len__(self) -> int:
        return len(self.starts) - 1


@dataclass(frozen=True)
class Basis:
    """Words with their weights (inverse document frequency) and their places in the space.

    Attributes:
        matrix: [words, DIMENSIONS], float16: columns are orthonormal, or zero where the sample has fewer dimensions.
        blobs: the files of the sample, by which a basis is found again. chunks: how many chunks the code had when it was made.
    """

    words: tuple[str, ...]
    idf: Floats
    matrix: npt.NDArray[np.float16]
    blobs: frozenset[str]
    chunks: int

    @cached_property
    def number(self) -> Mapping[str, int]:
        return {word: at for at, word in enumerate(self.words)}

    @cached_property
    def digest(self) -> str:
        """SHA-256 over words, weights and matrix, in hexadecimal."""
        told = hashlib.sha256("\0".join(self.words).encode())
        told.update(self.idf.tobytes())
        told.update(self.matrix.tobytes())
        return told.hexdigest()


class LsaEmbedder:
    """Vectors of one basis: another basis is another version."""

    name = "lsa"
    preprocessing = LSA_VERSION
    dimensions = DIMENSIONS
    local = True

    def __init__(self, basis: Basis) -> None:
        self.basis = basis

    @property
    def version(self) -> str:
        return self.basis.digest

    def embed_documents(self, texts: Sequence[str]) -> Floats:
        """Fold in texts, counting their words as the index does."""
        return self._fold([count_words(text) for text in texts])

    def embed_file(self, terms: FileTerms) -> Floats:
        """Fold in the chunks of one file from what the index keeps of it, [chunks, DIMENSIONS]."""
        rows = chunk_counts([terms], self.basis.number)
        return project(weigh(rows, self.basis.idf), self.basis.matrix)

    def embed_query(self, text: str) -> Floats:
        words = {word: weight for word, weight in question_words(text).items() if word in self.basis.number}
        at = np.fromiter((self.basis.number[word] for word in words), np.int32, len(words))
        weights = np.fromiter(words.values(), np.float32, len(words)) * self.basis.idf[at]
        return np.asarray(weights @ self.basis.matrix[at].astype(np.float32), np.float32)

    def close(self) -> None:
        """There is nothing to release."""

    def _fold(self, counted: Iterable[Mapping[str, int]]) -> Floats:
        number = self.basis.number
        starts, words, counts = [0], list[int](), list[float]()
        for each in counted:
            known = [(number[word], count) for word, count in each.items() if word in number]
            words += [word for word, _ in known]
            counts += [count for _, count in known]
            starts.append(len(words))
        rows = Counts(np.array(starts, np.int64), np.array(words, np.int32), np.array(counts, np.float32))
        return project(weigh(rows, self.basis.idf), self.basis.matrix)


def chunk_counts(files: Sequence[FileTerms], number: Mapping[str, int]) -> Counts:
    """The chunks of these files as rows, with the words that have a number."""
    first = 0
    rows, words, counts = [np.zeros(0, np.int64)], [np.zeros(0, np.int32)], [np.zeros(0, np.float32)]
    for terms in files:
        ids = np.fromiter((number.get(word, -1) for word in terms.words), np.int32, len(terms.words))
        fields, places = np.frombuffer(terms.fields, np.uint16).astype(np.int64), np.frombuffer(terms.places, np.uint32)
        word = ids[places] if len(ids) else np.zeros(0, np.int32)
        kept = (fields >= 2) & (word >= 0)
        rows.append(first + fields[kept] - 2)
        words.append(word[kept])
        counts.append(np.frombuffer(terms.counts, np.uint16)[kept].astype(np.float32))
        first += len(terms.chunks)
    row = np.concatenate(rows)
    starts = np.zeros(first + 1, np.int64)
    np.cumsum(np.bincount(row, minlength=first), out=starts[1:])
    order = np.argsort(row, kind="stable")
    return Counts(starts, np.concatenate(words)[order], np.concatenate(counts)[order])


def weigh(rows: Counts, idf: Floats) -> Counts:
    """TF-IDF with logarithmic counts, each row of length 1."""
    values = (1 + np.log(rows.counts)) * idf[rows.words]
    owner = np.repeat(np.arange(len(rows)), np.diff(rows.starts))
    length = np.sqrt(np.bincount(owner, values * values, len(rows)))
    return Counts(rows.starts, rows.words, (values / np.maximum(length[owner], 1e-9)).astype(np.float32))


def project(rows: Counts, matrix: npt.NDArray[np.floating]) -> Floats:
    """Sparse rows times a matrix, in blocks of bounded size."""
    result = np.zeros((len(rows), matrix.shape[1]), np.float32)
    step = max(1, _BLOCK_CELLS // matrix.shape[1])
    first = 0
    while first < len(rows):
        last = max(first + 1, int(np.searchsorted(rows.starts, rows.starts[first] + step, side="right")) - 1)
        part = slice(int(rows.starts[first]), int(rows.starts[last]))
        filled = first + np.nonzero(np.diff(rows.starts[first : last + 1]))[0]
        if len(filled):
            cells = matrix[rows.words[part]].astype(np.float32)
            cells *= rows.counts[part, None]
            result[filled] = np.add.reduceat(cells, rows.starts[filled] - part.start, axis=0)
        first = last
    return result


def sample_files(files: Mapping[str, int]) -> list[str]:
    """Blob ids whose chunks (given by blob id) together are a sample: in the order of the ids, which are as good as random, so that
    equal code gives an equal sample."""
    chosen: list[str] = []
    size = 0
    for blob in sorted(files):
        if size >= SAMPLE_CHUNKS:
            break
        chosen.append(blob)
        size += files[blob]
    return chosen


def make_basis(files: Sequence[FileTerms], blobs: Iterable[str], chunks: int) -> Basis:
    """The basis of a sample of files. Takes 1 to 3 s for SAMPLE_CHUNKS chunks, and 100 MB."""
    number: dict[str, int] = {}
    for terms in files:
        for word in terms.words:
            number.setdefault(word, len(number))
    rows = chunk_counts(files, number)
    holders = np.bincount(rows.words, minlength=len(number))
    least = 2 if len(rows) >= RARE_FROM else 1
    ranked = np.argsort(-holders, kind="stable")[:MAX_WORDS]
    kept = ranked[holders[ranked] >= least]
    place = np.full(len(number), -1, np.int32)
    place[kept] = np.arange(len(kept), dtype=np.int32)
    names: list[str] = list(number)
    idf = np.log(1 + (len(rows) - holders[kept] + 0.5) / (holders[kept] + 0.5)).astype(np.float32)
    matrix = np.zeros((len(kept), DIMENSIONS), np.float16)
    if len(kept):
        found = singular_vectors(weigh(_renumber(rows, place), idf), len(kept))
        matrix[:, : found.shape[1]] = found
    return Basis(tuple(names[int(at)] for at in kept), idf, matrix, frozenset(blobs), chunks)


def singular_vectors(rows: Counts, columns: int) -> Floats:
    """The first right singular vectors of a sparse matrix, [columns, at most DIMENSIONS], by falling singular value."""
    size = min(DIMENSIONS + _EXTRA, len(rows), columns)
    turned = _transpose(rows, columns)
    start = np.random.default_rng(_SEED).standard_normal((columns, size), np.float32)
    q = np.linalg.qr(project(rows, start))[0]
    for _ in range(_POWER_STEPS):
        q = np.linalg.qr(project(turned, q))[0]
        q = np.linalg.qr(project(rows, q))[0]
    b = project(turned, q)
    values, left = np.linalg.eigh(b.T.astype(np.float64) @ b)
    order = np.argsort(-values)[: min(DIMENSIONS, size)]
    order = order[values[order] > 1e-9 * max(float(values.max()), 1e-30)]
    return (b @ (left[:, order] / np.sqrt(values[order]))).astype(np.float32)


def pack_basis(basis: Basis) -> bytes:
    """Bytes of a basis: compressed, little-endian numbers, with zlib's checksum over them."""
    text = json.dumps([basis.words, sorted(basis.blobs), basis.chunks], separators=(",", ":")).encode()
    head = _HEADER.pack(len(text), len(basis.words), DIMENSIONS)
    return zlib.compress(head + text + basis.idf.astype("<f4").tobytes() + basis.matrix.astype("<f2").tobytes(), _LEVEL)


def unpack_basis(data: bytes) -> Basis:
    """The basis that was packed. Raises DamagedPayload for anything else."""
    try:
        raw = zlib.decompress(data)
        size, count, dimensions = _HEADER.unpack_from(raw)
        at = _HEADER.size + size
        words, blobs, chunks = json.loads(raw[_HEADER.size : at])
        idf = np.frombuffer(raw, "<f4", count, at).astype(np.float32)
        matrix = np.frombuffer(raw, "<f2", count * dimensions, at + 4 * count).astype(np.float16).reshape(count, dimensions)
        if dimensions != DIMENSIONS or len(words) != count or not np.isfinite(matrix).all():
            raise ValueError("it has another shape")
        return Basis(tuple(words), idf, matrix, frozenset(blobs), int(chunks))
    except (zlib.error, struct.error, ValueError, TypeError) as error:
        raise DamagedPayload(f"a packed basis is damaged: {error}") from error


def _renumber(rows: Counts, place: Ints) -> Counts:
    """The same rows with other word numbers; words without one (-1) are dropped."""
    words = place[rows.words]
    kept = words >= 0
    owner = np.repeat(np.arange(len(rows)), np.diff(rows.starts))[kept]
    starts = np.zeros(len(rows) + 1, np.int64)
    np.cumsum(np.bincount(owner, minlength=len(rows)), out=starts[1:])
    return Counts(starts, words[kept], rows.counts[kept])


def _transpose(rows: Counts, columns: int) -> Counts:
    owner = np.repeat(np.arange(len(rows), dtype=np.int32), np.diff(rows.starts))
    order = np.argsort(rows.words, kind="stable")
    starts = np.zeros(columns + 1, np.int64)
    np.cumsum(np.bincount(rows.words, minlength=columns), out=starts[1:])
    return Counts(starts, owner[order], rows.counts[order])
