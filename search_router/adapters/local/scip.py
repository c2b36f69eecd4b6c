"""The scip expert: definitions, uses and implementations from any `index.scip` of a project, with what can be told of their age.

An index is what a language's own compiler or type checker resolved, written down once. Nothing runs here but a reader.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import anyio
import anyio.from_thread
import anyio.to_thread

from search_router.adapters.local.asked_names import asked_names, asks_for_calls
from search_router.adapters.local.cards import embedded_card
from search_router.adapters.local.gitfiles import head_now
from search_router.adapters.local.grep_scope import read_scope_path
from search_router.adapters.local.index_readiness import bring_up_to_date
from search_router.adapters.local.languages import languages_named
from search_router.adapters.local.scip_files import (
    IndexFile,
    SideCar,
    document_root,
    engine_of_tool,
    find_indexes,
    read_sidecar,
    sidecar_of,
)
from search_router.adapters.local.scip_freshness import judge_index
from search_router.adapters.local.scip_lookup import Findings, IndexReading, read_places
from search_router.adapters.local.scip_reader import ScipTable, Stamp, find_symbols, read_table
from search_router.adapters.local.scip_symbols import folded_pattern, symbol_pattern
from search_router.adapters.local.symbol_index import SymbolIndex
from search_router.adapters.local.symbol_lookup import WantedName
from search_router.adapters.local.symbol_space import SearchSpace
from search_router.adapters.local.textfile import read_text_file, split_lines
from search_router.adapters.local.typed_uses import arrange, rank_uses
from search_router.config.experts import ScipConfig
from search_router.errors import EvidenceError, ExpertError, FailureClass
from search_router.schema import ExpertCall, ExpertCard, ExpertResult, ExpertStatus, Health, Intent, Project

REFRESH_SHARE: Final = 0.6
MAX_TABLES: Final = 16
MAX_LINE_FILE: Final = 4 << 20
_REMEDY: Final = (
    "Run `search-router index scip`, or an indexer of the language (scip-typescript, scip-java, rust-analyzer scip, …) in the project."
)


@dataclass(frozen=True, slots=True)
class _Read:
    """An index with its side-car, as they were read for one question."""

    index: IndexFile
    table: ScipTable
    sidecar: SideCar | None


class ScipExpert:
    """What the SCIP indexes of the visible projects say about the names of a question.

    Args:
        index: the shared symbol index: it knows which files the work tree lists, and the definition around a line.
    """

    def __init__(self, id: str, config: ScipConfig, cache_dir: Path, index: SymbolIndex) -> None:  # noqa: A002 - the word of the card
        self._config = config
        self._cache_dir = cache_dir
        self._index = index
        self._tables: dict[Path, ScipTable] = {}
        self._card = embedded_card(id, config)

    @property
    def card(self) -> ExpertCard:
        return self._card

    async def search(self, call: ExpertCall) -> ExpertResult:
        """Uses and definitions of the names in the question; callers first when the question is about impact.

        Raises:
            ExpertError: `index-missing` when no project has an index; when all indexes fail, what the first one raised; `rejected` for a
                path that leaves the project; `timeout` when the time was over before anything was read.
        """
        path = read_scope_path(call.path)
        until = time.monotonic() + call.budget_ms / 1000
        wanted = asked_names(call)
        if not wanted:
            return ExpertResult(hits=(), notes=("nothing in the question looks like an identifier",))
        indexes = [(p, found) for p in call.projects for found in await self._indexes_of(p, call.projects)]
        if not indexes:
            raise ExpertError(FailureClass.INDEX_MISSING, "No project has an index.scip.", remedy=_REMEDY)
        ready = await bring_up_to_date(self._index, call, REFRESH_SHARE * call.budget_ms / 1000)
        ready.raise_failure()
        space = SearchSpace((), path, languages_named(call.language) or frozenset(self._config.languages))
        found, notes, failures, read = Findings(), [str(e) for e in ready.failures.values()], list[ExpertError](), list[_Read]()
        try:
            with anyio.fail_after(max(until - time.monotonic(), 0.01)):
                for project, index in indexes:
                    try:
                        one = await self._read_index(index, notes)
                        found.merge(await self._look_up(project, one, wanted, space, notes))
                        read.append(one)
                    except ExpertError as error:
                        failures.append(error)
        except TimeoutError:
            if not read:
                raise ExpertError(FailureClass.TIMEOUT, f"No index was read in {call.budget_ms} ms.", remedy="Allow more time.") from None
            notes.append(f"{len(indexes) - len(read) - len(failures)} indexes were not read in time")
        if failures and not read:
            raise failures[0]
        return self._result(call, found, notes, failures, read, ready.partial())

    async def health(self, projects: tuple[Project, ...]) -> Health:
        """Whether any project has an index, by looking for files only."""
        indexes = [found.file for p in projects for found in await self._indexes_of(p, projects)]
        if not indexes:
            return Health(False, f"No project has an index.scip. {_REMEDY}", ExpertStatus.INDEX_MISSING, details={"optional": "yes"})
        return Health(True, f"{len(indexes)} indexes", details={f"index {n}": str(file) for n, file in enumerate(indexes[:8], start=1)})

    async def world(self, projects: tuple[Project, ...]) -> str | None:
        """See `KnowsItsWorld`: the index files, which ignore rules may hide from the list, their side-cars, and HEAD."""
        told: list[str] = []
        for project in projects:
            told.append(f"{project.id} {await head_now(project)}")
            for found in await self._indexes_of(project, projects):
                told += [f"{file} {_stamp(file)}" for file in (found.file, sidecar_of(found.file))]
        return "\n".join(told)

    async def aclose(self) -> None:
        """Forget the tables; the shared index is closed by whoever made it."""
        self._tables.clear()
        await self._index.aclose()

    async def _indexes_of(self, project: Project, projects: tuple[Project, ...]) -> list[IndexFile]:
        nested = [p.root for p in projects if p.root.is_relative_to(project.root)]
        return await anyio.to_thread.run_sync(find_indexes, project, self._config.files, self._cache_dir, nested)

    async def _read_index(self, index: IndexFile, notes: list[str]) -> _Read:
        """The index's table, from memory while the file is the same."""

        def read() -> tuple[ScipTable, SideCar | None, str | None]:
            known = self._tables.get(index.file)
            try:
                stamp = Stamp.of(index.file.stat())
            except OSError:
                stamp = None
            if known is None or known.stamp != stamp:
                known = read_table(index.file, max_bytes=self._config.max_index_bytes, check=anyio.from_thread.check_cancelled)
            return known, *read_sidecar(index.file)

        table, sidecar, wrong = await anyio.to_thread.run_sync(read)
        self._tables.pop(index.file, None)
        self._tables[index.file] = table
        while len(self._tables) > MAX_TABLES:
            self._tables.pop(next(iter(self._tables)))
        notes += [wrong] if wrong else []
        return _Read(index, table, sidecar)

    async def _look_up(self, project: Project, read: _Read, wanted: list[WantedName], space: SearchSpace, notes: list[str]) -> Findings:
        prefix = document_root(read.index, read.table.root, project)
        freshness, note = await judge_index(project, prefix, read.sidecar, read.table.stamp.mtime_ns)
        notes += [note] if note else []
        engine = (read.sidecar.engine if read.sidecar else "") or engine_of_tool(
            (read.sidecar.tool if read.sidecar else "") or read.table.tool
        )
        reading = IndexReading(project.id, self._index.table(project), space, prefix, engine, freshness, _lines_reader(project))

        def look() -> tuple[Findings, bool]:
            found, complete = Findings(), True
            for each in wanted:
                for pattern in (re.compile(symbol_pattern(each.name)), re.compile(folded_pattern(each.name), re.IGNORECASE)):
                    matches = find_symbols(read.table, pattern, check=anyio.from_thread.check_cancelled)
                    complete &= matches.complete
                    places = read_places(reading, matches.documents, each)
                    found.merge(places)
                    if places.definitions or places.uses or places.unplaced:
                        break
            return found, complete

        found, complete = await anyio.to_thread.run_sync(look)
        if not complete:
            notes.append(f"{read.index.file.name}: the name appears too often; not all of it was read")
        return found

    def _result(
        self, call: ExpertCall, found: Findings, notes: list[str], failures: list[ExpertError], read: list[_Read], partial: str | None
    ) -> ExpertResult:
        uses_first = call.intent is Intent.CROSS_REPO_IMPACT
        uses = rank_uses(found.uses, call.limit, calls_only=asks_for_calls(call))
        hits = arrange(found.ranked_definitions(), uses, call.limit, uses_first=uses_first)
        if found.unplaced:
            notes.append(f"{found.unplaced} places are in files that the work tree does not list (ignored, removed or not read yet)")
        said = [*([partial] if partial else []), *(f"an index was not read: {error}" for error in failures)]
        commits = {one.sidecar.commit for one in read if one.sidecar and one.sidecar.commit}
        return ExpertResult(
            hits=hits,
            partial="; ".join(said) or None,
            notes=tuple(dict.fromkeys(notes)),
            server_name=", ".join(sorted({one.table.tool for one in read if one.table.tool})) or None,
            server_version=", ".join(sorted({one.table.version for one in read if one.table.version})) or None,
            index_commit=commits.pop() if len(commits) == 1 else None,
        )


def _stamp(file: Path) -> str:
    """What tells that a file changed; empty where there is none."""
    try:
        found = file.stat()
    except OSError:
        return ""
    return f"{found.st_size} {max(found.st_mtime_ns, found.st_ctime_ns)} {found.st_ino}"


def _lines_reader(project: Project) -> Callable[[str], list[str] | None]:
    """Lines of files, each read once for a question."""
    known: dict[str, list[str] | None] = {}

    def read(path: str) -> list[str] | None:
        if path not in known:
            try:
                known[path] = split_lines(read_text_file(project.root, path, max_bytes=MAX_LINE_FILE).text)
            except EvidenceError:
                known[path] = None
        return known[path]

    return read
