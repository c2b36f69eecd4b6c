"""Files that no answer shows, by `workspace.withhold`: whoever asks, and whichever expert found them.

The patterns are those of a `.gitignore` at each project's root (gitignore(5)), and hold for tracked files as well. They are resolved once,
when the workspace is looked at, and travel with each project: into the listing that every index is made from, into `grep`, into what other
experts say, and into what is fetched.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from search_router.schema import Hit, Project

if TYPE_CHECKING:
    from pathspec import GitIgnoreSpec


def withholds(project: Project, path: str) -> bool:
    """Whether this file or folder, relative to the project's root, is shown to nobody; so is everything below a withheld folder.

    A name is tried as a file's and as a folder's, because it may be a submodule, or have been either in the past.
    """
    if not project.withheld:
        return False
    path = path.strip("/")
    return _is_below_withheld(project.withheld, path.rpartition("/")[0]) or _matches(project.withheld, path)


def withholds_place(project: Project, path: str) -> bool:
    """As `withholds`, also for a path that leads there through symbolic links."""
    if not project.withheld or withholds(project, path):
        return bool(project.withheld)
    root, real = os.path.realpath(project.root), os.path.realpath(project.root / path)
    return real.startswith(f"{root}/") and withholds(project, real[len(root) + 1 :])


def shown_paths(hits: Iterable[Hit], projects: Mapping[str, Project]) -> list[Hit]:
    """The hits, commits without the names of withheld files; those that touch nothing else are left out."""
    found: list[Hit] = []
    for hit in hits:
        project = projects.get(hit.project)
        if project is None or not project.withheld or hit.commit is None or not hit.commit.paths:
            found.append(hit)
        elif shown := tuple(path for path in hit.commit.paths if not withholds(project, path)):
            found.append(replace(hit, commit=replace(hit.commit, paths=shown)))
    return found


@functools.lru_cache(maxsize=65_536)
def _is_below_withheld(patterns: tuple[str, ...], folder: str) -> bool:
    """git looks into no folder that is excluded, so that no later pattern can take in again what is below it."""
    for end in (*(at for at, letter in enumerate(folder) if letter == "/"), len(folder)):
        if end and _spec(patterns).match_file(f"{folder[:end]}/"):
            return True
    return False


def _matches(patterns: tuple[str, ...], path: str) -> bool:
    spec = _spec(patterns)
    return spec.match_file(path) or spec.match_file(f"{path}/")


@functools.lru_cache(maxsize=64)
def _spec(patterns: tuple[str, ...]) -> GitIgnoreSpec:
    from pathspec import GitIgnoreSpec  # no start needs it but one with such patterns

    return GitIgnoreSpec.from_lines(patterns)
