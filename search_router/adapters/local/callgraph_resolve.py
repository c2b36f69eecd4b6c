"""Whether one call means one of the wanted definitions, and how that is known. Syntactic: imports, scopes, receivers, base types.

The answer is a `Resolution`, best first, or None where the syntax says that the call means something else.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from search_router.adapters.local.callgraph_modules import C_LIKE, JAVASCRIPT, JVM, same_family
from search_router.adapters.local.callgraph_project import ProjectEdges, definitions_around
from search_router.adapters.local.callgraph_reach import Place, Reach
from search_router.adapters.local.callgraph_types import (
    IMPLICIT_THIS,
    SELF_NAMES,
    SUPER_NAMES,
    TYPE_KINDS,
    TypeFacts,
    type_around,
)
from search_router.adapters.local.edges import UNKNOWN, Call
from search_router.adapters.local.symbol_table import IndexedFile, SymbolTable
from search_router.schema import Definition


class Resolution(StrEnum):
    """How a call was tied to a definition, most certain first."""

    EXACT = "exact"
    """Same scope, or a receiver whose type is known."""
    IMPORT = "import-resolved"
    """The file imports the name, its module, its type or its package."""
    UNIQUE = "unique-name"
    """The only definition of that name that the file can mean."""
    AMBIGUOUS = "ambiguous"
    """The name fits; others fit as well, or the receiver is unknown."""


SCORES: Final = {Resolution.EXACT: 1.0, Resolution.IMPORT: 0.8, Resolution.UNIQUE: 0.5, Resolution.AMBIGUOUS: 0.2}
ORDER: Final = {resolution: place for place, resolution in enumerate(Resolution)}
EXPLICIT_NAMES: Final = JAVASCRIPT | JVM | {"python", "rust", "go"}
"""Languages where a bare name is defined or imported in the file or its folder, or is a local variable."""
_TABLES_ARE_MODULES = frozenset({"lua"})
"""Languages where a module is the table that its file returns, so that its functions look like members."""
SAME_FOLDER: Final = JVM | {"go", "csharp", "swift", "php"}
_BUILT_IN: Final = {
    "python": frozenset(n for t in (str, bytes, list, dict, set, int, type(b"".hex)) for n in dir(t))
    | frozenset("read write close open flush seek tell fileno readline acquire release put put_nowait get_nowait send throw".split()),
    "javascript": frozenset(
        """at concat entries every fill filter find findIndex flat flatMap forEach includes indexOf join keys map pop push reduce reverse
        shift slice some sort splice unshift values add clear delete get has set size then catch finally apply bind call toString valueOf
        charAt match replace search split startsWith endsWith substring toLowerCase toUpperCase trim test exec next return
        throw on emit""".split()
    ),
}


@dataclass(frozen=True, slots=True)
class Target:
    """A definition that is asked about. `owner` is the name of the type that it is a member of, empty for what stands alone."""

    project: str
    file: IndexedFile
    definition: Definition
    owner: str = ""
    scope: Definition | None = None
    """The function that it is local to."""

    @classmethod
    def of(cls, project: str, file: IndexedFile, definition: Definition) -> Target:
        outer = definition.container
        if not outer or definition.kind in TYPE_KINDS or definition.name == outer.rpartition(".")[2]:  # types, and their constructors
            return cls(project, file, definition)
        around = next((d for d in definitions_around(file, definition.start_line) if d.qualified == outer and d != definition), None)
        if around is not None and around.kind in ("function", "method") and definition.kind != "method":
            return cls(project, file, definition, scope=around)
        if around is not None and around.kind in ("module", "variable", "constant") and definition.kind != "method":
            return cls(project, file, definition)
        member = definition.kind in ("method", "field", "constant") or (around is not None and around.kind in TYPE_KINDS)
        return cls(project, file, definition, owner=outer.rpartition(".")[2] if member else "")


class Resolver:
    """Resolves calls of one name to the targets, which all have that name.

    Args:
        everyone: all definitions of the name in the searched projects, the targets among them.
    """

    def __init__(
        self,
        name: str,
        targets: Sequence[Target],
        everyone: Sequence[Target],
        graph: Sequence[ProjectEdges],
        tables: Sequence[tuple[str, SymbolTable]],
        types: TypeFacts,
    ) -> None:
        self.name = name
        self.targets = targets
        self.types = types
        self._tables = dict(tables)
        self._graph = graph
        self._edges = {edges.project: edges for edges in graph}
        self._alone = [t for t in targets if not t.owner]
        self._members = [t for t in targets if t.owner]
        self._of_modules = [t for t in targets if not t.owner or t.file.language in _TABLES_ARE_MODULES]
        self.owners = frozenset(t.owner for t in self._members)
        self._others = [t for t in everyone if t not in targets]
        self._homes_alone = {(t.project, _home(t.file)) for t in everyone if not t.owner}
        self._owners_all = {t.owner for t in everyone if t.owner}
        self.reach = Reach(graph, name, [(t.project, t.file, t.definition.container) for t in self._of_modules if t.scope is None])
        self._owner_reach: dict[str, Reach] = {}

    def local_names(self, project: str, path: str) -> set[str]:
        """The names that the targets have in a file, beside their own."""
        return self.reach.local.get((project, path), set()) - {self.name}

    def resolve(self, project: str, file: IndexedFile, call: Call) -> Resolution | None:
        """How this call is tied to a target; None when it means something else."""
        if not any(same_family(file.language, t.file.language) for t in self.targets):
            return None
        around = self._edges[project].around(file, call.line)
        if not call.receiver:
            return self._resolve_bare(project, file, call, around)
        found = self._resolve_module(project, file, call) if self._of_modules and call.receiver != UNKNOWN else None
        if found is not None:
            return found
        return self._resolve_member(project, file, call, around) if self._members else self._resolve_loose(project, file, call, around)

    # -------------------------------------------------------------- bare names

    def _resolve_bare(self, project: str, file: IndexedFile, call: Call, around: Sequence[Definition]) -> Resolution | None:
        place, language = (project, file.path), file.language
        if language in IMPLICIT_THIS and (outer := type_around(around)) and self._owners_all:
            owner = self.types.nearest_owner(outer, call.name)
            if owner is not None:
                return Resolution.EXACT if owner in self.owners else None
        known = self._resolve_known(place, file, call, around)
        if known is not None:
            return known if isinstance(known, Resolution) else None
        if not self._alone and (language not in IMPLICIT_THIS):
            return None
        if not self._alone:
            return Resolution.AMBIGUOUS if self._is_related(file) else None
        if place in self.reach.whole:
            return Resolution.IMPORT
        if language in SAME_FOLDER and any(t.project == project and _folder(t.file) == _folder(file) for t in self._alone):
            return Resolution.IMPORT
        if language in EXPLICIT_NAMES:
            # Not defined, not imported: a parameter, a local variable, or a name that something else brought in.
            return Resolution.AMBIGUOUS
        return Resolution.UNIQUE if len(self._homes_alone) == 1 else Resolution.AMBIGUOUS

    def _resolve_known(self, place: Place, file: IndexedFile, call: Call, around: Sequence[Definition]) -> Resolution | bool | None:
        """The resolution where the file itself defines or imports the name, False where that is another definition."""
        nested = [t for t in self._alone if t.scope is not None and _is_same(t, place) and t.scope in around]
        if nested:
            return Resolution.EXACT
        if any(t.scope in around for t in self._others if t.scope is not None and _is_same(t, place)):
            return False
        if any(_is_same(t, place) and t.scope is None for t in self._alone) and call.name == self.name:
            return Resolution.EXACT
        if call.name in self.reach.local.get(place, ()):
            return Resolution.IMPORT
        if any(_is_same(t, place) and not t.owner and t.scope is None for t in self._others) or call.name in self.reach.other.get(
            place, ()
        ):
            return False
        return None

    # -------------------------------------------------------------- receivers

    def _resolve_module(self, project: str, file: IndexedFile, call: Call) -> Resolution | None:
        """`module.name()` where an import of this file binds the receiver."""
        receiver = call.receiver
        for found in self._edges[project].imports_in(file.path):
            if not found.local:
                continue
            if receiver != found.local and not receiver.startswith(f"{found.local}."):
                head = found.local.partition(".")[0]  # Python's `import a.b` binds a
                if found.name or (not receiver.startswith(f"{head}.") and receiver != head):
                    continue
                if self.reach.means(project, file, found._replace(module=receiver), name=call.name):
                    return Resolution.IMPORT
                continue
            rest = receiver[len(found.local) :].lstrip(".").replace(".", "/")
            attribute = "/".join(part for part in (found.name if found.name != "default" else "", rest) if part)
            if self.reach.means(project, file, found, attribute, call.name):
                return Resolution.IMPORT
            if found.name and self.reach.means(project, file, found, rest, call.name) and file.language in EXPLICIT_NAMES - {"python"}:
                return Resolution.IMPORT
        last = receiver.rpartition(".")[2]
        for target in self._alone:
            outer = target.definition.container.rpartition(".")[2]
            if outer and last == outer and target.scope is None:
                return Resolution.EXACT if _is_same(target, (project, file.path)) else Resolution.IMPORT
        return None

    def _resolve_member(self, project: str, file: IndexedFile, call: Call, around: Sequence[Definition]) -> Resolution | None:
        receiver, last = call.receiver, call.receiver.rpartition(".")[2]
        if receiver in SELF_NAMES:
            return self._of_type(type_around(around), call.name, above=receiver in SUPER_NAMES, known=Resolution.EXACT)
        if self.types.types(last) or last in self.owners:
            owner = self.types.nearest_owner(last, call.name)
            if owner in self.owners:
                return self._named_owner(project, file, last, owner or "")
            if owner is not None:
                return None
        renamed = next((i.name for i in self._edges[project].imports_in(file.path) if i.local == receiver and i.name != i.local), "")
        if renamed and self.types.nearest_owner(renamed, call.name) in self.owners:
            return Resolution.IMPORT
        made = self.types.receiver_type(project, file, call, around)
        if made:
            return self._of_type(made, call.name, above=False, known=Resolution.EXACT)
        return self._of_unknown(project, file, call)

    def _of_type(self, name: str, method: str, *, above: bool, known: Resolution) -> Resolution | None:
        """A member of a type that is known by name."""
        if not name:
            return Resolution.AMBIGUOUS
        owner = self.types.nearest_owner(name, method, above=above)
        if owner in self.owners:
            return known
        if not self.owners.isdisjoint(self.types.descendants(name)):
            return Resolution.AMBIGUOUS  # a subtype may answer in its place
        return Resolution.AMBIGUOUS if self.types.is_open(name) else None

    def _named_owner(self, project: str, file: IndexedFile, named: str, owner: str) -> Resolution | None:
        """`Type.name()`: exact where the type stands in this file, else by its import, if two types share the name."""
        homes = [t for t in self._members if t.owner == owner]
        if any(_is_same(t, (project, file.path)) for t in homes):
            return Resolution.EXACT
        if len({(p, f.path) for p, f, _ in self.types.types(named)}) <= 1:
            return Resolution.IMPORT
        reach = self._owner_reach.get(owner)
        if reach is None:
            reach = self._owner_reach[owner] = Reach(self._graph, owner, [(t.project, t.file, "") for t in homes])
        place = (project, file.path)
        if named in reach.local.get(place, ()) or place in reach.whole:
            return Resolution.IMPORT
        if named in reach.other.get(place, ()):
            return None
        return Resolution.IMPORT if any(t.project == project and _folder(t.file) == _folder(file) for t in homes) else Resolution.AMBIGUOUS

    def _of_unknown(self, project: str, file: IndexedFile, call: Call) -> Resolution | None:
        if not self._is_module_free(project, file, call):
            return None
        if call.name in _built_in(file.language):
            return Resolution.AMBIGUOUS
        # That a file names only one of several owners says little: a receiver's type is often made elsewhere.
        return Resolution.UNIQUE if len(self._owners_all) == 1 else Resolution.AMBIGUOUS

    def _resolve_loose(self, project: str, file: IndexedFile, call: Call, around: Sequence[Definition]) -> Resolution | None:
        """A free function's name behind a receiver that is no module we know."""
        if call.receiver in SELF_NAMES or self.types.receiver_type(project, file, call, around):
            return None
        if self._owners_all or call.name in _built_in(file.language) or not self._is_module_free(project, file, call):
            return None
        return Resolution.AMBIGUOUS

    def _is_module_free(self, project: str, file: IndexedFile, call: Call) -> bool:
        """Whether the receiver is no imported module: what is called on one of those, and not resolved by then, is something else."""
        head = call.receiver.partition(".")[0]
        return not any(i.local.partition(".")[0] == head and not i.name for i in self._edges[project].imports_in(file.path) if i.local)

    def _mentions(self, file: IndexedFile, owner: str) -> bool:
        table = next(iter(self._tables.values()))
        return table.mentions(file, owner) or any(d.name == owner for d in file.syntax.definitions)

    def _is_related(self, file: IndexedFile) -> bool:
        return any(self._mentions(file, owner) for owner in self.owners)


def _built_in(language: str) -> frozenset[str]:
    """Members of the language's own types, which any receiver may have."""
    return _BUILT_IN.get("javascript" if language in JAVASCRIPT else language, frozenset())


def _is_same(target: Target, place: Place) -> bool:
    return (target.project, target.file.path) == place


@functools.lru_cache(maxsize=4096)
def _folder_of(path: str) -> str:
    return path.rpartition("/")[0]


def _folder(file: IndexedFile) -> str:
    return _folder_of(file.path)


def _home(file: IndexedFile) -> str:
    """A C definition and the header that declares it are one home."""
    return file.path.rpartition(".")[0].rpartition("/")[2] if file.language in C_LIKE else file.path
