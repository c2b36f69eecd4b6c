"""Definitions and references of one file, by tree-sitter: syntactic, so names are matched and never resolved.

What to take from a tree stands in `grammars/LANGUAGE.scm`, what to make of it here: raise CODE_VERSION there when that changes.
Nothing recurses over the tree, and every parse has a time limit.
"""

from __future__ import annotations

import dataclasses
import re
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final, NamedTuple

import tree_sitter

from search_router.adapters.local.edges import NO_EDGES, FileEdges, read_edges
from search_router.adapters.local.grammars import TIMED_OUT, ExtractionFailed, ExtractionTimedOut, Grammar, load_grammar
from search_router.adapters.local.qualified_names import cut_qualified, plain_name
from search_router.inside import Definition

EXTRACT_SECONDS: Final = 5.0
"""A file that takes longer than this is left out: some 20 times what 2 MB of ordinary code take."""
DEEPEST: Final = 50_000
"""Beyond some 65,000 levels a query takes a time that grows with the square of the depth, and it cannot be broken off."""
DEPTH_SAMPLES: Final = 32
REFERENCE_KINDS: Final = ("call", "import", "type", "use")
"""Strongest first; a name counts once a line, with its strongest kind."""

MATCH_LIMIT: Final = 1 << 16
MOST_LOOSE_NODES: Final = 10_000
"""A tree that is one error holds its nodes in a flat list, which a query walks in quadratic time: 0.25 s for so many."""

_CHUNK = 1 << 16
# A `.h` is C by its name; these lines tell that it is C++ and would be lost in C's grammar.
_CPP_SIGNS = re.compile(
    rb"^[ \t]*(?:namespace\s+[\w:]+\s*\{|template\s*<|class\s+\w+[^;=()]*[{:]|(?:public|private|protected)\s*:)", re.MULTILINE
)
_TYPES = frozenset({"class", "interface", "struct", "enum", "trait", "scope.type"})
_CALLABLES = frozenset({"function", "method", "macro"})
_CONTAINERS = _TYPES | _CALLABLES | {"module", "scope.module", "variable", "constant"}
_CLAUSES = frozenset({"haskell", "elixir"})
"""Languages where one function is written as several clauses, one after the other."""


class Reference(NamedTuple):
    """A name in a call or use position: 1-based line; kind is one of REFERENCE_KINDS."""

    name: str
    line: int
    kind: str


@dataclass(frozen=True, slots=True)
class Extracted:
    """What one file defines and mentions, both in reading order, and its edges."""

    definitions: tuple[Definition, ...]
    references: tuple[Reference, ...]
    edges: FileEdges = NO_EDGES


@dataclass(slots=True)
class _Found:
    """A definition or scope as matched, before it is known what contains it. Rows are 0-based."""

    name: str
    front: str
    kind: str
    pattern: int
    start: int
    end: int
    start_row: int
    end_row: int


class _Around(NamedTuple):
    """What is open at a place of the sweep: byte range, qualified name, kind."""

    start: int
    end: int
    qualified: str
    kind: str


_OUTSIDE = _Around(-1, 0, "", "")


def extract(source: bytes, language: str, *, seconds: float = EXTRACT_SECONDS) -> Extracted:
    """Definitions and references of UTF-8 `source`; syntax errors in it are tolerated.

    Raises:
        ExtractionFailed: no grammar for the language, or more than `seconds` of work.
    """
    grammar = load_grammar("cpp" if language == "c" and _CPP_SIGNS.search(source) else language)
    ends = time.monotonic() + seconds

    def late(*_: object) -> bool:
        return time.monotonic() > ends

    try:
        # A new parser each time: after a cancelled parse the next one would go on in the old text.
        tree = tree_sitter.Parser(grammar.language).parse(lambda offset, _: source[offset : offset + _CHUNK], progress_callback=late)
    except ValueError as error:
        raise ExtractionTimedOut(f"{TIMED_OUT}{seconds:g} s") from error
    if tree.root_node.is_error and tree.root_node.child_count > MOST_LOOSE_NODES:
        raise ExtractionFailed(f"it is not {language}: no part of it could be parsed")
    if len(source) > DEEPEST and _depth(tree.root_node) > DEEPEST:
        raise ExtractionFailed(f"its syntax is nested more than {DEEPEST} levels deep")
    found, name_starts = _match_definitions(grammar, tree.root_node, source)
    edges, called = read_edges(grammar.edges, tree.root_node, source, language, name_starts, match_limit=MATCH_LIMIT)
    references = _read_references(grammar, tree.root_node, source, name_starts, called)
    placed = _place_definitions(found)
    definitions = _join_clauses(placed) if language in _CLAUSES else [definition for definition, _ in placed]
    return Extracted(tuple(definitions), references, edges)


def _depth(root: tree_sitter.Node) -> int:
    """About how deep the tree is: the deepest of some nodes at equal distances. A chain that makes it deep is much of the tree."""
    cursor, count, deepest = root.walk(), root.descendant_count, 0
    for number in range(DEPTH_SAMPLES):
        cursor.goto_descendant(count * number // DEPTH_SAMPLES)
        deepest = max(deepest, cursor.depth)
    return deepest


def _open_cursor(query: tree_sitter.Query) -> tree_sitter.QueryCursor:
    """A cursor that is bounded by the matches it may hold open.

    Not by a progress callback: in py-tree-sitter 0.25 and 0.26 the cursor keeps a pointer to options that are gone by then, and the
    process dies. But for one flat error and very deep trees, a query is linear in the tree, and the tree is bounded by the parse.
    """
    return tree_sitter.QueryCursor(query, match_limit=MATCH_LIMIT)


def _match_definitions(grammar: Grammar, root: tree_sitter.Node, source: bytes) -> tuple[list[_Found], set[int]]:
    """What the query found, one for each name; and the byte offsets of those names, which are no references."""
    found: dict[int, _Found] = {}
    cursor = _open_cursor(grammar.definitions)
    matches = cursor.matches(root)
    if cursor.did_exceed_match_limit:
        raise ExtractionFailed("its syntax tree holds too many unfinished matches")
    for pattern, captures in matches:
        names = captures.get("name") or captures.get("qualified")
        roles = [role for role in captures if role.startswith(("definition.", "scope.", "range"))]
        if not names or not roles:
            continue
        whole, kind = captures[roles[0]][0], roles[0].removeprefix("definition.")
        start, end, rows = whole.start_byte, whole.end_byte, _rows(whole)
        known = found.get(names[0].start_byte)
        if known is None:
            text = source[names[0].start_byte : names[0].end_byte].decode("utf-8", "replace")
            front, name = cut_qualified(text) if "qualified" in captures else ("", plain_name(text))
            if "container" in captures:
                holder = captures["container"][0]
                front = source[holder.start_byte : holder.end_byte].decode("utf-8", "replace")
            found[names[0].start_byte] = _Found(name, front, kind, pattern, start, end, *rows)
            continue
        if kind != "range" and (pattern < known.pattern or known.kind == "range"):
            known.kind, known.pattern = kind, pattern
            if "container" in captures:
                holder = captures["container"][0]
                known.front = source[holder.start_byte : holder.end_byte].decode("utf-8", "replace")
        known.start, known.end = min(known.start, start), max(known.end, end)
        known.start_row, known.end_row = min(known.start_row, rows[0]), max(known.end_row, rows[1])
    # The name of a scope, such as the type of a Rust impl, is a use of what is defined elsewhere.
    defining = {start for start, each in found.items() if not each.kind.startswith("scope.")}
    return [each for each in found.values() if each.kind != "range" and each.name], defining


def _rows(node: tree_sitter.Node) -> tuple[int, int]:
    """First and last 0-based row; a node that ends before the first column of a row does not reach into it."""
    first, (last, column) = node.start_point[0], node.end_point
    return first, last - 1 if column == 0 and last > first else last


def _place_definitions(found: Iterable[_Found]) -> list[tuple[Definition, int]]:
    """Name each definition's container and settle its kind, by one sweep over the ranges from the outside in.

    With each definition comes the byte offset where its container begins, -1 for the file.
    """
    placed: list[tuple[Definition, int]] = []
    around: list[_Around] = []
    for each in sorted(found, key=lambda f: (f.start, -f.end, f.pattern)):
        while around and around[-1].end < each.end:
            around.pop()
        outer = around[-1] if around else _OUTSIDE
        if each.kind == "field" and outer.kind in _CALLABLES and len(around) > 1:
            outer = around[-2]  # a constructor's parameter that is also a property of the class
        container = ".".join(part for part in (outer.qualified, each.front) if part)
        kind = _settled_kind(each, outer.kind)
        if kind is None:
            continue
        if not kind.startswith("scope."):
            placed.append((Definition(each.name, kind, each.start_row + 1, each.end_row + 1, container), outer.start))
        if kind in _CONTAINERS:
            around.append(_Around(each.start, each.end, f"{container}.{each.name}" if container else each.name, kind))
    return placed


def _settled_kind(found: _Found, outer: str) -> str | None:
    """The kind in its place: functions of a type are methods, its variables fields; None for what is local to a function."""
    kind = found.kind
    if kind == "function" and (outer in _TYPES or found.front):
        return "method"
    if kind in ("variable", "constant", "field"):
        if outer in _CALLABLES:
            return None if kind != "field" else "field"
        if kind == "variable" and outer in _TYPES:
            kind = "field"
        if len(found.name) > 1 and found.name.isupper():
            return "constant"
    return kind


def _join_clauses(placed: list[tuple[Definition, int]]) -> list[Definition]:
    """One definition for the clauses of a function and the type signature above them, if at most one blank line parts them."""
    joined: list[Definition] = []
    place: dict[tuple[str, int], int] = {}
    for each, outer in placed:
        at = place.get((each.qualified, outer))
        if at is not None and each.start_line <= joined[at].end_line + 2:
            joined[at] = dataclasses.replace(each, start_line=joined[at].start_line, end_line=max(joined[at].end_line, each.end_line))
        else:
            place[each.qualified, outer] = len(joined)
            joined.append(each)
    return [dataclasses.replace(d, kind="method" if d.container else "function") if d.kind == "signature" else d for d in joined]


def _read_references(
    grammar: Grammar, root: tree_sitter.Node, source: bytes, name_starts: set[int], called: Iterable[tuple[bytes, int]]
) -> tuple[Reference, ...]:
    """Every name in a use position, once a line with its strongest kind, in order of line, then name."""
    captures = _open_cursor(grammar.references).captures(root)
    seen: dict[tuple[bytes, int], str] = {}
    seen.update((key, "call") for key in called if len(key[0]) > 1)
    for kind in REFERENCE_KINDS[1:]:
        for key in _reference_keys(captures.get(f"reference.{kind}", ()), source, name_starts):
            seen.setdefault(key, kind)
    return tuple(
        Reference(plain_name(name.decode("utf-8", "replace")), line, kind) for (name, line), kind in sorted(seen.items(), key=_by_line)
    )


def _reference_keys(nodes: Iterable[tree_sitter.Node], source: bytes, name_starts: set[int]) -> Iterator[tuple[bytes, int]]:
    for node in nodes:
        start, end = node.start_byte, node.end_byte
        # One-letter names are loop variables and type parameters: they would double the index and answer nothing.
        if end - start > 1 and start not in name_starts:
            yield source[start:end], node.start_point[0] + 1


def _by_line(item: tuple[tuple[bytes, int], str]) -> tuple[int, bytes]:
    return item[0][1], item[0][0]
