"""The router as a value: ask it, fetch from it. Every door uses this one; `opening` makes it from a configuration."""

from __future__ import annotations

import copy
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread

from search_router.adapters.base import CatchesUp, KeepsEntries
from search_router.adapters.local.sources import SourceReader
from search_router.adapters.registry import ExpertShelf
from search_router.answers import (
    BuildRef,
    ExperimentAnswer,
    FetchAnswer,
    FetchRequest,
    OutcomeAnswer,
    OutcomeRequest,
    ReceiptAnswer,
    RegisteredExpert,
    RegisteredProject,
    RegistryAnswer,
    ReplayAnswer,
)
from search_router.config.experts import CodeSearchConfig, DocsConfig, SymbolsConfig
from search_router.config.loader import LoadedConfig
from search_router.errors import RequestError, RequestRejected
from search_router.observing import NOBODY, Finished, Observer, Watch
from search_router.receipts.body import OutcomeFact
from search_router.receipts.store import ReceiptStore
from search_router.router.admission import Admission
from search_router.router.advisers import Advisers
from search_router.router.enrich.bandit import Draw
from search_router.router.enrich.enrichment import Enrichment, Noted
from search_router.router.enrich.looking import Look
from search_router.router.enrich.outcomes import Outcome
from search_router.router.enrich.replay import compare, read_recorded
from search_router.router.fanout import Progress
from search_router.router.fetch import Fetcher
from search_router.router.health import HealthWatch
from search_router.router.libraries import LibraryCatalog
from search_router.router.pipeline import run_request
from search_router.router.render import render_answer, render_fetch, render_outcome, render_registry
from search_router.router.request import parse_fetch, parse_outcome
from search_router.router.seal import Caller, Sealer, Used
from search_router.router.trace import Surroundings, Trace
from search_router.router.workspace import Workspace, discover_workspace
from search_router.router.workspace_watch import WorkspaceWatch
from search_router.schema import Answer, ConfigRef, ErrorReport, Health, SearchRequest, Status

LIBRARIES_SECONDS = 5.0
LAST_WORDS_SECONDS = 10.0


class Router:
    """One open router. Made by `open_router`; safe for any number of concurrent requests on one event loop."""

    def __init__(
        self,
        loaded: LoadedConfig,
        workspace: Workspace,
        experts: ExpertShelf,
        sealer: Sealer,
        store: ReceiptStore,
        build: BuildRef,
        notes: tuple[str, ...],
        enrichment: Enrichment,
        watch: WorkspaceWatch,
        advisers: Advisers | None = None,
        observer: Observer = NOBODY,
    ) -> None:
        self.loaded = loaded
        self.workspace = workspace
        self.experts = experts
        self.build = build
        self.notes = notes
        self.observer = observer
        self.config_ref = ConfigRef(version=loaded.version, hash=loaded.hash)
        self.receipts = store
        self.enrichment = enrichment
        self.advisers = advisers if advisers is not None else Advisers()
        self._watch = watch
        self._sealer = sealer
        self.sources = SourceReader(experts.index.definitions if experts.has(SymbolsConfig) else None)
        self._health = HealthWatch(experts, workspace.projects)
        self._libraries: tuple[float, frozenset[str]] = (0.0, frozenset())
        self._catalog = LibraryCatalog()
        self._answer_notes: tuple[str, ...] = ()
        self._views: list[Router] = []
        self._underway: set[int] = set()
        self._admission = Admission()

    async def prepare(self) -> None:
        """Look at the experts that most questions go to, and at libraries, so that the first request need not. Safe to leave out."""
        await self._health.current(name for name in self.loaded.config.gate.default_set if name in self.experts)
        await self._current_libraries()

    def watch(self) -> None:
        """Keep the index current between questions, if the configuration says so. For servers: others end after their question."""
        if self.loaded.config.index.watch and self.experts.has(SymbolsConfig, CodeSearchConfig):
            self.experts.index.watch()

    async def catch_up(self) -> None:
        """Bring every index up to date, however long it takes: for callers who would rather wait than have a first answer from a part."""
        for expert in self.experts.values():
            if isinstance(expert, CatchesUp):
                await expert.catch_up(self.workspace.projects)
        await self.enrichment.catch_up([(project, self.workspace.below(project)) for project in self.workspace.projects])

    async def aclose(self) -> None:
        """Stop what runs in the background; `open_router` does it."""
        await self._health.aclose()
        for view in self._views:
            await view.aclose()

    async def within(self, roots: Sequence[Path], note: str = "") -> Router:
        """The same router over these roots (none: its own), with a note on each of its answers. It ends with this one.

        Experts, index and receipts are shared; what is searched, and the health of experts there, are its own.

        Raises:
            WorkspaceError: a root cannot be searched, or configured names and groups do not fit.
        """
        view = copy.copy(self)
        if roots:
            view.workspace = await discover_workspace(self.loaded.config.workspace, roots)
            view._watch = WorkspaceWatch(self.loaded.config.workspace, roots)
            view.notes = (*self.loaded.notes, *view.workspace.notes)
        view.notes = (*view.notes, note) if note else view.notes
        view._answer_notes = (*self._answer_notes, note) if note else self._answer_notes
        view._health = HealthWatch(view.experts, view.workspace.projects)
        view._libraries = (0.0, frozenset())
        view._views = []
        self._views.append(view)
        return view

    async def search(
        self,
        raw: Mapping[str, Any] | SearchRequest | object,
        *,
        session: str | None = None,
        principal: str | None = None,
        progress: Progress | None = None,
    ) -> Answer:
        """Answer one request and leave one receipt, whatever becomes of it.

        A faulty request is an answer with status `rejected` or `declined`, not an exception.

        Raises:
            ReceiptError: the receipt could not be made durable, so there is no answer.
        """
        given = raw.model_dump(mode="json", exclude_defaults=True) if isinstance(raw, SearchRequest) else raw
        return await self._search(given, self._caller(session, principal), progress)

    async def _search(
        self, given: object, caller: Caller, progress: Progress | None, *, fresh: bool = False, draw: Draw | None = None
    ) -> Answer:
        """See `search`; a `fresh` answer owes nothing to earlier ones but the weights of the given `draw`."""
        with self.observer.request("search", given) as watch:
            look, session = (Look("off: asked afresh"), None) if fresh else (None, caller.session)
            trace = Trace(await self._surroundings(), notes=self._news(), look=look, session=session, draw=draw)
            self._underway.add(id(trace))
            trace.underway = len(self._underway)
            try:
                answer = await self._answer(given, caller, progress, watch, trace)
            finally:
                self._underway.discard(id(trace))
            watch.tell(answer)
            return answer

    def _news(self) -> list[str]:
        return [*self._answer_notes, *self.enrichment.news()]

    async def _answer(self, given: object, caller: Caller, progress: Progress | None, watch: Watch[Finished], trace: Trace) -> Answer:
        try:
            answer = await run_request(trace, given, progress)
        except anyio.get_cancelled_exc_class():
            with anyio.CancelScope(shield=True), anyio.move_on_after(LAST_WORDS_SECONDS):
                watch.tell(await self._seal(trace.answer(Status.CANCELLED), given, trace, caller))
            raise
        else:
            return await self._seal(answer, given, trace, caller)
        finally:
            self.enrichment.leave(trace.look)

    def _caller(self, session: str | None, principal: str | None) -> Caller:
        """Who asks; callers without a session share that of this process."""
        return Caller(session or self._sealer.session, principal)

    async def _seal(self, answer: Answer, given: object, trace: Trace, caller: Caller) -> Answer:
        """The answer with its receipt; what the next request can use of it is noted afterwards."""
        event = self.enrichment.next_event()
        weights = {name: round(weight * 1000) for name, weight in trace.plan.weights.items()} if trace.plan else {}
        told = trace.look.told if trace.look else None
        own = answer.status is Status.CACHED or trace.draw is not None
        used = Used(told, trace.hints, (event,) if event else (), weights if own else None, trace.draw)
        sealed = await self._sealer.seal_search(answer, given, trace.replies, caller, used)
        noted = Noted(trace.look, trace.replies, trace.facts, trace.whole, weights, trace.draw)
        trace.look = None  # from here on it is not this request's to leave
        self.enrichment.note_search(event, noted, sealed, given, caller)
        return sealed

    async def fetch(self, raw: object, *, session: str | None = None, principal: str | None = None) -> FetchAnswer:
        """Full text of evidence ids; leaves a receipt like a search. Raises ReceiptError when it cannot."""
        given = raw.model_dump(mode="json", exclude_defaults=True) if isinstance(raw, FetchRequest) else raw
        with self.observer.request("fetch") as watch:
            answer = await self._fetched(given, self._caller(session, principal))
            watch.tell(answer)
            return answer

    async def _fetched(self, given: object, caller: Caller) -> FetchAnswer:
        started = time.perf_counter()
        try:
            request = parse_fetch(given)
        except RequestRejected as error:
            report = ErrorReport(code=error.code, message=error.message, remedy=error.remedy, fields=tuple(p.field for p in error.problems))
            answer = FetchAnswer(status=Status.REJECTED, error=report, config=self.config_ref)
        else:
            fetcher = Fetcher({p.id: p for p in self.workspace.projects}, self.sources, self._docs)
            items, problems = await fetcher.fetch(request, self.loaded.config.output.fetch_characters)
            status = Status.ANSWERED if items else Status.FAILED
            answer = FetchAnswer(status=status, items=items, problems=problems, config=self.config_ref)
        used_us, event = round((time.perf_counter() - started) * 1e6), self.enrichment.next_event()
        outcomes = self.enrichment.fetched(answer, caller)
        used = Used(events=(event,) if event else ())
        sealed = await self._sealer.seal_fetch(answer, given, caller, used_us, used, tuple(outcome.fact for outcome in outcomes))
        self.enrichment.note_fetch(event, sealed, used_us, outcomes, caller)
        return sealed

    async def report_outcome(
        self, raw: object, *, session: str | None = None, principal: str | None = None, owns: bool = False
    ) -> OutcomeAnswer:
        """Take what became of an answer, or refuse it with a reason; leaves a receipt either way. Raises ReceiptError when it cannot.

        `owns`: the caller owns the state directory and may speak for every session of his principal.
        """
        given = raw.model_dump(mode="json", exclude_defaults=True) if isinstance(raw, OutcomeRequest) else raw
        outcome: Outcome | None = None
        fact: OutcomeFact | None = None
        caller = self._caller(session, principal)
        try:
            request = parse_outcome(given)
            fact = OutcomeFact("reported", request.receipt, request.outcome, request.evidence)
            outcome = await self.enrichment.outcomes.judge(request, caller, owns=owns)
        except RequestError as error:
            status = Status.REJECTED if isinstance(error, RequestRejected) else Status.DECLINED
            fields = tuple(p.field for p in error.problems) if isinstance(error, RequestRejected) else ()
            report = ErrorReport(code=error.code, message=error.message, remedy=error.remedy, fields=fields)
            answer = OutcomeAnswer(status=status, error=report, config=self.config_ref)
            fact = replace(fact, refused=error.code) if fact is not None else None
        else:
            fact = outcome.fact
            answer = OutcomeAnswer(status=Status.ANSWERED, credited=outcome.credited, config=self.config_ref)
        event = self.enrichment.next_event()
        sealed = await self._sealer.seal_outcome(answer, given, fact, caller, Used(events=(event,) if event else ()))
        self.enrichment.note_outcome(event, sealed, outcome, caller)
        return sealed

    async def experiments(self, paper_slug: str | None = None) -> ExperimentAnswer:
        """What the benchmark events of one paper slug (default: the configured one) add up to."""
        return await self.enrichment.experiment(paper_slug)

    async def replay(self, receipt_id: str, question: str | None = None, *, principal: str | None = None) -> ReplayAnswer:
        """Ask again, without cache and hints, what a receipt answered, and say what differs and why. Leaves a receipt like a search.

        Without `question` it is taken from the receipt or from what was kept, where the configuration allowed either.

        Raises:
            ReceiptNotFound: there is no such receipt.
            RequestDeclined: it is not that of a search (`not-a-search`), or its question is not kept (`question-not-kept`).
        """
        recorded = read_recorded(receipt_id, (await self.receipt(receipt_id)).statement)
        raw = await self.enrichment.request_of(recorded, question)
        answer = await self._search(raw, self._caller(None, principal), None, fresh=True, draw=recorded.draw)
        return compare(recorded, raw, self.enrichment.is_question(recorded, raw), answer, self.build, self.config_ref)

    async def registry(self) -> RegistryAnswer:
        """Experts, their health, the projects, the build and the configuration that are running."""
        known = await self._health.read_now()
        experts: list[RegisteredExpert] = []
        for name, settings in self.loaded.config.experts.items():
            health = known.get(name, Health(False, "switched off in the configuration"))
            card = self.experts.cards.get(name)
            experts.append(
                RegisteredExpert(
                    id=name,
                    kind=settings.kind,
                    enabled=settings.enabled,
                    available=health.available,
                    reason=health.reason,
                    precision_class=settings.precision_class,
                    engine=settings.engine,
                    version=health.version,
                    intents=settings.intents,
                    languages=tuple(sorted(card.languages)) if card is not None and card.languages is not None else None,
                    transport=card.transport if card is not None else "embedded",
                    cap_ms=settings.cap_ms,
                    freshness=card.freshness if card is not None else "none",
                    priors={intent.value: p[name] for intent, p in self.loaded.config.priors.items() if name in p},
                    details=dict(health.details),
                )
            )
        projects = tuple(
            RegisteredProject(id=p.id, root=str(p.root), kind=p.kind, head=p.head, branch=p.branch, shallow=p.shallow, groups=p.groups)
            for p in self.workspace.projects
        )
        return RegistryAnswer(
            build=self.build, config=self.config_ref, experts=tuple(experts), projects=projects, notes=(*self.notes, *self.enrichment.notes)
        )

    async def receipt(self, receipt_id: str) -> ReceiptAnswer:
        """One receipt of this store, whichever process wrote it. Raises ReceiptNotFound."""
        return await self._sealer.read(receipt_id)

    def render(self, answer: Answer) -> str:
        """The answer as compact text for a model, within the configured budget."""
        return render_answer(answer, self.loaded.config.output.text_characters)

    def render_fetch(self, answer: FetchAnswer) -> str:
        """Fetched evidence as text with line numbers."""
        return render_fetch(answer)

    def render_outcome(self, answer: OutcomeAnswer) -> str:
        """Whether an outcome was taken, as text."""
        return render_outcome(answer)

    def render_registry(self, answer: RegistryAnswer) -> str:
        """The registry as text."""
        return render_registry(answer)

    async def _renew_workspace(self) -> None:
        """Take in repositories that have come below the roots, and let go of those that went."""
        found = await self._watch.renewed(self.workspace)
        if found is None:
            return
        old, self._health = self._health, HealthWatch(self.experts, found.projects)
        self.notes = (*(n for n in self.notes if n not in self.workspace.notes), *found.notes)
        self.workspace = found
        self._libraries = (0.0, frozenset())
        await old.aclose()

    async def _surroundings(self) -> Surroundings:
        await self._renew_workspace()
        return Surroundings(
            config=self.loaded.config,
            config_ref=self.config_ref,
            workspace=self.workspace,
            experts=self.experts,
            cards=self.experts.cards,
            health=self._health,
            libraries=await self._current_libraries(),
            sources=self.sources,
            enrichment=self.enrichment,
            admission=self._admission,
            advisers=self.advisers,
        )

    def _docs(self) -> KeepsEntries | None:
        """The expert whose entries can be fetched, made if nobody asked it yet."""
        name = self.experts.first(DocsConfig)
        expert = self.experts[name] if name is not None else None
        return expert if isinstance(expert, KeepsEntries) else None

    async def _current_libraries(self) -> frozenset[str]:
        until, names = self._libraries
        if time.monotonic() >= until:
            found = [await anyio.to_thread.run_sync(self._catalog.read, p.root) for p in self.workspace.projects]
            names = frozenset[str]().union(*(f.names for f in found))
            self._libraries = (time.monotonic() + LIBRARIES_SECONDS, names)
        return names
