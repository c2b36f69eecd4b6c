"""The quick way of reading a payload says yes only where the strict way does, and the strict way has the last word."""

from __future__ import annotations

import json

import pytest
import rfc8785
from hypothesis import given
from hypothesis import strategies as st

from search_router.canonical import canonical_plain
from search_router.receipts.envelope import has_huge_integer, parse_likely_plain

NUMBERS = st.integers(-(2**70), 2**70) | st.integers(-(2**53) - 2, 2**53 + 2) | st.floats(allow_nan=False)
VALUES = st.recursive(st.none() | st.booleans() | NUMBERS | st.text(), lambda v: st.lists(v) | st.dictionaries(st.text(), v), max_leaves=8)


@given(VALUES, st.booleans(), st.booleans())
def test_what_is_taken_for_plain_is_in_canonical_form(value: object, compact: bool, escaped: bool) -> None:
    written = json.dumps(value, sort_keys=True, separators=(",", ":") if compact else None, ensure_ascii=escaped).encode("utf-8", "replace")
    likely = parse_likely_plain(written)
    if likely is not None and canonical_plain(likely) == written:
        assert rfc8785.dumps(json.loads(written)) == written


@pytest.mark.parametrize("number", [2**53, 2**53 + 1, 9_999_999_999_999_999, 10**16, 10**30, -(2**53), -(10**17)])
@pytest.mark.parametrize("form", ['{"a":%d}', "[%d]", "[1,%d]", "[1,-1,[%d,2]]"])
def test_no_huge_integer_is_overlooked(number: int, form: str) -> None:
    data = (form % number).encode()
    assert has_huge_integer(data)
    assert parse_likely_plain(data) is None


@pytest.mark.parametrize("data", [b'{"a":1790000000000000}', b'{"a":"99999999999999999999","b":[9,-9]}', b"[9007199254740,98]"])
def test_ordinary_numbers_and_digits_in_text_are_no_huge_integers(data: bytes) -> None:
    assert not has_huge_integer(data)


@pytest.mark.parametrize("data", [b'{"a":1.5}', b'{"a":1e400}', b'{"a":NaN}', b'{"a":', b'{"\xc3\xa9":1}', b"[" * 100_000, b'{"a":-1e2}'])
def test_what_cannot_be_told_is_left_to_the_strict_reader(data: bytes) -> None:
    assert parse_likely_plain(data) is None


def test_a_name_twice_does_not_come_back_the_same() -> None:
    data = b'{"a":1,"a":1}'
    assert canonical_plain(parse_likely_plain(data)) != data
