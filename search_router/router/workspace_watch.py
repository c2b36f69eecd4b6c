"""Repositories that come or go below the workspace while it is open: seen by the next question, and not only after a restart."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import anyio.to_thread

from search_router.adapters.local.gitfiles import common_dir, find_git_dir, linked_worktrees
from search_router.adapters.local.survey import nested_repositories
from search_router.config.schema import WorkspaceConfig
from search_router.errors import WorkspaceError
from search_router.router.workspace import Workspace, discover_workspace
from search_router.schema import Project

REST: Final = 20
"""After a look there is none for so many times as long as it took: looking costs at most a twentieth of the time."""

Print = tuple[tuple[str, ...], ...]


class WorkspaceWatch:
    """Looks whether what `discover_workspace` would find has changed. Belongs to one event loop; questions may look at once."""

    def __init__(self, config: WorkspaceConfig, roots: Sequence[Path]) -> None:
        self._config = config
        self._roots = tuple(roots)
        self._print: Print | None = None
        self._next = 0.0
        self._looking = anyio.Lock()

    async def renewed(self, workspace: Workspace) -> Workspace | None:
        """The workspace as it is now, None when it is the one given, or cannot be found now."""
        if self._looking.locked() or time.monotonic() < self._next:
            return None
        async with self._looking:
            began = time.monotonic()
            seen = await anyio.to_thread.run_sync(footprint, workspace.projects)
            self._next = time.monotonic() + REST * (time.monotonic() - began)
            if self._print is None or seen == self._print:
                self._print = seen
                return None
            try:
                found = await discover_workspace(self._config, self._roots)
            except WorkspaceError:  # such as a root that is being replaced: what is gone is said by who reads it
                return None
            self._print = await anyio.to_thread.run_sync(footprint, found.projects)
            return found


def footprint(projects: Sequence[Project]) -> Print:
    """What further projects depend on: repositories below plain directories, linked work trees, submodules. Blocks, for a bounded time."""
    return tuple(_of_directory(p.root) if p.kind == "directory" else _of_work_tree(p.root) for p in projects)


def _of_directory(root: Path) -> tuple[str, ...]:
    found, _ = nested_repositories(root)
    own = root / ".git"  # `git init` in the root itself makes it another kind of project
    return (str(root), str(own.exists()), *map(str, sorted(found)))


def _of_work_tree(root: Path) -> tuple[str, ...]:
    git_dir = find_git_dir(root)
    trees = linked_worktrees(common_dir(git_dir)) if git_dir is not None else ()
    try:
        status = (root / ".gitmodules").lstat()
        modules = f"{status.st_mtime_ns} {status.st_size}"
    except OSError:
        modules = ""
    return (str(root), str(git_dir), modules, *(str(tree) for tree in trees if tree.is_relative_to(root)))
