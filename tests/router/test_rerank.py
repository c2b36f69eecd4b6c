"""The stage `rerank`, from the request to the receipt, with a real reranking server."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from search_router.adapters.rerank import Reranker
from search_router.config.schema import RerankConfig
from search_router.router.excerpts import LEAST_LINES, excerpt_of
from search_router.router.fuse import Fused
from search_router.router.identity import Candidate, Ranked
from search_router.router.rerank import rerank_fused
from search_router.router.service import Router
from search_router.router.stages import StageLog
from search_router.schema import Answer, CommitRecord, FileFacts, Hit, StageReport
from tests.adapters.answering_server import AnsweringServer, Asked, answering_server, cohere_form
from tests.scripted_router import hit, scripted_router

pytestmark = pytest.mark.anyio
QUESTION = "how are cookies parsed"
FILES = {
    "a.py": "def alpha():\n    return 1\n",
    "b.py": "def beta(cookies):\n    return parsed\n",
    "c.py": "def gamma():\n    # cookies\n    return 2\n",
    "d.py": "def delta():\n    # cookies parsed\n    return 2\n",
}
FINDS = [{"when": "*", "hits": [hit(path, 1) for path in FILES]}]


@asynccontextmanager
async def asked_router(
    folder: Path, answer: Callable[[Asked], Any], flags: Sequence[str] = ()
) -> AsyncGenerator[tuple[Router, AnsweringServer]]:
    with answering_server(answer) as server:
        settings = ['rerank.kind="http"', f'rerank.url="{server.url}"', 'rerank.model="m"', "rerank.allow_remote=true"]
        async with scripted_router(folder, {"x": FINDS}, files=FILES, flags=[*settings, *flags]) as router:
            yield router, server


async def ask(router: Router, **budget: Any) -> Answer:
    return await router.search({"question": QUESTION, "intent": "conceptual", "budget": budget})


def paths(answer: Answer) -> list[str]:
    return [item.path or "" for item in answer.evidence]


def stage_of(answer: Answer) -> StageReport:
    (found,) = [stage for stage in answer.stages if stage.stage == "rerank"]
    return found


@pytest.mark.behaviour("reranks-only-when-asked")
async def test_a_reranker_is_asked_only_when_the_budget_says_so(tmp_path: Path) -> None:
    async with asked_router(tmp_path, cohere_form) as (router, server):
        plain = await ask(router)
        assert paths(plain) == ["a.py", "b.py", "c.py", "d.py"]
        assert server.asked == [] and "rerank" not in [stage.stage for stage in plain.stages]
        reranked = await ask(router, rerank=True)
        assert stage_of(reranked).active, stage_of(reranked).reason
        assert paths(reranked) == ["d.py", "b.py", "c.py", "a.py"]
        (asked,) = server.asked
        assert asked.body["query"] == QUESTION
        assert asked.body["documents"][1] == "b.py\ndef beta(cookies):\n    return parsed"
        stage = stage_of(reranked)
        assert (stage.active, stage.in_, stage.out) == (True, 4, 4)
        assert stage.reason == f"http {server.url} m (texts were sent there)"
        assert reranked.receipt is not None
        receipted = (await router.receipt(reranked.receipt.id)).statement["predicate"]["stages"]
        assert [s["reason"] for s in receipted if s["stage"] == "rerank"] == [stage.reason]


async def test_what_is_beyond_the_pool_stays_behind_it_and_texts_are_bounded(tmp_path: Path) -> None:
    async with asked_router(tmp_path, cohere_form, ["rerank.pool=3", "rerank.characters=100"]) as (router, server):
        assert paths(await ask(router, rerank=True)) == ["b.py", "c.py", "a.py", "d.py"]
        assert len(server.asked[0].body["documents"]) == 3
        assert max(map(len, server.asked[0].body["documents"])) <= 100


def silent(asked: Asked) -> Any:
    return None


def too_few(asked: Asked) -> Any:
    return {"results": cohere_form(asked)["results"][1:]}


def no_number(asked: Asked) -> Any:
    return b'{"results": [%s]}' % b",".join(b'{"index": %d, "relevance_score": NaN}' % n for n in range(4))


@pytest.mark.behaviour("reranker-fails-loudly")
@pytest.mark.parametrize(
    ("answer", "failure"),
    [
        (silent, "timeout"),
        (too_few, "protocol-error"),
        (no_number, "protocol-error"),
        (lambda _: 500, "unavailable"),
        (lambda _: b"<html>", "protocol-error"),
    ],
    ids=["slow", "too few", "nan", "broken", "no json"],
)
async def test_a_reranker_that_fails_leaves_the_fused_order_and_it_is_said(tmp_path: Path, answer: Any, failure: str) -> None:
    async with asked_router(tmp_path, answer, ["rerank.cap_ms=300"]) as (router, _):
        found = await ask(router, rerank=True)
        assert paths(found) == ["a.py", "b.py", "c.py", "d.py"]
        stage = stage_of(found)
        assert not stage.active and failure in stage.reason and "fused order stands" in stage.reason
        assert [note for note in found.notes if "fused order stands" in note]
        assert "fused order stands" in router.render(found)


@pytest.mark.behaviour("reranker-fails-loudly")
async def test_a_reranker_has_only_what_is_left_of_the_budget(tmp_path: Path) -> None:
    async with asked_router(tmp_path, silent, ["rerank.cap_ms=60000"]) as (router, _):
        found = await ask(router, rerank=True, latency_ms=400)
        assert paths(found) == ["a.py", "b.py", "c.py", "d.py"] and found.budget.used_ms < 5_000
        assert "timeout" in stage_of(found).reason


# ------------------------------------------------------------------ the stage alone


class Scripted:
    """Gives these scores."""

    name, version, local = "scripted", "1" * 64, True

    def __init__(self, scores: Sequence[float]) -> None:
        self.scores = scores

    async def rerank(self, question: str, texts: Sequence[str], seconds: float) -> Sequence[float]:
        return self.scores[: len(texts)]

    async def aclose(self) -> None: ...


SETTINGS = RerankConfig(kind="http", pool=5, characters=100, cap_ms=1000)


def item(path: str, **more: Any) -> Fused:
    votes = (Ranked(1, 1, "x", 1, Hit("p", path, 1, 1, **more)),) if more else ()
    return Fused(Candidate(("code", "p", path, "1", ""), "p", path, 1, 1, None, votes), 1.0, 1.0, ())


async def order(reranker: Reranker | None, count: int, seconds: float = 5.0) -> tuple[list[str | None], StageReport]:
    fused = [item(f"{n}.py") for n in range(count)]
    facts = {("p", f"{n}.py"): FileFacts("", "text\n", None) for n in range(count)}
    stages = StageLog()
    found, _ = await rerank_fused(reranker, SETTINGS, "q", fused, facts, seconds, stages)
    return [f.candidate.path for f in found], stages.reports[0]


@given(st.lists(st.sampled_from([-1.0, 0.0, 0.5, 1.0]), min_size=2, max_size=9))
async def test_the_list_keeps_every_item_and_equal_scores_keep_their_order(scores: list[float]) -> None:
    found, stage = await order(Scripted(scores), len(scores))
    pool = min(SETTINGS.pool, len(scores))
    expected = sorted(range(pool), key=lambda n: (-scores[n], n))
    assert found == [f"{n}.py" for n in (*expected, *range(pool, len(scores)))]
    assert (stage.active, stage.reason) == (True, "scripted 111111111111 (in this process)")


async def test_without_reranker_time_or_choice_nothing_is_asked() -> None:
    assert (await order(None, 3))[1].reason == "no reranker is configured"
    assert (await order(Scripted([1.0]), 1))[1].reason == "nothing to reorder"
    found, stage = await order(Scripted([0.0, 1.0]), 2, seconds=0.0)
    assert found == ["0.py", "1.py"] and not stage.active and "no time" in stage.reason


def test_a_commit_is_read_as_its_subject_and_paths_and_text_is_cut() -> None:
    commit = CommitRecord("c" * 40, "2026-01-01T00:00:00Z", "me", "Parse cookies", ("a.py", "b.py"))
    assert excerpt_of(item("", commit=commit), {}, 100) == "Parse cookies\na.py\nb.py"
    assert excerpt_of(item("", commit=commit), {}, 15) == "Parse cookies\na"


def test_a_line_is_read_with_what_follows_it() -> None:
    facts = {("p", "a.py"): FileFacts("", "".join(f"{n}\n" for n in range(1, 30)), None)}
    assert excerpt_of(item("a.py"), facts, 100).split("\n") == ["a.py", *map(str, range(1, LEAST_LINES + 1))]
