"""A reading that costs more than a page may: made once for all who ask, shown again for a while, and never without its age."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Generic, NamedTuple, TypeVar

T = TypeVar("T")


class Read(NamedTuple, Generic[T]):
    """A value and when it was read, as Unix microseconds."""

    value: T
    read_us: int


class Remembered(Generic[T]):
    """Reads with `read` when asked, but not within `seconds` of the last time, and never twice at once.

    A value that is too old is shown once more, while the next one is read, for those who would have to wait longer than `patience`
    seconds; the first reading is waited for. What `read` raises goes to everybody who waits for it, and the next one tries again.
    """

    def __init__(self, read: Callable[[], Awaitable[T]], seconds: float, patience: float = 0.05) -> None:
        self._read = read
        self._seconds = seconds
        self._patience = patience
        self._last: Read[T] | None = None
        self._until = 0.0
        self._running: asyncio.Task[Read[T]] | None = None

    async def get(self) -> Read[T]:
        """The value and its time."""
        last = self._last
        if last is not None and time.monotonic() < self._until:
            return last
        if self._running is None or self._running.done():
            # Not in a task group: it may outlive the page that started it. The loop's end cancels it.
            self._running = asyncio.create_task(self._renew(), name="a reading for the console")
            self._running.add_done_callback(_is_told)
        if last is None:
            return await asyncio.shield(self._running)
        done, _ = await asyncio.wait({self._running}, timeout=self._patience)
        return self._running.result() if done else last

    async def _renew(self) -> Read[T]:
        value = await self._read()
        self._last = Read(value, time.time_ns() // 1000)
        self._until = time.monotonic() + self._seconds
        return self._last


def _is_told(task: asyncio.Task[Read[T]]) -> None:
    """Take note of an error that nobody waited for: the next reading will tell it again."""
    if not task.cancelled():
        task.exception()
