"""The vectors of every project's documents, in step with its shelf. A build is a task of its own, which requests wait for as long as they
can, and leave: it goes on, and the next request finds more.

numpy and what makes vectors are imported when the first one is wanted.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from search_router.adapters.local.embedding import Embedding
from search_router.adapters.local.shared_runs import SharedBuilds
from search_router.errors import ExpertError
from search_router.schema import Project

if TYPE_CHECKING:
    from search_router.adapters.local.embed_protocol import Floats
    from search_router.adapters.local.knowledge_document import Document
    from search_router.adapters.local.knowledge_embed import DocumentVectors
    from search_router.adapters.local.knowledge_shelf import Shelf

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
        self._builds = SharedBuilds["DocumentVectors"]("vectors")

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
        self.embedding.interrupt()
        await self._builds.aclose()
        await self.embedding.aclose()

    def _too_small(self, documents: Mapping[str, Document]) -> str | None:
        from search_router.adapters.local.knowledge_embed import LEAST_CHUNKS  # loads numpy, which the expert has done by now

        if self.embedding.settings.embedder != "lsa":
            return None
        count = sum(len(document.terms.chunks) for document in documents.values())
        return f"{count} sections are too few to learn from" if count < LEAST_CHUNKS else None

    async def _current(self, project: Project, shelf: Shelf, until: float) -> DocumentVectors | None:
        """What is ready at `until`, of this generation or another one. Making it goes on. Raises ExpertError."""
        root, wanted = project.root, shelf.generation
        return await self._builds.current(root, lambda v: v.generation >= wanted, lambda: self._build(root, shelf), until)

    async def _build(self, root: Path, shelf: Shelf) -> DocumentVectors:
        from search_router.adapters.local.knowledge_embed import build_vectors

        return await build_vectors(self.embedding, self._builds.ready.get(root), shelf.documents, shelf.generation)
