"""The `codesearch` expert: ranks files of the shared index for a question in words, and points at the best chunk of each."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import anyio.to_thread
import numpy as np

from search_router.adapters.local.code_index import ProjectCode
from search_router.adapters.local.code_rank import Admitted, RankedFile, rank_files
from search_router.adapters.local.code_segment import Floats, Segment
from search_router.adapters.local.code_words import names_in, question_words
from search_router.adapters.local.index_readiness import Readiness, bring_up_to_date
from search_router.adapters.local.languages import is_generated_path, is_test_path, is_vendored_path, language_of, languages_named
from search_router.adapters.local.symbol_index import SymbolIndex
from search_router.adapters.local.symbol_table import SymbolTable
from search_router.config.schema import CodeSearchConfig
from search_router.schema import ExpertCall, ExpertCard, ExpertResult, Health, Hit, Project

REFRESH_SHARE: Final = 0.8
TYPES: Final = frozenset({"class", "struct", "trait", "interface", "module", "type", "enum"})
PROSE: Final = frozenset({"markdown", "rst", "text", "json", "yaml", "toml", "html", "css", "xml", "make", "dockerfile", "ini"})
_TESTS = re.compile(r"\b(?:tests?|testing|examples?|benchmarks?|mocks?|fixtures?|specs?)\b", re.IGNORECASE)
_PROSE_ASKED = re.compile(r"\b(?:docs?|documentation|readme|guide|config\w*|changelog|tutorial)\b", re.IGNORECASE)
_LEGACY_ASKED = re.compile(r"legacy|deprecat|compat|\bv\d+\b|old", re.IGNORECASE)
_LEGACY = re.compile(r"(?:^|/)(?:legacy|deprecat\w*|compat|obsolete)(?:/|\.|_)", re.IGNORECASE)
_INTERNAL = re.compile(r"(?:^|/)(?:_|internals?/)")


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
        return Health(True, "indexes on demand", version=f"numpy {np.__version__}")

    async def aclose(self) -> None:
        self._code.clear()
        await self._index.aclose()

    async def _current(self, project: Project) -> ProjectCode:
        """The project's segments in step with the table; a large build runs in a thread."""
        table = self._index.table(project)
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
        ranked = rank_files(
            code.segments, words, _defining(table, names), code.central, self._admit(code, call), self._config.weights, call.limit
        )
        return [(r.score, _hit(project.id, table, r)) for r in ranked if r.path in table]

    def _admit(self, code: ProjectCode, call: ExpertCall) -> Admitted:
        prefix = (call.path or "").strip("/")
        languages = languages_named(call.language) or frozenset(self._config.languages)
        question, weights = call.sub_query.text, self._config.weights
        factors = {
            "test": 1 - (0 if _TESTS.search(question) else weights.test_damping),
            "prose": 1 - (0 if _PROSE_ASKED.search(question) else weights.prose_damping),
            "foreign": 1 - weights.foreign_damping,
            "legacy": 1 - (0 if _LEGACY_ASKED.search(question) else weights.legacy_damping),
            "internal": 1 - weights.internal_damping,
        }
        masks: list[np.ndarray[tuple[int], np.dtype[np.bool_]]] = []
        damping: list[Floats] = []
        for segment in code.segments:
            roles = _roles_of(segment, code.legacy)
            factor = np.ones(len(segment), np.float32)
            for name, flags in roles.items():
                factor *= np.where(flags, factors[name], 1.0).astype(np.float32)
            damping.append(factor)
            inside = (
                [
                    (not prefix or p == prefix or p.startswith(f"{prefix}/")) and (not languages or language_of(p) in languages)
                    for p in segment.paths
                ]
                if prefix or languages
                else True
            )
            masks.append(np.full(len(segment), inside) if inside is True else np.array(inside, np.bool_))
        return Admitted(masks, damping)

    def _notes(self, ready: Readiness) -> tuple[str, ...]:
        notes = [f"{project}: {error}" for project, error in ready.failures.items()]
        return (*notes, *self._index.notes)


def _roles_of(segment: Segment, legacy: Mapping[str, bool]) -> dict[str, np.ndarray[tuple[int], np.dtype[np.bool_]]]:
    """What each file's path says of its role, by segment; computed once a segment."""
    if segment.roles is None:
        paths = segment.paths
        old = tuple(f"{folder}/" for folder, is_old in legacy.items() if is_old)
        segment.roles = {
            "test": np.array([is_test_path(p) for p in paths], np.bool_),
            "prose": np.array([(language_of(p) or "text") in PROSE for p in paths], np.bool_),
            "foreign": np.array([is_vendored_path(p) or is_generated_path(p) for p in paths], np.bool_),
            "legacy": np.array([bool(_LEGACY.search(p)) or p.startswith(old) for p in paths], np.bool_),
            "internal": np.array([bool(_INTERNAL.search(p)) for p in paths], np.bool_),
        }
    return segment.roles


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
