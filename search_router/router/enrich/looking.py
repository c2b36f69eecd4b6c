"""Look before asking: whether this very question was answered for these very files, and whom a hint leaves out.

Costs a hash, two look-ups and a system call a project when there is nothing to find; files are listed only where an answer lies ready
for the question, or nothing is known of the tree yet.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import search_router
from search_router.adapters.base import KnowsItsWorld
from search_router.adapters.registry import ExpertShelf
from search_router.answers import BuildRef
from search_router.config.loader import LoadedConfig
from search_router.errors import ExpertError
from search_router.receipts.keys import SigningKey
from search_router.router.enrich.cache import AnswerCache, CachedAnswer, stamps_of
from search_router.router.enrich.corpus import CorpusWatch, Moment, Rooted
from search_router.router.enrich.flights import Flight, Flights
from search_router.router.enrich.hints import Hint, HintStore, make_hint
from search_router.router.enrich.owner import Owner
from search_router.router.enrich.wording import request_key
from search_router.router.fanout import Reply
from search_router.router.plan import Plan
from search_router.router.tokens import QuestionTokens
from search_router.schema import Answer, Classification, EmptyReason, ExpertStatus, FileFacts, Project, SearchRequest, Status

LOOKED: Final = frozenset({ExpertStatus.OK, ExpertStatus.EMPTY})
PROVEN_EMPTY: Final = frozenset({EmptyReason.NO_MATCHES, EmptyReason.NO_INDEXED_CONTENT})
FILES_ALONE: Final = frozenset({"grep", "symbols", "codesearch", "callgraph", "semantic"})
"""Kinds of experts that answer from nothing but the listed files: they need not be made to tell."""
WAIT_SHARE: Final = 0.5
"""Of a request's time is spent at most waiting for another one that asks the same."""
MAX_KEEPING: Final = 64
"""Answers whose proof is under way at once; further ones are not kept."""
SEEN: Final = 1000

FileKey = tuple[str, str]


@dataclass(frozen=True, slots=True)
class Asking:
    """One request as it is planned: everything that decides its answer but the files."""

    request: SearchRequest
    tokens: QuestionTokens
    classification: Classification
    classes: tuple[str, ...]
    plan: Plan
    start: int
    projects: Rooted


@dataclass(slots=True)
class Look:
    """What was found before the fan-out. `told` is for the receipt: `hit …`, `shared …`, `miss`, or `off: …` with the reason."""

    told: str
    key: str = ""
    moment: Moment | None = None
    worlds: Mapping[str, str] = field(default_factory=dict[str, str])
    projects: Rooted = ()
    found: CachedAnswer | None = None
    hint: Hint | None = None
    flight: Flight[CachedAnswer] | None = None


class Looker:
    """Cache, hints and the questions under way, of one router. Belongs to its event loop."""

    def __init__(self, loaded: LoadedConfig, build: BuildRef, experts: ExpertShelf, key: SigningKey, owner: Owner) -> None:
        self._config = loaded.config
        self._experts = experts
        self._signing = key
        self._owner = owner
        self.cache = AnswerCache(loaded.config.cache, owner)
        self.hints = HintStore(owner)
        self.corpus = CorpusWatch()
        self._flights: Flights[CachedAnswer] = Flights()
        self._keeping: set[asyncio.Task[None]] = set()
        self._seen: dict[str, None] = {}
        self._hash = loaded.hash
        self._build = build
        self._program: list[str | None] = []

    async def look(self, asking: Asking, seconds: float) -> Look:
        """What is known for this question now. Waits for an identical one that is under way, but at most half of `seconds`."""
        if not self.cache.is_on and not self._config.enrich.hints:
            return Look("off: switched off in the configuration")
        if asking.request.budget.rerank:
            return Look("off: a reranker answers for itself")
        calls = (*asking.plan.calls, *asking.plan.reserve)
        worlds = await self._worlds_of([call.expert for call in calls], [project for project, _ in asking.projects])
        stranger = next((call.expert for call in calls if call.expert not in worlds), None)
        look = Look("miss", self._key(asking), worlds=worlds, projects=asking.projects)
        if stranger is not None:
            look.told = f"off: what {stranger} answers from cannot be told here"
        until = asyncio.get_running_loop().time() + seconds * WAIT_SHARE
        while True:
            await self._find(look, asking)
            if look.found is not None or not self.cache.is_on or stranger is not None:
                break
            assert look.moment is not None
            if None in look.moment.changes and look.moment.fingerprint is None:
                break  # nobody could tell that the files are the same for both
            flight, opened = self._flights.board((look.key, look.moment.changes, look.moment.fingerprint, *worlds.items()))
            if opened:
                look.flight = flight
                break
            left = until - asyncio.get_running_loop().time()
            shared = await flight.wait(left)
            if shared is not None:
                look.found, look.told = shared, f"shared {shared.receipt_id}"
                break
            if left <= 0:
                break
        if look.found is None and self._config.enrich.hints and asking.start == 0:
            hint = self.hints.find(look.key)
            if hint is not None and all(worlds.get(name) == world for name, world in hint.worlds.items()):
                look.hint = hint
        return look

    def keep(self, look: Look, answer: Answer, replies: Sequence[Reply], facts: Mapping[FileKey, FileFacts], *, whole: bool) -> None:
        """Remember an answer that has its receipt, once it is proven that nothing changed while it was made. Returns at once."""
        if look.moment is None or not whole or answer.receipt is None or look.hint is not None or not _is_whole(answer, replies):
            self.leave(look)
            return
        if look.moment.fingerprint is None and None in look.moment.changes and not self.corpus.can_watch(look.projects):
            self.leave(look)  # to prove it would list all files after every answer; a question that comes again lists them before it
            return
        if len(self._keeping) >= MAX_KEEPING:
            self._owner.tally.overflowed += 1
            self.leave(look)
            return
        task = asyncio.create_task(self._keep(look, answer, replies, facts), name="keep an answer")
        self._keeping.add(task)
        task.add_done_callback(self._keeping.discard)

    def leave(self, look: Look) -> None:
        """Nothing comes of this one: whoever waits for it asks for himself. Safe to call twice."""
        if look.flight is not None:
            look.flight.land(None)

    async def catch_up(self, projects: Rooted) -> None:
        """List and watch these, where anything is kept at all."""
        if self.cache.is_on or self._config.enrich.hints:
            await self.corpus.settle(projects)

    async def settle(self) -> None:
        """Wait until what was given to `keep` is kept or not."""
        while self._keeping:
            await asyncio.wait(self._keeping)

    async def aclose(self) -> None:
        """Stop proving and watching. Safe to call twice."""
        for task in tuple(self._keeping):
            task.cancel()
        if self._keeping:
            await asyncio.wait(self._keeping)
        self.corpus.close()

    async def _find(self, look: Look, asking: Asking) -> None:
        """Fill in the moment, and the answer if one holds. Files are listed only where that can pay."""
        moment = self.corpus.moment(asking.projects)
        may = self.cache.is_on and look.told == "miss"
        entry = (self.cache.remembered(look.key) or self.cache.stored(look.key)) if may else None
        stirred = self.corpus.is_stirred(asking.projects, moment)
        blind = None in moment.changes
        pays = entry is not None or (blind and look.key in self._seen and not self.corpus.can_watch(asking.projects))
        if moment.fingerprint is None and pays and not stirred:
            moment = moment._replace(fingerprint=await self.corpus.look(asking.projects))
        if blind:
            self._remember_seen(look.key)
        look.moment = moment
        roots = {project.id: project.root for project, _ in asking.projects}
        if entry is None or moment.fingerprint is None:
            return
        if not entry.holds(moment.fingerprint, look.worlds, roots):
            entry = self.cache.stored(look.key)  # another process may have asked since
            if entry is None or not entry.holds(moment.fingerprint, look.worlds, roots):
                return
        look.found, look.told = entry, f"hit {entry.receipt_id}"
        self.cache.touch(entry)

    async def _keep(self, look: Look, answer: Answer, replies: Sequence[Reply], facts: Mapping[FileKey, FileFacts]) -> None:
        assert look.moment is not None and answer.receipt is not None
        entry: CachedAnswer | None = None
        try:
            fingerprint = await self.corpus.confirm(look.projects, look.moment)
            if fingerprint is None or await self._worlds_of(tuple(look.worlds), [p for p, _ in look.projects]) != dict(look.worlds):
                return
            now, receipt = self._owner.clock(), answer.receipt.id
            stamps = stamps_of(answer, {project.id: project for project, _ in look.projects})
            if stamps is not None and self.cache.is_on and look.told == "miss":
                entry = CachedAnswer(look.key, now, receipt, fingerprint, look.worlds, stamps, answer)
                if self.cache.seconds_of(entry):
                    self.cache.keep(entry)
                else:
                    entry = None
            if self._config.enrich.hints and answer.evidence:
                hint = make_hint(look.key, receipt, now, answer, replies, facts, look.worlds)
                if hint is not None:
                    self.hints.keep(hint, answer)
        finally:
            if look.flight is not None:
                look.flight.land(entry)

    def _key(self, asking: Asking) -> str:
        """A keyed digest: who has the file but not the key cannot try out questions."""
        roots = [[p.id, str(p.root), p.kind, [str(path) for path in nested]] for p, nested in asking.projects]
        exact = any(call.expert in self._config.cache.also for call in (*asking.plan.calls, *asking.plan.reserve))
        asked = request_key(asking.request, asking.tokens, asking.classification, asking.classes, asking.plan, asking.start, exact=exact)
        if not self._program:
            known = self._build.commit is not None and not self._build.dirty
            self._program = [self._hash, self._build.version, self._build.commit, None if known else _state_of_the_code()]
        return self._signing.keyed_digest(json.dumps([self._program, roots], ensure_ascii=True) + asked)

    async def _worlds_of(self, names: Sequence[str], projects: Sequence[Project]) -> dict[str, str]:
        """What each of these answers from, as far as that can be told; those that the configuration vouches for have the empty world."""
        worlds: dict[str, str] = {}
        for name in names:
            if self._experts.cards[name].kind in FILES_ALONE:
                worlds[name] = ""
                continue
            expert = self._experts[name]
            try:
                world = await expert.world(tuple(projects)) if isinstance(expert, KnowsItsWorld) else None
            except ExpertError:
                world = None
            if world is not None or name in self._config.cache.also:
                worlds[name] = world or ""
        return worlds

    def _remember_seen(self, key: str) -> None:
        self._seen[key] = None
        while len(self._seen) > SEEN:
            del self._seen[next(iter(self._seen))]


def _state_of_the_code() -> str:
    """What tells that the code of a build without a commit of its own was changed: its newest file, and how many there are."""
    stamps = [file.stat().st_mtime_ns for file in Path(search_router.__file__).parent.rglob("*") if file.suffix in (".py", ".toml")]
    return f"{max(stamps)} {len(stamps)}"


def _is_whole(answer: Answer, replies: Sequence[Reply]) -> bool:
    """Whether every expert looked at everything, so that asking again would give the same."""
    if answer.status is Status.EMPTY:
        if answer.empty_reason not in PROVEN_EMPTY:
            return False
    elif answer.status is not Status.ANSWERED:
        return False
    if any(report.status not in LOOKED and report.status is not ExpertStatus.SKIPPED for report in answer.experts):
        return False
    return all(r.status in LOOKED and r.result is not None and r.result.partial is None and r.result.settled for r in replies) and not any(
        "stale-index" in item.flags for item in answer.evidence
    )
