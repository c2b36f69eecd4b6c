"""Bringing the shared index up to date for one call: what is ready, what failed, what came too late; said the same way by every expert."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from typing import Final

import anyio

from search_router.adapters.base import Underway
from search_router.adapters.local.code_words import question_words
from search_router.adapters.local.languages import languages_named, text_language
from search_router.adapters.local.symbol_index import SymbolIndex
from search_router.adapters.local.symbol_state import RefreshReport
from search_router.errors import MAKE_READABLE, ExpertError, FailureClass
from search_router.schema import ExpertCall, ExpertResult, Project

UNREAD: Final = frozenset({"unreadable", "listing-cut"})
"""Reasons that say that a file was wanted and not read."""

SOON_SHARE: Final = 0.35
"""With the default budget an answer from a part of the index comes after 0.7 s."""
USEFUL_FILES: Final = 100
"""Fewer are waited for longer: they would be ranked as if they were everything."""
FEW_FILES: Final = 200
"""So many that are not indexed yet are waited for: edits, not a new tree."""

_LOOK_SECONDS: Final = 0.05
_NAMED_FILES: Final = 3


class StillIndexing(ExpertError):
    """Nothing was found in the part of the index that is ready, which proves nothing."""


@dataclass(frozen=True, slots=True)
class Readiness:
    """Reports and failures by project id; a project that is in neither was not ready in time."""

    index: SymbolIndex
    call: ExpertCall
    reports: dict[str, RefreshReport]
    failures: dict[str, ExpertError]

    @property
    def late(self) -> list[Project]:
        """Projects that are not wholly indexed as they are now."""
        return [p for p in self.call.projects if p.id not in self.reports and p.id not in self.failures]

    def raise_failure(self) -> None:
        """Raise ExpertError when there is nothing at all to answer from."""
        call, reports, failures, late = self.call, self.reports, self.failures, self.late
        if call.projects and len(failures) == len(call.projects):
            raise next(iter(failures.values()))
        if any(len(self.index.table(p)) for p in call.projects) or not (late or any(r.missing for r in reports.values())):
            return
        if late:
            raise ExpertError(
                FailureClass.TIMEOUT,
                f"No file was indexed in {call.budget_ms} ms; indexing goes on.",
                remedy="Ask again.",
                detail=", ".join(p.id for p in late),
            )
        first = next(report.missing[0] for report in reports.values() if report.missing)
        raise ExpertError(
            FailureClass.CRASHED, f"Extraction failed for every file; {first.path}: {first.reason}.", remedy="Run `search-router doctor`."
        )

    def raise_doubt(self, reads: frozenset[str]) -> None:
        """Nothing was found: raise ExpertError where that proves nothing.

        It is StillIndexing (`timeout`) while files are not indexed, and `suspect-empty` where files of the scope could not be read.

        `reads` are the languages that matter to the expert; a path whose name tells none may be a folder of any.
        """
        if self.late:
            done, total = standing(self.index, self.call.projects)
            raise StillIndexing(FailureClass.TIMEOUT, f"Found nothing in {done} of {total} files; indexing goes on.", remedy="Ask again.")
        asked = languages_named(self.call.language) or reads
        unread = [
            left
            for report in self.reports.values()
            for left in report.left_out
            if left.reason in UNREAD and _may_hold(left.path, self.call.path) and text_language(left.path) in {*asked, "text"}
        ]
        if unread:
            raise ExpertError(
                FailureClass.SUSPECT_EMPTY,
                f"Found nothing, but {len(unread)} path(s) could not be read (the first: {unread[0].path or 'the list was cut'}), so "
                "absence is not proven.",
                remedy=MAKE_READABLE,
            )

    def partial(self) -> str | None:
        """What was not looked at, as a sentence for `ExpertResult.partial`."""
        call, reports, failures, late = self.call, self.reports, self.failures, self.late
        said: list[str] = []
        if late:
            progress = [self.index.progress(p) for p in call.projects if p.id not in failures]
            ready, total = sum(each.ready for each in progress), sum(each.total or 0 for each in progress)
            if ready < total and all(each.total is not None for each in progress):
                said.append(f"indexed {ready} of {total} files; ask again for the rest")
            else:
                said.append(f"{', '.join(p.id for p in late)} not compared with the work tree in time; ask again for the newest edits")
        missing = [left for report in reports.values() for left in report.missing]
        if missing:
            said.append(f"{len(missing)} files could not be indexed ({missing[0].path}: {missing[0].reason}); they are tried again")
        if failures:
            said.append(f"not searched: {', '.join(sorted(failures))}")
        return "; ".join(said) or None

    def left_out(self) -> list[str]:
        """For each project one sentence on the files that are not indexed, by reason.

        A symbolic link is no loss: its target is indexed under its own name, or is none of the project's.
        """
        said: list[str] = []
        for project, report in self.reports.items():
            if left := [each for each in report.left_out if each.reason != "symlink"]:
                reasons = Counter(each.reason for each in left)
                counted = ", ".join(f"{count} {reason}" for reason, count in sorted(reasons.items()))
                named = ", ".join(each.path for each in left[:_NAMED_FILES] if each.path)
                files = "1 file is" if len(left) == 1 else f"{len(left)} files are"
                said.append(f"{project}: {files} not indexed ({counted}): {named}{' …' if len(left) > _NAMED_FILES else ''}")
        return sorted(said)


def _may_hold(path: str, scope: str | None) -> bool:
    """Whether a file or directory could have something of the scope in it; the empty path stands for the whole project."""
    asked = (scope or "").strip("/")
    return not path or not asked or f"{path}/".startswith(f"{asked}/") or f"{asked}/".startswith(f"{path}/")


async def answer_soon(search: Callable[[ExpertCall, bool], Awaitable[ExpertResult]], call: ExpertCall) -> ExpertResult:
    """`search` from what is ready soon; where that has nothing, once more with the rest of the call's time, and without haste."""
    began = time.monotonic()
    try:
        return await search(call, True)
    except StillIndexing:
        left = call.budget_ms - round((time.monotonic() - began) * 1000)
        return await search(replace(call, budget_ms=max(left, 1)), False)


async def bring_up_to_date(index: SymbolIndex, call: ExpertCall, seconds: float, *, soon: bool = True) -> Readiness:
    """Refresh the call's projects together for at most `seconds`; what is not ready then goes on in the index's own tasks.

    With `soon`, where much is to be indexed and the pace so far says that `seconds` will not do, it is left after SOON_SHARE of them: a
    part of the index soon is worth more to who waits than a somewhat larger part late.
    """
    nested = tuple(project.root for project in call.projects)
    ready = Readiness(index, call, {p.id: report for p in call.projects if (report := index.report_if_quiet(p, nested)) is not None}, {})
    stirred = [project for project in call.projects if project.id not in ready.reports]
    if not stirred:
        return ready

    async def refresh(project: Project) -> None:
        try:
            ready.reports[project.id] = await index.refresh(project, nested=nested, words=words)
        except ExpertError as error:
            ready.failures[project.id] = error

    async def leave_when_hopeless() -> None:
        began, first = time.monotonic(), None
        while True:
            await anyio.sleep(_LOOK_SECONDS)
            done, total = standing(index, call.projects)
            useful = sum(len(index.table(project)) for project in call.projects) >= USEFUL_FILES
            first = done if first is None else first
            passed = time.monotonic() - began
            left = total - done
            if passed >= SOON_SHARE * seconds and useful and left > FEW_FILES and left * passed > (done - first) * (seconds - passed):
                waiting.cancel()

    words = question_words(call.sub_query.text)
    with anyio.move_on_after(seconds) as waiting:
        async with anyio.create_task_group() as watching:
            if soon:
                watching.start_soon(leave_when_hopeless)
            async with anyio.create_task_group() as tasks:
                for project in stirred:
                    tasks.start_soon(refresh, project)
            watching.cancel_scope.cancel()
    return ready


def underway(index: SymbolIndex, call: ExpertCall) -> Underway | None:
    """How far the index of a call that waits is; None where nothing is being indexed."""
    done, total = standing(index, call.projects)
    return Underway(f"{call.expert}: indexed {done} of {total} files", done / total) if done < total else None


def standing(index: SymbolIndex, projects: Sequence[Project]) -> tuple[int, int]:
    """(files indexed, files in all) of these projects together, as far as they are listed."""
    each = [index.progress(project) for project in projects]
    return sum(p.ready for p in each), sum(p.total or p.ready for p in each)
