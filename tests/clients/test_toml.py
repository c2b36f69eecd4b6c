"""Edits in Codex's TOML change one table and nothing else, or refuse."""

from __future__ import annotations

import tomllib

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from search_router.clients.jsonc import NotEditable
from search_router.clients.toml import remove_table, set_table

PATH = ("mcp_servers", "search-router")
ENTRY = {"command": "/bin/search-router", "args": ["serve"], "startup_timeout_sec": 20}
BEFORE = """# my settings
model = "m" # the good one

[mcp_servers.other]
command = "npx"  # keep
env = { KEY = "value" }

[mcp_servers.other.tools.x]
approval = "auto"

[profiles.fast]
model = "s"
"""


def test_a_table_is_added_and_taken_away_again_and_the_rest_stays_as_it_was() -> None:
    after = set_table(BEFORE, PATH, ENTRY)
    assert tomllib.loads(after)["mcp_servers"]["search-router"] == ENTRY
    rest = iter(after.splitlines())
    assert all(line in rest for line in BEFORE.splitlines()), "every line is there, in the order in which they were"
    assert tomllib.loads(remove_table(after, PATH, made=0)) == tomllib.loads(BEFORE)
    assert "[mcp_servers.search-router]" in after


def test_crlf_stays() -> None:
    after = set_table(BEFORE.replace("\n", "\r\n"), PATH, ENTRY)
    assert after.count("\n") == after.count("\r\n")


@pytest.mark.parametrize("before", ["", 'model = "m"\n', "# nothing yet\n"])
def test_the_table_around_it_goes_too_when_install_made_it(before: str) -> None:
    after = set_table(before, PATH, ENTRY)
    assert tomllib.loads(remove_table(after, PATH, made=1)) == tomllib.loads(before)
    assert remove_table(after, PATH, made=1).strip() == before.strip()


@pytest.mark.parametrize(
    "before", ['mcp_servers = { a = { command = "x" } }\n', 'mcp_servers.a.command = "x"\n', '[mcp_servers]\na = { command = "x" }\n']
)
def test_other_ways_to_write_it_are_edited_or_refused_never_broken(before: str) -> None:
    try:
        after = set_table(before, PATH, ENTRY)
    except NotEditable:
        return
    assert tomllib.loads(after)["mcp_servers"] == {"a": {"command": "x"}, "search-router": ENTRY}


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("a = \nb = 1", "is not TOML.*line 1"),
        ("mcp_servers = 1", "else than a table"),
        ("a = " + "[" * 5000 + "]" * 5000, "nested too deeply"),
    ],
)
def test_what_is_no_toml_is_refused(text: str, why: str) -> None:
    with pytest.raises(NotEditable, match=why):
        set_table(text, PATH, ENTRY)


@settings(max_examples=150)
@given(
    st.lists(
        st.sampled_from([*BEFORE.splitlines(), "[[list]]", "x.y = 1", "[a.b]", "# c", "[mcp_servers]", '"k" = """', '"""']), max_size=8
    )
)
def test_any_text_at_all_is_edited_or_refused(lines: list[str]) -> None:
    text = "\n".join(lines) + "\n"
    try:
        after = set_table(text, PATH, ENTRY)
    except NotEditable:
        return
    before = tomllib.loads(text)
    assert tomllib.loads(after) == {**before, "mcp_servers": {**before.get("mcp_servers", {}), "search-router": ENTRY}}
