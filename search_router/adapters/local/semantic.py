"""The `semantic` expert: files of the shared index by the cosine of their vectors and the question's, and nothing else."""

from __future__ import annotations

import itertools
import time
from collections.abc import Iterable, Iterator
from typing import Final

from search_router.adapters.local.cards import embedded_card
from search_router.adapters.local.code_terms import unpack_terms
from search_router.adapters.local.index_readiness import bring_up_to_date
from search_router.adapters.local.languages import language_of, languages_named
from search_router.adapters.local.symbol_index import SymbolIndex
from search_router.adapters.local.vector_index import VectorIndex
from search_router.config.experts import SemanticConfig
from search_router.errors import ExpertError, FailureClass
from search_router.schema import ExpertCall, ExpertResult, ExpertStatus, Health, Hit, Project

REFRESH_SHARE: Final = 0.6
BUILD_SHARE: Final = 0.9
"""Parts of a call's time after which the answer comes from what is ready."""


class SemanticExpert:
    """One hit a file, at its best chunk. Its engine is that of `codesearch`, which reads the same vectors: they are one source."""

    def __init__(self, expert_id: str, config: SemanticConfig, index: SymbolIndex, vectors: VectorIndex) -> None:
        self._config = config
        self._index = index
        self._vectors = vectors
        self.card = embedded_card(expert_id, config)

    async def search(self, call: ExpertCall) -> ExpertResult:
        """The nearest files; only those with a cosine above 0. Cosines of different projects are compared as they are.

        Raises:
            ExpertError: as `codesearch`, and `unconfigured` or the embedder's own failure when there are no vectors.
        """
        if not self._vectors.enabled:
            raise ExpertError(FailureClass.UNCONFIGURED, "Vectors are switched off.", remedy="Set vectors.embedder.")
        until = time.monotonic() + BUILD_SHARE * call.budget_ms / 1000
        ready = await bring_up_to_date(self._index, call, REFRESH_SHARE * call.budget_ms / 1000)
        ready.raise_failure()
        near: list[tuple[float, str, str, int]] = []
        said = [text] if (text := ready.partial()) else []
        failures: list[ExpertError] = []
        asked = [project for project in call.projects if project.id in ready.reports]
        for project in asked:
            try:
                similar = await self._vectors.similar(project, call.sub_query.text, until, patient=True)
            except ExpertError as error:
                failures.append(error)
                said.append(f"{project.id}: {error}")
                continue
            if not similar.current:
                said.append(f"{project.id}: the newest files have no vectors yet; ask again")
            near += [(-score, project.id, path, chunk) for path, (score, chunk) in similar.files.items() if score > 0]
        if failures and len(failures) == len(asked):
            raise failures[0]
        if not asked:
            raise ExpertError(FailureClass.TIMEOUT, f"The index was not up to date in {call.budget_ms} ms.", remedy="Ask again.")
        return ExpertResult(
            hits=tuple(itertools.islice(self._hits(call, sorted(near)), call.limit)),
            partial="; ".join(said) or None,
            notes=(*self._index.notes, *self._vectors.notes),
            server_name="semantic",
            server_version=self._vectors.label,
        )

    async def health(self, projects: tuple[Project, ...]) -> Health:
        """What is configured; whether a server answers is only known when it is asked."""
        if not self._vectors.enabled:
            return Health(False, "vectors.embedder is none", failure=ExpertStatus.UNCONFIGURED)
        return Health(True, "makes vectors on demand", version=self._vectors.label, details=self._vectors.details)

    async def aclose(self) -> None:
        await self._vectors.aclose()
        await self._index.aclose()

    def _hits(self, call: ExpertCall, near: Iterable[tuple[float, str, str, int]]) -> Iterator[Hit]:
        """Those that the scope admits, in the same order, at their best chunk."""
        prefix, languages = (call.path or "").strip("/"), languages_named(call.language) or frozenset(self._config.languages)
        tables = {project.id: self._index.table(project) for project in call.projects}
        for negative, project, path, chunk in near:
            inside = not prefix or path == prefix or path.startswith(f"{prefix}/")
            file = tables[project].get(path)
            if file is None or not inside or (languages and language_of(path) not in languages):
                continue
            chunks = unpack_terms(file.terms).chunks
            if chunk < len(chunks):
                start, end = chunks[chunk]
                score = round(-negative, 4)
                yield Hit(project, path, start, end, native_score=score, content_hash=file.content_hash)
