"""Where a ladder bends, and what counts as drift."""

from __future__ import annotations

import pytest

from search_router.benchmark.soak import LIMITS, drift_of, knee_of


def steps(*rates: float) -> list[dict[str, float]]:
    return [{"clients": clients, "answers_per_second": rate} for clients, rate in zip((1, 10, 50, 100), rates, strict=True)]


@pytest.mark.parametrize(
    ("rates", "knee"),
    [((10, 60, 200, 400), 100), ((10, 60, 63, 62), 10), ((10, 9, 8, 7), 1), ((10, 60, 50, 67), 100), ((10, 60, 50, 61), 10)],
)
def test_the_knee_is_the_last_step_that_brought_a_tenth_more(rates: tuple[float, ...], knee: int) -> None:
    assert knee_of(steps(*rates)) == knee


def windows(**last: float) -> list[dict[str, float]]:
    still = {"p95_ms": 100.0, "p99_ms": 200.0, "rss_mib": 300.0, "files": 40.0, "threads": 20.0, "children": 1.0}
    return [still] * 9 + [still | last] * 3


def test_what_stays_as_it_was_does_not_drift_and_small_growth_is_room() -> None:
    assert all(each["ok"] for each in drift_of(windows()).values())
    assert all(each["ok"] for each in drift_of(windows(p95_ms=149, files=47, rss_mib=331)).values())


@pytest.mark.parametrize(
    "grown", [{"p95_ms": 151.0}, {"p99_ms": 401.0}, {"rss_mib": 361.0}, {"files": 49.0}, {"threads": 29.0}, {"children": 4.0}]
)
def test_growth_beyond_its_limit_is_drift(grown: dict[str, float]) -> None:
    (name,) = grown
    found = drift_of(windows(**grown))
    assert [key for key in LIMITS if not found[key]["ok"]] == [name]
