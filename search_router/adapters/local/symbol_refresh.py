"""One refresh of one project's symbols: list its files, find which bytes are new, and get their syntax from the cheapest place.

The places, in this order: what the table holds already, the syntax of equal bytes in memory, the store, extraction in a thread, and
for many files extraction in child processes. Tables change on the event loop only, a few files at a time.
"""

from __future__ import annotations

import time
from collections.abc import Container
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Final

import anyio
import anyio.lowlevel
import anyio.to_thread

from search_router.adapters.local.changed_files import few_first, identify_file, in_order, short_slices
from search_router.adapters.local.extract_pool import ExtractPool, WantedFile
from search_router.adapters.local.extract_worker import ReadSyntax, read_syntax
from search_router.adapters.local.grammars import SYNTAX_LANGUAGES
from search_router.adapters.local.languages import language_of, text_language
from search_router.adapters.local.left_out import LeftOut
from search_router.adapters.local.manifest import Manifest, read_manifest
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

_BATCH = 128


class Refresh:
    """One refresh; made for it and dropped after it.

    Args:
        known: every indexed file of the process by its key, so that equal bytes are found wherever they are.
        extracting: held while child processes run, so that projects do not multiply them.
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

    async def run(self, nested: tuple[Path, ...], words: Container[str] = ()) -> RefreshReport:
        """Do it; of many files those first whose paths have one of these index words.

        Raises:
            ExpertError: git or the extraction cannot be run.
        """
        began = time.monotonic()
        state = self._state
        listed, state.listed = state.listed, None
        total, state.total = state.total, None
        manifest = await read_manifest(self._project, nested=nested)
        if listed == manifest.entries:
            state.listed, state.total = listed, total
            return self._report(manifest, began)
        changed, gone = self._compare(manifest)
        kept = [file for path in gone if (file := state.table.get(path))]  # so that a renamed file finds its syntax in `known`
        for path in gone:
            state.table.remove(path)
            del state.seen[path]
        state.waiting = len(changed)
        await self._bring_in(in_order(changed, words) if len(changed) > MANY_FILES else changed)
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
        for entry in manifest.entries:
            if entry.path in state.other:
                continue
            language = text_language(entry.path)
            if language is None:
                state.other.add(entry.path)
                continue
            listed.add(entry.path)
            stamp, seen = FileStamp.of(entry), state.seen.get(entry.path)
            if entry.size > self._max_bytes:
                self._leave_out(entry.path, stamp, True, f"larger than {self._max_bytes} bytes")
                continue
            total += 1
            if seen is None or seen.stamp != stamp or not seen.settled:
                changed.append(Changed(entry.path, language, stamp))
        state.total = total
        return changed, [path for path in state.seen if path not in listed]

    async def _bring_in(self, changed: list[Changed]) -> None:
        """Each file from the cheapest place; while children extract the first ones, the next are identified."""
        async with AsyncExitStack() as stack:
            pool: ExtractPool | None = None
            held: list[Changed] = []
            for start in range(0, len(changed), _BATCH):
                new = self._distinct(await self._reuse(await self._identify(changed[start : start + _BATCH])))
                held += new
                if pool is None and (len(held) > MANY_FILES or sum(each.stamp.size for each in held) > MANY_BYTES):
                    await stack.enter_async_context(self._extracting)
                    pool = ExtractPool(self._project.root, self._max_bytes, self._deliver)
                    await stack.enter_async_context(pool.open(self._workers))
                    first = few_first(held)
                    pool.put(WantedFile(each.path, each.language) for each in held[len(first) :])
                    held = []
                    await self._extract_here(first)  # while the children start
                if pool is not None:
                    pool.put(WantedFile(each.path, each.language) for each in held)
                    held = []
            if pool is None:
                await self._extract_here(held)
                return
            for left in await pool.finish():
                self._missing += [LeftOut(each.changed.path, left.reason) for each in self._groups.pop(left.path)]

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
            file = self._unpack(each, rows[key]) if key in rows else None
            if file is not None:
                await self._put(each, file)
            elif reason is not None:
                self._take_identified(each, reason.payload.decode("utf-8", "replace"))
            else:
                to_parse.append(each)
        return to_parse

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
        root, max_bytes = self._project.root, self._max_bytes
        for part in short_slices(wanted):
            for outcome in await anyio.to_thread.run_sync(
                lambda part=part: [read_syntax(root, each.path, each.language, max_bytes=max_bytes) for each in part]
            ):
                await self._deliver(outcome)

    async def _deliver(self, outcome: ReadSyntax | LeftOut) -> None:
        """Take what was extracted from the first of some files with equal bytes, for all of them."""
        group = self._groups.pop(outcome.path)
        if isinstance(outcome, LeftOut):
            for each in group:
                self._take(each.changed, LeftOut(each.changed.path, outcome.reason), each.settled)
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
        if len(self._unsaved) >= _BATCH:
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
