"""The grammars: one wheel and one query file a language, both loaded when that language is met first."""

from __future__ import annotations

import functools
import hashlib
import importlib
import importlib.metadata
import importlib.resources
from dataclasses import dataclass
from typing import Final

import tree_sitter

CODE_VERSION: Final = "5"
"""The one number in the name of everything that is derived from a file: raise it when our code makes something else of the same bytes.

`tests/adapters/local/test_derived_version.py` fails until it is raised. Queries, grammars and tree-sitter name themselves.
"""

_WHEELS: Final = {
    "python": ("tree-sitter-python", "language"),
    "javascript": ("tree-sitter-javascript", "language"),
    "typescript": ("tree-sitter-typescript", "language_typescript"),
    "tsx": ("tree-sitter-typescript", "language_tsx"),
    "go": ("tree-sitter-go", "language"),
    "rust": ("tree-sitter-rust", "language"),
    "java": ("tree-sitter-java", "language"),
    "c": ("tree-sitter-c", "language"),
    "cpp": ("tree-sitter-cpp", "language"),
    "csharp": ("tree-sitter-c-sharp", "language"),
    "ruby": ("tree-sitter-ruby", "language"),
    "php": ("tree-sitter-php", "language_php"),
    "kotlin": ("tree-sitter-kotlin", "language"),
    "swift": ("tree-sitter-swift", "language"),
    "scala": ("tree-sitter-scala", "language"),
    "bash": ("tree-sitter-bash", "language"),
    "lua": ("tree-sitter-lua", "language"),
    "elixir": ("tree-sitter-elixir", "language"),
    "haskell": ("tree-sitter-haskell", "language"),
}
SYNTAX_LANGUAGES: Final = frozenset(_WHEELS)


class ExtractionFailed(Exception):
    """This file gave no syntax: its grammar is not installed or cannot be loaded, or a limit ended it. The message says which."""


TIMED_OUT = "parsing it took longer than "
"""How its message begins, also after it came from a child process."""


class ExtractionTimedOut(ExtractionFailed):
    """The time limit ended it: on another day, or another machine, the same bytes may give syntax."""


@dataclass(frozen=True, slots=True)
class Grammar:
    """A loaded grammar with its three compiled queries."""

    language: tree_sitter.Language
    definitions: tree_sitter.Query
    references: tree_sitter.Query
    edges: tree_sitter.Query


@functools.cache
def load_grammar(language: str) -> Grammar:
    """The grammar and queries of one of SYNTAX_LANGUAGES.

    Raises:
        ExtractionFailed: no such language, or its wheel is missing or does not fit this tree-sitter.
    """
    if language not in _WHEELS:
        raise ExtractionFailed(f"no grammar for {language}")
    wheel, entry = _WHEELS[language]
    try:
        module = importlib.import_module(wheel.replace("-", "_"))
        capsule: object = getattr(module, entry)()
        loaded = tree_sitter.Language(capsule)
        definitions, rest = _query_text(language).split(";; references", 1)
        references, edges = rest.split(";; edges", 1)
        return Grammar(loaded, *(tree_sitter.Query(loaded, text) for text in (definitions, references, edges)))
    except (ImportError, AttributeError, ValueError) as error:
        raise ExtractionFailed(f"the grammar wheel {wheel} is not usable: {error}") from error


@functools.cache
def extractor_version(language: str) -> str:
    """Names everything that decides what is extracted: our code and query, the grammar wheel, the tree-sitter library."""
    if language not in _WHEELS:
        return CODE_VERSION
    parts = [CODE_VERSION, importlib.metadata.version("tree-sitter")]
    for each in (language, "cpp") if language == "c" else (language,):
        try:
            wheel = importlib.metadata.version(_WHEELS[each][0])
        except importlib.metadata.PackageNotFoundError:
            wheel = "missing"
        parts += [wheel, hashlib.sha256(_query_text(each).encode()).hexdigest()[:12]]
    return "+".join(parts)


def grammar_wheel(language: str) -> str:
    """The distribution that carries the grammar of one of SYNTAX_LANGUAGES."""
    return _WHEELS[language][0]


@functools.cache
def _query_text(language: str) -> str:
    return (importlib.resources.files(__name__) / f"{language}.scm").read_text("utf-8")
