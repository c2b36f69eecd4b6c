"""What a file's path says: whether its name answers the question, and whether it is a test, an example, prose or foreign code."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

from search_router.adapters.local.languages import is_generated_path, is_test_path, is_vendored_path
from search_router.adapters.local.qualified_names import subtokens
from search_router.schema import Intent

TEST_DAMPING = 0.7
SHOW_DAMPING = 0.7
VENDORED_DAMPING = 0.5

_SHOWS = re.compile(
    r"(^|/)(examples?|samples?|demos?|bench(es|marks?)?|docs?|changes|fixtures?|mocks?)/|\.(md|rst|adoc|txt)$"
    r"|(^|/)(changelog|changes|news|history)(\.\w+)?$",
    re.IGNORECASE,
)
_ASKS_FOR_TESTS = ("test", "spec", "fixtur", "mock")
_ASKS_FOR_SHOWS = ("exampl", "sampl", "demo", "bench", "doc", "change", "readme", "tutorial", "guide")
_ASKS_FOR_VENDORED = ("vendor", "generat", "third", "lock")
_NAMELESS = frozenset({"mod", "index", "init", "__init__", "lib", "main", "__main__"})
_SHORTEST_PREFIX = 4
_PATHS_KEPT = 65_536


def file_stem(path: str) -> str:
    """The file's name before its first dot; its directory's for `index`, `__init__` and others that name nothing."""
    *directories, name = path.split("/")
    stem = name.split(".")[0] or name
    return directories[-1] if stem.lower() in _NAMELESS and directories else stem


def path_damping(path: str, needles: Sequence[str], intent: Intent) -> float:
    """A factor of 0 to 1 for tests, examples and prose, vendored and generated files, unless the question asks for such files."""
    is_test, shows, is_foreign = _nature(path)
    factor = 1.0
    if is_test and not _asks(needles, _ASKS_FOR_TESTS):
        factor *= TEST_DAMPING
    if shows and intent is not Intent.DOCS and not _asks(needles, _ASKS_FOR_SHOWS):
        factor *= SHOW_DAMPING
    if is_foreign and not _asks(needles, _ASKS_FOR_VENDORED):
        factor *= VENDORED_DAMPING
    return factor


@lru_cache(maxsize=_PATHS_KEPT)
def _nature(path: str) -> tuple[bool, bool, bool]:
    """Whether a path is a test's, an example's or prose, vendored or generated."""
    return is_test_path(path), _SHOWS.search(path) is not None, is_vendored_path(path) or is_generated_path(path)


def stem_coverage(path: str, needles: Sequence[str]) -> float:
    """How much of the file's name the question says, 0 to 1: both of `cookie_jar` for cookie and jar, a third of `web_file_cookie`."""
    words = path_words(path).words
    if not words:
        return 0.0
    starts = tuple(needles)
    said = 0
    for word in words:
        if word.startswith(starts):
            said += 1
        elif len(word) >= _SHORTEST_PREFIX:
            said += any(needle.startswith(word) for needle in starts)
    return said / len(words)


class PathWords(NamedTuple):
    """What a file is called, in lower case: its stem, its directory, and the words of its stem."""

    stem: str
    directory: str
    words: tuple[str, ...]


@lru_cache(maxsize=_PATHS_KEPT)
def path_words(path: str) -> PathWords:
    """Thousands of files are ranked for one question, and asked for these each time."""
    stem = file_stem(path)
    return PathWords(stem.casefold(), path.rpartition("/")[0].casefold(), subtokens(stem))


def _asks(needles: Sequence[str], words: tuple[str, ...]) -> bool:
    return any(needle.casefold().startswith(words) for needle in needles)
