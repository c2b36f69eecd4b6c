"""The vectors of every project's documents, in step with its shelf. A build is a task of its own, which requests wait for as long as they
can, and leave: it goes on, and the next request finds more.

numpy and what makes vectors are imported when the first one is wanted.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from search_router.adapters.local.embedding import Embedding
from search_router.errors import ExpertError, FailureClass
from search_router.schema import Project

if TYPE_CHECKING:
    from search_router.adapters.local.embed_protocol import Floats
    from search_router.adapters.local.knowledge_document import Document
    from search_router.adapters.local.knowledge_embed import DocumentVectors
    from search_router.adapters.local.knowledge_shelf import Shelf

FAILED_SECONDS: Final = 30.0
"""A failure is the answer for so long; then it is tried again."""
BEING_MADE: Final = "vectors of documents are being made; asked again, more is found"


class Meant(NamedTuple):
    """What a project's vectors are and the question's vector beside them."""

    vectors: DocumentVectors
    query: Floats


class Readiness(NamedTuple):
    """What is ready for a question, by project, and why some or all of it is not; empty when all is."""

    meant: Mapping[str, Meant]
    reasons: tuple[str, ...]
    notes: tuple[str, ...]


class KnowledgeVectors:
    """Belongs to one event loop. `embedding` is shared with the vectors of code, and closed here as there."""

    def __init__(self, embedding: Embedding) -> None:
        self.embedding = embedding
        self._ready: dict[Path, DocumentVectors] = {}
        self._builds: dict[Path, asyncio.Task[DocumentVectors]] = {}
        self._failed: dict[Path, tuple[float, ExpertError]] = {}

    async def ready_for(self, question: str, shelves: Mapping[str, tuple[Project, Shelf]], until: float) -> Readiness:
        """What is there at `until` (monotonic seconds) for these projects. Never raises: a failure is a reason and a note."""
        if not self.embedding.enabled:
            return Readiness({}, ("vectors.embedder is none",), ())
        meant: dict[str, Meant] = {}
        reasons: dict[str, None] = {}
        notes: dict[str, None] = dict.fromkeys(self.embedding.notes)
        for name, (project, shelf) in shelves.items():
            try:
                if reason := self._too_small(shelf.documents):
                    reasons.setdefault(reason)
                    continue
                vectors = await self._current(project, shelf, until)
                if vectors is None or vectors.generation < shelf.generation:
                    reasons.setdefault(BEING_MADE)
                    notes.setdefault(BEING_MADE)
                if vectors is not None:
                    meant[name] = Meant(vectors, await self.embedding.embed_query(vectors.embedder, question, until))
            except ExpertError as error:
                reasons.setdefault(f"{error.failure.value}: {error.message}")
                notes.setdefault(f"{name}: documents are ranked without vectors: {error.message}")
        return Readiness(meant, tuple(reasons), tuple(notes))

    async def aclose(self) -> None:
        """Stop every build and release the embedder; safe to call twice."""
        builds = [build for build in self._builds.values() if not build.done()]
        self.embedding.interrupt()
        for build in builds:
            build.cancel()
        if builds:
            await asyncio.wait(builds)
        self._builds.clear()
        self._ready.clear()
        await self.embedding.aclose()

    def _too_small(self, documents: Mapping[str, Document]) -> str | None:
        from search_router.adapters.local.knowledge_embed import LEAST_CHUNKS  # loads numpy, which the expert has done by now

        if self.embedding.settings.embedder != "lsa":
            return None
        count = sum(len(document.terms.chunks) for document in documents.values())
        return f"{count} sections are too few to learn from" if count < LEAST_CHUNKS else None

    async def _current(self, project: Project, shelf: Shelf, until: float) -> DocumentVectors | None:
        """What is ready at `until`, of this generation or another one. Making it goes on. Raises ExpertError."""
        root = project.root
        while (known := self._ready.get(root)) is None or known.generation < shelf.generation:
            build = self._builds.get(root)
            if build is None:
                self._raise_recent_failure(root)
                build = self._builds[root] = asyncio.create_task(self._build(root, shelf), name="vectors of documents")
                build.add_done_callback(_retrieve)
            done, _ = await asyncio.wait({build}, timeout=max(0.0, until - time.monotonic()))
            if not done:
                return known
            if self._builds.get(root) is build:  # the first who waited for it keeps it, however long ago it was begun
                del self._builds[root]
                self._keep(root, build)
            elif build.cancelled() or build.exception() is not None:
                self._raise_recent_failure(root)
        return known

    async def _build(self, root: Path, shelf: Shelf) -> DocumentVectors:
        from search_router.adapters.local.knowledge_embed import build_vectors

        return await build_vectors(self.embedding, self._ready.get(root), shelf.documents, shelf.generation)

    def _keep(self, root: Path, build: asyncio.Task[DocumentVectors]) -> None:
        try:
            self._ready[root] = build.result()
        except ExpertError as error:
            self._failed[root] = time.monotonic(), error
            raise
        except asyncio.CancelledError:
            raise ExpertError(FailureClass.UNAVAILABLE, "The vectors were closed while they were read.") from None

    def _raise_recent_failure(self, root: Path) -> None:
        at, error = self._failed.get(root, (0.0, None))
        if error is not None and time.monotonic() - at < FAILED_SECONDS:
            raise error
        self._failed.pop(root, None)


def _retrieve(task: asyncio.Task[DocumentVectors]) -> None:
    """Look at the outcome, so that a failure that nobody waited for is not reported as forgotten."""
    if not task.cancelled():
        task.exception()
