"""How much room a disk has, and how much of it caches leave: one that fills the disk would keep receipts from being written."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final, NamedTuple

RESERVE_BYTES: Final = 200 * 2**20
SMALL_DISK_SHARE: Final = 10
"""On a small disk a tenth of it is left, and not the whole reserve: else nothing could ever be kept there."""
LEAST_BYTES: Final = 4 * 2**20
"""But so much always: a write of a cache, with its journal, may be as large."""


class DiskSpace(NamedTuple):
    """Of the file system that a path lies on, in bytes: what this user may still write, and the size of all."""

    free: int
    total: int


def measure_disk(path: Path) -> DiskSpace | None:
    """The disk that `path` lies on, or would lie on once it is made; None when nobody can tell."""
    for place in (path, *path.parents):
        try:
            found = os.statvfs(place)
        except (FileNotFoundError, NotADirectoryError):
            continue
        except OSError:
            return None
        return DiskSpace(found.f_bavail * found.f_frsize, found.f_blocks * found.f_frsize)
    return None


@dataclass(frozen=True, slots=True)
class Reserve:
    """What caches leave free for everything else; 0 bytes: nothing. `measure` is asked before each write that makes a file grow."""

    bytes: int = RESERVE_BYTES
    measure: Callable[[Path], DiskSpace | None] = measure_disk

    def lack(self, path: Path) -> str | None:
        """Why nothing more may be kept at `path`, as a clause with the remedy; None while there is room."""
        disk = self.measure(path) if self.bytes else None
        left = min(self.bytes, max(disk.total // SMALL_DISK_SHARE, LEAST_BYTES)) if disk else 0
        if disk is None or disk.free >= left:
            return None
        return (
            f"its disk has {disk.free >> 20} MiB free, and index.reserve_mib leaves the last "
            f"{left >> 20} MiB to receipts; free some, or run `search-router index gc`"
        )


DEFAULT_RESERVE: Final = Reserve()
