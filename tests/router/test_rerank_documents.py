"""What a reranker is given of documents that `knowledge` found, and what becomes of its order, with a real reranking server."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from search_router.router.opening import open_router
from search_router.router.service import Router
from search_router.schema import Answer
from tests.adapters.answering_server import AnsweringServer, Asked, answering_server, cohere_form
from tests.adapters.local.knowledge_workspace import write
from tests.scripted_router import environ

pytestmark = pytest.mark.anyio
QUESTION = "documentation of the retry limit of payments"
SECTIONS = {
    f"runbooks/payments-{n:02}.md": f"# Runbook {n}\n\n## Limits\n\nThe retry limit of payments in region {n} is {n}.\n\n"
    f"## Owners\n\nTeam {n} owns nothing of interest.\n"
    for n in range(12)
}
WALL = " ".join(f"Note {n} is about the plants on floor {n} of the office and who waters them." for n in range(400)).replace(
    "Note 300 ", "The retry limit of payments was forty-two. Note 300 "
)


@asynccontextmanager
async def asked_router(
    folder: Path, files: Mapping[str, str], answer: Callable[[Asked], Any]
) -> AsyncGenerator[tuple[Router, AnsweringServer]]:
    write(folder / "work", files)
    with answering_server(answer) as server:
        flags = ['rerank.kind="http"', f'rerank.url="{server.url}"', 'rerank.model="m"', "rerank.allow_remote=true"]
        async with open_router(roots=[folder / "work"], environ=environ(folder), flags=flags) as router:
            yield router, server


async def ask(router: Router, *, rerank: bool = True, limit: int = 5) -> Answer:
    budget = {"rerank": rerank, "latency_ms": 20_000}
    return await router.search({"question": QUESTION, "intent": "docs", "limit": limit, "budget": budget})


def paths(answer: Answer) -> list[str]:
    return [item.path or "" for item in answer.evidence]


def prefers(text: str) -> Callable[[Asked], Any]:
    """The documented form, with the best score for texts that hold this."""

    def answer(asked: Asked) -> Any:
        rows = [{"index": n, "relevance_score": 0.9 if text in t else 0.1} for n, t in enumerate(asked.body["documents"])]
        return {"id": "1", "results": sorted(rows, key=lambda row: -row["relevance_score"])}

    return answer


async def test_more_documents_than_are_shown_are_reranked_each_by_its_section_with_title_and_headings(tmp_path: Path) -> None:
    async with asked_router(tmp_path, SECTIONS, prefers("in region 7 ")) as (router, server):
        found = await ask(router)
        assert paths(found)[0] == "runbooks/payments-07.md" and len(found.evidence) == 5
        sent = server.asked[0].body["documents"]
        seventh = next(text for text in sent if "region 7 " in text)
        assert seventh == "runbooks/payments-07.md\nRunbook 7 › Limits\n## Limits\n\nThe retry limit of payments in region 7 is 7."
        assert sum("Runbook" in text and "The retry limit" in text for text in sent) == len(SECTIONS)
        stages = {stage.stage: stage for stage in found.stages}
        assert stages["rerank"].active, stages["rerank"].reason
        assert not stages["knowledge.rerank"].active and "budget.rerank" in stages["knowledge.rerank"].reason


@pytest.mark.behaviour("reranker-fails-loudly")
@pytest.mark.parametrize("answer", [lambda _: 503, lambda _: b"<html>", lambda asked: {"results": cohere_form(asked)["results"][1:]}])
async def test_when_it_fails_documents_stand_in_the_fused_order_and_it_is_said(tmp_path: Path, answer: Callable[[Asked], Any]) -> None:
    async with asked_router(tmp_path, SECTIONS, answer) as (router, server):
        fused = await ask(router, rerank=False, limit=12)
        found = await ask(router, limit=12)
        assert len(server.asked) == 1
        assert paths(found) == paths(fused) and len(paths(found)) == 12
        stage = next(stage for stage in found.stages if stage.stage == "rerank")
        assert not stage.active and "the fused order stands" in stage.reason
        assert any("the fused order stands" in note for note in found.notes)
        assert "the fused order stands" in router.render(found)


async def test_of_a_line_that_is_a_wall_it_reads_the_sentence_that_was_found(tmp_path: Path) -> None:
    async with asked_router(tmp_path, {**SECTIONS, "wall.txt": WALL}, prefers("forty-two")) as (router, server):
        found = await ask(router)
        assert paths(found)[0] == "wall.txt"
        (sent,) = [text for text in server.asked[0].body["documents"] if "wall.txt" in text]
        assert "The retry limit of payments was forty-two." in sent and "«" not in sent


async def test_what_is_replaced_stays_behind_its_successor_whatever_a_model_thinks(tmp_path: Path) -> None:
    files = {
        "adr/0003-retries.md": "# 3. Retry limit of payments\n\n## Status\n\nSuperseded by [7](0007-retries.md)\n\nThe limit is three.\n",
        "adr/0007-retries.md": "# 7. Retry limit of payments\n\n## Status\n\nAccepted\n\nThe retry limit is five.\n",
    }
    async with asked_router(tmp_path, files, prefers("is three")) as (router, server):
        found = paths(await ask(router))
        assert server.asked and found.index("adr/0007-retries.md") < found.index("adr/0003-retries.md")
