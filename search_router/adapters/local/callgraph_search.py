"""Find the edges that a question asks for, and rank them: certain ones first, near before far, code before tests. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final

from search_router.adapters.local.callgraph_project import ProjectEdges, definitions_around
from search_router.adapters.local.callgraph_resolve import ORDER, SCORES, Resolution, Resolver, Target
from search_router.adapters.local.callgraph_types import TYPE_KINDS, TypeFacts
from search_router.adapters.local.languages import is_generated_path, is_test_path, is_vendored_path
from search_router.adapters.local.symbol_lookup import WantedName, qualified_level
from search_router.adapters.local.symbol_space import SearchSpace
from search_router.adapters.local.symbol_table import IndexedFile, PathFacts
from search_router.schema import Definition, Hit

MAX_TARGETS: Final = 200
MAX_EDGES: Final = 5000
MAX_EXPANDED: Final = 40
"""So many callers have their own callers looked up."""
MAX_CANDIDATES: Final = 40
"""So many definitions of one called name are tried."""
FAR: Final = 0.5
"""The score of an edge is multiplied by this for each further step."""

_CALLABLE = frozenset({"function", "method", "macro"})
_CONSTRUCTORS = frozenset({"__init__", "__new__", "__post_init__", "constructor", "initialize", "__construct", "init"})
_UNVERIFIED = 3


@dataclass(frozen=True, slots=True)
class Edge:
    """A place that points at a target, with what encloses it."""

    project: str
    file: IndexedFile
    line: int
    end_line: int
    kind: str
    resolution: Resolution
    around: Definition | None = None
    depth: int = 1
    is_definition: bool = False
    test: bool = False


@dataclass(frozen=True, slots=True)
class EdgeSpace:
    """Where edges are looked for: `space` narrows what is found, the graph and the tables hold all that it is resolved with."""

    space: SearchSpace
    graph: tuple[ProjectEdges, ...]
    types: TypeFacts

    @classmethod
    def of(cls, space: SearchSpace, graph: Sequence[ProjectEdges], types: TypeFacts | None = None) -> EdgeSpace:
        """`types` are those of an earlier question about the same edges, with what they have learned."""
        return cls(space, tuple(graph), types or TypeFacts(graph, space.tables))


def find_targets(where: EdgeSpace, wanted: WantedName) -> tuple[list[Target], list[Target]]:
    """(the definitions that a name means, all definitions of the name): with qualifiers, only those that they fit best."""
    everyone = [
        Target.of(project, d.file, d.definition)
        for project, table in where.space.tables
        for d in table.definitions_named(wanted.name)[:MAX_TARGETS]
    ]
    if not wanted.qualifiers or not everyone:
        return everyone, everyone
    levels = [
        qualified_level(wanted.qualifiers, tuple(t.definition.container.split(".")) if t.definition.container else (), _parts(t.file.path))
        for t in everyone
    ]
    best = min(levels)
    if best >= _UNVERIFIED:  # a method that the named type inherits
        owner = where.types.nearest_owner(wanted.qualifiers[-1], wanted.name)
        return [t for t in everyone if t.owner and t.owner == owner], everyone
    return [t for t, level in zip(everyone, levels, strict=True) if level == best], everyone


def make_resolver(where: EdgeSpace, name: str, targets: Sequence[Target], everyone: Sequence[Target]) -> Resolver:
    return Resolver(name, targets, everyone, where.graph, where.space.tables, where.types)


def find_callers(where: EdgeSpace, resolver: Resolver, depth: int = 1) -> Iterator[Edge]:
    """Every call of the resolver's name, or of a name that a file gave it, that may mean one of the targets."""
    for edges, (project, table) in zip(where.graph, where.space.tables, strict=True):
        files = {found.file.path: found.file for found in table.uses_of(resolver.name)}
        files |= {path: edges.files[path] for place, path in resolver.reach.local if place == project and path in edges.files}
        for path in sorted(files):
            file = files[path]
            if not where.space.admits(file):
                continue
            for name in (resolver.name, *sorted(resolver.local_names(project, path))):
                for call in edges.calls(file, name):
                    resolution = resolver.resolve(project, file, call)
                    if resolution is not None:
                        around = _function_around(file, call.line)
                        yield Edge(project, file, call.line, call.end_line, "call", resolution, around, depth)


def find_references(where: EdgeSpace, resolver: Resolver, taken: Iterable[Edge]) -> Iterator[Edge]:
    """Uses that are no calls, in files that are known to have the definition: passed on as a value, named as a type, imported."""
    called = {(e.project, e.file.path, line) for e in taken for line in range(e.line, e.end_line + 1)}
    homes = {(t.project, t.file.path) for t in resolver.targets}
    graph = {edges.project: edges for edges in where.graph}
    for project, table in where.space.tables:
        names = {resolver.name, *(n for (owner, _), found in resolver.reach.local.items() if owner == project for n in found)}
        for name in sorted(names):
            for found in where.space.uses(table.uses_of(name)):
                place = (project, found.file.path)
                local = resolver.reach.local.get(place, set())
                home = place in homes and name == resolver.name
                if not (home or name in local or place in resolver.reach.whole or _is_owned(where, resolver, found.file)):
                    continue
                importing = {each.line for each in graph[project].imports_in(found.file.path)}
                for line, kind in found.uses:
                    if (*place, line) not in called:
                        what = "import" if kind == "import" or line in importing else "reference"
                        certain = Resolution.EXACT if home and not resolver.owners else Resolution.IMPORT
                        resolution = Resolution.UNIQUE if resolver.owners else certain
                        yield Edge(project, found.file, line, line, what, resolution, _function_around(found.file, line))


def _is_owned(where: EdgeSpace, resolver: Resolver, file: IndexedFile) -> bool:
    """Whether a file names a type that the member belongs to; members are not imported by themselves."""
    table = where.space.tables[0][1]
    return bool(resolver.owners) and any(table.mentions(file, owner) for owner in resolver.owners)


def find_transitive(where: EdgeSpace, first: Sequence[Edge], depth: int) -> Iterator[Edge]:
    """Callers of callers, breadth first, over certain edges only; each definition is looked at once."""
    seen: set[tuple[str, str, Definition]] = set()
    level = rank_edges(first)
    for step in range(2, depth + 1):
        following: list[Edge] = []
        for edge in level:
            definition = edge.around
            if definition is None or edge.resolution is Resolution.AMBIGUOUS or edge.test or len(seen) >= MAX_EXPANDED:
                continue
            target = _as_called(edge.file, definition)
            if target is None or (edge.project, edge.file.path, target) in seen:
                continue
            seen.add((edge.project, edge.file.path, target))
            everyone = find_targets(where, WantedName(target.name, ()))[1]
            chosen = [Target.of(edge.project, edge.file, target)]
            found = find_callers(where, make_resolver(where, target.name, chosen, everyone), step)
            following += [e for e in found if e.resolution is not Resolution.AMBIGUOUS]
        yield from following
        level = rank_edges(following)


def find_callees(where: EdgeSpace, targets: Sequence[Target]) -> Iterator[Edge]:
    """What the bodies of the targets call: the definitions that the calls resolve to, else the places of the calls.

    Definitions in tests are looked at only when there are no others.
    """
    for target in [t for t in targets if not is_test_path(t.file.path)] or targets:
        edges = next(e for e in where.graph if e.project == target.project)
        body = target.definition
        seen: set[tuple[str, str]] = set()
        for call in edges.edges(target.file).calls:
            if not body.start_line <= call.line <= body.end_line or (call.name, call.receiver) in seen:
                continue
            seen.add((call.name, call.receiver))
            _, everyone = find_targets(where, WantedName(call.name, ()))
            best: list[tuple[int, Target, Resolution]] = []
            for callee in _implementations(everyone):
                resolution = make_resolver(where, call.name, [callee], everyone).resolve(target.project, target.file, call)
                if resolution is not None and callee.definition != body:
                    best.append((ORDER[resolution], callee, resolution))
            least = min((order for order, _, _ in best), default=None)
            found = [(c, r) for order, c, r in best if order == least]
            if not found or (least == ORDER[Resolution.AMBIGUOUS] and len(found) > 1):
                yield Edge(target.project, target.file, call.line, call.end_line, "call", Resolution.AMBIGUOUS, body)
                continue
            for callee, resolution in found:
                d = callee.definition
                yield Edge(callee.project, callee.file, d.start_line, d.end_line, d.kind, resolution, d, is_definition=True)


def rank_edges(edges: Iterable[Edge]) -> list[Edge]:
    """In one total order: resolution, distance, calls before other uses, code before tests and foreign code, then by place."""
    marked = [replace(e, test=True) if is_test_path(e.file.path) else e for e in edges]
    kinds = {"dependency": -1, "reference": 1, "import": 2}
    return sorted(
        marked,
        key=lambda e: (
            e.resolution is Resolution.AMBIGUOUS,
            e.depth,
            kinds.get(e.kind, 0),
            ORDER[e.resolution],
            e.test,
            is_vendored_path(e.file.path) or is_generated_path(e.file.path),
            e.project,
            e.file.path,
            e.line,
        ),
    )


def edge_hit(edge: Edge) -> Hit:
    """An edge as a hit; its flags say how it was resolved, how far it is, and whether it stands in a test."""
    flags = [f"edge-{edge.resolution.value}"]
    if edge.depth > 1:
        flags.append(f"depth-{edge.depth}")
    if edge.test:
        flags.append("test")
    return Hit(
        project=edge.project,
        path=edge.file.path,
        start_line=edge.line,
        end_line=edge.end_line,
        symbol=edge.around.qualified if edge.around else None,
        kind=edge.kind,
        is_definition=edge.is_definition,
        is_exact=edge.resolution is not Resolution.AMBIGUOUS,
        native_score=round(SCORES[edge.resolution] * FAR ** (edge.depth - 1), 4),
        content_hash=edge.file.content_hash,
        flags=tuple(flags),
    )


def _implementations(targets: Sequence[Target]) -> list[Target]:
    """One definition for several of one qualified name in a file: overloads stand before what they are overloads of."""
    last = {(t.project, t.file.path, t.definition.qualified): t for t in targets}
    return list(last.values())[:MAX_CANDIDATES]


def _function_around(file: IndexedFile, line: int) -> Definition | None:
    """The definition that makes a call on this line: the innermost function, else the innermost definition that is no mere value."""
    around = definitions_around(file, line)
    return next((d for d in around if d.kind in _CALLABLE), next((d for d in around if d.kind in TYPE_KINDS or d.kind == "module"), None))


def _as_called(file: IndexedFile, definition: Definition) -> Definition | None:
    """What others call to run this definition: a constructor is called by its type's name."""
    if definition.kind not in _CALLABLE:
        return None
    if definition.name in _CONSTRUCTORS or definition.name == definition.container.rpartition(".")[2]:
        return next((d for d in file.syntax.definitions if d.qualified == definition.container and d.kind in TYPE_KINDS), None)
    return definition


def _parts(path: str) -> tuple[str, ...]:
    return PathFacts.of(path).parts
