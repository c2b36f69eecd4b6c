"""Rerankers against a real server in the documented forms, and against every other answer a server can give."""

from __future__ import annotations

import importlib.util
import os
import threading
from collections.abc import AsyncGenerator, Iterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from search_router.adapters.cross_encoder import BATCH, CrossEncoderReranker
from search_router.adapters.json_service import MAX_ANSWER_BYTES
from search_router.adapters.rerank import Reranker, make_reranker, read_scores, score_texts
from search_router.config.schema import RerankConfig
from search_router.errors import ExpertError, FailureClass
from tests.adapters.answering_server import AnsweringServer, Asked, answering_server, cohere_form, tei_form

pytestmark = pytest.mark.anyio
KEY = "sk-very-secret-0123456789"
VARIABLE = "SEARCH_ROUTER_TEST_RERANK_KEY"
TEXTS = ("open the jar", "parse a token", "token and jar parse")


def settings_for(**more: object) -> RerankConfig:
    base = {"kind": "http", "model": "m", "allow_remote": True, "pool": 50, "characters": 2000, "cap_ms": 1500}
    return RerankConfig.model_validate(base | more)


@asynccontextmanager
async def opened(settings: RerankConfig) -> AsyncGenerator[Reranker]:
    reranker = make_reranker(settings)
    assert reranker is not None
    try:
        yield reranker
    finally:
        await reranker.aclose()
        await reranker.aclose()


@pytest.fixture
def server() -> Iterator[AnsweringServer]:
    with answering_server(cohere_form) as running:
        yield running


async def failure_of(settings: RerankConfig, seconds: float = 5.0) -> ExpertError:
    async with opened(settings) as reranker:
        with pytest.raises(ExpertError) as caught:
            await score_texts(reranker, "parse token", TEXTS, seconds)
    assert KEY not in f"{caught.value} {caught.value.detail}" and "sk-in-the-body" not in str(caught.value)
    return caught.value


def test_off_is_no_reranker() -> None:
    assert make_reranker(settings_for(kind="off")) is None


async def test_both_forms_give_the_scores_in_the_order_of_the_texts(server: AnsweringServer) -> None:
    async with opened(settings_for(url=f"{server.url}/v1/rerank")) as reranker:
        assert await score_texts(reranker, "parse token", TEXTS, 5.0) == (0.0, 2.0, 2.0)
        assert (reranker.local, reranker.version, reranker.name) == (False, "m", f"http {server.url}")
    server.answer = tei_form
    async with opened(settings_for(url=f"{server.url}/rerank", form="tei", model="")) as reranker:
        assert await score_texts(reranker, "jar", TEXTS, 5.0) == (1.0, 0.0, 1.0)
    cohere, tei = server.asked
    assert (cohere.path, cohere.body) == ("/v1/rerank", {"model": "m", "query": "parse token", "documents": list(TEXTS), "top_n": 3})
    assert (tei.path, tei.body) == ("/rerank", {"query": "jar", "texts": list(TEXTS), "truncate": True})
    assert "authorization" not in cohere.headers


async def test_nothing_to_score_asks_nobody(server: AnsweringServer) -> None:
    async with opened(settings_for(url=server.url)) as reranker:
        assert await score_texts(reranker, "parse token", (), 5.0) == ()
    assert server.asked == []


async def test_the_key_comes_from_the_named_variable(server: AnsweringServer) -> None:
    os.environ[VARIABLE] = KEY
    try:
        async with opened(settings_for(url=server.url, api_key_env=VARIABLE)) as reranker:
            await score_texts(reranker, "parse token", TEXTS, 5.0)
        assert server.asked[0].headers["authorization"] == f"Bearer {KEY}"
        server.answer = lambda asked: 401
        assert (await failure_of(settings_for(url=server.url, api_key_env=VARIABLE))).failure is FailureClass.UNCONFIGURED
    finally:
        del os.environ[VARIABLE]
    missing = await failure_of(settings_for(url=server.url, api_key_env=VARIABLE))
    assert missing.failure is FailureClass.UNCONFIGURED and VARIABLE in str(missing)


ROWS = [{"index": n, "relevance_score": 0.5} for n in range(3)]


@pytest.mark.parametrize(
    ("answer", "failure"),
    [
        (b"no json", FailureClass.PROTOCOL_ERROR),
        (b'{"results": [', FailureClass.PROTOCOL_ERROR),
        (b"[" * 100_000, FailureClass.PROTOCOL_ERROR),
        ({"results": ROWS[:2]}, FailureClass.PROTOCOL_ERROR),
        ({"results": [*ROWS, {"index": 3, "relevance_score": 0.5}]}, FailureClass.PROTOCOL_ERROR),
        ({"results": [ROWS[0], ROWS[0], ROWS[1]]}, FailureClass.PROTOCOL_ERROR),
        ({"results": [*ROWS[:2], {"index": 2, "relevance_score": "0.5"}]}, FailureClass.PROTOCOL_ERROR),
        ({"results": [*ROWS[:2], {"index": 2, "relevance_score": None}]}, FailureClass.PROTOCOL_ERROR),
        ({"results": [*ROWS[:2], {"index": True, "relevance_score": 1}]}, FailureClass.PROTOCOL_ERROR),
        ({"results": [*ROWS[:2], {"index": 2}]}, FailureClass.PROTOCOL_ERROR),
        ({"results": "0.5 0.5 0.5"}, FailureClass.PROTOCOL_ERROR),
        ({"message": "overloaded"}, FailureClass.PROTOCOL_ERROR),
        (b'[{"index":0,"score":NaN},{"index":1,"score":1},{"index":2,"score":1}]', FailureClass.PROTOCOL_ERROR),
        (b'[{"index":0,"score":1e999},{"index":1,"score":1},{"index":2,"score":1}]', FailureClass.PROTOCOL_ERROR),
        (b'[{"index":0,"score":1%s},{"index":1,"score":1},{"index":2,"score":1}]' % (b"0" * 400), FailureClass.PROTOCOL_ERROR),
        (b" " * (MAX_ANSWER_BYTES + 1) + b"[]", FailureClass.PROTOCOL_ERROR),
        (429, FailureClass.BUSY),
        (503, FailureClass.BUSY),
        (404, FailureClass.UNCONFIGURED),
        (500, FailureClass.UNAVAILABLE),
        (422, FailureClass.REJECTED),
    ],
    ids=lambda v: v.value if isinstance(v, FailureClass) else repr(v)[:40],
)
async def test_every_other_answer_is_a_classified_failure(server: AnsweringServer, answer: Any, failure: FailureClass) -> None:
    server.answer = lambda asked: answer
    error = await failure_of(settings_for(url=server.url))
    assert error.failure is failure
    assert len(server.asked) == 1  # nothing is tried again


async def test_a_silent_server_is_a_timeout_and_a_dead_one_unavailable(server: AnsweringServer) -> None:
    server.answer = lambda asked: None
    slow = await failure_of(settings_for(url=server.url), seconds=0.2)
    assert slow.failure is FailureClass.TIMEOUT and "200 ms" in str(slow)
    assert (await failure_of(settings_for(url="http://127.0.0.1:1/rerank"))).failure is FailureClass.UNAVAILABLE


@pytest.mark.parametrize(
    ("more", "word"),
    [
        ({"allow_remote": False}, "rerank.allow_remote"),
        ({"url": ""}, "rerank.url"),
        ({"url": "ftp://127.0.0.1/rerank"}, "rerank.url"),
        ({"url": "http://[::1"}, "rerank.url"),
        ({"url": "http://127.0.0.1:99999/rerank"}, "rerank.url"),
        ({"url": "http://me:secret@127.0.0.1/rerank"}, "credentials"),
        ({"url": "http://example.org/rerank", "api_key_env": VARIABLE}, "https"),
    ],
)
async def test_nothing_is_sent_where_a_setting_forbids_it(server: AnsweringServer, more: dict[str, object], word: str) -> None:
    error = await failure_of(settings_for(**{"url": server.url} | more))
    assert error.failure is FailureClass.UNCONFIGURED and word in str(error)
    assert "secret" not in str(error) and server.asked == []


@given(st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=1, max_size=20), st.randoms())
def test_scores_come_back_in_the_order_of_the_texts_however_they_are_listed(scores: list[float], chance: Any) -> None:
    rows = [{"index": n, "score": score} for n, score in enumerate(scores)]
    chance.shuffle(rows)
    assert read_scores(rows, len(scores)) == scores
    assert read_scores({"results": rows}, len(scores)) == scores


# ------------------------------------------------------------------ cross-encoder


class Counting:
    """A model that scores by length; it can be held at its first batch."""

    def __init__(self, gate: threading.Event | None = None) -> None:
        self.gate = gate
        self.started = threading.Event()
        self.batches: list[int] = []

    def predict(self, sentences: list[tuple[str, str]], *, show_progress_bar: bool) -> Sequence[object]:
        assert not show_progress_bar
        self.batches.append(len(sentences))
        self.started.set()
        if self.gate is not None:
            assert self.gate.wait(10)
        return [self.score(text) for _, text in sentences]

    def score(self, text: str) -> object:
        return len(text)


def reranker_over(model: Counting) -> CrossEncoderReranker:
    return CrossEncoderReranker("folder", lambda folder: (model, "digest"))


async def test_a_cross_encoder_scores_in_batches_and_says_its_version() -> None:
    reranker = reranker_over(model := Counting())
    texts = ["x" * n for n in range(BATCH + 3)]
    assert reranker.version == ""
    assert await score_texts(reranker, "q", texts, 5.0) == tuple(float(n) for n in range(BATCH + 3))
    assert (model.batches, reranker.version, reranker.local) == ([BATCH, 3], "digest", True)
    await reranker.aclose()
    with pytest.raises(ExpertError) as closed:
        await score_texts(reranker, "q", texts, 5.0)
    assert closed.value.failure is FailureClass.UNAVAILABLE


async def test_a_late_cross_encoder_is_a_timeout_and_stops_after_its_batch() -> None:
    gate = threading.Event()
    reranker = reranker_over(model := Counting(gate))
    with pytest.raises(ExpertError) as late:
        await score_texts(reranker, "q", ["x"] * (3 * BATCH), 0.1)
    assert late.value.failure is FailureClass.TIMEOUT and model.started.is_set()
    gate.set()
    assert await score_texts(reranker, "q", ["xx"], 5.0) == (2.0,)
    assert model.batches == [BATCH, 1]
    await reranker.aclose()


class Several(Counting):
    def score(self, text: str) -> object:
        return [0.1, 0.9]


class Sick(Counting):
    def score(self, text: str) -> object:
        return float("nan")


class Broken(Counting):
    def score(self, text: str) -> object:
        raise RuntimeError("out of memory")


@pytest.mark.parametrize(
    ("model", "failure"),
    [(Several(), FailureClass.PROTOCOL_ERROR), (Sick(), FailureClass.PROTOCOL_ERROR), (Broken(), FailureClass.CRASHED)],
    ids=["several classes", "nan", "broken"],
)
async def test_a_model_that_gives_no_score_is_a_classified_failure(model: Counting, failure: FailureClass) -> None:
    reranker = reranker_over(model)
    with pytest.raises(ExpertError) as caught:
        await score_texts(reranker, "q", ["x"], 5.0)
    assert caught.value.failure is failure
    await reranker.aclose()


async def test_a_model_is_a_folder_and_is_never_downloaded(tmp_path: Path) -> None:
    error = await failure_of(settings_for(kind="cross-encoder", model="cross-encoder/ms-marco-MiniLM-L6-v2"))
    assert error.failure is FailureClass.UNCONFIGURED and "rerank.model" in str(error)
    if importlib.util.find_spec("sentence_transformers") is None:
        missing = await failure_of(settings_for(kind="cross-encoder", model=str(tmp_path)))
        assert missing.failure is FailureClass.UNCONFIGURED and "search-router[rerank]" in str(missing)


async def test_another_number_of_scores_is_a_failure_whoever_gives_them() -> None:
    class Short:
        name, version, local = "short", "1", True

        async def rerank(self, question: str, texts: Sequence[str], seconds: float) -> Sequence[float]:
            return [1.0]

        async def aclose(self) -> None: ...

    with pytest.raises(ExpertError, match="1 scores for 2 texts"):
        await score_texts(Short(), "q", ["a", "b"], 1.0)


def test_the_server_of_these_tests_speaks_the_documented_forms() -> None:
    asked = Asked("/rerank", {}, {"query": "jar", "documents": list(TEXTS), "texts": list(TEXTS)})
    assert [row["index"] for row in cohere_form(asked)["results"]] == [row["index"] for row in tei_form(asked)] == [0, 2, 1]
