"""One request on its way: what it finds when it comes in, and what is known of it so far."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from search_router.adapters.base import Expert
from search_router.adapters.local.sources import SourceReader
from search_router.config.schema import Config
from search_router.router.admission import Admission
from search_router.router.advisers import Advisers
from search_router.router.enrich.bandit import Draw
from search_router.router.enrich.enrichment import Enrichment
from search_router.router.enrich.looking import Look
from search_router.router.fanout import Reply
from search_router.router.health import HealthWatch
from search_router.router.identity import FileKey
from search_router.router.plan import Plan
from search_router.router.stages import StageLog
from search_router.router.workspace import Workspace
from search_router.schema import (
    Answer,
    BudgetReport,
    Classification,
    ConfigRef,
    ExpertCard,
    ExpertStatus,
    FileFacts,
    SearchRequest,
    StageReport,
    Status,
)


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What a request finds when it comes in: nothing here changes while it runs."""

    config: Config
    config_ref: ConfigRef
    workspace: Workspace
    experts: Mapping[str, Expert]
    cards: Mapping[str, ExpertCard]
    health: HealthWatch
    libraries: frozenset[str]
    sources: SourceReader
    enrichment: Enrichment
    admission: Admission
    advisers: Advisers = field(default_factory=Advisers)


@dataclass(slots=True)
class Trace:
    """What is known of a request so far; the answer and the receipt are made from it, also when a step stops the request."""

    surroundings: Surroundings
    started: float = field(default_factory=time.perf_counter)
    stages: StageLog = field(default_factory=StageLog)
    request: SearchRequest | None = None
    classes: tuple[str, ...] = ()
    classification: Classification | None = None
    plan: Plan | None = None
    replies: tuple[Reply, ...] = ()
    notes: list[str] = field(default_factory=list[str])
    dropped: str = ""
    """Hits that were left out, by reason."""
    undefined: int = 0
    """Files that were not parsed in time."""
    facts: Mapping[FileKey, FileFacts] = field(default_factory=dict[FileKey, FileFacts])
    look: Look | None = None
    session: str | None = None
    """Whose outcomes may weigh the experts; None: nobody's."""
    draw: Draw | None = None
    """Weights in place of the configured priors: drawn here, or given by a receipt that is replayed."""
    underway: int = 1
    """Requests of this process that were not answered when this one began, with itself."""
    waited: float = 0.0
    """Seconds in line before the experts were asked; its own time had not begun."""
    hints: tuple[str, ...] = ()
    """What was left unasked because of a hint, and what became of it; for the receipt."""

    @property
    def elapsed(self) -> float:
        """Seconds of its own time."""
        return time.perf_counter() - self.started - self.waited

    def begin_after(self, waited: float) -> None:
        """Its turn has come, after so many seconds in line."""
        self.waited = waited
        if waited:
            ms = round(waited * 1000, 3)
            self.stages.reports.append(StageReport(stage="admission", active=True, reason="waited in line", in_=1, out=1, ms=ms))

    @property
    def whole(self) -> bool:
        """Whether everything that the experts found went into the answer."""
        return not self.dropped and not self.undefined

    def answer(self, status: Status, **fields: Any) -> Answer:
        """The answer as far as the request came."""
        config = self.surroundings.config
        asked = [reply for reply in self.replies if reply.status is not ExpertStatus.SKIPPED]
        names = {reply.call.expert for reply in asked}
        skipped = [report for report in (self.plan.skipped if self.plan else ()) if report.id not in names]
        return Answer(
            status=status,
            question_classes=self.classes,
            classification=self.classification,
            experts=(*(r.report for r in asked), *skipped),
            stages=tuple(self.stages.reports),
            budget=BudgetReport(
                latency_ms=self.plan.latency_ms if self.plan else config.budget.latency_ms,
                used_ms=round((time.perf_counter() - self.started) * 1000, 3),
                max_experts=self.plan.max_experts if self.plan else config.budget.max_experts,
                asked=len(asked),
            ),
            notes=tuple(self.notes),
            config=self.surroundings.config_ref,
            **fields,
        )
