from __future__ import annotations

import random
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from search_router.router.identity import Dropped
from search_router.schema import CommitRecord, DocumentFacts, Hit
from tests.router.ranking import CARDS, FILES, FUSION, WEIGHTS, fuse, order

PATHS = sorted(path for _, path in FILES)
hits = st.builds(
    lambda path, start, length, definition: Hit("demo", path, start, start + length, is_definition=definition),
    st.sampled_from([*PATHS, "gone.py"]),
    st.integers(1, 120),
    st.integers(0, 40),
    st.booleans(),
)
commits = st.builds(lambda n: Hit("demo", commit=CommitRecord(f"{n:040x}", "2020-01-01", "a", "s")), st.integers(0, 5))
answers = st.dictionaries(st.sampled_from(sorted(CARDS)), st.lists(hits | commits, max_size=12), max_size=5)
weights = st.fixed_dictionaries({name: st.sampled_from([0.0, 0.1, 0.5, 0.9, 1.0]) for name in CARDS})


@given(answers, weights, st.randoms(use_true_random=False))
def test_the_ranking_does_not_depend_on_who_answered_first(
    given_answers: dict[str, list[Hit]], w: dict[str, float], rnd: random.Random
) -> None:
    shuffled = list(given_answers.items())
    rnd.shuffle(shuffled)
    assert fuse(dict(shuffled), weights=w) == fuse(given_answers, weights=w)


@given(answers, weights)
def test_every_item_has_a_source_and_appears_once(given_answers: dict[str, list[Hit]], w: dict[str, float]) -> None:
    fused = fuse(given_answers, weights=w)
    assert all(f.candidate.votes for f in fused)
    assert len(set(order(fused))) == len(fused)
    assert all(len({v.expert for v in f.candidate.votes}) == len(f.candidate.votes) for f in fused)


@given(answers, weights, st.sampled_from(sorted(CARDS)))
def test_an_expert_of_weight_zero_never_influences_the_rank_of_what_others_found(
    given_answers: dict[str, list[Hit]], w: dict[str, float], silent: str
) -> None:
    without = {name: h for name, h in given_answers.items() if name != silent}
    zero = {**w, silent: 0.0}
    expected = [(f.candidate.key[:4], f.score) for f in fuse(without, weights=zero) if f.score > 0]
    assert [(f.candidate.key[:4], f.score) for f in fuse(given_answers, weights=zero) if f.score > 0] == expected


@given(answers)
def test_no_hit_is_lost_without_being_counted(given_answers: dict[str, list[Hit]]) -> None:
    dropped = Dropped()
    fuse(given_answers, dropped=dropped)
    gone = sum(h.path == "gone.py" for found in given_answers.values() for h in found)
    assert dropped.counts == ({"no longer there": gone} if gone else {})


def test_reciprocal_rank_fusion_gives_the_published_value() -> None:
    (item,) = fuse({"grep": [Hit("demo", "src/b.py", 1, 1)], "semantic": [Hit("demo", "src/a.py", 90, 90), Hit("demo", "src/b.py", 1, 1)]})[
        :1
    ]
    assert item.base == pytest.approx(1 / 61 + 1 / 62)
    assert item.base == pytest.approx(0.032522, abs=1e-6)


def test_duplicates_within_one_list_count_once_at_their_best_rank() -> None:
    once = fuse({"grep": [Hit("demo", "src/a.py", 25, 25)]})
    often = fuse({"grep": [Hit("demo", "src/a.py", n, n) for n in (25, 30, 35)]})
    assert [f.score for f in often] == [f.score for f in once]


def test_a_bonus_is_paid_in_the_currency_of_the_fusion_and_cannot_swamp_it() -> None:
    alone = fuse({"grep": [Hit("demo", "src/a.py", 75, 75)]})[0]
    agreed = fuse(
        {"grep": [Hit("demo", "src/a.py", 75, 75)], "symbols": [Hit("demo", "src/a.py", 70, 80, is_definition=True)]},
        names=frozenset({"main"}),
    )[0]
    unit = 1 / (FUSION.k + 1)
    assert agreed.score == pytest.approx(2 * alone.base + (FUSION.corroboration_bonus + FUSION.definition_bonus) * unit)


def test_two_experts_on_one_engine_do_not_corroborate_each_other() -> None:
    place = Hit("demo", "src/a.py", 75, 75)
    (item,) = fuse({"pyright": [place], "scip": [place]})
    assert item.boosts == ()
    (item,) = fuse({"pyright": [place], "ty": [place]})
    assert item.boosts == ("corroborated x1",)


def test_equal_scores_are_ordered_by_rank_then_by_key() -> None:
    fused = fuse({"grep": [Hit("demo", "src/b.py", 5, 5)], "ty": [Hit("demo", "src/a.py", 90, 90)]})
    assert order(fused) == sorted(order(fused))


def test_a_commit_is_an_item_of_its_own_and_never_a_path() -> None:
    commit = Hit("demo", commit=CommitRecord("a" * 40, "2020-01-01", "a", "fix", ("src/a.py",)))
    fused = fuse({"history": [commit], "grep": [Hit("demo", "src/a.py", 90, 90)]})
    assert sorted(f.candidate.key[0] for f in fused) == ["code", "commit"]
    assert [f.candidate.path for f in fused if f.candidate.key[0] == "commit"] == [None]


def test_weights_are_used() -> None:
    given_answers = {"grep": [Hit("demo", "src/b.py", 5, 5)], "ty": [Hit("demo", "src/a.py", 90, 90)]}
    assert order(fuse(given_answers, weights=WEIGHTS | {"ty": 0.9}))[0][2] == "src/b.py"
    assert order(fuse(given_answers, weights=WEIGHTS | {"grep": 0.9}))[0][2] == "src/a.py"


SECTION = DocumentFacts("Guide", "Closing")
DOCUMENT = {
    "grep": [Hit("demo", "src/b.py", 3, 9), Hit("demo", "src/a.py", 1, 5)],
    "symbols": [Hit("demo", "src/b.py", 3, 9)],
    "semantic": [Hit("demo", "src/b.py", 30, 40, about=SECTION)],
}


def test_of_one_document_the_section_is_shown_when_documentation_is_asked_for() -> None:
    places = [(f.candidate.path, f.candidate.start_line) for f in fuse(DOCUMENT, sections_first=True)]
    assert places == [("src/b.py", 30), ("src/a.py", 1), ("src/b.py", 3)]
    assert fuse(DOCUMENT)[0].candidate.start_line == 3


def test_a_section_of_an_expert_without_weight_changes_nothing() -> None:
    silent = WEIGHTS | {"semantic": 0.0}
    assert fuse(DOCUMENT, weights=silent, sections_first=True) == fuse(DOCUMENT, weights=silent)


@given(answers, weights, st.sets(st.sampled_from(sorted(CARDS))))
def test_sections_first_never_changes_the_order_of_files(
    given_answers: dict[str, list[Hit]], w: dict[str, float], readers: set[str]
) -> None:
    documents = {
        name: [replace(h, about=SECTION) if name in readers and h.commit is None else h for h in found]
        for name, found in given_answers.items()
    }
    files = [[f.candidate.key[:3] for f in fuse(documents, weights=w, sections_first=first)] for first in (False, True)]
    assert list(dict.fromkeys(files[0])) == list(dict.fromkeys(files[1]))
