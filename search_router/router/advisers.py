"""Who may be asked beside the experts, where the configuration names them and the request's budget says so. See docs/reranking.md."""

from __future__ import annotations

from dataclasses import dataclass

from search_router.adapters.rerank import Reranker, make_reranker
from search_router.config.schema import Config


@dataclass(frozen=True, slots=True)
class Advisers:
    """None where none is configured. Nothing is loaded or opened before it is asked."""

    reranker: Reranker | None = None

    async def aclose(self) -> None:
        """Release all; safe to call twice."""
        if self.reranker is not None:
            await self.reranker.aclose()


def make_advisers(config: Config) -> Advisers:
    """Those of the configuration. What they lack is said when they are asked."""
    return Advisers(make_reranker(config.rerank))
