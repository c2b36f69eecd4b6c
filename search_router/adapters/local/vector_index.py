"""The vectors of every project that was asked about, in step with the shared index. A build is a task of its own, which requests wait
for as long as they can, and leave: it goes on, and the next request finds more.

numpy is imported when the first vector is wanted.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Final

import anyio.to_thread

from search_router.adapters.local.embedding import Embedding
from search_router.adapters.local.shared_runs import SharedBuilds
from search_router.adapters.local.symbol_index import SymbolIndex
from search_router.collector import return_free_memory
from search_router.config.schema import VectorsConfig
from search_router.errors import ExpertError, FailureClass
from search_router.schema import Project

if TYPE_CHECKING:
    from search_router.adapters.local.embed_protocol import Floats
    from search_router.adapters.local.vector_build import ProjectVectors
    from search_router.adapters.local.vector_matrix import FileScore, VectorMatrix


PATIENCE_SECONDS: Final = 0.15
"""A saved file takes a few milliseconds, a branch switch longer; the ranking without vectors is a little worse, and at hand."""


class Similar:
    """What the vectors say of a project's files for one question.

    Attributes:
        current: whether every file of the index as it is now has vectors.
    """

    def __init__(self, matrix: VectorMatrix, query: Floats, current: bool) -> None:
        self._matrix = matrix
        self._query = query
        self.current = current

    @property
    def files(self) -> Mapping[str, FileScore]:
        """Every file that has vectors, by path, with its best chunk."""
        return self._matrix.best_of_files(self._query)

    def scores(self) -> Callable[[tuple[str, ...]], Floats]:
        """What gives the scores of some paths, 0 where there is none: without the chunks, which is much quicker."""
        return self._matrix.scores_of(self._query)

    def __len__(self) -> int:
        """How many files have vectors."""
        return self._matrix.file_count


class VectorIndex:
    """Belongs to one event loop; shared by the experts that use vectors.

    Args:
        index: the files. settings: what embeds them.
        cache_dir: where vectors are kept between processes.
        max_file_bytes: as the index has it.
    """

    def __init__(self, index: SymbolIndex, settings: VectorsConfig, cache_dir: Path, *, max_file_bytes: int) -> None:
        self.embedding = Embedding(settings, cache_dir, index.store.reserve)
        self._index = index
        self._max_bytes = max_file_bytes
        self._builds = SharedBuilds["ProjectVectors"]("vectors")

    @property
    def enabled(self) -> bool:
        return self.embedding.enabled

    @property
    def notes(self) -> tuple[str, ...]:
        """What the caller should know: that text was sent away, and what went wrong with the cache."""
        return self.embedding.notes

    @property
    def sent_to(self) -> str | None:
        """The server to which source text is sent; None when it stays in this process."""
        return self.embedding.sent_to

    @property
    def label(self) -> str:
        """What made the vectors that are in use, for the receipt: embedder, a digest of its version, and where text was sent."""
        made = {vectors.label for vectors in self._builds.ready.values()}
        return ", ".join(sorted(made) or [self.embedding.settings.embedder]) + (f" at {self.sent_to}" if self.sent_to else "")

    @property
    def details(self) -> dict[str, str]:
        """For health: what embeds, and whether text leaves this process for it."""
        return {"embedder": self.label, "source text": f"sent to {self.sent_to}" if self.sent_to else "stays in this process"}

    async def similar(self, project: Project, question: str, until: float, *, patient: bool = False) -> Similar:
        """How near each file is to the question, from what is ready at `until` (monotonic seconds). The project's index is up to date.

        Raises:
            ExpertError: `timeout` when nothing is ready, `unconfigured` or the embedder's failure when it cannot be.
        """
        vectors, current = await self.current(project, until, patient=patient)
        if vectors is None:
            raise ExpertError(FailureClass.TIMEOUT, "The vectors are being made; that goes on.", remedy="Ask again.")
        query = await self.embedding.embed_query(vectors.embedder, question, until)
        return Similar(vectors.matrix, query, current and not vectors.missing)

    async def aclose(self) -> None:
        """Stop every build and release the cache; safe to call twice. A thread that embeds is waited for: each piece of work is short."""
        self.embedding.interrupt()
        await self._builds.aclose()
        await self.embedding.aclose()

    async def current(self, project: Project, until: float, *, patient: bool = False) -> tuple[ProjectVectors | None, bool]:
        """(what is ready at `until`, whether it is in step with the table). Making it goes on. Raises ExpertError as `similar`.

        Where there are vectors of other files, those of many new ones are not waited for longer than `PATIENCE_SECONDS`.
        """
        table = self._index.table(project)
        if project.root in self._builds.ready and not patient:
            until = min(until, time.monotonic() + PATIENCE_SECONDS)

        def is_current(vectors: ProjectVectors) -> bool:
            return vectors.generation == table.generation

        known = await self._builds.current(project.root, is_current, lambda: self._build(project), until)
        return known, known is not None and is_current(known)

    async def _build(self, project: Project) -> ProjectVectors:
        from search_router.adapters.local.vector_build import VectorBuild, is_outgrown  # numpy stays out of the start

        cache = await self.embedding.load()
        table, before = self._index.table(project), self._builds.ready.get(project.root)
        files, generation = {file.path: file for file in table.files()}, table.generation
        build = VectorBuild(project.root, cache, self.embedding.cache_dir, self._max_bytes)
        if self.embedding.embedder is not None:
            return await build.successor(before, self.embedding.embedder, files, generation)
        embedder = before.embedder if before is not None else await build.find_basis(files)
        made = await build.successor(before, embedder, files, generation)
        if is_outgrown(made, files):
            made = await build.successor(None, await build.find_basis(files), files, generation)
        if before is None:
            await anyio.to_thread.run_sync(return_free_memory)
        return made
