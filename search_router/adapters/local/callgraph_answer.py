"""From a question about edges to ranked hits and the sentences that go with them. Pure, and bounded in time."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

from search_router.adapters.local.callgraph_imports import find_importers
from search_router.adapters.local.callgraph_question import EdgeQuestion, Wanted
from search_router.adapters.local.callgraph_resolve import Resolution
from search_router.adapters.local.callgraph_search import (
    MAX_EDGES,
    Edge,
    EdgeSpace,
    edge_hit,
    find_callees,
    find_callers,
    find_references,
    find_targets,
    find_transitive,
    make_resolver,
    rank_edges,
)
from search_router.adapters.local.symbol_lookup import WantedName
from search_router.schema import Hit

_PLAIN_KINDS = frozenset({"function", "method", "class", "interface", "struct", "enum", "trait", "type", "macro", "module"})


@dataclass(frozen=True, slots=True)
class EdgeAnswer:
    """Hits, best first; what was not looked at; and facts about them."""

    hits: tuple[Hit, ...]
    partial: str | None = None
    notes: tuple[str, ...] = ()


@dataclass(slots=True)
class _Gathered:
    """Edges as they are found, until there are too many or the time is up."""

    until: float
    edges: list[Edge] = field(default_factory=list[Edge])
    partial: str | None = None

    def take(self, found: Iterable[Edge]) -> list[Edge]:
        taken: list[Edge] = []
        for edge in found:
            taken.append(edge)
            if len(self.edges) + len(taken) >= MAX_EDGES or time.monotonic() > self.until:
                self.partial = f"stopped after {len(self.edges) + len(taken)} edges; narrow the question or allow more time"
                break
        self.edges += taken
        return taken


def answer_question(where: EdgeSpace, question: EdgeQuestion, *, limit: int, depth: int, seconds: float) -> EdgeAnswer:
    """The edges that the question asks for, at most `limit`, in one total order."""
    gathered = _Gathered(time.monotonic() + seconds)
    known = False
    for wanted in question.names:
        known |= _gather_name(where, question, wanted, depth, gathered)
    as_modules = question.wanted is Wanted.IMPORTERS or (not known and question.wanted is not Wanted.CALLEES)
    if as_modules:
        for module in question.modules:
            gathered.take(find_importers(where, module))
    ranked = _distinct(rank_edges(gathered.edges))
    return EdgeAnswer(tuple(edge_hit(edge) for edge in ranked[:limit]), gathered.partial, _notes(question, known, ranked))


def _gather_name(where: EdgeSpace, question: EdgeQuestion, wanted: WantedName, depth: int, gathered: _Gathered) -> bool:
    """Take the edges of one name; False when nothing of that name is defined."""
    targets, everyone = find_targets(where, wanted)
    if question.plain:
        targets = [t for t in targets if t.definition.kind in _PLAIN_KINDS]
    if not targets:
        return False
    if question.wanted is Wanted.CALLEES:
        gathered.take(find_callees(where, targets))
        return True
    resolver = make_resolver(where, wanted.name, targets, everyone)
    if question.wanted is Wanted.IMPORTERS:
        imports = (edge for edge in find_references(where, resolver, ()) if edge.kind == "import")
        gathered.take(imports)
        return True
    callers = gathered.take(find_callers(where, resolver))
    references = find_references(where, resolver, callers)
    if question.wanted is Wanted.CALLERS:  # passed on as a value, it is called by someone else
        references = (edge for edge in references if edge.kind == "reference" and not resolver.owners)
    gathered.take(references)
    if question.wanted is Wanted.IMPACT and depth > 1:
        gathered.take(find_transitive(where, callers, depth))
    return True


def _distinct(edges: list[Edge]) -> list[Edge]:
    """One edge a place, the best."""
    seen: set[tuple[str, str, int, int]] = set()
    kept: list[Edge] = []
    for edge in edges:
        key = (edge.project, edge.file.path, edge.line, edge.end_line)
        if key not in seen:
            seen.add(key)
            kept.append(edge)
    return kept


def _notes(question: EdgeQuestion, known: bool, edges: list[Edge]) -> tuple[str, ...]:
    if not question.names and not question.modules:
        return ("nothing in the question names a symbol, a package or a module",)
    if not edges:
        return () if known else ("no definition and no import of that name",)
    counted = Counter(edge.resolution for edge in edges)
    said = ", ".join(f"{counted[r]} {r.value}" for r in Resolution if counted[r])
    return (f"{question.wanted.value}: {said}; ambiguous edges fit by name only",)
