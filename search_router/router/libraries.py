"""Which libraries a workspace knows: the names in its own manifests, so that a question that names one can go to the docs.

Blocking file reads: callers run it in a worker thread.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from threading import Lock

from search_router.adapters.local.dependency_manifests import manifest_reader

MAX_MANIFESTS = 200
MAX_MANIFEST_BYTES = 2**20
MAX_DEPTH = 2
MAX_ENTRIES = 20_000
SKIPPED_FOLDERS = frozenset({"node_modules", "vendor", "dist", "build", "target", "venv", "site-packages", "__pycache__", "third_party"})
_GO_VERSION = re.compile(r"v\d+")


@dataclass(frozen=True, slots=True)
class ManifestProblem:
    """A manifest that was not read, relative to the root, and why."""

    path: str
    message: str


@dataclass(frozen=True, slots=True)
class Libraries:
    """Lower-case names of the libraries that a workspace declares, the manifests they come from, and those that could not be read."""

    names: frozenset[str]
    manifests: tuple[str, ...]
    problems: tuple[ManifestProblem, ...]


@dataclass(frozen=True, slots=True)
class _Entry:
    mtime_ns: int
    size: int
    names: frozenset[str]
    problem: str | None


class LibraryCatalog:
    """Remembers what each manifest declared, and reads again only those whose time or size has changed. Safe to share by threads."""

    def __init__(self) -> None:
        self._entries: dict[Path, _Entry] = {}
        self._lock = Lock()
        self.files_read = 0

    def read(self, root: Path) -> Libraries:
        """The libraries of the manifests in `root` and two levels below it: at most 200 manifests of at most 1 MiB each.

        A malformed manifest, one that is too large, or one that cannot be read is a problem in the result, never an exception;
        so is a root that is gone.
        """
        names: set[str] = set()
        manifests: list[str] = []
        problems: list[ManifestProblem] = []
        with self._lock:
            for path, problem in _find_manifests(root):
                relative = path.relative_to(root).as_posix()
                entry = None if problem else self._entry(path)
                if entry is None or entry.problem is not None:
                    problems.append(ManifestProblem(relative, problem or (entry.problem if entry else None) or "is gone"))
                else:
                    manifests.append(relative)
                    names.update(entry.names)
        return Libraries(frozenset(names), tuple(manifests), tuple(problems))

    def _entry(self, path: Path) -> _Entry:
        try:
            status = path.stat()
            known = self._entries.get(path)
            if known is None or (known.mtime_ns, known.size) != (status.st_mtime_ns, status.st_size):
                known = _read_entry(path, status)
                self.files_read += 1
                self._entries[path] = known
        except OSError as error:
            return _Entry(0, 0, frozenset(), f"cannot be read: {error.strerror}")
        return known


def known_libraries(root: Path) -> frozenset[str]:
    """The names alone, read afresh; long-lived callers keep a `LibraryCatalog`."""
    return LibraryCatalog().read(root).names


# ------------------------------------------------------------------ finding


def _find_manifests(root: Path) -> Iterator[tuple[Path, str | None]]:
    """Manifests in breadth-first, sorted order, so that the limit cuts the deepest ones; symbolic links are not followed."""
    level, found, entries = [root], 0, 0
    for depth in range(MAX_DEPTH + 1):
        below: list[Path] = []
        for folder in level:
            try:
                with os.scandir(folder) as scan:
                    children = sorted(scan, key=lambda child: child.name)
            except OSError as error:
                yield folder, f"cannot be listed: {error.strerror}"
                continue
            entries += len(children)
            if entries > MAX_ENTRIES:
                yield folder, f"is not searched: more than {MAX_ENTRIES} directory entries"
                return
            for child in children:
                if _is_folder(child):
                    below.append(Path(child.path))
                elif manifest_reader(child.name) and child.is_file(follow_symlinks=False):
                    found += 1
                    if found > MAX_MANIFESTS:
                        yield Path(child.path), f"is not read: more than {MAX_MANIFESTS} manifests"
                        return
                    yield Path(child.path), None
        level = below if depth < MAX_DEPTH else []


def _is_folder(child: os.DirEntry[str]) -> bool:
    return not child.name.startswith(".") and child.name not in SKIPPED_FOLDERS and child.is_dir(follow_symlinks=False)


# ------------------------------------------------------------------ reading


def _read_entry(path: Path, status: os.stat_result) -> _Entry:
    reader = manifest_reader(path.name)
    if reader is None or not stat.S_ISREG(status.st_mode):
        return _Entry(status.st_mtime_ns, status.st_size, frozenset(), "is not a regular file")
    if status.st_size > MAX_MANIFEST_BYTES:
        return _Entry(status.st_mtime_ns, status.st_size, frozenset(), f"is larger than {MAX_MANIFEST_BYTES} bytes")
    with path.open("rb") as file:
        data = file.read(MAX_MANIFEST_BYTES)
    try:
        names = frozenset(variant for name in reader(data) for variant in _variants(name))
    except ValueError as error:  # also UnicodeDecodeError, TOMLDecodeError and JSONDecodeError
        return _Entry(status.st_mtime_ns, status.st_size, frozenset(), f"is malformed: {str(error)[:200]}")
    return _Entry(status.st_mtime_ns, status.st_size, names, None)


def _variants(name: str) -> Iterator[str]:
    """The declared name, and how it is spelled in prose and imports: without scope or host, with `-` and `_` exchanged.

    `@tanstack/react-query` is also `react-query`; `github.com/gin-gonic/gin/v2` is also `gin`. Nothing else is guessed.
    """
    full = name.lower()
    parts = [part for part in full.split("/") if part]
    if len(parts) > 1 and _GO_VERSION.fullmatch(parts[-1]):
        parts.pop()
    last = re.sub(r"\.v\d+\Z", "", parts[-1]) if parts else full
    for spelling in (full, last):
        if len(spelling) > 1:
            yield from (spelling, spelling.replace("-", "_"), spelling.replace("_", "-"))
