"""Ranking, patterns, paths and definitions of the grep expert: pure functions."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from search_router.adapters.local.grep_definitions import definition_weight
from search_router.adapters.local.grep_matches import LineMatch
from search_router.adapters.local.grep_paths import file_stem, path_damping, stem_coverage
from search_router.adapters.local.grep_patterns import MAX_TERMS, read_patterns, shared_part
from search_router.adapters.local.grep_rank import LINES_PER_FILE, WINDOW_LINES, WINDOWS_PER_FILE, Place, Tally, rank_places
from search_router.adapters.local.grep_scope import globs_for_language, is_of_language, read_scope_path
from search_router.errors import ExpertError
from search_router.schema import Intent, QueryForm, SubQuery


def rank(
    terms: tuple[str, ...], lines: list[LineMatch], form: QueryForm = QueryForm.KEYWORDS, limit: int = 50, intent: Intent = Intent.UNKNOWN
) -> tuple[Place, ...]:
    tally = Tally(read_patterns(SubQuery(form, terms, " ".join(terms))))
    for line in lines:
        tally.see("p", line)
    return rank_places(tally, intent, limit)


WORDS = ("alpha", "beta", "gamma")
line_matches = st.builds(
    LineMatch,
    path=st.sampled_from(["a.py", "b/alpha.py", "tests/test_a.py", "b/c.md"]),
    line=st.integers(1, 80),
    text=st.lists(st.sampled_from([*WORDS, "def", "x", "="]), max_size=5).map(" ".join),
)


@given(lines=st.lists(line_matches, max_size=40, unique_by=lambda m: (m.path, m.line)), seed=st.integers(), form=st.sampled_from(QueryForm))
def test_the_order_of_arrival_never_changes_the_answer(lines: list[LineMatch], seed: int, form: QueryForm) -> None:
    shuffled = lines[:]
    random.Random(seed).shuffle(shuffled)
    assert rank(WORDS, lines, form) == rank(WORDS, shuffled, form)


@given(
    lines=st.lists(line_matches, max_size=40, unique_by=lambda m: (m.path, m.line)),
    limit=st.integers(1, 10),
    form=st.sampled_from(QueryForm),
)
def test_places_are_sorted_bounded_and_made_of_matching_lines(lines: list[LineMatch], limit: int, form: QueryForm) -> None:
    places = rank(WORDS, lines, form, limit)
    seen = {(line.path, line.line) for line in lines}
    assert len(places) <= limit and [p.score for p in places] == sorted((p.score for p in places), reverse=True)
    for place in places:
        assert (place.path, place.start_line) in seen and (place.path, place.end_line) in seen
        assert 0 <= place.end_line - place.start_line < WINDOW_LINES
    for path in {place.path for place in places}:
        assert sum(place.path == path for place in places) <= max(WINDOWS_PER_FILE, LINES_PER_FILE)
    assert {p.path for p in rank(WORDS, lines, form)} == {path for path, _ in seen}


def test_the_place_is_the_window_with_most_words() -> None:
    lines = [
        LineMatch("a.py", 1, "alpha"),
        LineMatch("a.py", 50, "alpha"),
        LineMatch("a.py", 55, "beta gamma"),
        LineMatch("a.py", 90, "beta"),
    ]
    (best, *_) = rank(WORDS, lines)
    assert (best.start_line, best.end_line) == (50, 55)


def test_a_rare_word_is_worth_more_than_a_common_one() -> None:
    common = [LineMatch(f"{n}.py", 1, "alpha") for n in range(20)]
    places = rank(("alpha", "beta"), [*common, LineMatch("z.py", 1, "beta")])
    assert places[0].path == "z.py"


def test_a_word_inside_another_word_counts_less() -> None:
    places = rank(("art",), [LineMatch("a.py", 1, "start"), LineMatch("b.py", 1, "my_art"), LineMatch("c.py", 1, "myArt")])
    assert [p.path for p in places] == ["b.py", "c.py", "a.py"]


def test_the_files_own_name_and_a_definition_in_it_count() -> None:
    lines = [LineMatch("a.py", 1, "cookie jar"), LineMatch("cookie_jar.py", 1, "cookie jar"), LineMatch("b.py", 1, "class CookieJar:")]
    assert [p.path for p in rank(("cookie", "jar"), lines)] == ["cookie_jar.py", "b.py", "a.py"]


def test_tests_prose_and_foreign_code_come_later_unless_asked_for() -> None:
    paths = ["a.py", "docs/a.md", "tests/test_a.py", "vendor/a.py"]
    lines = [LineMatch(path, 1, "alpha") for path in paths]
    assert rank(("alpha",), lines)[0].path == "a.py"
    assert path_damping("tests/test_a.py", ("test",), Intent.UNKNOWN) == 1
    assert path_damping("docs/a.md", ("alpha",), Intent.DOCS) == 1
    assert path_damping("vendor/a.py", ("alpha",), Intent.UNKNOWN) < path_damping("tests/test_a.py", ("alpha",), Intent.UNKNOWN) < 1


@pytest.mark.parametrize(
    ("text", "name", "weight"),
    [
        ("class CookieJar(Base):", "CookieJar", 2),
        ("    async def save(self):", "save", 2),
        ("    async def save(self):", "CookieJar.save", 2),
        ("export default async function load() {", "load", 2),
        ("func (s *Server) Listen(addr string) error {", "Listen", 2),
        ("pub(crate) fn push(&mut self) {", "Vec::push", 2),
        ("public final class Application: Sendable {", "Application", 2),
        ("extension Application {", "Application", 1),
        ("#define MAX_SIZE 10", "MAX_SIZE", 2),
        ("defmodule Phoenix.Router do", "Router", 2),
        ("static int parse_url(char *s)", "parse_url", 1.5),
        ("CURLcode Curl_init(struct x *y)", "Curl_init", 1.5),
        ("    LIMIT = 5", "LIMIT", 1),
        ("limit := 5", "limit", 1),
        ("total: int = 0", "total", 1),
        ("if limit == 5:", "limit", 0),
        ("limit == 5", "limit", 0),
        ("return parse_url(s)", "parse_url", 0),
        ("int x = parse_url(s);", "parse_url", 0),
        ("class CookieJarTest:", "CookieJar", 0),
        ("jar.save()", "save", 0),
    ],
)
def test_definitions_are_told_from_uses(text: str, name: str, weight: float) -> None:
    assert definition_weight(text, name) == weight


@given(text=st.text(max_size=300), name=st.text(min_size=1, max_size=20))
def test_any_line_has_a_weight(text: str, name: str) -> None:
    assert 0 <= definition_weight(text, name) <= 2


def test_a_hostile_line_takes_no_time() -> None:
    for line in ("public " * 1000, "a" * 200_000, "x " * 100_000, "a:" * 100_000 + "(", "static " + "a *" * 5000 + "needle ("):
        assert definition_weight(line, "needle") >= 0


def test_file_names_that_name_nothing_stand_for_their_directory() -> None:
    assert [file_stem(p) for p in ("a/b.test.ts", "router/mod.rs", "pkg/__init__.py", "index.js", ".env")] == [
        "b",
        "router",
        "pkg",
        "index",
        ".env",
    ]
    assert stem_coverage("web/cookie_jar.py", ("cookie", "jar")) == 1
    assert stem_coverage("web/file_cookie_store.py", ("cooki",)) == pytest.approx(1 / 3)


@given(word=st.text(max_size=30))
def test_a_shared_part_is_a_prefix(word: str) -> None:
    assert word.startswith(shared_part(word)) and bool(shared_part(word)) == bool(word)


def test_terms_are_distinct_and_bounded() -> None:
    patterns = read_patterns(SubQuery(QueryForm.KEYWORDS, (*(f"w{n}" for n in range(50)), "W1", "handling", "handles"), ""))
    assert len(patterns.needles) == MAX_TERMS and patterns.dropped == 51 - MAX_TERMS
    assert read_patterns(SubQuery(QueryForm.KEYWORDS, ("Handling", "handles", "x"), "")).needles == ("handl",)
    assert read_patterns(SubQuery(QueryForm.KEYWORDS, ("x",), "")).needles == ("x",)
    assert read_patterns(SubQuery(QueryForm.LITERAL, (), "a b")).needles == ("a b",)
    with pytest.raises(ExpertError):
        read_patterns(SubQuery(QueryForm.TEXT, (), "?!"))


@given(path=st.text(min_size=1, max_size=40))
def test_a_scope_path_is_refused_or_stays_inside(path: str) -> None:
    try:
        scope = read_scope_path(path)
    except ExpertError:
        return
    parts = scope.split("/")
    assert not scope.startswith("/") and ".." not in parts and ".git" not in parts and "\0" not in scope


def test_a_language_is_told_by_the_files_name_in_any_case() -> None:
    assert "*.[pP][yY]" in globs_for_language("python") and globs_for_language(None) == ()
    assert is_of_language("a/B.PY", "python") and not is_of_language("a/b.go", "python") and is_of_language("x", None)
    assert is_of_language("a.tsx", "typescript") and is_of_language("build/Dockerfile.dev", "dockerfile")
