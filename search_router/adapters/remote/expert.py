"""What all remote experts share: one question to each project that it concerns, under one deadline, and one account of how that went.

A kind of remote expert only has to say how it asks about one project (`Asker`).
"""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, Protocol

import anyio
import anyio.to_thread

from search_router.adapters.base import Underway
from search_router.adapters.remote.hits import record_hits
from search_router.adapters.remote.index_state import IndexProbe, Seen, compare_index, flag_stale, index_time
from search_router.adapters.remote.records import Record
from search_router.adapters.remote.surroundings import require_variables
from search_router.adapters.remote.suspicion import Suspicion
from search_router.adapters.remote.template import PROJECT_NAMES, placeholders_in, values_of
from search_router.config.remote import AnswerConfig, RemoteConfig
from search_router.errors import ExpertError, FailureClass
from search_router.schema import ExpertCall, ExpertCard, ExpertResult, ExpertStatus, Health, Hit, Project, QueryForm, SubQuery

SHARE_OF_BUDGET = 5 / 6
"""The rest is for saying why there is no answer, before the router stops listening and could only call it a time-out."""
CANARY_LIMIT = 3


@dataclass(frozen=True, slots=True)
class Told:
    """What came back about one project."""

    records: Sequence[Record]
    cut: int = 0
    server_name: str | None = None
    server_version: str | None = None
    noise: int = 0
    long_lines: int = 0


@dataclass(frozen=True, slots=True)
class State:
    """How the other system is at the moment, without asking it."""

    reason: str
    version: str | None = None
    failure: FailureClass | None = None
    details: tuple[tuple[str, str], ...] = ()


class Asker(Protocol):
    """One kind of other system."""

    @property
    def templates(self) -> Any:
        """Everything that may hold placeholders: whether the question goes to each project depends on it."""
        ...

    @property
    def answer(self) -> AnswerConfig:
        """What its records are: how lines are counted, what a hit is worth."""
        ...

    @property
    def transport(self) -> Literal["command", "stdio", "sse", "http"]: ...

    async def ask(self, values: dict[str, Any], project: Project, seconds: float) -> Told:
        """One project's records, or ExpertError."""
        ...

    @property
    def share_of_start(self) -> float:
        """How far the start of its servers is, 0 to 1 when none starts."""
        ...

    def state(self) -> State:
        """How it is now; cheap, starts nothing."""
        ...

    async def aclose(self) -> None: ...


class RemoteExpert:
    """Any other system as an expert."""

    def __init__(self, expert_id: str, config: RemoteConfig, kind: str, asker: Asker, probe: IndexProbe | None = None) -> None:
        self._config = config
        self._probe = probe
        self._asker = asker
        self._parallel = asyncio.Semaphore(config.max_parallel)
        self._suspicion = Suspicion()
        self._each_project = bool(PROJECT_NAMES & placeholders_in(asker.templates))
        self.card = ExpertCard(
            id=expert_id,
            kind=kind,
            precision_class=config.precision_class,
            engine=config.engine,
            intents=frozenset(config.intents),
            languages=frozenset(config.languages) or None,
            transport=asker.transport,
            cap_ms=config.cap_ms,
            freshness=config.freshness,
        )

    async def search(self, call: ExpertCall) -> ExpertResult:
        require_variables(self._config.requires_env)
        if not call.projects:
            return ExpertResult(())
        deadline = anyio.current_time() + call.budget_ms / 1000 * SHARE_OF_BUDGET
        await self._enter(deadline)
        try:
            asked = call.projects[: self._config.max_projects] if self._each_project else call.projects[:1]
            answers = await self._ask_all(call, asked, deadline)
            result = await self._gather(call, asked, answers)
            if not result.hits and self._suspicion.wants_canary and self._config.canary:
                await self._sing(call, deadline)
        finally:
            self._parallel.release()
        if not result.hits and (doubt := self._suspicion.doubt):
            raise ExpertError(FailureClass.SUSPECT_EMPTY, doubt, remedy="Build its index again, or restart it.")
        return result

    def compare(self, found: int, others: int) -> None:
        """Hear how many hits this expert had for a request, and how many the others had for the same."""
        self._suspicion.note(found, others)

    def underway(self, call: ExpertCall) -> Underway | None:
        """That its server is still starting, for a call that waits."""
        share = self._asker.share_of_start
        return Underway(f"{call.expert} is starting", share) if share < 1 else None

    async def health(self, projects: tuple[Project, ...]) -> Health:
        try:
            require_variables(self._config.requires_env)
        except ExpertError as error:
            return Health(False, str(error), ExpertStatus.UNCONFIGURED)
        state = self._asker.state()
        details = {**dict(state.details), "egress": self._config.egress}
        if state.failure is not None:
            return Health(False, state.reason, ExpertStatus(state.failure.value), state.version, details)
        if self._suspicion.doubt:
            details["suspicion"] = self._suspicion.doubt
        for name, state_of_index in self._probe.known().items() if self._probe is not None else ():
            made = f"of {state_of_index.made_at:.0f}" if state_of_index.made_at is not None else "of no told time"
            details[f"index.{name}"] = f"{state_of_index.commit or 'no commit'}, {made}"
        if self._config.index_files:
            times = await self._index_times(projects)
            if projects and not times:
                return Health(False, self._no_index(projects), ExpertStatus.INDEX_MISSING, state.version, details)
        return Health(True, state.reason, version=state.version, details=details)

    async def aclose(self) -> None:
        if self._probe is not None:
            await self._probe.aclose()
        await self._asker.aclose()

    # ------------------------------------------------------------------ asking

    async def _enter(self, deadline: float) -> None:
        """Wait for one of `max_parallel` places."""
        try:
            async with asyncio.timeout(max(0.0, deadline - anyio.current_time())):
                await self._parallel.acquire()
        except TimeoutError:
            raise ExpertError(
                FailureClass.BUSY, f"All its {self._config.max_parallel} places were taken until the time was over."
            ) from None

    async def _ask_all(self, call: ExpertCall, asked: Sequence[Project], deadline: float) -> list[Told | ExpertError]:
        """What each project's question came to, in the projects' order."""
        answers: list[Told | ExpertError] = [ExpertError(FailureClass.INTERNAL, "not asked")] * len(asked)
        times = await self._index_times(asked) if self._config.index_files else {}

        async def ask(at: int, project: Project) -> None:
            try:
                if self._config.index_files and project.id not in times:
                    raise ExpertError(FailureClass.INDEX_MISSING, self._no_index((project,)))
                values = values_of(call, project)
                if self._probe is not None:
                    self._probe.begin(project, values)
                answers[at] = await self._asker.ask(values, project, max(0.001, deadline - anyio.current_time()))
            except ExpertError as error:
                answers[at] = error

        if len(asked) == 1:
            await ask(0, asked[0])
            return answers
        async with anyio.create_task_group() as tasks:
            for at, project in enumerate(asked):
                tasks.start_soon(ask, at, project)
        return answers

    async def _gather(self, call: ExpertCall, asked: Sequence[Project], answers: Sequence[Told | ExpertError]) -> ExpertResult:
        """One list of hits, the projects' best first; the first failure where every project failed."""
        told = [(project, answer) for project, answer in zip(asked, answers, strict=True) if isinstance(answer, Told)]
        failed = [(project, answer) for project, answer in zip(asked, answers, strict=True) if isinstance(answer, ExpertError)]
        if not told:
            raise failed[0][1]
        lists: list[list[Hit]] = []
        lost = 0
        for project, answer in told:
            hits, nowhere = record_hits(self._asker.answer, answer.records, project, call.projects)
            lost += nowhere
            lists.append(hits)
        merged = [hit for row in itertools.zip_longest(*lists) for hit in row if hit is not None][: call.limit]
        seen, commits, unknown = await self._what_was_seen([project for project, _ in told], merged)
        if seen:
            merged = await anyio.to_thread.run_sync(lambda: list(flag_stale(merged, call.projects, seen)))
        cut = sum(answer.cut for _, answer in told)
        left_out = len(call.projects) - len(asked) if self._each_project else 0
        partial = [
            *(f"{project.id}: {error.failure.value}: {error.message}" for project, error in failed),
            *([f"{left_out} projects were not asked about (max_projects)"] if left_out else []),
            *([f"its answer was cut by {cut} bytes"] if cut else []),
        ]
        notes = [
            *unknown,
            *([f"{lost} of its items name no file of these projects"] if lost else []),
            *([f"{long} of its lines were cut for being too long"] if (long := sum(a.long_lines for _, a in told)) else []),
            *([f"its server printed {noise} lines that are no messages"] if (noise := max(a.noise for _, a in told)) else []),
        ]
        first = told[0][1]
        commit = commits[0] if len(commits) == 1 and len(told) == 1 else None
        return ExpertResult(tuple(merged), "; ".join(partial) or None, tuple(notes), cut, first.server_name, first.server_version, commit)

    async def _what_was_seen(self, asked: Sequence[Project], hits: Sequence[Hit]) -> tuple[dict[str, Seen], list[str], list[str]]:
        """(by project what its index has seen, commits of indexes, notes of what nobody could tell)."""
        if self._probe is None:
            times = await self._index_times(asked) if self._config.freshness == "index" and hits else {}
            return {name: Seen(made_at=made_at) for name, made_at in times.items()}, [], []
        seen: dict[str, Seen] = {}
        commits: list[str] = []
        notes: list[str] = []
        for project in asked:
            try:
                state = await self._probe.state(project)
                commits += [state.commit] if state.commit else []
                seen[project.id] = await compare_index(project, state)
            except ExpertError as error:
                notes.append(f"how old its index of {project.id} is, nobody can tell: {error.message}")
        return seen, commits, notes

    # ------------------------------------------------------------------ doubt

    async def _sing(self, call: ExpertCall, deadline: float) -> None:
        """Ask the canary question, which surely finds something, to tell a broken index from nothing to find."""
        words = tuple(self._config.canary.split())
        asked = SubQuery(QueryForm.LITERAL, (self._config.canary,) if len(words) == 1 else words, self._config.canary)
        values = values_of(_with(call, asked), call.projects[0])
        try:
            told = await self._asker.ask(values, call.projects[0], max(0.001, deadline - anyio.current_time()))
        except ExpertError:
            return  # no news of its own: the next call will hear of it
        self._suspicion.hear_canary(self._config.canary, len(told.records))

    async def _index_times(self, projects: Sequence[Project]) -> dict[str, float]:
        """When each project's index was last written; a project without one is not there."""
        globs = self._config.index_files

        def look() -> dict[str, float]:
            return {p.id: seen for p in projects if (seen := index_time(p.root, globs)) is not None}

        return await anyio.to_thread.run_sync(look)

    def _no_index(self, projects: Sequence[Project]) -> str:
        return f"There is no index of {', '.join(p.id for p in projects)[:200]}: nothing matches {', '.join(self._config.index_files)}."


def _with(call: ExpertCall, asked: SubQuery) -> ExpertCall:
    return replace(call, sub_query=asked, limit=CANARY_LIMIT, path=None, language=None)
