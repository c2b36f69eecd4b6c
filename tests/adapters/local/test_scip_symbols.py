"""Symbols of SCIP are taken apart as the grammar in scip.proto says, whichever indexer wrote them."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from search_router.adapters.local.scip_symbols import SymbolName, folded_pattern, read_symbol, symbol_pattern

SIMPLE = st.from_regex(r"[A-Za-z0-9_$+\-]+", fullmatch=True)
ODD = st.text(st.characters(exclude_categories=("Cs",)), min_size=1).filter(lambda s: re.fullmatch(r"[\w+\-$]+", s) is None)


@pytest.mark.parametrize(
    ("symbol", "name"),
    [
        ("scip-python python httpx 0.28 `httpx._client`/Client#send().", SymbolName("send", "method", ("httpx", "_client", "Client"))),
        ("ty-scip python httpx 1 httpx/_client/Client#send().", SymbolName("send", "method", ("httpx", "_client", "Client"))),
        ("scip-typescript npm redux 5.0 src/`createStore.ts`/createStore().", SymbolName("createStore", "method", ("src", "createStore"))),
        ("scip-typescript npm @a/b 5.0 `x.d.ts`/Ky#`<constructor>`().", SymbolName("<constructor>", "method", ("x", "Ky"))),
        ("rust-analyzer cargo std v1 a/impl#[Foo]baz().", SymbolName("baz", "method", ("a", "impl", "Foo"))),
        ("semanticdb maven . . com/Foo#bar(+1).", SymbolName("bar", "method", ("com", "Foo"))),
        ("scip-java maven a  b 1 com/Foo#x.", SymbolName("x", "field", ("com", "Foo"))),
        ("s m p v a/f().(argument)", SymbolName("argument", "parameter", ("a", "f"))),
        ("s m p v a/Box#[T]", SymbolName("T", "type-parameter", ("a", "Box"))),
        ("s m p v a/`back``tick`#", SymbolName("back`tick", "class", ("a",))),
        ("s m p v a/print!", SymbolName("print", "macro", ("a",))),
    ],
)
def test_a_global_symbol_gives_its_name_and_what_is_around_it(symbol: str, name: SymbolName) -> None:
    assert read_symbol(symbol) == name


@pytest.mark.parametrize("symbol", ["", "local 7", "x", "a b c d ", "a b c d e", "a b c d f(", "a b c d (x", "a b c d `open", "a b c d x)"])
def test_what_is_local_or_no_symbol_has_no_name(symbol: str) -> None:
    assert read_symbol(symbol) is None


@given(st.text())
def test_any_text_is_a_symbol_or_none(text: str) -> None:
    read_symbol(text)


@given(st.lists(SIMPLE | ODD, min_size=1, max_size=4))
def test_escaped_names_come_back(names: list[str]) -> None:
    def escape(name: str) -> str:
        return name if re.fullmatch(r"[\w+\-$]+", name) else "`" + name.replace("`", "``") + "`"

    read = read_symbol("s m p v " + "".join(f"{escape(name)}#" for name in names))
    assert read == SymbolName(names[-1], "class", tuple(names[:-1]))


@given(st.from_regex(r"[A-Za-z_]\w*", fullmatch=True))
def test_the_raw_search_finds_every_symbol_of_a_name(name: str) -> None:
    for suffix in ("#", ".", "().", "(+1).", ":", "!"):
        data = f"s m p v a/{name}{suffix}".encode()
        assert re.search(symbol_pattern(name), data)
        assert re.search(folded_pattern(name), data, re.IGNORECASE)


@pytest.mark.parametrize(
    ("asked", "there"), [("getCookie", "get_cookie"), ("GET_COOKIE", "getCookie"), ("ÄRGER_los", "ärgerLos"), ("__", "__")]
)
def test_the_loose_search_overlooks_case_and_underscores(asked: str, there: str) -> None:
    assert re.search(folded_pattern(asked), f"s m p v a/{there}().".encode(), re.IGNORECASE)
    assert not re.search(folded_pattern(asked), b"s m p v a/get_cooky().", re.IGNORECASE)
