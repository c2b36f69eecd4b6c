"""The live symbol index: one table a project, brought up to date by the difference of two manifests before each question.

Content-addressed: a file is parsed only when neither memory nor the store knows its bytes, so a branch switch, a rename or a second
work tree parses nothing. A refresh is a task of its own that requests share and may leave: it goes on, and the next request finds more.
"""

from __future__ import annotations

import dataclasses
import gc
from collections.abc import Collection, Container, Iterable, Iterator
from itertools import chain
from pathlib import Path
from typing import NamedTuple
from weakref import WeakValueDictionary

import anyio
import anyio.to_thread

from search_router.adapters.local.extract_pool import worker_count
from search_router.adapters.local.extract_worker import read_syntax
from search_router.adapters.local.grammars import SYNTAX_LANGUAGES
from search_router.adapters.local.languages import language_of
from search_router.adapters.local.left_out import LeftOut
from search_router.adapters.local.live_listing import LiveListing
from search_router.adapters.local.named_files import Words, files_that_may_have
from search_router.adapters.local.shared_runs import SharedRuns
from search_router.adapters.local.slow_files import BIG_BYTES
from search_router.adapters.local.symbol_packing import DamagedPayload, split_payload, unpack_syntax
from search_router.adapters.local.symbol_refresh import Refresh
from search_router.adapters.local.symbol_state import KnownFiles, ProjectSymbols, RefreshReport, derived_key
from search_router.adapters.local.symbol_store import DerivedStore
from search_router.adapters.local.symbol_table import SymbolTable
from search_router.adapters.local.tree_watch import TreeWatch
from search_router.collector import return_free_memory
from search_router.schema import Definition, Project

FROZEN_FROM = 200
"""A refresh that took in so many files has made the index much larger."""
EDIT_SECONDS = 0.25
"""So long a search of the tree waits for the index to say where to look."""


class Progress(NamedTuple):
    """How many of a project's source files are in the index as they were last listed; `total` is None until a refresh has listed them."""

    ready: int
    total: int | None


class SymbolIndex:
    """The symbols of every project that was asked about. Belongs to one event loop.

    Args:
        store: where extractions are kept between processes.
        max_file_bytes: larger files are left out.
        workers: at most so many child processes at once, over all projects; 0 as `worker_count`.
    """

    def __init__(self, store: DerivedStore, *, max_file_bytes: int, workers: int) -> None:
        self.store = store
        self.max_file_bytes = max_file_bytes
        self._workers = worker_count(workers)
        self._projects: dict[Path, ProjectSymbols] = {}
        self._runs = SharedRuns[RefreshReport]("symbol index")
        self._known: KnownFiles = WeakValueDictionary()
        self._extracting = anyio.Lock()
        self._watch: TreeWatch | None = None

    @property
    def notes(self) -> tuple[str, ...]:
        """What went wrong with the store or the watch, for the caller to read."""
        return (*self.store.notes, *(self._watch.notes if self._watch is not None else ()))

    def watch(self) -> None:
        """Watch every project from its first refresh on, and refresh it when its files change. Safe to call twice."""
        if self._watch is None:
            self._watch = TreeWatch(lambda project, nested: self.refresh(project, nested=nested))

    def table(self, project: Project) -> SymbolTable:
        """The project's symbols as far as they are indexed; empty before the first refresh."""
        return self._state(project).table

    def progress(self, project: Project) -> Progress:
        """How far the index is."""
        state = self._state(project)
        return Progress((state.total or 0) - state.waiting, state.total)

    def report_if_quiet(self, project: Project, nested: tuple[Path, ...]) -> RefreshReport | None:
        """What `refresh` would say, where the kernel vouches that no file has changed since the last time."""
        state = self._state(project)
        known = state.listed is not None and state.nested == nested and state.listing is not None and state.listing.is_quiet()
        if known and state.listing is not None:
            state.listing.list_again_if_due(
                lambda: self._runs.join(project.root, lambda: self._refresh(project, nested, (), False, whole=True))
            )
        return state.report if known else None

    def keep_words(self, project: Project, words: Words) -> None:
        """Take in what knows the words of each of the project's files, made from its table."""
        self._state(project).words = words

    async def files_that_may_have(self, project: Project, nested: tuple[Path, ...], names: Iterable[str]) -> tuple[str, ...] | None:
        """The only files that can have one of these names as a word of its own; None where that is not known for certain.

        After an edit it waits with the others for the index, for a moment. Raises ExpertError as `refresh`.
        """
        state = self._state(project)
        if state.words is None:
            return None
        with anyio.move_on_after(EDIT_SECONDS) as waiting:
            await self.refresh(project, nested=nested)
        return None if waiting.cancelled_caught else await files_that_may_have(project.root, state, names)

    async def refresh(
        self, project: Project, *, nested: tuple[Path, ...] = (), words: Container[str] = (), again: bool = False
    ) -> RefreshReport:
        """Bring the project up to date with its files as they are now, and say what was done.

        To be cancelled here is only to leave: the refresh goes on in its own task until `aclose`. `nested` as for `read_manifest`;
        of many new files those come first whose paths have one of these index words. With `again`, also files that were set aside because
        reading them came to no end.

        Raises:
            ExpertError: git or the extraction cannot be run, or the index was closed.
        """
        return self.report_if_quiet(project, nested) or await self._runs.join(
            project.root, lambda: self._refresh(project, nested, words, again)
        )

    async def definitions(self, project: Project, path: str, blob: str) -> tuple[Definition, ...] | None:
        """The definitions of the file whose bytes have this blob id, in reading order; None when it has no syntax that we read.

        Read from memory, else from the store, else from the file itself if it still holds those bytes.
        """
        language = language_of(path)
        if language is None or language not in SYNTAX_LANGUAGES:
            return None
        key = derived_key(language, blob)
        known = self._known.get(key)
        if known is not None:
            return known.syntax.definitions
        stored = (await anyio.to_thread.run_sync(self.store.load, [key])).get(key)
        if stored is not None:
            try:
                return unpack_syntax(split_payload(stored.payload)[0]).definitions
            except DamagedPayload:
                self.store.note_damaged_row()
        if await anyio.to_thread.run_sync(_is_big, project.root, path):
            return None  # a child reads it for the index; a thread of ours would hold everybody up
        read = await anyio.to_thread.run_sync(lambda: read_syntax(project.root, path, language, max_bytes=self.max_file_bytes))
        if isinstance(read, LeftOut) or read.reason or read.blob != blob:
            return None
        return unpack_syntax(split_payload(read.payload)[0]).definitions

    async def aclose(self) -> None:
        """Stop watching and every refresh, and release the store; safe to call twice."""
        if self._watch is not None:
            await self._watch.aclose()
        await self._runs.aclose()
        for state in self._projects.values():
            if state.listing is not None:
                await state.listing.aclose()
        await anyio.to_thread.run_sync(self.store.close)

    def _state(self, project: Project) -> ProjectSymbols:
        return self._projects.setdefault(project.root, ProjectSymbols())

    async def _refresh(
        self, project: Project, nested: tuple[Path, ...], words: Container[str], again: bool, *, whole: bool = False
    ) -> RefreshReport:
        refresh = Refresh(
            project,
            self._state(project),
            store=self.store,
            known=self._known,
            max_bytes=self.max_file_bytes,
            workers=self._workers,
            extracting=self._extracting,
            again=again,
        )
        state = self._state(project)
        listing = state.listing = state.listing or LiveListing(project)
        report = await refresh.run(lambda of, without: listing.read(of, without, whole=whole), nested, words)
        if state.listed is not None:
            state.report, state.nested = dataclasses.replace(report, parsed=0, reused=0), nested
            listing.settle_soon()
        if report.parsed + report.reused >= FROZEN_FROM:
            # What was indexed stays, has no cycles and is large: the collector would walk all of it every few requests (0.1 to 0.2 s).
            gc.collect(1)
            gc.freeze()
            await anyio.to_thread.run_sync(return_free_memory)
        if self._watch is not None:
            state = self._state(project)
            self._watch.follow(project, nested, _AnyOf(state.seen, state.other))
        return report


def _is_big(root: Path, path: str) -> bool:
    try:
        return (root / path).stat().st_size > BIG_BYTES
    except (OSError, ValueError):
        return False


class _AnyOf:
    """Two collections of paths as one that changes with them."""

    def __init__(self, first: Collection[str], second: Collection[str]) -> None:
        self._first, self._second = first, second

    def __contains__(self, path: object) -> bool:
        return path in self._first or path in self._second

    def __iter__(self) -> Iterator[str]:
        return chain(self._first, self._second)

    def __len__(self) -> int:
        return len(self._first) + len(self._second)
