"""The edges that one file's syntax shows: calls with their receivers, imports, base types, and which names hold which type.

Names only: nothing is resolved here. What to take stands in the third part of `grammars/LANGUAGE.scm`: `@called` (with `@call` around
it), `@import`, `@base`, `@bound` with its `@type` or the `@value` it was made by, `@function` with the `@type` it returns.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Collection
from typing import Final, NamedTuple

import tree_sitter

from search_router.adapters.local.import_statements import Import, read_imports
from search_router.adapters.local.qualified_names import plain_name

UNKNOWN: Final = "?"
"""The receiver of a call that is not a name: the result of an expression."""
MAX_SHIFT: Final = 255
"""A call that spans more lines is said to span so many."""

_LOOK_BACK = 160
_LONGEST = 80
_MAX_IMPORT = 8192
_SEPARATOR = re.compile(r"\s*(?:\?\.|!!\.|!\.|&\.|\?->|::|->|\.|:|\\)\s*$")
_CHAIN = re.compile(r"[\w$]+(?:[.]+[\w$]+)*")
_CUT = re.compile(r"(?:\?\.|!!\.|!\.|&\.|\?->|::|->|\\)\s*")
_BEFORE = re.compile(r"^(?:[\s(&*!<@#\[]|await\s|new\s|return\s|mut\s|not\s|throw\s)+")
_GENERIC = re.compile(r"<[^<>]*>|\[[^\[\]]*\]")
_CALLED = re.compile(r"([\w$.]+)\([^()]*\)")
_WRAPPERS = re.compile(
    r"^(?:Optional|Awaitable|Annotated|Type|ClassVar|Final|Promise|Box|Arc|Rc|Ref|RefCell|Option|std.shared_ptr|std.unique_ptr)[<\[](.*)[>\]]$"
)
_NO_TYPES = frozenset(
    """any auto bool boolean byte char double dynamic float int long mixed never none null number object short
    string str unknown val var void None Any Self""".split()
)
_NOISE = re.compile(
    r"^(?:const|mut|dyn|impl|struct|&'\w+|[&*?:\s\"'\\.])+|[&*?\"'\s]+$"
    r"|\s*\|\s*(?:None|null|undefined)$|^(?:None|null|undefined)\s*\|\s*"
)


class Call(NamedTuple):
    """A call: 1-based lines of the whole expression; the receiver is a dotted name, `f()` for a call, empty for none, UNKNOWN else."""

    line: int
    name: str
    receiver: str
    end_line: int


class Base(NamedTuple):
    """A type that the type around this line extends, implements, embeds or mixes in; dotted as it is written."""

    line: int
    name: str


class Binding(NamedTuple):
    """From this line on a name holds a value of a type, or, when `type` ends with `()`, what calling that dotted name returns."""

    line: int
    name: str
    type: str


class FileEdges(NamedTuple):
    """The edges of one file, each in order of line. `returns` are functions with the type that they are declared to return."""

    imports: tuple[Import, ...] = ()
    bases: tuple[Base, ...] = ()
    returns: tuple[Binding, ...] = ()
    calls: tuple[Call, ...] = ()
    bindings: tuple[Binding, ...] = ()


NO_EDGES: Final = FileEdges()


class Found(NamedTuple):
    """The edges, and (name, 1-based line) of every call, for the list of references."""

    edges: FileEdges
    called: list[tuple[bytes, int]]


def read_edges(
    query: tree_sitter.Query, root: tree_sitter.Node, source: bytes, language: str, names: Collection[int], *, match_limit: int
) -> Found:
    """All edges of a tree. `names` are the byte offsets of the names of definitions, which are no calls."""
    calls: set[Call] = set()
    imports: set[Import] = set()
    bases: set[Base] = set()
    bindings: set[Binding] = set()
    returns: set[Binding] = set()
    called: list[tuple[bytes, int]] = []
    for _, captures in tree_sitter.QueryCursor(query, match_limit=match_limit).matches(root):
        if "called" in captures:
            node, whole = captures["called"][0], captures["call"][0]
            start, row = node.start_byte, node.start_point[0]
            if start in names or node.end_byte == start:
                continue
            name, first = source[start : node.end_byte], whole.start_byte
            called.append((name, row + 1))
            receiver = "" if first >= start else _receiver_in(source[max(first, start - _LOOK_BACK) : start])
            calls.add(Call(row + 1, _plain_name_in(name), receiver, max(whole.end_point[0], row) + 1))
        elif "import" in captures:
            node = captures["import"][0]
            text = source[node.start_byte : min(node.end_byte, node.start_byte + _MAX_IMPORT)].decode("utf-8", "replace")
            imports.update(read_imports(text, language, node.start_point[0] + 1))
        elif "base" in captures:
            for node in captures["base"]:
                name = read_type(source[node.start_byte : node.end_byte].decode("utf-8", "replace"))
                if name:
                    bases.add(Base(node.start_point[0] + 1, name))
        elif "bound" in captures:
            bindings.update(_read_binding(captures, source, language))
        elif "function" in captures:
            node, kind = captures["function"][0], captures["type"][0]
            if made := read_type(source[kind.start_byte : kind.end_byte].decode("utf-8", "replace")):
                name = source[node.start_byte : node.end_byte].decode("utf-8", "replace")
                returns.add(Binding(node.start_point[0] + 1, name, made))
    named = {(each.line, each.module) for each in imports if each.local}  # `require` alone, inside a statement that was read whole
    edges = FileEdges(
        tuple(sorted(each for each in imports if each.local or each.name or (each.line, each.module) not in named)),
        tuple(sorted(bases)),
        tuple(sorted(returns)),
        tuple(sorted(calls)),
        tuple(sorted(bindings)),
    )
    return Found(edges, called)


def _read_binding(captures: dict[str, list[tree_sitter.Node]], source: bytes, language: str) -> list[Binding]:
    name = read_chain(source[captures["bound"][0].start_byte : captures["bound"][0].end_byte].decode("utf-8", "replace"))
    line = captures["bound"][0].start_point[0] + 1
    if "type" in captures:
        made = read_type(source[captures["type"][0].start_byte : captures["type"][0].end_byte].decode("utf-8", "replace"))
    else:
        value = captures["value"][0]
        if value.end_byte - value.start_byte > _LOOK_BACK:
            return []
        made = _type_of_value(read_chain(source[value.start_byte : value.end_byte].decode("utf-8", "replace")), language)
    return [Binding(line, name, made)] if made and name and name != UNKNOWN else []


def _type_of_value(callee: str, language: str) -> str:
    """What calling this gives: an instance where the name is written like a type, else what the function returns."""
    if callee in ("", UNKNOWN) or callee.endswith("()"):
        return ""
    head, _, last = callee.rpartition(".")
    if last[:1].isupper() and language != "go":  # there a capital letter only says that it is exported
        return last
    owner = head.rpartition(".")[2]
    if last in ("new", "default", "create", "from", "of", "build", "getInstance") and owner[:1].isupper():
        return owner  # Rust's and Ruby's constructors
    return f"{callee}()"


@functools.lru_cache(maxsize=16384)
def _plain_name_in(name: bytes) -> str:
    return plain_name(name.decode("utf-8", "replace"))


@functools.lru_cache(maxsize=16384)
def _receiver_in(before: bytes) -> str:
    return read_receiver(before.decode("utf-8", "replace"))


def read_receiver(before: str) -> str:
    """The receiver in the text between the start of a call and the called name."""
    cut = _SEPARATOR.search(before)
    return read_chain(before[: cut.start()]) if cut else ""


@functools.lru_cache(maxsize=16384)
def read_chain(text: str) -> str:
    """A dotted name in its plain form; `f()` for the result of calling a name; UNKNOWN for anything else."""
    text = _BEFORE.sub("", text.strip())
    while (shorter := _GENERIC.sub("", text)) != text:
        text = shorter
    text = _CUT.sub(".", text).replace(":", ".").replace("$", "").replace("@", "").strip(" .?!")
    if len(text) > _LONGEST:
        return UNKNOWN
    if _CHAIN.fullmatch(text):
        return text
    made = _CALLED.fullmatch(text)
    return f"{made[1]}()" if made else UNKNOWN


@functools.lru_cache(maxsize=16384)
def read_type(text: str) -> str:
    """The plain name of a type, without its module, generics, references and null; empty for what has no single name."""
    text = text.strip()
    for _ in range(3):
        text = _NOISE.sub("", text)
        if wrapped := _WRAPPERS.match(text):
            text = wrapped[1].partition(",")[0]
    while (shorter := _GENERIC.sub("", text)) != text:
        text = shorter
    text = _CUT.sub(".", text.partition("(")[0])
    name = text.strip().rpartition(".")[2].strip("\"' ?*&")
    return name if name.isidentifier() and len(name) <= _LONGEST and name not in _NO_TYPES else ""
