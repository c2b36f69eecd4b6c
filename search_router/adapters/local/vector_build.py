"""Brings the vectors of one project up to date with its table: what changed is taken from the cache, else embedded, then packed.

A chunk's vector is that of its text plus that of its file's path, each of length 1, scaled to length 1 again: what a file is about is
said as often by where it lies as by its text (measured: see docs/decisions/0012-vectors-made-of-the-code.md).
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import anyio.to_thread
import numpy as np

from search_router.adapters.local.code_terms import FileTerms, unpack_terms
from search_router.adapters.local.embed_lsa import LsaEmbedder, make_basis, sample_files, unpack_basis
from search_router.adapters.local.embed_lsa_worker import ARGV, ENVIRONMENT, MAX_BYTES, pack_sample
from search_router.adapters.local.embed_protocol import Embedder, Floats, embedder_key, unit_rows
from search_router.adapters.local.embed_text import chunk_texts, path_text
from search_router.adapters.local.symbol_packing import DamagedPayload
from search_router.adapters.local.symbol_table import IndexedFile
from search_router.adapters.local.textfile import read_text_file
from search_router.adapters.local.vector_cache import VectorCache
from search_router.adapters.local.vector_matrix import VectorMatrix
from search_router.adapters.process import run_command
from search_router.errors import EvidenceError, ExpertError, FailureClass

IN_CHILD_FROM: Final = 400
"""A basis of a sample with so many chunks is made in a child process; a smaller one takes less than the child's start."""
BASIS_SECONDS: Final = 120.0
OUTGROWN: Final = 2
"""The code has so many times the chunks that its basis was made for: then a new basis is due."""
_FILES_AT_ONCE = 64

Files = Mapping[str, IndexedFile]


@dataclass(frozen=True)
class ProjectVectors:
    """The vectors of one table at one generation, with what made them.

    `blobs` says of which bytes each path's vectors are; `missing` are paths that have none because their file changed meanwhile.
    """

    embedder: Embedder
    matrix: VectorMatrix
    generation: int
    blobs: Mapping[str, str]
    missing: frozenset[str] = frozenset()

    @property
    def label(self) -> str:
        """The embedder with the beginning of its key."""
        return f"{self.embedder.name} {embedder_key(self.embedder)[:12]}"


class VectorBuild:
    """One build; made for it and dropped after it."""

    def __init__(self, root: Path, cache: VectorCache, directory: Path, max_bytes: int) -> None:
        self._root = root
        self._cache = cache
        self._directory = directory
        self._max_bytes = max_bytes

    async def find_basis(self, files: Files) -> LsaEmbedder:
        """The embedder of a known basis that fits these files, else of one that is made of them now.

        Raises:
            ExpertError: the child process cannot be started, or dies.
        """
        blobs = frozenset(file.blob for file in files.values())
        basis = await anyio.to_thread.run_sync(self._cache.find_basis, blobs)
        if basis is not None and not await anyio.to_thread.run_sync(_outgrown, basis.chunks, files):
            return LsaEmbedder(basis)
        return await self.make_basis(files)

    async def make_basis(self, files: Files) -> LsaEmbedder:
        """The embedder of a basis that is made of these files. Raises ExpertError as `find_basis`."""
        sample, blobs, chunks = await anyio.to_thread.run_sync(_choose_sample, files)
        if sum(len(terms.chunks) for terms in sample) < IN_CHILD_FROM:
            basis = await anyio.to_thread.run_sync(make_basis, sample, blobs, chunks)
        else:
            packed = await anyio.to_thread.run_sync(pack_sample, sample, blobs, chunks)
            basis = unpack_basis(await make_in_child(packed))
        await anyio.to_thread.run_sync(self._cache.keep_basis, basis)
        return LsaEmbedder(basis)

    async def successor(self, before: ProjectVectors | None, embedder: Embedder, files: Files, generation: int) -> ProjectVectors:
        """The vectors of exactly these files; what `before` has from the same embedder is not made again.

        Raises:
            ExpertError: the embedder failed. What it had made by then is in the cache.
        """
        if before is not None and before.embedder is not embedder:
            before = None
        known: Mapping[str, str] = before.blobs if before else {}
        changed = [file for path, file in files.items() if known.get(path) != file.blob]
        gone = [path for path in known if path not in files]
        vectors: dict[str, Floats] = {}
        for part in _parts(changed):
            vectors |= await self._with_paths(embedder, await self._chunk_vectors(embedder, part))
        missing = frozenset(file.path for file in changed if file.path not in vectors)
        if before is None:
            matrix = await anyio.to_thread.run_sync(VectorMatrix.build, vectors, embedder.dimensions, self._directory)
        else:
            matrix = await anyio.to_thread.run_sync(before.matrix.successor, vectors, [*gone, *missing])
        blobs = {path: file.blob for path, file in files.items() if path not in missing}
        return ProjectVectors(embedder, matrix, generation, blobs, missing)

    async def _chunk_vectors(self, embedder: Embedder, files: Sequence[IndexedFile]) -> dict[str, Floats]:
        """By path, [chunks, dimensions] of unit rows; a file that no longer has the bytes that were indexed is left out."""
        maker = embedder_key(embedder)
        found = await anyio.to_thread.run_sync(self._cache.load_files, maker, files)
        rest = [file for file in files if file.path not in found]
        made = await anyio.to_thread.run_sync(self._embed, embedder, rest)
        await anyio.to_thread.run_sync(self._cache.keep_files, maker, [(file, made[file.path]) for file in rest if file.path in made])
        return found | made

    async def _with_paths(self, embedder: Embedder, vectors: Mapping[str, Floats]) -> dict[str, Floats]:
        texts = {path: path_text(path) for path in vectors}
        told = await anyio.to_thread.run_sync(self._path_vectors, embedder, sorted(set(texts.values())))
        return {path: unit_rows(np.add(rows, told[texts[path]], dtype=np.float32)) for path, rows in vectors.items()}

    def _embed(self, embedder: Embedder, files: Sequence[IndexedFile]) -> dict[str, Floats]:
        made: dict[str, Floats] = {}
        if isinstance(embedder, LsaEmbedder):
            for file in files:
                if (terms := _terms(file)) is not None:
                    made[file.path] = unit_rows(embedder.embed_file(terms))
            return made
        texts = {file.path: chunks for file in files if (chunks := self._texts(file)) is not None}
        rows = unit_rows(embedder.embed_documents([text for chunks in texts.values() for text in chunks])) if texts else None
        first = 0
        for path, chunks in texts.items():
            assert rows is not None
            made[path] = rows[first : first + len(chunks)]
            first += len(chunks)
        return made

    def _texts(self, file: IndexedFile) -> list[str] | None:
        """The chunks of a file as text; None when it is not what was indexed."""
        terms = _terms(file)
        try:
            source = read_text_file(self._root, file.path, max_bytes=self._max_bytes)
        except EvidenceError:
            return None
        return None if terms is None or source.blob != file.blob else chunk_texts(source.text, terms.chunks)

    def _path_vectors(self, embedder: Embedder, texts: Sequence[str]) -> dict[str, Floats]:
        if isinstance(embedder, LsaEmbedder):  # as quick as reading them
            return dict(zip(texts, unit_rows(embedder.embed_documents(texts)), strict=True))
        maker = embedder_key(embedder)
        found = {text: rows[0] for text, rows in self._cache.load_texts(maker, texts).items()}
        rest = [text for text in texts if text not in found]
        if rest:
            made = dict(zip(rest, unit_rows(embedder.embed_documents(rest)), strict=True))
            self._cache.keep_texts(maker, made)
            found |= made
        return found


def is_outgrown(vectors: ProjectVectors, files: Files) -> bool:
    """Whether the project has become another since its basis was made: it has twice the chunks, or less than half of the sample."""
    if not isinstance(vectors.embedder, LsaEmbedder):
        return False
    basis = vectors.embedder.basis
    left = len(basis.blobs.intersection(file.blob for file in files.values()))
    return left * 2 < len(basis.blobs) or len(vectors.matrix) > OUTGROWN * max(basis.chunks, 1)


async def make_in_child(packed: bytes) -> bytes:
    """The packed basis of a packed sample, from a process of low priority.

    Raises:
        ExpertError: it cannot be started, dies, or takes too long.
    """
    with anyio.move_on_after(BASIS_SECONDS) as scope:
        done = await run_command(ARGV, cwd=_working_directory(), env=ENVIRONMENT, stdin=packed, max_bytes=MAX_BYTES)
        if done.returncode == 0 and not done.cut:
            return done.stdout
        raise ExpertError(
            FailureClass.CRASHED,
            f"The process that makes the basis of the vectors ended with exit code {done.returncode}.",
            remedy="Ask again; if it comes back, set vectors.embedder to none.",
            detail=done.stderr[-500:],
        )
    assert scope.cancelled_caught
    raise ExpertError(FailureClass.TIMEOUT, f"Making the basis of the vectors took more than {BASIS_SECONDS:g} s.")


def _working_directory() -> Path:
    """Ours, for the sake of a relative PYTHONPATH; `-P` keeps Python from importing what lies in it."""
    try:
        return Path.cwd()
    except FileNotFoundError:
        return Path("/")


def _outgrown(chunks: int, files: Files) -> bool:
    return sum(len(terms.chunks) for file in files.values() if (terms := _terms(file))) > OUTGROWN * max(chunks, 1)


def _choose_sample(files: Files) -> tuple[list[FileTerms], list[str], int]:
    """(sample, its blob ids, how many chunks there are in all)."""
    sizes: dict[str, int] = {}
    by_blob: dict[str, IndexedFile] = {}
    for file in files.values():
        if file.blob not in sizes and (terms := _terms(file)) is not None:
            sizes[file.blob] = len(terms.chunks)
            by_blob[file.blob] = file
    chosen = sample_files(sizes)
    terms = [found for blob in chosen if (found := _terms(by_blob[blob])) is not None]
    return terms, chosen, sum(sizes.values())


def _terms(file: IndexedFile) -> FileTerms | None:
    """The file's terms; None for a row that is damaged, which the index makes anew when it is read next."""
    try:
        return unpack_terms(file.terms)
    except DamagedPayload:
        return None


def _parts(files: Iterable[IndexedFile]) -> Iterator[list[IndexedFile]]:
    """Pieces of work that are short enough to wait for when a build is cancelled."""
    left = iter(files)
    while part := list(itertools.islice(left, _FILES_AT_ONCE)):
        yield part
