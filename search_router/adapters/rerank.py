"""Rerankers: what scores how well each of a few texts answers a question. Optional, and never asked unless a request says so.

off             no reranker
cross-encoder   a folder with a sentence-transformers CrossEncoder model, in this process
http            a server that speaks the form of Cohere and Jina, or that of Text Embeddings Inference
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Sequence
from typing import Any, Final, Protocol, cast

from search_router.adapters.json_service import JsonService, Service
from search_router.config.schema import RerankConfig
from search_router.errors import ExpertError, FailureClass

ANSWER_REMEDY: Final = "Check rerank.url, rerank.form and rerank.model."


class Reranker(Protocol):
    """Ask it through `score_texts`, which holds it to its deadline and its form."""

    @property
    def name(self) -> str: ...

    @property
    def version(self) -> str:
        """Of the model: equal versions give equal scores. Empty while it is not known."""
        ...

    @property
    def local(self) -> bool:
        """Whether texts stay in this process."""
        ...

    async def rerank(self, question: str, texts: Sequence[str], seconds: float) -> Sequence[float]:
        """One score a text, in their order; more is better, on any scale. Stops at once when its task is cancelled.

        Raises:
            ExpertError: it could not, or could not within `seconds`; the class says why.
        """
        ...

    async def aclose(self) -> None:
        """Release everything; safe to call twice."""
        ...


async def score_texts(reranker: Reranker, question: str, texts: Sequence[str], seconds: float) -> tuple[float, ...]:
    """The scores of all texts within `seconds`, finite and one a text.

    Raises:
        ExpertError: `timeout`; `protocol-error` for another number of scores or for a score that is no finite number; else the
            reranker's own.
    """
    if not texts:
        return ()
    try:
        async with asyncio.timeout(seconds):
            scores = tuple(await reranker.rerank(question, texts, seconds))
    except TimeoutError:
        raise ExpertError(
            FailureClass.TIMEOUT,
            f"The reranker {reranker.name} did not answer within {round(seconds * 1000)} ms.",
            remedy="Raise budget.latency_ms and rerank.cap_ms, or lower rerank.pool.",
        ) from None
    if len(scores) != len(texts):
        message = f"The reranker {reranker.name} gave {len(scores)} scores for {len(texts)} texts."
        raise ExpertError(FailureClass.PROTOCOL_ERROR, message, remedy=ANSWER_REMEDY)
    if not all(map(math.isfinite, scores)):
        message = f"The reranker {reranker.name} gave scores that are no finite numbers."
        raise ExpertError(FailureClass.PROTOCOL_ERROR, message, remedy=ANSWER_REMEDY)
    return scores


def make_reranker(settings: RerankConfig) -> Reranker | None:
    """The configured reranker; None where none is. At once: what is missing is said when it is asked."""
    match settings.kind:
        case "off":
            return None
        case "http":
            return HttpReranker(settings)
        case "cross-encoder":
            from search_router.adapters.cross_encoder import CrossEncoderReranker  # only who has one pays for it

            return CrossEncoderReranker(settings.model)


class HttpReranker:
    """POST to `rerank.url`. What is sent is `rerank.form`; the answer may be in either form.

    results: {"model", "query", "documents", "top_n"} -> {"results": [{"index", "relevance_score"}]}, Cohere's and Jina's.
    tei: {"query", "texts", "truncate"} -> [{"index", "score"}], that of Text Embeddings Inference, which serves one model.
    """

    local = False

    def __init__(self, settings: RerankConfig) -> None:
        self._settings = settings
        self._service = JsonService(Service("rerank", settings.url, settings.api_key_env, settings.allow_remote))

    @property
    def name(self) -> str:
        return f"http {self._service.site}"

    @property
    def version(self) -> str:
        """The name of the model; what runs behind it is the server's affair."""
        return self._settings.model

    async def rerank(self, question: str, texts: Sequence[str], seconds: float) -> Sequence[float]:
        sent = [text or " " for text in texts]  # servers refuse empty strings
        if self._settings.form == "tei":
            body: dict[str, Any] = {"query": question, "texts": sent, "truncate": True}
        else:
            body = {"model": self._settings.model, "query": question, "documents": sent, "top_n": len(sent)}
        answer = await self._service.post(body, seconds)
        try:
            return read_scores(answer, len(texts))
        except (ValueError, KeyError, TypeError, OverflowError) as error:
            raise ExpertError(
                FailureClass.PROTOCOL_ERROR,
                f"The reranker at {self._service.site} gave an answer of another form ({type(error).__name__}: {error}).",
                remedy=ANSWER_REMEDY,
            ) from error

    async def aclose(self) -> None:
        await self._service.aclose()


def read_scores(answer: Any, count: int) -> list[float]:
    """The scores in an answer of either form, in the order of the texts.

    Raises:
        KeyError, TypeError, ValueError, OverflowError: another form, or not each of the indexes 0 to count - 1 once.
    """
    rows: Any = cast("dict[str, Any]", answer)["results"] if isinstance(answer, dict) else answer
    if not isinstance(rows, list):
        raise TypeError("no list of scores")
    scores: dict[int, float] = {}
    for row in cast("list[dict[str, Any]]", rows):
        score = row["score"] if "score" in row else row["relevance_score"]
        if type(row["index"]) is not int or type(score) not in (int, float):
            raise TypeError("an index or a score is no number")
        if row["index"] in scores:
            raise ValueError("an index stands there twice")
        scores[row["index"]] = float(score)
    if sorted(scores) != list(range(count)):
        raise ValueError(f"{len(scores)} scores for {count} texts")
    return [scores[index] for index in range(count)]
