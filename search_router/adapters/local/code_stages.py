"""Reports of the stages of one search, added up over its projects: what ran, what went in and came out, how long it took."""

from __future__ import annotations

import time
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Final

from search_router.adapters.local.code_plan import SearchPlan, Stage
from search_router.schema import StageFacts

OFF: Final = "off in the configuration"
RAN: Final = "ran"


@dataclass(slots=True)
class Running:
    """One stage; its owner fills in the counts, and the reason why it did nothing. Times and counts of several projects add up."""

    stage: Stage
    active: bool = False
    reasons: list[str] = field(default_factory=list[str])
    in_: int = 0
    out: int = 0
    seconds: float = 0.0

    def idle(self, reason: str) -> None:
        """It had nothing to do here."""
        self.active = False
        if reason not in self.reasons:
            self.reasons.append(reason)


class StageTally:
    """All stages of one plan. A stage that is off says so."""

    def __init__(self, plan: SearchPlan) -> None:
        self._plan = plan
        self._running = {stage: Running(stage) for stage in Stage}
        self._active: set[Stage] = set()

    @contextmanager
    def run(self, stage: Stage, in_: int) -> Generator[Running]:
        """Times the stage and takes it for active, unless its owner says that it was idle."""
        running = self._running[stage]
        running.in_ += in_
        running.active = True
        started = time.perf_counter()
        try:
            yield running
        finally:
            running.seconds += time.perf_counter() - started
            if running.active:
                self._active.add(stage)

    def idle(self, stage: Stage, reason: str, count: int = 0) -> None:
        """The stage had nothing to do: why, and how many files went through it untouched."""
        running = self._running[stage]
        running.idle(reason)
        running.in_ += count
        running.out += count

    def facts(self) -> tuple[StageFacts, ...]:
        """One report a stage, in the plan's order."""
        return tuple(self._facts(each) for each in self._running.values())

    def _facts(self, each: Running) -> StageFacts:
        if not self._plan.runs(each.stage):
            return StageFacts(each.stage, False, OFF, each.in_, each.out, 0.0)
        active = each.stage in self._active
        reason = "; ".join(each.reasons) or (RAN if active else "no project was searched")
        return StageFacts(each.stage, active, reason, each.in_, each.out, round(each.seconds * 1000, 3))
