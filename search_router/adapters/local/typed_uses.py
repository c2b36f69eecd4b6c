"""Uses that a typed engine resolved, as ranked hits: one for each definition that has one, because it is callers that people ask for."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

from search_router.adapters.local.symbol_table import IndexedFile, PathFacts
from search_router.schema import Hit

DEFINITION_SHARE: Final = 5
"""Where uses come first, one in so many places is kept for definitions."""
_STRENGTH: Final = {"call": 0, "use": 1, "type": 2, "import": 3}
_SCORES: Final = {"call": 1.0, "use": 0.8, "type": 0.7, "import": 0.6}
_TESTS_COUNT: Final = 0.7


class ResolvedUse(NamedTuple):
    """One place where a name is used and an engine says that it is the one asked for. `line` is 1-based.

    `content_hash` is that of the file as the engine saw it, None where nobody knows. `is_exact` says that the name stands there.
    """

    project: str
    file: IndexedFile
    line: int
    kind: str
    engine: str
    content_hash: str | None
    flags: tuple[str, ...] = ()
    is_exact: bool = True
    span: tuple[int, int] | None = None
    """Lines of the definition around it as the engine sees them, for files that have no syntax here."""


def kind_of_use(file: IndexedFile, name: str, line: int) -> str | None:
    """How a name is used on a 1-based line: call, import, type or use; None where the syntax has no such use."""
    names = file.syntax.names
    at = bisect_left(names, name)
    if at == len(names) or names[at] != name:
        return None
    return next((kind for where, kind in file.syntax.uses_at(at) if where == line), None)


def rank_uses(uses: Iterable[ResolvedUse], limit: int, *, calls_only: bool = False) -> list[Hit]:
    """One hit a caller, at its first and strongest use: calls before other uses before imports, tests and foreign code after the rest.

    `calls_only` leaves out imports: a name that is handed on without being called stays, since somebody will call it.
    """
    uses = [use for use in uses if use.kind != "import"] if calls_only else uses
    best: dict[tuple[str, str, int, int], ResolvedUse] = {}
    for use in sorted(uses, key=lambda u: (u.project, u.file.path, u.line, _STRENGTH.get(u.kind, 1), u.engine)):
        around = use.file.enclosing(use.line)
        lines = (around.start_line, around.end_line) if around else use.span or (use.line, use.line)
        key = (use.project, use.file.path, *lines)
        if key not in best or _STRENGTH.get(use.kind, 1) < _STRENGTH.get(best[key].kind, 1):
            best[key] = use
    return [_hit(use) for use in sorted(best.values(), key=_order)][:limit]


def arrange(definitions: Sequence[Hit], uses: Sequence[Hit], limit: int, *, uses_first: bool) -> tuple[Hit, ...]:
    """Both in one list of at most `limit`."""
    if not uses_first:
        return (*definitions, *uses)[:limit]
    kept = definitions[: max(1, limit // DEFINITION_SHARE)]
    first = uses[: max(0, limit - len(kept))]
    return (*first, *definitions[: limit - len(first)])


def _order(use: ResolvedUse) -> tuple[bool, bool, bool, int, str, str, int]:
    facts = PathFacts.of(use.file.path)
    return bool(use.flags), facts.foreign, facts.test, _STRENGTH.get(use.kind, 1), use.project, use.file.path, use.line


def _hit(use: ResolvedUse) -> Hit:
    around = use.file.enclosing(use.line)
    start, end = (use.line, use.line) if around is not None or use.span is None else use.span
    score = _SCORES.get(use.kind, 0.8) * (_TESTS_COUNT if PathFacts.of(use.file.path).test else 1)
    return Hit(
        project=use.project,
        path=use.file.path,
        start_line=start,
        end_line=end,
        symbol=around.qualified if around else None,
        kind=use.kind,
        is_exact=use.is_exact,
        native_score=round(score, 4),
        content_hash=use.content_hash,
        flags=use.flags,
        engine=use.engine,
    )
