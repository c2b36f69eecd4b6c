"""What a question about edges asks for, and of which names."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from search_router.adapters.local.callgraph_question import Wanted, read_question
from search_router.schema import QueryForm, SubQuery


def read(text: str, *terms: str) -> str:
    question = read_question(SubQuery(QueryForm.SYMBOL if terms else QueryForm.TEXT, terms, text))
    return f"{question.wanted.value} {' '.join(question.modules)}".strip()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("who calls request", "callers request"),
        ("what are the callers of `Session.request`?", "callers Session.request"),
        ("find all call sites of parse_line", "callers parse_line"),
        ("who uses ClientSession", "uses ClientSession"),
        ("where is sentinel used", "uses sentinel"),
        ("which modules import multidict", "importers multidict"),
        ("who consumes the @acme/util package", "importers @acme/util"),
        ("what depends on github.com/acme/shop", "importers github.com/acme/shop"),
        ("which files include src/lib/parse.h", "importers src/lib/parse.h"),
        ("what does run_app call?", "callees run_app"),
        ("which functions are called by run_app", "callees run_app"),
        ("callees of run_app", "callees run_app"),
        ("what breaks if I change guess_filename", "impact guess_filename"),
        ("is it safe to remove `old_api`", "impact old_api"),
        ("blast radius of Session.request", "impact Session.request"),
        ("who transitively calls low_level", "impact low_level"),
        ("what breaks if the session handling changes", "impact"),
    ],
)
def test_direction_and_names(text: str, expected: str) -> None:
    assert read(text) == expected


def test_identifiers_that_the_router_found_are_taken() -> None:
    assert read("who calls Foo::bar and baz_q", "Foo::bar", "baz_q") == "callers Foo::bar baz_q"


@pytest.mark.parametrize("wanted", Wanted)
def test_every_direction_can_be_asked_for(wanted: Wanted) -> None:
    asked = {
        Wanted.CALLERS: "who calls it_x",
        Wanted.USES: "who uses it_x",
        Wanted.IMPORTERS: "who imports it_x",
        Wanted.CALLEES: "what does it_x call",
        Wanted.IMPACT: "what breaks without it_x",
    }
    assert read(asked[wanted]) == f"{wanted.value} it_x"


@given(st.text(max_size=300))
def test_any_text_is_read(text: str) -> None:
    assert read_question(SubQuery(QueryForm.TEXT, (), text)).wanted in Wanted
