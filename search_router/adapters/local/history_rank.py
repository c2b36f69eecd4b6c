"""One order out of what was found in messages, in changes and in the history of a file. Pure, and the same for the same input."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from search_router.adapters.local.history_question import Aspect

RRF_K = 10
"""Smaller than the router's: these lists are short and their first places mean much."""
LIST_LENGTH = 100
MESSAGES_WEIGHT, CHANGES_WEIGHT, FILES_WEIGHT = 1.0, 1.0, 0.9
PINNED = 1.0
"""More than all lists together can give: the commit that is the answer by its nature stands first."""


@dataclass(frozen=True, slots=True)
class Found:
    """Rows of commits: `messages` best first; `changes`, for each term row to matching paths, and `files` in any order."""

    messages: Sequence[int]
    changes: Sequence[Mapping[int, Sequence[str]]] = ()
    files: Collection[int] = ()


def rank_commits(found: Found, aspect: Aspect, place: Mapping[int, int], doubtful: Collection[int] = ()) -> list[tuple[int, float]]:
    """(row, score), best first: weighted reciprocal rank fusion (Cormack, Clarke, Buettcher 2009) of the lists.

    `place` is a row's index in the history, newest 0. Changes and files are ordered by it: newest first, or for an introduction oldest
    first, and those that brought a term to a file where it had not been before the others. The first of each term's changes (or of a
    file's, when there are none) is pinned to the top when an introduction or a removal is asked for, unless it is `doubtful` (a
    shallow clone's boundary). Ties go to the message's order, then to the newer commit.
    """
    scores: dict[int, float] = {}

    def vote(rows: Sequence[int], weight: float) -> None:
        for rank, row in enumerate(rows[:LIST_LENGTH], start=1):
            scores[row] = scores.get(row, 0.0) + weight / (RRF_K + rank)

    def in_time(rows: Collection[int]) -> list[int]:
        return sorted(rows, key=lambda row: place[row], reverse=aspect is Aspect.INTRODUCED)

    def pin(ordered: Sequence[int]) -> None:
        if aspect is not Aspect.CHANGED and ordered and ordered[0] not in doubtful:
            scores[ordered[0]] += PINNED

    vote(found.messages, MESSAGES_WEIGHT)
    for changed in found.changes:
        ordered = in_time(changed)
        if aspect is Aspect.INTRODUCED:
            ordered = _arrivals_first(ordered, changed)
        vote(ordered, CHANGES_WEIGHT)
        pin(ordered)
    files = in_time(found.files)
    vote(files, FILES_WEIGHT)
    if not any(found.changes):  # the file itself is what was added or removed
        pin(files)
    by_message = {row: rank for rank, row in enumerate(found.messages)}
    last = len(by_message)
    return sorted(scores.items(), key=lambda item: (-item[1], by_message.get(item[0], last), place[item[0]]))


def _arrivals_first(oldest_first: Sequence[int], changed: Mapping[int, Sequence[str]]) -> list[int]:
    seen: set[str] = set()
    arrivals: list[int] = []
    for row in oldest_first:
        if not seen.issuperset(changed[row]):
            arrivals.append(row)
            seen.update(changed[row])
    later = set(oldest_first) - set(arrivals)
    return arrivals + [row for row in oldest_first if row in later]
