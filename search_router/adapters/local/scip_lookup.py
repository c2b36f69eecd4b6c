"""From what an index says about a name to hits: definitions, implementations and uses in files as they are now. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from itertools import chain
from typing import Final

from search_router.adapters.local.asked_names import fits
from search_router.adapters.local.qualified_names import folded
from search_router.adapters.local.scip_freshness import Freshness
from search_router.adapters.local.scip_reader import FoundDocument, Occurrence
from search_router.adapters.local.scip_symbols import CONSTRUCTORS, read_symbol
from search_router.adapters.local.symbol_lookup import WantedName
from search_router.adapters.local.symbol_space import KIND_ORDER, SearchSpace
from search_router.adapters.local.symbol_table import IndexedFile, PathFacts, SymbolTable
from search_router.adapters.local.typed_uses import ResolvedUse, kind_of_use
from search_router.schema import Definition, Hit

STALE: Final = "stale-index"
_ASKED_KINDS: Final = frozenset({"class", "method", "field", "macro", "meta"})

LinesOf = Callable[[str], list[str] | None]
"""The lines of a file of the project as it is now; None when it cannot be read."""


@dataclass(slots=True)
class Findings:
    """What one look-up found. `unplaced` counts occurrences in files that the work tree does not list (ignored, gone, not indexed yet)."""

    definitions: list[tuple[tuple[int | bool | str, ...], Hit]] = field(default_factory=list[tuple[tuple[int | bool | str, ...], Hit]])
    uses: list[ResolvedUse] = field(default_factory=list[ResolvedUse])
    unplaced: int = 0

    def merge(self, other: Findings) -> None:
        """Take in what another index found."""
        self.definitions += other.definitions
        self.uses += other.uses
        self.unplaced += other.unplaced

    def ranked_definitions(self) -> list[Hit]:
        """Each once, what was asked for before what implements it."""
        best: dict[tuple[str, str | None, int | None], Hit] = {}
        for _, hit in sorted(self.definitions, key=lambda item: item[0]):
            best.setdefault((hit.project, hit.path, hit.start_line), hit)
        return list(best.values())


@dataclass(frozen=True, slots=True)
class IndexReading:
    """One index and what is needed to read its places: the project's table, the scope, the prefix of its paths, what tells its age."""

    project: str
    table: SymbolTable
    space: SearchSpace
    prefix: str
    engine: str
    freshness: Freshness
    lines_of: LinesOf


def asked_symbols(documents: Iterable[FoundDocument], wanted: WantedName) -> dict[str, bool]:
    """The symbols that a name means, each with whether it is spelled exactly so; constructors stand for their class.

    When some are spelled exactly, the others are not meant.
    """
    exact: dict[str, bool] = {}
    loose: dict[str, bool] = {}
    seen: set[str] = set()
    for document in documents:
        mentioned = chain((o.symbol for o in document.occurrences), *((r.symbol, r.implemented) for r in document.implements))
        for symbol in mentioned:
            if symbol in seen:
                continue
            seen.add(symbol)
            name = read_symbol(symbol)
            if name is None:
                continue
            own, containers = name.name, name.containers
            if own in CONSTRUCTORS and containers and wanted.name not in CONSTRUCTORS:
                own, containers = containers[-1], containers[:-1]
            elif name.kind not in _ASKED_KINDS:
                continue
            if own == wanted.name and fits(wanted, containers):
                exact[symbol] = True
            elif folded(own) == folded(wanted.name) and fits(wanted, containers):
                loose[symbol] = False
    return exact or loose


def read_places(reading: IndexReading, documents: Iterable[FoundDocument], wanted: WantedName) -> Findings:
    """Definitions, implementations and uses of the symbols that a name means."""
    found = Findings()
    documents = tuple(documents)
    asked = asked_symbols(documents, wanted)
    implementing = {r.symbol for d in documents for r in d.implements if r.implemented in asked and r.symbol not in asked}
    for document in documents:
        path = reading.prefix + document.path
        places = [
            o for o in document.occurrences if not o.is_forward and (o.symbol in asked or (o.is_definition and o.symbol in implementing))
        ]
        if not places:
            continue
        file = reading.table.get(path)
        if file is None:
            found.unplaced += len(places)
        elif reading.space.admits(file):
            _read_file(reading, document, file, places, asked, found)
    return found


def _read_file(
    reading: IndexReading, document: FoundDocument, file: IndexedFile, places: list[Occurrence], asked: dict[str, bool], found: Findings
) -> None:
    seen = reading.freshness.seen_hash(file.path, file.content_hash)
    taken: set[tuple[int, str]] = set()
    for place in places:
        name = read_symbol(place.symbol)
        if name is None:
            continue
        line = place.start[0] + 1
        text = name.containers[-1] if name.name in CONSTRUCTORS and name.containers else name.name
        kind = kind_of_use(file, text, line)
        definition = _definition_at(file, name.name, line) if place.is_definition else None
        stands = kind is not None or definition is not None or stands_there(reading.lines_of(file.path), document.encoding, place, text)
        flags = () if seen or (seen is None and stands) else (STALE,)
        exact = asked.get(place.symbol, False) and stands
        if not place.is_definition:
            shown = "import" if place.is_import else kind or "use"
            found.uses.append(
                ResolvedUse(reading.project, file, line, shown, reading.engine, seen or None, flags, exact, _one_based(place.span))
            )
        elif (line, name.name) not in taken:
            taken.add((line, name.name))
            implements = place.symbol not in asked
            found.definitions.append(_definition(reading, file, place, definition, seen or None, flags, exact, implements=implements))


def _definition(
    reading: IndexReading,
    file: IndexedFile,
    place: Occurrence,
    definition: Definition | None,
    content_hash: str | None,
    flags: tuple[str, ...],
    exact: bool,
    *,
    implements: bool,
) -> tuple[tuple[int | bool | str, ...], Hit]:
    name = read_symbol(place.symbol)
    assert name is not None
    line = place.start[0] + 1
    start, end = (definition.start_line, definition.end_line) if definition else _one_based(place.span) or (line, line)
    facts = PathFacts.of(file.path)
    kind = "implementation" if implements else definition.kind if definition else name.kind
    constructor = name.name in CONSTRUCTORS
    order = (implements, constructor, bool(flags), facts.test, facts.foreign, KIND_ORDER.get(kind, 9), reading.project, file.path, line)
    hit = Hit(
        project=reading.project,
        path=file.path,
        start_line=start,
        end_line=end,
        symbol=definition.qualified if definition else name.qualified,
        kind=kind,
        is_definition=True,
        is_exact=exact and not implements,
        native_score=0.5 if implements else 1.0,
        content_hash=content_hash,
        flags=flags,
        engine=reading.engine,
    )
    return order, hit


def _definition_at(file: IndexedFile, name: str, line: int) -> Definition | None:
    """The definition of this name whose lines begin before and hold this one (a decorator may stand above the name)."""
    around = [d for d in file.syntax.definitions if d.name == name and d.start_line <= line <= d.end_line]
    return max(around, key=lambda d: d.start_line, default=None)


def _one_based(span: tuple[int, int] | None) -> tuple[int, int] | None:
    return (span[0] + 1, span[1] + 1) if span else None


def stands_there(lines: list[str] | None, encoding: int, place: Occurrence, name: str) -> bool:
    """Whether the name stands at the place in the file as it is now. Characters count in UTF-8, -16 or -32 units, as the index says."""
    line = place.start[0]
    if lines is None or line >= len(lines):
        return False
    text = lines[line]
    if text.isascii():
        return text.startswith(name, place.start[1])
    encodings = {1: ("utf-8",), 2: ("utf-16-le",), 3: ("utf-32-le",)}.get(encoding, ("utf-32-le", "utf-16-le", "utf-8"))
    for each in encodings:
        width = {"utf-8": 1, "utf-16-le": 2, "utf-32-le": 4}[each]
        if text.encode(each, "surrogatepass").startswith(name.encode(each, "surrogatepass"), place.start[1] * width):
            return True
    return False
