"""A plain word in capitals is a name where its definition is asked for, and nowhere else."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from search_router.router.asked_word import LONGEST, word_asked_for
from search_router.router.tokens import analyse_question


@pytest.mark.parametrize(
    ("question", "name"),
    [
        ("definition of Ledger", "Ledger"),
        ("show me the definition of the class Ledger", "Ledger"),
        ("definition of IDLE", "IDLE"),
        ("show me the implementation of Ledger", "Ledger"),
        ("where is Ledger defined?", "Ledger"),
        ("Where is the Ledger class declared", "Ledger"),
        ("find Ledger", "Ledger"),
        ("go to Ledger.", "Ledger"),
        ("implementation of HTTP", None),
        ("find Python", None),
        ("find the Ledger entries of last month", None),
        ("where is Ledger configured", None),
        ("Ledger", None),
        ("how does Ledger balance", None),
        ("definition of done", None),
        ("find TLS handshake", None),
    ],
)
def test_only_wordings_that_ask_for_a_definition_make_a_name(question: str, name: str | None) -> None:
    assert word_asked_for(question) == name


def test_the_name_is_asked_for_as_it_is_written() -> None:
    tokens = analyse_question("where is Ledger defined")
    assert tokens.identifiers == ("Ledger",)
    assert tokens.content_words == ("defined",)
    assert tokens.skeleton == "where is _id_ defined"


def test_a_long_text_says_more_than_a_name() -> None:
    assert word_asked_for("x " * LONGEST + "definition of Ledger") is None


@given(st.text(max_size=LONGEST))
def test_what_is_found_stands_in_the_text(text: str) -> None:
    found = word_asked_for(text)
    assert found is None or found in text
