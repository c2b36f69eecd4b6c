"""The build is what git says of the checkout."""

from __future__ import annotations

from pathlib import Path

from search_router.answers import BuildRef
from search_router.router.build import read_status
from tests.repositories import git, make_repository

STATUS = ("status", "--porcelain=v2", "--branch", "--untracked-files=no")


def test_commit_and_dirty_flag_are_read_from_one_look_at_the_checkout(tmp_path: Path) -> None:
    root = make_repository(tmp_path / "repo")
    assert read_status("1", git(root, *STATUS)) == BuildRef(version="1", commit=None, dirty=False)
    make_repository(root, {"a.txt": "1\n"})
    commit = git(root, "rev-parse", "HEAD")
    (root / "new.txt").write_text("not tracked\n")
    assert read_status("1", git(root, *STATUS)) == BuildRef(version="1", commit=commit, dirty=False)
    (root / "a.txt").write_text("2\n")
    assert read_status("1", git(root, *STATUS)) == BuildRef(version="1", commit=commit, dirty=True)
