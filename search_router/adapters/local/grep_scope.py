"""Which files of a project a search may return: inside the scope's path, of its language, and of no other project below."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path, PurePosixPath

from search_router.adapters.local.grep_matches import for_system
from search_router.adapters.local.languages import LANGUAGES, language_of, languages_named
from search_router.errors import MAKE_READABLE, ExpertError, FailureClass
from search_router.schema import Project


def globs_for_language(language: str | None) -> tuple[str, ...]:
    """File name patterns that every file of a language fits, whatever its case; none for no language. `is_of_language` decides.

    Raises:
        ExpertError: `rejected` for a language that nobody has told us the files of.
    """
    globs: list[str] = []
    for name in sorted(languages_named(language)):
        if name not in LANGUAGES:
            raise ExpertError(
                FailureClass.REJECTED,
                f"No file names are known for the language {language!r}.",
                remedy=f"Leave scope.language out, or use one of: {', '.join(LANGUAGES)}.",
            )
        globs += [f"*.{_any_case(extension)}" for extension in LANGUAGES[name].extensions]
        # With a star behind: Dockerfile.dev and Makefile.am are of their languages too.
        globs += [f"{_any_case(file)}*" for file in LANGUAGES[name].names]
    return tuple(globs)


def is_of_language(path: str, language: str | None) -> bool:
    """Whether the file's name says that it is of the language; no language means every file."""
    return language is None or language_of(path) in languages_named(language)


def _any_case(text: str) -> str:
    return "".join(f"[{c.lower()}{c.upper()}]" if c.isalpha() else c for c in text)


def read_scope_path(path: str | None) -> str:
    """The scope's path in normal form, relative to a project's root; empty for the whole project.

    Raises:
        ExpertError: `rejected` for a path that is absolute, climbs, goes into `.git`, or no file system can have.
    """
    if path is None:
        return ""
    parts = PurePosixPath(path).parts
    if path.startswith("/") or ".." in parts or "\0" in path:
        raise ExpertError(
            FailureClass.REJECTED,
            "scope.path leaves the project.",
            remedy="Give a path relative to the project's root, without `..`.",
        )
    if ".git" in parts:
        raise ExpertError(
            FailureClass.REJECTED, "scope.path is inside .git, which is never searched.", remedy="Give a path of the work tree."
        )
    try:
        return for_system("/".join(parts))
    except UnicodeEncodeError as error:
        raise ExpertError(FailureClass.REJECTED, "scope.path is not valid Unicode.", remedy="Give a path that exists.") from error


def holds_scope(root: Path, path: str) -> bool:
    """Whether the scope's path exists in the project.

    Raises:
        ExpertError: `rejected` when it exists and a symbolic link takes it out of the project; `suspect-empty` when a folder on the
            way may not be entered.
    """
    if not path:
        return True
    try:
        real = (root / path).resolve(strict=True)
    except PermissionError as error:
        message = f"Whether scope.path {path!r} exists cannot be seen: {error.strerror}."
        raise ExpertError(FailureClass.SUSPECT_EMPTY, message, remedy=MAKE_READABLE) from error
    except (OSError, RuntimeError):
        return False
    if not real.is_relative_to(root.resolve()):
        raise ExpertError(
            FailureClass.REJECTED, "scope.path leaves the project through a symbolic link.", remedy="Search the project that it leads to."
        )
    return True


def nested_roots(project: Project, visible: Sequence[Project]) -> tuple[str, ...]:
    """The roots of other visible projects below this one's, relative to it, so that no file is found in two projects."""
    found = {other.root.relative_to(project.root).as_posix() for other in visible if other.root.is_relative_to(project.root)}
    return tuple(sorted(found - {"."}))


class Ownership:
    """Tells whether a path below a project's root is the project's own. For one search: directories are looked at once.

    In a git project a directory with a `.git` of its own is another repository, a submodule or a linked worktree: git does not count
    its files as the project's, and a worktree's would be copies from another branch.
    """

    def __init__(self, project: Project, nested: Sequence[str]) -> None:
        self._root = project.root
        self._is_git = project.kind != "directory"
        self._own: dict[str, bool] = {"": True} | dict.fromkeys(nested, False)
        self.foreign: set[str] = set()

    def owns(self, path: str) -> bool:
        return self._owns_directory(path.rpartition("/")[0])

    def _owns_directory(self, directory: str) -> bool:
        known = self._own.get(directory)
        if known is None:
            known = self._owns_directory(directory.rpartition("/")[0])
            if known and self._is_git and os.path.lexists(self._root / directory / ".git"):
                known = False
                self.foreign.add(directory)
            self._own[directory] = known
        return known


def has_parent_ignore_file(root: Path) -> bool:
    """Whether a directory above a plain directory has a `.gitignore`, which is none of the directory's business."""
    return any((parent / ".gitignore").is_file() for parent in root.resolve().parents)


def is_real_file(root: Path, path: str) -> bool:
    """Whether a regular file is there, and no symbolic link on the way to it: a link's target may be outside of the project."""
    real = root.resolve() / path
    return real.is_file() and real.resolve() == real
