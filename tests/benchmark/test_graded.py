"""Graded metrics: by hand, by ranx, by ir-measures; selection by hand; significance by its known properties."""

from __future__ import annotations

import importlib.util
import math
import warnings
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from search_router.benchmark.fixture_suite import Label
from search_router.benchmark.graded import Item, Judged, judge, read_items, score_judged
from search_router.benchmark.metrics import as_trec, score_graded
from search_router.benchmark.questions import UnusableData
from search_router.benchmark.selection import Choice, by_expert, oracle_gap, score_selection
from search_router.benchmark.significance import holm, paired

NEEDS_RANX = pytest.mark.skipif(importlib.util.find_spec("ranx") is None, reason="ranx is not installed: the `benchmark` extra")
NEEDS_SCIPY = pytest.mark.skipif(importlib.util.find_spec("scipy") is None, reason="scipy is not installed: the `benchmark` extra")
NEEDS_IR_MEASURES = pytest.mark.skipif(
    importlib.util.find_spec("ir_measures") is None, reason="ir-measures is not installed: the `dev` extra"
)


def label(path: str, grade: int, start: int | None = None, end: int | None = None, commit: str = "") -> Label:
    return Label("q", "p", path, start, end, "", grade, "0" * 12, commit)


def place(path: str, start: int | None = None, end: int | None = None) -> Item:
    return Item("p", path, start, end)


def test_ndcg_mrr_and_recall_are_those_computed_by_hand() -> None:
    judged = judge([place("x.py"), place("a.py"), place("y.py"), place("b.py")], [label("a.py", 3), label("b.py", 1), label("c.py", 2)])
    assert judged.gains == (0, 3, 0, 1)
    metrics = score_judged(judged)
    ideal = 3 + 2 / math.log2(3) + 1 / 2
    assert metrics.ndcg == pytest.approx((3 / math.log2(3) + 1 / math.log2(5)) / ideal)
    assert (metrics.mrr, metrics.recall) == (0.5, pytest.approx(2 / 3))


def test_later_places_of_a_file_are_left_out_only_where_files_are_what_is_asked_for() -> None:
    items = [place("a.py", 1, 2), place("a.py", 9, 9), place("b.py", 1, 1)]
    assert judge(items, [label("b.py", 3)]).gains == (0, 3)
    assert judge(items, [label("b.py", 3, 1, 5)]).gains == (0, 0, 3)


def test_a_label_counts_once_and_two_met_at_one_item_are_one_gain() -> None:
    labels = [label("a.py", 2, 1, 5), label("a.py", 3, 4, 9)]
    judged = judge([place("a.py", 1, 9), place("a.py", 2, 3)], labels)
    assert (judged.gains, judged.met) == ((3, 0), (0, 0))
    assert score_judged(judged).recall == 1.0


def test_lines_must_overlap_and_projects_must_be_the_same() -> None:
    assert judge([place("a.py", 10, 12)], [label("a.py", 3, 1, 9)]).gains == (0,)
    assert judge([Item("other", "a.py")], [label("a.py", 3)]).gains == (0,)
    assert judge([place("a.py")], [label("a.py", 3, 1, 9)]).gains == (3,)


def evidence(**given: object) -> dict[str, object]:
    return {"project": "p", "path": None, "start_line": None, "end_line": None, "commit": None, "library": None, **given}


def test_a_commit_is_never_a_path_and_documentation_of_a_library_is_unmapped() -> None:
    items = read_items([evidence(commit="c1", path="a.py"), evidence(library="pypi/x", path="x.py"), evidence(path="a.py")])
    assert [item.mapped for item in items] == [True, False, True]
    assert judge(items, [label("a.py", 3)]).gains == (0, 0, 3)
    assert judge(items, [label("@1.0", 3, commit="c1")]).gains == (3, 0, 0)


def test_an_unmapped_item_keeps_its_place() -> None:
    items = [Item("p", None), Item("p", None), place("a.py")]
    assert judge(items, [label("a.py", 3)]).gains == (0, 0, 3)


JUDGED = st.lists(st.sampled_from((1, 2, 3)), min_size=1, max_size=9).flatmap(
    lambda grades: st.permutations([*range(len(grades)), *[None] * 6]).map(lambda order: _judged(grades, order))
)


def _judged(grades: Sequence[int], order: Sequence[int | None]) -> Judged:
    met: list[int | None] = [None] * len(grades)
    gains: list[int] = []
    for rank, number in enumerate(order[:10]):
        gains.append(0 if number is None else grades[number])
        if number is not None:
            met[number] = rank
    return Judged(tuple(gains), tuple(grades), tuple(met))


@NEEDS_IR_MEASURES
@given(st.lists(JUDGED, min_size=1, max_size=4))
def test_the_metrics_agree_with_ir_measures(found: list[Judged]) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import ir_measures
        from ir_measures import RR, R, nDCG

    for judged in found:
        qrels, run, met = as_trec(judged)
        ours = score_judged(judged)
        ranked = ir_measures.calc_aggregate([nDCG @ 10, RR @ 10], {"q": qrels}, {"q": run})
        recall = ir_measures.calc_aggregate([R @ 10], {"q": qrels}, {"q": met})
        assert ranked[nDCG @ 10] == pytest.approx(ours.ndcg, abs=1e-6)
        assert ranked[RR @ 10] == pytest.approx(ours.mrr, abs=1e-6)
        assert recall[R @ 10] == pytest.approx(ours.recall, abs=1e-6)


@NEEDS_RANX
@pytest.mark.slow  # it compiles itself when it is first used
@pytest.mark.timeout(600)
def test_ranx_has_to_agree() -> None:
    judged = {str(n): _judged([3, 1, 2, 2], order) for n, order in enumerate(([None, 0, 2, None, 1], [3, 2, 1, 0], [None] * 10, [0]))}
    assert score_graded(judged) == {name: score_judged(each) for name, each in judged.items()}


def choice(gold: str, fired: str) -> Choice:
    return Choice(frozenset(gold), frozenset(fired))


def test_selection_is_that_computed_by_hand() -> None:
    scores = score_selection([choice("ab", "ab"), choice("abc", "ax"), choice("a", "")])
    assert scores.precision_micro == pytest.approx(3 / 4) and scores.recall_micro == pytest.approx(3 / 6)
    assert scores.f1_micro == pytest.approx(0.6)
    assert scores.precision_macro == pytest.approx((1 + 1 / 2 + 0) / 3 + 1 / 3)  # nobody asked: nothing asked wrongly
    assert scores.f1_macro == pytest.approx((1 + 0.4 + 0) / 3)
    assert scores.exact == pytest.approx(1 / 3)
    assert by_expert([choice("ab", "ax")]) == {
        "a": {"right": 1, "extra": 0, "missed": 0},
        "b": {"right": 0, "extra": 0, "missed": 1},
        "x": {"right": 0, "extra": 1, "missed": 0},
    }


def test_the_oracle_gap_counts_only_what_one_expert_alone_does_better() -> None:
    assert oracle_gap({"1": 0.5, "2": 1.0}, [{"1": 0.9, "2": 0.2}, {"1": 0.1}]) == pytest.approx(0.2)


@NEEDS_SCIPY
def test_no_difference_is_no_significance_and_a_steady_drop_is() -> None:
    same = paired([0.5] * 9, [0.5] * 9)
    assert (same.mean, same.p) == (0.0, 1.0)
    assert paired([1.0] * 9, [0.0] * 9).p == 0.0
    drop = paired([0.9, 0.8, 0.7, 0.9, 1.0, 0.8], [0.5, 0.4, 0.4, 0.5, 0.5, 0.3])
    assert drop.p < 0.001 and (drop.better, drop.worse) == (0, 6)
    with pytest.raises(UnusableData):
        paired([], [])


def test_holm_is_that_of_his_paper() -> None:
    assert holm({"a": 0.01, "b": 0.04, "c": 0.03}) == {"a": pytest.approx(0.03), "c": pytest.approx(0.06), "b": pytest.approx(0.06)}
