"""Files that no answer shows, by `workspace.withhold`: whoever asks, and whichever expert found them.

The patterns are those of a `.gitignore` at each project's root (gitignore(5)), and hold for tracked files as well. They are resolved once,
when the workspace is looked at, and travel with each project: into the listing that every index is made from, into `grep`, into what other
experts say, and into what is fetched.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from search_router.schema import Hit, Project

if TYPE_CHECKING:
    from pathspec import GitIgnoreSpec


def withholds(project: Project, path: str) -> bool:
    """Whether this file, relative to the project's root, is shown to nobody."""
    return bool(project.withheld) and _spec(project.withheld).match_file(path)


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


@functools.lru_cache(maxsize=64)
def _spec(patterns: tuple[str, ...]) -> GitIgnoreSpec:
    from pathspec import GitIgnoreSpec  # no start needs it but one with such patterns

    return GitIgnoreSpec.from_lines(patterns)
