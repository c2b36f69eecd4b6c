"""What was squeezed for machines is told from what people wrote."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from search_router.adapters.local.minified import LONG_LINE, is_minified

SQUEEZED = "function a(b){return c(b)};" * 400


@pytest.mark.parametrize(
    ("text", "language", "expected"),
    [
        (SQUEEZED, "javascript", True),
        ("/* licence */\n" + SQUEEZED + "\n", "javascript", True),
        ("\n".join([SQUEEZED[:600]] * 20), "css", True),
        (SQUEEZED[:4000], "javascript", False),
        (SQUEEZED, "json", False),
        (SQUEEZED, "markdown", False),
        (SQUEEZED, None, False),
        ("def f():\n    return 1\n" * 1000, "python", False),
        ("def f():\n    return 1\n" * 1000 + "DATA = '" + "x" * 9000 + "'\n", "python", False),
    ],
)
def test_a_file_is_minified_when_nearly_all_of_it_stands_in_very_long_lines(text: str, language: str | None, expected: bool) -> None:
    assert is_minified(text, language) is expected


@given(st.lists(st.integers(0, LONG_LINE), min_size=1, max_size=100))
def test_no_file_of_ordinary_lines_is_minified(lengths: list[int]) -> None:
    assert not is_minified("\n".join("x" * length for length in lengths), "python")
