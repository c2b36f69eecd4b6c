"""What a file's path says: whether its name answers the question, and whether it is a test, an example, prose or foreign code."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache

from search_router.schema import Intent

TEST_DAMPING = 0.7
SHOW_DAMPING = 0.7
VENDORED_DAMPING = 0.5

_TESTS = re.compile(
    r"(^|/)(tests?|specs?|__tests__|testing|testdata|fixtures?|mocks?|e2e)/|(^|/)(test_|conftest\.)|[_.](test|spec)s?\.\w+$|[a-z]Tests?\.\w+$"
)
_SHOWS = re.compile(
    r"(^|/)(examples?|samples?|demos?|bench(es|marks?)?|docs?|changes)/|\.(md|rst|adoc|txt)$|(^|/)(changelog|changes|news|history)(\.\w+)?$",
    re.IGNORECASE,
)
_VENDORED = re.compile(
    r"(^|/)(vendor|node_modules|third[_-]party|dist|generated)/|\.min\.(js|css)$|(_pb2\.py|\.pb\.go|\.map|\.lock|-lock\.json)$",
    re.IGNORECASE,
)
_ASKS_FOR_TESTS = ("test", "spec", "fixtur", "mock")
_ASKS_FOR_SHOWS = ("exampl", "sampl", "demo", "bench", "doc", "change", "readme", "tutorial", "guide")
_ASKS_FOR_VENDORED = ("vendor", "generat", "third", "lock")
_SUBWORD = re.compile(r"[A-Z]+(?=[A-Z][a-z])|[A-Z]?[^\W\d_A-Z]+|[A-Z]+|\d+")
_NAMELESS = frozenset({"mod", "index", "init", "__init__", "lib", "main", "__main__"})
_SHORTEST_PREFIX = 4


@lru_cache(maxsize=4096)
def subwords(name: str) -> tuple[str, ...]:
    """The words of an identifier or file name in lower case: `HTTPServer_v2` has http, server, v, 2."""
    return tuple(word.casefold() for word in _SUBWORD.findall(name))


def file_stem(path: str) -> str:
    """The file's name before its first dot; its directory's for `index`, `__init__` and others that name nothing."""
    *directories, name = path.split("/")
    stem = name.split(".")[0] or name
    return directories[-1] if stem.lower() in _NAMELESS and directories else stem


def path_damping(path: str, needles: Sequence[str], intent: Intent) -> float:
    """A factor of 0 to 1 for tests, examples and prose, vendored and generated files, unless the question asks for such files."""
    factor = 1.0
    if _TESTS.search(path) and not _asks(needles, _ASKS_FOR_TESTS):
        factor *= TEST_DAMPING
    if _SHOWS.search(path) and intent is not Intent.DOCS and not _asks(needles, _ASKS_FOR_SHOWS):
        factor *= SHOW_DAMPING
    if _VENDORED.search(path) and not _asks(needles, _ASKS_FOR_VENDORED):
        factor *= VENDORED_DAMPING
    return factor


def stem_coverage(path: str, needles: Sequence[str]) -> float:
    """How much of the file's name the question says, 0 to 1: both of `cookie_jar` for cookie and jar, a third of `web_file_cookie`."""
    words = subwords(file_stem(path))
    return sum(any(_related(word, needle) for needle in needles) for word in words) / max(1, len(words))


def _related(word: str, needle: str) -> bool:
    return word.startswith(needle) or (len(word) >= _SHORTEST_PREFIX and needle.startswith(word))


def _asks(needles: Sequence[str], words: tuple[str, ...]) -> bool:
    return any(needle.casefold().startswith(words) for needle in needles)
