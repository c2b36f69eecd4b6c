"""The stage `rerank`: the best of the fused list in a reranker's order, or in the order they had, and then the answer says why."""

from __future__ import annotations

from collections.abc import Mapping

from search_router.adapters.rerank import Reranker, score_texts
from search_router.config.schema import RerankConfig
from search_router.errors import ExpertError
from search_router.redact import scrub
from search_router.router.excerpts import excerpt_of
from search_router.router.fuse import Fused
from search_router.router.identity import FileKey
from search_router.router.stages import StageLog
from search_router.schema import FileFacts

VERSION_DIGITS = 12


async def rerank_fused(
    reranker: Reranker | None,
    settings: RerankConfig,
    question: str,
    fused: list[Fused],
    facts: Mapping[FileKey, FileFacts],
    seconds: float,
    stages: StageLog,
) -> tuple[list[Fused], str | None]:
    """(the list with its best `settings.pool` items by score, equal ones as they were; a note when it failed and the fused order stands).

    Nothing is lost or added, and what is beyond the pool stays behind it.
    """
    if reranker is None or len(fused) < 2:
        stages.skip("rerank", "no reranker is configured" if reranker is None else "nothing to reorder", len(fused))
        return fused, None
    pool = fused[: settings.pool]
    seconds = min(settings.cap_ms / 1000, seconds)
    with stages.run("rerank", len(pool)) as stage:
        stage.out = len(pool)
        if seconds <= 0:
            stage.active, stage.reason = False, "the fused order stands: no time is left in the budget"
            return fused, f"not reranked, {stage.reason}"
        try:
            scores = await score_texts(reranker, question, [excerpt_of(f, facts, settings.characters) for f in pool], seconds)
        except ExpertError as error:
            said = scrub(str(error))
            stage.active, stage.reason = False, f"the fused order stands, {name_of(reranker)} failed ({error.failure.value}): {said}"
            return fused, f"not reranked, the fused order stands: {said}"
        stage.reason = name_of(reranker)
    order = sorted(range(len(pool)), key=lambda n: (-scores[n], n))
    return [*(pool[n] for n in order), *fused[len(pool) :]], None


def name_of(reranker: Reranker) -> str:
    """Name, version, and whether texts left this process: for the stage report and the receipt."""
    version = f" {reranker.version[:VERSION_DIGITS]}" if reranker.local else f" {reranker.version}"
    return f"{reranker.name}{version.rstrip()} ({'in this process' if reranker.local else 'texts were sent there'})"
