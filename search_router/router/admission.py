"""Who is worked on now, and who waits in line: more requests at once than the processor bears would all come too late.

Embedded experts take processor time, and all of it in one process. With a hundred questions underway each of them gets a hundredth, runs
out of time, and what it did is thrown away: the more come in, the fewer are answered. So a request that comes while many are underway *and*
the event loop is behind waits in line, first come, first served, and its own time begins when its turn comes. Requests that wait for remote
experts leave the loop free and are let in at once, however many there are.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Final

from search_router.errors import RequestDeclined

PLACES: Final = 12
"""So many are let in at once, whatever the loop does."""
SLOW_SECONDS: Final = 0.03
"""A turn of the event loop takes longer only when work keeps it: an idle one takes some microseconds."""
LINE_SECONDS: Final = 20.0


class Admission:
    """One line for all requests of a router. Belongs to its event loop."""

    def __init__(self, places: int = PLACES, seconds: float = LINE_SECONDS) -> None:
        self._places, self._seconds = places, seconds
        self._inside = 0
        self._line: deque[asyncio.Future[None]] = deque()

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
            self._leave()

    async def _enter(self) -> float:
        if self._line or (self._inside >= self._places and await _is_behind()):
            return await self._stand_in_line()
        self._inside += 1
        return 0.0

    async def _stand_in_line(self) -> float:
        loop = asyncio.get_running_loop()
        began, turn = loop.time(), loop.create_future()
        self._line.append(turn)
        if not self._inside:  # they left while the loop was looked at, and nobody else would call
            self._call()
        timer = loop.call_later(self._seconds, self._give_up, turn)
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():  # its place came together with the cancellation
                self._leave()
            raise
        finally:
            timer.cancel()
        return loop.time() - began

    def _give_up(self, turn: asyncio.Future[None]) -> None:
        if not turn.done():
            turn.set_exception(
                RequestDeclined(
                    f"Too many requests are underway: this one waited {self._seconds:g} s for its turn.",
                    remedy="Ask again in a moment, and fewer questions at once.",
                    code="busy",
                )
            )

    def _leave(self) -> None:
        self._inside -= 1
        self._call()

    def _call(self) -> None:
        """Let in the next who still waits."""
        while self._line:
            turn = self._line.popleft()
            if not turn.done():
                self._inside += 1
                turn.set_result(None)
                return


async def _is_behind() -> bool:
    loop = asyncio.get_running_loop()
    began = loop.time()
    await asyncio.sleep(0)
    return loop.time() - began > SLOW_SECONDS
