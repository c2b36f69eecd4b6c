"""Folders that a package manager filled: what a project uses, and not what it is. Such a folder says so by a file in it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

INSTALLED: Final = "installed packages"
MARKERS: Final = (
    "pyvenv.cfg",  # a virtual environment of Python, PEP 405
    "conda-meta/history",
    "node_modules/.package-lock.json",  # npm, and the next two: yarn, pnpm
    "node_modules/.yarn-integrity",
    "node_modules/.modules.yaml",
)
"""Each lies in the folder that it marks, or in one of a fixed name below it."""
_IN_NODE_MODULES: Final = "node_modules/"


def installed_folders(paths: Iterable[str]) -> tuple[str, ...]:
    """The marked folders among these paths, each with a slash at its end, for `str.startswith`. A project is never one itself."""
    found: set[str] = set()
    for path in paths:
        if path.endswith(MARKERS):
            marker = next(each for each in MARKERS if path.endswith(each))
            folder = path[: -len(marker)]
            if folder and not folder.endswith("/"):
                continue  # such as `my-pyvenv.cfg`
            folder += _IN_NODE_MODULES if marker.startswith(_IN_NODE_MODULES) else ""
            found.add(folder)
    found.discard("")
    return tuple(sorted(found))
