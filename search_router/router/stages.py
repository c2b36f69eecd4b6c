"""Stage reports: what each step of a request did, how much went in and came out, how long it took."""

from __future__ import annotations

import time
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, field

from search_router.observing import current
from search_router.schema import StageReport


@dataclass(slots=True)
class Stage:
    """One running stage; its owner fills in the counts and, when it did nothing, the reason."""

    name: str
    in_: int = 0
    out: int = 0
    active: bool = True
    reason: str = ""


@dataclass(slots=True)
class StageLog:
    """The stages of one request, in order."""

    reports: list[StageReport] = field(default_factory=list[StageReport])

    @contextmanager
    def run(self, name: str, in_: int = 0) -> Generator[Stage]:
        stage = Stage(name, in_)
        started = time.perf_counter()
        with current().stage(name) as watch:
            try:
                yield stage
            except BaseException as error:
                stage.reason = stage.reason or f"ended by {type(error).__name__}"
                raise
            finally:
                report = StageReport(
                    stage=name,
                    active=stage.active,
                    reason=stage.reason or "ran",
                    in_=stage.in_,
                    out=stage.out,
                    ms=round((time.perf_counter() - started) * 1000, 3),
                )
                self.reports.append(report)
                watch.tell(report)

    def skip(self, name: str, reason: str, count: int = 0) -> None:
        self.reports.append(StageReport(stage=name, active=False, reason=reason, in_=count, out=count, ms=0))
