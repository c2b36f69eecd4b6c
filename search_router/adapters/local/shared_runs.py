"""Work on a project that every asker shares and each may leave: it goes on, and the next request finds more. Belongs to one event loop."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Coroutine
from pathlib import Path
from typing import Any, Final, Generic, TypeVar

from search_router.errors import ExpertError, FailureClass

T = TypeVar("T")

FAILED_SECONDS: Final = 30.0
"""The failure of a build is the answer for so long; then it is tried again."""


class _Run(Generic[T]):
    """One run. Who asks before it has begun may share it: it will see every edit that was made before they asked."""

    def __init__(self) -> None:
        self.begun = False
        self.task: asyncio.Task[T] | None = None


class SharedRuns(Generic[T]):
    """One run at a time for each root, and at most one that waits for it. `what` is run, as errors name it."""

    def __init__(self, what: str) -> None:
        self._what = what
        self._runs: dict[Path, _Run[T]] = {}

    async def join(self, root: Path, work: Callable[[], Awaitable[T]]) -> T:
        """The outcome of a run that begins after this call. To be cancelled here is only to leave.

        Raises:
            ExpertError: `unavailable` when `aclose` ended the run; else whatever `work` raises.
        """
        run = self._runs.get(root)
        if run is None or run.task is None or run.begun:
            before, run = run, _Run[T]()
            self._runs[root] = run
            run.task = asyncio.get_running_loop().create_task(_after(before, run, work))
            run.task.add_done_callback(look_at_outcome)
        try:
            return await asyncio.shield(run.task)
        except asyncio.CancelledError:
            asker = asyncio.current_task()
            if run.task.cancelled() and not (asker and asker.cancelling()):
                raise ExpertError(FailureClass.UNAVAILABLE, f"The {self._what} was closed while it was read.") from None
            raise

    async def aclose(self) -> None:
        """Stop every run; safe to call twice."""
        await _cancel_all([run.task for run in self._runs.values() if run.task is not None])
        self._runs.clear()


class SharedBuilds(Generic[T]):
    """The latest product for each root, and the build that is to replace it. `what` is built, as errors name it."""

    def __init__(self, what: str) -> None:
        self._what = what
        self._builds: dict[Path, asyncio.Task[T]] = {}
        self._failed: dict[Path, tuple[float, ExpertError]] = {}
        self.ready: dict[Path, T] = {}

    async def current(
        self, root: Path, is_current: Callable[[T], bool], build: Callable[[], Coroutine[Any, Any, T]], until: float
    ) -> T | None:
        """What is ready at `until` (monotonic seconds), current or not; None when nothing is. Making it goes on.

        Raises:
            ExpertError: the build's, now or less than `FAILED_SECONDS` ago; `unavailable` when `aclose` ended it.
        """
        while (known := self.ready.get(root)) is None or not is_current(known):
            task = self._builds.get(root)
            if task is None:
                self._raise_recent_failure(root)
                task = self._builds[root] = asyncio.create_task(build(), name=f"build {self._what}")
                task.add_done_callback(look_at_outcome)
            done, _ = await asyncio.wait({task}, timeout=max(0.0, until - time.monotonic()))
            if not done:
                return known
            if self._builds.get(root) is task:  # the first who waited for it keeps it, however long ago it was begun
                del self._builds[root]
                self._keep(root, task)
            elif task.cancelled() or task.exception() is not None:
                self._raise_recent_failure(root)
        return known

    async def aclose(self) -> None:
        """Stop every build and forget what is ready; safe to call twice."""
        await _cancel_all(list(self._builds.values()))
        self._builds.clear()
        self.ready.clear()

    def _keep(self, root: Path, task: asyncio.Task[T]) -> None:
        try:
            self.ready[root] = task.result()
        except ExpertError as error:
            self._failed[root] = time.monotonic(), error
            raise
        except asyncio.CancelledError:
            raise ExpertError(FailureClass.UNAVAILABLE, f"The {self._what} were closed while they were read.") from None

    def _raise_recent_failure(self, root: Path) -> None:
        at, error = self._failed.get(root, (0.0, None))
        if error is not None and time.monotonic() - at < FAILED_SECONDS:
            raise error
        self._failed.pop(root, None)


async def _after(before: _Run[T] | None, run: _Run[T], work: Callable[[], Awaitable[T]]) -> T:
    if before is not None and before.task is not None and not before.task.done():
        await asyncio.wait([before.task])
    run.begun = True
    return await work()


async def _cancel_all(tasks: list[asyncio.Task[T]]) -> None:
    going = [task for task in tasks if not task.done()]
    for task in going:
        task.cancel()
    if going:
        await asyncio.wait(going)


def look_at_outcome(task: asyncio.Task[Any]) -> None:
    """Look at the outcome, so that a failure that everyone has left is not reported as forgotten; the next one meets it."""
    if not task.cancelled():
        task.exception()
