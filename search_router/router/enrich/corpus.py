"""What the projects' files are at this moment, as one fingerprint, at no cost while the kernel has seen no change.

Two equal fingerprints mean equal files: path, size, inode and the later of mtime and ctime of each, which nobody can set back, and the
content of those that changed so recently that they may change again within one tick of the clock. See docs/decisions/0030.
"""

from __future__ import annotations

import asyncio
import hashlib
import time
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, NamedTuple

import anyio.to_thread

from search_router.adapters.local.changed_files import RACY_NS
from search_router.adapters.local.live_listing import TRUST_SECONDS
from search_router.adapters.local.manifest import FileEntry, Manifest, read_manifest
from search_router.adapters.local.quiet_tree import QuietTree
from search_router.adapters.local.textfile import encode_path
from search_router.errors import ExpertError
from search_router.schema import Project

CLOCK_SLACK_NS: Final = 50_000_000
"""The clock of stamps runs in ticks: a change may bear a time that is earlier by so much."""
MOST_RACY: Final = 100
MOST_RACY_BYTES: Final = 8 * 2**20
"""A tree of which more was written just now has no fingerprint until it has come to rest."""
LISTINGS: Final = 3
"""So often a tree is listed until the kernel has watched all of it from before the list was made."""


Rooted = Sequence[tuple[Project, tuple[Path, ...]]]
"""Projects with the roots of other projects below each."""


class Moment(NamedTuple):
    """When a request began: how many changes each tree had seen, None where nobody watches it; the fingerprint, where it was known."""

    changes: tuple[int | None, ...]
    fingerprint: str | None
    began_ns: int


class _Known(NamedTuple):
    changes: int | None
    fingerprint: str
    listed_at: float


@dataclass(slots=True)
class _Racy:
    """A file that changed just before it was listed: what it held, and whether its stamp has become proof of that."""

    stamp: FileEntry
    content: bytes
    settled: bool


@dataclass(eq=False, slots=True)
class _Tree:
    """One project's tree, seen from one workspace."""

    project: Project
    nested: tuple[Path, ...]
    clock: Callable[[], float]
    quiet: QuietTree = field(init=False)
    changes: int = 0
    known: _Known | None = None
    racy: dict[str, _Racy] = field(default_factory=dict[str, _Racy])
    newest_ns: int = 0
    """The latest change of a listed file."""
    running: asyncio.Task[tuple[str | None, int | None]] | None = None
    next: asyncio.Task[tuple[str | None, int | None]] | None = None

    def __post_init__(self) -> None:
        self.quiet = QuietTree(self.project)

    def pulse(self) -> int | None:
        """The number of changes seen until now; None where nobody watches all of it."""
        stirred = self.quiet.has_stirred()
        if stirred is None or stirred:
            self.changes += 1  # counted before the flag is taken back, so that what comes between the two is before this pulse
            self.quiet.begin_listing()
        return None if stirred is None else self.changes

    def current(self, pulse: int | None) -> str | None:
        """The fingerprint, if it is known without looking."""
        known = self.known
        if known is None or pulse is None or known.changes != pulse or self.clock() - known.listed_at > TRUST_SECONDS:
            return None
        return known.fingerprint

    async def look(self) -> tuple[str | None, int | None]:
        """(the fingerprint, the pulse at which it holds) as of a moment after this was called. Raises ExpertError.

        There is no fingerprint of a tree that is being written. Whoever comes while the files are being listed shares the next list.
        """
        if self.next is None:
            self.next = asyncio.create_task(self._list_after(self.running), name="list the files for the cache")
            self.next.add_done_callback(_retrieve)
        return await asyncio.shield(self.next)

    def close(self) -> None:
        """Watch and list no more; safe to call twice."""
        for listing in (self.running, self.next):
            if listing is not None:
                listing.cancel()
        self.quiet.close()

    async def _list_after(self, running: asyncio.Task[tuple[str | None, int | None]] | None) -> tuple[str | None, int | None]:
        if running is not None:
            await asyncio.wait({running})
        self.running, self.next = self.next, None
        return await self._list()

    async def _list(self) -> tuple[str | None, int | None]:
        before = self.pulse()
        manifest = await read_manifest(self.project, nested=self.nested)
        fingerprint = await anyio.to_thread.run_sync(self._digest, manifest)
        await self.quiet.end_listing()
        pulse = self.pulse()
        held = pulse if pulse is not None and pulse == before else None
        self.known = _Known(held, fingerprint, self.clock()) if fingerprint is not None else None
        return fingerprint, held

    def rests_since(self, began_ns: int) -> bool:
        """Whether no listed file and no folder has changed since, by their own times. A file that went leaves its mark on its folder."""
        limit = began_ns - CLOCK_SLACK_NS
        folders = self.quiet.folders
        if not folders or self.newest_ns >= limit:
            return False
        try:
            return all((self.project.root / folder).stat().st_mtime_ns < limit for folder in folders)
        except OSError:
            return False

    def _digest(self, manifest: Manifest) -> str | None:
        """Blocks: reads the files that are too new for their stamps to be proof."""
        digest = hashlib.sha256()
        now, kept = time.time_ns(), self.racy
        self.racy = {}
        self.newest_ns = max((entry.mtime_ns for entry in manifest.entries), default=0)
        racy = [entry.size for entry in manifest.entries if now - entry.mtime_ns < RACY_NS]
        if len(racy) > MOST_RACY or sum(racy) > MOST_RACY_BYTES:
            return None
        for entry in manifest.entries:
            digest.update(b"%b\0%d %d %d\n" % (encode_path(entry.path), entry.size, entry.mtime_ns, entry.inode))
            content = self._content(entry, kept.get(entry.path), now)
            if content is not None:
                digest.update(content)
        for left in manifest.left_out:
            digest.update(f"{left.path}\0{left.reason}\n".encode("utf-8", "surrogateescape"))
        return digest.hexdigest()

    def _content(self, entry: FileEntry, known: _Racy | None, now: int) -> bytes | None:
        """The hash of a file whose stamp alone proves nothing; the same as long as it stays the same file."""
        racy = now - entry.mtime_ns < RACY_NS
        if not racy and (known is None or known.stamp != entry):
            return None
        if racy or known is None or not known.settled:
            try:
                content = hashlib.sha256((self.project.root / entry.path).read_bytes()).digest()
            except OSError as error:
                content = str(error.errno).encode()
        else:
            content = known.content
        self.racy[entry.path] = _Racy(entry, content, not racy)
        return content


def _retrieve(listing: asyncio.Task[tuple[str | None, int | None]]) -> None:
    """Look at the outcome, so that a failure that nobody waited for is not reported as forgotten."""
    if not listing.cancelled():
        listing.exception()


class CorpusWatch:
    """The trees of all projects that were asked about. Belongs to one event loop; close it in the end."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._trees: dict[tuple[Path, tuple[Path, ...]], _Tree] = {}

    def moment(self, projects: Rooted) -> Moment:
        """Where the trees stand now, without looking at any file. Costs one system call a project."""
        trees = [self._tree(project, nested) for project, nested in projects]
        pulses = tuple(tree.pulse() for tree in trees)
        known = [tree.current(pulse) for tree, pulse in zip(trees, pulses, strict=True)]
        return Moment(pulses, _joined(known), time.time_ns())

    def can_watch(self, projects: Rooted) -> bool:
        """Whether all of these can be watched, as far as is known."""
        return all(self._tree(project, nested).quiet.can_watch for project, nested in projects)

    def is_stirred(self, projects: Rooted, moment: Moment) -> bool:
        """Whether the kernel saw changes since the last look, so that no earlier fingerprint can hold."""
        trees = [self._tree(project, nested) for project, nested in projects]
        return any(
            pulse is not None and tree.known is not None and tree.known.changes not in (None, pulse)
            for tree, pulse in zip(trees, moment.changes, strict=True)
        )

    async def look(self, projects: Rooted) -> str | None:
        """The fingerprint from the lists of files as they are now; None when they cannot be listed."""
        try:
            found = [(await self._tree(project, nested).look())[0] for project, nested in projects]
        except ExpertError:
            return None
        return _joined(found)

    async def confirm(self, projects: Rooted, begin: Moment) -> str | None:
        """The fingerprint that held from `begin` until now; None when something changed meanwhile, or nobody can tell.

        Where nobody watched, the fingerprint must have been known at the beginning and be the same at the end, or all files and folders
        must be older than the beginning.
        """
        watched = None not in begin.changes
        now = self.moment(projects)
        if watched and now.changes == begin.changes and now.fingerprint is not None:
            return now.fingerprint
        end = await self.settle(projects)
        if watched:
            return end if self.moment(projects).changes == begin.changes else None
        if begin.fingerprint is not None:
            return end if end == begin.fingerprint else None
        trees = [self._tree(project, nested) for project, nested in projects]
        rests = end is not None and await anyio.to_thread.run_sync(lambda: all(tree.rests_since(begin.began_ns) for tree in trees))
        return end if rests else None

    async def settle(self, projects: Rooted) -> str | None:
        """Look until the trees are watched from before the look on, so that the next request need not; a bounded number of times."""
        found: list[str | None] = []
        for project, nested in projects:
            tree = self._tree(project, nested)
            fingerprint = None
            for _ in range(LISTINGS):
                try:
                    fingerprint, held = await tree.look()
                except ExpertError:
                    return None
                if held is not None or not tree.quiet.can_watch:
                    break
            found.append(fingerprint)
        return _joined(found)

    def close(self) -> None:
        """Watch no more; safe to call twice."""
        for tree in self._trees.values():
            tree.close()
        self._trees.clear()

    def _tree(self, project: Project, nested: tuple[Path, ...]) -> _Tree:
        key = (project.root, nested)
        if key not in self._trees:
            self._trees[key] = _Tree(project, nested, self._clock)
        return self._trees[key]


def _joined(fingerprints: Collection[str | None]) -> str | None:
    """One fingerprint of several, in order; None when one is not known."""
    parts = [each for each in fingerprints if each is not None]
    return hashlib.sha256("\n".join(parts).encode()).hexdigest() if len(parts) == len(fingerprints) else None
