"""Indexes are found where they may lie and nowhere else, and each is known by the engine behind its indexer."""

from __future__ import annotations

from pathlib import Path

import pytest

from search_router.adapters.local.scip_files import IndexFile, cached_index, document_root, engine_of_tool, find_indexes, read_sidecar
from search_router.schema import Project

PATTERNS = ("index.scip", "*/index.scip", "build/*.scip")


def make(root: Path, *paths: str) -> None:
    for path in paths:
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_bytes(b"")


def found(root: Path, cache: Path, nested: tuple[Path, ...] = ()) -> list[str]:
    project = Project("demo", root, "directory")
    return [str(f.file.relative_to(root)) for f in find_indexes(project, PATTERNS, cache, nested) if f.file.is_relative_to(root)]


def test_indexes_are_found_by_the_patterns_nearest_first(tmp_path: Path) -> None:
    root = tmp_path / "demo"
    make(root, "index.scip", "web/index.scip", "build/go.scip", "web/deep/index.scip", "web/go.scip", "index.scip.json")
    assert found(root, tmp_path / "cache") == ["index.scip", "build/go.scip", "web/index.scip"]


def test_links_dependencies_git_and_other_projects_are_not_entered(tmp_path: Path) -> None:
    root, outside = tmp_path / "demo", tmp_path / "outside"
    make(root, "node_modules/index.scip", ".git/index.scip", "inner/index.scip")
    make(outside, "index.scip")
    (root / "linked").symlink_to(outside)
    (root / "index.scip").symlink_to(outside / "index.scip")
    assert found(root, tmp_path / "cache", nested=(root / "inner",)) == []
    assert found(root, tmp_path / "cache") == ["inner/index.scip"]


def test_our_own_index_comes_first_and_counts_from_the_root(tmp_path: Path) -> None:
    root, cache = tmp_path / "demo", tmp_path / "cache"
    make(root, "index.scip")
    own = cached_index(cache, root)
    make(own.parent, own.name)
    assert find_indexes(Project("demo", root, "directory"), PATTERNS, cache) == [IndexFile(own, root), IndexFile(root / "index.scip", root)]


def test_the_search_for_indexes_is_bounded(tmp_path: Path) -> None:
    root = tmp_path / "demo"
    for number in range(60):
        make(root / f"folder{number:02}", *(f"{n}.txt" for n in range(100)))
    make(root, "folder59/index.scip")
    assert found(root, tmp_path / "cache") == []


@pytest.mark.parametrize(
    ("tool", "engine"),
    [
        ("scip-python", "pyright"),
        ("scip-typescript", "tsserver"),
        ("ty-scip", "ty"),
        ("rust-analyzer", "rust-analyzer"),
        ("my-own", "my-own"),
        ("", "scip"),
    ],
)
def test_an_indexer_is_known_by_what_resolves_for_it(tool: str, engine: str) -> None:
    assert engine_of_tool(tool) == engine


@pytest.mark.parametrize("text", ["", "[]", '{"commit": 7}', '{"files": [1]}', "\0", '{"dirty": "perhaps"}'], ids=repr)
def test_a_side_car_that_is_none_is_said_and_not_used(tmp_path: Path, text: str) -> None:
    (tmp_path / "index.scip.json").write_text(text)
    sidecar, wrong = read_sidecar(tmp_path / "index.scip")
    assert sidecar is None
    assert wrong is not None and "index.scip.json" in wrong


def test_a_side_car_of_another_tool_may_say_more(tmp_path: Path) -> None:
    (tmp_path / "index.scip.json").write_text('{"engine": "ty", "commit": "abc", "colour": "red"}')
    sidecar, wrong = read_sidecar(tmp_path / "index.scip")
    assert (sidecar and (sidecar.engine, sidecar.commit, sidecar.files), wrong) == (("ty", "abc", {}), None)
    assert read_sidecar(tmp_path / "other.scip") == (None, None)


@pytest.mark.parametrize(
    ("base", "written", "prefix"),
    [
        ("", "file:///srv/demo", ""),
        ("", "file:///srv/demo/web%20site/", "web site/"),
        ("web", "file:///another/machine", "web/"),
        ("web", "", "web/"),
        ("", "/srv/demo/web", ""),
        ("web", "file:///srv/demo/../other", "web/"),
        ("web", "file:///srv/demolition", "web/"),
    ],
)
def test_paths_count_from_the_written_root_in_the_project_else_from_where_the_index_lies(base: str, written: str, prefix: str) -> None:
    root = Path("/srv/demo")
    assert document_root(IndexFile(root / base / "index.scip", root / base), written, Project("demo", root, "git")) == prefix
