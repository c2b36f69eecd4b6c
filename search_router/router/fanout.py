"""Ask the planned experts at once, each under its own deadline. Failures become values; late answers never enter."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, replace

import anyio

from search_router.adapters.base import Comparable, Expert, TellsProgress
from search_router.errors import ExpertError
from search_router.observing import current
from search_router.redact import scrub
from search_router.schema import ExpertCall, ExpertReport, ExpertResult, ExpertStatus

Progress = Callable[[str, float, int], Awaitable[None]]
"""Called with a message, how many experts are done (with a fraction for what is under way), and how many were asked."""

TELL_SECONDS = 0.4
"""How often who waits hears what is being waited for."""
PARTIAL = "; partial: "
"""In the reason of an expert's report: behind it stands what it has only looked at in part, and why."""
UNDERWAY_SHARE = 0.9
"""Of one expert's step: the rest is its answer."""


@dataclass(frozen=True, slots=True)
class Reply:
    """What became of one call. `result` is None for a failure; `error` is for the receipt."""

    call: ExpertCall
    status: ExpertStatus
    latency_us: int
    reason: str
    result: ExpertResult | None = None
    error: str = ""

    @property
    def report(self) -> ExpertReport:
        return ExpertReport(
            id=self.call.expert,
            status=self.status,
            latency_us=self.latency_us,
            results=len(self.result.hits) if self.result else 0,
            sub_query=str(self.call.sub_query),
            reason=self.reason,
        )


async def ask_experts(
    experts: Mapping[str, Expert],
    calls: tuple[ExpertCall, ...],
    seconds_left: float,
    replies: dict[str, Reply],
    progress: Progress | None = None,
) -> None:
    """One task group, one deadline a call: min(expert cap, budget left). Every call gets its entry in `replies`, by expert.

    So it is when the request itself is cancelled: whoever has not answered by then is `cancelled`, and the receipt can say so.
    """
    started = time.perf_counter_ns()

    async def ask(call: ExpertCall) -> None:
        with current().expert(call) as watch:
            reply = replies[call.expert] = await _ask(experts[call.expert], call, min(call.budget_ms / 1000, seconds_left))
            watch.tell(reply)
        if progress is not None:
            await progress(f"{call.expert}: {reply.status.value}, {reply.report.results} results", len(replies), len(calls))

    try:
        async with anyio.create_task_group() as telling:
            if progress is not None:
                telling.start_soon(_tell_underway, experts, calls, replies, progress)
            async with anyio.create_task_group() as tasks:
                for call in calls:
                    tasks.start_soon(ask, call)
            telling.cancel_scope.cancel()
        _compare(experts, replies)
    except anyio.get_cancelled_exc_class():
        waited = (time.perf_counter_ns() - started) // 1000
        for call in calls:
            replies.setdefault(call.expert, Reply(call, ExpertStatus.CANCELLED, waited, "the request was cancelled before it answered"))
        raise


async def _tell_underway(
    experts: Mapping[str, Expert], calls: tuple[ExpertCall, ...], replies: Mapping[str, Reply], progress: Progress
) -> None:
    """While calls wait: how far the first of those is that can tell."""
    while True:
        await anyio.sleep(TELL_SECONDS)
        for call in calls:
            expert = experts[call.expert]
            told = expert.underway(call) if call.expert not in replies and isinstance(expert, TellsProgress) else None
            if told is not None:
                await progress(told.message, len(replies) + UNDERWAY_SHARE * told.share, len(calls))
                break


def _compare(experts: Mapping[str, Expert], replies: Mapping[str, Reply]) -> None:
    """Tell those who answered and want to know how many hits they and the others had."""
    found = {name: len(reply.result.hits) for name, reply in replies.items() if reply.result is not None}
    for name, own in found.items():
        if isinstance(expert := experts[name], Comparable):
            expert.compare(own, sum(found.values()) - own)


async def _ask(expert: Expert, call: ExpertCall, seconds: float) -> Reply:
    started = time.perf_counter_ns()

    def reply(status: ExpertStatus, reason: str, result: ExpertResult | None = None, error: str = "") -> Reply:
        return Reply(call, status, (time.perf_counter_ns() - started) // 1000, reason, result, error)

    result: ExpertResult | None = None
    with anyio.move_on_after(max(0.0, seconds)) as scope:
        try:
            # It plans by the time that it really has, so that it can answer from what is ready, or say what it waited for.
            result = await expert.search(replace(call, budget_ms=max(1, round(seconds * 1000))))
        except ExpertError as error:
            text = scrub(str(error))
            return reply(ExpertStatus(error.failure.value), text, error=scrub(error.detail) or text)
        except Exception as error:  # noqa: BLE001 - the one boundary: an expert's bug is the class `internal`, never a crash
            return reply(ExpertStatus.INTERNAL, f"internal error in the expert: {type(error).__name__}", error=scrub(repr(error)))
    if scope.cancelled_caught or result is None:
        return reply(ExpertStatus.TIMEOUT, f"no answer within {round(seconds * 1000)} ms; a late answer is not used")
    reason = call.reason if result.partial is None else f"{call.reason}{PARTIAL}{result.partial}"
    return reply(ExpertStatus.OK if result.hits else ExpertStatus.EMPTY, reason, result)
