"""The line of every key, however TOML lets one write it."""

from __future__ import annotations

import tomllib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from search_router.config.keys import KeyPath, dotted
from search_router.config.positions import find_positions

DOCUMENT = '''version = "x"       # 1
[a]
b.c.d = 1
"q.r" = { x = 1, y.z = [1,
  2] }
[[arr.t]]
k = 1
[arr.t.sub]
s = 1
[[arr.t]]
k = 2
[ experts . 'g h' ]
d = """
several
lines"""
"\\u00e9\\"" = 1
z = [
  { n = 1 },  # 18
  # a comment is no element
  { n = 2 },
]
[deep.er]
x = 1
[deep]
y = 1
'''


@pytest.mark.parametrize(
    ("path", "line"),
    [
        (("version",), 1),
        (("a",), 2),
        (("a", "b"), 3),
        (("a", "b", "c", "d"), 3),
        (("a", "q.r"), 4),
        (("a", "q.r", "x"), 4),
        (("a", "q.r", "y", "z"), 4),
        (("a", "q.r", "y", "z", 1), 5),
        (("arr",), 6),
        (("arr", "t", 0), 6),
        (("arr", "t", 0, "k"), 7),
        (("arr", "t", 0, "sub", "s"), 9),
        (("arr", "t", 1), 10),
        (("arr", "t", 1, "k"), 11),
        (("experts", "g h"), 12),
        (("experts", "g h", "d"), 13),
        (("experts", "g h", 'é"'), 16),
        (("experts", "g h", "z", 1, "n"), 20),
        (("deep", "er", "x"), 23),
        (("deep",), 24),
        (("deep", "y"), 25),
        (("deep", "unheard"), 24),
        (("unheard",), 0),
    ],
)
@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_the_line_of_a_key_is_where_it_is_written(path: KeyPath, line: int, newline: str) -> None:
    text = DOCUMENT.replace("\n", newline)
    tomllib.loads(text)
    positions = find_positions(text)
    assert positions.sound
    assert not positions.duplicates
    assert positions.line_of(path) == line


def test_keys_and_tables_that_are_written_twice_are_found_with_both_lines() -> None:
    positions = find_positions('[a]\nx = 1\n"x" = 2\n[b]\n[a]\ny = 1\n[[c]]\nz = 1\n[[c]]\nz = 1\n')
    assert [(dotted(d.path), d.first, d.second) for d in positions.duplicates] == [("a.x", 2, 3), ("a", 1, 5)]


@given(st.text(max_size=200))
def test_any_text_is_read_without_failing(text: str) -> None:
    find_positions(text.encode("utf-8", "replace").decode("utf-8"))


_names = st.one_of(
    st.from_regex(r"[A-Za-z0-9_-]{1,8}", fullmatch=True), st.text(st.characters(exclude_categories=["Cs", "Cc"]), max_size=6)
)


@given(st.lists(_names, min_size=1, max_size=4, unique=True), st.lists(_names, min_size=1, max_size=4, unique=True))
def test_what_dotted_writes_is_found_again_under_the_same_names(tables: list[str], keys: list[str]) -> None:
    lines = [f"[{dotted(tuple(tables))}]", *(f"{dotted((key,))} = 1" for key in keys)]
    positions = find_positions("\n".join(lines))
    assert [positions.line_of((*tables, key)) for key in keys] == list(range(2, len(keys) + 2))
    assert not positions.duplicates
