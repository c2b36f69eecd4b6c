"""Knows without looking whether anything has changed in a project since its files were last listed, and which files, so that a question
need not list them all.

Linux only, and only where the kernel sees every change: on local file systems. It cannot see a mapping of a file written without a
system call, another name of the same file outside the tree, or ignore rules of the user's own.
"""

from __future__ import annotations

import asyncio
import math
import os
import time
from collections.abc import Collection
from pathlib import Path
from typing import Final
from weakref import WeakKeyDictionary

import anyio.to_thread

from search_router.adapters.local.inotify import DIRECTORY, GONE, OVERFLOW, Inotify
from search_router.adapters.local.manifest import list_ignored_folders
from search_router.adapters.local.textfile import decode_path, encode_path
from search_router.errors import ExpertError
from search_router.schema import Project

RETRY_SECONDS: Final = 60.0
"""After so long a tree that could not be watched is tried again: other programs of this user may have used up the system's watches."""
MOST_DIRECTORIES: Final = 65_536
MOST_TOLD: Final = 1000
"""Of more that changed no list is kept: who asks seldom must not remember every file that came and went."""
LOCAL: Final = frozenset({"ext2", "ext3", "ext4", "xfs", "btrfs", "f2fs", "zfs", "tmpfs", "overlay", "jfs", "reiserfs", "bcachefs"})
"""File systems whose changes all go through this kernel."""
_GIT_NAMES: Final = frozenset({b"index", b"HEAD", b"config", b"info", b"exclude", b".gitignore", b".git"})
"""What decides on the list of files, in git's own directories and above the root; what git tracks is listed in spite of all rules."""
_RULE_NAMES: Final = frozenset({b".gitignore", b".git"})
"""The same anywhere in the tree; a `.git` may be a file."""
_MOUNTS: Final = Path("/proc/self/mountinfo")


class _Watches:
    """The watches of one tree, for all who ask about it; what the kernel tells goes to each of them. `place` is where it is found."""

    def __init__(self, root: Path, place: dict[tuple[Path, str], _Watches]) -> None:
        self.root = root
        self.place = place
        self.askers: set[QuietTree] = set()
        self.inotify: Inotify | None = None
        self.folders: dict[str, int] = {}
        self.folder_of: dict[int, str] = {}
        self.git: set[int] = set()
        self.is_stale = True
        self.decisions = 0
        self.settling = asyncio.Lock()
        self.barred_until = -math.inf if is_local(root) else math.inf

    def drain(self) -> None:
        """Tell every asker what has happened."""
        if self.inotify is None:
            self.tell(None)
            return
        for event in self.inotify.events():
            if event.watch in self.git and event.name not in _GIT_NAMES and not event.mask & (OVERFLOW | GONE):
                continue
            folder = self.folder_of.get(event.watch)
            if folder is None or not event.name or event.mask & (OVERFLOW | GONE | DIRECTORY) or event.name in _RULE_NAMES:
                self.is_stale = True
                self.decisions += 1
                self.tell(None)
            else:
                self.tell(f"{folder}/{decode_path(event.name)}" if folder else decode_path(event.name))

    def tell(self, path: str | None) -> None:
        """Something happened to this path, or to what decides on any."""
        for asker in self.askers:
            asker.hear(path)

    async def settle(self, project: Project) -> None:
        """Watch every directory that may hold files now. As long as one of them is new, there may be others that were made meanwhile.

        Raises:
            ExpertError: git cannot be asked.
            OSError: there are too many directories, or no watches left.
        """
        async with self.settling:
            if not self.is_stale or not self.askers:
                return
            before = self.decisions
            are_new = self._watch(await searchable_folders(project))
            self.is_stale = False
            self.drain()
            self.is_stale = are_new or self.decisions != before

    def _watch(self, folders: Collection[str]) -> bool:
        """Watch exactly these, and the places beside that decide what is listed; whether any is new: what happened in it is not known.

        Each is asked for again: the same directory gets the number that it has, and one that was made anew under an old name another.
        """
        if self.inotify is None:
            self.inotify = Inotify()
        before = {*self.folders.values(), *self.git}
        self.git = {number for folder in deciding_directories(self.root) if (number := self._number(folder)) is not None}
        numbers = {folder: self._number(self.root / folder) for folder in folders}  # one that is None went again: an event of the one above
        self.folders = {folder: number for folder, number in numbers.items() if number is not None}
        self.folder_of = {number: folder for folder, number in self.folders.items()}
        self.git -= self.folder_of.keys()
        now = {*self.folders.values(), *self.git}
        for number in before - now:
            self.inotify.unwatch(number)
        if now <= before:
            return False
        self.tell(None)
        return True

    def close(self) -> None:
        """Watch no more; safe to call twice."""
        if self.inotify is not None:
            self.inotify.close()
        self.inotify = None
        self.folders, self.folder_of, self.git = {}, {}, set()
        self.is_stale = True
        self.tell(None)

    def _number(self, folder: Path) -> int | None:
        assert self.inotify is not None
        try:
            return self.inotify.watch(encode_path(os.fspath(folder)))
        except (FileNotFoundError, NotADirectoryError):
            return None


_shared: WeakKeyDictionary[asyncio.AbstractEventLoop, dict[tuple[Path, str], _Watches]] = WeakKeyDictionary()


class QuietTree:
    """One project's tree, for one who asks about it. Belongs to one event loop; only `end_listing` waits.

    All who ask about a tree share its watches: a large one has tens of thousands.
    """

    def __init__(self, project: Project) -> None:
        self._project = project
        self._stirred = True
        self._touched: set[str] | None = None
        self._shared: _Watches | None = None

    @property
    def can_watch(self) -> bool:
        """Whether this tree can be watched at all, as far as is known."""
        return time.monotonic() >= self._watches.barred_until

    @property
    def folders(self) -> Collection[str]:
        """The directories that are watched, relative to the root, with "" for the root; empty while none is."""
        return self._watches.folders.keys()

    def begin_listing(self) -> frozenset[str] | None:
        """Files are about to be listed: what happens from here on counts.

        Gives the paths below the root that something happened to since the last time; None where that is not known, or where what
        happened decides on others as well: to a directory, an ignore rule, git's index.
        """
        watches = self._watches
        watches.drain()
        touched = None if watches.is_stale else self._touched
        self._stirred = watches.inotify is None
        self._touched = None if watches.inotify is None else set()
        return None if touched is None else frozenset(touched)

    async def end_listing(self) -> None:
        """Files were listed: watch every directory that may hold some, where that is not done yet.

        What happened in a new one before it was watched is not known, so then the next question lists once more.
        """
        watches = self._watches
        watches.drain()
        if self.can_watch and not is_local(self._project.root):  # something was mounted meanwhile
            watches.close()
            return
        if self.can_watch:
            try:
                await watches.settle(self._project)
            except (OSError, ExpertError):  # no more watches for this user, too many folders, or no git any more
                watches.barred_until = time.monotonic() + RETRY_SECONDS
                watches.close()

    def is_quiet(self) -> bool:
        """Whether nothing has changed since the files were listed, as far as the kernel tells."""
        if self._stirred:
            return False
        self._watches.drain()
        return not (self._stirred or self._watches.is_stale)

    def has_stirred(self) -> bool | None:
        """Whether anything changed since `begin_listing`, however long ago; None where not every directory is watched."""
        watches = self._watches
        watches.drain()
        return None if watches.inotify is None or watches.is_stale else self._stirred

    def hear(self, path: str | None) -> None:
        """Something happened to this path, or, for None, to what decides on any."""
        self._stirred = True
        if self._touched is not None and path is not None and len(self._touched) < MOST_TOLD:
            self._touched.add(path)
        else:
            self._touched = None

    def close(self) -> None:
        """Watch no more; safe to call twice. The last who asked about a tree ends its watches."""
        self.hear(None)
        if self._shared is not None:
            shared, self._shared = self._shared, None
            shared.askers.discard(self)
            if not shared.askers:
                shared.close()
                del shared.place[shared.root, self._project.kind]

    @property
    def _watches(self) -> _Watches:
        if self._shared is None:
            trees = _shared.setdefault(asyncio.get_running_loop(), {})
            key = self._project.root, self._project.kind
            self._shared = trees[key] = trees.get(key) or _Watches(self._project.root, trees)
            self._shared.askers.add(self)
        return self._shared


async def searchable_folders(project: Project) -> frozenset[str]:
    """Every directory of the project that no ignore rule matches as a whole, relative to its root, with "" for the root.

    Raises:
        ExpertError: git cannot be asked.
        OSError: there are more than MOST_DIRECTORIES, or one cannot be read.
    """
    ignored = await list_ignored_folders(project)
    return await anyio.to_thread.run_sync(_walk, project.root, ignored)


def _walk(root: Path, ignored: frozenset[str]) -> frozenset[str]:
    found = {""}
    waiting = [""]
    while waiting:
        folder = waiting.pop()
        with os.scandir(encode_path(os.fspath(root / folder))) as entries:
            below = [decode_path(entry.name) for entry in entries if entry.is_dir(follow_symlinks=False) and entry.name != b".git"]
        for name in below:
            path = f"{folder}/{name}" if folder else name
            if path not in ignored:
                found.add(path)
                waiting.append(path)
        if len(found) > MOST_DIRECTORIES:
            raise OSError(f"more than {MOST_DIRECTORIES} directories in {root}")
    return frozenset(found)


def deciding_directories(root: Path) -> list[Path]:
    """Where the index, HEAD and the ignore rules of the repository around `root` are that lie outside of it; none without a repository."""
    top = next((folder for folder in (root, *root.parents) if (folder / ".git").exists()), None)
    if top is None:
        return []
    git = top / ".git"
    if git.is_file():  # a linked work tree or a submodule: the file says where
        named = git.read_text(encoding="utf-8", errors="surrogateescape").removeprefix("gitdir:").strip()
        git = top / named
    common = git / "commondir"
    shared = git / common.read_text(encoding="utf-8").strip() if common.is_file() else git
    above = root.parents[: len(root.parts) - len(top.parts)]
    return list(dict.fromkeys([git, shared, shared / "info", *above]))


def is_local(root: Path) -> bool:
    """Whether the tree lies on one file system whose changes all go through this kernel, with nothing mounted inside."""
    try:
        lines = _MOUNTS.read_text(encoding="utf-8", errors="surrogateescape").splitlines()
        real = os.fspath(root.resolve())
    except OSError:
        return False
    best, kind = "", ""
    for line in lines:
        place, _, rest = line.partition(" - ")
        mounted = place.split(" ")[4].replace("\\040", " ")
        if mounted != "/" and mounted.startswith(f"{real}/"):
            return False
        if (real == mounted or real.startswith(mounted.rstrip("/") + "/")) and len(mounted) >= len(best):
            best, kind = mounted, rest.split(" ")[0]
    return kind in LOCAL
