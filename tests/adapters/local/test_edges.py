"""Calls with receivers, base types, bindings and returns of a file; and the bytes that they are kept as."""
# ruff: noqa: E501 - the sample files stand on one line each

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from search_router.adapters.local.edge_packing import pack_edges, unpack_edges, unpack_front
from search_router.adapters.local.edges import MAX_SHIFT, Base, Binding, Call, FileEdges, read_chain, read_receiver, read_type
from search_router.adapters.local.import_statements import Import
from search_router.adapters.local.symbol_packing import DamagedPayload
from search_router.adapters.local.syntax import extract

NAMES = st.text(min_size=1, max_size=8)
LINES = st.integers(min_value=1, max_value=1 << 20)
EDGES = st.builds(
    FileEdges,
    imports=st.lists(st.builds(Import, LINES, NAMES, NAMES, NAMES), max_size=4).map(tuple),
    bases=st.lists(st.builds(Base, LINES, NAMES), max_size=4).map(tuple),
    returns=st.lists(st.builds(Binding, LINES, NAMES, NAMES), max_size=4).map(tuple),
    calls=st.lists(st.tuples(NAMES, LINES, st.integers(0, MAX_SHIFT), st.text(max_size=8)), max_size=6).map(
        lambda calls: tuple(Call(line, name, receiver, line + more) for name, line, more, receiver in sorted(calls, key=lambda c: c[1]))
    ),
    bindings=st.lists(st.builds(Binding, LINES, NAMES, NAMES), max_size=4).map(tuple),
)


def test_python_edges() -> None:
    source = b"""class A(B, m.C):
    s: T = 1
    def f(self, p: "Q", q: Optional[W] = None) -> R:
        x = Foo(1)
        self.y = m.Bar()
        with Z() as z:
            x.run(self.y.go(
                2))
        made = x.make()
        Foo().run()
        xs[0].run()
"""
    edges = extract(source, "python").edges
    assert edges.bases == (Base(1, "B"), Base(1, "C"))
    assert edges.returns == (Binding(3, "f", "R"),)
    assert [(c.name, c.line, c.end_line, c.receiver) for c in edges.calls] == [
        ("Foo", 4, 4, ""),
        ("Bar", 5, 5, "m"),
        ("Z", 6, 6, ""),
        ("go", 7, 8, "self.y"),
        ("run", 7, 8, "x"),
        ("make", 9, 9, "x"),
        ("Foo", 10, 10, ""),
        ("run", 10, 10, "Foo()"),
        ("run", 11, 11, "xs"),
    ]
    assert [f"{b.line} {b.name}: {b.type}" for b in edges.bindings] == [
        "2 s: T",
        "3 p: Q",
        "3 q: W",
        "4 x: Foo",
        "5 self.y: Bar",
        "6 z: Z",
        "9 made: x.make()",
    ]


@pytest.mark.parametrize(
    ("language", "source", "expected"),
    [
        ("java", "class A extends B<Q> implements C { F f; void m(P p) { Q q = new Q(); this.f.go(); } }", "B C | f:F p:P q:Q | Q:, go:this.f"),
        ("go", "package x\ntype T struct { E\n g *G }\nfunc (t *T) m() { u := NewU(); t.g.Go(); u.Do() }", "E | g:G t:T u:NewU() | Do:u Go:t.g NewU:"),
        ("rust", "impl Tr for S { fn m(&self, a: &A) { let x = Foo::new(); self.b.go(); a.run::<T>() } }", "Tr | a:A x:Foo | go:self.b new:Foo run:a"),
        ("typescript", "class A extends B implements C { private s: S; m(p: P) { const k = new K(); this.s?.go() } }", "B C | k:K p:P s:S | K: go:this.s"),
        ("csharp", "class A : B, I { F f; void m(Q q) { var x = new X(); f.Go(); } }", "B I | f:F q:Q x:X | Go:f X:"),
        ("php", "<?php class A extends B { private F $f; function m(Q $q) { $x = new X(); $this->f->go(); B::st(); } }", "B | f:F q:Q x:X | X: go:this.f st:B"),
        ("ruby", "class A < B\n include M\n def m\n  x = Foo.new\n  @y = Bar.new\n  x.go(1)\n end\nend", "B M | x:Foo y:Bar | go:x include: new:Bar new:Foo"),
        ("cpp", "class A : public B { F f; void m(P& p) { Foo x; p.go(); q->run(); ns::fn(); } };", "B | f:F p:P x:Foo | fn:ns go:p run:q"),
    ],
)  # fmt: skip
def test_edges_of_typed_languages(language: str, source: str, expected: str) -> None:
    edges = extract(source.encode(), language).edges
    shown = (
        " ".join(base.name for base in edges.bases),
        " ".join(sorted(f"{b.name}:{b.type}" for b in edges.bindings)),
        " ".join(sorted(f"{c.name}:{c.receiver}" for c in edges.calls)),
    )
    assert " | ".join(shown) == expected.replace(",", "")


@given(EDGES)
def test_what_is_packed_comes_back(edges: FileEdges) -> None:
    packed = pack_edges(edges)
    assert unpack_edges(packed) == edges
    assert unpack_front(packed) == edges._replace(calls=(), bindings=())


@pytest.mark.parametrize("data", [b"x", b"\x05\0\0\0nonsense", pack_edges(FileEdges(calls=(Call(1, "a", "", 1),)))[:-1]])
def test_damaged_bytes_are_refused(data: bytes) -> None:
    with pytest.raises(DamagedPayload):
        unpack_edges(data)


@pytest.mark.parametrize(
    ("text", "expected"),
    [("self.a.", "self.a"), ("new ", ""), ("std::", "std"), ("$this->x->", "this.x"), ("f(1).", "f()"), ("a[0].", "a"), ("(a + b).", "?")],
)
def test_receivers(text: str, expected: str) -> None:
    assert read_receiver(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [("Optional[a.B]", "B"), ("'B'", "B"), ("B | None", "B"), ("&'a mut B<T>", "B"), ("const ns::B*", "B"), ("*pkg.B", "B"), ("int", ""), ("(a, b)", "")],
)  # fmt: skip
def test_types(text: str, expected: str) -> None:
    assert read_type(text) == expected


@given(st.text(max_size=60))
def test_any_text_gives_a_short_name_or_none(text: str) -> None:
    assert len(read_chain(text)) <= 82
    assert read_type(text) == "" or read_type(text).isidentifier()
