"""The layers of the configuration, weakest first, and how a stronger one lies over a weaker one.

Tables merge key by key; arrays and scalars replace. One exception: a layer that gives an expert another `kind` starts that expert's
block afresh, because the keys of the old kind mean nothing to the new one.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from functools import cached_property
from typing import TYPE_CHECKING, Any

from search_router.config.keys import KeyPath, Table, as_table, dotted, table_path
from search_router.errors import ConfigProblem

if TYPE_CHECKING:
    from search_router.config.positions import Positions


Finding = tuple[KeyPath, str]
"""A path, and what is wrong with the value there."""

MAX_PROBLEMS = 100
"""Reported of one layer in one kind of check. A stranger's file with more is not worth the time of finding words for each."""


class LayerName(StrEnum):
    """Where a value comes from, weakest first. `schema` is a default of the schema that no layer mentions."""

    SCHEMA = "schema"
    DEFAULT = "default"
    USER = "user"
    PROJECT = "project"
    ENVIRONMENT = "environment"
    FLAGS = "flags"


@dataclass(frozen=True)
class Layer:
    """One layer as it was read.

    `source` is a file, `environment` or `flags`; `text` is the file's text, kept so that lines can be looked up later; `variables`
    names the environment variable of a path; `problems` are those of reading, and `readable` is false when nothing could be read.
    """

    name: LayerName
    source: str
    values: Table = field(default_factory=dict[str, Any], repr=False)
    text: str | None = field(default=None, repr=False)
    variables: Mapping[KeyPath, str] = field(default_factory=dict[KeyPath, str], repr=False)
    problems: tuple[ConfigProblem, ...] = ()
    readable: bool = True

    @cached_property
    def positions(self) -> Positions | None:
        """Where the keys of the file stand; None for a layer that is no file."""
        if self.text is None:
            return None
        from search_router.config.positions import find_positions  # loads tree-sitter, which a start without mistakes does not need

        return find_positions(self.text)

    def line_of(self, path: KeyPath) -> int:
        """The 1-based line of the key or of the nearest table around it; 0 when there is none."""
        return 0 if self.positions is None else self.positions.line_of(path)

    def place_of(self, path: KeyPath) -> str:
        """The file, the environment variable, or `flags`: what a person would go and change."""
        return next((self.variables[path[:end]] for end in range(len(path), 0, -1) if path[:end] in self.variables), self.source)

    def problem(self, path: KeyPath, key: str, message: str) -> ConfigProblem:
        """A problem at this path; one from the environment names its variable."""
        place = self.place_of(path)
        suffix = f" (set by {place})" if place != self.source else ""
        return ConfigProblem(self.source, self.line_of(path), key, message + suffix)

    def refuse(self, findings: Iterable[Finding]) -> Layer:
        """The same layer without the values that were found wrong, and with a problem for each of them.

        Beyond `MAX_PROBLEMS` the whole layer is refused instead, and its last problem says so.
        """
        layer, problems = self, list(self.problems)
        for count, (path, message) in enumerate(findings):
            if count == MAX_PROBLEMS:
                problems.append(self.too_many())
                return replace(self, values={}, problems=tuple(problems), readable=False)
            problems.append(self.problem(path, dotted(path), message))
            layer = layer.without(path)
        return self if layer is self else replace(layer, problems=tuple(problems))

    def too_many(self) -> ConfigProblem:
        """The problem that stands for all further ones."""
        return ConfigProblem(self.source, 0, "", f"has more mistakes than these {MAX_PROBLEMS}; the rest was not looked at")

    def without(self, path: KeyPath) -> Layer:
        """The same layer without the value at this path; an array goes as a whole."""
        return replace(self, values=remove(self.values, table_path(path)))

    def mentions(self, path: KeyPath) -> bool:
        """Whether the layer sets this value or something below it."""
        value: Any = self.values
        for name in table_path(path):
            table = as_table(value)
            if table is None or name not in table:
                return False
            value = table[name]
        return bool(path)


@dataclass(frozen=True, slots=True)
class Merged:
    """The effective tree so far, and for each path in it the index of the strongest layer that mentions it."""

    tree: Table
    origins: Mapping[KeyPath, int]


NOTHING = Merged({}, {})


def lay_over(base: Merged, values: Table, layer: int) -> Merged:
    """The base with a stronger layer's values over it. Neither argument is changed."""
    origins = dict(base.origins)
    return Merged(_overlay(base.tree, values, (), layer, origins), origins)


def remove(tree: Table, path: tuple[str, ...]) -> Table:
    """The tree without the value at this path; unchanged when there is none."""
    if not path or path[0] not in tree:
        return tree
    below = as_table(tree[path[0]])
    if len(path) == 1 or below is None:
        return {name: value for name, value in tree.items() if name != path[0]}
    return {**tree, path[0]: remove(below, path[1:])}


def _overlay(base: Table, values: Table, path: tuple[str, ...], layer: int, origins: dict[KeyPath, int]) -> dict[str, Any]:
    result = dict(base)
    for name, value in values.items():
        here = (*path, name)
        table, under = as_table(value), as_table(result.get(name))
        if under is not None and (table is None or _changes_kind(here, under, table)):
            _forget_below(origins, here)
            under = None
        origins[here] = layer
        result[name] = value if table is None else _overlay(under or {}, table, here, layer, origins)
    return result


def _changes_kind(path: tuple[str, ...], under: Table, over: Table) -> bool:
    return len(path) == 2 and path[0] == "experts" and "kind" in over and "kind" in under and over["kind"] != under["kind"]


def _forget_below(origins: dict[KeyPath, int], path: tuple[str, ...]) -> None:
    for known in [known for known in origins if known[: len(path)] == path]:
        del origins[known]
