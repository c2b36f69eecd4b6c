"""The observer that tells what is switched on."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from search_router.observing import Incoming, Operation, RemoteCall
from search_router.schema import ExpertCall
from search_router.telemetry.calls import ExpertWatch, IncomingWatch, RemoteWatch, StageWatch
from search_router.telemetry.requests import RequestWatch
from search_router.telemetry.watch import Parts


@dataclass(frozen=True, slots=True)
class Telemetry(Parts):
    """An `observing.Observer`."""

    @property
    def scrape(self) -> Callable[[], bytes] | None:
        return self.metrics.scrape if self.metrics is not None else None

    def incoming(self, message: Incoming) -> IncomingWatch:
        return IncomingWatch(self, message)

    def request(self, operation: Operation, raw: object = None) -> RequestWatch:
        return RequestWatch(self, self, operation, raw)

    def stage(self, name: str) -> StageWatch:
        return StageWatch(self, name)

    def expert(self, call: ExpertCall) -> ExpertWatch:
        return ExpertWatch(self, call)

    def remote(self, call: RemoteCall) -> RemoteWatch:
        return RemoteWatch(self, call)
