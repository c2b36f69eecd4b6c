"""The index as an operator sees it: where it stands, bring it up to date, throw away what is not used, check it. The doors only translate.

No key and no receipt store is opened: nothing is asked and nothing answered here.
"""

from __future__ import annotations

import os
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import anyio
import anyio.to_thread

from search_router.adapters.local.index_care import Collected, StoreSummary, collect_unused, summarise_store
from search_router.adapters.local.index_readiness import standing
from search_router.adapters.local.index_survey import ProjectIndex, survey_index
from search_router.adapters.local.index_verify import Verified, verify_index
from search_router.adapters.local.symbol_index import SymbolIndex
from search_router.adapters.local.symbol_state import RefreshReport
from search_router.adapters.registry import shared_index
from search_router.config.loader import load_config
from search_router.errors import ExpertError
from search_router.router.fanout import Progress
from search_router.router.workspace import Workspace, discover_workspace
from search_router.schema import Project

TELL_SECONDS = 0.2


@dataclass(frozen=True, slots=True)
class IndexStatus:
    """`failures` are projects that could not be listed, by id; `notes` are what is wrong with the store."""

    projects: tuple[ProjectIndex, ...]
    failures: Mapping[str, ExpertError]
    store: StoreSummary
    notes: tuple[str, ...]

    @property
    def current(self) -> bool:
        """Whether every file that can be indexed is."""
        return not (self.failures or self.notes or any(p.waiting or p.damaged for p in self.projects))


@dataclass(frozen=True, slots=True)
class Refreshed:
    """Reports and failures by project id."""

    reports: Mapping[str, RefreshReport]
    failures: Mapping[str, ExpertError]
    notes: tuple[str, ...]
    seconds: float

    @property
    def complete(self) -> bool:
        """Whether every file that can be indexed is, and will be found so by the next process."""
        return not (self.failures or self.notes or any(report.missing for report in self.reports.values()))


class IndexKeeper:
    """The index of one workspace. Made by `open_index`."""

    def __init__(self, workspace: Workspace, index: SymbolIndex, unused_days: int) -> None:
        self.workspace = workspace
        self.unused_days = unused_days
        self._index = index
        self._nested = tuple(project.root for project in workspace.projects)

    async def status(self) -> IndexStatus:
        """Compare every project with the store; nothing is indexed."""
        found: list[ProjectIndex] = []
        failures: dict[str, ExpertError] = {}
        for project in self.workspace.projects:
            try:
                found.append(await survey_index(project, self._index.store, max_bytes=self._index.max_file_bytes, nested=self._nested))
            except ExpertError as error:
                failures[project.id] = error
        store = await anyio.to_thread.run_sync(summarise_store, self._index.store)
        return IndexStatus(tuple(found), failures, store, self._index.notes)

    async def refresh(self, progress: Progress | None = None) -> Refreshed:
        """Bring every project up to date, and tell from time to time how many files are indexed."""
        reports: dict[str, RefreshReport] = {}
        failures: dict[str, ExpertError] = {}
        began = anyio.current_time()

        async def refresh(project: Project) -> None:
            try:
                reports[project.id] = await self._index.refresh(project, nested=self._nested, again=True)
            except ExpertError as error:
                failures[project.id] = error

        async with anyio.create_task_group() as telling:
            if progress is not None:
                telling.start_soon(self._tell, progress)
            async with anyio.create_task_group() as tasks:
                for project in self.workspace.projects:
                    tasks.start_soon(refresh, project)
            telling.cancel_scope.cancel()
        return Refreshed(reports, failures, self._index.notes, anyio.current_time() - began)

    async def collect(self, unused_days: int | None = None) -> tuple[Collected | None, tuple[str, ...]]:
        """(what was deleted, None when the store could not do it; notes)."""
        days = self.unused_days if unused_days is None else unused_days
        done = await anyio.to_thread.run_sync(lambda: collect_unused(self._index.store, unused_days=days))
        return done, self._index.notes

    async def verify(self, *, sample: int | None, seed: int, repair: bool) -> tuple[Verified, tuple[str, ...]]:
        """(what was found, notes). Raises ExpertError when a project cannot be listed."""
        store, max_bytes = self._index.store, self._index.max_file_bytes
        found = await verify_index(self.workspace.projects, store, max_bytes=max_bytes, sample=sample, seed=seed, repair=repair)
        return found, self._index.notes

    async def _tell(self, progress: Progress) -> None:
        while True:
            await anyio.sleep(TELL_SECONDS)
            done, total = standing(self._index, self.workspace.projects)
            await progress("files indexed", done, total)


@asynccontextmanager
async def open_index(*, roots: Sequence[Path] = (), flags: Sequence[str] = ()) -> AsyncGenerator[IndexKeeper]:
    """The index of the given roots (else the configured ones, else the working directory), as a router over them would use it.

    Raises:
        ConfigError: every mistake of every layer at once.
        WorkspaceError: a root is missing or unreadable.
    """
    loaded = load_config(roots=roots, environ=os.environ, flags=flags)
    workspace = await discover_workspace(loaded.config.workspace, roots)
    index = shared_index(loaded.config, loaded.paths.cache)
    try:
        yield IndexKeeper(workspace, index, loaded.config.index.unused_days)
    finally:
        with anyio.CancelScope(shield=True):
            await index.aclose()
