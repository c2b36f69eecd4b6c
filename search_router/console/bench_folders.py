"""The folder in which results of `bench run` are kept: which runs there are, and the summary of one. Synchronous; for a worker thread.

Whoever can write the folder can put anything there: only plain files of a bounded size are read, and a run is known by a digest of its
folder's name, so that no name reaches an address or a command line as it is.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple

from search_router.console.shown import members
from search_router.errors import SearchRouterError
from search_router.plain_files import read_plain
from search_router.wire_text import encodable

SUMMARY: Final = "summary.json"
RUN_ID: Final = "[0-9a-f]{12}"
MAX_BYTES: Final = 8 * 2**20
FOLDERS: Final = 2_000
"""Entries of the folder that are looked at."""
KEPT: Final = 100
"""Summaries that are remembered."""


class RunNotFound(SearchRouterError):
    """No run of this id, or none that may be seen."""

    code = "run-not-found"


class RunsUnavailable(SearchRouterError):
    """The folder of the results cannot be read, or two runs could not be compared."""

    code = "runs-unavailable"


class Folder(NamedTuple):
    """One result folder. `stamp` is (time of the summary in ns, its size), newer is greater; (0, 0) when it has none."""

    id: str
    path: Path
    stamp: tuple[int, int]


class Summary(NamedTuple):
    """What a folder's summary says, or why it cannot be read."""

    facts: Mapping[str, Any]
    unreadable: str


class RunFolders:
    """The results below one folder, which need not exist yet."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._kept: dict[tuple[str, tuple[int, int]], Summary] = {}

    def listed(self) -> list[Folder]:
        """Every folder with a summary, newest first, among the first FOLDERS entries. Raises RunsUnavailable."""
        found: list[Folder] = []
        try:
            with os.scandir(self._folder) as entries:
                for entry, _ in zip(entries, range(FOLDERS), strict=False):
                    folder = _look_at(Path(entry.path))
                    if folder is not None:
                        found.append(folder)
        except FileNotFoundError:
            return []
        except OSError as error:
            raise RunsUnavailable(
                f"The results in {encodable(str(self._folder))} cannot be read: {error.strerror}.",
                remedy="Set http.bench_results to a folder that the server may read.",
            ) from error
        return sorted(found, key=lambda f: (f.stamp, f.id), reverse=True)

    def find(self, run_id: str) -> Folder:
        """Raises RunNotFound, RunsUnavailable."""
        for folder in self.listed():
            if folder.id == run_id:
                return folder
        raise RunNotFound(f"There is no run {run_id}.", remedy="/api/experiments/runs lists those that there are.")

    def summary(self, folder: Folder) -> Summary:
        """Read once for as long as the file stays the same."""
        key = (folder.id, folder.stamp)
        if (kept := self._kept.get(key)) is not None:
            return kept
        read = _read_summary(folder.path / SUMMARY)
        while len(self._kept) >= KEPT:
            self._kept.pop(next(iter(self._kept)), None)
        self._kept[key] = read
        return read


def _look_at(path: Path) -> Folder | None:
    try:
        there = (path / SUMMARY).lstat()
    except OSError:  # no result folder, or one that is being written
        return None
    run_id = hashlib.sha256(os.fsencode(path.name)).hexdigest()[:12]
    return Folder(run_id, path, (there.st_mtime_ns, there.st_size))


def _read_summary(path: Path) -> Summary:
    try:
        text = read_plain(path, MAX_BYTES + 1)
    except OSError as error:
        return Summary({}, f"{SUMMARY}: {error.strerror}.")
    if len(text) > MAX_BYTES:
        return Summary({}, f"{SUMMARY} has more than {MAX_BYTES // 2**20} MiB.")
    try:
        read: object = json.loads(text)
    except (ValueError, RecursionError):
        return Summary({}, f"{SUMMARY} is not JSON.")
    facts = members(read)
    return Summary(facts, "" if facts else f"{SUMMARY} holds no run.")
