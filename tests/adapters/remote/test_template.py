"""Placeholders keep their types and are never parsed again."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from search_router.adapters.remote.template import escape_regex, fill, placeholders_in, values_of
from search_router.errors import ExpertError, FailureClass
from search_router.schema import QueryForm
from tests.adapters.remote.desk import call_for, project_at

ROOT = Path("/srv/work")


def filled(template: object, **call: object) -> object:
    return fill(template, values_of(call_for(ROOT, **call), project_at(ROOT)))  # type: ignore[arg-type] - keywords by name


def test_a_whole_placeholder_has_its_own_type_and_a_part_is_text() -> None:
    asked = {"terms": ("parse", "url"), "limit": 7, "path": "src"}
    template = {
        "n": "{limit}",
        "q": "{question}",
        "all": "{terms}",
        "where": "{root}/{path}",
        "text": "at most {limit}: {terms}",
        "x": [1, "{project}"],
    }
    assert filled(template, **asked) == {
        "n": 7,
        "q": "where does it start",
        "all": ["parse", "url"],
        "where": "/srv/work/src",
        "text": "at most 7: parse url",
        "x": [1, "work"],
    }


def test_an_optional_key_without_a_value_is_left_out() -> None:
    assert filled({"path": "{path}", "language": "{language}", "glob": "{path}**"}) == {"glob": "**"}


@given(st.text(st.characters(exclude_categories=("Cs",)), min_size=1))
def test_nothing_in_a_question_becomes_syntax(question: str) -> None:
    assert filled({"q": "{question}", "r": "<{question}>"}, question=question) == {"q": question, "r": f"<{question}>"}


@given(st.lists(st.text(min_size=1), min_size=1, max_size=4))
def test_terms_become_a_regular_expression_that_matches_each_of_them(terms: list[str]) -> None:
    pattern = values_of(call_for(ROOT, terms=tuple(terms), form=QueryForm.KEYWORDS), project_at(ROOT))["regex"]
    assert all(re.search(pattern, term) for term in terms)
    assert all(re.fullmatch(escape_regex(term), term) for term in terms)


@pytest.mark.parametrize(
    ("term", "symbol", "path"),
    [("Client.send", "Client.send", "Client/send"), ("Client::send", "Client.send", "Client/send"), ("send", "send", "send")],
)
def test_a_name_comes_in_the_forms_that_systems_want(term: str, symbol: str, path: str) -> None:
    assert filled(["{symbol}", "{name_path}"], terms=(term,), form=QueryForm.SYMBOL) == [symbol, path]


def test_a_question_without_a_name_is_refused_to_an_expert_that_needs_one() -> None:
    with pytest.raises(ExpertError) as caught:
        filled({"name": "{symbol}"}, terms=("how does it",), form=QueryForm.KEYWORDS)
    assert caught.value.failure is FailureClass.REJECTED


def test_braces_that_are_no_placeholder_stay() -> None:
    assert filled("{ } {} {X} {{limit}}", limit=3) == "{ } {} {X} {3}"
    assert placeholders_in({"a": ["{root}", {"b": "{env:KEY} {before.id}"}]}) == {"root", "env:KEY", "before.id"}
