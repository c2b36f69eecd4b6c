"""The line in which requests wait when the processor has no time for more."""

from __future__ import annotations

import asyncio
import random
import time

import anyio
import pytest

from search_router.errors import RequestDeclined
from search_router.router.admission import LOOK_SECONDS, SLOW_SECONDS, Admission, is_loop_behind

pytestmark = pytest.mark.anyio


class Loop:
    """Whether the loop is behind, as the tests have it."""

    def __init__(self) -> None:
        self.is_behind = True

    async def look(self) -> bool:
        await asyncio.sleep(0)
        return self.is_behind


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

    def let_go(self, number: int) -> None:
        self._ends[number].set()

    async def end(self, number: int) -> None:
        self.let_go(number)
        await settled()


async def settled() -> None:
    """Everybody has done what can be done, and the line has been looked at."""
    await anyio.sleep(2 * LOOK_SECONDS)
    await anyio.sleep(0)


async def test_an_idle_loop_lets_everybody_in() -> None:
    visitors = Visitors(Admission(places=2))
    async with anyio.create_task_group() as tasks:
        for number in range(8):
            tasks.start_soon(visitors.visit, number)
            await settled()
        assert visitors.inside == list(range(8))
        tasks.cancel_scope.cancel()


async def test_a_turn_of_the_loop_that_is_kept_is_told() -> None:
    assert not await is_loop_behind()
    asyncio.get_running_loop().call_soon(time.sleep, 2 * SLOW_SECONDS)
    assert await is_loop_behind()


async def test_with_a_loop_that_is_behind_they_wait_in_line_and_come_in_one_for_one() -> None:
    visitors = Visitors(Admission(places=2, is_behind=Loop().look))
    async with anyio.create_task_group() as tasks:
        for number in range(5):
            tasks.start_soon(visitors.visit, number)
            await settled()
        assert visitors.inside == [0, 1]
        await visitors.end(0)
        assert visitors.inside == [1, 2]
        await visitors.end(1)
        assert visitors.inside == [2, 3]
        for number in (2, 3, 4):
            await visitors.end(number)
    assert visitors.inside == [] and not visitors.refused


async def test_the_line_moves_when_the_loop_is_free_again_though_nobody_leaves() -> None:
    loop = Loop()
    visitors = Visitors(Admission(places=1, is_behind=loop.look))
    async with anyio.create_task_group() as tasks:
        for number in range(4):
            tasks.start_soon(visitors.visit, number)
            await settled()
        assert visitors.inside == [0]
        loop.is_behind = False
        with anyio.fail_after(5):
            while len(visitors.inside) < 4:
                await anyio.sleep(0.01)
        tasks.start_soon(visitors.visit, 4)
        await settled()
        assert visitors.inside == [0, 1, 2, 3, 4]
        tasks.cancel_scope.cancel()


async def test_all_free_places_are_given_when_many_leave_while_one_looks() -> None:
    look = anyio.Event()

    async def slow_look() -> bool:
        await look.wait()
        return True

    visitors = Visitors(Admission(places=3, is_behind=slow_look))
    async with anyio.create_task_group() as tasks:
        for number in range(6):  # three are inside, three look
            tasks.start_soon(visitors.visit, number)
            await anyio.wait_all_tasks_blocked()
        for number in range(3):
            await visitors.end(number)
        look.set()
        await settled()
        assert visitors.inside == [3, 4, 5]
        tasks.cancel_scope.cancel()


async def test_who_is_cancelled_in_line_takes_no_place_and_holds_up_nobody() -> None:
    visitors = Visitors(Admission(places=1, is_behind=Loop().look))
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(visitors.visit, 0)
        await settled()
        async with anyio.create_task_group() as leaving:
            leaving.start_soon(visitors.visit, 1)
            await settled()
            tasks.start_soon(visitors.visit, 2)
            await settled()
            leaving.cancel_scope.cancel()
        assert visitors.inside == [0]
        await visitors.end(0)
        assert visitors.inside == [2]
        await visitors.end(2)


async def test_a_place_that_comes_together_with_a_cancellation_goes_to_the_next() -> None:
    visitors = Visitors(Admission(places=1, is_behind=Loop().look))
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(visitors.visit, 0)
        await settled()
        second = asyncio.ensure_future(visitors.visit(1))
        await settled()
        tasks.start_soon(visitors.visit, 2)
        await settled()
        visitors.let_go(0)
        second.cancel()
        await settled()
        assert visitors.inside == [2]
        tasks.cancel_scope.cancel()


@pytest.mark.parametrize("together", [False, True])
async def test_whose_turn_does_not_come_in_time_is_told_so_and_leaves_no_place_behind(together: bool) -> None:
    visitors = Visitors(Admission(places=1, seconds=0.05, is_behind=Loop().look))
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(visitors.visit, 0)
        await settled()
        second = asyncio.ensure_future(visitors.visit(1))
        await anyio.sleep(0.03)
        if together:  # its time is over and it is cancelled in one turn of the loop
            asyncio.get_running_loop().call_soon(time.sleep, 0.05)
            asyncio.get_running_loop().call_later(0.03, second.cancel)
        await asyncio.wait([second], timeout=5)
        assert second.done() and (together or visitors.refused == ["busy"])
        for number in (2, 3):  # one at a time, as before
            tasks.start_soon(visitors.visit, number)
            await anyio.sleep(0)
        await visitors.end(0)
        assert len(visitors.inside) == 1
        tasks.cancel_scope.cancel()


@pytest.mark.parametrize("seed", range(20))
async def test_however_they_come_and_go_the_line_ends_empty(seed: int) -> None:
    chance = random.Random(seed)
    loop = Loop()
    admission = Admission(places=3, seconds=0.05, is_behind=loop.look)
    inside = most = 0

    async def visit() -> None:
        nonlocal inside, most
        with anyio.move_on_after(chance.choice([0.002, 0.02, 1])):
            try:
                async with admission.place():
                    inside += 1
                    most = max(most, inside)
                    try:
                        await anyio.sleep(chance.random() * 0.01)
                    finally:
                        inside -= 1
            except RequestDeclined:
                pass

    async with anyio.create_task_group() as tasks:
        for _ in range(120):
            tasks.start_soon(visit)
            if chance.random() < 0.3:
                await anyio.sleep(chance.random() * 0.005)
    assert inside == 0 and most <= 3
    visitors = Visitors(admission)
    async with anyio.create_task_group() as tasks:
        for number in range(4):
            tasks.start_soon(visitors.visit, number)
        await anyio.sleep(0.01)
        assert len(visitors.inside) == 3
        tasks.cancel_scope.cancel()
