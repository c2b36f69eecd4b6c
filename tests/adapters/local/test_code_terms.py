"""What is kept of a file comes back as it was; what is damaged never comes back as something else."""

from __future__ import annotations

import json
import struct
import zlib
from array import array

import pytest
from hypothesis import given
from hypothesis import strategies as st

from search_router.adapters.local.code_chunks import MAX_LINE, Chunk
from search_router.adapters.local.code_terms import FileTerms, derive_terms, pack_terms, unpack_terms
from search_router.adapters.local.symbol_packing import DamagedPayload
from search_router.schema import Definition

TEXT = '"""Keeps cookies."""\n\n\ndef cookie_jar():  # the jar\n    return open_jar()\n'
JAR = Definition("cookie_jar", "function", 4, 5)


@given(st.text(max_size=400), st.sampled_from(("python", "go", "text", "markdown")), st.lists(st.integers(1, 60), max_size=4))
def test_terms_survive_packing(text: str, language: str, starts: list[int]) -> None:
    terms = derive_terms(text, language, [Definition("someName", "function", s, s) for s in starts])
    assert unpack_terms(pack_terms(terms)) == terms
    assert all(place < len(terms.words) for place in terms.places) and all(terms.counts)
    assert all(field < 2 + len(terms.chunks) for field in terms.fields)


def test_words_are_kept_by_field() -> None:
    terms = derive_terms(TEXT, "python", [JAR])
    found = {(field, terms.words[place]): n for field, place, n in zip(terms.fields, terms.places, terms.counts, strict=True)}
    assert (terms.line_count, terms.chunks) == (5, (Chunk(1, 5),))
    assert found[0, "cook"] == 1 and found[0, "jar"] == 1
    assert found[1, "cookiejar"] == 1 and found[2, "jar"] == 3 and (0, "open") not in found


def test_no_changed_byte_gives_other_terms() -> None:
    terms = derive_terms(TEXT, "python", [JAR])
    packed = pack_terms(terms)
    refused = 0
    for at in range(len(packed)):
        for bit in range(8):
            try:
                assert unpack_terms(packed[:at] + bytes([packed[at] ^ 1 << bit]) + packed[at + 1 :]) == terms
            except DamagedPayload:
                refused += 1
    assert refused >= 8 * len(packed) - 16, "only bits that decode to the same bytes may change unseen: the last ones, or a copy's place"


def _record(count: int, rest: bytes) -> bytes:
    text = json.dumps([1, [[1, 1]], ["a"]]).encode()
    return zlib.compress(struct.pack("<III", len(text), count, 0) + text + rest)


@pytest.mark.parametrize(
    "data",
    [b"", b"nonsense", pack_terms(derive_terms(TEXT, "python", []))[:-1], _record(1, b""), _record(1, b"\0" * 6), _record(0, b"\0")],
)
def test_other_bytes_are_refused(data: bytes) -> None:
    with pytest.raises(DamagedPayload):
        unpack_terms(data)


def test_a_long_line_is_cut_also_in_a_docstring() -> None:
    filler = "x " * (MAX_LINE // 2)
    terms = derive_terms(f'"""{filler}\nnear\n{filler}far"""\nlast = 1\n{filler}far\n', "python", [])
    assert {"near", "last"} <= set(terms.words) and "far" not in terms.words


def test_an_empty_file_has_no_chunks() -> None:
    assert derive_terms("", "python", []) == FileTerms(0, (), (), array("H"), array("I"), array("H"), whole=True)
