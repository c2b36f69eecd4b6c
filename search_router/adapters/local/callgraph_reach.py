"""Which files know a definition by import: from the files that define it outwards, through re-exports.

Pure over the projects' edges. A file that imports the name from a file that has it, has it too, under the name that it gave it there.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from search_router.adapters.local.callgraph_modules import C_LIKE, JAVASCRIPT, import_keys, same_family
from search_router.adapters.local.callgraph_project import ProjectEdges
from search_router.adapters.local.import_statements import EVERYTHING, Import
from search_router.adapters.local.symbol_table import IndexedFile

MAX_ROUNDS: Final = 5
"""Re-exports of re-exports are followed so far."""
_RE_EXPORTS = JAVASCRIPT | C_LIKE | {"python", "rust", "bash"}

Place = tuple[str, str]
"""Project id and path."""


class Reach:
    """Who has the definition `name` that stands in `homes`.

    A home is a project, a file and the container of the definition, which some languages import by its own name.
    `local[place]` are the names that it has in a file that imported it, `other[place]` the names under which a file imported something
    else that is called the same; `whole` are files that brought in everything of a file that has it.
    """

    def __init__(self, graph: Sequence[ProjectEdges], name: str, homes: Iterable[tuple[str, IndexedFile, str]]) -> None:
        self._graph = {edges.project: edges for edges in graph}
        self.name = name
        self.local: dict[Place, set[str]] = {}
        self.other: dict[Place, set[str]] = {}
        self.whole: set[Place] = set()
        self._exports: dict[str, set[str]] = {}
        self._language = ""
        fresh: list[tuple[str, str, str, str]] = []
        for project, file, container in homes:
            self._language = file.language
            parts = container.split(".") if container else []
            for at in range(len(parts)):
                self._exports.setdefault("/".join(parts[at:]), set()).add(name)
            fresh.append((project, file.path, file.language, name))
            fresh += self._twins(project, file)
        self._spread(fresh)

    def means(self, project: str, file: IndexedFile, found: Import, attribute: str = "", name: str = "") -> bool:
        """Whether the module of an import, or a module `attribute` (slashes) of it, has the definition under `name`."""
        name = name or self.name
        for key in import_keys(project, file.path, file.language, found):
            whole = f"{key}/{attribute}" if attribute else key
            exported = self._exports.get(whole)
            if exported is not None and (name in exported or found.name == EVERYTHING):
                return True
        return False

    def _spread(self, fresh: list[tuple[str, str, str, str]]) -> None:
        names = {self.name}
        for _round in range(MAX_ROUNDS):
            keys = set(self._exports) if not _round else set[str]()
            for project, path, language, name in fresh:
                names.add(name)
                for key in self._graph[project].keys(path, language):
                    self._exports.setdefault(key, set()).add(name)
                    keys.add(key)
            fresh = []
            lasts = {key.rpartition("/")[2].rpartition("\0")[2] for key in keys}
            stars = [(e, f) for e in self._graph.values() for last in lasts for f in e.by_key.get(last, ()) if f.found.name == EVERYTHING]
            named = [(e, f) for e in self._graph.values() for name in names for f in e.by_name.get(name, ())]
            for edges, (path, found) in (*named, *stars):
                file = edges.files[path]
                place = (edges.project, path)
                if not same_family(file.language, self._language):
                    continue
                star = found.name == EVERYTHING
                if (place in self.whole) if star else (found.local in self.local.get(place, ())):
                    continue
                if not self.means(edges.project, file, found, name="" if star else found.name):
                    continue
                if star:
                    self.whole.add(place)
                else:
                    self.local.setdefault(place, set()).add(found.local)
                if file.language in _RE_EXPORTS:
                    fresh.append((edges.project, path, file.language, self.name if star else found.local))
            if not fresh:
                break
        self._mark_others(names)

    def _mark_others(self, names: set[str]) -> None:
        """Imports of the name that reached none of its homes: there it is something else."""
        for edges in self._graph.values():
            for name in names:
                for path, found in edges.by_name.get(name, ()):
                    place = (edges.project, path)
                    if found.local not in self.local.get(place, ()):
                        self.other.setdefault(place, set()).add(found.local)

    def _twins(self, project: str, file: IndexedFile) -> list[tuple[str, str, str, str]]:
        """A C definition is known by the header of the same name, wherever that stands."""
        if file.language not in C_LIKE:
            return []
        stem = file.path.rpartition("/")[2].partition(".")[0]
        edges = self._graph[project]
        return [(project, path, edges.files[path].language, self.name) for path in edges.headers.get(stem, ())]
