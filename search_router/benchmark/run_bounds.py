"""What a run with little time asks: a fair part of the questions, and as many arms as probably fit. Pure but for the clock."""

from __future__ import annotations

import hashlib
import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import Final

from search_router.benchmark.fixture_suite import FixtureQuestion
from search_router.benchmark.questions import UnusableData

ARM_SECONDS: Final = 3600.0
LEAST_HOSTILE: Final = 4


def draw_questions(questions: Sequence[FixtureQuestion], count: int | None) -> list[FixtureQuestion]:
    """`count` of the scored questions, in the suite's order, the same ones every time; all of them for None.

    They come from each class and half in turn, in the order of a hash of the id, so that a smaller draw is part of a larger one. Hostile
    questions are drawn in the same way and proportion, at least four.

    Raises:
        UnusableData: nothing is left to ask.
    """
    scored = [q for q in questions if not q.adversarial]
    if not scored:
        raise UnusableData("No scored question is left.", remedy="Check --only.")
    if count is None or count >= len(scored):
        return list(questions)
    hostile = [q for q in questions if q.adversarial]
    share = max(LEAST_HOSTILE, round(len(hostile) * count / len(scored)))
    drawn = {q.id for q in [*_in_turn(scored)][:count]} | {q.id for q in [*_in_turn(hostile)][:share]}
    return [q for q in questions if q.id in drawn]


def _in_turn(questions: Sequence[FixtureQuestion]) -> Iterator[FixtureQuestion]:
    groups: dict[tuple[str, str], list[FixtureQuestion]] = defaultdict(list)
    for question in sorted(questions, key=lambda q: hashlib.sha256(q.id.encode()).digest()):
        groups[question.kind, question.half].append(question)
    for place in range(max(map(len, groups.values()), default=0)):
        yield from (group[place] for _, group in sorted(groups.items()) if place < len(group))


class ArmTime:
    """The time of a whole run, shared out to its arms. The first arm is always asked; without minutes an arm has an hour."""

    def __init__(self, minutes: float | None) -> None:
        self._until = None if minutes is None else time.monotonic() + 60 * minutes
        self._longest = 0.0
        self._began: float | None = None

    def seconds_for_next(self) -> float | None:
        """How long the next arm may take; None when it would probably end too late."""
        now = time.monotonic()
        if self._began is not None:
            self._longest = max(self._longest, now - self._began)
        first, self._began = self._began is None, now
        if self._until is None or first:
            return ARM_SECONDS
        left = self._until - now
        return None if left < self._longest else left
