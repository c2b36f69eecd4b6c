"""A hundred clients at once: every answer has its receipt, every receipt verifies, nothing is left open."""

from __future__ import annotations

from typing import Any

import pytest

from search_router.benchmark import load

pytestmark = pytest.mark.heavy


def check(result: dict[str, Any], answers: int) -> None:
    assert result["errors"] == []
    assert (result["answers"], result["receipts"], result["distinct_receipts"]) == (answers, answers, answers)
    assert result["verified"] is True
    before, after, last = (result["resources"][when] for when in ("before", "after", "after_second_round"))
    assert last["files"] <= before["files"] + 5  # the last connections are still being closed
    assert last["threads"] <= 52  # the pool of worker threads has 40
    assert last["rss_mib"] - after["rss_mib"] < 25


def test_a_hundred_clients_get_an_answer_and_a_receipt_for_every_question() -> None:
    result: dict[str, Any] = load.run(clients=100, requests=5)
    check(result, 2 * 500)


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_a_hundred_clients_with_twenty_questions_each() -> None:
    result: dict[str, Any] = load.run(clients=100, requests=20)
    check(result, 2 * 2000)
