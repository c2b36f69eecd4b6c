"""Where each key of a TOML file stands. The only room that imports tree-sitter, so import it only when a line is asked for.

`tomllib` knows no positions. The grammar gives them, and keys that are written twice.
"""

from __future__ import annotations

import tomllib
from dataclasses import dataclass, field

import tree_sitter_toml
from tree_sitter import Language, Node, Parser

from search_router.config.keys import KeyPath

_KEYS = frozenset({"bare_key", "quoted_key", "dotted_key"})


@dataclass(frozen=True, slots=True)
class Duplicate:
    """A key that is set twice: the lines of its first and its second place, 1-based."""

    path: KeyPath
    first: int
    second: int


@dataclass(slots=True)
class Positions:
    """The 1-based line of every table, key and array element of one file; `sound` is false when the grammar found an error."""

    lines: dict[KeyPath, int] = field(default_factory=dict[KeyPath, int])
    duplicates: list[Duplicate] = field(default_factory=list[Duplicate])
    sound: bool = True
    _said: set[KeyPath] = field(default_factory=set[KeyPath])
    _elements: dict[KeyPath, int] = field(default_factory=dict[KeyPath, int])

    def line_of(self, path: KeyPath) -> int:
        """The line of the key, or of the nearest table around it; 0 when the file has neither."""
        return next((self.lines[path[:end]] for end in range(len(path), 0, -1) if path[:end] in self.lines), 0)

    def mention(self, path: KeyPath, line: int) -> None:
        """Remember the first place of the path and of all that is above it."""
        for end in range(1, len(path) + 1):
            self.lines.setdefault(path[:end], line)

    def define(self, path: KeyPath, line: int) -> None:
        """Remember the one place where the path is written out in full; a second one is a duplicate."""
        if path in self._said:
            self.duplicates.append(Duplicate(path, self.lines[path], line))
        else:
            # A table that was only passed through (`[a.b]` before `[a]`) stands at its own header.
            self.mention(path, line)
            self.lines[path] = line
            self._said.add(path)

    def next_element(self, path: KeyPath, line: int) -> KeyPath:
        """The path of the next element of an array of tables."""
        index = self._elements.get(path, -1) + 1
        self._elements[path] = index
        self.mention((*path, index), line)
        return (*path, index)

    def inside_elements(self, path: KeyPath) -> KeyPath:
        """The path with the index of the newest element behind each array of tables that it goes through."""
        found: KeyPath = ()
        for part in path:
            found = (*found, part)
            if found in self._elements:
                found = (*found, self._elements[found])
        return found


def find_positions(text: str) -> Positions:
    """The positions of all keys in a TOML document (without a byte order mark). Never fails; see `Positions.sound`."""
    root = Parser(Language(tree_sitter_toml.language())).parse(text.encode("utf-8")).root_node
    positions = Positions(sound=not root.has_error)
    for node in root.named_children:
        if node.type == "pair":
            _read_pair(positions, (), node)
        elif node.type in ("table", "table_array_element"):
            _read_table(positions, node)
    return positions


def _read_table(positions: Positions, node: Node) -> None:
    header = next((child for child in node.named_children if child.type in _KEYS), None)
    if header is None:
        return
    names, line = _names(header), header.start_point.row + 1
    if node.type == "table":
        path = positions.inside_elements(names)
        positions.define(path, line)
    else:
        path = positions.next_element((*positions.inside_elements(names[:-1]), names[-1]), line)
    for child in node.named_children:
        if child.type == "pair":
            _read_pair(positions, path, child)


def _read_pair(positions: Positions, above: KeyPath, node: Node) -> None:
    key = next((child for child in node.named_children if child.type in _KEYS), None)
    if key is None:
        return
    path = (*above, *_names(key))
    positions.define(path, key.start_point.row + 1)
    _read_value(positions, path, node.named_children[-1])


def _read_value(positions: Positions, path: KeyPath, node: Node) -> None:
    if node.type == "inline_table":
        for child in node.named_children:
            if child.type == "pair":
                _read_pair(positions, path, child)
    elif node.type == "array":
        elements = [child for child in node.named_children if child.type != "comment"]
        for index, element in enumerate(elements):
            positions.mention((*path, index), element.start_point.row + 1)
            _read_value(positions, (*path, index), element)


def _names(key: Node) -> tuple[str, ...]:
    """The names in a key, in order. Dotted keys nest to the left, one level a dot: walked without recursion."""
    names: list[str] = []
    waiting = [key]
    while waiting:
        node = waiting.pop()
        if node.type == "dotted_key":
            waiting.extend(reversed(node.named_children))
        elif node.type in _KEYS:
            names.append(_name(node))
    return tuple(names)


def _name(node: Node) -> str:
    raw = (node.text or b"").decode("utf-8")
    if node.type == "bare_key":
        return raw
    try:
        return next(iter(tomllib.loads(f"{raw} = 0")))
    except tomllib.TOMLDecodeError:
        return raw
