"""What the console shows of benchmark runs. They belong to the owner of the store: a principal with a token sees none of them."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import anyio.to_thread

from search_router.console.bench_comparing import RunComparer
from search_router.console.bench_folders import Folder, RunFolders, RunNotFound
from search_router.console.bench_records import BenchComparison, BenchRun, BenchRuns, BenchRunView
from search_router.console.bench_shapes import FUSED, tell_comparison, tell_run, tell_view

SHOWN: Final = 50
"""Runs in the list."""
ARM: Final = "[A-Za-z0-9][A-Za-z0-9 ._=-]{0,99}"
NO_FOLDER: Final = "No folder of results is configured: set http.bench_results to the one that `search-router bench run` writes to."
NOT_YOURS: Final = "Runs belong to the owner of this server's store; a token's holder sees none of them."


class BenchReadings:
    """The runs below `folder`, empty where none is configured, for a principal that sees all or nothing."""

    def __init__(self, folder: str, sees_all: bool) -> None:
        self._why_none = NOT_YOURS if not sees_all else "" if folder else NO_FOLDER
        self._folders = None if self._why_none else RunFolders(Path(folder).expanduser())
        self._comparer = RunComparer()

    async def runs(self) -> BenchRuns:
        """The newest SHOWN. Raises RunsUnavailable."""
        return await anyio.to_thread.run_sync(self._list)

    async def run(self, run_id: str, arm: str | None = None) -> BenchRunView:
        """One run; without an arm the product as it is. Raises RunsUnavailable, and RunNotFound also for an arm that it does not have."""
        return await anyio.to_thread.run_sync(self._view, run_id, arm)

    async def compare(self, a: str, b: str, arm: str = FUSED) -> BenchComparison:
        """What `bench compare` says of B against A. Raises RunNotFound, RunsUnavailable."""
        (first, told_a), (second, told_b) = await anyio.to_thread.run_sync(lambda: (self._find(a), self._find(b)))
        compared = await self._comparer.compare(first, second, arm)
        if compared.refused:
            return BenchComparison(a=told_a, b=told_b, arm=arm, passed=None, refused=compared.refused, compared_us=compared.time_us)
        return tell_comparison(told_a, told_b, arm, compared.said, compared.time_us)

    def _list(self) -> BenchRuns:
        if self._folders is None:
            return BenchRuns(runs=(), folders=0, notes=(self._why_none,))
        there = self._folders.listed()
        return BenchRuns(runs=tuple(self._tell(folder) for folder in there[:SHOWN]), folders=len(there))

    def _view(self, run_id: str, arm: str | None) -> BenchRunView:
        folder, run = self._find(run_id)
        assert self._folders is not None
        summary = self._folders.summary(folder)
        if arm is not None and arm not in run.arms:
            raise RunNotFound(f"The run {run_id} has no arm {arm!r}.", remedy=f"Its arms: {', '.join(run.arms)[:300] or 'none'}.")
        return tell_view(run, summary, arm or FUSED)

    def _find(self, run_id: str) -> tuple[Folder, BenchRun]:
        if self._folders is None:
            raise RunNotFound(f"There is no run {run_id}.", remedy=self._why_none)
        folder = self._folders.find(run_id)
        return folder, self._tell(folder)

    def _tell(self, folder: Folder) -> BenchRun:
        assert self._folders is not None
        return tell_run(folder.id, folder.path.name, self._folders.summary(folder))
