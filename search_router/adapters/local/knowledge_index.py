"""The live index of documents: one shelf a project, brought up to date by the difference of two file lists before each question.

Content-addressed like the index of code, in the same store: a document is read only when neither memory nor the store knows its bytes.
Bringing up to date is a task of its own that requests share and may leave: it goes on, and the next request finds more.
"""

from __future__ import annotations

import gc
import hashlib
import io
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Final, NamedTuple

import anyio
import anyio.to_thread

from search_router.adapters.local.index_readiness import UNREAD
from search_router.adapters.local.installed import installed_folders
from search_router.adapters.local.knowledge_document import DOCUMENT_VERSION, Document, derive_document, pack_document, unpack_document
from search_router.adapters.local.knowledge_sections import document_format
from search_router.adapters.local.knowledge_shelf import Shelf
from search_router.adapters.local.languages import text_language
from search_router.adapters.local.live_listing import LiveListing
from search_router.adapters.local.manifest import FileEntry, LeftOut
from search_router.adapters.local.shared_runs import SharedRuns
from search_router.adapters.local.symbol_packing import DamagedPayload
from search_router.adapters.local.symbol_store import Derived, DerivedKey, DerivedStore
from search_router.adapters.local.textfile import encode_path, read_text_file
from search_router.collector import return_free_memory
from search_router.errors import EvidenceError
from search_router.schema import Project

RACY_NS: Final = 2_000_000_000
"""A file that changed less than this before it was read is read again: it may change once more within one tick of its clock."""
SLICE: Final = 16
FROZEN_FROM: Final = 200
"""After so many documents were read at once, the garbage collector looks no more at what is there."""
PDF_MISSING: Final = "PDF is not read: install search-router[pdf]"


class ShelfReport(NamedTuple):
    """What one refresh did; `left_out` are documents that could not be read, and why."""

    documents: int
    read: int
    left_out: tuple[LeftOut, ...]


class _Seen(NamedTuple):
    entry: FileEntry
    settled: bool
    content_hash: str
    reason: str


class _State:
    def __init__(self) -> None:
        self.shelf = Shelf()
        self.documents: dict[str, Document] = {}
        self.seen: dict[str, _Seen] = {}
        self.listed: tuple[FileEntry, ...] | None = None
        self.generation = 0
        self.total: int | None = None
        self.listing: LiveListing | None = None
        self.report: ShelfReport | None = None
        self.nested: tuple[Path, ...] = ()


class KnowledgeIndex:
    """The documents of every project that was asked about. Belongs to one event loop."""

    def __init__(self, store: DerivedStore, *, max_file_bytes: int) -> None:
        self._store = store
        self._max_bytes = max_file_bytes
        self._states: dict[Path, _State] = {}
        self._runs = SharedRuns[ShelfReport]("document index")

    @property
    def notes(self) -> tuple[str, ...]:
        """What went wrong with the store."""
        return self._store.notes

    def shelf(self, project: Project) -> Shelf:
        """The project's documents as far as they are indexed."""
        return self._state(project).shelf

    def content_hash(self, project: Project, path: str) -> str | None:
        """SHA-256 of the bytes that are indexed at this path."""
        seen = self._state(project).seen.get(path)
        return seen.content_hash if seen else None

    def progress(self, project: Project) -> tuple[int, int | None]:
        """(documents that are ready, how many there are; None before they were listed)."""
        state = self._state(project)
        return len(state.shelf.documents), state.total

    def report_if_quiet(self, project: Project, nested: tuple[Path, ...]) -> ShelfReport | None:
        """What `refresh` would say, where the kernel vouches that no file has changed since the last time."""
        state = self._state(project)
        known = state.listed is not None and state.nested == nested and state.listing is not None and state.listing.is_quiet()
        if known and state.listing is not None:
            state.listing.list_again_if_due(lambda: self._runs.join(project.root, lambda: self._refresh(project, nested, whole=True)))
        return state.report if known else None

    async def refresh(self, project: Project, *, nested: tuple[Path, ...] = ()) -> ShelfReport:
        """Bring the project up to date with its files as they are now. To be cancelled here is only to leave.

        Raises:
            ExpertError: git cannot list the project, or the index was closed.
        """
        return self.report_if_quiet(project, nested) or await self._runs.join(project.root, lambda: self._refresh(project, nested))

    async def aclose(self) -> None:
        """Stop every refresh and release the store; safe to call twice."""
        await self._runs.aclose()
        for state in self._states.values():
            if state.listing is not None:
                await state.listing.aclose()
        await anyio.to_thread.run_sync(self._store.close)

    def _state(self, project: Project) -> _State:
        return self._states.setdefault(project.root, _State())

    async def _refresh(self, project: Project, nested: tuple[Path, ...], *, whole: bool = False) -> ShelfReport:
        state = self._state(project)
        listing = state.listing = state.listing or LiveListing(project)
        manifest = await listing.read(project, nested, whole=whole)
        listed, state.listed = state.listed, None
        read = 0
        if listed != manifest.entries:
            installed = installed_folders(entry.path for entry in manifest.entries)
            own = [e for e in manifest.entries if document_format(e.path) and not e.path.startswith(installed)]
            read = await self._update(project, state, own)
        if read >= FROZEN_FROM:
            # What was indexed stays, has no cycles and is large: the collector would walk all of it every sixty questions (0.7 s).
            gc.collect(1)
            gc.freeze()
            await anyio.to_thread.run_sync(return_free_memory)
        if all(seen.settled for seen in state.seen.values()):
            state.listed = manifest.entries
        left_out = [LeftOut(path, seen.reason) for path, seen in state.seen.items() if seen.reason]
        left_out += [left for left in manifest.left_out if left.reason in UNREAD and _may_hold_documents(left.path)]
        report = ShelfReport(len(state.documents), read, tuple(sorted(left_out, key=lambda left: left.path)))
        if state.listed is not None:
            state.report, state.nested = report._replace(read=0), nested
            listing.settle_soon()
        return report

    async def _update(self, project: Project, state: _State, entries: list[FileEntry]) -> int:
        """Take in what is new, forget what is gone, and put a new shelf in place of the old one. Gives how many were new or changed."""
        paths = {entry.path for entry in entries}
        state.total = len(entries)
        gone = [path for path in state.seen if path not in paths]
        for path in gone:
            del state.seen[path]
            state.documents.pop(path, None)
        changed = [e for e in entries if (seen := state.seen.get(e.path)) is None or seen.entry != e or not seen.settled]
        moved = bool(gone)
        for start in range(0, len(changed), SLICE):
            part = changed[start : start + SLICE]
            done = await anyio.to_thread.run_sync(self._read_slice, project.root, part, state.seen)
            for path, (seen, document) in done.items():
                same = path in state.documents and state.seen[path].content_hash == seen.content_hash
                state.seen[path] = seen
                if not same:
                    moved = True
                    state.documents.pop(path, None)
                    if document is not None:
                        state.documents[path] = document
        if moved:
            state.generation += 1
            state.shelf = await anyio.to_thread.run_sync(state.shelf.successor, state.documents, state.generation)
        return len(changed)

    def _read_slice(self, root: Path, entries: Sequence[FileEntry], known: dict[str, _Seen]) -> dict[str, tuple[_Seen, Document | None]]:
        """Read some files; documents that equal what is indexed are not derived again. Blocks."""
        found: dict[str, tuple[_Seen, Document | None]] = {}
        keys: dict[str, tuple[DerivedKey, str, str, _Seen]] = {}
        for entry in entries:
            kind = document_format(entry.path) or ""
            settled = time.time_ns() - entry.mtime_ns > RACY_NS
            if entry.size > self._max_bytes:
                found[entry.path] = _Seen(entry, True, "", f"larger than {self._max_bytes} bytes"), None
                continue
            try:
                file = read_text_file(root, entry.path, max_bytes=self._max_bytes)
            except EvidenceError as error:
                found[entry.path] = _Seen(entry, False, "", "unreadable" if error.code == "evidence-unreadable" else error.code), None
                continue
            try:
                text = file.text if kind != "pdf" else _pdf_text(root, entry.path)
            except ValueError as error:
                found[entry.path] = _Seen(entry, settled, file.content_hash, str(error)), None
                continue
            seen = _Seen(entry, settled, file.content_hash, "")
            if (before := known.get(entry.path)) is not None and before.content_hash == file.content_hash and not before.reason:
                found[entry.path] = seen, None
                continue
            place = hashlib.sha256(encode_path(entry.path)).hexdigest()[:12]  # the path is part of what a document says of itself
            keys[entry.path] = DerivedKey(f"knowledge/{kind}", file.blob, f"{DOCUMENT_VERSION}:{place}"), kind, text, seen
        stored = self._store.load([key for key, *_ in keys.values()])
        fresh: dict[DerivedKey, Derived] = {}
        for path, (key, kind, text, seen) in keys.items():
            document = self._unpack(stored.get(key))
            if document is None:
                try:
                    document = derive_document(path, kind, text)
                except ValueError as error:
                    found[path] = seen._replace(reason=str(error)), None
                    continue
                fresh[key] = Derived(seen.content_hash, pack_document(document))
            found[path] = seen, document
        self._store.keep(fresh)
        self._store.mark_used(stored)
        return found

    def _unpack(self, row: Derived | None) -> Document | None:
        if row is None:
            return None
        try:
            return unpack_document(row.payload)
        except DamagedPayload:
            self._store.note_damaged_row()
            return None


def _may_hold_documents(path: str) -> bool:
    """Whether it is a document, or may be a folder of them: its name tells of nothing else."""
    return document_format(path) is not None or text_language(path) == "text"


def _pdf_text(root: Path, path: str) -> str:
    """The text of a PDF's pages. Raises ValueError, which says why there is none."""
    try:
        import pypdf
        from pypdf.errors import PyPdfError
    except ImportError:
        raise ValueError(PDF_MISSING) from None
    try:
        reader = pypdf.PdfReader(io.BytesIO((root / path).read_bytes()))
        return "\n\n".join(page.extract_text() for page in reader.pages)
    except (PyPdfError, OSError, ValueError, KeyError, TypeError, RecursionError) as error:
        raise ValueError(f"PDF: {str(error)[:120]}") from error
