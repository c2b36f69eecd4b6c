from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from search_router.adapters.local.history_question import Aspect, aspect_of, code_terms, file_terms, message_tokens, subtokens, tokens_of
from search_router.schema import QueryForm, SubQuery


@pytest.mark.parametrize(
    ("word", "expected"),
    [
        ("header", ("header",)),
        ("GetHeader", ("get", "header", "getheader")),
        ("get_header", ("get", "header", "getheader")),
        ("HTTPServer2", ("http", "server", "2", "httpserver2")),
        ("café", ("café",)),
        ("日本語", ("日本", "本語")),
        ("字", ("字",)),
        ("🐛", ("u1f41b",)),
        ("", ()),
    ],
)
def test_words_become_the_parts_that_people_search_for(word: str, expected: tuple[str, ...]) -> None:
    assert subtokens(word) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("when did setFloatField land", Aspect.INTRODUCED),
        ("when was the pool", Aspect.INTRODUCED),
        ("who introduced the retry", Aspect.INTRODUCED),
        ("when was the retry removed", Aspect.REMOVED),
        ("who deleted it and who added it", Aspect.REMOVED),
        ("why was the default changed", Aspect.CHANGED),
        ("who maintains the pool", Aspect.CHANGED),
    ],
)
def test_the_first_verb_says_which_change_is_asked_for(text: str, expected: Aspect) -> None:
    assert aspect_of(text) is expected


def test_a_verb_inside_a_name_says_nothing() -> None:
    text = "when was `delete first item` dropped, who added add_item"
    assert aspect_of(text, ("delete first item", "add_item")) is Aspect.REMOVED


def test_asking_words_are_not_looked_for_in_messages() -> None:
    assert message_tokens("When was the connection pool introduced?") == ("connection", "pool")


def test_a_changelog_entry_keeps_its_verbs() -> None:
    assert message_tokens("Removed the pool") == ("removed", "pool")


def test_a_question_of_asking_words_only_keeps_them() -> None:
    assert message_tokens("why was it") == ("why", "was", "it")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("when did setFloatField land", ("setFloatField",)),
        ("who changed `max retries` and log_level", ("max retries", "log_level")),
        ('who added "a.b"', ("a.b",)),
        ("don't touch the user's things", ()),
        ("when was Context.GetHeader() added", ("Context.GetHeader",)),
        ("when did the pool land", ()),
    ],
)
def test_quoted_strings_and_identifiers_are_looked_for_in_changes(text: str, expected: tuple[str, ...]) -> None:
    assert code_terms(SubQuery(QueryForm.TEXT, (), text)) == expected


def test_a_literal_sub_query_names_its_own_terms() -> None:
    assert code_terms(SubQuery(QueryForm.LITERAL, ("pool", "retry()", "a\0b", "\ud800", " "), "x")) == ("pool", "retry")


def test_paths_and_terms_may_be_files() -> None:
    sub_query = SubQuery(QueryForm.KEYWORDS, ("Makefile",), "who changed docs/index.rst, and why?")
    assert file_terms(sub_query) == ("Makefile", "docs/index.rst")


@given(st.text(max_size=200))
def test_no_text_breaks_the_reading_of_a_question(text: str) -> None:
    sub_query = SubQuery(QueryForm.TEXT, (text,), text)
    code_terms(sub_query)
    file_terms(sub_query)
    aspect_of(text, code_terms(sub_query))
    assert set(message_tokens(text)) <= set(tokens_of(text))
    assert all(token and not token.isspace() and '"' not in token for token in tokens_of(text))
