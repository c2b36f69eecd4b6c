"""The `grep` expert: exact text and keywords in live work trees, by ripgrep or `git grep`, ranked.

Every call reads the files as they are now, so there is no content hash to give. For names, an index that is in step with the tree says in
which files they can be; otherwise, and where nothing is found there, all files are read.
"""

from __future__ import annotations

import contextlib
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import anyio

from search_router.adapters.local.cards import embedded_card
from search_router.adapters.local.git_grep import GIT_GREP_NOTE
from search_router.adapters.local.grep_census import Census
from search_router.adapters.local.grep_engine import Engine, EngineChoice, choose_engine
from search_router.adapters.local.grep_matches import is_utf8
from search_router.adapters.local.grep_nothing import count_utf_32, explain_nothing
from search_router.adapters.local.grep_patterns import MAX_TERMS, Patterns, read_patterns
from search_router.adapters.local.grep_rank import Place, Tally, rank_places
from search_router.adapters.local.grep_run import WORD_MATCHES, Allowance, ProjectRun, RunReport, Target
from search_router.adapters.local.grep_scope import globs_for_language, has_parent_ignore_file, holds_scope, nested_roots, read_scope_path
from search_router.adapters.local.symbol_index import SymbolIndex
from search_router.adapters.local.withheld import withholds_place
from search_router.config.experts import GrepConfig
from search_router.errors import MAKE_READABLE, ExpertError, FailureClass
from search_router.schema import ExpertCall, ExpertCard, ExpertResult, ExpertStatus, Health, Hit, Project

PARALLEL_PROJECTS = 2
SHARE_FOR_READING = 0.8
"""Of the budget; ranking what was read by then, and answering in time, needs the rest."""
CROWDED_MATCHES, CROWDED_SECONDS, CROWDED_KEPT = 2 * WORD_MATCHES, 600.0, 4096
"""A word with more matches in a project is remembered for a while: its lines are not read before they are counted."""
EXPLAIN_SECONDS = 0.5
EXPLAINED_PROJECTS = 5
_NOTES_KEPT = 12


@dataclass(slots=True)
class _Reading:
    """One call on its way: what each project's run came to, in the order of the call's projects."""

    tally: Tally
    allowance: Allowance = field(default_factory=Allowance)
    reports: dict[str, RunReport] = field(default_factory=dict[str, RunReport])
    failures: dict[str, ExpertError] = field(default_factory=dict[str, ExpertError])
    census: Census | None = None
    is_whole: bool = True
    """Whether no index said where to look."""
    is_late: bool = False


class GrepExpert:
    """Searches live files. Holds nothing between calls but the choice of its engine, and which words were on very many lines."""

    def __init__(
        self,
        id: str,  # noqa: A002 - the card calls it id
        config: GrepConfig,
        *,
        engine: EngineChoice = "auto",
        index: SymbolIndex | None = None,
    ) -> None:
        self._config = config
        self._choice: EngineChoice = engine
        self._index = index
        self._engine: Engine | None = None
        self._crowded: OrderedDict[tuple[Path, str, str | None, str], float] = OrderedDict()
        self._card = embedded_card(id, config)

    @property
    def card(self) -> ExpertCard:
        return self._card

    async def search(self, call: ExpertCall) -> ExpertResult:
        """The best places for the call's terms, in the call's projects and nowhere else.

        What was read when 80 % of the budget was gone is answered as `partial`.

        Raises:
            ExpertError: `rejected` for terms, a regex, a path or a language that cannot be searched; `timeout` when nothing was found
                in time; `unconfigured`, `unavailable` for a missing engine or root; `crashed` when the engine failed without matches.
        """
        patterns = read_patterns(call.sub_query)
        targets, notes = _targets_of(call)
        engine = await self._chosen_engine()
        reading = _Reading(Tally(patterns))
        if by_words := patterns.by_words:
            reading.allowance.matches = WORD_MATCHES
        with anyio.move_on_after(call.budget_ms / 1000 * SHARE_FOR_READING) as in_time:
            is_crowded = by_words and self._is_crowded(targets, patterns)
            if not is_crowded:
                await self._read_all(engine, targets, reading, await self._narrow(engine, targets, patterns, call))
                if not reading.is_whole and not reading.tally.is_telling:
                    reading = _Reading(Tally(patterns))
                    await self._read_all(engine, targets, reading, {})
            if is_crowded or (by_words and reading.allowance.is_used_up):
                searchable = [target for target in targets if target.project.id not in reading.failures]
                reading = await self._read_best(engine, searchable, call, reading)
        reading.is_late = in_time.cancelled_caught
        _raise_failure(reading, targets, call.budget_ms)
        if not reading.tally.files:
            notes += [] if reading.is_late else await self._explain(engine, targets, reading)
            _raise_doubt(reading)
        return _answer(engine, call, reading, len(targets), notes)

    async def health(self, projects: tuple[Project, ...]) -> Health:
        """Whether an engine runs, which one, and its version."""
        try:
            engine = await self._chosen_engine()
        except ExpertError as error:
            return Health(False, str(error), ExpertStatus(error.failure.value))
        details = {"engine": engine.name, "program": engine.program}
        if engine.name == "git":
            return Health(True, GIT_GREP_NOTE, version=engine.version, details=details)
        return Health(True, "ready", version=engine.version, details=details)

    async def aclose(self) -> None:
        """Nothing to release: every child ends with its call."""

    async def _chosen_engine(self) -> Engine:
        # Two first calls at once may both choose; they choose the same.
        if self._engine is None:
            self._engine = await choose_engine(self._config.rg, self._choice)
        return self._engine

    async def _read_all(self, engine: Engine, targets: Sequence[Target], reading: _Reading, narrowed: Mapping[str, Sequence[str]]) -> None:
        """Read every file of each project, or those that were named for it."""
        reading.is_whole = not narrowed

        async def read(target: Target) -> RunReport | None:
            if reading.allowance.is_used_up:
                return None
            if (files := narrowed.get(target.project.id)) is not None:
                with contextlib.suppress(ExpertError):  # whatever it was that could not be done with these, all files are another matter
                    return await self._run(engine, target, reading).search_in(files)
            return await self._run(engine, target, reading).search()

        await _each(targets, reading, read)

    async def _narrow(self, engine: Engine, targets: Sequence[Target], patterns: Patterns, call: ExpertCall) -> dict[str, tuple[str, ...]]:
        """By project the only files that can have the names that are looked for, where an index in step with the tree knows them."""
        index = self._index
        if index is None or engine.name != "ripgrep" or not (patterns.whole_words and patterns.is_ascii):
            return {}
        nested = tuple(project.root for project in call.projects)
        narrowed: dict[str, tuple[str, ...]] = {}

        async def ask(project: Project) -> None:
            with contextlib.suppress(ExpertError):
                if (files := await index.files_that_may_have(project, nested, patterns.needles)) is not None:
                    narrowed[project.id] = files

        async with anyio.create_task_group() as tasks:  # each may wait for a moment, and all for no longer than one
            for target in targets:
                tasks.start_soon(ask, target.project)
        return narrowed

    async def _read_best(self, engine: Engine, targets: Sequence[Target], call: ExpertCall, first: _Reading) -> _Reading:
        """Count the matches of all files, then read the lines of those that can be among the best."""
        patterns = read_patterns(call.sub_query)
        reading = _Reading(Tally(patterns), census=(census := Census(patterns)))
        runs = {target.project.id: self._run(engine, target, reading) for target in targets}
        await _each(targets, reading, lambda target: runs[target.project.id].count(census, first.reports.get(target.project.id)))
        self._remember_crowded(targets, census)
        searched = _files_searched(reading, len(targets))
        files = census.best_files(call.intent, call.limit, searched)
        reading.tally = Tally(census.telling_patterns(files, searched))

        async def read(target: Target) -> RunReport | None:
            run, project = runs[target.project.id], target.project.id
            for named in (False, True):
                if paths := [path for id, path in files if id == project and ((id, path) in census.named) is named]:  # noqa: A001 - the card calls it id
                    await run.read(paths, reading.tally, named=named)
            return reading.reports.get(project)

        await _each(targets, reading, read)
        census.complete(reading.tally)
        return reading

    def _is_crowded(self, targets: Sequence[Target], patterns: Patterns) -> bool:
        """Whether a word of the question was on so many lines a while ago that reading them as they come is certain to be stopped."""
        now = time.monotonic()
        keys = ((t.project.root, t.scope, t.language, needle) for t in targets for needle in patterns.needles)
        return any(self._crowded.get(key, 0.0) > now for key in keys)

    def _remember_crowded(self, targets: Sequence[Target], census: Census) -> None:
        until = time.monotonic() + CROWDED_SECONDS
        for target in targets:
            for needle, matches in zip(census.patterns.needles, census.matches_in(target.project.id), strict=True):
                if matches > CROWDED_MATCHES:
                    self._crowded[target.project.root, target.scope, target.language, needle] = until
        while len(self._crowded) > CROWDED_KEPT:
            self._crowded.popitem(last=False)

    def _run(self, engine: Engine, target: Target, reading: _Reading) -> ProjectRun:
        return ProjectRun(engine, self._config, target, reading.tally, reading.allowance)

    async def _explain(self, engine: Engine, targets: Sequence[Target], reading: _Reading) -> list[str]:
        notes: list[str] = []
        with anyio.move_on_after(EXPLAIN_SECONDS):
            for target in targets[:EXPLAINED_PROJECTS]:
                if report := reading.reports.get(target.project.id):
                    notes += await explain_nothing(engine, self._config, target, report)
                    report.utf_32 = await count_utf_32(engine, self._config, target)
        return notes


async def _each(targets: Sequence[Target], reading: _Reading, work: Callable[[Target], Awaitable[RunReport | None]]) -> None:
    """Do the work for each project that has not failed, a few at once; failures become values."""
    limiter = anyio.CapacityLimiter(PARALLEL_PROJECTS)

    async def do(target: Target) -> None:
        async with limiter:
            try:
                report = await work(target)
            except ExpertError as error:
                reading.failures[target.project.id] = error
            else:
                if report is not None:
                    reading.reports[target.project.id] = report

    async with anyio.create_task_group() as tasks:
        for target in targets:
            if target.project.id not in reading.failures:
                tasks.start_soon(do, target)


def _targets_of(call: ExpertCall) -> tuple[list[Target], list[str]]:
    """(what to search, notes on projects that have no such path)."""
    scope = read_scope_path(call.path)
    globs_for_language(call.language)  # refuses an unknown one before anything runs
    targets: list[Target] = []
    notes: list[str] = []
    for project in call.projects:
        if not holds_scope(project.root, scope) or withholds_place(project, scope):
            notes.append(f"{project.id} has no path {scope!r}")
            continue
        below = project.kind == "directory" and has_parent_ignore_file(project.root)
        targets.append(Target(project, scope, call.language, nested_roots(project, call.projects), below))
    return targets, notes


def _raise_failure(reading: _Reading, targets: Sequence[Target], budget_ms: int) -> None:
    """A pattern that is refused is refused everywhere; other failures are the answer only when no project could be searched."""
    for failure in reading.failures.values():
        if failure.failure is FailureClass.REJECTED or len(reading.failures) == len(targets):
            raise failure
    if reading.is_late and not reading.tally.files:
        raise ExpertError(
            FailureClass.TIMEOUT,
            f"Nothing was found in the {budget_ms} ms that the search had, and not everything was read.",
            remedy="Narrow the scope, or allow more time.",
        )


def _raise_doubt(reading: _Reading) -> None:
    """Nothing was found: where some files could not be read, that proves nothing."""
    unread = [each for report in reading.reports.values() for each in report.unread]
    utf_32 = sum(report.utf_32 for report in reading.reports.values())
    doubts: list[str] = []
    if unread:
        doubts.append(f"{len(unread)} path(s) could not be read (the first: {unread[0].path}: {unread[0].reason})")
    if utf_32:
        doubts.append(f"{utf_32} file(s) are UTF-32, which ripgrep does not read")
    if doubts:
        raise ExpertError(
            FailureClass.SUSPECT_EMPTY,
            f"Found nothing, but {' and '.join(doubts)}, so absence is not proven.",
            remedy=MAKE_READABLE,
        )


def _answer(engine: Engine, call: ExpertCall, reading: _Reading, asked: int, notes: list[str]) -> ExpertResult:
    reports = [reading.reports[p.id] for p in call.projects if p.id in reading.reports]
    frequency = reading.census.frequency if reading.census else None
    places = rank_places(reading.tally, call.intent, call.limit, files=_files_searched(reading, asked), frequency=frequency)
    notes += [note for report in reports for note in report.notes]
    notes += _reading_notes(engine, reading)
    return ExpertResult(
        hits=tuple(_hit(place, exact=not reading.tally.patterns.by_words) for place in places),
        partial=_partial(reading, call.budget_ms),
        notes=tuple(dict.fromkeys(notes))[:_NOTES_KEPT],
        server_name=engine.name,
        server_version=engine.version,
    )


def _files_searched(reading: _Reading, asked: int) -> int:
    """0 where one run was cut short: its count is missing, and a count of the others would be too small."""
    files = [report.files for report in reading.reports.values()]
    return sum(files) if len(files) == asked and all(files) else 0


def _reading_notes(engine: Engine, reading: _Reading) -> list[str]:
    notes = [GIT_GREP_NOTE] if engine.name == "git" else []
    patterns = reading.tally.patterns
    if not patterns.is_ascii and (engine.name == "git" or not patterns.fixed):
        notes.append("letters beyond ASCII were looked for as UTF-8 only: files in Latin-1 and other encodings are not matched by them")
    if patterns.dropped:
        notes.append(f"only the first {MAX_TERMS} terms were searched, {patterns.dropped} were left out")
    binary = sorted(file.path for file in reading.tally.files.values() if file.is_binary)
    if binary:
        notes.append(f"{len(binary)} file(s) turned out to be binary and were read up to their first NUL byte only: {binary[0]!r}")
    return notes


def _partial(reading: _Reading, budget_ms: int) -> str | None:
    reasons: list[str] = []
    if reading.allowance.is_used_up:
        reasons.append("too many matches: only the first that were read are ranked; use rarer words or a narrower scope")
    if reading.is_late:
        reasons.append(f"not everything was read within {SHARE_FOR_READING:.0%} of {budget_ms} ms")
    reasons += [f"project {project}: {failure.message}" for project, failure in sorted(reading.failures.items())]
    return "; ".join(reasons) or None


def _hit(place: Place, *, exact: bool) -> Hit:
    flags = ("long-line",) * place.is_cut + ("binary",) * place.is_binary + ("path-not-utf8",) * (not is_utf8(place.path))
    return Hit(
        project=place.project,
        path=place.path,
        start_line=place.start_line,
        end_line=place.end_line,
        is_exact=exact,
        native_score=place.score,
        flags=flags,
    )
