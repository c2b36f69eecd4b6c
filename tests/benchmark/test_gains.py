"""Hits and gains, against figures computed by hand and, where it is installed, against ranx."""

from __future__ import annotations

import importlib.util
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from search_router.benchmark.gains import Result, distinct_files, first_hits, is_hit, score
from search_router.benchmark.metrics import mean_metrics, score_run, scorer_name, spread_over
from search_router.benchmark.questions import Question, Target

pytestmark = pytest.mark.heavy

NAMES = [f"f{number}.py" for number in range(14)]
runs = st.lists(st.sampled_from(NAMES), unique=True, max_size=12)
targets = st.lists(st.sampled_from(NAMES), unique=True, min_size=1, max_size=12)


def question(name: str, paths: list[str], group: str = "a") -> Question:
    return Question(id=name, repo=group, language=group, category=group, question="q", targets=tuple(Target(path=path) for path in paths))


@pytest.mark.parametrize(
    ("result", "target", "hit"),
    [
        (Result("a/b.py"), Target(path="a/b.py"), True),
        (Result("x/a/b.py"), Target(path="a/b.py"), True),
        (Result("b.py"), Target(path="a/b.py"), True),
        (Result("ab.py"), Target(path="b.py"), False),
        (Result("a\\b.py"), Target(path="a/b.py"), True),
        (Result("b.py", 1, 9), Target(path="b.py", start_line=9, end_line=12), True),
        (Result("b.py", 1, 8), Target(path="b.py", start_line=9, end_line=12), False),
        (Result("b.py"), Target(path="b.py", start_line=9, end_line=12), True),
    ],
)
def test_a_result_hits_a_target_by_whole_path_components_and_by_lines(result: Result, target: Target, hit: bool) -> None:
    assert is_hit(result, target) is hit


def test_the_metrics_of_one_question_are_those_computed_by_hand() -> None:
    hits = first_hits(
        [Result(p) for p in ("x.py", "b.py", "y.py", "a.py")], [Target(path="a.py"), Target(path="b.py"), Target(path="c.py")]
    )
    assert hits == (3, 1, None)
    dcg, ideal = 1 / math.log2(3) + 1 / math.log2(5), 1 + 1 / math.log2(3) + 1 / math.log2(4)
    assert score(hits) == pytest.approx((dcg / ideal, 1 / 2, 2 / 3))


def test_two_targets_met_at_one_result_are_one_gain() -> None:
    assert score((0, 0)).ndcg == pytest.approx(1 / (1 + 1 / math.log2(3)))


def test_the_eleventh_result_is_too_late() -> None:
    assert first_hits([Result(name) for name in NAMES], [Target(path="f10.py")]) == (None,)


def test_of_several_places_in_one_file_the_first_stays() -> None:
    assert distinct_files([Result("a", 5, 6), Result("b"), Result("a", 1, 2)]) == [Result("a", 5, 6), Result("b")]


@given(runs, targets)
def test_figures_are_shares_and_only_all_targets_first_are_perfect(run: list[str], wanted: list[str]) -> None:
    found = score(first_hits([Result(path) for path in run], [Target(path=path) for path in wanted]))
    assert all(0 <= value <= 1 + 1e-12 for value in found)
    perfect = set(run[: min(len(wanted), 10)]) <= set(wanted) and len(run) >= min(len(wanted), 10)
    assert (found.ndcg > 1 - 1e-9) is perfect


def test_a_question_without_a_ranking_counts_as_zero_and_the_spread_names_the_lowest() -> None:
    questions = [question("1", ["a.py"], "good"), question("2", ["b.py"], "bad")]
    per = score_run(questions, {"1": [Result("a.py")]})
    assert mean_metrics(per).ndcg == pytest.approx(0.5)
    spread = spread_over(questions, per, "repo")
    assert (dict(spread.by_group), spread.lowest_at, spread.deviation) == ({"good": 1.0, "bad": 0.0}, "bad", 0.5)


def test_the_scorer_says_what_it_is() -> None:
    assert scorer_name().startswith("ranx" if importlib.util.find_spec("ranx") else "own")


@pytest.mark.slow  # it compiles itself
@pytest.mark.timeout(600)
@pytest.mark.skipif(importlib.util.find_spec("ranx") is None, reason="the benchmark extra is not installed")
def test_ranx_gives_the_same_figures() -> None:
    questions = [question(str(n), NAMES[n % 5 : n % 5 + 1 + n % 11]) for n in range(40)]
    rankings = {str(n): [Result(name) for name in (NAMES * 2)[n % 7 : n % 7 + n % 13]] for n in range(40)}
    per = score_run(questions, rankings)  # raises when they differ
    assert 0 < mean_metrics(per).ndcg < 1
