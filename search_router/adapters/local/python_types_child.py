"""The one child process that resolves Python names, kept warm between questions and owned by one task.

A caller that leaves only forgets its answer: the owner reads it to its end, so that the next one is not taken for it. A child that
dies or hangs costs one job; the next job starts another child. An idle child is ended, a large one replaced.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import sys
from pathlib import Path
from typing import Final, NamedTuple

import anyio
from anyio.abc import ByteReceiveStream, Process
from anyio.streams.buffered import BufferedByteReceiveStream
from pydantic import BaseModel, ConfigDict, ValidationError

from search_router.adapters.process import open_child
from search_router.errors import ExpertError, FailureClass

JOB_SECONDS: Final = 20.0
"""A child that owes an answer for longer is stuck."""
MAX_ANSWER: Final = 8 << 20
_ARGV = (sys.executable, "-P", "-m", "search_router.adapters.local.python_types_worker")
_DEATHS = (
    anyio.BrokenResourceError,
    anyio.ClosedResourceError,
    anyio.EndOfStream,
    anyio.IncompleteRead,
    anyio.DelimiterNotFound,
    TimeoutError,
    ValidationError,
)


class FileJob(NamedTuple):
    """Whether `name` on these 1-based lines of a file is one of the targets, each an absolute path with its first and last line.

    `beside` are the roots of the projects that this one may import from.
    """

    root: str
    beside: tuple[str, ...]
    path: str
    name: str
    lines: tuple[int, ...]
    targets: tuple[tuple[str, int, int], ...]


class FileAnswer(BaseModel):
    """The (line, number of the target) of each place that was confirmed; `failed` counts those that could not be told."""

    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)

    places: tuple[tuple[int, int], ...]
    failed: int
    content_hash: str | None = None
    why: str = ""
    resident_kb: int


class _Waiting(NamedTuple):
    job: FileJob
    answer: asyncio.Future[FileAnswer]


class JediChild:
    """Answers jobs one after another. Belongs to one event loop; nothing is started before the first job.

    Args:
        cache: where jedi may keep what it parsed.
        max_mb: a child whose memory has been larger than this is replaced.
        idle_seconds: a child without a job for so long is ended.
    """

    def __init__(self, cache: Path, *, max_mb: int, idle_seconds: float) -> None:
        self._cache = cache
        self._max_kb = max_mb * 1024
        self._idle = idle_seconds
        self._queue: asyncio.Queue[_Waiting] = asyncio.Queue()
        self._owner: asyncio.Task[None] | None = None
        self._closed = False
        self.started = 0
        """How many children there have been."""

    @property
    def is_running(self) -> bool:
        """Whether a child is there, or about to be."""
        return self._owner is not None and not self._owner.done()

    async def resolve(self, job: FileJob) -> FileAnswer:
        """The answer to one job; jobs of several callers take turns.

        Raises:
            ExpertError: `spawn-failed` or `crashed`; `unavailable` when it was closed.
        """
        if self._closed:
            raise _closed()
        waiting = _Waiting(job, asyncio.get_running_loop().create_future())
        self._queue.put_nowait(waiting)
        if not self.is_running:
            # Not in a task group: it outlives the question that started it, and `aclose` ends it.
            self._owner = asyncio.create_task(self._own(), name="jedi")
        return await waiting.answer

    async def aclose(self) -> None:
        """End the child; who still waits gets an error. Safe to call twice."""
        self._closed = True
        if self._owner is not None:
            self._owner.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._owner
        while not self._queue.empty():
            _fail(self._queue.get_nowait(), _closed())

    async def _own(self) -> None:
        while (first := await self._next()) is not None:
            try:
                await self._serve(first)
            except ExpertError as error:  # no child could be started: this job knows it, the next one tries again
                _fail(first, error)
            except asyncio.CancelledError:
                _fail(first, _closed())
                raise

    async def _next(self) -> _Waiting | None:
        """The next job that somebody still waits for; None after a time without one."""
        while True:
            waiting = None
            with anyio.move_on_after(self._idle):  # not asyncio.wait_for: before Python 3.12 it may swallow our own end
                waiting = await self._queue.get()
            if waiting is None and self._queue.empty():
                return None
            if waiting is not None and not waiting.answer.done():
                return waiting

    async def _serve(self, first: _Waiting) -> None:
        """Give jobs to one child until it has to go."""
        async with open_child(_ARGV, cwd=self._home(), stdin=True) as child, anyio.create_task_group() as tasks:
            self.started += 1
            assert child.stdout is not None and child.stderr is not None and child.stdin is not None
            tasks.start_soon(_drain, child.stderr)
            answers = BufferedByteReceiveStream(child.stdout)
            waiting: _Waiting | None = first
            with contextlib.suppress(*_DEATHS):
                await child.stdin.send(json.dumps({"cache": str(self._cache)}).encode() + b"\n")
            while waiting is not None:
                try:
                    answer = await _ask(child, answers, waiting.job)
                except _DEATHS as error:
                    _fail(waiting, await _how_it_ended(child, waiting.job, error))
                    break
                except asyncio.CancelledError:
                    _fail(waiting, _closed())
                    raise
                if not waiting.answer.done():
                    waiting.answer.set_result(answer)
                if answer.resident_kb > self._max_kb:
                    break
                waiting = await self._next()
            tasks.cancel_scope.cancel()

    def _home(self) -> Path:
        """Ours, for the sake of a relative PYTHONPATH; `-P` keeps Python from importing what lies in it."""
        try:
            return Path.cwd()
        except FileNotFoundError:
            return Path("/")


async def _ask(child: Process, answers: BufferedByteReceiveStream, job: FileJob) -> FileAnswer:
    assert child.stdin is not None
    with anyio.fail_after(JOB_SECONDS):
        await child.stdin.send(json.dumps(job._asdict()).encode("ascii") + b"\n")
        return FileAnswer.model_validate_json(await answers.receive_until(b"\n", MAX_ANSWER))


async def _drain(stream: ByteReceiveStream) -> None:
    """Keep standard error from filling its pipe."""
    async for _ in stream:
        pass


async def _how_it_ended(child: Process, job: FileJob, error: Exception) -> ExpertError:
    if isinstance(error, TimeoutError):
        how = f"gave no answer for {JOB_SECONDS:g} s"
    else:
        with anyio.move_on_after(1.0):
            await child.wait()
        code = child.returncode
        how = "gave a wrong answer" if code is None else f"was killed by signal {-code}" if code < 0 else f"ended with exit code {code}"
    return ExpertError(FailureClass.CRASHED, f"The jedi worker {how} at {job.path}.", remedy="Ask again; it is started anew.")


def _fail(waiting: _Waiting, error: ExpertError) -> None:
    if not waiting.answer.done():
        waiting.answer.set_exception(error)


def _closed() -> ExpertError:
    return ExpertError(FailureClass.UNAVAILABLE, "The jedi worker was closed while it was asked.")
