"""Watches the directories of indexed projects, so that a change is indexed before the next question comes.

A convenience and never the truth: every question compares the index with the files whatever was or was not seen here. Only directories
that hold listed files are watched, each by itself, so `.git`, ignored and vendored trees cost nothing however large they are.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import time
from collections.abc import Awaitable, Callable, Collection, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final

import anyio
import anyio.to_thread

from search_router.adapters.local.manifest import is_ignored
from search_router.errors import ExpertError
from search_router.schema import Project

if TYPE_CHECKING:
    from watchfiles import Change

DEBOUNCE_MS: Final = 400
"""Changes that follow each other within this are one."""
STEP_MS: Final = 100
QUIET_MS: Final = 1000
"""So often a watch that sees nothing looks up."""
MOST_DIRECTORIES: Final = 8192
MOST_PROJECTS: Final = 8
"""Each takes a thread of its own."""
REST_FACTOR: Final = 4
"""After a refresh the watch rests so many times as long: whatever writes without pause costs at most a fifth of one processor."""

_LEAST_REST: Final = 0.05
_MOST_FOREIGN: Final = 10_000
_RETRIES: Final = 3
_INOTIFY_LIMIT: Final = Path("/proc/sys/fs/inotify/max_user_watches")

_NOT_UTF_8: Final = re.compile("[\udc80-\udcff]")

Refresh = Callable[[Project, tuple[Path, ...]], Awaitable[object]]


@dataclass(eq=False, slots=True)
class _Watched:
    """One project: which of its directories are watched, and which paths are not the index's business, by absolute path."""

    project: Project
    nested: tuple[Path, ...]
    listed: Collection[str]
    directories: frozenset[str]
    added: set[str] = field(default_factory=set[str])
    foreign: set[str] = field(default_factory=set[str])
    stop: anyio.Event = field(default_factory=anyio.Event)
    task: asyncio.Task[None] | None = None

    def admits(self, _: Change, path: str) -> bool:
        return path not in self.foreign and path.rpartition("/")[2] != ".git"


class TreeWatch:
    """The watches of one index. Belongs to its event loop.

    Args:
        refresh: brings one project up to date; its failures are left to the next question.
        most_directories: a project with more is not watched, and a note says so.
    """

    def __init__(self, refresh: Refresh, *, most_directories: int = MOST_DIRECTORIES) -> None:
        self._refresh = refresh
        self._most = min(most_directories, _system_limit())
        self._watched: dict[Path, _Watched] = {}
        self._notes: dict[Path, str] = {}
        self._closed = False

    @property
    def notes(self) -> tuple[str, ...]:
        """Which projects are not watched, and why."""
        return tuple(self._notes.values())

    def follow(self, project: Project, nested: tuple[Path, ...], listed: Collection[str]) -> None:
        """Watch the directories of these paths from now on, which are all that the project has. Cheap when nothing changed."""
        if self._closed or project.root in self._notes:
            return
        directories = directories_of(listed)
        watched = self._watched.get(project.root)
        if watched is not None:
            watched.nested, watched.listed = nested, listed
            if directories != watched.directories:
                watched.directories = directories
                watched.stop.set()
        elif len(self._watched) >= MOST_PROJECTS:
            self._give_up(project, f"{MOST_PROJECTS} others are")
        else:
            watched = self._watched[project.root] = _Watched(project, nested, listed, directories)
            watched.task = asyncio.create_task(self._watch(watched), name=f"watch {project.id}")

    async def aclose(self) -> None:
        """End every watch and its thread; safe to call twice."""
        self._closed = True
        tasks = [watched.task for watched in self._watched.values() if watched.task is not None]
        for watched in self._watched.values():
            watched.stop.set()  # first: the thread ends on this alone
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)
        self._watched.clear()

    def _give_up(self, project: Project, why: str) -> None:
        self._watched.pop(project.root, None)
        self._notes[project.root] = f"{project.id} is not watched ({why}); its changes are indexed when it is asked about."

    async def _watch(self, watched: _Watched) -> None:
        failed, again = 0, False
        while failed < _RETRIES:
            watched.stop = anyio.Event()
            wanted = watched.directories | watched.added
            if len(wanted) > self._most:
                self._give_up(watched.project, f"{len(wanted)} directories, and {self._most} can be")
                return
            paths = await anyio.to_thread.run_sync(_existing, watched.project.root, wanted)
            try:
                await self._follow_changes(watched, paths, again=again)
                failed, again = 0, True
            except FileNotFoundError:
                failed += 1  # a directory went while the watch began
            except OSError as error:
                self._give_up(watched.project, str(error))
                return
            except ExpertError:
                self._watched.pop(watched.project.root, None)  # the next question meets it; when that succeeds, the watch begins anew
                return
        self._give_up(watched.project, "its directories come and go")

    async def _follow_changes(self, watched: _Watched, paths: list[str], *, again: bool) -> None:
        """Refresh after each burst of changes, until other directories are to be watched.

        When it is begun `again`, it refreshes once soon for what happened between the two watches.
        """
        # Only a server that watches needs it. One of its annotations names an optional package.
        from watchfiles import awatch  # pyright: ignore[reportUnknownVariableType] - an annotation names an optional package

        changes = awatch(
            *paths,
            watch_filter=watched.admits,
            debounce=DEBOUNCE_MS,
            step=STEP_MS,
            stop_event=watched.stop,
            rust_timeout=QUIET_MS,
            yield_on_timeout=True,
            recursive=False,
            force_polling=False,
            ignore_permission_denied=True,
        )
        async with contextlib.aclosing(changes):
            async for burst in changes:
                if not burst and not again:
                    continue
                again = False
                began = time.monotonic()
                await self._refresh(watched.project, watched.nested)
                await self._learn(watched, {path for _, path in burst})
                if watched.stop.is_set():
                    return
                await anyio.sleep(max(_LEAST_REST, REST_FACTOR * (time.monotonic() - began)))

    async def _learn(self, watched: _Watched, changed: set[str]) -> None:
        """Changed paths that are listed nowhere are ignored from now on, except new directories, which may get files."""
        if any(path.endswith(("/.gitignore", "/.ignore")) for path in changed) or len(watched.foreign) > _MOST_FOREIGN:
            watched.foreign.clear()
            return
        top = f"{watched.project.root}/"
        for path in changed:
            relative = path.removeprefix(top)
            if relative in watched.listed or relative in watched.directories:
                continue
            there, directory = await anyio.to_thread.run_sync(_look_at, path)
            if directory and relative not in watched.added and not await is_ignored(watched.project, relative):
                watched.added.add(relative)
                watched.stop.set()
            elif there:
                watched.foreign.add(path)


def directories_of(paths: Iterable[str]) -> frozenset[str]:
    """The directories of these relative paths and all above them, with "" for the root; without names that are not UTF-8."""
    found = {""}
    for path in paths:
        folder = path.rpartition("/")[0]
        while folder not in found:
            found.add(folder)
            folder = folder.rpartition("/")[0]
    return frozenset(folder for folder in found if folder.isascii() or not _NOT_UTF_8.search(folder))


def _existing(root: Path, folders: Iterable[str]) -> list[str]:
    return [path for path in (str(root / folder) for folder in sorted(folders)) if _is_directory(path)]


def _look_at(path: str) -> tuple[bool, bool]:
    """(whether something is there, whether it is a directory)."""
    return os.path.lexists(path), _is_directory(path)


def _is_directory(path: str) -> bool:
    return Path(path).is_dir() and not Path(path).is_symlink()


def _system_limit() -> int:
    """Half of what this user may watch by inotify, for others want to watch too; no limit where there is none to be read."""
    try:
        return int(_INOTIFY_LIMIT.read_text(encoding="ascii")) // 2
    except (OSError, ValueError):
        return MOST_DIRECTORIES
