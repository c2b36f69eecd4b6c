"""Who imports a package or a module: import statements of any project, and manifests that declare it. Pure over the projects' edges."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Final

from search_router.adapters.local.callgraph_modules import import_keys
from search_router.adapters.local.callgraph_project import ProjectEdges
from search_router.adapters.local.callgraph_resolve import Resolution
from search_router.adapters.local.callgraph_search import Edge, EdgeSpace
from search_router.adapters.local.import_statements import EVERYTHING

_SEPARATORS = re.compile(r"::|[.\\]")
_ENDINGS: Final = re.compile(
    r"\.(?:py|pyi|js|jsx|mjs|cjs|ts|tsx|go|rs|java|kt|scala|h|hh|hpp|c|cc|cpp|cs|rb|php|swift|exs?|hs|lua|sh|bash)$"
)
_VERSION = re.compile(r"^v\d+$")


def find_importers(where: EdgeSpace, module: str) -> Iterator[Edge]:
    """The imports of a module and of what is in it, and the manifests that declare it as a dependency."""
    wanted = module_parts(module)
    if not wanted:
        return
    for edges in where.graph:
        for path, line in find_declarations(edges, module):
            if where.space.admits(edges.files[path]):
                yield Edge(edges.project, edges.files[path], line, line, "dependency", Resolution.EXACT)
        seen: set[tuple[str, int]] = set()
        for path, found in edges.importing(wanted[-1]):
            file = edges.files[path]
            if (path, found.line) in seen or not where.space.admits(file):
                continue
            resolution = _fit(wanted, edges, path, file.language, found.name, list(import_keys(edges.project, path, file.language, found)))
            if resolution is not None:
                seen.add((path, found.line))
                yield Edge(edges.project, file, found.line, found.line, "import", resolution)


def is_module(where: EdgeSpace, module: str) -> bool:
    """Whether anything in the workspace imports or declares it."""
    return next(find_importers(where, module), None) is not None


def module_parts(module: str) -> tuple[str, ...]:
    """The parts of a package, module or path as a question writes it: `a.b`, `a::b`, `@scope/name`, `src/a/b.ts`, `host/owner/name`."""
    text = _ENDINGS.sub("", module.strip().strip("'\"`<>")).lstrip("./")
    if "/" not in text:
        text = _SEPARATORS.sub("/", text)
    return tuple(part for part in text.split("/") if part)


def find_declarations(edges: ProjectEdges, module: str) -> list[tuple[str, int]]:
    """(path, line) of each manifest that declares the package, by its name or by the last part of it."""
    plain = _plain(module)
    found: list[tuple[str, int]] = []
    for path, declared in sorted(edges.manifests.items()):
        for name, line in declared.dependencies.items():
            last = [part for part in name.split("/") if not _VERSION.match(part)][-1]
            if plain in (_plain(name), _plain(last)) or ("." in module and _plain(module.partition(".")[0]) == _plain(name)):
                found.append((path, line))
                break
    return found


def _fit(wanted: Sequence[str], edges: ProjectEdges, path: str, language: str, name: str, keys: Sequence[str]) -> Resolution | None:
    """How an import means the module: the whole of it, something in it, or a module of that name somewhere else in the tree."""
    best: Resolution | None = None
    want = [_plain(part) for part in wanted]
    for key in keys:
        relative = "\0" in key
        parts = [_plain(p) for p in key.rpartition("\0")[2].split("/") if p and not _VERSION.match(p)]
        longer = [*parts, _plain(name)] if name not in ("", EVERYTHING, "default") else parts
        for have in (parts, longer):
            if have == want or (have[: len(want)] == want and not relative):
                return Resolution.EXACT
            ends = have[-len(want) :] == want
            if ends and (len(want) > 1 or relative or language in ("go", "c", "cpp", "ruby", "bash", "php", "swift")):
                best = Resolution.IMPORT
            elif ends and have is parts:
                best = best or Resolution.UNIQUE
    return best


def _plain(name: str) -> str:
    return name.lower().replace("-", "_")
