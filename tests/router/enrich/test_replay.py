"""Replay: the same question again, and what is not as it was."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from search_router.errors import ReceiptNotFound, RequestDeclined
from search_router.schema import Status
from tests.command_line import run_cli
from tests.router.enrich.workshop import QUESTIONS, ask, workshop

pytestmark = pytest.mark.anyio


async def test_an_unchanged_world_gives_the_same_and_asks_everybody_although_it_is_cached(tmp_path: Path) -> None:
    async with workshop(tmp_path) as router:
        first = await ask(router, QUESTIONS[0])
        assert first.receipt is not None
        again = await router.replay(first.receipt.id, QUESTIONS[0])
        assert again.same and again.same_question and again.same_request, again
        assert all(item.then == item.now and not item.change for item in again.items)
        assert again.receipt is not None
        predicate = (await router.receipt(again.receipt.id)).statement["predicate"]
        assert predicate["cache"] == "off: asked afresh" and predicate["budget"]["asked"] == first.budget.asked


async def test_an_edit_another_setting_and_another_question_are_named_as_the_reason(tmp_path: Path) -> None:
    async with workshop(tmp_path) as router:
        first = await ask(router, QUESTIONS[1])
        assert first.receipt is not None
        (tmp_path / "repo/shop/retry.py").write_text("def should_retry(error):\n    return False\n")
        (tmp_path / "repo/shop/payment.py").unlink()
        edited = await router.replay(first.receipt.id, QUESTIONS[1])
        other = await router.replay(first.receipt.id, "which orders are open")
    assert not edited.same and edited.same_question
    assert any(item.change.startswith("content changed: now repo/shop/retry.py#") for item in edited.items)
    assert any(item.change == "not found now" for item in edited.items)
    assert edited.reasons[-1] == "files of the evidence have other content now"
    assert not other.same_question and other.reasons[0].startswith("another question")
    async with workshop(tmp_path, flags=["fusion.k=50"]) as router:
        tuned = await router.replay(first.receipt.id, QUESTIONS[1])
        assert any(reason.startswith("other configuration: search-router@") for reason in tuned.reasons)


async def test_a_question_that_nobody_kept_has_to_be_given(tmp_path: Path) -> None:
    async with workshop(tmp_path) as router:
        first = await ask(router, QUESTIONS[0], limit=3)
        assert first.receipt is not None
        with pytest.raises(RequestDeclined, match="holds the question's digest") as refused:
            await router.replay(first.receipt.id)
        assert refused.value.code == "question-not-kept"
        with pytest.raises(ReceiptNotFound):
            await router.replay("000000000000:1")
        fetched = await router.fetch({"ids": [first.evidence[0].id]})
        assert fetched.receipt is not None
        with pytest.raises(RequestDeclined, match="not that of a search"):
            await router.replay(fetched.receipt.id)
        asked_otherwise = await router.replay(first.receipt.id, QUESTIONS[0])
        assert asked_otherwise.same_question and not asked_otherwise.same_request


async def test_kept_requests_are_asked_again_as_they_were(tmp_path: Path) -> None:
    async with workshop(tmp_path, flags=["enrich.keep_questions=true"]) as router:
        first = await ask(router, QUESTIONS[0], limit=3)
        assert first.receipt is not None and first.status is Status.ANSWERED
        again = await router.replay(first.receipt.id)
        assert again.same and again.same_request and len(again.items) == len(first.evidence)


async def test_the_command_line_says_whether_it_differs(tmp_path: Path) -> None:
    async with workshop(tmp_path) as router:
        first = await ask(router, QUESTIONS[0])
    assert first.receipt is not None
    patient = ("--root", str(tmp_path / "repo"), "--set", "budget.latency_ms=60000")
    same = run_cli(tmp_path, "replay", first.receipt.id, "--question", QUESTIONS[0], *patient, "--json")
    assert (same.code, json.loads(same.stdout)["same"]) == (0, True), same
    without = run_cli(tmp_path, "replay", first.receipt.id, *patient)
    assert without.code == 2 and "--question" in without.stderr
