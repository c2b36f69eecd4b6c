"""HEAD, branch and linked worktrees read from files, always compared with what git itself says."""

import os
from pathlib import Path

import pytest

from search_router.adapters.local.gitfiles import Head, common_dir, find_git_dir, head_now, head_of, linked_worktrees, read_head
from search_router.errors import ExpertError
from search_router.schema import Project
from tests.repositories import commit_all, git, make_repository, write_files

pytestmark = pytest.mark.anyio


def gits_head(root: Path) -> str:
    return git(root, "rev-parse", "HEAD")


async def test_head_follows_each_commit(tmp_path: Path) -> None:
    root = make_repository(tmp_path, {"a.py": "1"})
    project = Project("p", root, "git")
    assert await head_now(project) == gits_head(root)
    write_files(root, {"a.py": "2"})
    second = commit_all(root, "second")
    assert await head_now(project) == second == gits_head(root)


async def test_a_branch_with_slashes_and_odd_letters_is_named(tmp_path: Path) -> None:
    root = make_repository(tmp_path, {"a.py": ""})
    git(root, "checkout", "--quiet", "-b", "feature/größe+(x)")
    assert read_head(root) == Head(gits_head(root), "feature/größe+(x)")


async def test_a_branch_name_that_is_not_utf8_is_shown_and_still_resolved(tmp_path: Path) -> None:
    root = make_repository(tmp_path, {"a.py": ""})
    git(root, "checkout", "--quiet", "-b", os.fsdecode(b"caf\xe9"))
    assert read_head(root) == Head(gits_head(root), "caf\ufffd")


async def test_packed_references_are_found(tmp_path: Path) -> None:
    root = make_repository(tmp_path, {"a.py": ""})
    git(root, "branch", "main-but-longer")
    git(root, "pack-refs", "--all")
    assert not (root / ".git" / "refs" / "heads" / "main").exists()
    assert read_head(root) == Head(gits_head(root), "main")


async def test_a_loose_reference_wins_over_a_packed_one(tmp_path: Path) -> None:
    root = make_repository(tmp_path, {"a.py": "1"})
    git(root, "pack-refs", "--all")
    write_files(root, {"a.py": "2"})
    second = commit_all(root, "second")
    assert read_head(root) == Head(second, "main")


async def test_a_detached_head_has_no_branch(tmp_path: Path) -> None:
    root = make_repository(tmp_path, {"a.py": ""})
    git(root, "checkout", "--quiet", "--detach")
    assert read_head(root) == Head(gits_head(root), None)


async def test_before_the_first_commit_there_is_a_branch_and_no_commit(tmp_path: Path) -> None:
    root = make_repository(tmp_path)
    assert read_head(root) == Head(None, "main")
    assert await head_now(Project("p", root, "git")) is None


async def test_a_root_inside_the_work_tree_finds_its_repository(tmp_path: Path) -> None:
    root = make_repository(tmp_path, {"sub/deep/a.py": ""})
    assert read_head(root / "sub" / "deep") == Head(gits_head(root), "main")


async def test_linked_worktrees_and_submodules_have_their_own_head(tmp_path: Path) -> None:
    library = make_repository(tmp_path / "library", {"lib.py": ""})
    root = make_repository(tmp_path / "app", {"app.py": ""})
    git(root, "submodule", "--quiet", "add", str(library), "library")
    commit_all(root, "submodule")
    git(root, "worktree", "add", "--quiet", "-b", "feature", "../linked")
    write_files(tmp_path / "linked", {"new.py": ""})
    commit_all(tmp_path / "linked", "on the branch")
    assert read_head(tmp_path / "linked") == Head(gits_head(tmp_path / "linked"), "feature")
    assert read_head(root / "library") == Head(gits_head(library), "main")
    assert read_head(root) == Head(gits_head(root), "main")
    assert len({gits_head(root), gits_head(tmp_path / "linked"), gits_head(library)}) == 3


async def test_a_symbolic_reference_to_a_branch_is_followed(tmp_path: Path) -> None:
    root = make_repository(tmp_path, {"a.py": ""})
    git(root, "symbolic-ref", "refs/heads/alias", "refs/heads/main")
    git(root, "symbolic-ref", "HEAD", "refs/heads/alias")
    assert read_head(root) == Head(gits_head(root), "alias")


@pytest.mark.parametrize(
    "text", ["ref: refs/heads/.invalid\n", "ref: refs/heads/../../../x\n", "ref: refs/odd/x\n", "rubbish\n", "", "x" * 10_000]
)
async def test_a_head_that_the_files_do_not_tell_is_left_to_git(tmp_path: Path, text: str) -> None:
    root = make_repository(tmp_path, {"a.py": ""})
    (root / ".git" / "HEAD").write_text(text)
    assert read_head(root) is None


async def test_a_head_that_is_a_link_is_left_to_git_and_git_answers(tmp_path: Path) -> None:
    root = make_repository(tmp_path, {"a.py": ""})
    (root / ".git" / "HEAD").unlink()
    (root / ".git" / "HEAD").symlink_to("refs/heads/main")
    assert read_head(root) is None
    assert await head_of(root) == Head(gits_head(root), "main")


async def test_where_nothing_tells_it_is_an_error(tmp_path: Path) -> None:
    root = make_repository(tmp_path, {"a.py": ""})
    (root / ".git" / "HEAD").write_text("rubbish\n")
    with pytest.raises(ExpertError):
        await head_now(Project("p", root, "git"))


async def test_a_plain_directory_has_no_head(tmp_path: Path) -> None:
    assert await head_now(Project("p", make_repository(tmp_path, {"a.py": ""}), "directory")) is None


async def test_a_git_file_that_leads_nowhere_is_no_repository(tmp_path: Path) -> None:
    (tmp_path / ".git").write_text("gitdir: /nowhere/at/all\n")
    assert find_git_dir(tmp_path) is None


async def test_linked_worktrees_that_exist_are_listed(tmp_path: Path) -> None:
    root = make_repository(tmp_path / "app", {"a.py": ""})
    assert linked_worktrees(root / ".git") == ()
    git(root, "worktree", "add", "--quiet", "--detach", "trees/b")
    git(root, "worktree", "add", "--quiet", "--detach", "../a\nb")
    git(root, "worktree", "add", "--quiet", "--detach", "../gone")
    (tmp_path / "gone" / ".git").unlink()
    git_dir = find_git_dir(root / "trees" / "b")
    assert git_dir is not None
    assert linked_worktrees(common_dir(git_dir).resolve()) == (tmp_path / "a\nb", root / "trees" / "b")
