"""The contract of an expert: declare a card, answer calls, tell health, close.

An expert returns ranked hits or raises `ExpertError` with its failure class. It never retries in another form, never returns an
empty list for a failure, and stops at once when its task is cancelled: no process, thread or file handle stays behind.
"""

from __future__ import annotations

from typing import Protocol

from search_router.schema import ExpertCall, ExpertCard, ExpertResult, Health, Project


class Expert(Protocol):
    """The smallest contract: one card and three methods."""

    @property
    def card(self) -> ExpertCard: ...

    async def search(self, call: ExpertCall) -> ExpertResult:
        """Answer one call within `call.budget_ms`, best hit first, at most `call.limit` hits.

        Raises:
            ExpertError: the expert could not answer; the class says why. Zero hits means: looked, and found nothing.
        """
        ...

    async def health(self, projects: tuple[Project, ...]) -> Health:
        """Whether it could be asked now. Cheap (no index build, no network round trip longer than its cap)."""
        ...

    async def aclose(self) -> None:
        """Release everything; safe to call twice."""
        ...
