"""The one task of a process that writes the flywheel's file: after the answers left, from a bounded queue, in short transactions.

Nobody waits for it. What does not fit in the queue, and what another process kept locked out for too long, is dropped and counted; a file
that cannot be used switches the flywheel off, and its reason is told.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import sqlite3
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import anyio.to_thread

from search_router.databases import transaction
from search_router.router.enrich.database import (
    WRITE_WAIT_SECONDS,
    EnrichUnavailable,
    cut_back,
    explain,
    open_for_reading,
    open_for_writing,
)
from search_router.router.enrich.events import MakeEvents, write_events

QUEUE: Final = 1024
CUT_EVERY: Final = 1000
"""Rows are cut back after so many writes, and at the first."""
LINGER_SECONDS: Final = 1.0
"""So long a record waits for others to be written with, unless half of the queue is full: a commit costs more than its rows, and every one
delays the requests that are underway."""
CLOSE_SECONDS: Final = 3.0

Write = Callable[[sqlite3.Connection], object]


@dataclass(frozen=True, slots=True)
class _Events:
    """What the writer keeps back until the end of its transaction, to write it in one go."""

    make: MakeEvents


@dataclass(slots=True)
class Tally:
    """What became of the writes of this process."""

    written: int = 0
    overflowed: int = 0
    """Dropped because the queue was full."""
    locked_out: int = 0
    """Dropped because another process held the file for too long."""
    unwritable: int = 0
    """Left out because they have no form in the file, such as a name that is no text."""


class Owner:
    """Writes one file. Belongs to one event loop; nothing is opened before the first write or read."""

    def __init__(
        self,
        path: Path,
        clock: Callable[[], int] = lambda: time.time_ns() // 1000,
        queue: int = QUEUE,
        wait_seconds: float = WRITE_WAIT_SECONDS,
    ) -> None:
        self.path = path
        self.clock = clock
        self.tally = Tally()
        self.fault: EnrichUnavailable | None = None
        self._room = queue
        self._wait_seconds = wait_seconds
        self._waiting: deque[Write | _Events] = deque()
        self._task: asyncio.Task[None] | None = None
        self._writer: sqlite3.Connection | None = None
        self._reader: sqlite3.Connection | None = None
        self._until_cut = 0
        self._hurry = asyncio.Event()
        self._flushes = 0
        self._closed = False

    @property
    def notes(self) -> tuple[str, ...]:
        """What people should know: that the file is off and why, and what was dropped."""
        lost = self.tally.overflowed + self.tally.locked_out
        dropped = f"{lost} records of cache, hints and events were dropped: the writer was behind or locked out."
        return (*([str(self.fault)] if self.fault else []), *([dropped] if lost else []))

    def submit(self, write: Write) -> bool:
        """Have this written soon, in one transaction with others; False when it was dropped. Never waits, never raises."""
        return self._submit(write)

    def submit_events(self, make: MakeEvents) -> bool:
        """As `submit`, for benchmark events: they are made in the writer's thread, and those of many requests are written at once."""
        return self._submit(_Events(make))

    def _submit(self, write: Write | _Events) -> bool:
        if self.fault is not None or self._closed:
            return False
        if len(self._waiting) >= self._room:
            self.tally.overflowed += 1
            return False
        self._waiting.append(write)
        if len(self._waiting) > self._room // 2:
            self._hurry.set()
        if self._task is None or self._task.done():
            # Not in a task group: it outlives the request that wanted it, and `aclose` ends it.
            self._task = asyncio.create_task(self._work(), name="write the flywheel's file")
        return True

    def reader(self) -> sqlite3.Connection | None:
        """A connection for short reads on the event loop; None while there is no file, or it is off."""
        if self.fault is not None or self._closed:
            return None
        if self._reader is None:
            try:
                self._reader = open_for_reading(self.path)
            except EnrichUnavailable as error:
                self.fault = error
        return self._reader

    def read_failed(self, error: sqlite3.Error) -> None:
        """A read met this. A busy file is no fault; anything else switches the flywheel off."""
        if not _is_busy(error):
            self.fault = explain(self.path, error)

    async def flush(self) -> None:
        """Wait until what was submitted so far is written or dropped."""
        self._flushes += 1
        self._hurry.set()
        try:
            while self._task is not None and not self._task.done():
                await asyncio.shield(self._task)
        finally:
            self._flushes -= 1

    async def aclose(self) -> None:
        """Write what waits, within a bound, and close the file. Safe to call twice."""
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self.flush(), CLOSE_SECONDS)
        self._closed = True
        if self._task is not None and not self._task.done():
            self._task.cancel()
            await asyncio.wait([self._task])
        for database in (self._reader, self._writer):
            if database is not None:
                database.close()
        self._reader = self._writer = None

    async def _work(self) -> None:
        while self._waiting:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._hurry.wait(), LINGER_SECONDS)
            if not self._flushes:
                self._hurry.clear()
            batch = list(self._waiting)
            self._waiting.clear()
            try:
                await anyio.to_thread.run_sync(self._write, batch)
            except EnrichUnavailable as error:
                self.fault = error
            except sqlite3.Error as error:
                if not _is_busy(error):
                    self.fault = explain(self.path, error)
                self.tally.locked_out += len(batch)
            if self.fault is not None:
                self._waiting.clear()

    def _write(self, batch: list[Write | _Events]) -> None:
        if self._writer is None:
            self._writer = open_for_writing(self.path, self._wait_seconds)
        with transaction(self._writer):
            for write in batch:
                if not isinstance(write, _Events):
                    self._attempt(write)
            makers = [write.make for write in batch if isinstance(write, _Events)]
            try:
                write_events(self._writer, itertools.chain.from_iterable(make() for make in makers))
            except ValueError:  # one of them has no form in the file: each by itself then
                for make in makers:
                    self._attempt(lambda database, make=make: write_events(database, make()))
            self._until_cut -= len(batch)
            if self._until_cut <= 0:
                cut_back(self._writer, self.clock())
                self._until_cut = CUT_EVERY
        self.tally.written += len(batch)

    def _attempt(self, write: Write) -> None:
        assert self._writer is not None
        try:
            write(self._writer)
        except ValueError:  # a name that is no text; what the write had done before stays, and is whole by itself
            self.tally.unwritable += 1


def _is_busy(error: sqlite3.Error) -> bool:
    return getattr(error, "sqlite_errorcode", 0) & 0xFF in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)
