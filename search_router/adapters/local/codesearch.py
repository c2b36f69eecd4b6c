"""The `codesearch` expert: ranks files of the shared index for a question in words, and points at the best chunk of each."""

from __future__ import annotations

import asyncio
import contextlib
import importlib
import importlib.metadata
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

from search_router.adapters.base import Underway
from search_router.adapters.local.cards import embedded_card
from search_router.adapters.local.code_chunks import Chunk
from search_router.adapters.local.code_plan import SearchPlan, Stage, plan_search
from search_router.adapters.local.code_stages import StageTally
from search_router.adapters.local.code_words import told_words
from search_router.adapters.local.index_readiness import Readiness, answer_soon, bring_up_to_date, underway
from search_router.adapters.local.languages import LANGUAGES
from search_router.adapters.local.named_projects import project_factors
from search_router.adapters.local.symbol_index import SymbolIndex
from search_router.adapters.local.symbol_lookup import UNVERIFIED, WantedName, qualified_level
from search_router.adapters.local.symbol_table import IndexedFile, SymbolTable
from search_router.adapters.local.vector_index import VectorIndex
from search_router.config.experts import CodeSearchConfig
from search_router.errors import ExpertError, FailureClass
from search_router.schema import Definition, ExpertCall, ExpertResult, Health, Hit, Project

if TYPE_CHECKING:
    from search_router.adapters.local.code_index import ProjectCode
    from search_router.adapters.local.code_rank import RankedFile
    from search_router.adapters.local.embed_protocol import Floats

RANKING: Final = "search_router.adapters.local.code_scope"
"""Needs numpy, 0.1 s to import: loaded in a thread at the first question of a process, while git is waited for."""
REFRESH_SHARE: Final = 0.8
CATCH_UP_SECONDS: Final = 3600.0
BUILD_SHARE: Final = 0.9
"""Parts of a call's time after which the answer comes from what is ready."""
TYPES: Final = frozenset({"class", "struct", "trait", "interface", "module", "type", "enum"})


class CodeSearchExpert:
    """Lexical, structural and vector ranking over the index that it shares with `symbols` and `semantic`."""

    def __init__(self, expert_id: str, config: CodeSearchConfig, index: SymbolIndex, vectors: VectorIndex | None = None) -> None:
        self._config = config
        self._index = index
        wanted = config.stages.vectors and config.weights.vector > 0
        self._vectors = vectors if vectors is not None and vectors.enabled and wanted else None
        self._imports_above = config.stages.summaries_above if config.stages.summaries else None
        self._code: dict[Path, ProjectCode] = {}
        self._builds: dict[Path, asyncio.Task[ProjectCode]] = {}
        self.on_ranked: Callable[[Project, Sequence[RankedFile]], None] | None = None
        """Told of each ranking with its signals; for measurements."""
        self.card = embedded_card(expert_id, config)

    @property
    def index(self) -> SymbolIndex:
        """The index that it reads."""
        return self._index

    async def search(self, call: ExpertCall) -> ExpertResult:
        """The best files for the question, one hit a file at its best chunk.

        Raises:
            ExpertError: as `symbols`: nothing indexed in time, extraction failed everywhere, no project can be listed.
        """
        return await answer_soon(self._search, call)

    async def _search(self, call: ExpertCall, soon: bool) -> ExpertResult:
        until = time.monotonic() + BUILD_SHARE * call.budget_ms / 1000
        plan = plan_search(call, self._config)
        tally = StageTally(plan)
        loading = None if RANKING in sys.modules else asyncio.create_task(asyncio.to_thread(importlib.import_module, RANKING))
        try:
            ready = await bring_up_to_date(self._index, call, REFRESH_SHARE * call.budget_ms / 1000, soon=soon)
        finally:
            if loading is not None:
                await asyncio.wait({loading})
        ready.raise_failure()
        behind: list[str] = []
        notes: list[str] = []
        ranked = [project for project in call.projects if project.id not in ready.failures]
        codes = [await self._current(project, until, growing=project.id not in ready.reports) for project in ranked]
        nearest = await asyncio.gather(*(self._similar(project, ready, until, notes, tally) for project in ranked))
        behind += [project.id for project, (_, current) in zip(ranked, codes, strict=True) if not current]
        hits = self._rank(ranked, [code for code, _ in codes], plan, call.sub_query.text, nearest, tally)
        if behind and not hits and len(behind) == len(call.projects) - len(ready.failures):
            raise ExpertError(FailureClass.TIMEOUT, "The index is being built; building goes on.", remedy="Ask again.")
        if not hits:
            ready.raise_doubt(frozenset(LANGUAGES))
        return ExpertResult(
            hits=tuple(hits),
            partial=_partial(ready, behind),
            notes=(*self._notes(ready), *notes),
            server_name="codesearch",
            settled=self._vectors is None or None not in nearest,
            server_version=self._vectors.label if self._vectors else None,
            stages=tally.facts(),
        )

    async def catch_up(self, projects: tuple[Project, ...]) -> None:
        """See `CatchesUp`: files, segments and vectors."""
        nested = tuple(project.root for project in projects)
        until = time.monotonic() + CATCH_UP_SECONDS
        for project in projects:
            with contextlib.suppress(ExpertError):
                await self._index.refresh(project, nested=nested)
                await asyncio.to_thread(importlib.import_module, RANKING)
                await self._current(project, until, growing=False)
                if self._vectors is not None:
                    await self._vectors.current(project, until, patient=True)

    def is_complete(self, projects: tuple[Project, ...]) -> bool:
        """See `Indexed`."""
        return all(p.total is not None and p.ready == p.total for p in map(self._index.progress, projects))

    def underway(self, call: ExpertCall) -> Underway | None:
        """How many files of the call's projects are indexed, while some are not."""
        return underway(self._index, call)

    async def health(self, projects: tuple[Project, ...]) -> Health:
        """Always there: it indexes when it is asked."""
        details = self._vectors.details if self._vectors else {"embedder": "none"}
        return Health(True, "indexes on demand", version=f"numpy {importlib.metadata.version('numpy')}", details=details)

    async def aclose(self) -> None:
        if builds := [build for build in self._builds.values() if not build.done()]:
            await asyncio.wait(builds)  # a thread cannot be stopped, and must not outlive its loop
        self._builds.clear()
        self._code.clear()
        if self._vectors is not None:
            await self._vectors.aclose()
        await self._index.aclose()

    async def _current(self, project: Project, until: float, *, growing: bool) -> tuple[ProjectCode, bool]:
        """(segments, whether they are in step with the table). What is not built until then goes on, and the last ones are given.

        Of a table that is `growing` one build is enough: it would be behind again when it is done.
        """
        from search_router.adapters.local.code_index import ProjectCode  # numpy stays out of the start

        table = self._index.table(project)
        code = self._code.setdefault(project.root, ProjectCode())
        while not code.is_current(table):
            build = self._builds.get(project.root)
            if build is None:
                files, generation = {f.path: f for f in table.files()}, table.generation
                build = self._builds[project.root] = asyncio.create_task(
                    asyncio.to_thread(code.successor, files, generation, self._imports_above)
                )
            done, _ = await asyncio.wait({build}, timeout=max(0.0, until - time.monotonic()))
            if not done:
                return code, False
            if self._builds.get(project.root) is build:  # the first who waited for it keeps it, however long ago it was begun
                del self._builds[project.root]
                self._code[project.root] = build.result()
            code = self._code.get(project.root, code)
            if growing and len(code.segments):
                break
        if not growing:
            self._index.keep_words(project, code)
        return code, True

    async def _similar(
        self, project: Project, ready: Readiness, until: float, notes: list[str], tally: StageTally
    ) -> Callable[[tuple[str, ...]], Floats] | None:
        """What gives the cosine of files; None, and a note, when some file has none yet: it would rank low for no fault of its own."""
        if self._vectors is None or project.id not in ready.reports:
            tally.idle(Stage.VECTORS, "no vectors are configured" if self._vectors is None else f"{project.id}: not every file is indexed")
            return None
        with tally.run(Stage.VECTORS, 0) as stage:
            try:
                similar = await self._vectors.similar(project, ready.call.sub_query.text, until)
            except ExpertError as error:
                stage.idle(f"{project.id}: {error.failure.value}")
                notes.append(f"{project.id}: ranked without vectors: {error}")
                return None
            notes += [note for note in self._vectors.notes if note not in notes]
            if not similar.current:
                stage.idle(f"{project.id}: the newest files have none yet")
                notes.append(f"{project.id}: ranked without vectors: those of the newest files are being made; ask again")
                return None
            scores = similar.scores()
            stage.in_ += len(similar)
            stage.out += len(similar)
        return scores

    def _rank(
        self,
        projects: Sequence[Project],
        codes: Sequence[ProjectCode],
        plan: SearchPlan,
        question: str,
        nearest: Sequence[Callable[[tuple[str, ...]], Floats] | None],
        tally: StageTally,
    ) -> list[Hit]:
        """The files of all projects, ranked as one collection."""
        from search_router.adapters.local.code_rank import Admitted, Known, rank_files  # numpy stays out of the start
        from search_router.adapters.local.code_scope import admit_files

        if not projects:
            return []
        tables = [self._index.table(project) for project in projects]
        defined = [_define(table, plan, tally) for table in tables]
        admitted = [admit_files(code, plan, tally) for code in codes]
        known = [
            Known(code.central, {path: value for path, (value, _) in names.items()}, similar)
            for code, names, similar in zip(codes, defined, nearest, strict=True)
        ]
        if len(projects) == 1:
            fields, whole, everything = codes[0].fields, admitted[0], known[0]
        else:
            factors = project_factors(question, projects)
            fields = type(codes[0].fields)([segment for code in codes for segment in code.segments])
            masks = [mask for each in admitted for mask in each.mask]
            damping = [values * factor for each, factor in zip(admitted, factors, strict=True) for values in each.damping]
            whole, everything = Admitted(masks, damping), Known.of_all(known)
        owner = [number for number, code in enumerate(codes) for _ in code.segments]
        ranked = rank_files(fields, plan, whole, everything, tally)
        if self.on_ranked is not None:
            for number, project in enumerate(projects):
                self.on_ranked(project, [file for file in ranked if owner[file.segment] == number])
        found: list[Hit] = []
        for r in ranked:
            number = owner[r.segment]
            file = tables[number].get(r.path)
            if file is not None:
                named = defined[number].get(r.path, (0.0, None))[1]
                place = named or _telling_definition(tables[number].definitions_in(r.path, plan.words), r.chunk, plan.words)
                found.append(_hit(projects[number].id, file, r, place, exact=named is not None))
        return found

    def _notes(self, ready: Readiness) -> tuple[str, ...]:
        notes = [f"{project}: {error}" for project, error in ready.failures.items()]
        return (*notes, *ready.left_out(), *self._index.notes)


def _partial(ready: Readiness, behind: list[str]) -> str | None:
    text = ready.partial()
    said = [*([text] if text else []), *(f"{name}: the newest files are not ranked yet; ask again" for name in behind)]
    return "; ".join(said) or None


def _define(table: SymbolTable, plan: SearchPlan, tally: StageTally) -> dict[str, tuple[float, Definition]]:
    """The stage `definitions`: see `_defining`."""
    if not plan.runs(Stage.DEFINITIONS) or not (plan.names or plan.members):
        tally.idle(Stage.DEFINITIONS, "the question has no name")
        return {}
    with tally.run(Stage.DEFINITIONS, len(plan.names)) as stage:
        defined = _defining(table, plan.names) | _defining_members(table, plan.members)
        stage.out += len(defined)
    return defined


def _defining(table: SymbolTable, names: tuple[str, ...]) -> dict[str, tuple[float, Definition]]:
    """Files that define a name of the question, with that definition: 1.0 for a type or module, 0.7 for anything else."""
    found: dict[str, tuple[float, Definition]] = {}
    for name in names:
        for spelled in (name, *table.names_like(name)):
            for each in table.definitions_named(spelled):
                value = 1.0 if each.definition.kind in TYPES else 0.7
                if value > found.get(each.file.path, (0.0,))[0]:
                    found[each.file.path] = value, each.definition
    return found


def _defining_members(table: SymbolTable, members: tuple[WantedName, ...]) -> dict[str, tuple[float, Definition]]:
    """Files that define a member which the question names together with its holder: 1.0, and that member is the place, not the holder."""
    found: dict[str, tuple[float, Definition]] = {}
    for wanted in reversed(members):  # of several in one file the first that was named
        for each in table.definitions_named(wanted.name):
            container = tuple(each.definition.container.split(".")) if each.definition.container else ()
            if qualified_level(wanted.qualifiers, container, each.facts.parts) < UNVERIFIED:
                found[each.file.path] = 1.0, each.definition
    return found


def _telling_definition(definitions: Sequence[Definition], chunk: Chunk, words: Mapping[str, float]) -> Definition | None:
    """The definition that a file's hit points at; None for the chunk as it is.

    The one whose name has most of the question's words, among those that begin in the chunk. One elsewhere in the file is better when
    its name has more of them, and at least half; one of a single line is only worth more than the text around it when it has half.
    """
    asked = sum(words.values())
    best: tuple[float, bool, int, Definition] | None = None
    for definition in definitions:
        name, told = told_words(definition.name), 0.0
        for word, weight in words.items():  # in their order: sums of floats depend on it
            if word in name:
                told += weight
        here = chunk.start <= definition.start_line <= chunk.end
        short = definition.start_line == definition.end_line
        if told <= 0 or (2 * told < asked and (short or not here)):
            continue
        if best is None or (told, here, -definition.start_line) > best[:3]:
            best = told, here, -definition.start_line, definition
    return best[3] if best else None


def _hit(project: str, file: IndexedFile, ranked: RankedFile, definition: Definition | None, *, exact: bool) -> Hit:
    """A file as a hit: at the definition that the question names or tells of, else at its best chunk."""
    return Hit(
        project=project,
        path=ranked.path,
        start_line=definition.start_line if definition else ranked.chunk.start,
        end_line=definition.end_line if definition else ranked.chunk.end,
        symbol=definition.qualified if definition else None,
        native_score=round(ranked.score, 4),
        content_hash=file.content_hash,
        is_definition=exact,
        is_exact=exact,
    )
