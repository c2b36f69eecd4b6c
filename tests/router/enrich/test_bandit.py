"""The session bandit: weights follow what a session tells, stay within their bounds, and can be replayed."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from search_router.benchmark import session_bandit
from search_router.config.loader import load_config
from search_router.config.schema import BanditConfig
from search_router.router.enrich.bandit import CounterRandom, Observation, draw_weights, observe, posterior, seed_of
from search_router.router.enrich.database import FILE_NAME
from search_router.router.service import Router
from search_router.schema import Answer, ExpertStatus
from tests.scripted_router import environ, hit, scripted_router

RULES = BanditConfig(enabled=True, strength=5, floor=0.5, cap=1.5, discount=0.9, exploration=0.06)
ON = ("bandit.enabled=true", "cache.positive_seconds=0", "enrich.hints=false")
SCRIPTS = {
    "near": [{"when": "*", "hits": [hit(), hit("notes.txt", 1)]}],
    "far": [{"when": "*", "hits": [hit("src/twin_a.py", 1), hit("notes.txt", 1)]}],
}
QUESTION = "where does it start"

experts = st.sampled_from(["a", "b", "c", "d"])
priors = st.dictionaries(experts, st.integers(0, 1000), min_size=1)
per_mille = st.integers(0, 1000)
steps = st.lists(st.lists(st.builds(Observation, experts, per_mille, per_mille), max_size=4), max_size=30)
rules = st.builds(
    BanditConfig,
    enabled=st.just(True),
    strength=st.floats(1, 100),
    floor=st.floats(0.1, 1),
    cap=st.floats(1, 3),
    discount=st.floats(0.5, 1),
    exploration=st.floats(0.001, 1),
)


@pytest.mark.behaviour("bandit-stays-in-bounds")
@given(priors, steps, rules, st.text(max_size=20))
def test_no_weight_leaves_its_bounds_whatever_is_told(priors_pm: dict[str, int], told: Any, rules: BanditConfig, seed: str) -> None:
    weights = draw_weights(priors_pm, told, rules, seed)

    assert weights.keys() == priors_pm.keys()
    for name, prior in priors_pm.items():
        assert (weights[name] > 0) == (prior > 0)
        assert weights[name] <= prior * rules.cap + 1e-6
        assert weights[name] >= prior * rules.floor - 1e-6
    assert weights == draw_weights(priors_pm, told, rules, seed)


@given(priors, rules)
def test_who_told_nothing_has_the_priors(priors_pm: dict[str, int], rules: BanditConfig) -> None:
    assert draw_weights(priors_pm, [], rules, "seed") == priors_pm


@given(st.lists(st.tuples(experts, st.integers(1, 50)), unique_by=lambda s: s[0], min_size=1), st.sampled_from([0, 500, 1000]))
def test_shares_of_an_outcome_add_up_to_its_reward(sources: list[tuple[str, int]], reward_pm: int) -> None:
    seen = observe({"x": sources}, ["x"], reward_pm, {"a": 900, "b": 10, "c": 400, "d": 1})

    assert abs(sum(each.gained_pm for each in seen) - reward_pm) <= 2
    if not reward_pm:
        assert abs(sum(each.lost_pm for each in seen) - 1000) <= 2
        assert {each.expert for each in seen} <= {name for name, _ in sources}


@given(st.integers(1, 200), st.sampled_from([500, 1000]))
def test_a_share_as_the_priors_expect_moves_nobody(count: int, reward_pm: int) -> None:
    priors_pm = {"a": 500, "b": 300, "c": 200}
    step = observe({"x": [("a", 3), ("b", 3), ("c", 3)]}, ["x"], reward_pm, priors_pm)

    shapes = posterior(priors_pm, [step] * count, RULES)

    assert {name: round(1000 * alpha / (alpha + beta)) for name, (alpha, beta) in shapes.items()} == priors_pm


def test_an_outcome_without_evidence_says_nothing_of_anybody() -> None:
    assert observe({"x": [("a", 1)]}, [], 0, {"a": 500, "b": 500}) == ()


def test_a_change_within_the_session_is_followed() -> None:
    priors_pm = {"a": 500, "b": 500}
    only_a, only_b = (observe({"x": [(name, 1)]}, ["x"], 1000, priors_pm) for name in "ab")

    before = draw_weights(priors_pm, [only_a] * 100, RULES, "seed")
    after = draw_weights(priors_pm, [*[only_b] * 30, *[only_a] * 100], RULES, "seed")

    assert (before, after) == ({"a": 750, "b": 250}, {"a": 250, "b": 750})


def test_numbers_follow_from_their_name_alone() -> None:
    assert [CounterRandom("x").random() for _ in range(2)] == [0.4304834343931061] * 2
    many = CounterRandom("y")
    drawn = [many.random() for _ in range(2000)]
    assert all(0 <= each < 1 for each in drawn) and 0.48 < sum(drawn) / 2000 < 0.52
    assert seed_of("s", "docs", 1) != seed_of("s", "docs", 2)


def test_regret_falls_by_half_within_50_requests_and_liars_stay_within_bounds(tmp_path: Path) -> None:
    result: Any = session_bandit.run(load_config(roots=[tmp_path], environ=environ(tmp_path)).config, sessions=12)

    assert session_bandit.verdict(result)
    assert (result["liars"]["lowest"], result["liars"]["highest"]) == (0.5, 1.5)  # they reach the bounds, and no further
    steady = result["gain where the priors are right"]
    assert steady["thompson"] > steady["priors"] - 0.02


async def ask(router: Router, session: str) -> tuple[Answer, dict[str, Any]]:
    answer = await router.search({"question": QUESTION}, session=session)
    assert answer.receipt is not None
    return answer, (await router.receipt(answer.receipt.id)).statement["predicate"]


async def tell(router: Router, answer: Answer, path: str, session: str) -> None:
    assert answer.receipt is not None
    (used,) = [item.id for item in answer.evidence if item.path == path]
    await router.report_outcome({"receipt": answer.receipt.id, "outcome": "success", "evidence": [used]}, session=session)
    await router.enrichment.settle()


@pytest.mark.behaviour("bandit-stays-in-bounds")
@pytest.mark.anyio
async def test_outcomes_weigh_the_sessions_next_question_and_the_receipt_says_how(tmp_path: Path) -> None:
    async with scripted_router(tmp_path, SCRIPTS, flags=ON) as router:
        before: dict[str, Any] = {}
        for _ in range(6):
            answer, before = await ask(router, session="s")
            await tell(router, answer, "src/twin_a.py", session="s")
        answer, after = await ask(router, session="s")
        again, repeated = await ask(router, session="s")
        _, other = await ask(router, session="somebody else")

        drawn = after["bandit"]
        paths = [item.path for item in answer.evidence]
        assert paths.index("src/twin_a.py") < paths.index("src/app.py")
        assert (drawn["outcomes"], drawn["priors_pm"]) == (6, {"far": 800, "near": 800})
        assert after["fusion"]["weights_pm"] == drawn["weights_pm"]
        assert 800 < drawn["weights_pm"]["far"] <= 1200 and 400 <= drawn["weights_pm"]["near"] < 800
        assert drawn["seed"] == seed_of("s", drawn["task_class"], 6)
        assert before["bandit"]["outcomes"] == 5 and before["bandit"]["seed"] != drawn["seed"]
        assert repeated["bandit"] == drawn  # nothing was told in between
        assert other["bandit"] is None and other["fusion"]["weights_pm"] == {"far": 800, "near": 800}
        assert all(report.status is ExpertStatus.OK for report in again.experts if report.id in SCRIPTS)  # both are asked all the same

        assert answer.receipt is not None
        replayed = await router.replay(answer.receipt.id, QUESTION)
        assert replayed.same and replayed.receipt is not None
        assert (await router.receipt(replayed.receipt.id)).statement["predicate"]["bandit"] == drawn


@pytest.mark.anyio
async def test_without_the_switch_outcomes_weigh_nothing(tmp_path: Path) -> None:
    async with scripted_router(tmp_path, SCRIPTS) as router:
        answer, _ = await ask(router, session="s")
        await tell(router, answer, "src/twin_a.py", session="s")
        _, after = await ask(router, session="s")
    assert after["bandit"] is None
    database = sqlite3.connect(tmp_path / "home" / FILE_NAME)
    assert database.execute("SELECT count(*) FROM observations").fetchone() == (0,)
    database.close()


@pytest.mark.anyio
async def test_drawn_weights_are_part_of_what_is_cached(tmp_path: Path) -> None:
    async with scripted_router(tmp_path, SCRIPTS, flags=("bandit.enabled=true", 'cache.also=["near", "far"]')) as router:
        first = await ask_until_cached(router, session="s")
        answer, _ = await ask(router, session="s")
        await tell(router, answer, "src/twin_a.py", session="s")
        _, drawn = await ask(router, session="s")
        again = await ask_until_cached(router, session="s")
        _, other = await ask(router, session="t")
    assert drawn["cache"] == "miss" and drawn["bandit"] is not None
    assert again["cache"] != first["cache"] and again["bandit"] == drawn["bandit"]
    assert again["fusion"]["weights_pm"] == drawn["bandit"]["weights_pm"]
    assert other["cache"] == first["cache"] and other["bandit"] is None


async def ask_until_cached(router: Router, session: str) -> dict[str, Any]:
    """What the receipt of the first cached answer says; outside git a question must be seen before keeping its answer pays."""
    told: dict[str, Any] = {}
    for _ in range(4):
        _, told = await ask(router, session)
        await router.enrichment.settle()
        if told["cache"].startswith("hit"):
            return told
    raise AssertionError(told["cache"])
