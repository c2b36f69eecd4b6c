"""Chunks are the whole file, cut where definitions begin; comments are told from code."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from search_router.adapters.local.code_chunks import CHUNK_LINES, Chunk, comment_text, cut_chunks
from search_router.schema import Definition


def function(start: int, kind: str = "function") -> Definition:
    return Definition("f", kind, start, start + 3)


@given(st.integers(0, 400), st.lists(st.builds(function, st.integers(1, 450), st.sampled_from(("function", "field"))), max_size=30))
def test_chunks_hold_every_line_once_and_never_too_many(line_count: int, definitions: list[Definition]) -> None:
    chunks = cut_chunks(line_count, definitions)
    assert [line for c in chunks for line in range(c.start, c.end + 1)] == list(range(1, line_count + 1))
    assert all(1 <= c.end - c.start + 1 <= CHUNK_LINES for c in chunks)
    assert chunks == cut_chunks(line_count, definitions[::-1])
    starts = {d.start_line for d in definitions if d.kind != "field"}
    for c in chunks[:-1]:
        late = [s for s in starts if c.start + CHUNK_LINES // 2 < s <= c.start + CHUNK_LINES]
        assert c.end + 1 == (max(late) if late else c.start + CHUNK_LINES)


@pytest.mark.parametrize(
    ("definitions", "first"),
    [
        ([], Chunk(1, 50)),
        ([function(40)], Chunk(1, 39)),
        ([function(30), function(45)], Chunk(1, 44)),
        ([function(51)], Chunk(1, 50)),
        ([function(20)], Chunk(1, 50)),
        ([function(40, "field")], Chunk(1, 50)),
    ],
)
def test_a_chunk_ends_before_a_definition_of_its_second_half(definitions: list[Definition], first: Chunk) -> None:
    assert cut_chunks(80, definitions)[0] == first


@pytest.mark.parametrize(
    ("language", "text", "kept"),
    [
        ("python", 'def f():\n    """Says why."""\n    return 1  # one\n', {"Says why.", "# one"}),
        ("go", "// Package c.\nx := 1 // one\n", {"// Package c.", "// one"}),
        ("c", "/* long\n   story */\nint a;\n", {"/* long", "story */"}),
        ("lua", "-- why\nx = 1\n", {"-- why"}),
        ("makefile", "# why\nall:\n", {"# why"}),
        ("markdown", "# Title\n", set[str]()),
    ],
)
def test_comments_are_found_in_each_style(language: str, text: str, kept: set[str]) -> None:
    assert {line.strip() for line in comment_text(text.splitlines(), language, text).splitlines()} - {""} == kept
