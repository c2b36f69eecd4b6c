"""Hints: who only agreed is not asked again while the content is unchanged, and the ranking is the same."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from search_router.router.enrich.database import FILE_NAME
from search_router.schema import Answer, ExpertStatus, Status
from tests.router.enrich.workshop import OFF, ask, asked, places, workshop

pytestmark = pytest.mark.anyio
ALONE = ("cache.positive_seconds=0", "cache.negative_seconds=0")
"""Hints without the cache before them."""
QUESTION = "where is should_retry defined"


def hints_of(answer: Answer) -> dict[str, str]:
    return {r.id: r.reason for r in answer.experts if r.status is ExpertStatus.SKIPPED and r.reason.startswith("hint: ")}


@pytest.mark.behaviour("hints-name-their-receipt")
async def test_an_expert_that_only_agreed_is_skipped_with_its_receipt_and_nothing_else_changes(tmp_path: Path) -> None:
    async with workshop(tmp_path, flags=ALONE) as router:
        first = await ask(router, QUESTION)
        again = await ask(router, QUESTION)
        assert first.receipt is not None and again.receipt is not None
        skipped = hints_of(again)
        assert skipped and set(asked(again)) == set(asked(first)) - set(skipped)
        assert all(f"receipt {first.receipt.id} stand, content unchanged" in reason for reason in skipped.values())
        assert again.status is Status.ANSWERED and again.evidence == first.evidence
        predicate = (await router.receipt(again.receipt.id)).statement["predicate"]
        assert predicate["hints"] == [f"holds {name} {first.receipt.id}" for name in sorted(skipped)]
        left_out = {each["expert"]: each["reason"] for each in predicate["plan"]["left_out"]}
        assert all(left_out[name].startswith("hint: ") for name in skipped)
    database = sqlite3.connect(tmp_path / "home" / FILE_NAME)
    confirmed = database.execute(
        "SELECT path, symbol, experts, tier, receipt_id FROM confirmations WHERE symbol = 'should_retry'"
    ).fetchall()
    database.close()
    (row,) = confirmed
    assert row[:2] == ("shop/retry.py", "should_retry") and row[3:] == ("symbol-confirmed", first.receipt.id)
    assert set(skipped) <= {*row[2].split(","), "grep", "symbols", "scip"}


async def test_a_change_of_what_was_confirmed_kills_the_hint_at_once(tmp_path: Path) -> None:
    async with workshop(tmp_path, flags=ALONE) as router, workshop(tmp_path / "oracle", root=tmp_path / "repo", flags=OFF) as oracle:
        first = await ask(router, QUESTION)
        assert hints_of(await ask(router, QUESTION))
        path = tmp_path / "repo/shop/retry.py"
        path.write_text(f"# moved down\n{path.read_text()}")
        after = await ask(router, QUESTION)
        assert set(asked(after)) == set(asked(first))
        assert places(after) == places(await ask(oracle, QUESTION)) != places(first)
        stage = next(stage for stage in after.stages if stage.stage == "hints")
        assert "shop/retry.py has other content than then" in stage.reason
        assert after.receipt is not None
        assert all(h.startswith("void ") for h in (await router.receipt(after.receipt.id)).statement["predicate"]["hints"])
        assert hints_of(await ask(router, QUESTION))  # the answer of then made a new one


async def test_what_the_leads_now_find_first_and_nobody_found_then_is_asked_of_all(tmp_path: Path) -> None:
    async with workshop(tmp_path, flags=ALONE) as router:
        first = await ask(router, QUESTION)
        assert hints_of(await ask(router, QUESTION))
        (tmp_path / "repo/shop/again.py").write_text("def should_retry(error):\n    return True\n")
        after = await ask(router, QUESTION)
        assert set(asked(after)) == set(asked(first))
        assert "shop/again.py" in [item.path for item in after.evidence]


async def test_a_change_elsewhere_leaves_the_hint(tmp_path: Path) -> None:
    async with workshop(tmp_path, flags=ALONE) as router:
        await ask(router, QUESTION)
        (tmp_path / "repo/shop/orders.py").write_text("def other():\n    return 1\n")
        assert hints_of(await ask(router, QUESTION))


async def test_another_process_uses_the_hint_and_a_damaged_one_is_none(tmp_path: Path) -> None:
    async with workshop(tmp_path, flags=ALONE) as router:
        first = await ask(router, QUESTION)
    async with workshop(tmp_path, flags=ALONE) as router:
        again = await ask(router, QUESTION)
        assert hints_of(again) and again.evidence == first.evidence
    database = sqlite3.connect(tmp_path / "home" / FILE_NAME)
    with database:
        database.execute("UPDATE hints SET entry = x'1234'")
    database.close()
    async with workshop(tmp_path, flags=ALONE) as router:
        assert not hints_of(await ask(router, QUESTION))


async def test_hints_can_be_switched_off_and_later_pages_owe_nothing_to_them(tmp_path: Path) -> None:
    async with workshop(tmp_path, flags=OFF) as router:
        assert not any([hints_of(await ask(router, QUESTION)) for _ in range(2)])
    async with workshop(tmp_path, flags=ALONE) as router:
        first = await ask(router, QUESTION, limit=1)
        assert first.cut.cursor is not None
        for _ in range(2):
            assert not hints_of(await ask(router, QUESTION, limit=1, cursor=first.cut.cursor))
