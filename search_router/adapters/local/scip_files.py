"""Where the SCIP indexes of a project lie, which engine made each, and what its side-car says about the state it was made from."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Final, NamedTuple
from urllib.parse import unquote_to_bytes

from pydantic import BaseModel, ConfigDict, ValidationError

from search_router.adapters.local.textfile import decode_path
from search_router.plain_files import read_plain
from search_router.schema import Project

INDEX_NAME: Final = "index.scip"
MAX_SIDECAR: Final = 32 << 20
MAX_SEEN: Final = 5000
"""So many directory entries are looked at for indexes in one project."""

_NOT_ENTERED = frozenset({".git", "node_modules", "target", "__pycache__", ".venv", "venv", ".tox", ".mypy_cache", ".hg", ".svn"})
_ENGINES: Final = {
    "scip-python": "pyright",
    "scip-typescript": "tsserver",
    "rust-analyzer": "rust-analyzer",
    "ty-scip": "ty",
    "scip-go": "go-types",
    "scip-clang": "clang",
    "scip-java": "javac",
    "scip-ruby": "sorbet",
    "scip-dotnet": "roslyn",
    "scip-dart": "dart-analyzer",
    "scip-php": "scip-php",
}


class SideCar(BaseModel):
    """`index.scip.json` beside an index. All of it is optional; what other tools add is let be.

    `files` maps paths, relative to the index's root, to the SHA-256 of what was indexed. `time` is ISO 8601.
    """

    model_config = ConfigDict(frozen=True, extra="ignore", defer_build=True)

    tool: str = ""
    engine: str = ""
    commit: str = ""
    dirty: bool = False
    time: str = ""
    files: dict[str, str] = {}


class IndexFile(NamedTuple):
    """One index: the file, and the directory that its paths are relative to where its own metadata does not help."""

    file: Path
    base: Path


def engine_of_tool(tool: str) -> str:
    """The program that really resolves names for an indexer; the indexer's own name when it is not known."""
    return _ENGINES.get(tool, tool or "scip")


def cached_index(cache_dir: Path, root: Path) -> Path:
    """Where our own index of a project is kept."""
    return cache_dir / "scip" / hashlib.sha256(os.fsencode(root)).hexdigest()[:20] / INDEX_NAME


def sidecar_of(index: Path) -> Path:
    """Where the side-car of an index is."""
    return index.with_name(f"{index.name}.json")


def read_sidecar(index: Path) -> tuple[SideCar | None, str | None]:
    """(side-car, what is wrong with it). None and None where there is none. Blocks."""
    try:
        data = read_plain(sidecar_of(index), MAX_SIDECAR + 1)
    except FileNotFoundError:
        return None, None
    except OSError as error:
        return None, f"{sidecar_of(index).name} cannot be read: {error.strerror}"
    if len(data) > MAX_SIDECAR:
        return None, f"{sidecar_of(index).name} is larger than {MAX_SIDECAR} bytes and was not read"
    try:
        return SideCar.model_validate_json(data), None
    except ValidationError:
        return None, f"{sidecar_of(index).name} is not the side-car of an index and was not used"


def find_indexes(project: Project, patterns: Sequence[str], cache_dir: Path, nested: Sequence[Path] = ()) -> list[IndexFile]:
    """The indexes of a project, our own first, then those in the tree by path. Blocks, for a bounded time.

    Args:
        patterns: globs relative to the root, `/` between folders, `*` inside one name only.
        nested: roots of other projects below this one; their indexes are theirs.
    """
    own = cached_index(cache_dir, project.root)
    found = [IndexFile(own, project.root)] if own.is_file() else []
    depth = max((pattern.count("/") for pattern in patterns), default=0)
    apart = {os.fspath(path) for path in nested if path != project.root}
    left = MAX_SEEN
    level = [(os.fspath(project.root), "")]
    in_tree: list[str] = []
    for _ in range(depth + 1):
        below: list[tuple[str, str]] = []
        for directory, prefix in level:
            try:
                with os.scandir(directory) as entries:
                    for entry in entries:
                        left -= 1
                        if left < 0:
                            break
                        path = prefix + entry.name
                        if entry.is_dir(follow_symlinks=False):
                            if entry.name not in _NOT_ENTERED and entry.path not in apart:
                                below.append((entry.path, f"{path}/"))
                        elif any(_matches(path, pattern) for pattern in patterns) and entry.is_file(follow_symlinks=False):
                            in_tree.append(path)
            except OSError:
                continue
        level = sorted(below)
    return found + [
        IndexFile(project.root / path, (project.root / path).parent) for path in sorted(in_tree, key=lambda p: (p.count("/"), p))
    ]


def _matches(path: str, pattern: str) -> bool:
    """Component by component, so that `*` never crosses a slash."""
    parts, wanted = path.split("/"), pattern.split("/")
    return len(parts) == len(wanted) and all(fnmatchcase(part, want) for part, want in zip(parts, wanted, strict=True))


def document_root(index: IndexFile, written: str, project: Project) -> str:
    """What the index's paths start with, relative to the project: empty, or a folder with a slash at its end.

    The root that the indexer wrote is believed where it lies in this project; an index from another machine or work tree counts from
    where it lies.
    """
    root = os.fspath(project.root)
    stated = written.removeprefix("file://").removeprefix("localhost")
    for candidate in (decode_path(unquote_to_bytes(stated)) if written.startswith("file://") else "", os.fspath(index.base)):
        if candidate.startswith("/"):
            inside = os.path.relpath(os.path.normpath(candidate), root)
            if inside == ".":
                return ""
            if not inside.startswith(".."):
                return f"{inside}/"
    return ""
