"""What the console reads of a running router. No page reads anything else, so what a principal may not see is kept out here, once.

A principal with a token sees the requests of that token alone; `local` is who owns the store and sees all.
"""

from __future__ import annotations

import json
import math
import sqlite3
import statistics
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

import anyio.to_thread

from search_router import __version__
from search_router.answers import ExperimentAnswer
from search_router.config.loader import explain
from search_router.console.records import (
    Bucket,
    Configuration,
    Count,
    Distribution,
    Experts,
    LeftOutFile,
    Overview,
    ReceiptPage,
    ReceiptRow,
    ReceiptView,
    Repositories,
    RepositoryIndex,
    SetValue,
    Verdict,
)
from search_router.errors import ReceiptNotFound
from search_router.receipts.log import log_ids, log_path
from search_router.receipts.reading import Receipt, ReceiptReader
from search_router.router import checking
from search_router.router.enrich.database import FILE_NAME, EnrichUnavailable, open_for_reading
from search_router.router.index_life import IndexKeeper, IndexStatus
from search_router.router.service import Router
from search_router.schema import Answer, ExpertStatus

LOCAL: Final = "local"
WINDOW: Final = 2_000
"""Requests that the overview looks at."""
ROWS_A_REQUEST: Final = 8
LOOKED_AT: Final = 2_000
"""Receipts that one page of a filtered list reads at most."""
AT_ONCE: Final = 200
SHOWN_FILES: Final = 200
HOUR_US: Final = 3_600 * 1_000_000
BUCKETS_MS: Final = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1_000, 2_000, 5_000, 10_000)
FINE: Final = frozenset({ExpertStatus.OK.value, ExpertStatus.EMPTY.value})
REPOSITORIES_SECONDS: Final = 10.0
"""How long a comparison with the work trees is shown again: it reads every file that changed."""


class _Event(NamedTuple):
    time_us: int
    kind: str
    operation: str
    arm: str
    intent: str
    status: str
    latency_ms: float
    receipt: str


class ReceiptFilter(NamedTuple):
    """Which receipts a list shows; None is any."""

    status: str | None = None
    intent: str | None = None
    operation: str | None = None
    expert: str | None = None

    def admits(self, receipt: Receipt, predicate: Mapping[str, Any]) -> bool:
        """Whether the list has this one."""
        return (
            self.status in (None, receipt.status)
            and self.intent in (None, receipt.intent)
            and self.operation in (None, predicate.get("operation"))
            and (self.expert is None or any(e["expert"] == self.expert for e in predicate.get("experts", ())))
        )


class Readings:
    """The view of one principal on one router."""

    def __init__(self, router: Router, principal: str) -> None:
        self._router = router
        self._principal = principal
        self._reader = ReceiptReader(router.loaded.paths.receipts)
        self._repositories: tuple[float, Repositories] | None = None

    async def overview(self) -> Overview:
        """The newest requests in numbers."""
        router = self._router
        notes: tuple[str, ...] = ()
        try:
            events = await anyio.to_thread.run_sync(self._read_events)
        except (EnrichUnavailable, sqlite3.Error) as error:
            events, notes = (), (f"The benchmark events cannot be read: {error}",)
        requests = [e for e in events if e.kind == "request"]
        calls = [e for e in events if e.kind == "call"]
        totals = await anyio.to_thread.run_sync(self._count_receipts, [e.receipt for e in requests])
        asked = [e for e in requests if e.operation == "search"]
        cached = sum(e.status == "cached" for e in asked)
        slow = [e.latency_ms for e in asked if e.status != "cached"]
        experiment = await router.experiments()
        return Overview(
            version=__version__,
            commit=router.build.commit,
            config=router.config_ref,
            receipts=totals[0] if self._sees_all() else totals[1],
            window=WINDOW,
            requests=len(requests),
            receipted=totals[1],
            since_us=min((e.time_us for e in requests), default=None),
            until_us=max((e.time_us for e in requests), default=None),
            per_hour=_per_hour([e.time_us for e in requests]),
            statuses=_counts(e.status for e in requests),
            classes=_counts(e.intent for e in asked),
            failures=_counts(f"{e.arm}: {e.status}" for e in calls if e.status not in FINE),
            cached=cached,
            saved_ms=round(cached * statistics.median(slow), 3) if slow else 0.0,
            calls=len(calls),
            latencies=(*_distributions(calls, "expert", lambda e: e.arm), *_distributions(asked, "class", lambda e: e.intent)),
            arms=experiment.arms if self._sees_all() else (),
            notes=(*notes, *router.notes),
        )

    async def receipts(self, only: ReceiptFilter, limit: int = 50, before: str | None = None) -> ReceiptPage:
        """Receipts that the filter admits, newest first. Raises ReceiptNotFound and StoreUnavailable."""
        rows: list[ReceiptRow] = []
        looked_at, last, more = 0, before, True
        while more and len(rows) < limit and looked_at < LOOKED_AT:
            found = await self._reader.list(AT_ONCE, last)
            more = len(found) == AT_ONCE
            for receipt in found:
                looked_at += 1
                last = receipt.id
                predicate = receipt.statement()["predicate"]
                if self._may_see(predicate) and only.admits(receipt, predicate):
                    rows.append(_row(receipt, predicate))
                if len(rows) == limit:
                    more = True
                    break
        return ReceiptPage(rows=tuple(rows), before=last if (more and rows) or more else None, looked_at=looked_at)

    async def receipt(self, receipt_id: str) -> ReceiptView:
        """One receipt and its verdict. Raises ReceiptNotFound, also for what this principal may not see."""
        receipt = await self._reader.get(receipt_id)
        statement = receipt.statement()
        if not self._may_see(statement["predicate"]):
            raise ReceiptNotFound(f"No receipt {receipt_id[:80]!r} here.", remedy="The list of receipts shows those that are.")
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
            statement=statement,
            envelope=json.loads(receipt.envelope),
        )

    async def experts(self) -> Experts:
        """Every configured expert with its health, and the projects."""
        registry = await self._router.registry()
        return Experts(experts=registry.experts, projects=registry.projects, notes=registry.notes)

    async def repositories(self) -> Repositories:
        """Coverage of every project by the index; remembered for REPOSITORIES_SECONDS."""
        if self._repositories is None or time.monotonic() >= self._repositories[0]:
            router = self._router
            keeper = IndexKeeper(router.workspace, router.experts.index, router.loaded.config.index.unused_days)
            told = _tell_repositories(await keeper.status(), {p.id: p for p in router.workspace.projects})
            self._repositories = (time.monotonic() + REPOSITORIES_SECONDS, told)
        return self._repositories[1]

    async def experiment(self, slug: str | None) -> ExperimentAnswer:
        """One experiment (None: the configured one)."""
        return await self._router.experiments(slug)

    def configuration(self) -> Configuration:
        """Every effective value with its origin. Secrets are `set` or `not set`."""
        loaded = self._router.loaded
        values = tuple(SetValue(key=r.key, value=r.value, layer=r.layer.value, source=r.source, line=r.line or 0) for r in explain(loaded))
        return Configuration(version=loaded.version, hash=loaded.hash, values=values, notes=self._router.notes)

    async def search(self, raw: Mapping[str, Any]) -> tuple[Answer, str]:
        """(the answer, the text that an agent gets). Leaves a receipt like every request. Raises ReceiptError."""
        answer = await self._router.search(raw, session="console", principal=self._principal)
        return answer, self._router.render(answer)

    def _sees_all(self) -> bool:
        return self._principal == LOCAL

    def _may_see(self, predicate: Mapping[str, Any]) -> bool:
        return self._sees_all() or predicate.get("principal") == self._principal

    def _read_events(self) -> tuple[_Event, ...]:
        """Events of this principal, newest first, of at most WINDOW requests."""
        database = open_for_reading(self._router.loaded.paths.home / FILE_NAME)
        if database is None:
            return ()
        try:
            rows = database.execute(
                "SELECT time_us, kind, operation, arm, coalesce(task_class, 'none'), status, latency_ms, receipt_id "
                "FROM tool_benchmark_events WHERE ?1 OR principal = ?2 ORDER BY id DESC LIMIT ?3",
                (self._sees_all(), self._principal, WINDOW * ROWS_A_REQUEST),
            ).fetchall()
        finally:
            database.close()
        found: list[_Event] = []
        requests = 0
        for row in rows:
            event = _Event(*row)
            requests += event.kind == "request"
            if requests > WINDOW:
                break
            found.append(event)
        return tuple(found)

    def _count_receipts(self, ids: Sequence[str]) -> tuple[int, int]:
        """(receipts of the whole store, how many of `ids` are among them)."""
        directory: Path = self._router.loaded.paths.receipts
        wanted: dict[str, list[int]] = defaultdict(list)
        for receipt_id in ids:
            log, _, seq = receipt_id.partition(":")
            wanted[log].append(int(seq))
        whole = there = 0
        for log in log_ids(directory):
            database = sqlite3.connect(f"{log_path(directory, log).as_uri()}?mode=ro", uri=True, timeout=1)
            try:
                whole += database.execute("SELECT coalesce(max(seq), 0) FROM receipts").fetchone()[0]
                numbers = json.dumps(wanted.get(log, []))
                there += database.execute(
                    "SELECT count(*) FROM json_each(?) AS w JOIN receipts AS r ON r.seq = w.value", (numbers,)
                ).fetchone()[0]
            finally:
                database.close()
        return whole, there


def _row(receipt: Receipt, predicate: Mapping[str, Any]) -> ReceiptRow:
    budget: Mapping[str, Any] = predicate.get("budget") or {}
    used: int | None = budget.get("used_us")
    return ReceiptRow(
        id=receipt.id,
        seq=receipt.seq,
        log=receipt.log,
        time_us=receipt.time_us,
        status=receipt.status,
        intent=receipt.intent,
        operation=str(predicate.get("operation", "search")),
        principal=predicate.get("principal"),
        used_ms=used / 1000 if used is not None else None,
        items=len(predicate.get("items") or predicate.get("fetched") or ()),
    )


def _counts(names: Iterable[str]) -> tuple[Count, ...]:
    """By frequency, then name."""
    return tuple(Count(name=n, count=c) for n, c in sorted(Counter(names).items(), key=lambda kv: (-kv[1], kv[0])))


def _per_hour(times_us: Sequence[int]) -> tuple[Count, ...]:
    """The last 24 hours up to now, empty ones as well."""
    this = time.time_ns() // 1000 // HOUR_US
    counted = Counter(t // HOUR_US for t in times_us)
    return tuple(Count(name=str(hour * 3600), count=counted.get(hour, 0)) for hour in range(this - 23, this + 1))


def nearest_rank(ordered: Sequence[float], share: float) -> float:
    """The percentile by nearest rank of values in ascending order; 0 for none."""
    return round(ordered[max(0, math.ceil(share * len(ordered)) - 1)], 3) if ordered else 0.0


def _distributions(events: Sequence[_Event], kind: str, name_of: Callable[[_Event], str]) -> tuple[Distribution, ...]:
    groups: dict[str, list[float]] = defaultdict(list)
    for event in events:
        groups[name_of(event)].append(event.latency_ms)
    found: list[Distribution] = []
    for name, values in sorted(groups.items()):
        values.sort()
        below = [sum(v <= edge for v in values) for edge in BUCKETS_MS]
        steps = [b - a for a, b in zip([0, *below], below, strict=False)]
        buckets = [Bucket(up_to_ms=edge, count=count) for edge, count in zip(BUCKETS_MS, steps, strict=True)]
        buckets.append(Bucket(up_to_ms=None, count=len(values) - below[-1]))
        p50, p95, p99 = (nearest_rank(values, share) for share in (0.5, 0.95, 0.99))
        found.append(Distribution(name=name, kind=kind, events=len(values), p50_ms=p50, p95_ms=p95, p99_ms=p99, buckets=tuple(buckets)))
    return tuple(found)


def _tell_repositories(status: IndexStatus, projects: Mapping[str, Any]) -> Repositories:
    told: list[RepositoryIndex] = []
    for p in status.projects:
        left = tuple(LeftOutFile(path=x.path, reason=x.reason) for x in p.left_out[:SHOWN_FILES])
        told.append(
            RepositoryIndex(
                id=p.project.id,
                root=str(p.project.root),
                kind=p.project.kind,
                branch=p.project.branch,
                head=p.project.head,
                indexed=p.indexed,
                waiting=len(p.waiting),
                damaged=len(p.damaged),
                left_out=len(p.left_out),
                files_left_out=left,
                languages=dict(p.languages),
            )
        )
    for name, error in status.failures.items():
        project = projects[name]
        told.append(
            RepositoryIndex(
                id=name,
                root=str(project.root),
                kind=project.kind,
                branch=project.branch,
                head=project.head,
                indexed=0,
                waiting=0,
                damaged=0,
                left_out=0,
                files_left_out=(),
                languages={},
                failure=str(error),
            )
        )
    store = status.store
    orphans = tuple(str(root) for root, _ in store.roots if not root.is_dir())
    return Repositories(
        projects=tuple(told),
        store_path=str(store.path),
        store_bytes=store.bytes,
        rows=store.rows,
        unused_rows=store.unused,
        orphans=orphans,
        notes=tuple(status.notes),
    )
