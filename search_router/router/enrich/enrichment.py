"""What makes the next request cheaper: the one object that the request's path knows of the flywheel.

Reads happen before the fan-out, writes after the answer left. Nothing here can fail a request: what cannot be read counts as not there.
"""

from __future__ import annotations

import itertools
import sqlite3
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import anyio.to_thread

from search_router.answers import ExperimentAnswer, FetchAnswer
from search_router.config.loader import LoadedConfig
from search_router.receipts.keys import SigningKey, question_digest
from search_router.router.enrich.database import FILE_NAME, EnrichUnavailable, open_for_reading
from search_router.router.enrich.events import Asked, EventSource, event_of_other, events_of, read_experiment, write_events
from search_router.router.enrich.owner import Owner
from search_router.router.fanout import Reply
from search_router.router.seal import Caller
from search_router.schema import Answer, ExpertCard


class Enrichment:
    """The flywheel of one open router. Belongs to its event loop; opens its file with the first use, and `aclose` ends it."""

    def __init__(self, loaded: LoadedConfig, key: SigningKey, cards: Mapping[str, ExpertCard], run_id: str) -> None:
        self.settings = loaded.config.enrich
        self.owner = Owner(loaded.paths.home / FILE_NAME)
        self._key = key
        self._told = False
        self._cards = cards
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

    def note_search(self, event_id: str, answer: Answer, question: str | None, replies: Sequence[Reply], caller: Caller) -> None:
        """Remember an answer that has its receipt. Returns at once."""
        if event_id:
            asked = self._asked(event_id, "search", caller, question_hash=question and question_digest(question, self._key))
            self._write_events(lambda: events_of(self.source, asked, answer, replies, self._cards))

    def note_fetch(self, event_id: str, answer: FetchAnswer, used_us: int, caller: Caller) -> None:
        """Remember a fetch that has its receipt. Returns at once."""
        if event_id and answer.receipt is not None:
            receipt, status, count = answer.receipt.id, answer.status.value, len(answer.items)
            asked = self._asked(event_id, "fetch", caller)
            self._write_events(lambda: (event_of_other(self.source, asked, status, receipt, used_us / 1000, count),))

    async def experiment(self, paper_slug: str | None) -> ExperimentAnswer:
        """What the events of a slug (default: the configured one) add up to, with everything that was noted before this call."""
        await self.owner.flush()
        answer = await anyio.to_thread.run_sync(read_experiment_file, self.owner.path, paper_slug or self.settings.paper_slug)
        return answer.model_copy(update={"notes": (*answer.notes, *self.notes)})

    async def aclose(self) -> None:
        """Write what waits, within a bound. Safe to call twice."""
        await self.owner.aclose()

    def _asked(self, event_id: str, operation: str, caller: Caller, **more: str | None) -> Asked:
        return Asked(event_id, self.owner.clock(), operation, session=caller.session, principal=caller.principal, **more)  # pyright: ignore[reportArgumentType]

    def _write_events(self, make: Callable[[], Sequence[object]]) -> None:
        def write(database: sqlite3.Connection) -> None:
            write_events(database, make())  # pyright: ignore[reportArgumentType]

        self.owner.submit(write)


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
