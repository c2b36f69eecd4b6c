"""Look up identifiers: where a name is defined, and where it is used. Names are matched, types are not known.

A qualified name (`ClientSession.request`, `geo::Shape#area`) is compared with the containers around a definition and with the folders
and the name of its file, because modules seldom say their name inside.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from search_router.adapters.local.qualified_names import cut_qualified
from search_router.adapters.local.symbol_space import KIND_ORDER, SearchSpace, definition_hit
from search_router.adapters.local.symbol_table import FoundDefinition, FoundUses
from search_router.adapters.local.syntax import REFERENCE_KINDS
from search_router.schema import Definition, Hit

MAX_TERMS = 16
DEFINITION_SHARE = 5
"""Where uses come first, one in so many places is kept for definitions."""

_IDENTIFIER = re.compile(r"[^\W\d][\w$]*[?!]?(?:(?:\.|::|#|->|\\)~?[^\W\d][\w$]*[?!]?)*")
_CODE_SIGN = re.compile(r"_|[a-z][A-Z]|[A-Z]{2}|\.|::|#|->|\\|\d")
_FIRST_PLACES = 4
"""So many places of one file come before the other files', the rest after them."""
_SCORES = {"call": 0.5, "import": 0.45, "type": 0.4, "use": 0.3}
UNVERIFIED = 3


class WantedName(NamedTuple):
    """A name with the qualifiers in front of it, outermost first."""

    name: str
    qualifiers: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _Group:
    """One file's uses of one wanted name, with the place in the order of its project that it will have."""

    project: str
    order: tuple[bool, bool, bool, int, int, int, str]
    found: FoundUses
    exact: bool


def read_names(terms: Sequence[str], *, literal: bool = False) -> list[WantedName]:
    """The identifiers in the terms, in order, each once. In literal text, a word of a phrase counts only if it looks like code."""
    wanted: dict[WantedName, None] = {}
    for term in terms:
        alone = _IDENTIFIER.fullmatch(term.strip().rstrip("()")) is not None
        for match in _IDENTIFIER.finditer(term):
            called = term[match.end() : match.end() + 1] == "("
            if literal and not alone and not called and not _CODE_SIGN.search(match[0]):
                continue
            container, name = cut_qualified(match[0])
            if name:
                wanted[WantedName(name, tuple(part for part in container.split(".") if part))] = None
    return list(wanted)[:MAX_TERMS]


def look_up(space: SearchSpace, wanted: Sequence[WantedName], *, limit: int, uses_first: bool) -> list[Hit]:
    """Definitions of the names, then their uses, or the other way round; at most `limit`, best first, in one total order."""
    names = [_spelled(space, each) for each in wanted]
    definitions = _rank_definitions(space, wanted, names)
    if not uses_first:
        definitions = definitions[:limit]
        return definitions + _rank_uses(space, wanted, names, limit - len(definitions), across=False)
    kept = definitions[: limit // DEFINITION_SHARE]
    uses = _rank_uses(space, wanted, names, limit - len(kept), across=True)
    return [*uses, *definitions[: limit - len(uses)]]


def _spelled(space: SearchSpace, wanted: WantedName) -> list[str]:
    """The name itself where it is defined or used, else the defined names that differ in case or underscores only."""
    for _, table in space.tables:
        if space.definitions(table.definitions_named(wanted.name)) or space.uses(table.uses_of(wanted.name)):
            return [wanted.name]
    return sorted({name for _, table in space.tables for name in table.names_like(wanted.name)})


def _rank_definitions(space: SearchSpace, wanted: Sequence[WantedName], names: Sequence[list[str]]) -> list[Hit]:
    """All definitions of all names: the best of each name first, names in the order asked."""
    others = {each.name for each in wanted}
    ranked: list[tuple[tuple[int, int], Hit]] = []
    taken: set[tuple[str, str, Definition]] = set()
    for term, (each, spellings) in enumerate(zip(wanted, names, strict=True)):
        found = [
            ((*_definition_order(each, d, others), number, d.file.path, d.definition.start_line, d.definition.end_line), project, d)
            for number, (project, table) in enumerate(space.tables)
            for name in spellings
            for d in space.definitions(table.definitions_named(name))
        ]
        found.sort(key=lambda item: item[0])
        if found and found[0][0][0] < UNVERIFIED:  # then those with other qualifiers are other things
            found = [item for item in found if item[0][0] < UNVERIFIED]
        for rank, (order, project, d) in enumerate(found):
            if (project, d.file.path, d.definition) in taken:
                continue
            taken.add((project, d.file.path, d.definition))
            exact = d.definition.name == each.name and order[0] < UNVERIFIED
            ranked.append(((rank, term), definition_hit(project, d, exact=exact, score=1 / (1 + order[0]) * (1 if exact else 0.8))))
    return [hit for _, hit in sorted(ranked, key=lambda item: item[0])]


def _definition_order(wanted: WantedName, found: FoundDefinition, others: set[str]) -> tuple[int, int, bool, bool, int, bool, int]:
    """How well a definition fits, smaller first; its first number is how its qualifiers were verified, `UNVERIFIED` for not."""
    definition, facts = found.definition, found.facts
    container = tuple(definition.container.split(".")) if definition.container else ()
    named_around = not others.isdisjoint(container)
    one_line = definition.start_line == definition.end_line  # a prototype or an overload's signature
    return (
        qualified_level(wanted.qualifiers, container, facts.parts),
        0 if named_around else 1,
        facts.test,
        facts.foreign,
        KIND_ORDER.get(definition.kind, 9),
        one_line,
        len(container),
    )


def qualified_level(qualifiers: tuple[str, ...], container: tuple[str, ...], parts: tuple[str, ...]) -> int:
    """0: they end the container; 1: they end path and container together; 2: they stand there in order; 3: they do not."""
    if container[len(container) - len(qualifiers) :] == qualifiers or not qualifiers:
        return 0
    around = parts + container
    if around[len(around) - len(qualifiers) :] == qualifiers:
        return 1
    rest = iter(around)
    return 2 if all(each in rest for each in qualifiers) else UNVERIFIED


def _rank_uses(space: SearchSpace, wanted: Sequence[WantedName], names: Sequence[list[str]], limit: int, *, across: bool) -> list[Hit]:
    """Uses by file; `across` takes the projects in turn, so that none of them hides the others."""
    if limit <= 0:
        return []
    groups: list[_Group] = []
    for term, (each, spellings) in enumerate(zip(wanted, names, strict=True)):
        for project, table in space.tables:
            for name in spellings:
                for found in space.uses(table.uses_of(name)):
                    strongest = min(REFERENCE_KINDS.index(kind) for _, kind in found.uses)
                    mentions = not each.qualifiers or table.mentions(found.file, each.qualifiers[-1])
                    facts = found.facts
                    order = (facts.test, facts.foreign, not mentions, term, strongest, -len(found.uses), found.file.path)
                    groups.append(_Group(project, order, found, name == each.name and mentions))
    ordered = _in_turn(space, groups) if across else sorted(groups, key=lambda g: (g.order, g.project))
    first: list[Hit] = []
    rest: list[Hit] = []
    taken: set[tuple[str, str | None, int | None]] = set()
    for group in ordered:
        if len(first) >= limit:
            break
        hits = [hit for hit in _places(group) if (hit.project, hit.path, hit.start_line) not in taken]
        taken.update((hit.project, hit.path, hit.start_line) for hit in hits)
        first += hits[:_FIRST_PLACES]
        rest += hits[_FIRST_PLACES:]
    return (first + rest)[:limit]


def _in_turn(space: SearchSpace, groups: list[_Group]) -> list[_Group]:
    """Each project's best file, then each one's second, projects in the call's order."""
    place = {project: number for number, (project, _) in enumerate(space.tables)}
    count: dict[str, int] = {}
    turns: list[tuple[int, int, _Group]] = []
    for group in sorted(groups, key=lambda g: (place[g.project], g.order)):
        turn = count.get(group.project, 0)
        count[group.project] = turn + 1
        turns.append((turn, place[group.project], group))
    return [group for _, _, group in sorted(turns, key=lambda item: item[:2])]


def _places(group: _Group) -> list[Hit]:
    """One hit for each definition that uses the name, at the first line where it does, and one for the file's outermost level."""
    best: dict[Definition | None, tuple[int, str]] = {}
    file = group.found.file
    for line, kind in group.found.uses:
        around = file.enclosing(line)
        known = best.get(around)
        if known is None or REFERENCE_KINDS.index(kind) < REFERENCE_KINDS.index(known[1]):
            best[around] = (line, kind)
    strongest = sorted(best.items(), key=lambda item: (REFERENCE_KINDS.index(item[1][1]), item[1][0]))
    return [
        Hit(
            project=group.project,
            path=file.path,
            start_line=line,
            end_line=line,
            symbol=around.qualified if around else None,
            kind=kind,
            is_exact=group.exact,
            native_score=round(_SCORES[kind] * (0.7 if group.found.facts.test else 1), 4),
            content_hash=file.content_hash,
        )
        for around, (line, kind) in strongest
    ]
