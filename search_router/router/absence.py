"""Why a scope leaves nothing to search, so that nothing there is never taken for nothing found. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import PurePosixPath

from search_router.adapters.local.languages import LANGUAGES, languages_named, text_language
from search_router.schema import Scope


def scope_lack(scope: Scope, paths: Sequence[str]) -> str | None:
    """Why none of these paths (of all visible projects) is in the scope; None when one is, or when names cannot tell."""
    below = [path for path in paths if scope.path is None or _is_below(path, scope.path)]
    if scope.path is not None and not below:
        return f"scope.path {scope.path[:200]!r}: no searchable file is there, it does not exist or an ignore rule matches it"
    asked = languages_named(scope.language)
    if scope.language in LANGUAGES and not any(text_language(path) in asked for path in below):
        where = " below scope.path" if scope.path is not None else ""
        return f"scope.language {scope.language!r}: no file{where} is in it, by the files' names"
    return None


def _is_below(path: str, scope: str) -> bool:
    """Whether a path is the scope's file or lies in its folder."""
    return PurePosixPath(path).is_relative_to(PurePosixPath(scope))
