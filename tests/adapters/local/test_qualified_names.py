"""Cutting and splitting names."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from search_router.adapters.local.qualified_names import cut_qualified, folded, plain_name, stem, subtokens


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("HTTPServerError", ("http", "server", "error")),
        ("getUser2FA", ("get", "user", "2", "fa")),
        ("snake_case_name", ("snake", "case", "name")),
        ("_private__x", ("private", "x")),
        ("MAX_LINE", ("max", "line")),
        ("größeÄndern", ("größe", "ändern")),
        ("数据", ("数据",)),
        ("___", ()),
    ],
)
def test_a_name_splits_into_its_words(name: str, words: tuple[str, ...]) -> None:
    assert subtokens(name) == words


@pytest.mark.parametrize(
    ("text", "cut"),
    [
        ("geo::Box<std::pair<int, int>>::get", ("geo.Box", "get")),
        ("geo::Shape::operator<", ("geo.Shape", "operator<")),
        ("M:push", ("M", "push")),
        ("Queue.prototype.peek", ("Queue", "peek")),
        ("this.handler", ("", "handler")),
        ("App\\Orders", ("App", "Orders")),
        ("plain", ("", "plain")),
        ("", ("", "")),
    ],
)
def test_a_qualified_name_is_cut_at_its_last_separator(text: str, cut: tuple[str, str]) -> None:
    assert cut_qualified(text) == cut


def test_words_of_one_family_share_a_stem() -> None:
    assert len({stem(word) for word in ("parse", "parser", "parsing", "parsed", "parses")}) == 1
    assert len({stem(word) for word in ("connect", "connection", "connections", "connecting")}) == 1
    assert stem("cookies") == stem("cookie") and stem("query") == stem("queries")


def test_short_words_keep_their_letters() -> None:
    assert [stem(word) for word in ("is", "ed", "bus", "the")] == ["is", "ed", "bus", "the"]


def test_names_that_differ_in_case_and_underscores_fold_together() -> None:
    assert folded("getCookie") == folded("get_cookie") == folded("GET_COOKIE") and folded("__") == "__"


@given(st.text(max_size=60))
def test_no_text_breaks_them(text: str) -> None:
    assert all(word and word == word.lower() for word in subtokens(text))
    assert stem(stem(text)) is not None and isinstance(plain_name(text), str)
    container, name = cut_qualified(text)
    assert "." not in name and not container.startswith(".")


@given(st.text(st.characters(max_codepoint=127), max_size=40))
def test_ascii_names_split_as_names_of_any_script_do(name: str) -> None:
    assert (*subtokens(name), "é") == subtokens(f"{name}_é")
