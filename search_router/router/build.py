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
    try:
        commit = _git(top, "rev-parse", "HEAD")
        dirty = bool(_git(top, "status", "--porcelain", "--untracked-files=no"))
    except (OSError, subprocess.SubprocessError):
        return BuildRef(version=version)
    return BuildRef(version=version, commit=commit, dirty=dirty)


def _git(top: Path, *arguments: str) -> str:
    command = ["git", "-c", "core.fsmonitor=false", *arguments]
    return subprocess.run(command, cwd=top, capture_output=True, check=True, text=True, timeout=GIT_SECONDS).stdout.strip()
