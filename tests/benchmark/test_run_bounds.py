"""A run with little time asks a fair part of the questions, always the same one, and ends when it said it would."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise

import pytest

from search_router.benchmark.fixture_manifest import PACKAGED
from search_router.benchmark.fixture_suite import ADVERSARIAL, CLASSES, read_fixture_questions
from search_router.benchmark.questions import UnusableData
from search_router.benchmark.run_bounds import ARM_SECONDS, ArmTime, draw_questions

QUESTIONS = read_fixture_questions(PACKAGED / "queries.jsonl")


def test_a_draw_has_every_class_and_half_alike_and_hostile_questions_of_every_kind() -> None:
    drawn = draw_questions(QUESTIONS, 60)
    kinds = Counter((q.kind, q.half) for q in drawn if not q.adversarial)
    assert kinds == {(kind, half): 5 for kind in CLASSES for half in ("dev", "test")}
    assert {q.kind for q in draw_questions(QUESTIONS, 200) if q.adversarial} == set(ADVERSARIAL)
    assert sum(q.adversarial for q in drawn) == 4


def test_a_smaller_draw_is_part_of_a_larger_one_and_none_is_everything() -> None:
    sizes = [{q.id for q in draw_questions(QUESTIONS, count)} for count in (1, 12, 60, 200, None)]
    assert all(smaller < larger for smaller, larger in pairwise(sizes))
    assert sizes[-1] == {q.id for q in QUESTIONS}
    assert draw_questions(QUESTIONS, 10_000) == list(QUESTIONS)


def test_a_class_that_is_used_up_gives_its_turn_to_the_others() -> None:
    few = [q for q in QUESTIONS if q.kind == "docs"][:3] + [q for q in QUESTIONS if q.kind == "history"][:9]
    assert Counter(q.kind for q in draw_questions(few, 10)) == {"docs": 3, "history": 7}


def test_nothing_to_ask_is_an_error_and_no_empty_run() -> None:
    with pytest.raises(UnusableData, match="No scored question"):
        draw_questions([q for q in QUESTIONS if q.adversarial], 5)


def test_the_first_arm_is_always_asked_and_a_later_one_only_while_there_is_time() -> None:
    over = ArmTime(1e-9)
    assert over.seconds_for_next() == ARM_SECONDS
    assert over.seconds_for_next() is None
    plenty = ArmTime(10)
    assert plenty.seconds_for_next() == ARM_SECONDS
    left = plenty.seconds_for_next()
    assert left is not None and 590 < left <= 600
    endless = ArmTime(None)
    assert [endless.seconds_for_next() for _ in range(3)] == [ARM_SECONDS] * 3
