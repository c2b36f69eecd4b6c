from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from search_router.adapters.local.history_question import Aspect
from search_router.adapters.local.history_rank import Found, rank_commits

PLACE = {row: row for row in range(100)}  # row 0 is the newest


def order(found: Found, aspect: Aspect, doubtful: frozenset[int] = frozenset()) -> list[int]:
    return [row for row, _ in rank_commits(found, aspect, PLACE, doubtful)]


def test_the_introduction_stands_before_the_best_message_and_before_agreement() -> None:
    found = Found(messages=[5, 6], changes=[{5: ["a"], 40: ["a"], 20: ["a"]}])
    assert order(found, Aspect.INTRODUCED)[:2] == [40, 5]


def test_arrivals_in_further_files_stand_before_later_changes() -> None:
    found = Found(messages=[], changes=[{40: ["a"], 30: ["a"], 20: ["b"]}])
    assert order(found, Aspect.INTRODUCED) == [40, 20, 30]


def test_the_newest_change_is_the_removal() -> None:
    found = Found(messages=[50], changes=[{40: ["a"], 20: ["a"]}])
    assert order(found, Aspect.REMOVED) == [20, 50, 40]


def test_without_a_pinned_change_agreement_of_both_lists_wins_and_messages_win_ties() -> None:
    found = Found(messages=[1, 2, 3], changes=[{3: ["a"], 7: ["a"]}])
    assert order(found, Aspect.CHANGED) == [3, 1, 2, 7]


def test_a_shallow_boundary_is_never_pinned() -> None:
    found = Found(messages=[5, 6], changes=[{40: ["a"]}])
    assert order(found, Aspect.INTRODUCED, frozenset({40})) == [5, 40, 6]


rows = st.lists(st.integers(0, 99), unique=True, max_size=20)


@given(rows, rows, rows, st.sampled_from(Aspect))
def test_the_order_does_not_depend_on_the_order_of_unordered_input(
    messages: list[int], changes: list[int], files: list[int], aspect: Aspect
) -> None:
    one = Found(messages, [{row: ["a"] for row in changes}], files)
    other = Found(messages, [{row: ["a"] for row in reversed(changes)}], set(files))
    assert rank_commits(one, aspect, PLACE) == rank_commits(other, aspect, PLACE)
    assert {row for row, _ in rank_commits(one, aspect, PLACE)} == {*messages, *changes, *files}
