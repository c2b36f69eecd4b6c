"""Where items stand in the text of an answer, and how many tokens lie before their end."""

from __future__ import annotations

from search_router.benchmark.asking import Asked
from search_router.benchmark.gains import Result
from search_router.benchmark.questions import Question, Target
from search_router.benchmark.token_counter import TokenCounter, best_counter
from search_router.benchmark.tokens import Block, item_blocks, tokens_to_targets

TEXT = "2 items\n1. a.py#L1\n   | one\n2. b.py#L5\n   | two\nreceipt x"
LETTERS = TokenCounter("letters", True, len)


def asked(text: str, *targets: Target) -> Asked:
    question = Question(id="1", repo="r", language="l", category="c", question="q", targets=targets)
    return Asked(
        question, (Result("a.py", 1, 3), Result("b.py", 5, 9), Result("c.py", 1, 1)), ("a.py#L1", "b.py#L5", "c.py#L1"), 1, 1, "", (), text
    )


def test_a_block_runs_from_its_heading_to_the_next_one_and_a_cut_item_has_none() -> None:
    first, second, third = item_blocks(TEXT, ["a.py#L1", "b.py#L5", "c.py#L1"])
    assert first == Block(8, TEXT.index("2. b.py"))
    assert second == Block(TEXT.index("2. b.py"), len(TEXT))
    assert third is None


def test_an_id_that_begins_another_is_not_taken_for_it() -> None:
    text = "1. a.py#L10\n2. a.py#L1\n"
    assert [b.start for b in item_blocks(text, ["a.py#L10", "a.py#L1"]) if b] == [0, 12]


def test_a_target_costs_the_text_up_to_the_end_of_its_item_and_one_that_is_not_shown_is_never_inside() -> None:
    needed = tokens_to_targets(asked(TEXT, Target(path="a.py"), Target(path="c.py"), Target(path="d.py")), LETTERS)
    assert needed == [float(len("2 items\n1. a.py#L1\n   | one")), float("inf"), float("inf")]


def test_lines_count_too() -> None:
    assert tokens_to_targets(asked(TEXT, Target(path="b.py", start_line=10, end_line=12)), LETTERS) == [float("inf")]


def test_the_counter_says_whether_it_is_exact() -> None:
    counter = best_counter()
    assert counter.exact is not counter.name.startswith("APPROXIMATE")
    assert counter.tokens_of("") == 0
    assert 2 <= counter.tokens_of("hello world") <= 3
