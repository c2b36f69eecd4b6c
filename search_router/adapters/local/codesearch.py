"""The `codesearch` expert: ranks files of the shared index for a question in words, and points at the best chunk of each."""

from __future__ import annotations

import importlib.metadata
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Final

import anyio.to_thread

from search_router.adapters.local.code_words import names_in, question_words
from search_router.adapters.local.index_readiness import Readiness, bring_up_to_date
from search_router.adapters.local.symbol_index import SymbolIndex
from search_router.adapters.local.symbol_table import SymbolTable
from search_router.config.schema import CodeSearchConfig
from search_router.schema import ExpertCall, ExpertCard, ExpertResult, Health, Hit, Project

if TYPE_CHECKING:
    from search_router.adapters.local.code_index import ProjectCode
    from search_router.adapters.local.code_rank import RankedFile

REFRESH_SHARE: Final = 0.8
TYPES: Final = frozenset({"class", "struct", "trait", "interface", "module", "type", "enum"})


class CodeSearchExpert:
    """Lexical and structural ranking over the index that it shares with `symbols`."""

    def __init__(self, expert_id: str, config: CodeSearchConfig, index: SymbolIndex) -> None:
        self._config = config
        self._index = index
        self._code: dict[Path, ProjectCode] = {}
        self._syncing = anyio.Lock()
        self.card = ExpertCard(
            id=expert_id,
            kind=config.kind,
            precision_class=config.precision_class,
            engine=config.engine,
            intents=frozenset(config.intents),
            languages=frozenset(config.languages) or None,
            transport="embedded",
            cap_ms=config.cap_ms,
            freshness="live: every call compares the index with the work tree; hits carry the hash of what was indexed",
        )

    async def search(self, call: ExpertCall) -> ExpertResult:
        """The best files for the question, one hit a file at its best chunk.

        Raises:
            ExpertError: as `symbols`: nothing indexed in time, extraction failed everywhere, no project can be listed.
        """
        words = question_words(call.sub_query.text)
        ready = await bring_up_to_date(self._index, call, REFRESH_SHARE * call.budget_ms / 1000)
        ready.raise_failure()
        hits: list[tuple[float, Hit]] = []
        for project in call.projects:
            if project.id not in ready.failures:
                code = await self._current(project)
                hits += self._rank(project, code, words, call)
        hits.sort(key=lambda h: (-h[0], h[1].project, h[1].path or ""))
        return ExpertResult(
            hits=tuple(hit for _, hit in hits[: call.limit]), partial=ready.partial(), notes=self._notes(ready), server_name="codesearch"
        )

    async def health(self, projects: tuple[Project, ...]) -> Health:
        """Always there: it indexes when it is asked."""
        return Health(True, "indexes on demand", version=f"numpy {importlib.metadata.version('numpy')}")

    async def aclose(self) -> None:
        self._code.clear()
        await self._index.aclose()

    async def _current(self, project: Project) -> ProjectCode:
        """The project's segments in step with the table; a large build runs in a thread."""
        table = self._index.table(project)
        from search_router.adapters.local.code_index import ProjectCode  # numpy stays out of the start

        code = self._code.setdefault(project.root, ProjectCode())
        if not code.is_current(table):
            async with self._syncing:
                if not code.is_current(table):
                    files, generation = {f.path: f for f in table.files()}, table.generation
                    await anyio.to_thread.run_sync(code.sync, files, generation)
        return code

    def _rank(self, project: Project, code: ProjectCode, words: Mapping[str, float], call: ExpertCall) -> list[tuple[float, Hit]]:
        table = self._index.table(project)
        names = names_in(call.sub_query.text)
        from search_router.adapters.local.code_rank import rank_files  # numpy stays out of the start
        from search_router.adapters.local.code_scope import admit_files

        weights = self._config.weights
        admitted = admit_files(code, call, frozenset(self._config.languages), weights)
        ranked = rank_files(code.segments, words, _defining(table, names), code.central, admitted, weights, call.limit)
        return [(r.score, _hit(project.id, table, r)) for r in ranked if r.path in table]

    def _notes(self, ready: Readiness) -> tuple[str, ...]:
        notes = [f"{project}: {error}" for project, error in ready.failures.items()]
        return (*notes, *self._index.notes)


def _defining(table: SymbolTable, names: tuple[str, ...]) -> dict[str, float]:
    """Files that define a name of the question: 1.0 for a type or module, 0.7 for anything else."""
    found: dict[str, float] = {}
    for name in names:
        for spelled in (name, *table.names_like(name)):
            for each in table.definitions_named(spelled):
                value = 1.0 if each.definition.kind in TYPES else 0.7
                found[each.file.path] = max(found.get(each.file.path, 0.0), value)
    return found


def _hit(project: str, table: SymbolTable, ranked: RankedFile) -> Hit:
    file = table.get(ranked.path)
    assert file is not None
    return Hit(
        project=project,
        path=ranked.path,
        start_line=ranked.chunk.start,
        end_line=ranked.chunk.end,
        native_score=round(ranked.score, 4),
        content_hash=file.content_hash,
        is_exact=ranked.signals["definition"] > 0,
    )
