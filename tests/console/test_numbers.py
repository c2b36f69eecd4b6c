"""Counts and distributions, readings that are remembered, and what an operator is told of cache, hints, outcomes and suspended experts."""

from __future__ import annotations

import asyncio
import math
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from search_router.answers import RegisteredExpert
from search_router.console.charts import bars, timeline
from search_router.console.numbers import HOUR_US, Event, counts, distributions, hint_savings, nearest_rank, per_hour
from search_router.console.pages import next_try
from search_router.console.remembered import Remembered
from search_router.console.shown import show_predicate
from search_router.schema import PrecisionClass
from tests.console.consoles import TOKEN, console, read_page, served
from tests.router.enrich.workshop import QUESTIONS, ask, workshop

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=12,
)
NAMES = "operation principal classification plan experts stages items fetched cache hints outcomes notes budget config error".split()


def event(latency_ms: float, arm: str = "a") -> Event:
    return Event(0, "call", "search", arm, "none", "ok", latency_ms, "r")


def test_percentiles_are_nearest_ranks() -> None:
    values = [float(n) for n in range(1, 101)]
    assert [nearest_rank(values, share) for share in (0.5, 0.95, 0.99, 1.0)] == [50, 95, 99, 100]
    assert (nearest_rank([7.0], 0.5), nearest_rank([], 0.5)) == (7, 0)


@given(st.lists(st.floats(0, 1e6, allow_nan=False), max_size=50))
def test_every_latency_is_in_the_one_bucket_whose_bounds_hold_it(latencies: list[float]) -> None:
    told = distributions([event(value) for value in latencies], "expert", lambda e: e.arm)
    assert sum(d.events for d in told) == len(latencies)
    for distribution in told:
        below = -math.inf
        for bucket in distribution.buckets:
            above = math.inf if bucket.up_to_ms is None else bucket.up_to_ms
            assert bucket.count == sum(below < value <= above for value in latencies)
            below = above


def test_hours_are_the_last_24_and_older_requests_are_in_none() -> None:
    now = 100 * HOUR_US + 5
    told = per_hour([now, now - HOUR_US, now - 23 * HOUR_US, now - 24 * HOUR_US], now)
    assert [c.count for c in told] == [1, *[0] * 21, 1, 1]
    assert told[-1].name == str(100 * 3600)


def test_counts_are_by_frequency_then_name() -> None:
    assert [(c.name, c.count) for c in counts("banana")] == [("a", 3), ("n", 2), ("b", 1)]


@given(st.dictionaries(st.sampled_from(NAMES), JSON) | JSON)
def test_whatever_stands_in_a_predicate_can_be_shown(predicate: object) -> None:
    shown = show_predicate(predicate)
    assert len(shown.items) <= 200 and all(len(a.reason) <= 4097 for a in shown.asked)


@given(st.lists(st.tuples(st.floats(0, 1e9), st.text())))
def test_charts_are_well_formed_whatever_the_labels_are(values: list[tuple[float, str]]) -> None:
    drawn = bars([v for v, _ in values], [t for _, t in values], "".join(t for _, t in values))
    assert read_page(drawn).dangers == []
    assert timeline([], 0, "\"'<").count("<svg") == 1


@pytest.mark.anyio
async def test_a_reading_is_made_once_for_all_who_ask_and_shown_again_with_its_age() -> None:
    gate, made = asyncio.Event(), 0

    async def read() -> int:
        nonlocal made
        made += 1
        await gate.wait()
        return made

    remembered = Remembered(read, seconds=0.0, patience=0.01)
    waiting = [asyncio.create_task(remembered.get()) for _ in range(3)]
    gate.set()
    first = {(await task).value for task in waiting}
    assert (first, made) == ({1}, 1)
    gate.clear()
    old = await remembered.get()
    assert old.value == 1 and abs(time.time() - old.read_us / 1e6) < 60, "too old, and shown while the next one is read"
    gate.set()
    assert [(await remembered.get()).value for _ in range(2)][-1] >= 2


@pytest.mark.anyio
async def test_a_reading_that_fails_is_told_to_who_waits_and_tried_again() -> None:
    made = 0

    async def read() -> int:
        nonlocal made
        made += 1
        if made == 1:
            raise OSError("not now")
        return made

    remembered = Remembered(read, seconds=60.0)
    with pytest.raises(OSError, match="not now"):
        await remembered.get()
    assert [(await remembered.get()).value for _ in range(2)] == [2, 2]


def expert(**details: str) -> RegisteredExpert:
    return RegisteredExpert(
        id="x",
        kind="mcp",
        enabled=True,
        available=False,
        reason="r",
        precision_class=PrecisionClass.LEXICAL,
        engine="e",
        intents=(),
        transport="stdio",
        cap_ms=1,
        freshness="none",
        priors={},
        details=details,
    )


def test_the_time_of_the_next_try_is_told_of_suspended_experts_alone() -> None:
    assert next_try(expert(next_try_in_s="2.5"), 1_000_000) == 3_500_000
    for odd in ("", "soon", "nan", "-1", "inf", "0"):
        assert next_try(expert(next_try_in_s=odd), 1_000_000) is None
    assert next_try(expert(), 1) is None


@pytest.mark.anyio
@pytest.mark.network
async def test_a_suspended_expert_says_why_and_when_it_is_tried_again(tmp_path: Path) -> None:
    block = (
        'kind="http-json", url="http://127.0.0.1:9/", precision_class="lexical", engine="far", cap_ms=2000, intents=["conceptual"], '
        'answer={form="json", items="results", fields={path="path", start_line="line"}}'
    )
    async with console(tmp_path, flags=[f"experts.far={{{block}}}", "priors.conceptual.far=0.9"]) as it:
        for number in range(4):
            await it.router.search({"question": f"how does the app start {number}", "intent": "conceptual"})
        page = (await it.web.get("/console/experts")).text
        told = {e["id"]: e for e in (await it.web.get("/api/experts")).json()["experts"]}["far"]
    assert "next_try_in_s" in told["details"], told
    assert "suspended" in page and "Next try 20" in page


@pytest.mark.anyio
@pytest.mark.network
async def test_outcomes_and_uses_of_the_cache_are_shown_with_links(tmp_path: Path) -> None:
    async with console(tmp_path) as it:
        first = await it.router.search({"question": "start the app"}, session="s", principal="local")
        assert first.receipt is not None and first.evidence
        await it.router.enrichment.owner.flush()
        request = {"receipt": first.receipt.id, "outcome": "success", "evidence": [first.evidence[0].id]}
        told = await it.router.report_outcome(request, session="s", principal="local", owns=True)
        assert told.receipt is not None and told.credited, told
        await it.router.enrichment.owner.flush()
        page = (await it.web.get(f"/console/receipts/{first.receipt.id}")).text
        assert f"/console/receipts/{told.receipt.id}" in read_page(page).links and "success (reported)" in page
        page = (await it.web.get(f"/console/receipts/{told.receipt.id}")).text
        assert f"/console/receipts/{first.receipt.id}" in read_page(page).links and "good: " in page
        view = (await it.web.get(f"/api/receipts/{first.receipt.id}")).json()
        assert [(o["receipt"], o["outcome"]) for o in view["outcomes"]] == [(told.receipt.id, "success")]
        assert (await it.web.get("/console/receipts?operation=outcome")).text.count('<th scope="row">') == 1
    uses = {"cache": "stored by 0123456789ab:3", "hints": ["0123456789ab:4"], "outcomes": [{"of": "0123456789ab:5", "outcome": "x"}]}
    shown = show_predicate(uses)
    assert shown.cache is not None
    assert (shown.cache.receipt, shown.hints[0].receipt, shown.outcomes[0].of.receipt) == tuple(f"0123456789ab:{n}" for n in (3, 4, 5))


@pytest.mark.anyio
@pytest.mark.network
async def test_an_answer_from_the_cache_counts_as_one_and_names_the_receipt_that_it_came_from(tmp_path: Path) -> None:
    async with workshop(tmp_path) as router, served(router) as it:
        first, again = [await ask(router, QUESTIONS[0], limit=3) for _ in range(2)]
        assert first.receipt is not None and again.receipt is not None
        overview = (await it.web.get("/api/overview")).json()
        assert (overview["cached"], again.status.value) == (1, "cached")
        page = (await it.web.get(f"/console/receipts/{again.receipt.id}")).text
        assert "Used of earlier answers" in page and f"/console/receipts/{first.receipt.id}" in read_page(page).links


def test_hints_spare_calls_whose_time_is_the_median_of_those_that_were_made() -> None:
    requests = [Event(0, "request", "search", "router", "none", "answered", 1.0, "r", cache) for cache in ("miss; hinted a b", "miss", "")]
    assert hint_savings(requests, [event(3.0), event(5.0), event(90.0), event(7.0, "c")]) == (2, 5.0)
    assert hint_savings([], []) == (0, 0.0)


@pytest.mark.anyio
@pytest.mark.network
async def test_the_overview_counts_the_calls_that_a_hint_spared(tmp_path: Path) -> None:
    async with workshop(tmp_path, flags=("cache.positive_seconds=0", "cache.negative_seconds=0")) as router, served(router) as it:
        before, again = [await ask(router, QUESTIONS[1]) for _ in range(2)]
        spared = [r.id for r in again.experts if r.reason.startswith("hint: ")]
        assert spared and again.evidence == before.evidence
        overview = (await it.web.get("/api/overview")).json()
        assert (overview["hinted"], overview["hinted_ms"] > 0) == (len(spared), True)
        assert "Calls that hints spared" in (await it.web.get("/console/")).text


@pytest.mark.anyio
@pytest.mark.network
async def test_the_overview_links_to_the_metrics_where_they_are_on_and_a_login_opens_them(tmp_path: Path) -> None:
    async with console(tmp_path, flags=["telemetry.prometheus=true"]) as it:
        assert "/metrics" in read_page((await it.web.get("/console/")).text).links
    async with console(tmp_path, TOKEN) as it:
        await it.log_in()
        assert "/metrics" not in read_page((await it.web.get("/console/")).text).links
