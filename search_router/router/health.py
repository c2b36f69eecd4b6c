"""What the experts say of themselves, remembered for a while: asking them starts programs, which no request should wait for."""

from __future__ import annotations

import asyncio
import contextlib
import math
import time
from collections.abc import Callable, Mapping

import anyio

from search_router.adapters.base import Expert
from search_router.schema import Health, Project

FRESH_SECONDS = 10.0
"""An older reading is replaced in the background."""
USABLE_SECONDS = 60.0
"""A still older one is waited for."""


class HealthWatch:
    """Health of all experts. However many requests ask, one reading runs at a time."""

    def __init__(self, experts: Mapping[str, Expert], projects: tuple[Project, ...], clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._experts = experts
        self._projects = projects
        self._known: Mapping[str, Health] = {}
        self._read_at = -math.inf
        self._reading: asyncio.Task[None] | None = None

    async def current(self) -> Mapping[str, Health]:
        """By expert id; at most USABLE_SECONDS old."""
        age = self._clock() - self._read_at
        if age >= FRESH_SECONDS:
            reading = self._start()
            if age >= USABLE_SECONDS:
                await asyncio.shield(reading)
        return self._known

    async def read_now(self) -> Mapping[str, Health]:
        """By expert id, as it is at the moment."""
        await asyncio.shield(self._start())
        return self._known

    async def aclose(self) -> None:
        """Stop a reading that runs. Safe to call twice."""
        if self._reading is not None:
            self._reading.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._reading

    def _start(self) -> asyncio.Task[None]:
        """The reading that runs, else a new one."""
        if self._reading is None or self._reading.done():
            # Not in a task group: it outlives the request that started it, and `aclose` ends it.
            self._reading = asyncio.create_task(self._read(), name="experts' health")
        return self._reading

    async def _read(self) -> None:
        found: dict[str, Health] = {}

        async def read(name: str, expert: Expert) -> None:
            found[name] = await expert.health(self._projects)

        async with anyio.create_task_group() as tasks:
            for name, expert in self._experts.items():
                tasks.start_soon(read, name, expert)
        self._known = found
        self._read_at = self._clock()
