"""Which versions of which libraries a project locks or asks for, from its own lock files and manifests. Blocking, bounded, read only.

A lock file's version is exact. A manifest says that a library is wanted, and an exact version only where it pins one. A file that
cannot be read is in `problems`, never an exception.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from search_router.adapters.local.withheld import withholds
from search_router.schema import Project

MAX_BYTES: Final = 16 * 2**20
_REQUIREMENT = re.compile(r"^\s*([A-Za-z0-9][\w.-]*)\s*(?:\[[^\]]*\])?\s*(?:===?\s*([\w.!+]+))?")
_GO_REQUIRE = re.compile(r"^\s*(?:require\s+)?([\w.~-]+(?:/[\w.~-]+)+)\s+(v[\w.+-]+)(?!.*// indirect)", re.MULTILINE)


@dataclass(slots=True)
class Locked:
    """By ecosystem (`pypi`, `npm`, `go`, `cargo`): name to version, None where none is fixed; names as the ecosystem compares them."""

    versions: dict[str, dict[str, str | None]] = field(default_factory=dict[str, dict[str, "str | None"]])
    problems: list[str] = field(default_factory=list[str])
    own: set[tuple[str, str]] = field(default_factory=set[tuple[str, str]])
    """What the project itself is called: its own code answers for it, not an installed copy."""

    def add(self, ecosystem: str, name: str, version: str | None) -> None:
        """Remember; a version that is known is not forgotten for one that is not."""
        names = self.versions.setdefault(ecosystem, {})
        key = compare_name(ecosystem, name)
        names[key] = version or names.get(key)

    def version_of(self, ecosystem: str, name: str) -> str | None:
        return self.versions.get(ecosystem, {}).get(compare_name(ecosystem, name))


def compare_name(ecosystem: str, name: str) -> str:
    """A library's name in the form that is compared: PEP 503 for Python, crates with `-` for `_`, others as they are."""
    if ecosystem == "pypi":
        return re.sub(r"[-_.]+", "-", name).lower()
    return name.replace("_", "-").lower() if ecosystem == "cargo" else name


def read_locked(project: Project) -> Locked:
    """What the project's root says. Lock files come after manifests, so that what they fix stands."""
    locked, root = Locked(), project.root
    for name, ecosystem, pattern in _OWN_NAMES:
        text = "" if withholds(project, name) else _head(root / name)
        locked.own |= {(ecosystem, compare_name(ecosystem, found[1])) for found in pattern.finditer(text)}
    for name, reader in _READERS:
        for path in sorted(root.glob(name)):
            try:
                if withholds(project, path.relative_to(root).as_posix()):
                    continue
                if path.is_symlink() or not path.is_file() or path.stat().st_size > MAX_BYTES:
                    continue
                for ecosystem, library, version in reader(path.read_text("utf-8", "replace")):
                    locked.add(ecosystem, library, version)
            except (OSError, ValueError, TypeError, AttributeError, KeyError, RecursionError) as error:
                locked.problems.append(f"{path.name} was not understood: {str(error)[:120]}")
    return locked


_OWN_NAMES: Final = (
    ("pyproject.toml", "pypi", re.compile(r"^name\s*=\s*[\"']([^\"']+)", re.MULTILINE)),
    ("setup.cfg", "pypi", re.compile(r"^name\s*=\s*([\w.-]+)", re.MULTILINE)),
    ("setup.py", "pypi", re.compile(r"\bname\s*=\s*[\"']([^\"']+)")),
    ("package.json", "npm", re.compile(r"^\s{0,4}\"name\"\s*:\s*\"([^\"]+)", re.MULTILINE)),
    ("go.mod", "go", re.compile(r"^module\s+(\S+)", re.MULTILINE)),
    ("Cargo.toml", "cargo", re.compile(r"^name\s*=\s*\"([^\"]+)", re.MULTILINE)),
)


def _head(path: Path) -> str:
    """The first part of a small file; nothing where there is none, or it cannot be read."""
    try:
        return path.read_text("utf-8", "replace")[:65_536] if path.is_file() else ""
    except OSError:
        return ""


Library = tuple[str, str, "str | None"]


def _pyproject(text: str) -> Iterator[Library]:
    data = tomllib.loads(text)
    project: dict[str, Any] = data.get("project", {})
    lists: list[list[str]] = [project.get("dependencies", []), *project.get("optional-dependencies", {}).values()]
    lists += [[e for e in group if isinstance(e, str)] for group in data.get("dependency-groups", {}).values()]
    for requirement in (line for each in lists for line in each):
        yield from _requirement(requirement)
    poetry: dict[str, Any] = data.get("tool", {}).get("poetry", {}).get("dependencies", {})
    for name in poetry:
        if name.lower() != "python":
            yield "pypi", name, None


def _requirement(line: str) -> Iterator[Library]:
    if (found := _REQUIREMENT.match(line)) and not line.lstrip().startswith(("#", "-")):
        yield "pypi", found[1], found[2]


def _requirements(text: str) -> Iterator[Library]:
    for line in text.splitlines():
        yield from _requirement(line)


def _toml_packages(ecosystem: str) -> Callable[[str], Iterator[Library]]:
    def read(text: str) -> Iterator[Library]:
        packages: list[dict[str, Any]] = tomllib.loads(text).get("package", [])
        for package in packages:
            yield ecosystem, str(package["name"]), str(package["version"]) if package.get("version") else None

    return read


def _package_json(text: str) -> Iterator[Library]:
    data: dict[str, dict[str, str]] = json.loads(text)
    for key in ("dependencies", "devDependencies", "peerDependencies"):
        for name, wanted in data.get(key, {}).items():
            yield "npm", name, wanted if re.fullmatch(r"\d+\.\d+\.\d+[\w.+-]*", wanted) else None


def _package_lock(text: str) -> Iterator[Library]:
    packages: dict[str, dict[str, Any]] = json.loads(text).get("packages", {})
    for path, package in packages.items():
        if path.startswith("node_modules/") and "/node_modules/" not in path and package.get("version"):
            yield "npm", path.removeprefix("node_modules/"), str(package["version"])


def _go_mod(text: str) -> Iterator[Library]:
    for found in _GO_REQUIRE.finditer(text):
        yield "go", found[1], found[2]


_READERS: Final[tuple[tuple[str, Callable[[str], Iterator[Library]]], ...]] = (
    ("pyproject.toml", _pyproject),
    ("requirements*.txt", _requirements),
    ("package.json", _package_json),
    ("go.mod", _go_mod),
    ("poetry.lock", _toml_packages("pypi")),
    ("uv.lock", _toml_packages("pypi")),
    ("pdm.lock", _toml_packages("pypi")),
    ("pylock.toml", _toml_packages("pypi")),
    ("package-lock.json", _package_lock),
    ("Cargo.lock", _toml_packages("cargo")),
)
