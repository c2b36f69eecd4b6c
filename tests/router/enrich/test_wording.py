"""Two wordings share a key only where nobody could tell them apart."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from search_router.adapters.local.code_words import names_in, question_words
from search_router.adapters.local.history_question import message_tokens
from search_router.canonical import normal_question
from search_router.router.enrich.wording import same_wording
from search_router.router.tokens import analyse_question
from tests.router.enrich.workshop import OFF, ask, workshop

PAIRS = [
    ("Where is the parser of dates", "where is the parser of dates?"),
    ("how does  the retry of a charge work", "How does the retry of a charge work."),
    ("where is should_retry defined ?", "Where is should_retry defined"),
]
APART = [
    ("Foo", "foo"),
    ("where is Foo used here", "where is foo used here"),
    ("a.b", "a b"),
    ("what calls a.b here", "what calls a b here"),
    ('where is "Retry." written', 'where is "Retry" written'),
    ("what does empty? mean", "what does empty mean"),
    ("where do we call save!", "where do we call save"),
    ("who calls parse()?", "who calls parse"),
    ("Parser of the dates is where", "parser of the dates is where"),
    ("where is the file main.py?", "where is the file main.py"),
    ("where is C?", "where is C"),
    ("why is there WHERE here", "why is there where here"),
    ("how long is 3.", "how long is 3"),
    ("Fix parser.", "Fix parser"),
    ("how does it work??", "how does it work"),
]


@pytest.mark.parametrize(("one", "other"), PAIRS)
def test_space_a_final_mark_and_the_capital_of_a_function_word_are_the_same_question(one: str, other: str) -> None:
    assert same_wording(one) == same_wording(other)


@pytest.mark.parametrize(("one", "other"), APART)
def test_case_and_punctuation_of_code_are_another_question(one: str, other: str) -> None:
    assert same_wording(one) != same_wording(other)


WORDS = st.sampled_from(
    [
        "Where",
        "where",
        "How",
        "the",
        "is",
        "Parser",
        "parser",
        "a.b",
        "foo()",
        "should_retry",
        "save!",
        "empty?",
        '"x y"',
        "`Foo`",
        "work",
        "C",
        "v1.2",
    ]
)
ENDS = st.sampled_from(["", "?", " ?", ".", "!", "...", "?!", ")"])


@given(words=st.lists(WORDS, min_size=1, max_size=7), end=ENDS, more=st.lists(WORDS, min_size=1, max_size=7), other=ENDS)
def test_what_shares_a_key_looks_the_same_to_every_reader_of_questions(words: list[str], end: str, more: list[str], other: str) -> None:
    """The classifier's tokens, and the words and names that experts read in the whole text."""
    one, two = " ".join(words) + end, " ".join(more if len(more) % 2 else words) + other
    for left, right in ((one, two), (one, same_wording(one))):
        if same_wording(left) == same_wording(right):
            assert question_words(left) == question_words(right)
            assert names_in(left) == names_in(right)
            assert message_tokens(left) == message_tokens(right)
            mine, theirs = analyse_question(left), analyse_question(right)
            for field in ("quoted", "regexes", "identifiers", "paths", "content_words", "languages", "versions", "dates", "heads"):
                assert getattr(mine, field) == getattr(theirs, field), field


@given(st.text(max_size=60))
def test_it_is_stable_and_changes_no_letter_but_the_first_and_no_mark_but_the_last(text: str) -> None:
    form = same_wording(text)
    assert same_wording(form) == form
    plain = normal_question(text)
    assert form[1:] in (plain[1:], plain[1:-1], plain[1:-2])
    assert form[:1].lower() == plain[:1].lower() or not form
    if form != plain:
        assert re.match(r"[A-Za-z]", plain)


@pytest.mark.anyio
async def test_the_real_experts_answer_both_wordings_alike(tmp_path: Path) -> None:
    pairs = [
        ("how does the retry of a charge work", "How  does the retry of a charge work?"),
        ("Where is should_retry defined?", "where is should_retry defined"),
        ("who calls should_retry in the shop", "Who calls should_retry in the shop."),
        ("when was the delay of retries introduced", "When was the delay of retries introduced?"),
        ("what was decided about closed orders", "What was decided about closed orders?"),
        ("How is pydantic configured for strict validation?", "how is pydantic configured for strict validation"),
    ]
    async with workshop(tmp_path, flags=OFF) as router:
        for one, other in pairs:
            left, right = await ask(router, one), await ask(router, other)
            assert same_wording(one) == same_wording(other)
            assert left.evidence == right.evidence, one
            assert left.classification == right.classification
            assert [(r.id, r.status, r.results, r.sub_query) for r in left.experts] == [
                (r.id, r.status, r.results, r.sub_query) for r in right.experts
            ]
