"""What makes the next request cheaper: the one object that the request's path knows of the flywheel.

Reads happen before the fan-out, writes after the answer left. Nothing here can fail a request: what cannot be read counts as not there.
"""

from __future__ import annotations

import itertools
import json
import sqlite3
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal

import anyio
import anyio.to_thread

from search_router.adapters.local.sources import SourceReader
from search_router.adapters.registry import ExpertShelf
from search_router.answers import BuildRef, ExperimentAnswer, FetchAnswer, OutcomeAnswer
from search_router.config.loader import LoadedConfig
from search_router.errors import RequestDeclined
from search_router.receipts.keys import SigningKey, question_digest
from search_router.receipts.store import ReceiptStore
from search_router.redact import scrub
from search_router.router.enrich.bandit import Draw
from search_router.router.enrich.corpus import Rooted
from search_router.router.enrich.database import FILE_NAME, EnrichUnavailable, open_for_reading
from search_router.router.enrich.events import Asked, EventSource, event_of_other, events_of, read_experiment
from search_router.router.enrich.hints import agreeing_replies, files_to_read, why_void
from search_router.router.enrich.looking import Asking, FileKey, Look, Looker
from search_router.router.enrich.outcomes import Outcome, OutcomeDesk
from search_router.router.enrich.owner import Owner
from search_router.router.enrich.replay import Recorded, kept_request
from search_router.router.enrich.session import SessionBandit
from search_router.router.fanout import Reply
from search_router.router.plan import Plan
from search_router.router.request import question_of
from search_router.router.seal import Caller
from search_router.schema import Answer, FileFacts

CLOSE_SECONDS: Final = 2.0


@dataclass(frozen=True, slots=True)
class Noted:
    """What of a request is worth remembering beside its answer. `whole` is false when hits were left out or files were not parsed."""

    look: Look | None
    replies: Sequence[Reply]
    facts: Mapping[FileKey, FileFacts]
    whole: bool
    weights_pm: Mapping[str, int]
    draw: Draw | None = None


class Enrichment:
    """The flywheel of one open router. Belongs to its event loop; opens its file with the first use, and `aclose` ends it."""

    def __init__(
        self, loaded: LoadedConfig, key: SigningKey, experts: ExpertShelf, build: BuildRef, store: ReceiptStore, run_id: str
    ) -> None:
        self.settings = loaded.config.enrich
        self.owner = Owner(loaded.paths.home / FILE_NAME)
        self._key = key
        self._told = False
        self._cards = experts.cards
        self._looker = Looker(loaded, build, experts, key, self.owner)
        self.outcomes = OutcomeDesk(store, self.owner, self.settings.outcomes_per_minute, loaded.config.fusion.k)
        self.bandit = SessionBandit(loaded.config.bandit, self.owner)
        self._numbers = itertools.count(1)
        self.source = EventSource(run_id, self.settings.paper_slug, loaded.version, loaded.hash)

    @property
    def notes(self) -> tuple[str, ...]:
        """What people should know of it: why it is off, and what was dropped."""
        return self.owner.notes

    def news(self) -> tuple[str, ...]:
        """Why it is off, once: for the first answer after that."""
        if self._told or self.owner.fault is None:
            return ()
        self._told = True
        return (str(self.owner.fault),)

    def next_event(self) -> str:
        """The id of a request's event, for its receipt; its calls are `<id>/<expert>`. Empty when no events are kept."""
        return f"{self.source.run_id}-{next(self._numbers)}" if self.settings.events else ""

    async def look(self, asking: Asking, seconds: float) -> Look:
        """What earlier requests know of this one; it waits for an identical one under way, but at most half of `seconds`."""
        return await self._looker.look(asking, seconds)

    async def agreed(
        self, look: Look, plan: Plan, replies: Sequence[Reply], limit: int, sources: SourceReader, seconds: float
    ) -> tuple[list[Reply], dict[str, str]]:
        """(what experts that the hint left out said, which of them are to be asked after all and why)."""
        hint = look.hint
        assert hint is not None
        projects = {project.id: project for project, _ in look.projects}
        known = [file for file in (*files_to_read(hint, replies, limit), *hint.contents) if file[0] in projects]
        facts, _ = await sources.read(list(dict.fromkeys(known)), projects, seconds)
        contents = {file: found.content_hash for file, found in facts.items()}
        void = why_void(hint, replies, limit, contents)
        if void:
            self._looker.hints.kill(hint)  # the next one who asks makes a new one
        if len(void) == len(hint.agreed):
            look.hint = None  # everybody is asked, so the answer is whole
        return agreeing_replies(hint, plan, void, contents), void

    def note_search(self, event_id: str, noted: Noted, answer: Answer, raw: object, caller: Caller) -> None:
        """Remember an answer that has its receipt. Returns at once."""
        look, question = noted.look, question_of(raw)
        if self.settings.keep_questions and question is not None and answer.receipt is not None:
            self._keep_question(answer.receipt.id, raw)
        self.outcomes.show(answer, caller, noted.weights_pm, noted.draw)
        if look is not None:
            self._looker.keep(look, answer, noted.replies, noted.facts, whole=noted.whole)
        if event_id:
            used = look.told if look is not None else None
            digest = question_digest(question, self._key) if question else None
            asked = Asked(event_id, self.owner.clock(), "search", digest, used, caller.session, caller.principal)
            self.owner.submit_events(lambda: events_of(self.source, asked, answer, noted.replies, self._cards))

    def fetched(self, answer: FetchAnswer, caller: Caller) -> tuple[Outcome, ...]:
        """What a fetch says of the answers that its caller was shown before."""
        return self.outcomes.fetched([item.id for item in answer.items], caller) if self.owner.fault is None else ()

    def _keep_question(self, receipt_id: str, raw: object) -> None:
        """The request as text, with secrets removed; one that is no JSON is not kept."""
        now = self.owner.clock()

        def write(database: sqlite3.Connection) -> None:
            text = scrub(json.dumps(raw, ensure_ascii=False))
            json.loads(text)
            database.execute("INSERT OR REPLACE INTO questions VALUES (?, ?, ?)", (receipt_id, now, text))

        self.owner.submit(write)

    def leave(self, look: Look | None) -> None:
        """Nothing comes of this request: whoever waits for it asks for himself. Safe to call twice."""
        if look is not None:
            self._looker.leave(look)

    def note_fetch(self, event_id: str, answer: FetchAnswer, used_us: int, outcomes: Sequence[Outcome], caller: Caller) -> None:
        """Remember a fetch that has its receipt, and what it says of earlier answers. Returns at once."""
        assert answer.receipt is not None
        for outcome in outcomes:
            self._keep_outcome(outcome, answer.receipt.id)
        self._note_other(event_id, "fetch", answer.status.value, answer.receipt.id, used_us / 1000, len(answer.items), caller)

    def note_outcome(self, event_id: str, answer: OutcomeAnswer, outcome: Outcome | None, caller: Caller) -> None:
        """Remember a reported outcome, if it was taken, that has its receipt. Returns at once."""
        assert answer.receipt is not None
        if outcome is not None:
            self._keep_outcome(outcome, answer.receipt.id)
        self._note_other(event_id, "outcome", answer.status.value, answer.receipt.id, 0.0, len(answer.credited), caller)

    def _keep_outcome(self, outcome: Outcome, receipt_id: str) -> None:
        self.outcomes.keep(outcome, receipt_id)
        self.bandit.learn(outcome, receipt_id)

    def _note_other(
        self, event_id: str, operation: Literal["fetch", "outcome"], status: str, receipt: str, ms: float, count: int, caller: Caller
    ) -> None:
        if event_id:
            asked = Asked(event_id, self.owner.clock(), operation, session=caller.session, principal=caller.principal)
            self.owner.submit_events(lambda: (event_of_other(self.source, asked, status, receipt, ms, count),))

    async def request_of(self, recorded: Recorded, question: str | None) -> dict[str, Any]:
        """The request to replay: the kept one, else one with the given question or the receipt's. Raises RequestDeclined."""
        await self.settle()
        kept = await anyio.to_thread.run_sync(kept_request, self.owner.path, recorded.receipt_id)
        if kept is not None:
            return kept if question is None else {**kept, "question": question}
        text = question if question is not None else recorded.question_text
        if text is not None:
            return {"question": text}
        raise RequestDeclined(
            f"Receipt {recorded.receipt_id} holds the question's digest, not its text, and the text was not kept.",
            remedy='Give it with --question. To have it kept: enrich.keep_questions, or receipts.question = "text".',
            code="question-not-kept",
        )

    def is_question(self, recorded: Recorded, raw: Mapping[str, Any]) -> bool:
        """Whether the request asks the receipt's question, by its keyed digest."""
        question = raw.get("question")
        return isinstance(question, str) and question_digest(question, self._key) == recorded.question_digest

    async def experiment(self, paper_slug: str | None) -> ExperimentAnswer:
        """What the events of a slug (default: the configured one) add up to, with everything that was noted before this call."""
        await self.settle()
        answer = await anyio.to_thread.run_sync(read_experiment_file, self.owner.path, paper_slug or self.settings.paper_slug)
        return answer.model_copy(update={"notes": (*answer.notes, *self.notes)})

    async def catch_up(self, projects: Rooted) -> None:
        """Watch these from now on, so that already the first answer can be kept."""
        await self._looker.catch_up(projects)

    async def settle(self) -> None:
        """Wait until everything that was noted is kept and written, or dropped."""
        await self._looker.settle()
        await self.owner.flush()

    async def aclose(self) -> None:
        """Keep and write what waits, within a bound. Safe to call twice."""
        with anyio.move_on_after(CLOSE_SECONDS):
            await self._looker.settle()
        await self._looker.aclose()
        await self.owner.aclose()


def read_experiment_file(path: Path, paper_slug: str) -> ExperimentAnswer:
    """One experiment out of the file at `path`; a file that cannot be read is said in the notes."""
    try:
        database = open_for_reading(path)
        try:
            return read_experiment(database, paper_slug)
        finally:
            if database is not None:
                database.close()
    except (EnrichUnavailable, sqlite3.Error) as error:
        return ExperimentAnswer(paper_slug=paper_slug[:100], retention="nothing", notes=(f"not read: {error}",))
