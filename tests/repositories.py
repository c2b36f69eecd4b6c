"""Real git repositories for tests."""

import codecs
import contextlib
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path

NOBODY = 65534
_ENVIRONMENT = {
    "GIT_CONFIG_GLOBAL": "/dev/null",
    "GIT_CONFIG_SYSTEM": "/dev/null",
    "GIT_AUTHOR_NAME": "Ada",
    "GIT_AUTHOR_EMAIL": "ada@example.org",
    "GIT_COMMITTER_NAME": "Ada",
    "GIT_COMMITTER_EMAIL": "ada@example.org",
    "GIT_AUTHOR_DATE": "2024-01-02T03:04:05Z",
    "GIT_COMMITTER_DATE": "2024-01-02T03:04:05Z",
}


def git(root: Path, *arguments: str) -> str:
    """Run git in `root`; its output without white space at the end. A failure fails the test."""
    argv = ["git", "-c", "protocol.file.allow=always", "-c", "init.defaultBranch=main", *arguments]
    finished = subprocess.run(argv, cwd=root, env=os.environ | _ENVIRONMENT, capture_output=True, check=False, timeout=30)
    assert finished.returncode == 0, f"git {arguments}: {finished.stderr.decode(errors='replace')}"
    return os.fsdecode(finished.stdout).rstrip()


def write_files(root: Path, files: Mapping[str, str]) -> None:
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def make_repository(root: Path, files: Mapping[str, str] | None = None) -> Path:
    """A repository on branch `main`; with `files`, they are its first commit."""
    root.mkdir(parents=True, exist_ok=True)
    git(root, "init", "--quiet")
    if files:
        write_files(root, files)
        commit_all(root, "first")
    return root


def commit_all(root: Path, message: str) -> str:
    """Commit everything that is not ignored; the new commit's id."""
    git(root, "add", "--all")
    git(root, "commit", "--quiet", "--message", message)
    return git(root, "rev-parse", "HEAD")


@contextlib.contextmanager
def directory_of_nobody() -> Iterator[Path]:
    """A temporary directory that an unprivileged user owns and can reach."""
    path = Path(tempfile.mkdtemp(prefix="search-router-test-")).resolve()
    try:
        yield path
    finally:
        shutil.rmtree(path)


@contextlib.contextmanager
def unprivileged(path: Path) -> Iterator[None]:
    """Without root's right to read everything; root gives `path` away first, and git finds its home there."""
    if os.geteuid() != 0:
        yield
        return
    for encoding in ("ascii", "latin-1", "utf-16", "utf-32"):
        codecs.lookup(encoding)  # one that cannot be imported now would be unknown for ever
    for found in (path, *path.rglob("*")):
        os.chown(found, NOBODY, NOBODY, follow_symlinks=False)
    home = os.environ.get("HOME")
    os.environ["HOME"] = str(path)
    os.seteuid(NOBODY)
    try:
        yield
    finally:
        os.seteuid(0)
        os.environ.pop("HOME") if home is None else os.environ.update(HOME=home)
