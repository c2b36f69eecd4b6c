"""After any sequence of edits, renames and switches in two work trees, answers come from the asked tree as it is; git is the oracle.

Each file defines one name of a small pool, so it is known exactly which files a question for that name must find: not one that is gone,
ignored or on another branch, and none missing.
"""

from __future__ import annotations

import os
import tempfile
from dataclasses import dataclass
from pathlib import Path

import anyio
import pytest
from hypothesis import HealthCheck, Phase, given, note, settings
from hypothesis import strategies as st

from search_router.router.opening import open_router
from search_router.router.service import Router
from search_router.schema import Status
from tests.repositories import commit_all, git, make_repository, write_files
from tests.scripted_router import environ

NAMES = ("zebra_one", "zebra_two", "zebra_six")
PATHS = ("mod.py", "Mod.py", "pkg/mod.py", "pkg/deep/other.py", "tool.go")
TREES = ("first", "second")
UNSHRUNK = (Phase.explicit, Phase.generate)
"""A failing history is short enough to be read, and shrinking it takes minutes."""
ONLY = ("experts.grep.enabled=false", "experts.history.enabled=false")


@dataclass(frozen=True)
class Step:
    """One thing that happens in one tree: what, where, and with which other path, name or branch."""

    what: str
    tree: str
    path: str
    other: str
    name: str
    line: int


STEPS = st.builds(
    Step,
    st.sampled_from(
        ["write", "write", "same tick", "delete", "move", "git mv", "commit", "switch", "revert", "ignore", "unignore", "submodule", "ask"]
    ),
    st.sampled_from(TREES),
    st.sampled_from(PATHS),
    st.sampled_from(PATHS),
    st.sampled_from(NAMES),
    st.integers(0, 3),
)


def source(path: str, name: str, line: int) -> str:
    """A file whose only definition is `name`, after so many lines; the same size for every name."""
    text = f"func {name}() {{}}\n" if path.endswith(".go") else f"def {name}():\n    return {line}\n"
    return ("package p\n" if path.endswith(".go") else "") + "\n" * line + text


class World:
    """A repository with a second work tree and a submodule in the first."""

    def __init__(self, folder: Path) -> None:
        library = make_repository(folder / "library", {"lib.py": source("lib.py", NAMES[0], 0)})
        first = make_repository(folder / "first", {path: source(path, NAMES[n % 3], n) for n, path in enumerate(PATHS[:3])})
        git(first, "submodule", "--quiet", "add", str(library), "lib")
        commit_all(first, "with the library")
        git(first, "branch", "other")
        git(first, "worktree", "add", "--quiet", "--detach", str(folder / "second"))
        self.roots = {"first": first, "second": folder / "second", "lib": first / "lib"}

    def do(self, step: Step) -> None:
        root = self.roots[step.tree]
        file = root / step.path
        match step.what:
            case "write":
                write_files(root, {step.path: source(step.path, step.name, step.line)})
            case "same tick" if file.is_file():
                before = file.stat()
                file.write_text(source(step.path, step.name, 0))
                os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))
            case "delete":
                file.unlink(missing_ok=True)
            case "move" if file.is_file():
                (root / step.other).parent.mkdir(parents=True, exist_ok=True)
                file.rename(root / step.other)
            case "git mv" if file.is_file() and step.path in git(root, "ls-files").splitlines() and step.path != step.other:
                (root / step.other).parent.mkdir(parents=True, exist_ok=True)
                git(root, "mv", "--force", step.path, step.other)
            case "commit":
                git(root, "add", "--all")
                git(root, "commit", "--quiet", "--allow-empty", "--message", "more")
                git(root, "branch", "--force", f"made-{step.line}")
            case "switch":
                branch = f"made-{step.line}" if git(root, "branch", "--list", f"made-{step.line}") else "other"
                git(root, "checkout", "--quiet", "--force", "--detach", branch)
            case "revert":
                git(root, "reset", "--quiet", "--hard")
            case "ignore":
                write_files(root, {".gitignore": f"{step.path}\n"})
            case "unignore":
                (root / ".gitignore").unlink(missing_ok=True)
            case "submodule" if (self.roots["lib"] / "lib.py").exists():
                write_files(self.roots["lib"], {"lib.py": source("lib.py", step.name, step.line)})
            case _:
                pass

    def defining(self, tree: str, name: str) -> dict[str, int]:
        """Path to 1-based line of the definition, from git's list and the files themselves."""
        root = self.roots[tree]
        listed = git(root, "ls-files", "--cached", "--others", "--exclude-standard").splitlines()
        found: dict[str, int] = {}
        for path in listed:
            if (root / path).is_file() and path.endswith((".py", ".go")):
                lines = (root / path).read_text().splitlines()
                found |= [(path, number) for number, line in enumerate(lines, 1) if f"{name}()" in line]
        return found


async def check(router: Router, world: World, tree: str, name: str) -> None:
    request = {"question": name, "scope": {"project": tree}, "limit": 50, "budget": {"latency_ms": 30_000}}
    answer = await router.search(request)
    note(f"{tree} {name}: {answer.status} {[(e.path, e.start_line, e.flags) for e in answer.evidence]}")
    assert answer.status in (Status.ANSWERED, Status.EMPTY, Status.CACHED), answer.error
    assert answer.status is Status.CACHED or {"symbols", "codesearch"} <= {
        e.id for e in answer.experts if e.status.value in ("ok", "empty")
    }
    expected = world.defining(tree, name)
    assert {item.path: item.start_line for item in answer.evidence} == expected
    for item in answer.evidence:
        assert item.project == tree and item.path is not None and item.start_line is not None and item.end_line is not None
        lines = (world.roots[tree] / item.path).read_text().splitlines()
        assert item.snippet is not None and item.snippet.splitlines()[0].strip() == lines[item.start_line - 1].strip()
        assert "stale-index" not in item.flags
    if answer.evidence:
        fetched = await router.fetch({"ids": [item.id for item in answer.evidence]})
        assert fetched.problems == ()
        for item, text in zip(answer.evidence, fetched.items, strict=True):
            lines = (world.roots[tree] / (item.path or "")).read_text().splitlines()
            shown = [line.partition("\t")[2] for line in text.text.splitlines()]
            assert text.fresh and shown == lines[(item.start_line or 0) - 1 : item.end_line]


async def live(steps: list[Step]) -> None:
    with tempfile.TemporaryDirectory(prefix="search-router-test-") as name:
        folder = Path(name).resolve()
        world = World(folder)
        roots = [world.roots[tree] for tree in TREES]
        async with open_router(roots=roots, environ=environ(folder), flags=ONLY) as router:
            assert {project.id for project in router.workspace.projects} == {"first", "second", "lib"}
            for step in steps:
                world.do(step)
                if step.what == "ask":
                    await check(router, world, step.tree, step.name)
            for tree in world.roots:
                await check(router, world, tree, NAMES[0])
        async with open_router(roots=roots, environ=environ(folder), flags=ONLY) as router:  # what the store says to a new process
            for tree in world.roots:
                await check(router, world, tree, NAMES[1])


@given(st.lists(STEPS, min_size=4, max_size=12))
@settings(
    max_examples=5,
    deadline=None,
    suppress_health_check=(HealthCheck.too_slow, HealthCheck.large_base_example),
    derandomize=True,
    phases=UNSHRUNK,
)
def test_answers_come_from_the_asked_tree_as_it_is(steps: list[Step]) -> None:
    anyio.run(live, steps)


@pytest.mark.slow
@pytest.mark.timeout(1200)
@given(st.lists(STEPS, min_size=8, max_size=40))
@settings(max_examples=60, deadline=None, suppress_health_check=(HealthCheck.too_slow, HealthCheck.large_base_example), phases=UNSHRUNK)
def test_answers_come_from_the_asked_tree_after_long_histories(steps: list[Step]) -> None:
    anyio.run(live, steps)
