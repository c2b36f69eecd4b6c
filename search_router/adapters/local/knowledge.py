"""The `knowledge` expert: decisions, runbooks, notes and other prose, found by section, and told with what is current.

One row a document, at its best section. Documents that are expired or not valid yet are hidden unless the filters ask for them, a
superseded one yields to its successor, and both facts are told to the router, so that they hold for what other experts find there too.
"""

from __future__ import annotations

import asyncio
import datetime
import re
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

import anyio

from search_router.adapters.local.cards import embedded_card
from search_router.adapters.local.code_words import topic_words
from search_router.adapters.local.disk_space import DEFAULT_RESERVE, Reserve
from search_router.adapters.local.embedding import Embedding
from search_router.adapters.local.index_readiness import UNREAD
from search_router.adapters.local.knowledge_vectors import KnowledgeVectors, Readiness
from search_router.adapters.local.manifest import LeftOut
from search_router.adapters.local.symbol_store import DerivedStore
from search_router.config.experts import KnowledgeConfig
from search_router.errors import MAKE_READABLE, ExpertError, FailureClass
from search_router.schema import ExpertCall, ExpertResult, Health, Project

if TYPE_CHECKING:
    from search_router.adapters.local.knowledge_index import KnowledgeIndex, ShelfReport
    from search_router.adapters.local.knowledge_shelf import Shelf

ANSWERING: Final = "search_router.adapters.local.knowledge_answer"
"""Needs numpy and yaml: loaded in a thread at the first question of a process."""
REFRESH_SHARE: Final = 0.8
LSA_OFF: Final = "off with the embedder lsa, which did not help on labelled questions; experts.knowledge.semantic = always switches it on"
VECTOR_SHARE: Final = 0.5
"""Of the time that is left once the words are indexed, so much is waited for vectors that are being made."""
_DAY: Final = re.compile(r"\b(?:19|20)\d{2}-\d{2}(?:-\d{2})?\b")


class KnowledgeExpert:
    """Documents of the visible projects, ranked for a question.

    Args:
        embedding: makes vectors of sections; without one there are none, and the stage report says so.
        today: tells the day, which decides what is expired.
    """

    def __init__(
        self,
        expert_id: str,
        config: KnowledgeConfig,
        cache_dir: Path,
        *,
        embedding: Embedding | None = None,
        today: Callable[[], datetime.date] = datetime.date.today,
        reserve: Reserve = DEFAULT_RESERVE,
    ) -> None:
        self._reserve = reserve
        self._config = config
        self._cache_dir = cache_dir
        self._vectors = KnowledgeVectors(embedding) if embedding is not None else None
        self._today = today
        self._index: KnowledgeIndex | None = None
        self.card = embedded_card(expert_id, config)

    async def search(self, call: ExpertCall) -> ExpertResult:
        """The best documents for the question, each at its best section.

        Raises:
            ExpertError: `timeout` when nothing was indexed in time; `suspect-empty` when nothing was found and documents could not be
                read; what git raises when no project can be listed.
        """
        if ANSWERING not in sys.modules:
            await asyncio.to_thread(__import__, ANSWERING)
        from search_router.adapters.local.knowledge_answer import answer_question, find_space
        from search_router.adapters.local.knowledge_meaning import SectionMeaning

        began = time.monotonic()
        index = self._opened()
        reports, failures = await self._bring_up(index, call)
        shelves = tuple((p, index.shelf(p)) for p in call.projects if p.id not in failures)
        late = [p.id for p in call.projects if p.id not in reports and p.id not in failures]
        if late and not any(shelf.documents for _, shelf in shelves):
            raise ExpertError(FailureClass.TIMEOUT, "The documents are being indexed; indexing goes on.", remedy="Ask again.")
        ready = await self._vectors_for(call, {p.id: (p, shelf) for p, shelf in shelves}, began)
        space = find_space(shelves, call, self._today())
        answer = await asyncio.to_thread(
            answer_question,
            call,
            topic_words(call.sub_query.text),
            space,
            self._config,
            today=self._today(),
            asks_for_a_day=_DAY.search(call.sub_query.text) is not None,
            hash_of=lambda project, path: index.content_hash(project, path),
            meaning=SectionMeaning(ready.meant, ready.reasons),
        )
        unread = [(p, left) for p, report in reports.items() for left in report.left_out]
        if not answer.hits and (doubt := [left for _, left in unread if left.reason in UNREAD]):
            raise ExpertError(
                FailureClass.SUSPECT_EMPTY,
                f"Found nothing, but {len(doubt)} path(s) could not be read (the first: {doubt[0].path or 'the list was cut'}), so "
                "absence is not proven.",
                remedy=MAKE_READABLE,
            )
        notes = [*answer.notes, *ready.notes, *(f"{p}: {error}" for p, error in failures.items()), *_left_out_notes(unread), *index.notes]
        return ExpertResult(
            hits=answer.hits,
            partial=f"{', '.join(late)} not compared with the work tree in time; ask again" if late else None,
            notes=tuple(notes),
            server_name="knowledge",
            settled=not failures,
            stages=answer.stages,
            hidden=space.hidden,
            yields=answer.yields,
        )

    async def health(self, projects: tuple[Project, ...]) -> Health:
        """Always there: it indexes when it is asked."""
        return Health(True, "indexes on demand")

    async def world(self, projects: tuple[Project, ...]) -> str | None:
        """See `KnowsItsWorld`: documents begin and cease to be valid with the day."""
        return self._today().isoformat()

    async def aclose(self) -> None:
        """Stop indexing and release the store; safe to call twice."""
        index, self._index = self._index, None
        if self._vectors is not None:
            await self._vectors.aclose()
        if index is not None:
            await index.aclose()

    async def _vectors_for(self, call: ExpertCall, shelves: Mapping[str, tuple[Project, Shelf]], began: float) -> Readiness:
        """What is ready of the vectors; they are not even made where they are not used."""
        if self._vectors is None:
            return Readiness({}, ("no vectors are configured",), ())
        if (off := self._switched_off(self._vectors.embedding.settings.embedder)) is not None:
            return Readiness({}, (off,), ())
        now = time.monotonic()
        until = now + VECTOR_SHARE * max(0.0, began + call.budget_ms / 1000 - now)
        return await self._vectors.ready_for(call.sub_query.text, shelves, until)

    def _switched_off(self, embedder: str) -> str | None:
        if self._config.weights.semantic == 0:
            return "its weight is 0"
        if self._config.semantic == "never":
            return "experts.knowledge.semantic is never"
        if self._config.semantic == "auto" and embedder == "lsa":
            return LSA_OFF
        return None

    def _opened(self) -> KnowledgeIndex:
        if self._index is None:
            from search_router.adapters.local.knowledge_index import KnowledgeIndex

            self._index = KnowledgeIndex(DerivedStore(self._cache_dir, reserve=self._reserve), max_file_bytes=self._config.max_file_bytes)
        return self._index

    async def _bring_up(self, index: KnowledgeIndex, call: ExpertCall) -> tuple[dict[str, ShelfReport], dict[str, ExpertError]]:
        """Reports and failures by project; a project that is in neither was not ready in time."""
        nested = tuple(project.root for project in call.projects)
        reports = {p.id: report for p in call.projects if (report := index.report_if_quiet(p, nested)) is not None}
        failures: dict[str, ExpertError] = {}
        stirred = [project for project in call.projects if project.id not in reports]
        if not stirred:
            return reports, failures

        async def refresh(project: Project) -> None:
            try:
                reports[project.id] = await index.refresh(project, nested=nested)
            except ExpertError as error:
                failures[project.id] = error

        with anyio.move_on_after(REFRESH_SHARE * call.budget_ms / 1000):
            async with anyio.create_task_group() as tasks:
                for project in stirred:
                    tasks.start_soon(refresh, project)
        if call.projects and len(failures) == len(call.projects):
            raise next(iter(failures.values()))
        return reports, failures


def _left_out_notes(unread: Sequence[tuple[str, LeftOut]]) -> list[str]:
    """One sentence for each reason that documents were not read."""
    by_reason: dict[str, list[str]] = {}
    for project, left in unread:
        by_reason.setdefault(left.reason, []).append(f"{project}/{left.path}")
    return [
        f"{len(paths)} document(s) not read, {reason}: {paths[0]}{' …' if len(paths) > 1 else ''}"
        for reason, paths in sorted(by_reason.items())
    ]
