"""Text that leaves can always be encoded, and says what it could not say."""

from __future__ import annotations

import json
import os

from hypothesis import given
from hypothesis import strategies as st

from search_router.wire_text import encodable, encodable_json

ANY_TEXT = st.text(st.characters() | st.characters(categories=["Cs"]))


@given(ANY_TEXT)
def test_the_result_is_utf8_and_stays_as_it_is(text: str) -> None:
    once = encodable(text)
    once.encode()
    assert encodable(once) == once


@given(st.text())
def test_good_text_is_not_touched(text: str) -> None:
    assert encodable(text) is text or encodable(text) == text


@given(
    st.recursive(st.none() | st.booleans() | st.floats(allow_nan=False) | ANY_TEXT, lambda x: st.lists(x) | st.dictionaries(ANY_TEXT, x))
)
def test_every_string_and_key_of_a_json_value_can_leave(value: object) -> None:
    json.dumps(encodable_json(value), ensure_ascii=False).encode()


def test_a_file_name_in_another_encoding_shows_its_bytes() -> None:
    assert encodable(os.fsdecode(b"caf\xe9/\xff\x80.py")) == "caf\\xe9/\\xff\\x80.py"
    assert encodable("a\ud800b\udfffc🧭") == "a\\ud800b\\udfffc🧭"
    assert encodable_json({"\udce9": ("x\udce9", 1, None, 2.5)}) == {"\\xe9": ["x\\xe9", 1, None, 2.5]}
