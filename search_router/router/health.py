"""What the experts say of themselves, remembered for a while: asking them starts programs, which no request should wait for."""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Callable, Iterable, Mapping

from search_router.adapters.base import Expert
from search_router.schema import Health, Project

FRESH_SECONDS = 10.0
"""An older reading is replaced in the background."""
USABLE_SECONDS = 60.0
"""A still older one is waited for."""


class HealthWatch:
    """Health of the experts that somebody wants to know of. However many requests ask, one reading of an expert runs at a time."""

    def __init__(self, experts: Mapping[str, Expert], projects: tuple[Project, ...], clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._experts = experts
        self._projects = projects
        self._known: dict[str, Health] = {}
        self._read_at: dict[str, float] = {}
        self._readings: dict[str, asyncio.Task[None]] = {}

    async def current(self, names: Iterable[str]) -> Mapping[str, Health]:
        """By expert id, for these at least; at most USABLE_SECONDS old. An expert that nobody asks for is not even made."""
        now = self._clock()
        waited_for: list[asyncio.Task[None]] = []
        for name in names:
            age = now - self._read_at.get(name, -math.inf)
            if age >= FRESH_SECONDS:
                reading = self._start(name)
                if age >= USABLE_SECONDS:
                    waited_for.append(reading)
        for reading in waited_for:
            await asyncio.shield(reading)
        return self._known

    async def read_now(self) -> Mapping[str, Health]:
        """Of all experts by id, as it is at the moment."""
        for reading in [self._start(name) for name in self._experts]:
            await asyncio.shield(reading)
        return self._known

    async def aclose(self) -> None:
        """Stop the readings that run. Safe to call twice."""
        for reading in self._readings.values():
            reading.cancel()
        await asyncio.gather(*self._readings.values(), return_exceptions=True)
        self._readings.clear()

    def _start(self, name: str) -> asyncio.Task[None]:
        """The reading of this expert that runs, else a new one."""
        reading = self._readings.get(name)
        if reading is None or reading.done():
            # Not in a task group: it outlives the request that started it, and `aclose` ends it.
            reading = self._readings[name] = asyncio.create_task(self._read(name), name=f"health of {name}")
        return reading

    async def _read(self, name: str) -> None:
        self._known[name] = await self._experts[name].health(self._projects)
        self._read_at[name] = self._clock()
