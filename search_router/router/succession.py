"""What document experts know of time, applied to everything that was found: hidden documents go, superseded ones stand behind their
successors, whoever found them. Pure."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from search_router.router.fuse import Fused
from search_router.schema import Yielding


def settle_documents(fused: Sequence[Fused], hidden: Collection[tuple[str, str]], yields: Collection[Yielding]) -> tuple[list[Fused], int]:
    """(the list without the hidden documents and in the order that the successions want, how many places were hidden).

    A document's first place moves before the first place of what yields to it; nothing else changes its order. A pair of which one is
    not in the list means nothing.
    """
    gone = frozenset(hidden)
    kept = [f for f in fused if (f.candidate.project, f.candidate.path or "") not in gone] if gone else list(fused)
    if yields:
        before: dict[tuple[str, str], set[tuple[str, str]]] = {}
        for each in yields:
            before.setdefault((each.project, each.path), set()).add((each.project, each.successor))
        kept = _reorder(kept, before)
    return kept, len(fused) - len(kept)


def _reorder(fused: list[Fused], before: dict[tuple[str, str], set[tuple[str, str]]]) -> list[Fused]:
    first: dict[tuple[str, str], int] = {}
    for position, each in enumerate(fused):
        first.setdefault((each.candidate.project, each.candidate.path or ""), position)
    order: list[int] = []
    placed: set[int] = set()

    def place(position: int, above: frozenset[int]) -> None:
        if position in placed or position in above:
            return
        candidate = fused[position].candidate
        for other in sorted(first[key] for key in before.get((candidate.project, candidate.path or ""), ()) if key in first):
            place(other, above | {position})
        placed.add(position)
        order.append(position)

    for position in range(len(fused)):
        place(position, frozenset())
    return [fused[position] for position in order]
