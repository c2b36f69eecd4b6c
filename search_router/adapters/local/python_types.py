"""The python-types expert: which textual uses of a Python name really are the definition asked about, resolved by jedi on demand.

Candidates come from the shared symbol index; jedi confirms or does not. What it does not confirm is left out, so absence here proves
nothing: jedi cannot follow everything that Python allows.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Final

import anyio
import anyio.to_thread

from search_router.adapters.local.asked_names import asked_names, asks_for_calls, fits
from search_router.adapters.local.cards import embedded_card
from search_router.adapters.local.grep_scope import read_scope_path
from search_router.adapters.local.index_readiness import bring_up_to_date
from search_router.adapters.local.languages import languages_named
from search_router.adapters.local.python_types_child import FileAnswer, FileJob, JediChild
from search_router.adapters.local.symbol_index import SymbolIndex
from search_router.adapters.local.symbol_lookup import WantedName
from search_router.adapters.local.symbol_space import KIND_ORDER, SearchSpace, definition_hit
from search_router.adapters.local.symbol_table import FoundDefinition, FoundUses, SymbolTable
from search_router.adapters.local.typed_uses import ResolvedUse, arrange, rank_uses
from search_router.adapters.local.wheels import installed_version
from search_router.config.experts import PythonTypesConfig
from search_router.errors import ExpertError, FailureClass
from search_router.schema import ExpertCall, ExpertCard, ExpertResult, ExpertStatus, Health, Hit, Intent, Project

REFRESH_SHARE: Final = 0.5
WORK_SHARE: Final = 0.9
"""The part of a call's time after which no further file is begun."""
SIDE_SHARE: Final = 0.2
"""The same where the question is not about uses: to confirm a definition is a help, and nobody waits long for it."""
ENOUGH_TO_CONFIRM: Final = 24
"""So many places are looked at where the question is not about uses: one confirmed use confirms the definition."""
MAX_DEATHS: Final = 3
MAX_TARGETS: Final = 200
MAX_BESIDE: Final = 16
_PYTHON: Final = "python"
_REMEDY: Final = "pip install 'search-router[typed]'"


@dataclass(slots=True)
class _Work:
    """One name in one project: its definitions, and what was confirmed so far."""

    project: Project
    name: str
    exact: bool
    targets: list[FoundDefinition]
    files: list[FoundUses]
    confirmed: set[int] = field(default_factory=set[int])


@dataclass(slots=True)
class _Progress:
    """What was done of a question."""

    uses: list[ResolvedUse] = field(default_factory=list[ResolvedUse])
    looked_at: int = 0
    total: int = 0
    failed: int = 0
    deaths: list[ExpertError] = field(default_factory=list[ExpertError])
    why_stopped: str = ""


class PythonTypesExpert:
    """Confirmed uses of Python names. No child process starts before a question names something that the project defines.

    Args:
        index: the shared symbol index, where candidates come from.
        find_jedi: tells jedi's version, None where it is not installed.
    """

    def __init__(
        self,
        id: str,  # noqa: A002 - the word of the card
        config: PythonTypesConfig,
        cache_dir: Path,
        index: SymbolIndex,
        find_jedi: Callable[[], str | None] | None = None,
    ) -> None:
        self._config = config
        self._find_jedi = find_jedi or partial(installed_version, "jedi")
        self._index = index
        self._child = JediChild(cache_dir / "jedi", max_mb=config.max_worker_mb, idle_seconds=config.idle_seconds)
        self._card = embedded_card(id, config)

    @property
    def card(self) -> ExpertCard:
        return self._card

    @property
    def children_started(self) -> int:
        """How many worker processes there have been."""
        return self._child.started

    async def search(self, call: ExpertCall) -> ExpertResult:
        """Confirmed uses of the names in the question, one a caller, and the definitions that at least one of them led to.

        Raises:
            ExpertError: `unconfigured` without jedi; `crashed` when the worker died again and again before anything was confirmed;
                `spawn-failed`; `rejected` for a path that leaves the project; `timeout` when nothing was indexed or resolved in time.
        """
        path = read_scope_path(call.path)
        uses_first = call.intent is Intent.CROSS_REPO_IMPACT
        until = time.monotonic() + (WORK_SHARE if uses_first else SIDE_SHARE) * call.budget_ms / 1000
        version = self._find_jedi()
        if version is None:
            raise ExpertError(FailureClass.UNCONFIGURED, "jedi is not installed.", remedy=_REMEDY)
        wanted = asked_names(call)
        if not wanted:
            return ExpertResult(hits=(), notes=("nothing in the question looks like an identifier",))
        refresh = min(REFRESH_SHARE * call.budget_ms / 1000, max(0.05, until - time.monotonic()))
        ready = await bring_up_to_date(self._index, call, refresh)
        ready.raise_failure()
        space = SearchSpace((), path, languages_named(_PYTHON))
        works = [
            work for project in call.projects for each in wanted for work in find_work(project, self._index.table(project), each, space)
        ]
        progress = _Progress(total=sum(len(found.uses) for work in works for found in work.files))
        most = self._config.max_places if uses_first else min(ENOUGH_TO_CONFIRM, self._config.max_places)
        beside = tuple(os.fspath(p.root) for p in call.projects[:MAX_BESIDE])
        for work in works:
            jobs = await anyio.to_thread.run_sync(_jobs_of, work, beside)
            await self._confirm(work, jobs, progress, most, until)
        if progress.looked_at < progress.total:
            progress.why_stopped = progress.why_stopped or _why_stop(progress, most, until)
        if not progress.uses:
            _raise_failure(progress)
        uses = rank_uses(progress.uses, call.limit, calls_only=asks_for_calls(call))
        hits = arrange(_definition_hits(works, space), uses, call.limit, uses_first=uses_first)
        if not hits:
            ready.raise_doubt(frozenset({_PYTHON}))
        said = [*([text] if (text := ready.partial()) else []), *_partial(progress, uses_first)]
        return ExpertResult(hits=hits, partial="; ".join(said) or None, server_name="jedi", server_version=version)

    async def health(self, projects: tuple[Project, ...]) -> Health:
        """Whether jedi is installed and, as far as the index knows, there is any Python. Imports nothing, starts nothing."""
        version = self._find_jedi()
        optional = {"optional": "yes"}
        if version is None:
            return Health(False, f"jedi is not installed: {_REMEDY}", ExpertStatus.UNCONFIGURED, details=optional)
        known = [self._index.progress(p) for p in projects]
        files = (f for p in projects for f in self._index.table(p).files())
        if projects and all(each.ready == each.total for each in known) and not any(f.language == _PYTHON for f in files):
            return Health(False, "No project has Python files.", ExpertStatus.UNAVAILABLE, version=version, details=optional)
        return Health(True, "resolves on demand", version=version)

    async def aclose(self) -> None:
        """End the worker."""
        await self._child.aclose()
        await self._index.aclose()

    async def _confirm(self, work: _Work, jobs: list[FileJob], progress: _Progress, most: int, until: float) -> None:
        """Ask about one file after another until there is none left, or the time, the places or the patience are over."""
        for found, job in zip(work.files, jobs, strict=True):
            progress.why_stopped = _why_stop(progress, most, until)
            if progress.why_stopped:
                return
            asked = job._replace(lines=job.lines[: most - progress.looked_at])
            answer = None
            try:
                with anyio.move_on_after(until - time.monotonic()):
                    answer = await self._child.resolve(asked)
            except ExpertError as error:
                progress.deaths.append(error)
            if answer is None:
                continue
            progress.looked_at += len(asked.lines)
            progress.failed += answer.failed
            _take_in(work, found, answer, progress)


def find_work(project: Project, table: SymbolTable, wanted: WantedName, space: SearchSpace) -> list[_Work]:
    """The Python definitions that a name may mean, with the files that use it, those of the product before tests and foreign code.

    The name itself where it is defined, else the names that differ in case or underscores only.
    """
    for spelled in ([wanted.name], table.names_like(wanted.name)):
        works: list[_Work] = []
        for name in spelled:
            defined = [d for d in table.definitions_named(name) if d.file.language == _PYTHON]
            targets = [
                d
                for d in defined
                if fits(wanted, tuple(d.definition.container.split(".")) if d.definition.container else (), d.facts.parts)
            ]
            if targets:
                used = space.uses(table.uses_of(name))
                used.sort(key=lambda u: (u.facts.foreign, u.facts.test, u.file.path))
                works.append(_Work(project, name, name == wanted.name, targets[:MAX_TARGETS], used))
        if works:
            return works
    return []


def _jobs_of(work: _Work, beside: tuple[str, ...]) -> list[FileJob]:
    """One job a file, with real paths, because jedi's are. Blocks."""
    root = os.path.realpath(work.project.root)
    targets = tuple((os.path.join(root, t.file.path), t.definition.start_line, t.definition.end_line) for t in work.targets)  # noqa: PTH118 - hundreds a request: building a Path costs more than the call
    others = tuple(path for path in map(os.path.realpath, beside) if path != root)
    return [FileJob(root, others, f.file.path, work.name, tuple(line for line, _ in f.uses), targets) for f in work.files]


def _why_stop(progress: _Progress, most: int, until: float) -> str:
    if progress.looked_at >= most:
        return f"the limit of {most}"
    if time.monotonic() >= until:
        return "the time"
    return "the worker died too often" if len(progress.deaths) >= MAX_DEATHS else ""


def _raise_failure(progress: _Progress) -> None:
    """Raise when nothing was confirmed because nobody looked."""
    if progress.deaths:
        raise progress.deaths[0]
    if progress.total and not progress.looked_at:
        raise ExpertError(
            FailureClass.TIMEOUT,
            f"None of {progress.total} places was resolved in time.",
            remedy="Ask again: the worker goes on and warms up.",
        )


def _take_in(work: _Work, found: FoundUses, answer: FileAnswer, progress: _Progress) -> None:
    kinds = dict(found.uses)
    for line, target in answer.places:
        work.confirmed.add(target)
        progress.uses.append(
            ResolvedUse(work.project.id, found.file, line, kinds.get(line, "use"), "jedi", answer.content_hash, is_exact=work.exact)
        )


def _definition_hits(works: Sequence[_Work], space: SearchSpace) -> list[Hit]:
    found = [(work, work.targets[number]) for work in works for number in sorted(work.confirmed)]
    found = [(work, d) for work, d in found if space.admits(d.file)]
    found.sort(key=lambda f: (not f[0].exact, f[1].facts.test, f[1].facts.foreign, KIND_ORDER.get(f[1].definition.kind, 9), f[1].file.path))
    return [definition_hit(work.project.id, d, exact=work.exact, score=1.0) for work, d in found]


def _partial(progress: _Progress, uses_first: bool) -> list[str]:
    said: list[str] = []
    if progress.why_stopped and (uses_first or not progress.uses):
        said.append(f"jedi looked at {progress.looked_at} of {progress.total} places ({progress.why_stopped})")
    if progress.failed:
        said.append(f"jedi could not follow {progress.failed} places")
    if progress.deaths:
        said.append(str(progress.deaths[0]))
    return said
