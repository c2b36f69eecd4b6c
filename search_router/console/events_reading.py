"""What the console reads of the benchmark events: bounded windows of the newest, and of one principal's alone where only those may be seen.

Synchronous; for a worker thread. Everything may raise EnrichUnavailable and sqlite3.Error.
"""

from __future__ import annotations

import contextlib
import sqlite3
from collections import defaultdict
from collections.abc import Generator, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from search_router.answers import ExperimentAnswer, ExperimentArm, ExperimentClass, ExperimentConfig
from search_router.console.numbers import Event, nearest_rank
from search_router.console.records import ReportedOutcome
from search_router.router.enrich.database import open_for_reading
from search_router.router.enrich.events import list_slugs

REQUESTS: Final = 2_000
"""Requests that the overview looks at."""
ROWS_A_REQUEST: Final = 8
LOOKED_AT: Final = 40_000
"""Rows that are looked through for one principal's."""
EXPERIMENT_ROWS: Final = 6_000
"""Events of an experiment that are added up."""
EXPERIMENT_LOOKED_AT: Final = 20_000
"""Events of an experiment that are looked through for one principal's."""
SLUGS: Final = 200
OUTCOMES: Final = 50
WITHOUT_FAILURE: Final = frozenset({"ok", "empty", "answered", "cached"})


class Eye(NamedTuple):
    """Who looks: None sees the events of all."""

    principal: str | None


class _Row(NamedTuple):
    arm: str
    kind: str
    precision_class: str | None
    task_class: str
    status: str
    latency_ms: float
    result_count: int
    hit: int
    config_version: str
    config_hash: str
    time_us: int
    run_id: str
    operation: str


@contextlib.contextmanager
def _opened(path: Path) -> Generator[sqlite3.Connection | None]:
    database = open_for_reading(path)
    try:
        yield database
    finally:
        if database is not None:
            database.close()


def read_events(path: Path, eye: Eye) -> tuple[Event, ...]:
    """The newest events, newest first, of at most REQUESTS requests."""
    with _opened(path) as database:
        if database is None:
            return ()
        rows = database.execute(
            "SELECT time_us, kind, operation, arm, coalesce(task_class, 'none'), status, latency_ms, receipt_id, coalesce(cache, '') "
            "FROM tool_benchmark_events WHERE id > (SELECT coalesce(max(id), 0) FROM tool_benchmark_events) - :looked_at "
            "AND (:principal IS NULL OR principal = :principal) ORDER BY id DESC LIMIT :rows",
            {"principal": eye.principal, "rows": REQUESTS * ROWS_A_REQUEST, "looked_at": LOOKED_AT},
        )
        found: list[Event] = []
        requests = 0
        for row in rows:
            event = Event._make(row)
            requests += event.kind == "request"
            if requests > REQUESTS:
                break
            found.append(event)
    return tuple(found)


def read_slugs(path: Path, eye: Eye) -> tuple[str, ...]:
    """Experiments by name, most recent first, at most SLUGS."""
    with _opened(path) as database:
        if database is None or eye.principal is None:
            return list_slugs(database)[:SLUGS]
        rows = database.execute(
            "SELECT paper_slug FROM tool_benchmark_events WHERE id > (SELECT coalesce(max(id), 0) FROM tool_benchmark_events) - :looked_at "
            "AND (:principal IS NULL OR principal = :principal) GROUP BY 1 ORDER BY max(id) DESC LIMIT :rows",
            {"principal": eye.principal, "looked_at": LOOKED_AT, "rows": SLUGS},
        )
        return tuple(slug for (slug,) in rows)


class ReadExperiment(NamedTuple):
    """One experiment, and the arms of the configurations that were asked for, in that order."""

    told: ExperimentAnswer
    arms: tuple[tuple[ExperimentArm, ...], ...]


def read_experiment(path: Path, eye: Eye, slug: str, hashes: Sequence[str] = ()) -> ReadExperiment:
    """What the newest EXPERIMENT_ROWS events of one experiment add up to; who sees all also gets the counts of all time.

    `hashes` are beginnings of the hashes of configurations to tell apart.
    """
    with _opened(path) as database:
        rows = [] if database is None else _experiment_rows(database, eye, slug)
        ever: tuple[int, int, int, int, int] | None = None
        if database is not None and eye.principal is None:
            ever = database.execute(
                "SELECT created_us, updated_us, requests, calls, cached FROM experiments WHERE paper_slug = ?", (slug,)
            ).fetchone()
    arms = tuple(arms_of([row for row in rows if row.config_hash.startswith(each)]) for each in hashes)
    return ReadExperiment(add_up(slug, rows, ever), arms)


def read_outcomes(path: Path, eye: Eye, receipt_id: str) -> tuple[ReportedOutcome, ...]:
    """What was said later of the evidence of one receipt, at most OUTCOMES."""
    with _opened(path) as database:
        if database is None:
            return ()
        rows = database.execute(
            "SELECT outcome_receipt_id, source, outcome, max(time_us) FROM outcomes WHERE receipt_id = :receipt "
            "AND (:principal IS NULL OR principal = :principal) GROUP BY 1, 2, 3 ORDER BY 4, 1 LIMIT :rows",
            {"principal": eye.principal, "receipt": receipt_id, "rows": OUTCOMES},
        ).fetchall()
    return tuple(ReportedOutcome(receipt=r, source=s, outcome=o, time_us=t) for r, s, o, t in rows)


def add_up(slug: str, rows: Sequence[_Row], ever: tuple[int, int, int, int, int] | None) -> ExperimentAnswer:
    """Pure. `ever` is (first, last, requests, calls, cached) of all time; without it those of `rows`."""
    if not rows and ever is None:
        return ExperimentAnswer(paper_slug=slug, retention=_kept())
    requests = [row for row in rows if row.kind == "request"]
    times = [row.time_us for row in rows] or [0]
    seen = (min(times), max(times), len(requests), len(rows) - len(requests), sum(row.status == "cached" for row in rows))
    created, updated, asked, called, cached = ever or seen
    return ExperimentAnswer(
        paper_slug=slug,
        created_us=created,
        updated_us=updated,
        requests=asked,
        calls=called,
        cached=cached,
        runs=len({row.run_id for row in rows}),
        arms=arms_of(rows),
        task_classes=_classes(rows),
        configs=_configs(requests),
        retention=_kept(),
    )


def arms_of(rows: Sequence[_Row]) -> tuple[ExperimentArm, ...]:
    """The router first, then the experts by name; of searches alone. Pure."""
    groups: dict[tuple[str, str], list[_Row]] = defaultdict(list)
    for row in rows:
        if row.operation == "search":
            groups[row.kind, row.arm].append(row)
    arms: list[ExperimentArm] = []
    for (kind, arm), each in sorted(groups.items(), key=lambda item: (item[0][0] != "request", item[0][1])):
        latencies, hits = sorted(row.latency_ms for row in each), sum(row.hit for row in each)
        arms.append(
            ExperimentArm(
                arm=arm,
                kind=kind,
                precision_class=max((row.precision_class for row in each if row.precision_class), default=None),
                events=len(each),
                hits=hits,
                misses=len(each) - hits,
                answered=sum(row.status in WITHOUT_FAILURE for row in each),
                results=sum(row.result_count for row in each),
                p50_ms=nearest_rank(latencies, 0.5),
                p95_ms=nearest_rank(latencies, 0.95),
            )
        )
    return tuple(arms)


def _classes(rows: Sequence[_Row]) -> tuple[ExperimentClass, ...]:
    groups: dict[str, list[_Row]] = defaultdict(list)
    for row in rows:
        if row.operation == "search":
            groups[row.task_class].append(row)
    told: list[ExperimentClass] = []
    for name, each in sorted(groups.items()):
        requests = [row for row in each if row.kind == "request"]
        hits, cached = sum(row.hit for row in requests), sum(row.status == "cached" for row in requests)
        told.append(ExperimentClass(task_class=name, requests=len(requests), calls=len(each) - len(requests), hits=hits, cached=cached))
    return tuple(told)


def _configs(requests: Sequence[_Row]) -> tuple[ExperimentConfig, ...]:
    groups: dict[tuple[str, str], list[int]] = defaultdict(list)
    for row in requests:
        groups[row.config_version, row.config_hash].append(row.time_us)
    told = [ExperimentConfig(version=v, hash=h, requests=len(t), first_us=min(t), last_us=max(t)) for (v, h), t in groups.items()]
    return tuple(sorted(told, key=lambda c: (-c.last_us, c.hash))[:100])


def _experiment_rows(database: sqlite3.Connection, eye: Eye, slug: str) -> list[_Row]:
    rows = database.execute(
        "SELECT arm, kind, precision_class, coalesce(task_class, 'none'), status, latency_ms, result_count, hit_miss = 'hit', "
        "config_version, config_hash, time_us, run_id, operation FROM "
        "(SELECT * FROM tool_benchmark_events WHERE paper_slug = :slug ORDER BY time_us DESC LIMIT :looked_at) "
        "WHERE :principal IS NULL OR principal = :principal ORDER BY time_us DESC LIMIT :rows",
        {
            "slug": slug,
            "principal": eye.principal,
            "rows": EXPERIMENT_ROWS,
            "looked_at": EXPERIMENT_ROWS if eye.principal is None else EXPERIMENT_LOOKED_AT,
        },
    )
    return [_Row._make(row) for row in rows]


def _kept() -> str:
    return f"arms, classes and configurations are of the newest {EXPERIMENT_ROWS:,} events"
