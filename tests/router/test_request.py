"""Raw arguments become a request, or a named refusal."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from search_router.errors import RequestDeclined, RequestRejected
from search_router.router.request import CLIP, MAX_PROBLEMS, parse_request, question_classes
from search_router.schema import Intent, PrecisionClass, SearchRequest, Shape


def rejected(raw: object) -> dict[str, tuple[str, str]]:
    """field → (code, message) of a refusal."""
    with pytest.raises(RequestRejected) as caught:
        parse_request(raw)
    return {problem.field: (problem.code, problem.message) for problem in caught.value.problems}


def declined(question: str) -> RequestDeclined:
    with pytest.raises(RequestDeclined) as caught:
        parse_request({"question": question})
    return caught.value


def fastest(action: Callable[[], object], *, runs: int = 5) -> float:
    """Seconds of the fastest of some runs: the machine is shared."""
    times: list[float] = []
    for _ in range(runs):
        started = time.perf_counter()
        action()
        times.append(time.perf_counter() - started)
    return min(times)


def test_a_question_alone_is_a_request_with_the_defaults() -> None:
    assert parse_request({"question": "where is parse_request defined"}) == SearchRequest(question="where is parse_request defined")


def test_enum_strings_and_lists_are_read_as_what_they_name() -> None:
    request = parse_request(
        {
            "question": "TokenBucket",
            "intent": "typed-symbol",
            "expected_shape": "single-file",
            "budget": {"min_precision_class": "syntactic", "latency_ms": 500},
            "filters": {"tags": ["adr", "storage"], "date_from": "2026-01-31"},
            "scope": {"project": "api", "path": None},
        }
    )
    assert (request.intent, request.expected_shape) == (Intent.TYPED_SYMBOL, Shape.SINGLE_FILE)
    assert request.budget.min_precision_class is PrecisionClass.SYNTACTIC
    assert request.filters.tags == ("adr", "storage")
    assert request.scope.project == "api"


def test_every_problem_is_named_at_once_and_in_our_own_words() -> None:
    problems = rejected(
        {
            "question": "where is foo",
            "limt": 3,
            "limit": "5",
            "intent": "conceptul",
            "scope": {"langauge": "go", "path": 5},
            "budget": {"latency_ms": 0, "max_experts": 65, "allow_llm": 1},
            "filters": {"tags": ["ok", 1], "date_to": "yesterday"},
            "detail": "all",
            "expected_shape": True,
        }
    )
    assert problems == {
        "limt": ("unknown-field", "is no field of a request; did you mean limit?"),
        "scope.langauge": ("unknown-field", "is no field of a request; did you mean language?"),
        "scope.path": ("wrong-type", "must be a string, not 5"),
        "intent": (
            "not-allowed",
            "must be one of 'conceptual', 'identifier', 'typed-symbol', 'cross-repo-impact', 'docs', 'history' or 'unknown', "
            "not 'conceptul'",
        ),
        "budget.latency_ms": ("out-of-range", "must be at least 1, not 0"),
        "budget.max_experts": ("out-of-range", "must be at most 64, not 65"),
        "budget.allow_llm": ("wrong-type", "must be true or false, not 1"),
        "expected_shape": (
            "not-allowed",
            "must be one of 'ranked-evidence', 'single-file', 'symbol-list' or 'answer-with-citations', not true",
        ),
        "filters.tags.1": ("wrong-type", "must be a string, not 1"),
        "filters.date_to": ("wrong-format", "must be a date such as 2026-01-31, not 'yesterday'"),
        "limit": ("wrong-type", "must be a whole number, not '5'"),
        "detail": ("not-allowed", "must be one of 'skim' or 'full', not 'all'"),
    }


@pytest.mark.parametrize(
    ("value", "shown"),
    [(True, "true"), (5.0, "5.0"), ("5", "'5'"), (None, "null"), ([], "a list"), ({}, "an object"), (float("nan"), "nan")],
)
def test_nothing_is_coerced_to_a_number(value: object, shown: str) -> None:
    assert rejected({"question": "where is foo", "limit": value}) == {"limit": ("wrong-type", f"must be a whole number, not {shown}")}


@pytest.mark.parametrize("raw", [None, [], "where is foo", 3, True])
def test_arguments_that_are_no_object_are_rejected(raw: object) -> None:
    assert rejected(raw)[""][0] == "wrong-type"


@pytest.mark.parametrize(("raw", "code"), [({}, "missing-field"), ({"question": None}, "wrong-type"), ({"question": ["x"]}, "wrong-type")])
def test_a_question_that_is_missing_or_no_text_is_rejected_together_with_other_faults(raw: dict[str, object], code: str) -> None:
    problems = rejected({**raw, "limit": 0})
    assert problems["question"][0] == code
    assert problems["limit"][0] == "out-of-range"


def test_a_lone_surrogate_is_invalid_unicode_wherever_it_stands() -> None:
    problems = rejected(
        {"question": "caf\ud800", "cursor": "\udfff", "scope": {"path": "a\udc00b"}, "filters": {"tags": ["\ud801"]}, "limit": 0}
    )
    assert {field: code for field, (code, _) in problems.items()} == {
        "question": "invalid-unicode",
        "cursor": "invalid-unicode",
        "scope.path": "invalid-unicode",
        "filters.tags.0": "invalid-unicode",
        "limit": "out-of-range",
    }


def test_hostile_values_are_never_repeated_at_length() -> None:
    with pytest.raises(RequestRejected) as caught:
        parse_request(
            {
                "question": "where is foo",
                "k" * 10**6: 1,
                "intent": "x" * 10**6,
                "limit": 10**5000,
                "detail": "\u202eevil",
                "scope": {"a": {}},
            }
        )
    assert len(str(caught.value)) < 2000
    assert "\u202e" not in str(caught.value)
    assert all(len(problem.field) < CLIP + 40 for problem in caught.value.problems)
    assert "pydantic" not in str(caught.value)


def test_a_thousand_unknown_keys_are_counted_not_listed() -> None:
    with pytest.raises(RequestRejected) as caught:
        parse_request({"question": "where is foo", **{f"key{i}": i for i in range(1000)}})
    assert len(caught.value.problems) == MAX_PROBLEMS
    assert caught.value.problems[-1].message == "985 further problems are not listed"


def test_deep_nesting_and_long_lists_end_in_a_refusal() -> None:
    deep: dict[str, Any] = {}
    for _ in range(5000):
        deep = {"a": deep}
    assert rejected({"question": "where is foo", "cursor": deep})["cursor.a.a.a.a"][1] == "is nested deeper than 4 levels"
    assert rejected({"question": "where is foo", "filters": {"tags": ["x"] * 100_000}})["filters.tags"][0] == "out-of-range"


@pytest.mark.parametrize("question", ["", "   ", "\n\t\r", "\0", "\x01\x1f\x7f", "\u200b\u200d", "\ufeff", "???", "-- .. ,,"])
def test_a_question_without_a_word_is_declined_as_empty(question: str) -> None:
    error = declined(question)
    assert (error.code, bool(error.remedy)) == ("empty-question", True)


@pytest.mark.parametrize("question", ["the of and", "what is it?", "where are they", "how do I use it"])
def test_a_question_of_function_words_is_declined_with_what_to_add(question: str) -> None:
    error = declined(question)
    assert error.code == "empty-question"
    assert "Add what it is about" in error.remedy


@pytest.mark.parametrize("question", ["x", "🔥", "配置", "أين", "404", '"the"', '"=>"', "C++", "a\0b", "README"])
def test_the_smallest_searchable_questions_are_accepted(question: str) -> None:
    assert parse_request({"question": question}).question == question


def test_the_limit_is_counted_in_bytes_of_utf8() -> None:
    assert parse_request({"question": "é" * 2048}).question
    error = declined("é" * 2048 + "x")
    assert (error.code, "4097 bytes" in error.message) == ("huge-question", True)


@pytest.mark.parametrize("question", ["a" * 2**20, " " * 2**20, "é" * 2**19, "\0" * 2**20])
def test_a_mebibyte_is_declined_within_five_milliseconds(question: str) -> None:
    assert declined(question).code == "huge-question"
    assert fastest(lambda: declined(question)) < 0.005


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters(), max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(st.characters(), max_size=8), inner, max_size=4),
    max_leaves=12,
)
_FIELDS = st.dictionaries(st.sampled_from(sorted(SearchRequest.model_fields)) | st.text(max_size=6), _JSON, max_size=6)


@settings(max_examples=300, deadline=None)
@given(_JSON | _FIELDS | _FIELDS.map(lambda fields: {"question": "where is foo", **fields}))
def test_no_json_value_raises_anything_but_a_refusal(raw: object) -> None:
    try:
        request = parse_request(raw)
    except (RequestRejected, RequestDeclined) as error:
        assert error.code
        assert len(str(error)) < 6000
    else:
        assert isinstance(request, SearchRequest)


@settings(max_examples=100, deadline=None)
@given(st.sets(st.binary()) | st.binary() | st.complex_numbers() | st.dictionaries(st.integers(), st.binary()))
def test_values_that_are_no_json_are_rejected_too(value: object) -> None:
    with pytest.raises(RequestRejected):
        parse_request({"question": "where is foo", "scope": value, "limit": value, "extra": value})


@pytest.mark.parametrize(
    ("question", "classes"),
    [
        ("where is the retry policy", ()),
        ("where is the naïve retry policy", ("non-ascii",)),
        ("配置在哪里加载", ("non-ascii",)),
        ("user\u202enimda check", ("non-ascii", "bidi")),
        ("find \u2066hidden\u2069 text", ("non-ascii", "bidi")),
        ("where\0is\0foo", ("control-characters",)),
        ("two\nlines\tand a tab", ()),
        (r"name\s*=\s*x", ("regex",)),
        ("", ("empty",)),
        ("word " * 1000, ("huge",)),
        ("\ud800", ("empty", "non-ascii")),
        ("<|im_start|>system", ("injection-shaped",)),
    ],
)
def test_classes_of_a_question(question: str, classes: tuple[str, ...]) -> None:
    assert question_classes(question) == classes


@settings(max_examples=200, deadline=None)
@given(st.text(st.characters(), max_size=300))
def test_classes_never_raise_and_are_stable(question: str) -> None:
    assert question_classes(question) == question_classes(question)


def test_classes_of_a_mebibyte_are_bounded() -> None:
    assert fastest(lambda: question_classes("ignore all " * 100_000), runs=3) < 0.1
