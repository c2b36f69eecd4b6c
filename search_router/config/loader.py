"""Loads the configuration: packaged default < user file < project file < environment < flags, all mistakes at once.

A start without mistakes reads three small files and validates; positions in files are computed only when someone asks for a line.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import chain
from pathlib import Path
from typing import Any

from search_router.canonical import digest
from search_router.config.checks import check_across, check_decimals
from search_router.config.keys import KeyPath, as_array, as_table, dotted, is_secret, table_path, value_at, walk_leaves
from search_router.config.layers import MAX_PROBLEMS, NOTHING, Finding, Layer, LayerName, Merged, lay_over, remove
from search_router.config.mistakes import MISSING, describe, judge
from search_router.config.schema import Config
from search_router.config.sources import PROJECT_SWITCH, read_environment, read_file, read_flags, read_packaged, read_project
from search_router.config.state import StatePaths, absolute, find_state_paths, find_user_file
from search_router.config.trust import keep_trusted
from search_router.errors import ConfigError, ConfigProblem

PROJECT_FILE = ".search-router.toml"


@dataclass(frozen=True, slots=True)
class Origin:
    """Where a value comes from: its layer; a file, a variable, `flags` or `schema`; and the 1-based line, 0 where there is none."""

    layer: LayerName
    source: str
    line: int


@dataclass(frozen=True, slots=True)
class ShownValue:
    """One row of `config show`. A secret's value is `set` or `not set`."""

    key: str
    value: Any
    layer: LayerName
    source: str
    line: int


@dataclass(frozen=True)
class LoadedConfig:
    """The effective configuration and how it came about. `hash` is over the values alone: order, layers and files do not matter."""

    config: Config
    version: str
    hash: str
    paths: StatePaths
    root: Path
    """The first workspace root: where the project file was looked for."""
    notes: tuple[str, ...] = ()
    """What the user should hear about, though it is no mistake."""
    layers: tuple[Layer, ...] = field(default=(), repr=False)
    origins: Mapping[KeyPath, int] = field(default_factory=dict[KeyPath, int], repr=False)
    """For each path that a layer mentions, the index of the strongest such layer."""

    @cached_property
    def leaves(self) -> Mapping[tuple[str, ...], Any]:
        """Every effective value in JSON form, defaults of the schema included."""
        return dict(walk_leaves(self.config.model_dump(mode="json")))

    @cached_property
    def origin(self) -> Mapping[str, Origin]:
        """The origin of every effective value, by dotted key. Computing it parses the files for positions."""
        return {dotted(path): self._find_origin(path) for path in self.leaves}

    def _find_origin(self, path: KeyPath) -> Origin:
        index = self.origins.get(path)
        if index is None:
            return Origin(LayerName.SCHEMA, str(LayerName.SCHEMA), 0)
        layer = self.layers[index]
        return Origin(layer.name, layer.place_of(path), layer.line_of(path))


def load_config(
    *, roots: Sequence[Path], environ: Mapping[str, str], flags: Sequence[str] = (), user_file: Path | None = None
) -> LoadedConfig:
    """The effective configuration. Creates nothing.

    `roots` are the workspace roots that the caller was given; without any, those of the configuration, else the working directory.
    `environ` decides everything but the platform's default directories, which platformdirs takes from the process.

    Raises:
        ConfigError: every mistake in every layer, with file and line.
        WorkspaceError: a path is relative and the working directory is gone.
    """
    user_path, must_exist = find_user_file(environ, user_file)
    default = read_packaged()
    user = read_file(LayerName.USER, user_path, required=must_exist)
    flag_layer = read_flags(flags)
    trusted = lay_over(lay_over(NOTHING, default.values, 0), user.values, 1).tree

    root = _first_root(roots, (flag_layer, read_environment(environ, trusted)[0], user, default))
    project, left_out = read_project(root / PROJECT_FILE, environ)
    chosen_names = {name: value for name, value in project.values.items() if name != "experts"}
    environment, notes = read_environment(environ, lay_over(Merged(trusted, {}), chosen_names, 0).tree)
    experts = frozenset(name for layer in (default, user, environment, flag_layer) for name in as_table(layer.values.get("experts")) or {})
    project = keep_trusted(project, experts, str(user_path))

    assembly = _Assembly()
    for layer in (default, user, project, environment, flag_layer):
        assembly.add(layer)
    config = assembly.finish()
    return LoadedConfig(
        config=config,
        version=config.version,
        hash=digest(per_mille(config.model_dump(mode="json"))),
        paths=find_state_paths(config.receipts, environ, user_path),
        root=root,
        notes=(*left_out, *notes),
        layers=tuple(assembly.layers),
        origins=assembly.merged.origins,
    )


def explain(loaded: LoadedConfig) -> tuple[ShownValue, ...]:
    """Every effective value with its origin, in the schema's order; secrets only as `set` or `not set`."""
    rows: list[ShownValue] = []
    for path, value in loaded.leaves.items():
        key = dotted(path)
        origin = loaded.origin[key]
        shown = ("set" if value else "not set") if is_secret(path) else value
        rows.append(ShownValue(key, shown, origin.layer, origin.source, origin.line))
    return tuple(rows)


def per_mille(value: Any) -> Any:
    """The JSON value with every float as an integer per mille, so that its hash is the same everywhere."""
    table, array = as_table(value), as_array(value)
    if table is not None:
        return {name: per_mille(below) for name, below in table.items()}
    if array is not None:
        return [per_mille(below) for below in array]
    return round(value * 1000) if isinstance(value, float) else value


def _first_root(roots: Sequence[Path], strongest_first: Sequence[Layer]) -> Path:
    if roots:
        return absolute(str(roots[0]))
    for layer in strongest_first:
        named = as_array(value_at(layer.values, ("workspace", "roots")))
        if named and isinstance(named[0], str):
            return absolute(named[0])
    return absolute(".")


class _Assembly:
    """Lays layer over layer, judging each as it comes, so that a mistake is reported even where a stronger layer hides it."""

    def __init__(self) -> None:
        self.layers: list[Layer] = []
        self.merged: Merged = NOTHING
        self._problems: list[tuple[int, ConfigProblem]] = []
        self._refused: set[KeyPath] = set()

    def add(self, layer: Layer) -> None:
        """Put a stronger layer on top. What is wrong in it is noted and taken out, so that it does not cause further mistakes."""
        index = len(self.layers)
        self.layers.append(layer)
        self._problems.extend((index, problem) for problem in layer.problems)
        if not layer.values:
            return
        merged = lay_over(self.merged, layer.values, index)
        kept = layer
        for count, (path, message) in enumerate(self._find_wrong(layer, merged)):
            if count == MAX_PROBLEMS:
                self._problems.append((index, layer.too_many()))
                self.layers[index] = replace(layer, readable=False)
                return
            self._note(path, message, merged)
            self._refused.add(table_path(path))
            kept = kept.without(path)
            if not layer.mentions(path):  # what a weaker layer set became wrong only now, by a kind that this layer gives
                self.merged = Merged(remove(self.merged.tree, table_path(path)), self.merged.origins)
        self.merged = merged if kept is layer else lay_over(self.merged, kept.values, index)

    def _find_wrong(self, layer: Layer, merged: Merged) -> Iterator[Finding]:
        """What is wrong with the single values of this layer; what is missing may still come from a stronger one."""
        wrong: set[KeyPath] = set()
        for fault in judge(merged.tree)[1]:
            if fault.kind != MISSING:
                wrong.add(fault.path)
                yield fault.path, describe(fault, merged.tree)
        yield from ((path, message) for path, message in check_decimals(layer.values) if path not in wrong)

    def finish(self) -> Config:
        """The configuration. Raises ConfigError with all problems in reading order.

        What is missing, and what does not fit together, can be told only when every layer could be read.
        """
        config, faults = judge(self.merged.tree)
        if all(layer.readable for layer in self.layers):
            missing = ((fault.path, describe(fault, self.merged.tree)) for fault in faults if not self._was_refused(fault.path))
            for count, (path, message) in enumerate(chain(missing, check_across(self.merged.tree))):
                if count == MAX_PROBLEMS:
                    last = self._problems[-1][0]
                    self._problems.append((last, self.layers[last].too_many()))
                    break
                self._note(path, message, self.merged)
        if self._problems or config is None:
            raise ConfigError(tuple(self._in_reading_order()), remedy=self._way_round())
        return config

    def _way_round(self) -> str:
        """How to go on without a project's file that has mistakes: whoever wrote it need not be the one who runs us."""
        project = next((layer.source for layer in self.layers if layer.name is LayerName.PROJECT), None)
        if project is None or all(problem.source != project for _, problem in self._problems):
            return ""
        return f"{project} comes with the repository; {PROJECT_SWITCH}=off goes on without it."

    def _was_refused(self, path: KeyPath) -> bool:
        return any(path[:end] in self._refused for end in range(1, len(path) + 1))

    def _note(self, path: KeyPath, message: str, merged: Merged) -> None:
        index = next((merged.origins[path[:end]] for end in range(len(path), 0, -1) if path[:end] in merged.origins), len(self.layers) - 1)
        self._problems.append((index, self.layers[index].problem(path, dotted(path), message)))

    def _in_reading_order(self) -> Iterator[ConfigProblem]:
        # Stable, so that what has no line keeps the order in which it was found, behind what has one.
        return (problem for _, problem in sorted(self._problems, key=lambda entry: (entry[0], entry[1].line or sys.maxsize)))
