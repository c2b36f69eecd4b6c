"""The line in which requests wait when the processor has no time for more."""

from __future__ import annotations

import asyncio
import time

import anyio
import pytest

from search_router.errors import RequestDeclined
from search_router.router.admission import SLOW_SECONDS, Admission

pytestmark = pytest.mark.anyio


def keep_the_loop() -> None:
    """One turn of the loop that takes too long."""
    asyncio.get_running_loop().call_soon(time.sleep, 2 * SLOW_SECONDS)


class Visitors:
    """Requests that stay until they are told to leave."""

    def __init__(self, admission: Admission) -> None:
        self.admission = admission
        self.inside: list[int] = []
        self.refused: list[str] = []
        self._ends: dict[int, anyio.Event] = {}

    async def visit(self, number: int) -> None:
        self._ends[number] = anyio.Event()
        try:
            async with self.admission.place():
                self.inside.append(number)
                await self._ends[number].wait()
                self.inside.remove(number)
        except RequestDeclined as error:
            self.refused.append(error.code)

    async def end(self, number: int) -> None:
        self._ends[number].set()
        await anyio.wait_all_tasks_blocked()


async def test_an_idle_loop_lets_everybody_in() -> None:
    visitors = Visitors(Admission(places=2))
    async with anyio.create_task_group() as tasks:
        for number in range(8):
            tasks.start_soon(visitors.visit, number)
            await anyio.wait_all_tasks_blocked()
        assert visitors.inside == list(range(8))
        tasks.cancel_scope.cancel()


async def test_with_a_loop_that_is_behind_they_wait_in_line_and_come_in_one_for_one() -> None:
    visitors = Visitors(Admission(places=2))
    async with anyio.create_task_group() as tasks:
        for number in range(5):
            tasks.start_soon(visitors.visit, number)
            keep_the_loop()
            await anyio.wait_all_tasks_blocked()
        assert visitors.inside == [0, 1]
        await visitors.end(0)
        assert visitors.inside == [1, 2]
        await visitors.end(1)
        assert visitors.inside == [2, 3]
        for number in (2, 3, 4):
            await visitors.end(number)
    assert visitors.inside == [] and not visitors.refused


async def test_who_is_cancelled_in_line_takes_no_place_and_holds_up_nobody() -> None:
    visitors = Visitors(Admission(places=1))
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(visitors.visit, 0)
        await anyio.wait_all_tasks_blocked()
        async with anyio.create_task_group() as leaving:
            leaving.start_soon(visitors.visit, 1)
            keep_the_loop()
            await anyio.wait_all_tasks_blocked()
            tasks.start_soon(visitors.visit, 2)
            await anyio.wait_all_tasks_blocked()
            leaving.cancel_scope.cancel()
        assert visitors.inside == [0]
        await visitors.end(0)
        assert visitors.inside == [2]
        await visitors.end(2)


async def test_a_place_that_comes_together_with_a_cancellation_goes_to_the_next() -> None:
    visitors = Visitors(Admission(places=1))
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(visitors.visit, 0)
        await anyio.wait_all_tasks_blocked()
        second = asyncio.ensure_future(visitors.visit(1))
        keep_the_loop()
        await anyio.wait_all_tasks_blocked()
        tasks.start_soon(visitors.visit, 2)
        await anyio.wait_all_tasks_blocked()
        visitors.admission._leave()  # pyright: ignore[reportPrivateUsage] - its place is given and it is cancelled in one turn of the loop
        second.cancel()
        await anyio.wait_all_tasks_blocked()
        assert visitors.inside == [0, 2]
        tasks.cancel_scope.cancel()


async def test_whose_turn_does_not_come_in_time_is_told_that_too_many_are_underway() -> None:
    visitors = Visitors(Admission(places=1, seconds=0.05))
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(visitors.visit, 0)
        await anyio.wait_all_tasks_blocked()
        tasks.start_soon(visitors.visit, 1)
        keep_the_loop()
        with anyio.fail_after(5):
            while not visitors.refused:
                await anyio.sleep(0.01)
        await visitors.end(0)
    assert visitors.refused == ["busy"]
