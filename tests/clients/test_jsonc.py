"""Edits in JSON with comments change one member and nothing else, or refuse."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from search_router.clients.jsonc import NotEditable, read_text, remove_member, set_member

PATH = ("servers", "search-router")
ENTRY = {"command": "/bin/search-router", "args": ["serve", "--root", "${workspaceFolder}"]}
COMMENT = re.compile(r"//[^\r\n]*|/\*.*?\*/", re.DOTALL)


def lines(*text: str) -> str:
    return "\n".join(text) + "\n"


@pytest.mark.parametrize(
    ("before", "after"),
    [
        pytest.param(
            lines("{", '    "servers": {', '        "a": {} // note', "    }", "}"),
            lines("{", '    "servers": {', '        "a": {}, // note', '        "search-router": 1', "    }", "}"),
            id="four spaces, a comment behind the last member",
        ),
        pytest.param(
            lines("{", '\t"servers": {', '\t\t"a": {},', "\t\t// more to come", "\t},", "}"),
            lines("{", '\t"servers": {', '\t\t"a": {},', "\t\t// more to come", '\t\t"search-router": 1,', "\t},", "}"),
            id="tabs, a trailing comma and a comment behind it",
        ),
        pytest.param(
            lines("{", '  "servers": {', "    /* none yet */", "  }", "}"),
            lines("{", '  "servers": {', "    /* none yet */", '    "search-router": 1', "  }", "}"),
            id="an object with a comment alone",
        ),
        pytest.param(
            lines("// head", "{", '  "x": "a // b /* c */, }",', "}", "// foot"),
            lines("// head", "{", '  "x": "a // b /* c */, }",', '  "servers": {', '    "search-router": 1', "  },", "}", "// foot"),
            id="what looks like a comment in a string",
        ),
    ],
)
def test_a_member_is_added_in_the_files_own_style_and_taken_away_again(before: str, after: str) -> None:
    made = 0 if '"servers"' in before else 1
    assert set_member(before, PATH, 1, strict=False) == after
    assert remove_member(after, PATH, made=made, strict=False) == before
    crlf = before.replace("\n", "\r\n")
    assert set_member(crlf, PATH, 1, strict=False) == after.replace("\n", "\r\n")


def test_an_object_on_one_line_stays_readable() -> None:
    assert json.loads(set_member('{"servers":{"a":{}},"z":0}', PATH, 1, strict=True)) == {"servers": {"a": {}, "search-router": 1}, "z": 0}
    assert set_member("{}", PATH, 1, strict=True) == '{\n  "servers": {\n    "search-router": 1\n  }\n}'
    assert json.loads(set_member("\n", PATH, ENTRY, strict=True)) == {"servers": {"search-router": ENTRY}}


def test_a_member_that_is_there_is_replaced_where_it_stands() -> None:
    text = lines("{", '  "servers": {', '    "search-router": {"command": "old"}, // ours', '    "z": 1', "  }", "}")
    after = set_member(text, PATH, [], strict=False)
    assert after == text.replace('{"command": "old"}', "[]")


def test_comments_inside_what_would_go_are_kept_by_refusing() -> None:
    text = '{"servers": {"search-router": {\n// because\n"command": "x"}}}'
    with pytest.raises(NotEditable, match="has comments inside"):
        set_member(text, PATH, 1, strict=False)
    with pytest.raises(NotEditable, match="has comments inside"):
        remove_member(text, PATH, made=0, strict=False)
    assert read_text(remove_member(text, PATH, made=0, strict=False, losing_comments=True), strict=True) == {"servers": {}}


def test_what_follows_on_a_line_never_becomes_part_of_a_comment() -> None:
    text = '{"servers": {"a": 1, // note\n "search-router": {}, "c": 2}}'
    assert read_text(remove_member(text, PATH, made=0, strict=False), strict=False) == {"servers": {"a": 1, "c": 2}}


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ('{"servers": {}', "is not JSON.*line 1"),
        ('{"a": 1}\n{"b": 2}', "is not JSON.*line 2"),
        ("[]", "something else where an object"),
        ('{"servers": []}', "something else than an object under servers"),
        ('{"servers": {}, "servers": {}}', "'servers' twice"),
        ('{"servers": {"search-router": 1, "search-router": 2}}', "'search-router' twice"),
        ("{} /* no end", "a comment without an end at line 1"),
        ('{"a": "no end}', "is not JSON"),
        ('{"a": NaN}', "has NaN"),
        ("{,}", "is not JSON"),
        ('{"a": [1,,]}', "is not JSON"),
        ("// only a comment\n", "is not JSON"),
        ('{"a": ' + "9" * 5000 + "}", "too long to read"),
        ('{"a": ' + "[" * 200_000 + "]" * 200_000 + "}", "nested too deeply"),
    ],
)
def test_what_is_no_json_is_refused_with_its_place(text: str, why: str) -> None:
    with pytest.raises(NotEditable, match=why):
        set_member(text, PATH, 1, strict=False)


@pytest.mark.parametrize("text", ['{"a": 1} // x', '{"a": 1,}'])
def test_a_client_that_reads_strict_json_gets_no_edit_of_a_file_that_it_cannot_read(text: str) -> None:
    with pytest.raises(NotEditable, match="which this client cannot read"):
        set_member(text, PATH, 1, strict=True)


def test_hostile_texts_take_linear_time() -> None:
    for text in ("/*" * 100_000, '"\\' * 100_000, "{" + "," * 100_000 + "}", "[" + "1 , " * 200_000 + "]"):
        with pytest.raises(NotEditable):
            set_member(text, PATH, 1, strict=False)


# ------------------------------------------------------------------ any file

KEYS = st.sampled_from(["a", "b c", "servers", "search-router", 'ü"\\', "//", "/*", "x,}"])
LEAVES = st.none() | st.booleans() | st.integers(-9, 9) | KEYS | st.floats(allow_nan=False, allow_infinity=False)
TREES = st.dictionaries(
    KEYS,
    st.recursive(LEAVES, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=3), max_leaves=8),
    max_size=4,
)
GAPS = st.sampled_from(["", " ", "\n", "\n    ", "\t", "// c\n", "/* , } */", '/* " */ ', "\r\n"])


@st.composite
def written(draw: st.DrawFn, tree: Any = None) -> tuple[str, Any]:
    """A tree, and a text of it with comments, gaps and trailing commas anywhere they may be."""
    if tree is None:
        tree = draw(TREES)

    def write(value: Any) -> str:
        if isinstance(value, dict):
            inner = [f"{draw(GAPS)}{json.dumps(k)}{draw(GAPS)}:{draw(GAPS)}{write(v)}{draw(GAPS)}" for k, v in value.items()]
            opening, closing = "{}"
        elif isinstance(value, list):
            inner = [f"{draw(GAPS)}{write(v)}{draw(GAPS)}" for v in value]
            opening, closing = "[]"
        else:
            return json.dumps(value)
        return opening + ",".join(inner) + ("," if inner and draw(st.booleans()) else "") + draw(GAPS) + closing

    return draw(GAPS) + write(tree) + draw(GAPS), tree


@settings(max_examples=120)
@given(written())
def test_any_file_keeps_its_values_and_comments(case: tuple[str, Any]) -> None:
    text, tree = case
    assert read_text(text, strict=False) == tree
    servers = tree.get("servers", {})
    if not isinstance(servers, dict):
        with pytest.raises(NotEditable):
            set_member(text, PATH, ENTRY, strict=False)
        return
    after = set_member(text, PATH, ENTRY, strict=False, losing_comments=True)
    assert read_text(after, strict=False) == {**tree, "servers": {**servers, "search-router": ENTRY}}
    back = remove_member(after, PATH, made=0, strict=False, losing_comments=True)
    left = {key: value for key, value in servers.items() if key != "search-router"}
    assert read_text(back, strict=False) == {**tree, "servers": left}


@settings(max_examples=80)
@given(written())
@example(('{/* " */ "a":null}/* , } */', {"a": None}))
def test_any_file_without_an_entry_has_the_same_comments_after_install_and_after_uninstall(case: tuple[str, Any]) -> None:
    text, tree = case
    if "servers" in tree:
        return
    after = set_member(text, PATH, ENTRY, strict=False)
    back = remove_member(after, PATH, made=1, strict=False)
    assert read_text(back, strict=False) == tree
    string_or_comment = re.compile(rf'"(?:[^"\\]|\\.)*"|{COMMENT.pattern}', COMMENT.flags)  # either may hold what begins the other
    found = [[each for each in string_or_comment.findall(t) if each[0] == "/"] for t in (back, text)]
    assert [c.rstrip() for c in found[0]] == [c.rstrip() for c in found[1]]


@settings(max_examples=120)
@given(st.text(alphabet='{}[]",:/*\\ \n\r1ab', max_size=40))
def test_any_text_at_all_is_edited_or_refused(text: str) -> None:
    try:
        after = set_member(text, PATH, 1, strict=False)
    except NotEditable:
        return
    assert read_text(after, strict=False)["servers"]["search-router"] == 1
