"""One refresh of one project's symbols: list its files, find which bytes are new, and get their syntax from the cheapest place.

The places, in this order: what the table holds already, the syntax of equal bytes in memory, the store, extraction in a thread, and
for many files extraction in child processes. Tables change on the event loop only, a few files at a time.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Awaitable, Callable, Container, Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Final

import anyio
import anyio.lowlevel
import anyio.to_thread

from search_router.adapters.local.changed_files import few_first, identify_file, in_order, short_slices
from search_router.adapters.local.extract_pool import ExtractPool, WantedFile
from search_router.adapters.local.extract_worker import ReadSyntax, read_syntax
from search_router.adapters.local.grammars import SYNTAX_LANGUAGES, TIMED_OUT
from search_router.adapters.local.installed import INSTALLED, installed_folders
from search_router.adapters.local.languages import language_of, text_language
from search_router.adapters.local.left_out import LeftOut
from search_router.adapters.local.manifest import Manifest
from search_router.adapters.local.slow_files import BIG_BYTES, SlowFiles, is_set_aside
from search_router.adapters.local.symbol_packing import DamagedPayload
from search_router.adapters.local.symbol_state import (
    Changed,
    Identified,
    KnownFiles,
    ProjectSymbols,
    RefreshReport,
    Seen,
    derived_key,
    reason_key,
)
from search_router.adapters.local.symbol_store import Derived, DerivedKey, DerivedStore, FileStamp
from search_router.adapters.local.symbol_table import IndexedFile
from search_router.schema import Project

MANY_FILES: Final = 200
MANY_BYTES: Final = 4 * 2**20
"""More to extract than either of these goes to child processes."""
NO_STAMP: Final = FileStamp(-1, 0, 0)
"""Kept for a file that will be read again, so that the store knows which contents are in use."""

SAVE_SECONDS: Final = 1.0
"""What was extracted is on disk after so long at the latest: a process may be killed at any moment."""
_BATCH = 128

ReadList = Callable[[Project, tuple[Path, ...]], Awaitable[Manifest]]
"""Lists a project without the roots of others in it."""


class Refresh:
    """One refresh; made for it and dropped after it.

    Args:
        known: every indexed file of the process by its key, so that equal bytes are found wherever they are.
        extracting: held while child processes run, so that projects do not multiply them.
        again: what was set aside because reading it came to no end is read again.
    """

    def __init__(
        self,
        project: Project,
        state: ProjectSymbols,
        *,
        store: DerivedStore,
        known: KnownFiles,
        max_bytes: int,
        workers: int,
        extracting: anyio.Lock,
        again: bool = False,
    ) -> None:
        self._project = project
        self._state = state
        self._store = store
        self._known = known
        self._max_bytes = max_bytes
        self._workers = workers
        self._extracting = extracting
        self._parsed = self._reused = 0
        self._missing: list[LeftOut] = []
        self._unsaved: dict[DerivedKey, Derived] = {}
        self._seen: dict[str, tuple[FileStamp, str]] = {}
        self._groups: dict[str, list[Identified]] = {}
        self._pending: dict[DerivedKey, str] = {}
        self._slow = SlowFiles(store, again=again)
        self._last: list[Changed] = []
        self._saved_at = time.monotonic()

    async def run(self, read: ReadList, nested: tuple[Path, ...], words: Container[str] = ()) -> RefreshReport:
        """Do it, with the list that `read` gives; of many files those first whose paths have one of these index words.

        Raises:
            ExpertError: git or the extraction cannot be run.
        """
        began = time.monotonic()
        state = self._state
        listed, state.listed = state.listed, None
        total, state.total = state.total, None
        manifest = await read(self._project, nested)
        state.entries, state.reasons = manifest.entries, frozenset(left.reason for left in manifest.left_out)
        if listed == manifest.entries:
            state.listed, state.total = listed, total
            return self._report(manifest, began)
        changed, gone = self._compare(manifest)
        kept = [file for path in gone if (file := state.table.get(path))]  # so that a renamed file finds its syntax in `known`
        for path in gone:
            state.table.remove(path)
            del state.seen[path]
        state.waiting = len(changed)
        try:
            await self._bring_in(in_order(changed, words) if len(changed) > MANY_FILES else changed)
        except asyncio.CancelledError:
            with anyio.CancelScope(shield=True):  # what was done is not done again, by whoever has only a moment like us
                await self._save_rows()
            raise
        del kept
        await self._save([*gone, *(path for path in state.stamps or () if path not in state.seen)])
        state.stamps = {}  # from here on `seen` knows more
        state.waiting = len(self._missing)
        if not self._missing and all(seen.settled for seen in state.seen.values()):
            state.listed = manifest.entries
        return self._report(manifest, began)

    def _report(self, manifest: Manifest, began: float) -> RefreshReport:
        state = self._state
        left_out = [left for left in manifest.left_out if _matters(left)]
        left_out += [LeftOut(path, seen.reason) for path, seen in state.seen.items() if seen.reason]
        ms = (time.monotonic() - began) * 1000
        return RefreshReport(len(state.table), self._parsed, self._reused, tuple(sorted(left_out, key=_path)), tuple(self._missing), ms)

    def _compare(self, manifest: Manifest) -> tuple[list[Changed], list[str]]:
        """Source files that may have changed, and paths that are gone."""
        state = self._state
        changed: list[Changed] = []
        total = 0
        listed: set[str] = set()
        installed = installed_folders(entry.path for entry in manifest.entries)
        for entry in manifest.entries:
            if entry.path in state.other:
                continue
            stamp, seen = FileStamp.of(entry), state.seen.get(entry.path)
            if seen is not None and seen.settled and seen.stamp == stamp and not seen.reason and not installed:  # most are
                listed.add(entry.path)
                total += 1
                continue
            language = text_language(entry.path)
            if language is None:
                state.other.add(entry.path)
                continue
            listed.add(entry.path)
            if entry.path.startswith(installed):
                self._leave_out(entry.path, stamp, True, INSTALLED)
                continue
            if entry.size > self._max_bytes:
                self._leave_out(entry.path, stamp, True, f"larger than {self._max_bytes} bytes")
                continue
            total += 1
            if seen is None or seen.stamp != stamp or not seen.settled or seen.reason == INSTALLED:  # its folder is marked no more
                changed.append(Changed(entry.path, language, stamp))
        state.total = total
        return changed, [path for path in state.seen if path not in listed]

    async def _bring_in(self, changed: list[Changed]) -> None:
        """Each file from the cheapest place; while children extract the first ones, the next are identified."""
        pool = ExtractPool(self._project.root, self._max_bytes, self._deliver)
        try:
            await self._bring_in_by(pool, changed)
        finally:
            for wanted in pool.broken_off:
                with anyio.CancelScope(shield=True):
                    await self._note_in_vain(self._groups.get(wanted.path, ()), "reading it was broken off")

    async def _bring_in_by(self, pool: ExtractPool, changed: list[Changed]) -> None:
        """The pool is opened when there is enough for it. What was tried in vain before comes last."""
        is_open = False
        async with AsyncExitStack() as stack:
            held: list[Changed] = []

            async def open_pool() -> None:
                nonlocal is_open
                await stack.enter_async_context(self._extracting)
                await stack.enter_async_context(pool.open(self._workers))
                is_open = True

            for start in range(0, len(changed), _BATCH):
                new = self._distinct(await self._reuse(await self._identify(changed[start : start + _BATCH])))
                held += new
                big = [each for each in held if each.stamp.size > BIG_BYTES]
                if not is_open and (big or len(held) > MANY_FILES or sum(each.stamp.size for each in held) > MANY_BYTES):
                    await open_pool()
                    first = few_first([each for each in held if each.stamp.size <= BIG_BYTES])
                    here = {each.path for each in first}
                    pool.put(WantedFile(each.path, each.language) for each in held if each.path not in here)
                    held = []
                    await self._extract_here(first)  # while the children start
                if is_open:
                    pool.put(WantedFile(each.path, each.language) for each in held)
                    held = []
            await self._extract_here(held)
            if self._last and not is_open:
                await open_pool()
            if is_open:
                pool.put(WantedFile(each.path, each.language) for each in self._last)
                for left in await pool.finish():
                    await self._give_up(self._groups.pop(left.path), left.reason)

    async def _give_up(self, group: Sequence[Identified], reason: str) -> None:
        """A file that the extraction itself could not be done for: tried again next time, unless that was often enough."""
        said = await self._note_in_vain(group, reason)
        for each in group:
            if said is None:
                self._missing.append(LeftOut(each.changed.path, reason))
            else:
                self._take_identified(each, said)

    async def _note_in_vain(self, group: Sequence[Identified], reason: str) -> str | None:
        return await self._slow.tried_in_vain(group[0], reason) if group else None

    async def _identify(self, changed: list[Changed]) -> list[Identified]:
        """The blob id of each file: from a stamp that still holds, else from its bytes."""
        state, root = self._state, self._project.root
        if state.stamps is None:
            state.stamps = await anyio.to_thread.run_sync(self._store.stamps, root)
        found: list[Identified] = []
        unread: list[Changed] = []
        for each in changed:
            stamp, blob = state.stamps.get(each.path, (None, ""))
            if stamp == each.stamp and each.path not in state.seen:
                found.append(Identified(each, blob, True))
            else:
                unread.append(each)
        for part in short_slices(unread):
            read = await anyio.to_thread.run_sync(lambda part=part: [identify_file(root, each, self._max_bytes) for each in part])
            for each, (outcome, settled) in zip(part, read, strict=True):
                if isinstance(outcome, Identified):
                    found.append(outcome)
                else:
                    self._take(each, outcome, settled)
        return found

    async def _reuse(self, identified: list[Identified]) -> list[Identified]:
        """Take what the table, the memory or the store has; give back what must be extracted."""
        state = self._state
        unknown: list[Identified] = []
        for each in identified:
            path, seen = each.changed.path, state.seen.get(each.changed.path)
            known = self._known.get(derived_key(each.changed.language, each.blob))
            if seen is not None and seen.blob == each.blob and path in state.table:
                self._mark_seen(each)
                state.waiting -= 1
            elif known is not None:
                await self._put(each, known)
            else:
                unknown.append(each)
        return await self._reuse_stored(unknown) if unknown else []

    async def _reuse_stored(self, unknown: list[Identified]) -> list[Identified]:
        keys = {derived_key(each.changed.language, each.blob) for each in unknown}
        rows = await anyio.to_thread.run_sync(self._store.load, keys)
        if len(rows) < len(keys):
            rows |= await anyio.to_thread.run_sync(self._store.load, [reason_key(e.changed.language, e.blob) for e in unknown])
        await anyio.to_thread.run_sync(self._store.mark_used, rows)
        to_parse: list[Identified] = []
        for each in unknown:
            key, reason = derived_key(each.changed.language, each.blob), rows.get(reason_key(each.changed.language, each.blob))
            said = "" if reason is None else reason.payload.decode("utf-8", "replace")
            file = self._unpack(each, rows[key]) if key in rows else None
            if file is not None:
                await self._put(each, file)
            elif reason is not None and not (self._slow.again and is_set_aside(said)):
                self._take_identified(each, said)
            else:
                to_parse.append(each)
        slow = await self._slow.among(to_parse)
        self._last += self._distinct([each for each in to_parse if each.changed.path in slow])
        return [each for each in to_parse if each.changed.path not in slow]

    def _distinct(self, to_parse: list[Identified]) -> list[Changed]:
        """The files to extract, one for each distinct content; its equals wait in its group."""
        new: list[Changed] = []
        for each in to_parse:
            key = derived_key(each.changed.language, each.blob)
            first = self._pending.setdefault(key, each.changed.path)
            if first in self._groups:
                self._groups[first].append(each)
            else:
                self._pending[key] = each.changed.path
                self._groups[each.changed.path] = [each]
                new.append(each.changed)
        return new

    async def _extract_here(self, wanted: list[Changed]) -> None:
        for part in short_slices(wanted):
            reading = asyncio.ensure_future(asyncio.to_thread(self._read_some, part, left := threading.Event()))
            try:
                outcomes = await asyncio.shield(reading)
            except asyncio.CancelledError:
                left.set()
                with anyio.CancelScope(shield=True):  # a thread cannot be stopped: what it has read at its end is kept
                    for outcome in await reading:
                        await self._deliver(outcome)
                raise
            for outcome in outcomes:
                await self._deliver(outcome)

    def _read_some(self, part: Sequence[Changed], left: threading.Event) -> list[ReadSyntax | LeftOut]:
        """Read these, or as many as can be before nobody waits any more."""
        outcomes: list[ReadSyntax | LeftOut] = []
        for each in part:
            outcomes.append(read_syntax(self._project.root, each.path, each.language, max_bytes=self._max_bytes))
            if left.is_set():
                break
        return outcomes

    async def _deliver(self, outcome: ReadSyntax | LeftOut) -> None:
        """Take what was extracted from the first of some files with equal bytes, for all of them."""
        group = self._groups.pop(outcome.path)
        if isinstance(outcome, LeftOut):
            timed_out = outcome.reason.startswith(TIMED_OUT)
            reason = (await self._note_in_vain(group, outcome.reason) if timed_out else None) or outcome.reason
            for each in group:
                self._take(each.changed, LeftOut(each.changed.path, reason), each.settled)
            return
        first, row = group[0], Derived(outcome.content_hash, outcome.payload)
        if outcome.blob != first.blob:  # it was edited since it was hashed; its equals were not
            self._missing += [LeftOut(each.changed.path, "an equal file changed while it was read") for each in group[1:]]
            group = [Identified(first.changed, outcome.blob, False)]
        if outcome.reason:
            self._unsaved[reason_key(first.changed.language, outcome.blob)] = Derived(outcome.content_hash, outcome.reason.encode())
            for each in group:
                self._take_identified(each, outcome.reason)
            return
        self._unsaved[derived_key(first.changed.language, outcome.blob)] = row
        self._parsed += 1
        self._reused -= 1  # _put counts each file of the group
        for each in group:
            await self._put(each, IndexedFile.of(each.changed.path, each.changed.language, each.blob, row))
        if len(self._unsaved) >= _BATCH or time.monotonic() - self._saved_at > SAVE_SECONDS:
            await self._save_rows()

    def _unpack(self, each: Identified, row: Derived) -> IndexedFile | None:
        try:
            return IndexedFile.of(each.changed.path, each.changed.language, each.blob, row)
        except DamagedPayload:
            self._store.note_damaged_row()
            return None

    async def _put(self, each: Identified, file: IndexedFile) -> None:
        """Enter a file under its own path, with the syntax of equal bytes."""
        path, language, _ = each.changed
        if file.path != path:
            file = IndexedFile(path, language, file.blob, file.content_hash, file.syntax, file.terms, file.edges)
        self._state.table.put(file)
        self._known[derived_key(language, file.blob)] = file
        self._mark_seen(each)
        self._reused += 1
        self._state.waiting -= 1
        await anyio.lowlevel.checkpoint()

    def _mark_seen(self, each: Identified) -> None:
        path, _, stamp = each.changed
        self._state.seen[path] = Seen(stamp, each.settled, each.blob)
        self._seen[path] = (stamp if each.settled else NO_STAMP, each.blob)

    def _take(self, changed: Changed, left: LeftOut, settled: bool) -> None:
        """A file that could be listed and not read: gone, or left out with its reason."""
        self._state.waiting -= 1
        if left.reason == "gone":
            self._state.table.remove(changed.path)
            self._state.seen.pop(changed.path, None)
        else:
            self._leave_out(changed.path, changed.stamp, settled, left.reason)

    def _take_identified(self, each: Identified, reason: str) -> None:
        """A file that is left out for what its bytes are: remembered with its stamp, so that no later process reads it again."""
        path, _, stamp = each.changed
        self._take(each.changed, LeftOut(path, reason), each.settled)
        self._seen[path] = (stamp if each.settled else NO_STAMP, each.blob)

    def _leave_out(self, path: str, stamp: FileStamp, settled: bool, reason: str) -> None:
        self._state.table.remove(path)
        self._state.seen[path] = Seen(stamp, settled, "", reason)

    async def _save_rows(self) -> None:
        self._saved_at = time.monotonic()
        rows, self._unsaved = self._unsaved, {}
        await anyio.to_thread.run_sync(self._store.keep, rows)
        if self._seen:
            stamps, self._seen = self._seen, {}
            await anyio.to_thread.run_sync(self._store.keep_stamps, self._project.root, stamps)

    async def _save(self, gone: list[str]) -> None:
        await self._save_rows()
        if gone:
            await anyio.to_thread.run_sync(self._store.keep_stamps, self._project.root, dict[str, tuple[FileStamp, str]](), gone)


def _matters(left: LeftOut) -> bool:
    """Whether a reader of symbols could miss this path: links and pipes only when they are named like source."""
    return left.reason not in ("symlink", "not-a-file") or language_of(left.path) in SYNTAX_LANGUAGES


def _path(left: LeftOut) -> str:
    return left.path
