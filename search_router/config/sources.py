"""Reads each layer: the packaged file, files of people and projects, the environment, the flags. Mistakes are collected, not raised."""

from __future__ import annotations

import importlib.resources
import math
import os
import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

from search_router.config.keys import KeyPath, Table, as_array, as_table, dotted
from search_router.config.layers import NOTHING, Finding, Layer, LayerName, lay_over
from search_router.config.shape import child_keys
from search_router.errors import ConfigProblem
from search_router.plain_files import read_plain

MAX_FILE_BYTES = 256 * 1024
MAX_DEPTH = 8
MAX_DOTS = 128
"""In one line between two `=`. Time to parse a dotted key grows with the square of its parts, and a project's file is a stranger's."""
MAX_INTEGER = 2**53 - 1
"""RFC 8785 has no larger integers, and every value is hashed."""

PREFIX = "SEARCH_ROUTER_"
PROJECT_SWITCH = "SEARCH_ROUTER_PROJECT_CONFIG"
RESERVED = frozenset(
    {"SEARCH_ROUTER_CONFIG", "SEARCH_ROUTER_HOME", "SEARCH_ROUTER_KEY", "SEARCH_ROUTER_TOKEN", "SEARCH_ROUTER_LIFELINE", PROJECT_SWITCH}
)

_UNSOUND_TEXT = "a NUL character or bytes that are not UTF-8"
_LINE = re.compile(r"\s*\(at line (\d+), column \d+\)$")
_END = " (at end of document)"


# ------------------------------------------------------------------ files


def read_packaged() -> Layer:
    """The packaged default, from a directory, a wheel or a zip file."""
    resource = importlib.resources.files("search_router.config") / "default.toml"
    return parse_layer(LayerName.DEFAULT, str(resource), resource.read_bytes())


def read_file(name: LayerName, path: Path, *, required: bool) -> Layer:
    """The layer in a file; an empty layer when a file that need not exist does not."""
    try:
        data = _read_regular(path)
    except (FileNotFoundError, NotADirectoryError):
        if not required:
            return Layer(name, str(path))
        return _unreadable(name, path, "does not exist; it was named explicitly, so it must")
    except OSError as error:
        return _unreadable(name, path, f"cannot be read: {error.strerror or error}")
    except ValueError as error:
        return _unreadable(name, path, f"cannot be read: {error}")
    if len(data) > MAX_FILE_BYTES:
        return _unreadable(name, path, f"is larger than {MAX_FILE_BYTES} bytes")
    return parse_layer(name, str(path), data)


def read_project(path: Path, environ: Mapping[str, str]) -> tuple[Layer, tuple[str, ...]]:
    """The layer of a project's own file, and a note where it is there and switched off by SEARCH_ROUTER_PROJECT_CONFIG=off."""
    wanted = environ.get(PROJECT_SWITCH, "").strip().lower()
    if wanted == "off":
        there = os.path.lexists(path)
        return Layer(LayerName.PROJECT, str(path)), (f"{path} was not read: {PROJECT_SWITCH} is off.",) if there else ()
    layer = read_file(LayerName.PROJECT, path, required=False)
    if wanted not in ("", "on"):
        wrong = ConfigProblem(str(LayerName.ENVIRONMENT), 0, PROJECT_SWITCH, "must be on or off")
        layer = replace(layer, problems=(*layer.problems, wrong))
    return layer, ()


def parse_layer(name: LayerName, source: str, data: bytes) -> Layer:
    """The layer in a file's bytes; a byte order mark and CRLF are fine. One that is not TOML comes back with its problems."""
    try:
        text = data.decode("utf-8").removeprefix("\ufeff")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        return Layer(name, source, problems=(ConfigProblem(source, line, "", "is not UTF-8"),), readable=False)
    for number, line_text in enumerate(text.split("\n"), start=1):
        if max(part.count(".") for part in line_text.split("=")) > MAX_DOTS:
            problem = ConfigProblem(source, number, "", f"has more than {MAX_DOTS} dots in one key or value")
            return Layer(name, source, problems=(problem,), readable=False)
    try:
        values = tomllib.loads(text)
    except RecursionError:
        return Layer(name, source, problems=(ConfigProblem(source, 0, "", "is nested too deeply"),), readable=False)
    except tomllib.TOMLDecodeError as error:
        return _misspelt(Layer(name, source, text=text, readable=False), str(error))
    except ValueError:
        return Layer(name, source, problems=(ConfigProblem(source, 0, "", "has a number that is too long to read"),), readable=False)
    layer = Layer(name, source, values, text)
    return layer.refuse(find_unsound(values))


def _read_regular(path: Path) -> bytes:
    return read_plain(path, MAX_FILE_BYTES + 1)


def _unreadable(name: LayerName, path: Path, message: str) -> Layer:
    return Layer(name, str(path), problems=(ConfigProblem(str(path), 0, "", message),), readable=False)


def _misspelt(layer: Layer, message: str) -> Layer:
    """The layer with what is wrong with its TOML: all keys that are set twice, else what the parser says."""
    text, positions = layer.text or "", layer.positions
    problems: tuple[ConfigProblem, ...] = ()
    if positions is not None and positions.sound and positions.duplicates:
        problems = tuple(
            ConfigProblem(layer.source, twice.second, dotted(twice.path), f"is set twice; first on line {twice.first}")
            for twice in positions.duplicates
        )
    elif found := _LINE.search(message):
        problems = (ConfigProblem(layer.source, int(found[1]), "", f"is not TOML: {message[: found.start()]}"),)
    else:
        line = text.rstrip("\n").count("\n") + 1 if message.endswith(_END) else 0
        problems = (ConfigProblem(layer.source, line, "", f"is not TOML: {message.removesuffix(_END)}"),)
    return Layer(layer.name, layer.source, problems=problems, readable=False)


# ------------------------------------------------------------------ values


def find_unsound(tree: Table) -> Iterator[Finding]:
    """Every value that no schema could judge or that has no canonical form to hash."""
    waiting: list[tuple[KeyPath, Any]] = [((), tree)]
    while waiting:
        path, value = waiting.pop()
        table, array = as_table(value), as_array(value)
        if table is not None or array is not None:
            if len(path) >= MAX_DEPTH:
                yield path, "is nested too deeply"
            elif table is not None:
                yield from (((*path, name), f"must not have {_UNSOUND_TEXT} in its name") for name in table if _is_unsound_text(name))
                waiting.extend(((*path, name), below) for name, below in table.items() if not _is_unsound_text(name))
            else:
                waiting.extend(((*path, index), below) for index, below in enumerate(array or []))
        elif isinstance(value, float) and not math.isfinite(value):
            yield path, f"must be a finite number, got {value}"
        elif isinstance(value, int) and abs(value) > MAX_INTEGER:
            yield path, f"must be between -{MAX_INTEGER} and {MAX_INTEGER}"
        elif isinstance(value, str) and _is_unsound_text(value):
            yield path, f"must not contain {_UNSOUND_TEXT}"


def _is_unsound_text(text: str) -> bool:
    return "\0" in text or any("\ud800" <= character <= "\udfff" for character in text)


def parse_value(text: str) -> Any:
    """The text as a TOML value, else as the string that it is."""
    try:
        document = tomllib.loads(f"v = {text}")
    except (ValueError, RecursionError):
        return text
    return document["v"] if document.keys() == {"v"} else text


# ------------------------------------------------------------------ environment


def read_environment(environ: Mapping[str, str], known: Table) -> tuple[Layer, tuple[str, ...]]:
    """The layer of SEARCH_ROUTER__SECTION__KEY variables, and a note on each SEARCH_ROUTER_* that means nothing.

    `known` is what the weaker layers say: the names of experts, groups and directories that a variable can only spell with `_`.
    """
    source = str(LayerName.ENVIRONMENT)
    values: dict[str, Any] = {}
    variables: dict[KeyPath, str] = {}
    problems: list[ConfigProblem] = []
    notes: list[str] = []
    for variable in sorted(name for name in environ if name.upper().startswith(PREFIX) and name not in RESERVED):
        if not variable.upper().startswith(f"{PREFIX}_"):
            notes.append(f"{variable} means nothing and was ignored; settings are spelled {PREFIX}_SECTION__KEY.")
            continue
        try:
            path = _resolve(variable[len(PREFIX) + 1 :].split("__"), known)
            if path in variables:
                raise ValueError(f"is set twice, by {variables[path]} and by {variable}")
            _insert(values, path, parse_value(environ[variable]))
        except ValueError as error:
            problems.append(ConfigProblem(source, 0, variable, str(error)))
        else:
            variables[path] = variable
    layer = Layer(LayerName.ENVIRONMENT, source, values, None, variables, tuple(problems))
    return layer.refuse(find_unsound(values)), tuple(notes)


def _resolve(parts: Sequence[str], known: Table) -> tuple[str, ...]:
    """The key path that a variable means. Raises ValueError when it is empty somewhere or could mean two keys."""
    path: tuple[str, ...] = ()
    for part in parts:
        if not part:
            raise ValueError("has an empty name between its underscores")
        wanted = part.lower()
        candidates = child_keys(path, known)
        exact = [name for name in candidates if name.lower() == wanted]
        alike = exact or [name for name in candidates if name.lower().replace("-", "_") == wanted]
        if len(alike) > 1:
            raise ValueError(f"could mean any of {', '.join(dotted((*path, name)) for name in alike)}; set it in a file or by a flag")
        path = (*path, alike[0] if alike else wanted)
    return path


def _insert(values: dict[str, Any], path: tuple[str, ...], value: Any) -> None:
    """Put a value into nested tables. Raises ValueError when another variable already set a part of it."""
    table = values
    for name in path[:-1]:
        below = table.setdefault(name, {})
        if as_table(below) is None:
            raise ValueError(f"is below {dotted(path[:-1])}, which another variable sets to a single value")
        table = cast("dict[str, Any]", below)
    given, present = as_table(value), as_table(table.get(path[-1]))
    if path[-1] not in table:
        table[path[-1]] = value
    elif given is not None and present is not None:
        for name, inner in given.items():
            _insert(values, (*path, name), inner)
    else:
        raise ValueError("is set twice, by a variable for the table and by one for a key in it")


# ------------------------------------------------------------------ flags


def read_flags(flags: Sequence[str]) -> Layer:
    """The layer of `section.key=value` flags; a later one wins over an earlier one."""
    source = str(LayerName.FLAGS)
    merged = NOTHING
    problems: list[ConfigProblem] = []
    for number, flag in enumerate(flags, start=1):
        parsed = _parse_flag(flag)
        if parsed is None:
            # Without the value: it may be a secret.
            problems.append(ConfigProblem(source, 0, "", f"number {number} must look like section.key=value"))
            continue
        layer = Layer(LayerName.FLAGS, source, parsed).refuse(find_unsound(parsed))
        problems.extend(layer.problems)
        merged = lay_over(merged, layer.values, 0)
    return Layer(LayerName.FLAGS, source, merged.tree, problems=tuple(problems))


def _parse_flag(flag: str) -> Table | None:
    """The nested table of one flag: split at the first `=` that leaves a whole key on its left (a quoted key may hold one)."""
    at = flag.find("=")
    while at > 0:
        try:
            keys = tomllib.loads(f"{flag[:at]} = 0") if "\n" not in flag[:at] and flag.count(".", 0, at) <= MAX_DOTS else {}
        except ValueError:
            keys = {}
        if keys:
            return _with_value(keys, parse_value(flag[at + 1 :]))
        at = flag.find("=", at + 1)
    return None


def _with_value(keys: Table, value: Any) -> dict[str, Any]:
    return {name: value if below == 0 else _with_value(below, value) for name, below in keys.items()}
