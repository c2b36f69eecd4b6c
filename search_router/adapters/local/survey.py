"""What one directory is to git, and which further work trees lie below it.

One git call a directory in the usual case, because start-up waits for it; the rest is read from files.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import anyio.to_thread

from search_router.adapters.local.git import ENVIRONMENT, git_argv, git_failure, is_git_missing, run_git
from search_router.adapters.local.gitfiles import Head, head_of, linked_worktrees
from search_router.adapters.local.languages import is_vendored_path
from search_router.adapters.process import Finished, run_command
from search_router.errors import ExpertError

MAX_SCAN_DEPTH = 4
MAX_SCANNED = 20_000
NO_GIT = "git is not installed or not on PATH; searched as a plain directory, without history or branches. Install git for those."

Kind = Literal["git", "worktree", "submodule", "directory"]

_WHERE = (
    "--path-format=absolute",
    "--show-toplevel",
    "--git-dir",
    "--git-common-dir",
    "--is-shallow-repository",
    "--show-superproject-working-tree",
)


@dataclass(frozen=True, slots=True)
class Survey:
    """One directory as it was found.

    `kind` is None where there are no files to search: a bare repository, or the inside of a `.git`. `top` is the root of the work
    tree around it, `head` None outside one. `below` are candidates for projects of their own, absolute and real, not yet looked at;
    `notes` are for people.
    """

    root: Path
    kind: Kind | None
    top: Path
    head: Head | None = None
    shallow: bool = False
    below: tuple[Path, ...] = ()
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class _Tree:
    """git's answer about the work tree around a directory."""

    top: Path
    git_dir: Path
    common: Path
    shallow: bool
    is_submodule: bool

    @property
    def kind(self) -> Kind:
        if self.git_dir != self.common:
            return "worktree"
        return "submodule" if self.is_submodule else "git"


async def survey_directory(root: Path, *, submodules: bool) -> Survey:
    """Look at `root`, an absolute real path of a directory. The caller sets the deadline.

    Candidates are checked-out submodules (if wanted) and linked worktrees below a work tree, and repositories below a plain
    directory, down to `MAX_SCAN_DEPTH` levels.

    Without git every directory is a plain one.

    Raises:
        ExpertError: git refuses the directory (another owner), or fails.
    """
    try:
        finished = await run_git(root, "rev-parse", *_WHERE)
    except ExpertError as error:
        if not is_git_missing(error):
            raise
        return await _survey_plain(root, (f"{root}: {NO_GIT}",))
    if finished.returncode == 0:
        return await _survey_tree(root, await _parse_tree(root, finished), submodules)
    if "must be run in a work tree" in finished.stderr:
        return await _survey_bare(root)
    if "not a git repository" not in finished.stderr:
        raise git_failure(root, finished)
    notes = (
        () if "not a git repository (or any" in finished.stderr else (f"{root}: its .git leads nowhere; searched as a plain directory.",)
    )
    return await _survey_plain(root, notes)


async def _survey_tree(root: Path, tree: _Tree, submodules: bool) -> Survey:
    if root != tree.top and await _is_ignored(root):
        note = f"{root}: ignored by the repository around it ({tree.top}); searched as a plain directory."
        return await _survey_plain(root, (note,))
    head = await head_of(root)
    below = set(await anyio.to_thread.run_sync(linked_worktrees, tree.common))
    notes: tuple[str, ...] = ()
    if submodules:
        paths, notes = await _submodules(tree.top)
        below.update(paths)
    return Survey(root, tree.kind, tree.top, head, tree.shallow, _only_below(root, below), notes)


async def _survey_plain(root: Path, notes: tuple[str, ...]) -> Survey:
    # The one step that may take long (a slow file system): it only reads, so it may be left behind when the deadline passes.
    found, complete = await anyio.to_thread.run_sync(nested_repositories, root, abandon_on_cancel=True)
    if not complete:
        notes += (f"{root}: only its first {MAX_SCANNED} directories were looked at for repositories; name further ones as roots.",)
    return Survey(root, "directory", root, below=_only_below(root, found), notes=notes)


async def _survey_bare(root: Path) -> Survey:
    common = await _one_path(root, "--git-common-dir")
    worktrees = await anyio.to_thread.run_sync(linked_worktrees, common)
    return Survey(root, None, root, below=_only_below(root, worktrees))


async def _parse_tree(root: Path, finished: Finished) -> _Tree:
    """Read the lines of `_WHERE`. A path may hold line feeds; where the lines do not add up, each path is asked for alone."""
    lines = os.fsdecode(finished.stdout).split("\n")[:-1]
    if len(lines) in (4, 5) and lines[3] in ("true", "false") and all(line.startswith("/") for line in lines[:3]):
        top, git_dir, common = (Path(line) for line in lines[:3])
        return _Tree(top, git_dir, common, lines[3] == "true", len(lines) == 5)
    top = await _one_path(root, "--show-toplevel")
    git_dir = await _one_path(root, "--git-dir")
    common = await _one_path(root, "--git-common-dir")
    above = await run_git(root, "rev-parse", "--show-superproject-working-tree")
    return _Tree(top, git_dir, common, "true" in lines, bool(above.stdout))


async def _one_path(root: Path, flag: str) -> Path:
    finished = await run_git(root, "rev-parse", "--path-format=absolute", flag)
    if finished.returncode != 0:
        raise git_failure(root, finished)
    return Path(os.fsdecode(finished.stdout).removesuffix("\n"))


async def _is_ignored(root: Path) -> bool:
    """Whether git ignores the directory as a whole and tracks nothing in it: then its list of files would be empty."""
    # check-ignore refuses literal pathspecs, and "." needs none.
    environment = ENVIRONMENT | {"GIT_LITERAL_PATHSPECS": "0"}
    ignored = await run_command(git_argv("check-ignore", "--quiet", "."), cwd=root, env=environment)
    if ignored.returncode != 0:
        return False
    tracked = await run_git(root, "ls-files", "--cached", "-z", max_bytes=1)
    return not tracked.stdout


async def _submodules(top: Path) -> tuple[tuple[Path, ...], tuple[str, ...]]:
    """(checked-out submodules of the work tree, notes). `.gitmodules` is the repository's text: a path in it is not trusted."""
    listed = top / ".gitmodules"
    if not listed.is_file() or listed.is_symlink():
        return (), ()
    finished = await run_git(top, "config", "-z", "--file", ".gitmodules", "--get-regexp", r"^submodule\..*\.path$")
    if finished.returncode not in (0, 1):
        return (), (f"{listed}: git cannot read it; submodules are not searched.",)
    values = [os.fsdecode(entry.partition(b"\n")[2]) for entry in finished.stdout.split(b"\0") if entry]
    return await anyio.to_thread.run_sync(_checked_out, top, values), ()


def _checked_out(top: Path, values: list[str]) -> tuple[Path, ...]:
    found: list[Path] = []
    for value in values:
        path = top / value
        # Reached without a link and without `..`: otherwise a repository could make other directories visible.
        if path.is_relative_to(top) and Path(os.path.realpath(path)) == path and os.path.lexists(path / ".git"):
            found.append(path)
    return tuple(found)


def nested_repositories(root: Path) -> tuple[list[Path], bool]:
    """(directories below `root` that hold a `.git`, whether all was looked at), not through links, hidden or vendored directories."""
    found: list[Path] = []
    level, scanned = [root], 0
    for _ in range(MAX_SCAN_DEPTH):
        below: list[Path] = []
        for directory in level:
            if scanned >= MAX_SCANNED:
                return found, False
            scanned += 1
            for child in _subdirectories(directory):
                (found if os.path.lexists(child / ".git") else below).append(child)
        level = below
    return found, True


def _subdirectories(directory: Path) -> list[Path]:
    try:
        with os.scandir(directory) as entries:
            names = [e.name for e in entries if not e.name.startswith(".") and e.is_dir(follow_symlinks=False)]
    except OSError:
        return []  # the manifest reports it as unreadable
    return [directory / name for name in sorted(names) if not is_vendored_path(f"{name}/")]


def _only_below(root: Path, paths: Iterable[Path]) -> tuple[Path, ...]:
    return tuple(sorted(path for path in set(paths) if path != root and path.is_relative_to(root)))
