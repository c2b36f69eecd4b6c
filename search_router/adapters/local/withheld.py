"""Files that no answer shows, by `workspace.withhold`: whoever asks, and whichever expert found them.

The patterns are those of a `.gitignore` at each project's root (gitignore(5)), and hold for tracked files as well. They are resolved once,
when the workspace is looked at, and travel with each project: into the listing that every index is made from, into `grep`, into what other
experts say, and into what is fetched.
"""

from __future__ import annotations

import functools
import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Final, Protocol, cast

from search_router.schema import Hit, Project

FOLDERS_BELOW: Final = re.compile(r"(^!?|/)\*\*/ *$")
"""`folder/**/` means every folder below to git, and the folder itself to the library; `folder/**/*/` means the same to both."""
FOLDER_MARK: Final = "ps_d"
"""The library's group for the slash that ends the folder which a pattern matched."""


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
    ends = (*(at for at, letter in enumerate(folder) if letter == "/"), len(folder))
    return any(_excludes(patterns, f"{folder[:end]}/") for end in ends if end)


def _matches(patterns: tuple[str, ...], path: str) -> bool:
    return _excludes(patterns, path) or _excludes(patterns, f"{path}/")


def _excludes(patterns: tuple[str, ...], entry: str) -> bool:
    """Whether the last pattern that matches this very entry (a folder's ends with a slash) excludes it.

    The library lets a pattern that matches a folder match all that is below it too, where git asks for each entry anew.
    """
    for excludes, regex in reversed(_rules(patterns)):
        if any(_is_of(found, entry) for found in regex.finditer(entry)):
            return excludes
    return False


def _is_of(found: re.Match[str], entry: str) -> bool:
    """Whether a pattern matched the entry itself: not a folder above it, nor as the folder whose content it is about (`folder/**`)."""
    if FOLDER_MARK in found.re.groupindex:
        return found.end(FOLDER_MARK) in (-1, len(entry))
    return not (entry.endswith("/") and found.end() == len(entry))


@functools.lru_cache(maxsize=64)
def _rules(patterns: tuple[str, ...]) -> tuple[tuple[bool, re.Pattern[str]], ...]:
    from pathspec import GitIgnoreSpec  # no start needs it but one with such patterns

    spec = GitIgnoreSpec.from_lines(FOLDERS_BELOW.sub(r"\1**/*/", pattern) for pattern in patterns)
    rules = cast("list[_Rule]", list(spec.patterns))
    return tuple((each.include, each.regex) for each in rules if each.include is not None and each.regex is not None)


class _Rule(Protocol):
    """What is used of the library's patterns, whose own types are loose."""

    include: bool | None
    regex: re.Pattern[str] | None
