"""What a typed index knows of a suite's Python code: definitions that have one name, and the functions that call them.

The index is ty's (`ty-scip`), which none of the router's own experts uses here: labels made with jedi would be answered by jedi. Packages
and tests are laid side by side for it, so that imports across projects resolve; paths come back as those of the projects.
"""

from __future__ import annotations

import ast
import shutil
import subprocess
import tempfile
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from search_router.benchmark.impact import read_oracle
from search_router.benchmark.questions import UnusableData

SECONDS: Final = 300.0
TESTS: Final = ("tests", "test", "testing", "example", "examples")


@dataclass(frozen=True, slots=True)
class Place:
    """Lines of a file of a project, 1-based and closed."""

    project: str
    path: str
    start: int
    end: int
    symbol: str = ""

    @property
    def is_product(self) -> bool:
        """Not a test, an example, a script of the maintainers or documentation."""
        return (self.path.startswith(("src/", f"{self.project}/")) or self.path.endswith(".js")) and "/tests/" not in self.path


@dataclass(frozen=True, slots=True)
class Called:
    """A function as people write it, its definition, and the functions that call it."""

    shown: str
    definition: Place
    callers: tuple[Place, ...]


def read_edges(projects: Path) -> list[Called]:
    """Every function with one definition and a known caller, by name. Raises UnusableData when ty-scip is missing or fails."""
    with tempfile.TemporaryDirectory() as name:
        flat = Path(name) / "flat"
        origins = _lay_flat(projects, flat)
        index = Path(name) / "out.scip"
        try:
            command = ["ty-scip", "index", str(flat), str(index), "--quiet"]
            done = subprocess.run(command, capture_output=True, timeout=SECONDS, check=False, stdin=subprocess.DEVNULL)
        except (OSError, subprocess.TimeoutExpired) as error:
            raise UnusableData(f"ty-scip did not run: {error}.", remedy="Install the `typed` extra.") from error
        if done.returncode != 0:
            said = done.stderr.decode("utf-8", "replace")[-500:]
            raise UnusableData(f"ty-scip failed: {said}", remedy="Leave the file that it names out of the suite.")
        _, found = read_oracle(index, flat)

        def place(path: str, start: int, end: int, symbol: str = "") -> Place:
            top, _, rest = path.partition("/")
            project, folder = origins[top]
            return Place(project, f"{folder}/{rest}", start, end, symbol)

        edges = [
            Called(
                asked.question.removeprefix("who calls ").removesuffix("()"),
                place(*asked.definition),
                tuple(place(*key, caller.name) for key, caller in sorted(asked.callers.items())),
            )
            for asked in found
        ]
    return sorted(edges, key=lambda edge: (edge.shown, edge.definition.path))


def _lay_flat(projects: Path, flat: Path) -> dict[str, tuple[str, str]]:
    """Folder below `flat` to (project, folder in it)."""
    origins: dict[str, tuple[str, str]] = {}
    for project in sorted(projects.iterdir()):
        packages = [path.parent for path in (*project.glob("src/*/__init__.py"), *project.glob("*/__init__.py"))]
        others = [project / name for name in TESTS if (project / name).is_dir()]
        for folder in (*packages, *others):
            name = f"in_{project.name}_{folder.name}" if folder.name in TESTS else folder.name
            if name not in origins:
                shutil.copytree(folder, flat / name)
                origins[name] = (project.name, folder.relative_to(project).as_posix())
    for path in flat.rglob("*.py"):
        if not path.stem.isidentifier():
            path.unlink()
    return origins


def definitions_of(path: Path) -> Iterator[tuple[str, int, int]]:
    """(qualified name, first line with decorators, last line) of every class and function of a Python file."""

    def walk(node: ast.AST, around: str) -> Iterator[tuple[str, int, int]]:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
                name = f"{around}.{child.name}" if around else child.name
                first = min([child.lineno, *(d.lineno for d in child.decorator_list)])
                yield name, first, child.end_lineno or child.lineno
                yield from walk(child, name)

    yield from walk(ast.parse(path.read_text("utf-8")), "")


def importers_of(projects: Path, package: str, names: Collection[str]) -> dict[str, list[tuple[str, str]]]:
    """(project, path) of the files that import: under the package's name those of other projects, under each of `names` every file that
    imports that name from the package, its own files included."""
    found: dict[str, list[tuple[str, str]]] = {package: [], **{name: [] for name in names}}
    for path in sorted(projects.rglob("*.py")):
        relative = path.relative_to(projects)
        if ".git" in relative.parts:
            continue
        project, inner = relative.parts[0], Path(*relative.parts[1:]).as_posix()
        modules, imported = _imports(path, project)
        if project != package and package in modules:
            found[package].append((project, inner))
        for name in names:
            if (package, name) in imported:
                found[name].append((project, inner))
    return found


def _imports(path: Path, own: str) -> tuple[set[str], set[tuple[str, str]]]:
    """(top-level packages, names with the top-level package that they are from) that a file of the package `own` imports."""
    modules: set[str] = set()
    names: set[tuple[str, str]] = set()
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            modules.update(alias.name.partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            module = own if node.level else (node.module or "").partition(".")[0]
            modules.add(module)
            names.update((module, alias.name) for alias in node.names)
    return modules, names
