"""The set of visible projects: real repositories, worktrees, submodules and plain directories."""

import os
import random
import time
from collections.abc import Sequence
from pathlib import Path

import pytest

from search_router.adapters.local.manifest import read_manifest
from search_router.config.schema import WorkspaceConfig
from search_router.errors import RequestRejected, WorkspaceError
from search_router.router.workspace import Workspace, discover_workspace
from search_router.schema import Project, Scope
from tests.privileges import needs_readable_checkout
from tests.repositories import commit_all, directory_of_nobody, git, make_repository, unprivileged, write_files

pytestmark = pytest.mark.anyio

DEFAULT = WorkspaceConfig()


async def refusal(config: WorkspaceConfig, roots: Sequence[Path]) -> WorkspaceError:
    with pytest.raises(WorkspaceError) as caught:
        await discover_workspace(config, roots)
    return caught.value


def kinds(workspace: Workspace) -> dict[str, str]:
    return {project.id: project.kind for project in workspace.projects}


# ------------------------------------------------------------------ one root


async def test_a_repository_is_a_project_with_its_head_and_branch(tmp_path: Path) -> None:
    root = make_repository(tmp_path / "app", {"a.py": ""})
    head = git(root, "rev-parse", "HEAD")
    workspace = await discover_workspace(DEFAULT, [root])
    assert workspace == Workspace((Project("app", root, "git", head, "main"),), {}, ())


async def test_a_repository_without_a_commit_has_a_branch_and_no_head(tmp_path: Path) -> None:
    root = make_repository(tmp_path / "app")
    assert (await discover_workspace(DEFAULT, [root])).projects == (Project("app", root, "git", None, "main"),)


async def test_a_detached_head_has_no_branch(tmp_path: Path) -> None:
    root = make_repository(tmp_path / "app", {"a.py": ""})
    git(root, "checkout", "--quiet", "--detach")
    (project,) = (await discover_workspace(DEFAULT, [root])).projects
    assert (project.head, project.branch) == (git(root, "rev-parse", "HEAD"), None)


async def test_a_shallow_clone_says_so(tmp_path: Path) -> None:
    source = make_repository(tmp_path / "source", {"a.py": "1"})
    write_files(source, {"a.py": "2"})
    commit_all(source, "second")
    git(tmp_path, "clone", "--quiet", "--depth", "1", f"file://{source}", "clone")
    workspace = await discover_workspace(DEFAULT, [tmp_path / "clone", source])
    assert {project.id: project.shallow for project in workspace.projects} == {"clone": True, "source": False}


async def test_a_plain_directory_is_a_project(tmp_path: Path) -> None:
    (tmp_path / "notes").mkdir()
    assert (await discover_workspace(DEFAULT, [tmp_path / "notes"])).projects == (Project("notes", tmp_path / "notes", "directory"),)


async def test_a_directory_inside_a_work_tree_is_searched_as_it_is_given(tmp_path: Path) -> None:
    root = make_repository(tmp_path / "app", {"service/a.py": ""})
    (project,) = (await discover_workspace(DEFAULT, [root / "service"])).projects
    assert project == Project("service", root / "service", "git", git(root, "rev-parse", "HEAD"), "main")


async def test_a_directory_that_the_repository_around_it_ignores_is_searched_as_a_plain_one(tmp_path: Path) -> None:
    """A home directory under version control, with `*` in its ignore file, makes everything below it vanish."""
    home = make_repository(tmp_path / "home")
    write_files(home, {".gitignore": "*\n", "code/a.py": "", "tracked/b.py": ""})
    git(home, "add", "--force", "tracked/b.py")
    workspace = await discover_workspace(DEFAULT, [home / "code", home / "tracked"])
    assert kinds(workspace) == {"code": "directory", "tracked": "git"}
    assert workspace.notes == (f"{home / 'code'}: ignored by the repository around it ({home}); searched as a plain directory.",)


async def test_a_git_file_that_leads_nowhere_is_said_and_the_files_are_still_searched(tmp_path: Path) -> None:
    """A linked worktree in a container, without its main repository."""
    write_files(tmp_path / "tree", {".git": "gitdir: /nowhere/.git/worktrees/tree\n", "a.py": ""})
    workspace = await discover_workspace(DEFAULT, [tmp_path / "tree"])
    assert kinds(workspace) == {"tree": "directory"}
    assert workspace.notes == (f"{tmp_path / 'tree'}: its .git leads nowhere; searched as a plain directory.",)


@pytest.mark.parametrize("name", ["with space", "new\nline", "quo\"te'", "漢🎈", os.fsdecode(b"bad\xff"), "-rf", ":(top)"])
async def test_roots_with_odd_names_are_found_and_get_plain_ids(tmp_path: Path, name: str) -> None:
    root = make_repository(tmp_path / name, {"a.py": ""})
    git(root, "worktree", "add", "--quiet", "-b", "feature", f"trees/{name}")
    workspace = await discover_workspace(DEFAULT, [root])
    assert [(project.root, project.kind) for project in workspace.projects] == [(root, "git"), (root / "trees" / name, "worktree")]
    assert all(project.id.isascii() and project.id.isprintable() and " " not in project.id for project in workspace.projects)


# ------------------------------------------------------------------ which roots


async def test_the_command_line_wins_over_the_configuration_and_that_over_the_working_directory(tmp_path: Path) -> None:
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
    config = WorkspaceConfig(roots=(str(tmp_path / "two"),))
    assert kinds(await discover_workspace(config, [tmp_path / "one"])) == {"one": "directory"}
    assert kinds(await discover_workspace(config)) == {"two": "directory"}
    here = await discover_workspace(WorkspaceConfig(submodules=False))
    assert Path.cwd().resolve() in [project.root for project in here.projects]


async def test_the_same_directory_named_twice_is_one_project(tmp_path: Path) -> None:
    root = make_repository(tmp_path / "app", {"a.py": ""})
    (tmp_path / "link").symlink_to("app")
    assert kinds(await discover_workspace(DEFAULT, [root, tmp_path / "link", root / ".." / "app"])) == {"app": "git"}


async def test_every_root_that_cannot_be_searched_is_named_at_once(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    (tmp_path / "dangling").symlink_to("nowhere")
    error = await refusal(DEFAULT, [tmp_path / "missing", tmp_path / "file", tmp_path, tmp_path / "dangling"])
    assert error.message == (
        f"Cannot search {tmp_path / 'missing'}: it does not exist; {tmp_path / 'file'}: it is not a directory; "
        f"{tmp_path / 'dangling'}: it is not a directory."
    )
    assert error.remedy


async def test_a_root_without_permission_is_refused() -> None:
    with directory_of_nobody() as root, unprivileged(root):
        (root / "private").mkdir(mode=0)
        error = await refusal(DEFAULT, [root / "private"])
        (root / "private").rmdir()
    assert "no permission to read it" in error.message


async def test_an_unknown_home_directory_is_refused(tmp_path: Path) -> None:
    for config in (WorkspaceConfig(roots=("~no-such-user-here/x",)), WorkspaceConfig(names={"~no-such-user-here": "x"})):
        with pytest.raises(WorkspaceError, match="home directory"):
            await discover_workspace(config, [tmp_path] if config.names else [])


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can make a directory of another owner")
@needs_readable_checkout
async def test_a_repository_of_another_owner_is_refused_with_gits_remedy() -> None:
    with directory_of_nobody() as root:
        make_repository(root / "app", {"a.py": ""})
        with unprivileged(root):
            os.seteuid(0)
            os.chown(root / "app", 1, 1)
            os.seteuid(65534)
            error = await refusal(DEFAULT, [root / "app"])
            beside = await discover_workspace(DEFAULT, [root])
    assert "belongs to another user" in error.message
    assert "safe.directory" in error.remedy
    assert [project.root for project in beside.projects] == [root]
    assert len(beside.notes) == 1
    assert "belongs to another user" in beside.notes[0]


async def test_a_bare_repository_is_refused_unless_worktrees_lie_below_it(tmp_path: Path) -> None:
    source = make_repository(tmp_path / "source", {"a.py": ""})
    git(tmp_path, "clone", "--quiet", "--bare", str(source), "project/.bare")
    assert "bare repository" in (await refusal(DEFAULT, [tmp_path / "project" / ".bare"])).message
    assert "bare repository" in (await refusal(DEFAULT, [source / ".git"])).message
    write_files(tmp_path / "project", {".git": "gitdir: ./.bare\n"})
    git(tmp_path / "project", "worktree", "add", "--quiet", "main")
    assert kinds(await discover_workspace(DEFAULT, [tmp_path / "project"])) == {"main": "worktree"}


# ------------------------------------------------------------------ what lies below


async def test_checked_out_submodules_are_projects_also_nested_ones_and_only_if_wanted(tmp_path: Path) -> None:
    inner = make_repository(tmp_path / "inner", {"i.py": ""})
    outer = make_repository(tmp_path / "outer", {"o.py": ""})
    git(outer, "submodule", "--quiet", "add", str(inner), "vendor/inner")
    commit_all(outer, "submodule")
    root = make_repository(tmp_path / "app", {"a.py": ""})
    git(root, "submodule", "--quiet", "add", str(outer), "deps/outer")
    commit_all(root, "submodule")

    unfilled = await discover_workspace(DEFAULT, [root])
    assert kinds(unfilled) == {"app": "git", "outer": "submodule"}
    git(root, "submodule", "--quiet", "update", "--init", "--recursive")
    workspace = await discover_workspace(DEFAULT, [root])
    assert kinds(workspace) == {"app": "git", "outer": "submodule", "inner": "submodule"}
    assert {p.id: p.head for p in workspace.projects} == {p.name: git(p, "rev-parse", "HEAD") for p in (root, outer, inner)}
    assert kinds(await discover_workspace(WorkspaceConfig(submodules=False), [root])) == {"app": "git"}
    assert kinds(await discover_workspace(DEFAULT, [root / "deps"])) == {"deps": "git", "outer": "submodule", "inner": "submodule"}


async def test_a_submodule_path_cannot_make_other_directories_visible(tmp_path: Path) -> None:
    make_repository(tmp_path / "secret", {"s.py": ""})
    root = make_repository(tmp_path / "app", {"a.py": ""})
    (root / "link").symlink_to("../secret")
    listed = "".join(
        f'[submodule "{i}"]\n\tpath = {p}\n' for i, p in enumerate(("../secret", str(tmp_path / "secret"), "link", ".", "a.py"))
    )
    write_files(root, {".gitmodules": listed})
    assert kinds(await discover_workspace(DEFAULT, [root])) == {"app": "git"}


async def test_a_submodule_list_that_git_cannot_read_is_said(tmp_path: Path) -> None:
    root = make_repository(tmp_path / "app", {"a.py": "", ".gitmodules": "[submodule\n"})
    workspace = await discover_workspace(DEFAULT, [root])
    assert kinds(workspace) == {"app": "git"}
    assert workspace.notes == (f"{root / '.gitmodules'}: git cannot read it; submodules are not searched.",)


async def test_a_submodule_whose_git_directory_is_broken_is_said(tmp_path: Path) -> None:
    root = make_repository(tmp_path / "app", {"a.py": "", ".gitmodules": '[submodule "x"]\n\tpath = x\n'})
    (root / "x" / ".git").mkdir(parents=True)
    workspace = await discover_workspace(DEFAULT, [root])
    assert kinds(workspace) == {"app": "git"}
    assert workspace.notes == (f"{root / 'x'} is not searched: its .git is not a repository.",)


async def test_linked_worktrees_below_the_root_are_projects_and_others_are_not(tmp_path: Path) -> None:
    root = make_repository(tmp_path / "app", {"a.py": ""})
    git(root, "worktree", "add", "--quiet", "-b", "feature", ".trees/feature")
    git(root, "worktree", "add", "--quiet", "-b", "elsewhere", "../elsewhere")
    workspace = await discover_workspace(DEFAULT, [root])
    assert [(p.id, p.kind, p.branch) for p in workspace.projects] == [("app", "git", "main"), ("feature", "worktree", "feature")]
    assert kinds(await discover_workspace(DEFAULT, [tmp_path / "elsewhere"])) == {"elsewhere": "worktree"}


async def test_repositories_below_a_plain_directory_are_projects(tmp_path: Path) -> None:
    code = tmp_path / "code"
    make_repository(code / "one", {"a.py": ""})
    make_repository(code / "host" / "owner" / "two", {"a.py": ""})
    make_repository(code / "node_modules" / "three", {"a.py": ""})
    make_repository(code / "a" / "b" / "c" / "d" / "too-deep", {"a.py": ""})
    make_repository(tmp_path / "outside", {"a.py": ""})
    (code / "link").symlink_to("../outside")
    assert kinds(await discover_workspace(DEFAULT, [code])) == {"code": "directory", "one": "git", "two": "git"}


async def test_overlapping_roots_list_each_file_once(tmp_path: Path) -> None:
    root = make_repository(tmp_path / "app", {"a.py": "", "service/b.py": "", "service/deep/c.py": ""})
    workspace = await discover_workspace(DEFAULT, [root / "service" / "deep", root, root / "service"])
    manifests = [await read_manifest(project, nested=workspace.below(project)) for project in workspace.projects]
    assert {m.project_id: [entry.path for entry in m.entries] for m in manifests} == {
        "app": ["a.py"],
        "service": ["b.py"],
        "deep": ["c.py"],
    }


# ------------------------------------------------------------------ ids and groups


async def test_ids_that_clash_are_told_apart_by_branch_then_by_number_in_path_order(tmp_path: Path) -> None:
    app = make_repository(tmp_path / "z" / "app", {"a.py": ""})
    git(app, "worktree", "add", "--quiet", "-b", "feature/x", str(tmp_path / "a" / "app"))
    git(app, "worktree", "add", "--quiet", "--detach", str(tmp_path / "b" / "app"))
    for name in ("y", "x"):
        (tmp_path / name / "app").mkdir(parents=True)
    roots = [tmp_path / name / "app" for name in "abxyz"]
    expected = {"a": "app@feature-x", "b": "app~4", "x": "app", "y": "app~2", "z": "app~3"}
    for seed in range(3):
        shuffled = random.Random(seed).sample(roots, len(roots))
        workspace = await discover_workspace(DEFAULT, shuffled)
        assert {p.root.parent.name: p.id for p in workspace.projects} == expected


async def test_a_configured_name_wins_and_the_others_keep_clear_of_it(tmp_path: Path) -> None:
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
    config = WorkspaceConfig(names={str(tmp_path / "one"): "two", "/not/in/this/workspace": "three"})
    workspace = await discover_workspace(config, [tmp_path / "one", tmp_path / "two"])
    assert {p.root.name: p.id for p in workspace.projects} == {"one": "two", "two": "two~2"}


async def test_names_that_clash_or_cannot_be_typed_are_refused(tmp_path: Path) -> None:
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
    roots = [tmp_path / "one", tmp_path / "two"]
    assert "'x' to more than one" in (await refusal(WorkspaceConfig(names={str(root): "x" for root in roots}), roots)).message
    assert "cannot be a project id" in (await refusal(WorkspaceConfig(names={str(roots[0]): "a b"}), roots)).message
    assert "cannot be a project id" in (await refusal(WorkspaceConfig(names={str(roots[0]): ""}), roots)).message


async def test_groups_are_checked_and_their_members_know_them(tmp_path: Path) -> None:
    for name in ("api", "web", "docs"):
        (tmp_path / name).mkdir()
    roots = [tmp_path / name for name in ("api", "web", "docs")]
    workspace = await discover_workspace(WorkspaceConfig(groups={"code": ("web", "api", "web"), "all": ("docs", "api", "web")}), roots)
    assert dict(workspace.groups) == {"code": ("web", "api"), "all": ("docs", "api", "web")}
    assert {p.id: p.groups for p in workspace.projects} == {"api": ("all", "code"), "docs": ("all",), "web": ("all", "code")}
    error = await refusal(WorkspaceConfig(groups={"code": ("wbe", "api"), "x": ("nope",)}), roots)
    assert "group 'code' names 'wbe', nearest of 3 projects: web" in error.message
    assert "group 'x' names 'nope'" in error.message


# ------------------------------------------------------------------ visibility


def sample() -> Workspace:
    return Workspace(
        projects=tuple(Project(name, Path("/") / name, "git", groups=("even",) if i % 2 == 0 else ()) for i, name in enumerate("abcd")),
        groups={"even": ("a", "c")},
    )


@pytest.mark.parametrize(
    ("scope", "expected"),
    [
        (Scope(), "abcd"),
        (Scope(project="b"), "b"),
        (Scope(group="even"), "ac"),
        (Scope(group="even", project="c"), "c"),
        (Scope(group="even", project="b"), ""),
        (Scope(path="src", language="python"), "abcd"),
    ],
)
async def test_a_scope_narrows_by_project_and_group_only(scope: Scope, expected: str) -> None:
    assert "".join(project.id for project in sample().visible(scope)) == expected


async def test_unknown_projects_and_groups_are_both_named_with_the_nearest_that_exist() -> None:
    workspace = Workspace(tuple(Project(f"service-{i}", Path(f"/{i}"), "git") for i in range(12)), {})
    with pytest.raises(RequestRejected) as caught:
        workspace.visible(Scope(project="servce-7", group="x\u202e"))
    project, group = caught.value.problems
    assert (project.field, project.code) == ("scope.project", "unknown-project")
    assert project.message.startswith("no project is called 'servce-7'; nearest of 12 projects: service-7, ")
    assert project.message.count(",") == 7
    assert (group.field, group.code, group.message) == (
        "scope.group",
        "unknown-group",
        "no group is called 'x\\u202e'; there are no groups",
    )


async def test_discovery_of_one_root_is_quick(tmp_path: Path) -> None:
    """About 5 ms on an idle core; the bound leaves room for a busy one."""
    root = make_repository(tmp_path, {"a.py": ""})
    await discover_workspace(DEFAULT, [root])
    start = time.process_time()
    await discover_workspace(DEFAULT, [root])
    assert time.process_time() - start < 0.25
