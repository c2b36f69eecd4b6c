"""The contract of an expert: declare a card, answer calls, tell health, close.

An expert returns ranked hits or raises `ExpertError` with its failure class. It never retries in another form, never returns an
empty list for a failure, and stops at once when its task is cancelled: no process, thread or file handle stays behind.
"""

from __future__ import annotations

from typing import NamedTuple, Protocol, runtime_checkable

from search_router.config.experts import AnyExpertConfig
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


@runtime_checkable
class Indexed(Protocol):
    """An expert that knows whether its index has every file."""

    def is_complete(self, projects: tuple[Project, ...]) -> bool:
        """Whether every indexable file of these projects, as they were last listed, is in the index. At once: no waiting, no disk."""
        ...


@runtime_checkable
class KnowsItsWorld(Protocol):
    """An expert whose answers depend on nothing but the listed files of the projects, the configuration, and what it names here.

    Only answers of such experts may be given again without asking.
    """

    async def world(self, projects: tuple[Project, ...]) -> str | None:
        """What else its answers depend on, as a text that changes with it, such as HEAD; None: nobody can tell. Takes well under 1 ms."""
        ...


@runtime_checkable
class CatchesUp(Protocol):
    """An expert with an index of its own, that can be made whole before a question comes."""

    async def catch_up(self, projects: tuple[Project, ...]) -> None:
        """Bring the index of these projects up to date, however long it takes; what fails is met by the next question."""
        ...


class Underway(NamedTuple):
    """What a call that waits is waiting for: a sentence, and the share of it that is done, 0 to 1."""

    message: str
    share: float


@runtime_checkable
class TellsProgress(Protocol):
    """An expert that may have much to do before its first answer, and can say how far it is."""

    def underway(self, call: ExpertCall) -> Underway | None:
        """How far the work for this call is; None when there is nothing to say. Cheap: it is asked again and again."""
        ...


@runtime_checkable
class Comparable(Protocol):
    """An expert that wants to hear how the others fared: one that keeps finding nothing while they find may be broken."""

    def compare(self, found: int, others: int) -> None:
        """One request: how many hits this expert had, and how many all others together."""
        ...


@runtime_checkable
class KeepsEntries(Protocol):
    """An expert whose evidence is entries of libraries, with the full text of each."""

    async def entry_text(self, project: Project, label: str, version: str, name: str) -> str:
        """The text of one entry of a library. Raises EvidenceError when that version or entry is not there any more."""
        ...


def declare_embedded(
    expert_id: str, config: AnyExpertConfig, *, freshness: str, languages: frozenset[str] | None = None, serves_history: bool = False
) -> ExpertCard:
    """The card of an embedded expert: what its configuration says, and what only its code knows."""
    return ExpertCard(
        id=expert_id,
        kind=config.kind,
        precision_class=config.precision_class,
        engine=config.engine,
        intents=frozenset(config.intents),
        languages=languages or frozenset(config.languages) or None,
        transport="embedded",
        cap_ms=config.cap_ms,
        freshness=freshness,
        serves_history=serves_history,
    )
