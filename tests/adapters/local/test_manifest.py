"""The list of searchable files, against real git repositories and plain directories."""

import os
import shutil
import subprocess
import sys
import textwrap
import time
from pathlib import Path
from typing import Literal

import pytest

from search_router.adapters.local import manifest as manifest_module
from search_router.adapters.local.left_out import LeftOut
from search_router.adapters.local.manifest import Manifest, is_visible, read_manifest
from search_router.adapters.local.textfile import decode_path, encode_path
from search_router.errors import ExpertError, FailureClass
from search_router.schema import Project
from tests.privileges import needs_readable_checkout
from tests.repositories import commit_all, directory_of_nobody, git, make_repository, unprivileged, write_files

pytestmark = pytest.mark.anyio

ODD_NAMES = (
    b"with space",
    b"quo\"te'",
    b"new\nline",
    "🎈漢.py".encode(),
    b"bad\xff\xfename.py",
    b"-rf",
    b":(top)x",
    b"*",
    b"back\\slash",
    b"tab\t",
)


def project(root: Path, kind: Literal["git", "worktree", "submodule", "directory"] = "git") -> Project:
    return Project("p", root, kind)


def paths(manifest: Manifest) -> list[str]:
    return [entry.path for entry in manifest.entries]


# ------------------------------------------------------------------ git projects


async def test_tracked_and_untracked_files_are_listed_and_ignored_ones_are_not(tmp_path: Path) -> None:
    root = make_repository(tmp_path, {"a.py": "1", "src/b.py": "2", ".gitignore": "*.log\n.env\nbuild/\n", "kept.log": ""})
    write_files(root, {"new.py": "3", "x.log": "", ".env": "SECRET", "build/out.js": "", ".git/info/exclude": "private\n", "private": ""})
    git(root, "add", "--force", "kept.log")
    here = await read_manifest(project(root))
    assert (here.project_id, paths(here), here.left_out) == ("p", [".gitignore", "a.py", "kept.log", "new.py", "src/b.py"], ())


async def test_an_entry_tells_size_time_and_inode(tmp_path: Path) -> None:
    root = make_repository(tmp_path, {"a.py": "four"})
    (entry,) = (await read_manifest(project(root))).entries
    found = (root / "a.py").stat()
    assert (entry.path, entry.size, entry.mtime_ns, entry.inode) == ("a.py", 4, found.st_mtime_ns, found.st_ino)


async def test_deleted_files_are_dropped_and_renamed_ones_have_their_new_name(tmp_path: Path) -> None:
    root = make_repository(tmp_path, {"gone.py": "", "old.py": "", "staged.py": "", "folder/x.py": ""})
    (root / "gone.py").unlink()
    (root / "old.py").rename(root / "new.py")
    git(root, "mv", "staged.py", "moved.py")
    shutil.rmtree(root / "folder")
    (root / "folder").write_text("now a file")
    assert paths(await read_manifest(project(root))) == ["folder", "moved.py", "new.py"]


async def test_a_file_in_a_merge_conflict_is_listed_once(tmp_path: Path) -> None:
    root = make_repository(tmp_path, {"a.py": "1\n"})
    git(root, "checkout", "--quiet", "-b", "other")
    write_files(root, {"a.py": "2\n"})
    commit_all(root, "two")
    git(root, "checkout", "--quiet", "main")
    write_files(root, {"a.py": "3\n"})
    commit_all(root, "three")
    with pytest.raises(AssertionError):
        git(root, "merge", "other")
    assert paths(await read_manifest(project(root))) == ["a.py"]


async def test_an_empty_repository_has_an_empty_manifest(tmp_path: Path) -> None:
    assert await read_manifest(project(make_repository(tmp_path))) == Manifest("p", (), ())


async def test_a_repository_without_a_commit_lists_its_files(tmp_path: Path) -> None:
    root = make_repository(tmp_path)
    write_files(root, {"a.py": "", "b.py": ""})
    git(root, "add", "a.py")
    assert paths(await read_manifest(project(root))) == ["a.py", "b.py"]


async def test_a_shallow_clone_lists_its_files(tmp_path: Path) -> None:
    source = make_repository(tmp_path / "source", {"a.py": "1"})
    write_files(source, {"b.py": "2"})
    commit_all(source, "second")
    git(tmp_path, "clone", "--quiet", "--depth", "1", f"file://{source}", "clone")
    assert paths(await read_manifest(project(tmp_path / "clone"))) == ["a.py", "b.py"]


async def test_a_root_inside_a_work_tree_lists_only_what_is_below_it(tmp_path: Path) -> None:
    root = make_repository(tmp_path, {"top.py": "", "sub/a.py": "", "sub/deep/b.py": "", ".gitignore": "*.log\n", "sub/c.log": ""})
    assert paths(await read_manifest(project(root / "sub"))) == ["a.py", "deep/b.py"]


async def test_a_linked_worktree_lists_its_own_files(tmp_path: Path) -> None:
    root = make_repository(tmp_path / "main", {"a.py": ""})
    git(root, "worktree", "add", "--quiet", "-b", "feature", "../linked")
    write_files(tmp_path / "linked", {"only-here.py": ""})
    assert paths(await read_manifest(project(tmp_path / "linked", "worktree"))) == ["a.py", "only-here.py"]
    assert paths(await read_manifest(project(root))) == ["a.py"]


async def test_submodules_and_nested_repositories_are_left_out_with_a_reason(tmp_path: Path) -> None:
    library = make_repository(tmp_path / "library", {"lib.py": ""})
    root = make_repository(tmp_path / "app", {"app.py": ""})
    git(root, "submodule", "--quiet", "add", str(library), "deps/library")
    commit_all(root, "submodule")
    make_repository(root / "tool", {"tool.py": ""})
    git(tmp_path, "clone", "--quiet", str(root), "fresh")

    here = await read_manifest(project(root))
    assert paths(here) == [".gitmodules", "app.py"]
    assert here.left_out == (LeftOut("deps/library", "nested-repository"), LeftOut("tool", "nested-repository"))
    assert (await read_manifest(project(tmp_path / "fresh"))).left_out == (LeftOut("deps/library", "submodule-not-checked-out"),)
    assert paths(await read_manifest(project(root / "deps" / "library", "submodule"))) == ["lib.py"]


async def test_files_of_other_projects_below_the_root_are_theirs_alone(tmp_path: Path) -> None:
    root = make_repository(tmp_path, {"a.py": "", "sub/b.py": "", "subway/c.py": ""})
    make_repository(root / "tool", {"tool.py": ""})
    here = await read_manifest(project(root), nested=(root / "sub", root / "tool", tmp_path.parent, root))
    assert (paths(here), here.left_out) == (["a.py", "subway/c.py"], ())


async def test_links_are_left_out_also_where_a_tracked_directory_became_one(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    write_files(outside, {"secret.py": "s"})
    root = make_repository(tmp_path / "root", {"a.py": "", "folder/secret.py": "", "folder/deep/secret.py": ""})
    shutil.rmtree(root / "folder")
    (root / "folder").symlink_to(outside)
    (root / "file").symlink_to("a.py")
    (root / "loop").symlink_to("loop")
    here = await read_manifest(project(root))
    assert paths(here) == ["a.py"]
    assert here.left_out == (LeftOut("file", "symlink"), LeftOut("folder", "symlink"), LeftOut("loop", "symlink"))


async def test_a_tracked_file_that_became_a_pipe_is_left_out(tmp_path: Path) -> None:
    root = make_repository(tmp_path, {"a.py": "", "b.py": ""})
    (root / "b.py").unlink()
    os.mkfifo(root / "b.py")
    here = await read_manifest(project(root))
    assert (paths(here), here.left_out) == (["a.py"], (LeftOut("b.py", "not-a-file"),))


@pytest.mark.parametrize("kind", ["git", "directory"])
async def test_odd_names_survive(tmp_path: Path, kind: Literal["git", "directory"]) -> None:
    root = make_repository(tmp_path) if kind == "git" else tmp_path
    for name in ODD_NAMES:
        Path(os.fsdecode(os.fsencode(root) + b"/" + name)).write_text("x")
    here = await read_manifest(project(root, kind))
    assert {encode_path(path) for path in paths(here)} == set(ODD_NAMES)
    for name in ODD_NAMES:
        assert await is_visible(project(root, kind), decode_path(name))


@needs_readable_checkout
async def test_a_directory_that_cannot_be_read_is_left_out_with_a_reason() -> None:
    with directory_of_nobody() as root:
        make_repository(root, {"a.py": ""})
        write_files(root, {"private/b.py": ""})
        with unprivileged(root):
            (root / "private").chmod(0)
            here = await read_manifest(project(root))
            (root / "private").chmod(0o700)
    assert (paths(here), here.left_out) == (["a.py"], (LeftOut("private", "unreadable"),))


async def test_a_path_deeper_than_pythons_stack_is_listed(tmp_path: Path) -> None:
    """Built from the inside out by renames, because no single path may be longer than the system allows."""
    root = make_repository(tmp_path)
    (root / "d").mkdir()
    (root / "d" / "f").write_text("x")
    for _ in range(1200):
        (root / "e").mkdir()
        (root / "d").rename(root / "e" / "d")
        (root / "e").rename(root / "d")
    here = await read_manifest(project(root))
    subprocess.run(["rm", "-rf", str(root / "d")], check=True)
    assert paths(here) == ["d/" * 1201 + "f"]


async def test_a_root_that_is_no_repository_any_more_is_a_failure_and_not_an_empty_list(tmp_path: Path) -> None:
    with pytest.raises(ExpertError) as caught:
        await read_manifest(project(tmp_path))
    assert caught.value.failure == FailureClass.UNAVAILABLE


async def test_a_root_that_vanished_is_a_failure_and_not_an_empty_list(tmp_path: Path) -> None:
    with pytest.raises(ExpertError) as caught:
        await read_manifest(project(tmp_path / "gone", "directory"))
    assert caught.value.failure == FailureClass.SPAWN_FAILED


# ------------------------------------------------------------------ plain directories


async def test_a_plain_directory_is_listed_with_its_own_ignore_rules(tmp_path: Path) -> None:
    write_files(
        tmp_path, {"a.py": "", ".gitignore": "*.log\n!keep.log\n", "x.log": "", "keep.log": "", "sub/.gitignore": "*\n", "sub/b.py": ""}
    )
    make_repository(tmp_path / "nested", {"n.py": ""})
    here = await read_manifest(project(tmp_path, "directory"))
    assert paths(here) == [".gitignore", "a.py", "keep.log"]
    assert here.left_out == (LeftOut("nested", "nested-repository"),)


async def test_listing_a_plain_directory_leaves_nothing_in_it(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("")
    await read_manifest(project(tmp_path, "directory"))
    assert os.listdir(tmp_path) == ["a.py"]


async def test_the_empty_repository_is_made_again_when_someone_cleans_up(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("")
    first = manifest_module._elsewhere.ensure()
    shutil.rmtree(first)
    assert paths(await read_manifest(project(tmp_path, "directory"))) == ["a.py"]
    assert manifest_module._elsewhere.ensure() != first


_LISTING = """
    import sys, anyio
    from pathlib import Path
    from search_router.adapters.local.manifest import read_manifest
    from search_router.schema import Project
    for kind in ("git", "directory"):
        found = anyio.run(read_manifest, Project("p", Path(sys.argv[1]), kind))
        sys.stdout.write(ascii([e.path for e in found.entries]) + "\\n")
"""


def list_in_child(root: Path, environment: dict[str, str]) -> list[str]:
    argv = [sys.executable, "-c", textwrap.dedent(_LISTING), str(root)]
    finished = subprocess.run(argv, env=os.environ | environment, capture_output=True, text=True, check=True, timeout=60)
    return finished.stdout.splitlines()


async def test_names_mean_the_same_under_another_locale(tmp_path: Path) -> None:
    root = make_repository(tmp_path, {"größe/漢🎈.py": ""})
    expected = ascii(["größe/漢🎈.py"])
    assert list_in_child(root, {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}) == [expected, expected]


async def test_a_git_hooks_environment_does_not_turn_the_listing_to_another_repository(tmp_path: Path) -> None:
    other = make_repository(tmp_path / "other", {"wrong.py": ""})
    root = make_repository(tmp_path / "root", {"right.py": ""})
    hook = {"GIT_DIR": str(other / ".git"), "GIT_WORK_TREE": str(other), "GIT_INDEX_FILE": str(other / ".git" / "index"), "GIT_PREFIX": ""}
    assert list_in_child(root, hook) == ["['right.py']", "['right.py']"]


async def test_the_empty_repository_is_removed_at_exit(tmp_path: Path) -> None:
    (tmp_path / "temporary").mkdir()
    root = make_repository(tmp_path / "root", {"a.py": ""})
    list_in_child(root, {"TMPDIR": str(tmp_path / "temporary")})
    assert os.listdir(tmp_path / "temporary") == []


# ------------------------------------------------------------------ visibility


async def test_a_path_is_visible_exactly_when_it_is_listed(tmp_path: Path) -> None:
    root = make_repository(tmp_path / "root", {"a.py": "", "src/b.py": "", ".gitignore": ".env\n*.log\nbuild/\n", "forced.log": ""})
    git(root, "add", "--force", "forced.log")
    write_files(root, {".env": "SECRET", "x.log": "", "build/out.py": "", "new.py": ""})
    make_repository(root / "nested", {"n.py": ""})
    library = make_repository(tmp_path / "library", {"lib.py": ""})
    git(root, "submodule", "--quiet", "add", str(library), "library")
    (root / "link.py").symlink_to("a.py")
    (root / "linked").symlink_to("src")
    for kind in ("git", "directory"):
        listed = set(paths(await read_manifest(project(root, kind))))
        everything = [str(path.relative_to(root)) for path in root.rglob("*")]
        seen = {path for path in everything if not path.startswith(".git/") and await is_visible(project(root, kind), path)}
        assert seen == listed
        assert not await is_visible(project(root, kind), "linked/b.py")
        assert not await is_visible(project(root, kind), "nested/n.py")
        assert not await is_visible(project(root, kind), "library/lib.py")


@pytest.mark.parametrize(
    "path",
    [
        "",
        ".",
        "./a.py",
        "a.py/",
        "/etc/passwd",
        "../x",
        "src/../a.py",
        "src//b.py",
        ".git/config",
        ".GIT/config",
        "x/.git/HEAD",
        "nul\0",
        "\ud800",
        "a" * 5000,
        "src",
    ],
)
async def test_malformed_paths_and_gits_own_files_are_never_visible(tmp_path: Path, path: str) -> None:
    root = make_repository(tmp_path, {"a.py": "", "src/b.py": ""})
    assert not await is_visible(project(root), path)
    assert not await is_visible(project(root, "directory"), path)


async def test_a_path_with_nothing_there_is_not_hidden(tmp_path: Path) -> None:
    assert await is_visible(project(make_repository(tmp_path, {"a.py": ""})), "deleted.py")


# ------------------------------------------------------------------ speed


async def test_three_thousand_files_take_far_less_than_half_a_second(tmp_path: Path) -> None:
    """Some 20 ms on an idle core; the bound leaves room for a busy one."""
    root = make_repository(tmp_path, {f"src/p{i % 100}/file{i}.py": "" for i in range(3000)})
    await read_manifest(project(root))
    start = time.process_time()
    assert len((await read_manifest(project(root))).entries) == 3000
    assert time.process_time() - start < 0.4
