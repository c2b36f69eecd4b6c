"""Outcomes: credit to whom it belongs, and nothing for those who only say so."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from search_router.answers import OutcomeAnswer
from search_router.router.enrich.database import FILE_NAME
from search_router.router.enrich.outcomes import Answered, credit_experts
from search_router.router.service import Router
from search_router.schema import Answer, Status
from tests.command_line import run_cli
from tests.scripted_router import hit, scripted_router

pytestmark = pytest.mark.anyio
SCRIPTS = {"near": [{"when": "*", "hits": [hit(), hit("notes.txt", 1)]}], "far": [{"when": "*", "hits": [hit("notes.txt", 1)]}]}


def rows(folder: Path, columns: str = "source, outcome, evidence_id, expert, reward_pm, share_pm") -> list[tuple[Any, ...]]:
    database = sqlite3.connect(folder / "home" / FILE_NAME)
    try:
        return database.execute(f"SELECT {columns} FROM outcomes ORDER BY id").fetchall()
    finally:
        database.close()


async def search(router: Router, **caller: Any) -> Answer:
    return await router.search({"question": "where does it start"}, **caller)


def about(answer: Answer, outcome: str = "success", *evidence: str) -> dict[str, Any]:
    assert answer.receipt is not None
    return {"receipt": answer.receipt.id, "outcome": outcome, "evidence": list(evidence)}


async def told(router: Router, raw: object, **caller: Any) -> tuple[OutcomeAnswer, dict[str, Any]]:
    """The answer, and what its receipt says."""
    answer = await router.report_outcome(raw, **caller)
    assert answer.receipt is not None
    return answer, (await router.receipt(answer.receipt.id)).statement["predicate"]


async def test_experts_share_the_reward_of_what_they_found_and_the_receipt_says_so(tmp_path: Path) -> None:
    async with scripted_router(tmp_path, SCRIPTS) as router:
        answer = await search(router)
        both = next(item for item in answer.evidence if item.path == "notes.txt")
        taken, predicate = await told(router, about(answer, "success", both.id))
        await router.enrichment.settle()
    assert taken.status is Status.ANSWERED and taken.error is None
    # weight 0.8 each; ranks 1 (far) and 2 (near): 1/61 against 1/62
    assert [(c.expert, c.rank, c.reward_pm, c.share_pm) for c in taken.credited] == [("far", 1, 1000, 504), ("near", 2, 1000, 496)]
    assert (predicate["operation"], predicate["status"]) == ("outcome", "answered")
    (fact,) = predicate["outcomes"]
    assert answer.receipt is not None
    assert (fact["of"], fact["outcome"], fact["evidence"], fact["refused"]) == (answer.receipt.id, "success", [both.id], None)
    assert [credit["expert"] for credit in fact["credited"]] == ["far", "near"]
    assert rows(tmp_path) == [("reported", "success", both.id, "far", 1000, 504), ("reported", "success", both.id, "near", 1000, 496)]


async def test_a_fetch_tells_that_its_evidence_was_worth_reading_once(tmp_path: Path) -> None:
    async with scripted_router(tmp_path, SCRIPTS) as router:
        answer = await search(router)
        item = next(item for item in answer.evidence if item.path == "src/app.py")
        fetched = await router.fetch({"ids": [item.id]})
        await router.fetch({"ids": [item.id]})
        await router.fetch({"ids": [item.id]}, session="somebody else")
        assert fetched.receipt is not None
        predicate = (await router.receipt(fetched.receipt.id)).statement["predicate"]
        await router.enrichment.settle()
    assert rows(tmp_path) == [("fetched", "partial", item.id, "near", 500, 1000)]
    assert [fact["source"] for fact in predicate["outcomes"]] == ["fetched"]


REFUSED = {
    "malformed": ({"receipt": 5}, "wrong-type", Status.REJECTED),
    "unknown field": ({"outcome": "success", "vote": 1}, "unknown-field", Status.REJECTED),
    "bogus receipt": ({"receipt": "000000000000:7", "outcome": "failure"}, "unknown-receipt", Status.DECLINED),
    "no receipt at all": ({"receipt": "'; DROP TABLE", "outcome": "failure"}, "unknown-receipt", Status.DECLINED),
}


@pytest.mark.parametrize("name", REFUSED)
async def test_nonsense_is_refused_with_its_class_and_a_receipt(tmp_path: Path, name: str) -> None:
    raw, code, status = REFUSED[name]
    async with scripted_router(tmp_path, SCRIPTS) as router:
        answer, predicate = await told(router, raw)
        assert answer.error is not None
        assert (answer.error.code, answer.status) == (code, status)
        assert (predicate["status"], predicate["error"]["code"]) == (status.value, code)
        await router.enrichment.settle()
    assert rows(tmp_path) == []


@pytest.mark.behaviour("outcomes-are-checked")
async def test_bogus_ids_foreign_receipts_and_repetitions_are_refused_with_their_class_and_a_receipt(tmp_path: Path) -> None:
    async with scripted_router(tmp_path, SCRIPTS) as router:
        answer = await search(router, session="ada", principal="ada")
        other = await search(router, session="bob", principal="ada")
        item = answer.evidence[0].id
        fetched = await router.fetch({"ids": [item]}, session="ada", principal="ada")
        assert fetched.receipt is not None
        ada = {"session": "ada", "principal": "ada"}

        async def code(raw: object, **caller: Any) -> str | None:
            told_answer, predicate = await told(router, raw, **caller)
            refused = told_answer.error.code if told_answer.error else None
            assert predicate["outcomes"][0]["refused"] == refused and (refused is None) == bool(told_answer.credited)
            return refused

        assert await code(about(answer, "success", f"{item}0"), **ada) == "unknown-evidence"
        assert await code(about(answer, "success"), **ada) == "no-evidence-named"
        assert await code(about(other, "success", item), **ada) == "foreign-receipt"
        assert await code(about(answer, "success", item), session="ada", principal="eve") == "foreign-receipt"
        assert await code({"receipt": fetched.receipt.id, "outcome": "failure"}, **ada) == "not-an-answer"
        assert await code(about(answer, "success", item), **ada) is None
        assert await code(about(answer, "failure", item), **ada) == "repeated-outcome"
        await router.enrichment.settle()
        assert await code(about(answer, "success", item, item), **ada) == "repeated-outcome"
        async with scripted_router(tmp_path, SCRIPTS) as beside:  # it writes another log
            theirs = await search(beside, session="ada", principal="ada")
            assert await code(about(theirs, "success", item), **ada) == "foreign-receipt"
            assert await code(about(theirs, "success", item), **ada, owns=True) is None
    assert [row[3] for row in rows(tmp_path) if row[0] == "reported"] == ["far", "near"] * 2


async def test_a_flood_is_stopped_for_its_session_alone(tmp_path: Path) -> None:
    async with scripted_router(tmp_path, SCRIPTS, flags=["enrich.outcomes_per_minute=3"]) as router:
        answer = await search(router, session="ada")
        calm = await search(router, session="bob")
        raw = about(answer, "success", "bogus")
        codes = [(await told(router, raw, session="ada"))[0].error for _ in range(5)]
        assert [error.code for error in codes if error] == [*["unknown-evidence"] * 3, *["too-many-outcomes"] * 2]
        fine, _ = await told(router, about(calm, "success", calm.evidence[0].id), session="bob")
        assert fine.error is None


async def test_the_owner_tells_it_on_the_command_line(tmp_path: Path) -> None:
    async with scripted_router(tmp_path, SCRIPTS) as router:
        answer = await search(router, principal="local")
    assert answer.receipt is not None
    arguments = ("outcome", answer.receipt.id, "success", answer.evidence[0].id, "--root", str(tmp_path / "work"))
    first = run_cli(tmp_path, *arguments)
    again = run_cli(tmp_path, *arguments)
    assert (first.code, again.code) == (0, 2), (first, again)
    assert "taken: " in first.stdout.decode() and "declined" in again.stdout.decode()


@given(
    sources=st.lists(st.tuples(st.sampled_from("abcdef"), st.integers(1, 50)), min_size=1, max_size=6, unique_by=lambda s: s[0]),
    weights=st.dictionaries(st.sampled_from("abcdef"), st.integers(0, 1000)),
    outcome=st.sampled_from(["success", "partial", "failure"]),
)
def test_shares_add_up_and_nobody_gets_more_than_all(sources: list[tuple[str, int]], weights: dict[str, int], outcome: str) -> None:
    answered = Answered("r:1", None, None, None, {"e": tuple(sources)}, 60, weights)
    credited = credit_experts(answered, ["e"], outcome)
    assert [c.expert for c in credited] == [expert for expert, _ in sources]
    assert abs(sum(c.share_pm for c in credited) - 1000) <= len(sources)
    assert all(0 <= c.share_pm <= 1000 for c in credited)
