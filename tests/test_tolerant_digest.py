"""Whatever a caller sends can be bound to a receipt."""

from __future__ import annotations

import json
import math
import sys
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from search_router.canonical import canonical_bytes, sha256_hex, tolerant_digest


class Mute:
    """Has no words for itself."""

    def __repr__(self) -> str:
        raise RuntimeError("no words")

    __str__ = __repr__


ODD = (
    st.binary(max_size=8)
    | st.sampled_from([Decimal("1.5"), 1 + 2j, frozenset({1}), {1, 2}, range(3), math.nan, math.inf, -math.inf, 2**53])
    | st.integers(4000, 6000).map(lambda digits: 10**digits)
    | st.just(Mute).map(lambda kind: kind())
    | st.text(st.characters(codec=None), max_size=4)
    | st.floats()
    | st.integers()
    | st.none()
    | st.booleans()
)
NAMES = st.text(max_size=3) | st.integers() | st.floats() | st.booleans() | st.none() | st.binary(max_size=3) | st.tuples(st.integers())
VALUES = st.recursive(
    ODD, lambda inner: st.lists(inner, max_size=4) | st.lists(inner, max_size=4).map(tuple) | st.dictionaries(NAMES, inner, max_size=4)
)


@given(VALUES)
def test_every_value_has_a_digest_and_it_is_the_same_each_time(value: object) -> None:
    method, digest = tolerant_digest(value)
    assert method in ("jcs", "ascii-json")
    assert len(digest) == 64
    assert tolerant_digest(value) == (method, digest)


@given(st.recursive(st.none() | st.booleans() | st.integers(-(2**53) + 1, 2**53 - 1) | st.text(), lambda i: st.lists(i, max_size=3)))
def test_canonical_json_keeps_its_canonical_digest(value: object) -> None:
    assert tolerant_digest(value) == ("jcs", sha256_hex(canonical_bytes(value)))


@pytest.mark.parametrize("value", ["\ud800", {"a": math.nan}, [2**60], {"b": 1, "a": math.inf}])
def test_json_that_has_no_canonical_form_keeps_its_ascii_digest(value: object) -> None:
    text = json.dumps(value, sort_keys=True, separators=(",", ":"))
    assert tolerant_digest(value) == ("ascii-json", sha256_hex(text.encode("ascii")))


def circle() -> Any:
    ring: list[Any] = [1]
    ring += [ring, {"again": ring}]
    return ring


def nested(levels: int) -> Any:
    value: Any = "core"
    for _ in range(levels):
        value = [value]
    return value


def wide(levels: int) -> Any:
    value: Any = math.nan
    for _ in range(levels):
        value = [value] * 8
    return {"wide": value, 1: 2, "circle": circle()}


@pytest.mark.parametrize(
    "value",
    [
        circle(),
        nested(100_000),
        nested(sys.getrecursionlimit()),
        {1: "a", "b": 2, None: 3},
        {(1, 2): 3},
        [10**5000],
        [Mute(), {1: Mute()}],
        {"deep": nested(5000)},
    ],
    ids=["circle", "very deep", "at the limit", "mixed names", "odd name", "long number", "mute", "deep"],
)
def test_what_no_encoder_takes_has_one_too(value: object) -> None:
    assert tolerant_digest(value) == tolerant_digest(value)
    assert tolerant_digest(value)[0] == "ascii-json"


def test_what_differs_has_another_digest() -> None:
    values: list[object] = [[10**5000], [10**5000 + 1], {1: 1, "a": 1}, {2: 1, "a": 1}, {1: 1, "a": 2}, b"a", b"b", circle(), Mute(), "x"]
    assert len({tolerant_digest(value) for value in values}) == len(values)


def test_a_value_that_grows_without_end_is_described_in_part() -> None:
    assert tolerant_digest(wide(7))[0] == "ascii-json"
