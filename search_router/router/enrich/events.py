"""Benchmark events: one row for each request and one for each expert call, and the experiments that they add up to.

A question never enters, only its keyed digest, the same as in its receipt. Read back with `search-router experiments` and
`GET /api/experiments`.
"""

from __future__ import annotations

import itertools
import math
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from operator import attrgetter
from typing import Any, Final, Literal

from search_router.answers import ExperimentAnswer, ExperimentArm, ExperimentClass, ExperimentConfig
from search_router.router.enrich.database import RETENTION
from search_router.router.fanout import Reply
from search_router.schema import Answer, ExpertCard, ExpertStatus

ROUTER_ARM: Final = "router"
"""The arm of a request's own row; a call's arm is its expert."""
FOUND: Final = frozenset({ExpertStatus.OK})
LOOKED: Final = ("ok", "empty")
SLUG_CHARACTERS: Final = 100


@dataclass(frozen=True, slots=True)
class EventSource:
    """What all events of one open router share."""

    run_id: str
    paper_slug: str
    config_version: str
    config_hash: str


@dataclass(frozen=True, slots=True)
class Asked:
    """One request as its events tell of it: `question_hash` is the receipt's keyed digest, `cache` how the cache was used."""

    event_id: str
    time_us: int
    operation: Literal["search", "fetch", "outcome"]
    question_hash: str | None = None
    cache: str | None = None
    session: str | None = None
    principal: str | None = None


@dataclass(frozen=True, slots=True)
class Event:
    """One row of `tool_benchmark_events`; the fields are its columns."""

    event_id: str
    time_us: int
    paper_slug: str
    run_id: str
    kind: Literal["request", "call"]
    operation: str
    arm: str
    expert_id: str | None
    task_class: str | None
    question_hash: str | None
    status: str
    latency_ms: float
    result_count: int
    precision_class: str | None
    hit_miss: Literal["hit", "miss"]
    cache: str | None
    config_version: str
    config_hash: str
    receipt_id: str
    session: str | None
    principal: str | None


HINTED: Final = "; hinted "
"""In the `cache` of a request, before the experts that a hint made needless to ask."""
MakeEvents = Callable[[], Sequence[Event]]
_COLUMNS: Final = tuple(field.name for field in fields(Event))
_values_of: Final = attrgetter(*_COLUMNS)
_ROWS: Final = 32
"""Rows in one statement: their values are fewer than the 999 that old builds of SQLite take."""


def events_of(
    source: EventSource, asked: Asked, answer: Answer, replies: Sequence[Reply], cards: Mapping[str, ExpertCard]
) -> tuple[Event, ...]:
    """The rows of one search that has its receipt: the request first, then the calls that were made, in their order. Pure."""
    assert answer.receipt is not None
    intent = answer.classification.intent.value if answer.classification else None
    shared: dict[str, Any] = {
        "time_us": asked.time_us,
        "paper_slug": source.paper_slug,
        "run_id": source.run_id,
        "operation": asked.operation,
        "task_class": intent,
        "question_hash": asked.question_hash,
        "config_version": source.config_version,
        "config_hash": source.config_hash,
        "receipt_id": answer.receipt.id,
        "session": asked.session,
        "principal": asked.principal,
    }
    hinted = [reply.call.expert for reply in replies if reply.status is ExpertStatus.SKIPPED and reply.result is not None]
    cache = f"{asked.cache or ''}{HINTED}{' '.join(hinted)}" if hinted else asked.cache
    request = Event(
        event_id=asked.event_id,
        kind="request",
        arm=ROUTER_ARM,
        expert_id=None,
        status=answer.status.value,
        latency_ms=answer.budget.used_ms,
        result_count=len(answer.evidence),
        precision_class=None,
        hit_miss="hit" if answer.evidence else "miss",
        cache=cache,
        **shared,
    )
    calls = (
        Event(
            event_id=f"{asked.event_id}/{reply.call.expert}",
            kind="call",
            arm=reply.call.expert,
            expert_id=reply.call.expert,
            status=reply.status.value,
            latency_ms=reply.latency_us / 1000,
            result_count=reply.report.results,
            precision_class=cards[reply.call.expert].precision_class.value,
            hit_miss="hit" if reply.status in FOUND else "miss",
            cache=asked.cache,
            **shared,
        )
        for reply in replies
        if reply.status is not ExpertStatus.SKIPPED
    )
    return (request, *calls)


def event_of_other(source: EventSource, asked: Asked, status: str, receipt_id: str, latency_ms: float, count: int) -> Event:
    """The one row of a request that asks no expert: a fetch or a reported outcome. Pure."""
    return Event(
        event_id=asked.event_id,
        time_us=asked.time_us,
        paper_slug=source.paper_slug,
        run_id=source.run_id,
        kind="request",
        operation=asked.operation,
        arm=ROUTER_ARM,
        expert_id=None,
        task_class=None,
        question_hash=None,
        status=status,
        latency_ms=latency_ms,
        result_count=count,
        precision_class=None,
        hit_miss="hit" if count else "miss",
        cache=None,
        config_version=source.config_version,
        config_hash=source.config_hash,
        receipt_id=receipt_id,
        session=asked.session,
        principal=asked.principal,
    )


def write_events(database: sqlite3.Connection, events: Iterable[Event]) -> None:
    """Add the rows and count them in their experiments. Part of the caller's transaction; rows that are there already count once.

    Many rows a statement: between two statements the thread asks for the interpreter again, and whoever answers a question waits for it.
    """
    for some in _in_parts({event.event_id: event for event in events}.values(), _ROWS):
        marks = ", ".join("?" * len(some))
        known = database.execute(
            f"SELECT event_id FROM tool_benchmark_events WHERE event_id IN ({marks})",  # noqa: S608 - question marks
            [event.event_id for event in some],
        ).fetchall()
        there = {event_id for (event_id,) in known}
        fresh = [event for event in some if event.event_id not in there]
        if not fresh:
            continue
        rows = ", ".join([f"({', '.join('?' * len(_COLUMNS))})"] * len(fresh))
        database.execute(
            f"INSERT INTO tool_benchmark_events ({', '.join(_COLUMNS)}) VALUES {rows}",  # noqa: S608 - constants and question marks
            [value for event in fresh for value in _values_of(event)],
        )
        for slug in dict.fromkeys(event.paper_slug for event in fresh):
            _count(database, slug, [event for event in fresh if event.paper_slug == slug])


def _in_parts(events: Iterable[Event], size: int) -> Iterator[list[Event]]:
    rest = iter(events)
    while part := list(itertools.islice(rest, size)):
        yield part


def _count(database: sqlite3.Connection, slug: str, events: Sequence[Event]) -> None:
    times = [event.time_us for event in events]
    requests = sum(event.kind == "request" for event in events)
    cached = sum(event.status == "cached" for event in events)
    database.execute(
        "INSERT INTO experiments (paper_slug, created_us, updated_us, requests, calls, cached) VALUES (?1, ?2, ?3, ?4, ?5, ?6) "
        "ON CONFLICT (paper_slug) DO UPDATE SET updated_us = max(updated_us, ?3), requests = requests + ?4, calls = calls + ?5, "
        "cached = cached + ?6",
        (slug, min(times), max(times), requests, len(events) - requests, cached),
    )


def read_experiment(database: sqlite3.Connection | None, paper_slug: str) -> ExperimentAnswer:
    """What is known of one experiment: its counts of all time, and arms, classes and configurations of the events that are kept."""
    keep = next(keep for keep in RETENTION if keep.table == "tool_benchmark_events")
    kept = f"the newest {keep.rows:,} events of the last {keep.days} days"
    row = None
    if database is not None:
        row = database.execute(
            "SELECT created_us, updated_us, requests, calls, cached FROM experiments WHERE paper_slug = ?", (paper_slug,)
        ).fetchone()
    if database is None or row is None:
        return ExperimentAnswer(paper_slug=paper_slug[:SLUG_CHARACTERS], retention=kept)
    runs = database.execute("SELECT count(DISTINCT run_id) FROM tool_benchmark_events WHERE paper_slug = ?", (paper_slug,)).fetchone()[0]
    return ExperimentAnswer(
        paper_slug=paper_slug,
        created_us=row[0],
        updated_us=row[1],
        requests=row[2],
        calls=row[3],
        cached=row[4],
        runs=runs,
        arms=_arms(database, paper_slug),
        task_classes=_classes(database, paper_slug),
        configs=_configs(database, paper_slug),
        retention=kept,
    )


def list_slugs(database: sqlite3.Connection | None) -> tuple[str, ...]:
    """Every slug that has events, most recent first."""
    if database is None:
        return ()
    return tuple(slug for (slug,) in database.execute("SELECT paper_slug FROM experiments ORDER BY updated_us DESC, paper_slug"))


def _arms(database: sqlite3.Connection, paper_slug: str) -> tuple[ExperimentArm, ...]:
    rows = database.execute(
        "SELECT arm, kind, max(precision_class), count(*), sum(hit_miss = 'hit'), sum(status IN ('ok', 'empty', 'answered', 'cached')), "
        "sum(result_count) FROM tool_benchmark_events WHERE paper_slug = ? AND operation = 'search' "
        "GROUP BY arm, kind ORDER BY kind DESC, arm",
        (paper_slug,),
    ).fetchall()
    return tuple(
        ExperimentArm(
            arm=arm,
            kind=kind,
            precision_class=precision,
            events=count,
            hits=hits,
            misses=count - hits,
            answered=answered,
            results=results,
            p50_ms=_quantile(database, paper_slug, arm, count, 0.5),
            p95_ms=_quantile(database, paper_slug, arm, count, 0.95),
        )
        for arm, kind, precision, count, hits, answered, results in rows
    )


def _quantile(database: sqlite3.Connection, paper_slug: str, arm: str, count: int, share: float) -> float:
    """Nearest rank."""
    place = max(0, math.ceil(share * count) - 1)
    row = database.execute(
        "SELECT latency_ms FROM tool_benchmark_events WHERE paper_slug = ? AND operation = 'search' AND arm = ? "
        "ORDER BY latency_ms LIMIT 1 OFFSET ?",
        (paper_slug, arm, place),
    ).fetchone()
    return round(row[0], 3)


def _classes(database: sqlite3.Connection, paper_slug: str) -> tuple[ExperimentClass, ...]:
    rows = database.execute(
        "SELECT coalesce(task_class, 'none'), sum(kind = 'request'), sum(kind = 'call'), sum(kind = 'request' AND hit_miss = 'hit'), "
        "sum(kind = 'request' AND status = 'cached') FROM tool_benchmark_events WHERE paper_slug = ? AND operation = 'search' "
        "GROUP BY 1 ORDER BY 1",
        (paper_slug,),
    )
    return tuple(ExperimentClass(task_class=c, requests=r, calls=n, hits=h, cached=k) for c, r, n, h, k in rows)


def _configs(database: sqlite3.Connection, paper_slug: str) -> tuple[ExperimentConfig, ...]:
    rows = database.execute(
        "SELECT config_version, config_hash, sum(kind = 'request'), min(time_us), max(time_us) FROM tool_benchmark_events "
        "WHERE paper_slug = ? GROUP BY 1, 2 ORDER BY 5 DESC, 2 LIMIT 100",
        (paper_slug,),
    )
    return tuple(ExperimentConfig(version=v, hash=h, requests=n, first_us=a, last_us=b) for v, h, n, a, b in rows)
