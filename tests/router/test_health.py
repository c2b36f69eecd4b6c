"""What experts say of themselves is read at once, remembered, and never waited for twice."""

from __future__ import annotations

import anyio
import anyio.lowlevel
import pytest

from search_router.router.health import FRESH_SECONDS, USABLE_SECONDS, HealthWatch
from search_router.schema import ExpertCall, ExpertCard, ExpertResult, Health, Intent, PrecisionClass, Project

pytestmark = pytest.mark.anyio


class Patient:
    """An expert whose health is known when the others have been asked too."""

    def __init__(self, name: str, asked: anyio.Event, others: anyio.Event) -> None:
        self.card = ExpertCard(name, "scripted", PrecisionClass.LEXICAL, name, frozenset(Intent), None, "embedded", 100, "live")
        self.readings = 0
        self._asked = asked
        self._others = others

    async def search(self, call: ExpertCall) -> ExpertResult:
        raise NotImplementedError

    async def health(self, projects: tuple[Project, ...]) -> Health:
        self.readings += 1
        self._asked.set()
        await self._others.wait()
        return Health(True, f"reading {self.readings}")

    async def aclose(self) -> None: ...


def pair() -> tuple[Patient, Patient]:
    first, second = anyio.Event(), anyio.Event()
    return Patient("a", first, second), Patient("b", second, first)


async def test_experts_are_asked_at_once_and_once_for_many_requests() -> None:
    a, b = pair()
    watch = HealthWatch({"a": a, "b": b}, ())
    with anyio.fail_after(5):
        async with anyio.create_task_group() as tasks:
            for _ in range(5):
                tasks.start_soon(watch.current, "ab")
    assert (a.readings, b.readings) == (1, 1)
    assert (await watch.current("a"))["a"].reason == "reading 1"
    assert (a.readings, b.readings) == (1, 1)
    assert (await watch.read_now())["a"].reason == "reading 2"
    await watch.aclose()


async def test_a_request_that_is_cancelled_does_not_end_the_reading_for_the_others() -> None:
    never = anyio.Event()
    asked = anyio.Event()
    expert = Patient("a", asked, never)
    watch = HealthWatch({"a": expert}, ())
    with anyio.fail_after(5):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(watch.current, "a")
            await asked.wait()
            tasks.cancel_scope.cancel()
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(watch.current, "a")
            never.set()
    assert expert.readings == 1
    await watch.aclose()


async def test_closing_ends_a_reading_that_runs() -> None:
    asked = anyio.Event()
    watch = HealthWatch({"a": Patient("a", asked, anyio.Event())}, ())
    with anyio.fail_after(5):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(watch.current, "a")
            await asked.wait()
            tasks.cancel_scope.cancel()
        await watch.aclose()
        await watch.aclose()


async def test_an_older_reading_is_used_while_the_next_one_runs_and_a_too_old_one_is_not() -> None:
    now = 100.0
    go = anyio.Event()
    expert = Patient("a", anyio.Event(), go)
    watch = HealthWatch({"a": expert}, (), clock=lambda: now)
    go.set()
    with anyio.fail_after(5):
        assert (await watch.current("a"))["a"].reason == "reading 1"
        now += FRESH_SECONDS
        assert (await watch.current("a"))["a"].reason == "reading 1"
        while (await watch.current("a"))["a"].reason == "reading 1":
            await anyio.lowlevel.checkpoint()
        assert expert.readings == 2
        now += USABLE_SECONDS
        assert (await watch.current("a"))["a"].reason == "reading 3"
    await watch.aclose()
