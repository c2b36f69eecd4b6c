"""Benchmark events: a row a request, a row a call, and nothing of the question but its digest."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from search_router.router.enrich.database import FILE_NAME
from tests.scripted_router import hit, scripted_router

SECRET = "wherearethecrownjewels"


def rows(folder: Path, columns: str) -> list[tuple[object, ...]]:
    with sqlite3.connect(folder / "home" / FILE_NAME) as database:
        found = database.execute(f"SELECT {columns} FROM tool_benchmark_events ORDER BY id").fetchall()
    database.close()
    return found


@pytest.mark.anyio
async def test_a_search_leaves_a_row_for_itself_and_one_for_each_call_with_the_id_in_its_receipt(tmp_path: Path) -> None:
    scripts = {"found": [{"when": "*", "hits": [hit()]}], "nothing": [{"when": "*", "hits": []}]}
    async with scripted_router(tmp_path, scripts) as router:
        answer = await router.search({"question": f"how is {SECRET} kept"}, session="s1", principal="ada")
        assert answer.receipt is not None
        statement = (await router.receipt(answer.receipt.id)).statement["predicate"]
        await router.search({"question": ""})
        told = await router.experiments()
    (event,) = statement["benchmark_events"]
    columns = "event_id, kind, arm, expert_id, status, result_count, hit_miss, receipt_id, session, principal, operation"
    receipt = answer.receipt.id
    assert rows(tmp_path, columns)[:3] == [
        (event, "request", "router", None, "answered", 1, "hit", receipt, "s1", "ada", "search"),
        (f"{event}/found", "call", "found", "found", "ok", 1, "hit", receipt, "s1", "ada", "search"),
        (f"{event}/nothing", "call", "nothing", "nothing", "empty", 0, "miss", receipt, "s1", "ada", "search"),
    ]
    assert {row[0] for row in rows(tmp_path, "question_hash")[:3]} == {statement["question"]["digest"]}
    assert (told.requests, told.calls, told.runs) == (2, 2, 1)
    assert [(arm.arm, arm.events, arm.hits) for arm in told.arms] == [("router", 2, 1), ("found", 1, 1), ("nothing", 1, 0)]
    for name in (FILE_NAME, f"{FILE_NAME}-wal"):
        path = tmp_path / "home" / name
        assert not path.exists() or SECRET.encode() not in path.read_bytes()


@pytest.mark.anyio
async def test_events_count_for_the_configured_slug_and_can_be_switched_off(tmp_path: Path) -> None:
    scripts = {"one": [{"when": "*", "hits": [hit()]}]}
    async with scripted_router(tmp_path, scripts, flags=['enrich.paper_slug="second"']) as router:
        await router.search({"question": "start the app"})
        assert (await router.experiments()).requests == 1
        assert (await router.experiments("moe-search-router")).requests == 0
    async with scripted_router(tmp_path, scripts, flags=["enrich.events=false"]) as router:
        answer = await router.search({"question": "start the app"})
        assert answer.receipt is not None
        assert (await router.receipt(answer.receipt.id)).statement["predicate"]["benchmark_events"] == []
        assert (await router.experiments()).requests == 0


@pytest.mark.behaviour("enrichment-never-costs-an-answer")
@pytest.mark.anyio
async def test_a_damaged_file_is_told_and_the_answer_stands(tmp_path: Path) -> None:
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / FILE_NAME).write_bytes(b"rubbish" * 1000)
    async with scripted_router(tmp_path, {"one": [{"when": "*", "hits": [hit()]}]}) as router:
        first = await router.search({"question": "start the app"})
        await router.enrichment.owner.flush()
        second = await router.search({"question": "stop the app"})
        registry = await router.registry()
        third = await router.search({"question": "stop the app"})
    assert first.evidence and second.evidence and second.receipt
    told = [note for note in registry.notes if FILE_NAME in note]
    assert len(told) == 1
    assert told[0] in second.notes and told[0] not in third.notes
