"""Symbols of SCIP: strings such as `scip-python python httpx 0.28 httpx/_client/Client#send().` taken apart.

The grammar stands in the comment on `message Symbol` of scip.proto (github.com/scip-code/scip). Schemes and packages differ between
indexers and versions, so only descriptors are compared: what is asked for is a name with the names around it.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final, NamedTuple

CONSTRUCTORS: Final = frozenset({"__init__", "<init>", "<constructor>"})
"""Methods that are meant when a class is called."""

_DESCRIPTOR = re.compile(
    r"""(?:
        (?P<open>[(\[])? (?: (?P<simple>[\w+\-$]+) | `(?P<quoted>(?:[^`]|``)+)` )
        (?P<suffix> \([\w+\-$]*\)\. | [/\#.:!)\]] )
    )""",
    re.VERBOSE,
)
_KINDS: Final = {"/": "module", "#": "class", ".": "field", ":": "meta", "!": "macro"}
_SEPARATORS = re.compile(r"[./\\]|::")
_MODULE_ENDING = re.compile(r"\.(?:d\.)?[mc]?[jt]sx?\Z|\.(?:py|pyi|rs|go|java|kt|rb|dart|php|cs|scala)\Z")


class Descriptor(NamedTuple):
    """One part of a symbol; kind is module, class, method, field, macro, parameter, type-parameter or meta."""

    name: str
    kind: str


class SymbolName(NamedTuple):
    """What a symbol says: its own name and kind, and the names around it, outermost first, modules cut at their dots and slashes."""

    name: str
    kind: str
    containers: tuple[str, ...]

    @property
    def qualified(self) -> str:
        """The name with the types around it, as people write it."""
        return ".".join((*self.containers, self.name))


@lru_cache(maxsize=4096)
def read_symbol(symbol: str) -> SymbolName | None:
    """The parts of a global symbol; None for a local one and for what does not follow the grammar."""
    descriptors = read_descriptors(symbol)
    if not descriptors:
        return None
    *around, own = descriptors
    containers = [part for each in around for part in (_module_parts(each.name) if each.kind == "module" else (each.name,))]
    return SymbolName(own.name, own.kind, tuple(containers))


def read_descriptors(symbol: str) -> tuple[Descriptor, ...]:
    """The descriptors behind scheme and package; none for local symbols and malformed ones."""
    if symbol.startswith("local "):
        return ()
    text = _without_package(symbol)
    found: list[Descriptor] = []
    at = 0
    while at < len(text):
        match = _DESCRIPTOR.match(text, at)
        if match is None:
            return ()
        name = match["simple"] or match["quoted"].replace("``", "`")
        suffix = match["suffix"]
        if (match["open"] is None) != (suffix not in (")", "]")):
            return ()
        kind = _KINDS.get(suffix, "method") if match["open"] is None else "parameter" if suffix == ")" else "type-parameter"
        found.append(Descriptor(name, kind))
        at = match.end()
    return tuple(found)


def symbol_pattern(name: str) -> bytes:
    """A regular expression over raw bytes that finds every symbol whose descriptors have this name; it may find more."""
    return rb"(?:" + re.escape(name.encode()) + rb")`?(?:\(|[#.:!])"


def folded_pattern(name: str) -> bytes:
    """The same for names that differ in case and underscores only; to be compiled with IGNORECASE."""
    letters = [_either_case(letter) for letter in name.replace("_", "")] or [re.escape(name.encode())]
    return rb"_*" + rb"_*".join(letters) + rb"_*`?(?:\(|[#.:!])"


def _either_case(letter: str) -> bytes:
    """IGNORECASE over bytes knows ASCII only."""
    if letter.isascii():
        return re.escape(letter.encode())
    return rb"(?:" + b"|".join(re.escape(form.encode()) for form in sorted({letter, letter.lower(), letter.upper()})) + rb")"


def _without_package(symbol: str) -> str:
    """What stands behind `scheme manager package version `, where a double space is a space inside one of them."""
    at = 0
    for _ in range(4):
        while True:
            at = symbol.find(" ", at)
            if at < 0:
                return ""
            if symbol[at : at + 2] != "  ":
                break
            at += 2
        at += 1
    return symbol[at:]


def _module_parts(name: str) -> list[str]:
    return [part for part in _SEPARATORS.split(_MODULE_ENDING.sub("", name)) if part]
