"""The fast encoder writes the very bytes of the reference implementation of RFC 8785, or leaves the value to it."""

from __future__ import annotations

import json

import pytest
import rfc8785
from hypothesis import given
from hypothesis import strategies as st

from search_router.canonical import MAX_INTEGER, canonical_bytes

INTEGERS = st.integers(-MAX_INTEGER, MAX_INTEGER)
FLOATS = st.floats() | st.floats(-10, 10) | INTEGERS.map(float) | st.decimals(-1000, 1000, places=6).map(float)
TEXTS = (
    st.text() | st.text(st.characters(codec=None)) | st.sampled_from(["\x00", "\x1f\x7f", "\ud800", '"\\/\b\f\n\r\t', "é", "\u2028", "😀"])
)
KEYS = st.text(st.characters(max_codepoint=127)) | st.text() | st.sampled_from(["\ue000", "😀", "\ud800"])
VALUES = st.recursive(
    st.none() | st.booleans() | INTEGERS | st.integers() | FLOATS | TEXTS,
    lambda inner: st.lists(inner, max_size=5) | st.lists(inner, max_size=5).map(tuple) | st.dictionaries(KEYS, inner, max_size=5),
    max_leaves=30,
)
STATEMENTS = st.recursive(
    st.none() | st.booleans() | INTEGERS | st.text(),
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(st.text(st.characters(max_codepoint=127)), inner, max_size=5),
    max_leaves=30,
)


def reference(value: object) -> bytes | None:
    try:
        return rfc8785.dumps(value)  # type: ignore[arg-type] - any JSON, which the library narrows by hand
    except ValueError:  # lone surrogates in names arrive as UnicodeEncodeError, which is one too
        return None


def ours(value: object) -> bytes | None:
    try:
        return canonical_bytes(value)
    except ValueError:
        return None


@given(VALUES)
def test_any_value_has_the_reference_bytes_or_is_refused_by_both(value: object) -> None:
    assert ours(value) == reference(value)


@given(STATEMENTS)
def test_a_value_without_floats_has_the_reference_bytes(value: object) -> None:
    assert canonical_bytes(value) == reference(value)


@given(STATEMENTS)
def test_canonical_bytes_read_back_are_their_own_canonical_form(value: object) -> None:
    written = canonical_bytes(value)

    assert json.loads(written) == value
    assert canonical_bytes(json.loads(written)) == written


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (1.0, b"1"),
        (-0.0, b"0"),
        (1e-7, b"1e-7"),
        (0.00001, b"0.00001"),
        (0.0001, b"0.0001"),
        (1e21, b"1e+21"),
        (1e16, b"10000000000000000"),
        (333333333.3333333, b"333333333.3333333"),
        ({"b": 1, "a": [True, None]}, b'{"a":[true,null],"b":1}'),
        ('\u20ac$\u000f\nA\'B"\\\\"/', b'"\xe2\x82\xac$\\u000f\\nA\'B\\"\\\\\\\\\\"/"'),
    ],
)
def test_examples_of_the_rfc_hold(value: object, expected: bytes) -> None:
    assert canonical_bytes(value) == expected


@pytest.mark.parametrize("value", [MAX_INTEGER + 1, -MAX_INTEGER - 1, float("nan"), float("inf"), "\ud800", {"\ud800": 1}, {1: 2}, {2j}])
def test_what_two_readers_could_not_agree_on_is_a_value_error(value: object) -> None:
    with pytest.raises(ValueError):
        canonical_bytes(value)


def test_a_value_nested_too_deeply_is_a_value_error() -> None:
    value: list[object] = []
    for _ in range(100_000):
        value = [value]

    with pytest.raises(ValueError, match="deeply"):
        canonical_bytes(value)
