"""Who may be asked beside the experts, where the configuration names them and the request's budget says so. See docs/reranking.md."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass

from search_router.adapters.language_model import LanguageModel, make_language_model
from search_router.adapters.rerank import Reranker, make_reranker
from search_router.config.schema import Config
from search_router.router.fuse import Fused
from search_router.router.identity import FileKey
from search_router.router.reading_order import order_reading
from search_router.router.rerank import rerank_fused
from search_router.router.stages import StageLog
from search_router.schema import FileFacts, SearchRequest


@dataclass(frozen=True, slots=True)
class Advisers:
    """None where none is configured. Nothing is loaded or opened before it is asked."""

    reranker: Reranker | None = None
    model: LanguageModel | None = None

    async def aclose(self) -> None:
        """Release all; safe to call twice."""
        for each in (self.reranker, self.model):
            if each is not None:
                await each.aclose()


def make_advisers(config: Config) -> Advisers:
    """Those of the configuration. What they lack is said when they are asked."""
    return Advisers(make_reranker(config.rerank), make_language_model(config.llm))


async def take_advice(
    advisers: Advisers,
    config: Config,
    request: SearchRequest,
    fused: list[Fused],
    facts: Mapping[FileKey, FileFacts],
    until: float,
    stages: StageLog,
) -> tuple[list[Fused], list[str]]:
    """(the list in the order of those whom the budget lets be asked, a note for each that failed). `until` is of `time.perf_counter`."""
    notes: list[str | None] = []
    if request.budget.rerank:
        left = until - time.perf_counter()
        fused, note = await rerank_fused(advisers.reranker, config.rerank, request.question, fused, facts, left, stages)
        notes.append(note)
    if request.budget.allow_llm:
        left = until - time.perf_counter()
        fused, note = await order_reading(advisers.model, config.llm, request.question, fused, facts, left, stages)
        notes.append(note)
    return fused, [note for note in notes if note]
