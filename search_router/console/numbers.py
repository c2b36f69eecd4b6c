"""Counts and distributions of benchmark events. Pure."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from typing import Final, NamedTuple

from search_router.console.records import Bucket, Count, Distribution
from search_router.router.enrich.events import HINTED

HOUR_US: Final = 3_600 * 1_000_000
BUCKETS_MS: Final = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1_000, 2_000, 5_000, 10_000)


class Event(NamedTuple):
    """One benchmark event as the overview needs it; `kind` is `request` or `call`."""

    time_us: int
    kind: str
    operation: str
    arm: str
    intent: str
    status: str
    latency_ms: float
    receipt: str
    cache: str = ""


def hint_savings(requests: Iterable[Event], calls: Iterable[Event]) -> tuple[int, float]:
    """(expert calls that hints made needless, their time in ms at each expert's median over the calls that were made)."""
    spared = Counter(name for event in requests for name in event.cache.rpartition(HINTED)[2].split() if HINTED in event.cache)
    latencies: dict[str, list[float]] = defaultdict(list)
    for event in calls:
        if event.arm in spared:
            latencies[event.arm].append(event.latency_ms)
    saved = sum(times * nearest_rank(sorted(latencies[name]), 0.5) for name, times in spared.items())
    return spared.total(), round(saved, 3)


def counts(names: Iterable[str]) -> tuple[Count, ...]:
    """By frequency, then name."""
    return tuple(Count(name=n, count=c) for n, c in sorted(Counter(names).items(), key=lambda kv: (-kv[1], kv[0])))


def per_hour(times_us: Iterable[int], now_us: int) -> tuple[Count, ...]:
    """The 24 hours up to that of `now_us`, empty ones as well; `name` is the hour's Unix time in seconds."""
    this = now_us // HOUR_US
    counted = Counter(t // HOUR_US for t in times_us)
    return tuple(Count(name=str(hour * 3600), count=counted.get(hour, 0)) for hour in range(this - 23, this + 1))


def nearest_rank(ordered: Sequence[float], share: float) -> float:
    """The percentile by nearest rank of values in ascending order; 0 for none."""
    return round(ordered[max(0, math.ceil(share * len(ordered)) - 1)], 3) if ordered else 0.0


def distributions(events: Sequence[Event], kind: str, name_of: Callable[[Event], str]) -> tuple[Distribution, ...]:
    """One of each name, by name. A bucket holds what is above the one before it and at most `up_to_ms`."""
    groups: dict[str, list[float]] = defaultdict(list)
    for event in events:
        groups[name_of(event)].append(event.latency_ms)
    return tuple(_distribution(name, kind, sorted(values)) for name, values in sorted(groups.items()))


def _distribution(name: str, kind: str, ordered: Sequence[float]) -> Distribution:
    buckets = [0] * (len(BUCKETS_MS) + 1)
    for value in ordered:
        buckets[bisect_left(BUCKETS_MS, value)] += 1
    p50, p95, p99 = (nearest_rank(ordered, share) for share in (0.5, 0.95, 0.99))
    told = tuple(Bucket(up_to_ms=edge, count=count) for edge, count in zip((*BUCKETS_MS, None), buckets, strict=True))
    return Distribution(name=name, kind=kind, events=len(ordered), p50_ms=p50, p95_ms=p95, p99_ms=p99, buckets=told)
