"""What the console reads of a running router. No page reads anything else, so what a principal may not see is kept out here, once.

A principal with a token sees the requests of that token alone; `local` is who owns the store and sees all.
"""

from __future__ import annotations

import json
import sqlite3
import statistics
import time
from typing import Any, Final

import anyio.to_thread

from search_router import __version__
from search_router.answers import ExperimentAnswer, RegistryAnswer
from search_router.config.loader import explain
from search_router.console import events_reading as events
from search_router.console.bench_reading import BenchReadings
from search_router.console.numbers import Event, counts, distributions, hint_savings, per_hour
from search_router.console.receipt_list import ReceiptFilter, ReceiptList, count_all, count_there, not_found, statement_of
from search_router.console.records import (
    Comparison,
    Configuration,
    Experts,
    Overview,
    ReceiptPage,
    ReceiptView,
    ReportedOutcome,
    Repositories,
    SetValue,
    Slugs,
    Verdict,
)
from search_router.console.remembered import Remembered
from search_router.console.repository_reading import tell_repositories
from search_router.console.shown import members
from search_router.errors import ReceiptNotFound
from search_router.receipts.reading import Receipt, ReceiptReader
from search_router.router import checking
from search_router.router.enrich.database import FILE_NAME, EnrichUnavailable
from search_router.router.index_life import IndexKeeper, IndexStatus
from search_router.router.service import Router
from search_router.schema import Answer, ExpertStatus

LOCAL: Final = "local"
FINE: Final = frozenset({ExpertStatus.OK.value, ExpertStatus.EMPTY.value})
REPOSITORIES_SECONDS: Final = 10.0
"""How long a comparison with the work trees is shown again: it reads every file that changed."""
EXPERTS_SECONDS: Final = 5.0
"""How long what experts say of themselves is shown again: asking them starts programs."""


class Readings:
    """The view of one principal on one router."""

    def __init__(self, router: Router, principal: str) -> None:
        paths = router.loaded.paths
        self._router = router
        self._principal = principal
        self._reader = ReceiptReader(paths.receipts)
        self._list = ReceiptList(paths.receipts, None if self._sees_all() else principal)
        self._eye = events.Eye(None if self._sees_all() else principal)
        self._events_path = paths.home / FILE_NAME
        self.bench = BenchReadings(router.loaded.config.http.bench_results, self._sees_all())
        self._counted: dict[str, tuple[tuple[int, ...], int]] = {}
        self._index: Remembered[IndexStatus] = Remembered(self._read_index, REPOSITORIES_SECONDS)
        self._registry: Remembered[RegistryAnswer] = Remembered(router.registry, EXPERTS_SECONDS)

    async def overview(self) -> Overview:
        """The newest requests in numbers. Raises StoreUnavailable when the receipts cannot be counted."""
        router = self._router
        notes: tuple[str, ...] = ()
        await router.enrichment.owner.flush()
        try:
            found = await anyio.to_thread.run_sync(events.read_events, self._events_path, self._eye)
        except (EnrichUnavailable, sqlite3.Error) as error:
            found, notes = (), (f"The benchmark events cannot be read: {error}",)
        requests = [e for e in found if e.kind == "request"]
        whole, there = await anyio.to_thread.run_sync(self._count_receipts, [e.receipt for e in requests])
        return await anyio.to_thread.run_sync(self._add_up, found, requests, (whole, there), (*notes, *router.notes))

    async def receipts(self, only: ReceiptFilter, limit: int = 50, before: str | None = None) -> ReceiptPage:
        """Receipts that the filter admits, newest first. Raises ReceiptNotFound and StoreUnavailable."""
        return await anyio.to_thread.run_sync(self._list.page, only, limit, before)

    async def receipt(self, receipt_id: str) -> ReceiptView:
        """One receipt and its verdict. Raises ReceiptNotFound, also for what this principal may not see."""
        receipt = await self._visible(receipt_id)
        paths = self._router.loaded.paths
        anchors = await anyio.to_thread.run_sync(checking.find_anchors, paths)
        (checked,) = await checking.verify_some(paths, anchors, [receipt_id], last=False, answer=None)
        return ReceiptView(
            id=receipt.id,
            seq=receipt.seq,
            log=receipt.log,
            keyid=receipt.keyid,
            time_us=receipt.time_us,
            status=receipt.status,
            verdict=Verdict(what=checked.what, verdict=checked.verdict, reasons=checked.reasons, notes=(*anchors.notes, *checked.notes)),
            statement=dict(statement_of(receipt.envelope)),
            envelope=_object(receipt.envelope),
            outcomes=await self._outcomes(receipt_id),
        )

    async def envelope(self, receipt_id: str) -> bytes:
        """The DSSE envelope, byte for byte as it is stored. Raises ReceiptNotFound as `receipt` does."""
        return (await self._visible(receipt_id)).envelope

    async def experts(self) -> Experts:
        """Every configured expert with its health, and the projects; at most about EXPERTS_SECONDS old."""
        registry, read_us = await self._registry.get()
        return Experts(experts=registry.experts, projects=registry.projects, notes=registry.notes, read_us=read_us)

    async def repositories(self) -> Repositories:
        """Coverage of every project by the index; at most about REPOSITORIES_SECONDS old."""
        status, read_us = await self._index.get()
        projects = {p.id: p for p in self._router.workspace.projects}
        return await anyio.to_thread.run_sync(tell_repositories, status, projects, read_us, self._sees_all())

    async def experiment(self, slug: str | None, compared: tuple[str, str] | None = None) -> tuple[ExperimentAnswer, Comparison | None]:
        """One experiment (None: the configured one), and two of its configurations by the beginnings of their hashes."""
        slug = slug or self._configured_slug
        await self._router.enrichment.owner.flush()
        try:
            told, arms = await anyio.to_thread.run_sync(events.read_experiment, self._events_path, self._eye, slug, compared or ())
        except (EnrichUnavailable, sqlite3.Error) as error:
            return ExperimentAnswer(paper_slug=slug, retention="nothing", notes=(f"not read: {error}",)), None
        told = told.model_copy(update={"notes": self._router.enrichment.notes})
        if compared is None:
            return told, None
        return told, Comparison(paper_slug=slug, a=compared[0], b=compared[1], arms_a=arms[0], arms_b=arms[1])

    async def slugs(self) -> Slugs:
        """The experiments that have events."""
        try:
            return Slugs(slugs=await anyio.to_thread.run_sync(events.read_slugs, self._events_path, self._eye))
        except (EnrichUnavailable, sqlite3.Error):
            return Slugs(slugs=())  # why is told with the experiment itself

    async def compare(self, slug: str | None, a: str, b: str) -> Comparison:
        """Two configurations of an experiment. Raises EnrichUnavailable."""
        told, compared = await self.experiment(slug, (a, b))
        if compared is None:
            raise EnrichUnavailable(f"The benchmark events are {' '.join(told.notes)}", remedy="Ask again; the overview says more.")
        return compared

    def configuration(self) -> Configuration:
        """Every effective value with its origin. Secrets are `set` or `not set`."""
        loaded = self._router.loaded
        values = tuple(SetValue(key=r.key, value=r.value, layer=r.layer.value, source=r.source, line=r.line or 0) for r in explain(loaded))
        return Configuration(version=loaded.version, hash=loaded.hash, values=values, notes=self._router.notes)

    async def search(self, raw: object) -> tuple[Answer, str]:
        """(the answer, the text that an agent gets). Leaves a receipt like every request. Raises ReceiptError."""
        answer = await self._router.search(raw, session="console", principal=self._principal)
        return answer, self._router.render(answer)

    @property
    def project_ids(self) -> tuple[str, ...]:
        """What a search can be narrowed to."""
        return tuple(p.id for p in self._router.workspace.projects)

    @property
    def _configured_slug(self) -> str:
        return self._router.enrichment.settings.paper_slug

    def _sees_all(self) -> bool:
        return self._principal == LOCAL

    async def _visible(self, receipt_id: str) -> Receipt:
        try:
            receipt = await self._reader.get(receipt_id)
        except ReceiptNotFound as error:
            raise not_found(receipt_id) from error
        if not self._list.may_see(receipt.envelope):
            raise not_found(receipt_id)
        return receipt

    async def _outcomes(self, receipt_id: str) -> tuple[ReportedOutcome, ...]:
        try:
            return await anyio.to_thread.run_sync(events.read_outcomes, self._events_path, self._eye, receipt_id)
        except (EnrichUnavailable, sqlite3.Error):
            return ()  # the receipt is what was asked for; the overview says that this file cannot be read

    async def _read_index(self) -> IndexStatus:
        router = self._router
        return await IndexKeeper(router.workspace, router.experts.index, router.loaded.config.index.unused_days).status()

    def _count_receipts(self, receipt_ids: list[str]) -> tuple[int, int]:
        """(receipts of the whole store, how many of these are in it)."""
        directory = self._router.loaded.paths.receipts
        return count_all(directory, self._counted) if self._sees_all() else 0, count_there(directory, receipt_ids)

    def _add_up(self, found: tuple[Event, ...], requests: list[Event], receipts: tuple[int, int], notes: tuple[str, ...]) -> Overview:
        router = self._router
        calls = [e for e in found if e.kind == "call"]
        asked = [e for e in requests if e.operation == "search"]
        cached = sum(e.status == "cached" for e in asked)
        slow = [e.latency_ms for e in asked if e.status != "cached"]
        hinted, hinted_ms = hint_savings(asked, calls)
        whole, there = receipts
        return Overview(
            version=__version__,
            commit=router.build.commit,
            config=router.config_ref,
            receipts=whole if self._sees_all() else there,
            window=events.REQUESTS,
            requests=len(requests),
            receipted=there,
            since_us=min((e.time_us for e in requests), default=None),
            until_us=max((e.time_us for e in requests), default=None),
            per_hour=per_hour((e.time_us for e in requests), time.time_ns() // 1000),
            statuses=counts(e.status for e in requests),
            classes=counts(e.intent for e in asked),
            failures=counts(f"{e.arm}: {e.status}" for e in calls if e.status not in FINE),
            cached=cached,
            saved_ms=round(cached * statistics.median(slow), 3) if slow else 0.0,
            hinted=hinted,
            hinted_ms=hinted_ms,
            calls=len(calls),
            latencies=(*distributions(calls, "expert", lambda e: e.arm), *distributions(asked, "class", lambda e: e.intent)),
            metrics=router.loaded.config.telemetry.prometheus,
            notes=notes,
        )


def _object(envelope: bytes) -> dict[str, Any]:
    """The stored envelope as JSON; empty when it is none."""
    try:
        found: object = json.loads(envelope)
    except (ValueError, RecursionError):
        return {}
    return dict(members(found))
