"""The symbols expert: definitions and uses by tree-sitter, from an index that is brought up to date before every answer."""

from __future__ import annotations

import time
from pathlib import Path, PurePosixPath
from typing import Final

import anyio

from search_router.adapters.base import Underway
from search_router.adapters.local.cards import embedded_card
from search_router.adapters.local.grammars import SYNTAX_LANGUAGES, grammar_wheel
from search_router.adapters.local.index_readiness import answer_soon, bring_up_to_date, underway
from search_router.adapters.local.languages import languages_named
from search_router.adapters.local.symbol_index import SymbolIndex
from search_router.adapters.local.symbol_lookup import look_up, read_names
from search_router.adapters.local.symbol_pattern import names_matching
from search_router.adapters.local.symbol_space import SearchSpace, definition_hit
from search_router.adapters.local.symbol_store import DerivedStore
from search_router.adapters.local.symbol_words import question_words, rank_by_words
from search_router.adapters.local.wheels import installed_version
from search_router.config.experts import SymbolsConfig
from search_router.errors import ExpertError, FailureClass
from search_router.schema import ExpertCall, ExpertCard, ExpertResult, ExpertStatus, Health, Hit, Intent, Project, QueryForm

REFRESH_SHARE: Final = 0.8
"""The part of a call's time that may go into bringing the index up to date; the rest is for the answer."""
_UNCONFIGURED = ExpertStatus.UNCONFIGURED


class SymbolsExpert:
    """Definitions and uses of names in the work trees as they are now.

    Args:
        cache_dir: where extractions are kept between processes; never a directory of a searched project.
    """

    def __init__(self, id: str, config: SymbolsConfig, cache_dir: Path, index: SymbolIndex | None = None) -> None:  # noqa: A002 - the word of the card
        self._config = config
        self._index = index or SymbolIndex(DerivedStore(cache_dir), max_file_bytes=config.max_file_bytes, workers=config.workers)
        self._card = embedded_card(id, config)

    @property
    def card(self) -> ExpertCard:
        return self._card

    @property
    def index(self) -> SymbolIndex:
        """The index itself, for rooms that resolve lines to definitions."""
        return self._index

    async def search(self, call: ExpertCall) -> ExpertResult:
        """Definitions and uses for the call's terms, in the call's projects and nowhere else.

        When the index cannot be brought up to date in 80 % of the budget, the answer comes from what is ready and is `partial`, and
        indexing goes on for the next call.

        Raises:
            ExpertError: `timeout` when nothing was indexed in time, or found in what was; `rejected` for a path or a regular
                expression that cannot be searched; `crashed` when extraction failed for every file; what git raises when no project
                can be listed.
        """
        return await answer_soon(self._search, call)

    async def _search(self, call: ExpertCall, soon: bool) -> ExpertResult:
        path = scope_path(call.path)
        began = time.monotonic()
        ready = await bring_up_to_date(self._index, call, REFRESH_SHARE * call.budget_ms / 1000, soon=soon)
        ready.raise_failure()
        failures = ready.failures
        tables = tuple((p.id, self._index.table(p)) for p in call.projects if p.id not in failures)
        space = SearchSpace(tables, path, languages_named(call.language) or frozenset(self._config.languages))
        try:
            with anyio.fail_after(max(call.budget_ms / 1000 - (time.monotonic() - began), 0.01)):
                hits, notes = await _find(space, call)
        except TimeoutError:
            raise ExpertError(
                FailureClass.TIMEOUT, f"The names were not searched in {call.budget_ms} ms.", remedy="Allow more time."
            ) from None
        if not hits:
            ready.raise_doubt(SYNTAX_LANGUAGES)
        if call.language is not None and not languages_named(call.language) <= SYNTAX_LANGUAGES:
            notes.append(f"symbols reads no {call.language}")
        notes += [f"{project}: {error}" for project, error in failures.items()]
        notes += ready.left_out()
        return ExpertResult(
            hits=tuple(hits[: call.limit]),
            partial=ready.partial(),
            notes=(*notes, *self._index.notes),
            server_name="tree-sitter",
            server_version=installed_version("tree-sitter"),
        )

    def underway(self, call: ExpertCall) -> Underway | None:
        """How many files of the call's projects are indexed, while some are not."""
        return underway(self._index, call)

    async def health(self, projects: tuple[Project, ...]) -> Health:
        """Which grammars are installed, with their versions. There is nothing to build beforehand: it indexes when it is asked."""
        versions = {
            language: installed_version(grammar_wheel(language)) or f"missing: pip install {grammar_wheel(language)}"
            for language in sorted(self._card.languages or SYNTAX_LANGUAGES)
        }
        ready = [language for language, version in versions.items() if not version.startswith("missing")]
        version = installed_version("tree-sitter")
        if not ready:
            return Health(False, "No grammar is installed.", failure=_UNCONFIGURED, version=version, details=versions)
        return Health(True, f"{len(ready)} of {len(versions)} languages", version=version, details=versions)

    async def aclose(self) -> None:
        """Stop indexing and release the store."""
        await self._index.aclose()


async def _find(space: SearchSpace, call: ExpertCall) -> tuple[list[Hit], list[str]]:
    """(ranked hits, notes) for one sub-query."""
    query = call.sub_query
    uses_first = call.intent is Intent.CROSS_REPO_IMPACT
    match query.form:
        case QueryForm.SYMBOL | QueryForm.LITERAL:
            names = read_names(query.terms or (query.text,), literal=query.form is QueryForm.LITERAL or not query.terms)
            notes = [] if names else ["nothing in the question looks like an identifier"]
            return look_up(space, names, limit=call.limit, uses_first=uses_first), notes
        case QueryForm.REGEX:
            return await _find_pattern(space, query.terms[0] if query.terms else query.text, call.limit)
        case QueryForm.KEYWORDS | QueryForm.TEXT:
            return _find_words(space, call, uses_first=uses_first), []


async def _find_pattern(space: SearchSpace, pattern: str, limit: int) -> tuple[list[Hit], list[str]]:
    names = sorted({name for _, table in space.tables for name in table.defined_names()})
    matching = await names_matching(pattern, names)
    found = [(project, d) for project, table in space.tables for name in matching for d in space.definitions(table.definitions_named(name))]
    found.sort(key=lambda f: (f[1].facts.test, f[1].facts.foreign, f[1].definition.name, f[0], f[1].file.path, f[1].definition.start_line))
    hits = [definition_hit(project, d, exact=True, score=1.0) for project, d in found[:limit]]
    return hits, ["the regular expression was matched against the names of definitions only"]


def _find_words(space: SearchSpace, call: ExpertCall, *, uses_first: bool) -> list[Hit]:
    """By words; what is written like an identifier in the question is looked up first, when it is defined."""
    query = call.sub_query
    spelled = [
        n for n in read_names(query.terms or (query.text,), literal=True) if any(t.definitions_named(n.name) for _, t in space.tables)
    ]
    identifiers = [n for n in spelled if n.qualifiers or "_" in n.name or not (n.name.islower() or n.name.istitle())]
    hits = look_up(space, identifiers, limit=call.limit, uses_first=uses_first) if identifiers else []
    if identifiers and not uses_first:
        hits = [hit for hit in hits if hit.is_definition]
    seen = {(hit.project, hit.path, hit.start_line, hit.symbol) for hit in hits}
    words = question_words(query.terms, query.text)
    rest = rank_by_words(space, words, limit=call.limit)
    return hits + [hit for hit in rest if (hit.project, hit.path, hit.start_line, hit.symbol) not in seen]


def scope_path(path: str | None) -> str:
    """The scope's path in normal form, empty for all. Raises ExpertError `rejected` for one that leaves the project."""
    if path is None:
        return ""
    parts = PurePosixPath(path).parts
    if path.startswith("/") or ".." in parts:
        raise ExpertError(
            FailureClass.REJECTED, "scope.path leaves the project.", remedy="Give a path relative to the project's root, without `..`."
        )
    return "/".join(parts)
