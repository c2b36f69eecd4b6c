"""Who is worked on now, and who waits in line: more requests at once than the processor bears would all come too late.

Embedded experts take processor time, and all of it in one process. With a hundred questions underway each of them gets a hundredth, runs
out of time, and what it did is thrown away: the more come in, the fewer are answered. So a request that comes while many are underway *and*
the event loop is behind waits in line, first come, first served, and its own time begins when its turn comes. Requests that wait for remote
experts leave the loop free and are let in at once, however many there are.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import deque
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Final

from search_router.errors import RequestDeclined

PLACES: Final = 12
"""So many are let in at once, whatever the loop does."""
SLOW_SECONDS: Final = 0.03
"""A turn of the event loop takes longer only when work keeps it: an idle one takes some microseconds."""
LINE_SECONDS: Final = 20.0
LOOK_SECONDS: Final = 0.02
"""So often the loop is looked at again while somebody stands in line."""


class Admission:
    """One line for all requests of a router. Belongs to its event loop."""

    def __init__(self, places: int = PLACES, seconds: float = LINE_SECONDS, is_behind: Callable[[], Awaitable[bool]] | None = None) -> None:
        self._places, self._seconds = places, seconds
        self._is_behind = is_behind or is_loop_behind
        self._inside = 0
        self._line: deque[asyncio.Future[None]] = deque()
        self._watch: asyncio.Task[None] | None = None

    @asynccontextmanager
    async def place(self) -> AsyncGenerator[float]:
        """A place for one request; gives the seconds that it waited for it.

        Raises:
            RequestDeclined: `busy`, when its turn did not come in time.
        """
        waited = await self._enter()
        try:
            yield waited
        finally:
            self._inside -= 1
            self._call(at_least=1)

    async def _enter(self) -> float:
        if not self._line and (self._inside < self._places or not await self._is_behind()) and not self._line:
            self._inside += 1
            return 0.0
        return await self._stand_in_line()

    async def _stand_in_line(self) -> float:
        loop = asyncio.get_running_loop()
        began, turn = loop.time(), loop.create_future()
        self._line.append(turn)
        if self._watch is None or self._watch.done():
            self._watch = asyncio.create_task(self._watch_line(), name="watch the line of requests")
        try:
            async with asyncio.timeout(self._seconds):
                await turn
        except TimeoutError:
            if not self._let_in(turn):
                raise RequestDeclined(
                    f"Too many requests are underway: this one waited {self._seconds:g} s for its turn.",
                    remedy="Ask again in a moment, and fewer questions at once.",
                    code="busy",
                ) from None
        except asyncio.CancelledError:
            if self._let_in(turn):  # its place came in the same turn of the loop
                self._inside -= 1
                self._call(at_least=1)
            raise
        return loop.time() - began

    def _let_in(self, turn: asyncio.Future[None]) -> bool:
        """Whether it was let in; else it no longer stands in line."""
        with contextlib.suppress(ValueError):
            self._line.remove(turn)
            return False
        return True

    def _call(self, at_least: int = 0) -> None:
        """Let in who waits while there are places, and so many in any case: one for one who left."""
        while self._line and (at_least > 0 or self._inside < self._places):
            at_least -= 1
            self._inside += 1
            turn = self._line.popleft()
            if not turn.done():
                turn.set_result(None)

    async def _watch_line(self) -> None:
        """While somebody waits: who is inside may leave the loop free for more, or for long."""
        while self._line:
            self._call(at_least=0 if await self._is_behind() else 1)
            await asyncio.sleep(LOOK_SECONDS)


async def is_loop_behind() -> bool:
    """Whether a turn of the loop takes long."""
    loop = asyncio.get_running_loop()
    began = loop.time()
    await asyncio.sleep(0)
    return loop.time() - began > SLOW_SECONDS
