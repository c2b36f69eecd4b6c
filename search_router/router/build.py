"""Which code is running: the package version and, from a checkout, its commit and whether it was changed since."""

from __future__ import annotations

import subprocess
from pathlib import Path

import search_router
from search_router.answers import BuildRef

GIT_SECONDS = 5.0


def read_build() -> BuildRef:
    """Asks git only when the package lies in a checkout of its own; anything unexpected leaves commit and dirty unknown."""
    top = Path(search_router.__file__).resolve().parent.parent
    version = search_router.__version__
    if not (top / ".git").exists() or not (top / "pyproject.toml").is_file():
        return BuildRef(version=version)
    command = ["git", "-c", "core.fsmonitor=false", "status", "--porcelain=v2", "--branch", "--untracked-files=no"]
    try:
        shown = subprocess.run(command, cwd=top, capture_output=True, check=True, text=True, timeout=GIT_SECONDS).stdout
    except (OSError, subprocess.SubprocessError, UnicodeDecodeError):
        return BuildRef(version=version)
    return read_status(version, shown)


def read_status(version: str, shown: str) -> BuildRef:
    """The build from what `git status --porcelain=v2 --branch` shows: `# branch.oid COMMIT`, other headers, then changes."""
    lines = shown.splitlines()
    commits = [line.removeprefix("# branch.oid ") for line in lines if line.startswith("# branch.oid ")]
    commit = commits[0] if commits and commits[0] != "(initial)" else None
    return BuildRef(version=version, commit=commit, dirty=any(not line.startswith("#") for line in lines))
