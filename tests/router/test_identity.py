from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from search_router.router.identity import Dropped, enclosing_definition, normalise_path, normalise_range
from search_router.schema import Definition, Hit, Project
from tests.router.ranking import DEMO, FILES, ROOT, file_facts, fuse, numbered, order

SAME_PLACE = [
    Hit("demo", "src/a.py", 20, 40),
    Hit("demo", "./src/a.py", 20, 40),
    Hit("demo", "src\\a.py", 20, 40),
    Hit("demo", f"{ROOT}/src/a.py", 20, 40),
    Hit("demo", f"file://{ROOT}/src/a.py", 20, 40),
    Hit("demo", "src/x/../a.py", 20, 40),
    Hit("demo", "src/a.py", 19, 39, line_base=0),
    Hit("demo", "src/a.py", 19, 40, line_base=0, end_exclusive=True),
    Hit("demo", "src/a.py", 25, 25),
    Hit("demo", "src/a.py", 18, 39),
]


@pytest.mark.parametrize("other", SAME_PLACE[1:], ids=lambda h: f"{h.path}:{h.start_line}-{h.end_line} base {h.line_base}")
def test_the_same_place_in_another_form_is_one_item(other: Hit) -> None:
    fused = fuse({"grep": [SAME_PLACE[0]], "ty": [other]})
    assert order(fused) == [("code", "demo", "src/a.py", "20", "Parser.parse")]
    assert [v.expert for v in fused[0].candidate.votes] == ["grep", "ty"]


def test_overlapping_ranges_outside_any_definition_are_one_item_and_disjoint_ones_are_two() -> None:
    assert len(fuse({"grep": [Hit("demo", "src/b.py", 5, 9)], "ty": [Hit("demo", "src/b.py", 9, 12)]})) == 1
    assert len(fuse({"grep": [Hit("demo", "src/b.py", 5, 9)], "ty": [Hit("demo", "src/b.py", 10, 12)]})) == 2


def test_identical_text_in_two_files_stays_two_items() -> None:
    twin = file_facts(numbered(50))
    files = {("demo", "src/b.py"): twin, ("demo", "src/c.py"): twin}
    assert len(fuse({"grep": [Hit("demo", "src/b.py", 5, 9), Hit("demo", "src/c.py", 5, 9)]}, files=files)) == 2


def test_neighbouring_methods_of_one_class_stay_two_items() -> None:
    files = {
        ("demo", "a.py"): file_facts(
            numbered(30), Definition("C", "class", 1, 30), Definition("f", "method", 2, 9, "C"), Definition("g", "method", 10, 20, "C")
        )
    }
    assert len(fuse({"grep": [Hit("demo", "a.py", 5, 5), Hit("demo", "a.py", 12, 12)]}, files=files)) == 2


def test_a_chunk_that_is_mostly_one_definition_is_that_definition() -> None:
    facts = file_facts(numbered(100), Definition("f", "function", 10, 30), Definition("g", "function", 40, 41))
    assert enclosing_definition(facts, 8, 32) == facts.definitions[0]
    assert enclosing_definition(facts, 1, 100) is None


RANGES = st.lists(st.tuples(st.integers(1, 30), st.integers(0, 12)), max_size=14)


@given(RANGES, st.integers(1, 30), st.integers(0, 12))
def test_the_definition_of_a_range_is_the_one_that_a_look_at_all_of_them_finds(ranges: list[tuple[int, int]], at: int, more: int) -> None:
    facts = file_facts(numbered(50), *(Definition(f"d{n}", "function", start, start + length) for n, (start, length) in enumerate(ranges)))
    asked = range(at, at + more + 1)

    def lines(definition: Definition) -> range:
        return range(definition.start_line, definition.end_line + 1)

    def overlap(definition: Definition) -> float:
        return len({*asked} & {*lines(definition)}) / len({*asked} | {*lines(definition)})

    touched = [d for d in facts.definitions if overlap(d)]
    best = max(touched, key=lambda d: (overlap(d), -d.start_line, d.qualified), default=None)
    around = [d for d in touched if {*asked} <= {*lines(d)}]
    smallest = min(around, key=lambda d: (len(lines(d)), d.start_line, d.qualified), default=None)
    assert enclosing_definition(facts, at, at + more) == (best if best and overlap(best) >= 0.5 else smallest)


def test_a_path_outside_every_project_is_dropped_with_a_count() -> None:
    dropped = Dropped()
    assert fuse(
        {"grep": [Hit("demo", "/etc/passwd", 1, 1), Hit("demo", "../../x.py", 1, 1), Hit("demo", "src/b.py", 1, 1)]}, dropped=dropped
    )
    assert str(dropped) == "2 outside the workspace"


def test_an_absolute_path_belongs_to_the_deepest_project_around_it() -> None:
    inner = Project("inner", ROOT / "libs" / "inner", "submodule")
    assert normalise_path(f"{ROOT}/libs/inner/x.py", DEMO, (DEMO, inner), lambda p: False) == ("inner", "x.py")


def test_a_file_whose_name_really_has_a_backslash_keeps_it() -> None:
    assert normalise_path("odd\\name.py", DEMO, (DEMO,), lambda p: p == Path(f"{ROOT}/odd\\name.py")) == ("demo", "odd\\name.py")


def test_a_range_beyond_the_end_or_an_older_hash_makes_the_place_stale() -> None:
    (beyond,) = fuse({"ty": [Hit("demo", "src/b.py", 900, 950)]})
    assert beyond.candidate.votes[0].stale
    assert (beyond.candidate.start_line, beyond.candidate.end_line) == (50, 50)
    (older,) = fuse({"ty": [Hit("demo", "src/b.py", 3, 3, content_hash="0" * 64)]})
    assert older.candidate.votes[0].stale
    (same,) = fuse({"ty": [Hit("demo", "src/b.py", 3, 3, content_hash=FILES["demo", "src/b.py"].content_hash)]})
    assert not same.candidate.votes[0].stale


@given(st.integers(0, 10**6), st.integers(0, 10**3), st.sampled_from([0, 1]), st.booleans())
def test_every_range_becomes_a_closed_one_based_range(start: int, length: int, base: int, exclusive: bool) -> None:
    first, last = normalise_range(Hit("demo", "x", start, start + length, line_base=base, end_exclusive=exclusive))
    assert 1 <= first <= last


@given(st.text(max_size=60))
def test_no_path_text_breaks_normalisation(path: str) -> None:
    key = normalise_path(path, DEMO, (DEMO,), lambda p: False)
    assert key is None or (not key[1].startswith(("/", "../")) and key[1] not in ("", ".", ".."))
