"""The wire reader takes any bytes: it yields the fields that were written, or says that it is no message."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from search_router.adapters.local.protobuf_wire import BYTES, VARINT, MalformedMessage, read_fields, read_packed, read_varint
from tests.adapters.local.scip_writer import message, number, packed, varint

NUMBERS = st.integers(0, 2**64 - 1)
FIELDS = st.integers(1, 2**29 - 1)


@given(NUMBERS)
def test_a_number_comes_back_as_it_was_written(value: int) -> None:
    data = varint(value)
    assert read_varint(data, 0, len(data)) == (value, len(data))


@given(st.lists(st.tuples(FIELDS, NUMBERS | st.binary(max_size=40))))
def test_fields_come_back_in_order(written: list[tuple[int, int | bytes]]) -> None:
    data = b"".join(number(n, v) if isinstance(v, int) else message(n, v) for n, v in written)
    read = [(f.number, data[f.value : f.end] if f.wire == BYTES else f.value) for f in read_fields(data, 0, len(data))]
    assert read == written


@given(st.binary(max_size=200))
def test_any_bytes_are_fields_or_no_message(data: bytes) -> None:
    try:
        for found in read_fields(data, 0, len(data)):
            assert found.end <= len(data)
            if found.wire == BYTES:
                assert 0 <= found.value <= found.end
    except MalformedMessage:
        pass


@given(st.lists(NUMBERS, max_size=4))
def test_packed_numbers_come_back(values: list[int]) -> None:
    data = packed(1, values)
    (only,) = read_fields(data, 0, len(data))
    assert read_packed(data, only.value, only.end, most=4) == values


@pytest.mark.parametrize(
    "data",
    [
        b"\x80",
        b"\xff" * 11,
        b"\x08",
        b"\x00\x01",
        b"\x0a\x05abc",
        b"\x0a\xff\xff\xff\xff\x0f",
        b"\x0b\x0c",
        b"\x0d\x01",
        b"\x09\x01\x02",
        b"\x0e",
        b"\x0f",
    ],
    ids=[
        "cut tag",
        "endless tag",
        "no value",
        "field 0",
        "cut text",
        "4 GiB text",
        "group",
        "cut fixed32",
        "cut fixed64",
        "wire 6",
        "wire 7",
    ],
)
def test_what_is_no_message_is_refused(data: bytes) -> None:
    with pytest.raises(MalformedMessage):
        list(read_fields(data, 0, len(data)))


def test_fixed_widths_are_stepped_over() -> None:
    data = b"\x0d1234" + b"\x1112345678" + number(3, 7)
    assert [(f.number, f.value) for f in read_fields(data, 0, len(data)) if f.wire == VARINT] == [(3, 7)]


def test_more_numbers_than_a_range_has_are_refused() -> None:
    with pytest.raises(MalformedMessage):
        read_packed(b"\x01" * 5, 0, 5, most=4)
