"""Weights judged on pools of candidates."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from search_router.benchmark.asking import Asked, Candidate
from search_router.benchmark.cross_validation import Judge, fit, leave_out
from search_router.benchmark.gains import Result, first_hits, score
from search_router.benchmark.pools import Pools
from search_router.benchmark.questions import Question, Target


def asked(name: str, repo: str, targets: list[str], candidates: list[Candidate]) -> Asked:
    wanted = tuple(Target(path=path) for path in targets)
    question = Question(id=name, repo=repo, language=repo, category="c", question="q", targets=wanted)
    return Asked(question, (), (), 1, 1, "answered", (), "", tuple(candidates))


def misled(name: str, repo: str) -> Asked:
    """The target has all of `good`, eleven others all of `bad`."""
    others = [Candidate(f"x{number}.py", 1.0, {"good": 0.0, "bad": 1.0}) for number in range(11)]
    return asked(name, repo, ["t.py"], [*others, Candidate("t.py", 1.0, {"good": 1.0, "bad": 0.0})])


signal = st.integers(0, 100).map(lambda n: n / 100)
candidate = st.tuples(signal, signal, st.sampled_from([1.0, 0.5]))


@given(st.lists(candidate, min_size=1, max_size=15), st.lists(st.integers(0, 16), unique=True, min_size=1, max_size=4), signal, signal)
def test_a_pool_is_scored_as_its_ranking_would_be(
    rows: list[tuple[float, float, float]], wanted: list[int], first: float, second: float
) -> None:
    pool = [Candidate(f"{n}.py", damping, {"a": a, "b": b}) for n, (a, b, damping) in enumerate(rows)]
    targets = [f"{n}.py" for n in wanted]
    weights = {"a": first, "b": second}
    vector = np.array([first, second], np.float32)
    scores = (np.array([[a, b] for a, b, _ in rows], np.float32) @ vector) * np.array([d for *_, d in rows], np.float32)
    ranked = [Result(pool[n].path) for n in np.argsort(-scores, kind="stable") if scores[n] > 0]
    expected = score(first_hits(ranked, [Target(path=path) for path in targets])).ndcg
    assert float(Pools([asked("1", "r", targets, pool)], ("a", "b")).ndcg(weights)[0]) == pytest.approx(expected, abs=1e-6)


def test_fitting_finds_the_weight_that_helps() -> None:
    judge = Judge(Pools([misled("1", "r"), misled("2", "s")], ("good", "bad")))
    start = {"good": 0.4, "bad": 0.4}
    everything = np.ones(2, np.bool_)
    assert judge(start).mean() == 0.0
    assert judge(fit(judge, start, everything)).mean() == 1.0


def test_what_was_left_out_is_scored_with_weights_that_never_saw_it() -> None:
    other = asked("3", "odd", ["x0.py"], list(misled("3", "odd").candidates))
    judge = Judge(Pools([misled("1", "r"), misled("2", "s"), other], ("good", "bad")))
    out, fitted = leave_out(judge, {"good": 0.4, "bad": 0.5}, ["r", "s", "odd"])
    assert set(fitted) == {"r", "s", "odd"}
    assert out[2] < 1.0  # the others teach it that `good` is better
    assert fitted["odd"]["good"] > fitted["odd"]["bad"]


def test_targets_outside_of_the_pools_are_counted() -> None:
    assert Pools([asked("1", "r", ["t.py", "u.py"], list(misled("1", "r").candidates))], ("good", "bad")).reachable() == 0.5
