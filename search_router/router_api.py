"""What the front door needs of a router, and nothing more."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Protocol

from search_router.answers import ExperimentAnswer, FetchAnswer, OutcomeAnswer, ReceiptAnswer, RegistryAnswer
from search_router.schema import Answer

Progress = Callable[[str, float, int], Awaitable[None]]
"""Tell the caller how far it is: what just happened, steps done (with a fraction of the one under way), steps in all."""


class RouterApi(Protocol):
    """One request in, one answer out. A request's faults are in the answer; only a missing receipt is raised."""

    async def search(self, raw: Mapping[str, Any], *, session: str | None, principal: str | None, progress: Progress | None) -> Answer:
        """Answer one question. `raw` is the caller's JSON, not validated.

        Raises:
            ReceiptError: no receipt could be written, so there is no answer.
        """
        ...

    async def fetch(self, raw: Mapping[str, Any], *, session: str | None, principal: str | None) -> FetchAnswer:
        """Read evidence in full. `raw` is the caller's JSON, not validated.

        Raises:
            ReceiptError: no receipt could be written, so there is no answer.
        """
        ...

    async def report_outcome(self, raw: Mapping[str, Any], *, session: str | None, principal: str | None) -> OutcomeAnswer:
        """Take what became of an answer, or refuse it. `raw` is the caller's JSON, not validated.

        Raises:
            ReceiptError: no receipt could be written, so nothing was taken.
        """
        ...

    async def registry(self) -> RegistryAnswer:
        """The experts as configured and as they are now."""
        ...

    async def receipt(self, receipt_id: str) -> ReceiptAnswer:
        """One receipt of this store.

        Raises:
            ReceiptNotFound: no log has it.
        """
        ...

    async def experiments(self, paper_slug: str | None = None) -> ExperimentAnswer:
        """What the benchmark events of one paper slug add up to; without one, of the configured slug."""
        ...

    def render(self, answer: Answer) -> str:
        """The answer as compact text for a model."""
        ...

    def render_fetch(self, answer: FetchAnswer) -> str:
        """Fetched evidence as text with line numbers."""
        ...

    def render_outcome(self, answer: OutcomeAnswer) -> str:
        """Whether an outcome was taken, as text."""
        ...

    def render_registry(self, answer: RegistryAnswer) -> str:
        """The registry as text."""
        ...
