from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from search_router.router.fuse import Fused
from search_router.router.identity import Candidate
from search_router.router.succession import settle_documents
from search_router.schema import Yielding


def place(path: str, line: int = 1) -> Fused:
    return Fused(Candidate(("code", "p", path, str(line), ""), "p", path, line, line, None, ()), 1.0, 1.0, ())


def paths(fused: list[Fused]) -> list[str | None]:
    return [f.candidate.path for f in fused]


def test_a_successor_moves_before_what_yields_to_it_and_nothing_else_moves() -> None:
    fused = [place("old.md"), place("code.py"), place("new.md"), place("old.md", 9)]
    settled, hidden = settle_documents(fused, [], [Yielding("p", "old.md", "new.md"), Yielding("p", "gone.md", "new.md")])
    assert (paths(settled), hidden) == (["new.md", "old.md", "code.py", "old.md"], 0)


def test_a_successor_that_was_not_found_changes_nothing() -> None:
    fused = [place("old.md"), place("code.py")]
    assert settle_documents(fused, [], [Yielding("p", "old.md", "new.md")]) == (fused, 0)


def test_hidden_documents_go_whoever_found_them() -> None:
    settled, hidden = settle_documents([place("a.md"), place("b.md"), place("a.md", 5)], [("p", "a.md"), ("q", "b.md")], [])
    assert (paths(settled), hidden) == (["b.md"], 2)


NAMES = st.sampled_from("abcdef")


@given(st.lists(NAMES, max_size=12), st.lists(st.tuples(NAMES, NAMES), max_size=8))
def test_every_place_is_kept_once_even_where_pairs_contradict_each_other(order: list[str], pairs: list[tuple[str, str]]) -> None:
    fused = [place(name, number) for number, name in enumerate(order, 1)]
    settled, _ = settle_documents(fused, [], [Yielding("p", old, new) for old, new in pairs])
    assert sorted(f.candidate.key for f in settled) == sorted(f.candidate.key for f in fused)
