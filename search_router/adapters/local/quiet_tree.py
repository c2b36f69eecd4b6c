"""Knows without looking whether anything has changed in a project since its files were last listed, and which files, so that a question
need not list them all.

Linux only, and only where the kernel sees every change: on local file systems. It cannot see a mapping of a file written without a
system call, another name of the same file outside the tree, or ignore rules of the user's own.
"""

from __future__ import annotations

import math
import os
import time
from collections.abc import Collection
from pathlib import Path
from typing import Final

import anyio.to_thread

from search_router.adapters.local.inotify import DIRECTORY, GONE, OVERFLOW, Inotify
from search_router.adapters.local.manifest import list_ignored_folders
from search_router.adapters.local.textfile import decode_path, encode_path
from search_router.errors import ExpertError
from search_router.schema import Project

RETRY_SECONDS: Final = 60.0
"""After so long a tree that could not be watched is tried again: other programs of this user may have used up the system's watches."""
MOST_DIRECTORIES: Final = 8192
LOCAL: Final = frozenset({"ext2", "ext3", "ext4", "xfs", "btrfs", "f2fs", "zfs", "tmpfs", "overlay", "jfs", "reiserfs", "bcachefs"})
"""File systems whose changes all go through this kernel."""
_GIT_NAMES: Final = frozenset({b"index", b"HEAD", b"config", b"exclude", b".gitignore"})
_RULE_NAMES: Final = frozenset({b".gitignore", b"exclude", b"config"})
_MOUNTS: Final = Path("/proc/self/mountinfo")


class QuietTree:
    """One project's tree. Belongs to one event loop; only `end_listing` waits."""

    def __init__(self, project: Project) -> None:
        self._project = project
        self._inotify: Inotify | None = None
        self._watches: dict[str, int] = {}
        self._folder_of: dict[int, str] = {}
        self._git: set[int] = set()
        self._stirred = True
        self._touched: set[str] | None = None
        self._folders_stale = True
        self._barred_until = -math.inf if is_local(project.root) else math.inf

    @property
    def can_watch(self) -> bool:
        """Whether this tree can be watched at all, as far as is known."""
        return time.monotonic() >= self._barred_until

    @property
    def folders(self) -> Collection[str]:
        """The directories that are watched, relative to the root, with "" for the root; empty while none is."""
        return self._watches.keys()

    def begin_listing(self) -> frozenset[str] | None:
        """Files are about to be listed: what happens from here on counts.

        Gives the paths below the root that something happened to since the last time; None where that is not known, or where what
        happened decides on others as well: to a directory, an ignore rule, git's index.
        """
        self._drain()
        touched = self._touched
        self._stirred = self._inotify is None
        self._touched = None if self._inotify is None else set()
        return None if touched is None else frozenset(touched)

    async def end_listing(self) -> None:
        """Files were listed: watch every directory that may hold some, where that is not done yet.

        What happened in a new one before it was watched is not known, so then the next question lists once more.
        """
        self._drain()
        if self.can_watch and not is_local(self._project.root):  # something was mounted meanwhile
            self.close()
            return
        if self.can_watch and self._folders_stale:
            try:
                folders = await searchable_folders(self._project)
                if self._watch(folders):
                    self._stirred, self._touched = True, None
                self._folders_stale = False
            except (OSError, ExpertError):  # no more watches for this user, too many folders, or no git any more
                self._barred_until = time.monotonic() + RETRY_SECONDS
                self.close()

    def is_quiet(self) -> bool:
        """Whether nothing has changed since the files were listed, as far as the kernel tells."""
        if self._inotify is None or self._stirred:
            return False
        self._drain()
        return not self._stirred

    def has_stirred(self) -> bool | None:
        """Whether anything changed since `begin_listing`, however long ago; None where not every directory is watched."""
        self._drain()
        return None if self._inotify is None or self._folders_stale else self._stirred

    def close(self) -> None:
        """Watch no more; safe to call twice."""
        if self._inotify is not None:
            self._inotify.close()
        self._inotify = None
        self._watches.clear()
        self._folder_of.clear()
        self._git.clear()
        self._stirred = self._folders_stale = True
        self._touched = None

    def _drain(self) -> None:
        if self._inotify is None:
            self._stirred, self._touched = True, None
            return
        for event in self._inotify.events():
            if event.watch in self._git and event.name not in _GIT_NAMES and not event.mask & (OVERFLOW | GONE):
                continue
            self._stirred = True
            if event.mask & (OVERFLOW | GONE | DIRECTORY) or event.name in _RULE_NAMES:
                self._folders_stale = True
                self._touched = None
            folder = self._folder_of.get(event.watch)
            if folder is None or not event.name:
                self._touched = None
            elif self._touched is not None:
                self._touched.add(f"{folder}/{decode_path(event.name)}" if folder else decode_path(event.name))

    def _watch(self, folders: Collection[str]) -> bool:
        """Watch exactly these, and the places beside that decide what is listed; whether any is new.

        Each is asked for again: the same directory gets the number that it has, and one that was made anew under an old name another.
        """
        if self._inotify is None:
            self._inotify = Inotify()
        before = {*self._watches.values(), *self._git}
        root = self._project.root
        self._git = {number for folder in deciding_directories(root) if (number := self._number(folder)) is not None}
        numbers = {folder: self._number(root / folder) for folder in folders}  # one that is None went again: an event of the one above
        self._watches = {folder: number for folder, number in numbers.items() if number is not None}
        self._folder_of = {number: folder for folder, number in self._watches.items()}
        self._git -= {*self._watches.values()}
        now = {*self._watches.values(), *self._git}
        for number in before - now:
            self._inotify.unwatch(number)
        return not now <= before

    def _number(self, folder: Path) -> int | None:
        assert self._inotify is not None
        try:
            return self._inotify.watch(encode_path(os.fspath(folder)))
        except (FileNotFoundError, NotADirectoryError):
            return None


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
