"""A statement that was written out beforehand is, at any place, the very one that would be written there; nor does any number slip in."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from search_router.canonical import Json, canonical_bytes
from search_router.errors import ReceiptError
from search_router.receipts.prepared import PLACE, PreparedStatement
from search_router.receipts.statement import Position, read_statement
from tests.receipts.samples import make_payload
from tests.receipts.test_receipt_body import KEY
from tests.receipts.test_receipt_body import PLACE as SOMEWHERE

STATEMENT: dict[str, Json] = json.loads(make_payload(KEY)(SOMEWHERE))
PREDICATE: dict[str, Json] = {name: value for name, value in STATEMENT["predicate"].items() if name not in PLACE}
HEAD: dict[str, Json] = {name: value for name, value in STATEMENT.items() if name != "predicate"}

names = st.text(st.characters(min_codepoint=0x20, max_codepoint=0x7E), max_size=12).filter(lambda name: name not in PLACE)
texts = st.text(st.characters(exclude_categories=["Cs"])) | st.sampled_from(['"', "\\", '\\"', '"log":"x"', "1.5", "NaN", "9" * 20, "e+1"])
integers = st.integers(-(2**53) + 1, 2**53 - 1)
values = st.recursive(
    st.none() | st.booleans() | integers | texts, lambda v: st.lists(v, max_size=4) | st.dictionaries(names, v, max_size=4)
)
places = st.builds(Position, log=texts, seq=st.integers(0, 2**53 - 1), prev=texts, time_us=st.integers(0, 2**53 - 1), nonce=texts)


@given(st.dictionaries(names, values, max_size=8), places)
def test_at_any_place_it_is_the_canonical_statement_and_says_of_itself_what_reads_back(more: dict[str, Json], place: Position) -> None:
    predicate = more | PREDICATE
    prepared = PreparedStatement(HEAD, predicate)

    whole = HEAD | {"predicate": predicate | {name: getattr(place, name) for name in PLACE}}

    assert prepared(place) == canonical_bytes(whole)
    assert prepared.facts(place) == read_statement(prepared(place))


@given(
    st.sampled_from([1.0, 0.5, -2.5, 1e300, 1e-7, 1e16, float("nan"), float("inf"), -float("inf"), 2**53, -(2**53), 10**25]),
    st.sampled_from(["aaa", "middle", "zzz"]),
    texts,
)
def test_a_number_that_two_readers_may_read_in_two_ways_is_refused_wherever_it_stands(number: float, name: str, beside: str) -> None:
    with pytest.raises(ReceiptError, match=r"float|integer beyond"):
        PreparedStatement(HEAD, PREDICATE | {name: [{"text": beside, "deep": [number]}]})


@pytest.mark.parametrize("name", ["status", "request", "question"])
def test_what_is_no_search_receipt_is_refused_before_it_stands_in_line(name: str) -> None:
    with pytest.raises(ValueError, match=name):
        PreparedStatement(HEAD, PREDICATE | {name: 7})
