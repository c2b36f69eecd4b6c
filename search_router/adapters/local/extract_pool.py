"""Extraction of many files in child processes. A child that dies costs one file, which is named, never a hole in silence."""

from __future__ import annotations

import json
import os
import sys
from collections import deque
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final, NamedTuple

import anyio
from anyio.abc import ByteReceiveStream, Process
from anyio.streams.buffered import BufferedByteReceiveStream

from search_router.adapters.local.extract_worker import ReadSyntax
from search_router.adapters.local.left_out import LeftOut
from search_router.adapters.process import open_child
from search_router.errors import ExpertError

FILE_SECONDS: Final = 30.0
"""A child that owes an answer for longer is stuck: the limits of extraction itself are far below."""
SLOW_SECONDS: Final = 0.5
"""A file that a child has been reading for so long is one of the slow ones."""
MAX_DEATHS: Final = 3
"""So many children may die in one go; then what is left is given up, and named."""

MOST_WORKERS: Final = 8

_IN_FLIGHT = 8
_FILES_A_CHILD = 50
_MAX_HEAD = 1 << 16
_ARGV = (sys.executable, "-P", "-m", "search_router.adapters.local.extract_worker")
_DEATHS = (
    anyio.BrokenResourceError,
    anyio.ClosedResourceError,
    anyio.EndOfStream,
    anyio.IncompleteRead,
    anyio.DelimiterNotFound,
    TimeoutError,
    ValueError,
)

Deliver = Callable[[ReadSyntax | LeftOut], Awaitable[None]]


class WantedFile(NamedTuple):
    """One file to extract, and the grammar for it."""

    path: str
    language: str


def worker_count(configured: int) -> int:
    """So many children: what is configured, and for 0 one a processor, at most MOST_WORKERS."""
    return configured or max(1, min(MOST_WORKERS, os.cpu_count() or 1))


class ExtractPool:
    """Files shared out among children: `open` it, `put` files as they become known, `finish`; or `run` all at once.

    Args:
        root, max_bytes: as for `read_syntax`.
        deliver: called for each file in turn, from one task a child.
    """

    def __init__(self, root: Path, max_bytes: int, deliver: Deliver) -> None:
        self._start = {"root": str(root), "max_bytes": max_bytes}
        self._deliver = deliver
        self._queue: deque[WantedFile] = deque()
        self._deaths = 0
        self._failed: list[LeftOut] = []
        self._unstartable: ExpertError | None = None
        self._complete = False
        self._working = 0
        self.broken_off: list[WantedFile] = []
        """What children had been reading for SLOW_SECONDS when the pool was left."""
        self._changed = anyio.Event()

    async def run(self, wanted: list[WantedFile], *, workers: int) -> tuple[LeftOut, ...]:
        """Extract all; the files that dying children took with them come back, with the reason. Raises as `finish`."""
        async with self.open(workers):
            self.put(wanted)
            return await self.finish()

    @asynccontextmanager
    async def open(self, workers: int) -> AsyncGenerator[None]:
        """Children start as files come in. On leaving, however that happens, none is alive."""
        async with anyio.create_task_group() as tasks:
            self._working = max(1, workers)
            for number in range(self._working):
                tasks.start_soon(self._start_when_needed, number)
            yield

    def put(self, wanted: Iterable[WantedFile]) -> None:
        """Add files to be extracted, in this order."""
        self._queue.extend(() if self._unstartable else wanted)
        self._wake()

    async def finish(self) -> tuple[LeftOut, ...]:
        """Wait until everything is extracted, and say which files dying children took with them.

        Raises:
            ExpertError: `spawn-failed` when no child can be started.
        """
        self._complete = True
        self._wake()
        while self._working or self._queue:
            if self._working:
                await self._changed.wait()
            else:
                await self._work()  # another child's files came back after the last one had finished
        if self._unstartable is not None:
            raise self._unstartable
        return tuple(self._failed)

    def _wake(self) -> None:
        self._changed.set()
        self._changed = anyio.Event()

    async def _start_when_needed(self, number: int) -> None:
        """The first child works at once, each further one when there is enough for it."""
        try:
            while True:
                while not (self._complete or len(self._queue) > number * _FILES_A_CHILD):
                    await self._changed.wait()
                if len(self._queue) <= number * _FILES_A_CHILD:
                    return
                await self._work()
        finally:
            self._working -= 1
            self._wake()

    async def _work(self) -> None:
        """Feed one child after another until nothing is left."""
        try:
            while self._queue:
                if self._deaths >= MAX_DEATHS:
                    self._give_up()
                else:
                    await self._work_with_one()
        except ExpertError as error:  # out of the task group as itself, not in an exception group
            self._unstartable = error
            self._queue.clear()

    async def _work_with_one(self) -> None:
        in_flight: deque[WantedFile] = deque()
        ended = "died"
        try:
            async with open_child(_ARGV, cwd=_working_directory(), stdin=True) as child, anyio.create_task_group() as tasks:
                assert child.stdout is not None and child.stderr is not None
                tasks.start_soon(_drain, child.stderr)
                try:
                    await self._feed(child, BufferedByteReceiveStream(child.stdout), in_flight)
                except _DEATHS as error:
                    ended = await _how_it_ended(child, error)
                tasks.cancel_scope.cancel()
        finally:
            suspects, rest = list(in_flight)[:1], list(in_flight)[1:]
            self._queue.extendleft(reversed(rest))
        if suspects:
            self._deaths += 1
            self._failed.append(LeftOut(suspects[0].path, f"the extraction worker {ended} while reading it"))

    async def _feed(self, child: Process, answers: BufferedByteReceiveStream, in_flight: deque[WantedFile]) -> None:
        assert child.stdin is not None
        await child.stdin.send(json.dumps(self._start).encode() + b"\n")
        while True:
            while self._queue and len(in_flight) < _IN_FLIGHT:
                in_flight.append(self._queue.popleft())
                await child.stdin.send(json.dumps(in_flight[-1]._asdict()).encode() + b"\n")
            if not in_flight:
                if self._complete:
                    return
                await self._changed.wait()
                continue
            began = anyio.current_time()
            try:
                with anyio.fail_after(FILE_SECONDS):
                    outcome = await _receive(answers)
            except anyio.get_cancelled_exc_class():
                if anyio.current_time() - began >= SLOW_SECONDS:
                    self.broken_off.append(in_flight[0])
                raise
            if outcome.path != in_flight[0].path:
                raise ValueError("an answer for another file")
            await self._deliver(outcome)
            in_flight.popleft()

    def _give_up(self) -> None:
        reason = f"not read: {self._deaths} extraction workers died before its turn"
        self._failed.extend(LeftOut(wanted.path, reason) for wanted in self._queue)
        self._queue.clear()


def _working_directory() -> Path:
    """Ours, for the sake of a relative PYTHONPATH; `-P` keeps Python from importing what lies in it."""
    try:
        return Path.cwd()
    except FileNotFoundError:
        return Path("/")


async def _receive(answers: BufferedByteReceiveStream) -> ReadSyntax | LeftOut:
    head = json.loads(await answers.receive_until(b"\n", _MAX_HEAD))
    if "blob" not in head:
        return LeftOut(head["path"], head["reason"])
    payload = await answers.receive_exactly(head["bytes"]) if head["bytes"] else b""
    return ReadSyntax(head["path"], head["blob"], head["content_hash"], payload, head.get("reason", ""))


async def _drain(stream: ByteReceiveStream) -> None:
    """Keep standard error from filling its pipe; what a grammar prints there tells a caller nothing."""
    async for _ in stream:
        pass


async def _how_it_ended(child: Process, error: Exception) -> str:
    if isinstance(error, TimeoutError):
        return f"gave no answer for {FILE_SECONDS:g} s"
    with anyio.move_on_after(1.0):
        await child.wait()
    code = child.returncode
    if code is None:
        return f"gave a wrong answer ({error})"
    return f"was killed by signal {-code}" if code < 0 else f"ended with exit code {code}"
