"""Facts of a repository that its files tell without a process: HEAD, the branch, the linked worktrees.

The layout is gitrepository-layout(5). Where the files do not tell (another ref storage, a symbolic HEAD of old), git is asked.
"""

from __future__ import annotations

import contextlib
import os
import re
from dataclasses import dataclass
from pathlib import Path

import anyio.to_thread

from search_router.adapters.local.git import git_failure, run_git
from search_router.schema import Project

MAX_PACKED_REFS = 64 * 2**20
MAX_REF = 4096

_COMMIT = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?")
_SHARED_REF = re.compile(r"refs/(?:heads|remotes|tags)/[^\0]+")


@dataclass(frozen=True, slots=True)
class Head:
    """What is checked out: the full commit id, None before the first commit; the branch's short name, None when detached."""

    commit: str | None
    branch: str | None


async def head_now(project: Project) -> str | None:
    """The commit that is checked out now, None for a plain directory or before the first commit. No process in the usual case.

    Raises:
        ExpertError: the files do not tell, and git is missing or fails. The caller sets the deadline.
    """
    return None if project.kind == "directory" else (await head_of(project.root)).commit


async def head_of(root: Path) -> Head:
    """HEAD of the work tree around `root`, from its files, else from git. Raises ExpertError as `head_now` does."""
    head = await anyio.to_thread.run_sync(read_head, root)
    if head is not None:
        return head
    commit = await run_git(root, "rev-parse", "--verify", "--quiet", "HEAD")
    branch = await run_git(root, "symbolic-ref", "--quiet", "HEAD")
    for finished in (commit, branch):
        if finished.returncode not in (0, 1):
            raise git_failure(root, finished)
    return Head(commit.stdout.decode("ascii").strip() or None, _short(os.fsdecode(branch.stdout).strip()))


def read_head(root: Path) -> Head | None:
    """HEAD of the work tree around `root`; None when its files do not tell."""
    git_dir = find_git_dir(root)
    if git_dir is None or (git_dir / "HEAD").is_symlink():
        return None
    text = _read_line(git_dir / "HEAD")
    common = common_dir(git_dir)
    branch = None
    text = _read_line(git_dir / "HEAD")
    for step in range(5):  # git's own limit for symbolic references
        if text is None or _COMMIT.fullmatch(text):
            return Head(text, branch) if text else None
        ref = text.removeprefix("ref: ")
        # `.invalid` stands for another ref storage; `..` for nothing that git writes.
        if ref == text or not _SHARED_REF.fullmatch(ref) or ref.endswith("/.invalid") or ".." in ref:
            return None
        branch = _short(ref) if step == 0 else branch
        told, text = _read_ref(common, ref)
        if told and text is None:
            return Head(None, branch)
    return None


def find_git_dir(root: Path) -> Path | None:
    """The git directory of the work tree around `root` (a linked worktree's own one); None when there is none that exists."""
    for directory in (root, *root.parents):
        dot = directory / ".git"
        if _is_file(dot / "HEAD"):
            return dot
        if _is_file(dot):
            target = (_read_line(dot) or "").removeprefix("gitdir: ")
            git_dir = directory / target
            return git_dir if target and _is_file(git_dir / "HEAD") else None
    return None


def common_dir(git_dir: Path) -> Path:
    """The directory that all worktrees of the repository share."""
    shared = _read_line(git_dir / "commondir")
    return git_dir / shared if shared else git_dir


def linked_worktrees(common: Path) -> tuple[Path, ...]:
    """Roots of the linked worktrees that the repository knows and that exist, sorted."""
    try:
        known = [entry for entry in (common / "worktrees").iterdir() if entry.is_dir()]
    except OSError:
        return ()
    found: list[Path] = []
    for entry in known:
        pointer = _read_line(entry / "gitdir")
        dot = entry / pointer if pointer else None
        if dot is not None and _is_file(dot):
            found.append(dot.parent.resolve())
    return tuple(sorted(found))


def _short(ref: str) -> str | None:
    """A branch's name for people, always valid text."""
    name = ref.removeprefix("refs/heads/")
    return None if name == ref else os.fsencode(name).decode("utf-8", "replace")


def _is_file(path: Path) -> bool:
    with contextlib.suppress(OSError, ValueError):
        return path.is_file()
    return False


def _read_line(path: Path) -> str | None:
    """The text of a one-line file (the line may hold line feeds: only the last is its end); None when it cannot be read."""
    try:
        with path.open("rb") as stream:
            data = stream.read(MAX_REF + 1)
    except (OSError, ValueError):
        return None
    return None if len(data) > MAX_REF else os.fsdecode(data).removesuffix("\n")


def _read_ref(common: Path, ref: str) -> tuple[bool, str | None]:
    """(whether the files tell, what the reference holds); (True, None) is a branch before its first commit.

    Loose before packed: git writes packed-refs first and removes the loose file afterwards.
    """
    try:
        return True, os.fsdecode((common / ref).read_bytes()[:MAX_REF]).removesuffix("\n")
    except (FileNotFoundError, NotADirectoryError, IsADirectoryError):
        pass
    except OSError:
        return False, None
    packed = common / "packed-refs"
    try:
        if packed.stat().st_size > MAX_PACKED_REFS:
            return False, None
        data = packed.read_bytes()
    except FileNotFoundError:
        return True, None
    except OSError:
        return False, None
    match = re.search(rb"^([0-9a-f]{40,64}) " + re.escape(os.fsencode(ref)) + rb"$", data, re.MULTILINE)
    return True, match[1].decode("ascii") if match else None
