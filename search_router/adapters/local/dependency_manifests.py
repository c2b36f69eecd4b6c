"""Read the names of declared dependencies out of one manifest. Pure: bytes in, names out, ValueError for a malformed one.

Only names are taken, never versions; nothing is resolved, imported or executed. Dependencies that are paths inside the workspace are
the workspace's own code and are left out.
"""

from __future__ import annotations

import configparser
import json
import re
import tomllib
from collections.abc import Callable, Iterator, Mapping
from pathlib import PurePath
from typing import Any, cast
from xml.parsers import expat

Json = Any  # what json.loads and tomllib.loads return
_REQUIREMENT = re.compile(r"\s*([A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?)")  # PEP 508 name
_GEM = re.compile(r"^[ \t]*(?:\w+\.)?(?:gem|add_(?:runtime_|development_)?dependency)\b[ (]*['\"]([\w.-]+)['\"]", re.MULTILINE)
MAX_LINE = 1000
_NODE_KINDS = ("dependencies", "devDependencies", "peerDependencies", "optionalDependencies")
_CARGO_KINDS = ("dependencies", "dev-dependencies", "build-dependencies")
_LOCAL = ("workspace:", "file:", "link:", "portal:", ".", "/")


def manifest_reader(name: str) -> Callable[[bytes], Iterator[str]] | None:
    """The reader for a file of this name, or None when it is no manifest."""
    if name in _READERS:
        return _READERS[name]
    path = PurePath(name)
    if path.match("requirements*.txt") or path.match("requirements*.in"):
        return _read_requirements
    if path.suffix in (".csproj", ".fsproj", ".vbproj"):
        return _read_project
    return _read_gemfile if path.suffix == ".gemspec" else None


# ------------------------------------------------------------------ Python


def _read_pyproject(data: bytes) -> Iterator[str]:
    document = _load_toml(data)
    project = _table(document.get("project"))
    yield from _requirements(project.get("dependencies"))
    for group in (*_table(project.get("optional-dependencies")).values(), *_table(document.get("dependency-groups")).values()):
        yield from _requirements(group)
    poetry = _table(_table(document.get("tool")).get("poetry"))
    groups = [_table(group) for group in _table(poetry.get("group")).values()]
    tables = [poetry.get("dependencies"), poetry.get("dev-dependencies"), *(group.get("dependencies") for group in groups)]
    for table in tables:
        yield from (name for name, value in _table(table).items() if name != "python" and not _is_local(value))


def _requirements(values: Json) -> Iterator[str]:
    if isinstance(values, list):
        for value in cast("list[Json]", values):
            match = _REQUIREMENT.match(value) if isinstance(value, str) else None
            if match:
                yield match[1]


def _read_requirements(data: bytes) -> Iterator[str]:
    for line in data.decode().splitlines():
        match = None if line.lstrip().startswith(("#", "-", ".", "/")) or "://" in line.partition("@")[0] else _REQUIREMENT.match(line)
        if match:
            yield match[1]


def _read_setup_cfg(data: bytes) -> Iterator[str]:
    parser = configparser.ConfigParser(interpolation=None)
    try:
        parser.read_string(data.decode())
    except configparser.Error as error:
        raise ValueError(str(error)) from error
    sections = [parser.get("options", kind, fallback="") for kind in ("install_requires", "setup_requires", "tests_require")]
    if parser.has_section("options.extras_require"):
        sections.extend(parser["options.extras_require"].values())
    for section in sections:
        yield from _requirements(section.splitlines())


# ------------------------------------------------------------------ JavaScript, PHP


def _read_package_json(data: bytes) -> Iterator[str]:
    document = _table(_load_json(data))
    for kind in _NODE_KINDS:
        yield from (name for name, version in _table(document.get(kind)).items() if not str(version).startswith(_LOCAL))
    bundled = document.get("bundledDependencies", document.get("bundleDependencies"))
    if isinstance(bundled, list):
        yield from (name for name in cast("list[Json]", bundled) if isinstance(name, str))


def _read_composer(data: bytes) -> Iterator[str]:
    document = _table(_load_json(data))
    for kind in ("require", "require-dev"):
        yield from (name for name in _table(document.get(kind)) if "/" in name)


# ------------------------------------------------------------------ Go, Rust, Ruby


def _read_go_mod(data: bytes) -> Iterator[str]:
    lines = [line.partition("//")[0].split() for line in data.decode().splitlines() if len(line) <= MAX_LINE]
    if not any(words[:1] == ["module"] for words in lines):
        raise ValueError("no module line")
    block = ""
    for words in lines:
        if words[1:] == ["("]:
            block = words[0]
        elif words == [")"]:
            block = ""
        elif words[:1] == ["require"] and len(words) >= 3:
            yield words[1]
        elif block == "require" and len(words) >= 2:
            yield words[0]


def _read_cargo(data: bytes) -> Iterator[str]:
    document = _load_toml(data)
    tables = [document, _table(document.get("workspace")), *(_table(target) for target in _table(document.get("target")).values())]
    for table in tables:
        for kind in _CARGO_KINDS:
            for name, value in _table(table.get(kind)).items():
                if not _is_local(value):
                    yield name
                    yield from (renamed for renamed in [_table(value).get("package")] if isinstance(renamed, str))


def _read_gemfile(data: bytes) -> Iterator[str]:
    yield from (match[1] for match in _GEM.finditer(data.decode()))


# ------------------------------------------------------------------ XML: Maven, .NET


def _read_pom(data: bytes) -> Iterator[str]:
    yield from (text for path, text, _ in _xml_elements(data) if path[-2:] == ("dependency", "artifactId") and "$" not in text)


def _read_project(data: bytes) -> Iterator[str]:
    for path, _, attributes in _xml_elements(data):
        if path[-1] in ("PackageReference", "PackageVersion"):
            yield from (name for name in [attributes.get("Include") or attributes.get("Update")] if name)


def _xml_elements(data: bytes) -> list[tuple[tuple[str, ...], str, Mapping[str, str]]]:
    """(path, text, attributes) of each element. A document type is refused before anything in it could be expanded."""
    found: list[tuple[tuple[str, ...], str, Mapping[str, str]]] = []
    open_elements: list[tuple[str, list[str], Mapping[str, str]]] = []

    def refuse(*_: object) -> None:
        raise ValueError("has a document type, which is not read")

    def start(name: str, attributes: dict[str, str]) -> None:
        if len(open_elements) >= 64:
            raise ValueError("is nested deeper than 64 elements")
        open_elements.append((name.rpartition(":")[2], [], attributes))

    def end(_: str) -> None:
        path = tuple(name for name, _, _ in open_elements)
        _, text, attributes = open_elements.pop()
        found.append((path, "".join(text).strip(), attributes))

    def characters(text: str) -> None:
        if open_elements:
            open_elements[-1][1].append(text)

    parser = expat.ParserCreate()
    parser.StartDoctypeDeclHandler = refuse
    parser.EntityDeclHandler = refuse
    parser.StartElementHandler = start
    parser.EndElementHandler = end
    parser.CharacterDataHandler = characters
    try:
        parser.Parse(data, True)
    except expat.ExpatError as error:
        raise ValueError(str(error)) from error
    return found


# ------------------------------------------------------------------ shared


def _load_json(data: bytes) -> Json:
    try:
        return json.loads(data)
    except RecursionError as error:
        raise ValueError("is nested too deeply") from error


def _load_toml(data: bytes) -> dict[str, Json]:
    try:
        return tomllib.loads(data.decode())
    except RecursionError as error:
        raise ValueError("is nested too deeply") from error


def _table(value: Json) -> dict[str, Json]:
    return cast("dict[str, Json]", value) if isinstance(value, dict) else {}


def _is_local(value: Json) -> bool:
    return "path" in _table(value)


_READERS: dict[str, Callable[[bytes], Iterator[str]]] = {
    "pyproject.toml": _read_pyproject,
    "setup.cfg": _read_setup_cfg,
    "package.json": _read_package_json,
    "composer.json": _read_composer,
    "go.mod": _read_go_mod,
    "Cargo.toml": _read_cargo,
    "Gemfile": _read_gemfile,
    "pom.xml": _read_pom,
    "Directory.Packages.props": _read_project,
}


# ------------------------------------------------------------------ a package's own name


def package_name(name: str, data: bytes) -> tuple[str, str] | None:
    """(name, kind) of the package that this manifest describes; the kind is `node`, `go`, `rust` or `python`. ValueError when malformed."""
    match name:
        case "package.json":
            found, kind = _table(_load_json(data)).get("name"), "node"
        case "Cargo.toml":
            found, kind = _table(_load_toml(data).get("package")).get("name"), "rust"
        case "pyproject.toml":
            document = _load_toml(data)
            poetry = _table(_table(document.get("tool")).get("poetry"))
            found, kind = _table(document.get("project")).get("name", poetry.get("name")), "python"
        case "go.mod":
            lines = (line.split() for line in data.decode().splitlines() if len(line) <= MAX_LINE)
            found, kind = next((words[1] for words in lines if words[:1] == ["module"] and len(words) > 1), None), "go"
        case _:
            return None
    return (found.strip('"'), kind) if isinstance(found, str) and found else None
