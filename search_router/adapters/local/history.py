"""The `history` expert: which commit introduced, changed or removed something, who made it, and when.

Messages and paths are searched in every call; for questions about history also changes (pickaxe) and the history of a named file.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import anyio

from search_router.adapters.language_model import make_language_model
from search_router.adapters.local import gitfiles
from search_router.adapters.local.cards import embedded_card
from search_router.adapters.local.commit_reader import read_head
from search_router.adapters.local.disk_space import DEFAULT_RESERVE, Reserve
from search_router.adapters.local.git import run_git
from search_router.adapters.local.named_projects import project_factors
from search_router.adapters.local.project_history import Answer, ProjectHistory, Teller
from search_router.config.experts import HistoryConfig
from search_router.config.schema import LanguageModelConfig
from search_router.errors import ExpertError, FailureClass
from search_router.schema import ExpertCall, ExpertCard, ExpertResult, ExpertStatus, Health, Hit, Project

BUDGET_SHARE = 0.9
"""Of the call's time; the rest is for the way back."""
PROJECTS_AT_ONCE = 2


class HistoryExpert:
    """Implements the Expert protocol over git. Needs asyncio: reading goes on in tasks of its own, which `aclose` ends."""

    def __init__(
        self,
        id: str,  # noqa: A002 - the card calls it id
        config: HistoryConfig,
        cache_dir: Path,
        reserve: Reserve = DEFAULT_RESERVE,
        llm: LanguageModelConfig | None = None,
    ) -> None:
        self._config = config
        self._cache_dir = cache_dir
        self._reserve = reserve
        model = make_language_model(llm) if llm is not None and llm.commit_summaries else None
        self._teller = Teller(model, llm) if llm is not None and model is not None else None
        self._histories: dict[Path, ProjectHistory] = {}
        self._card = embedded_card(id, config)

    @property
    def card(self) -> ExpertCard:
        return self._card

    async def search(self, call: ExpertCall) -> ExpertResult:
        """Commits for the question, best first; a project without git is left out with a note.

        Raises:
            ExpertError: `unavailable` when no project has a git history; `rejected` for a bad pattern; git's own failures when
                no other project could answer.
        """
        until = anyio.current_time() + call.budget_ms / 1000 * BUDGET_SHARE
        outcomes: list[Answer | ExpertError] = [Answer() for _ in call.projects]
        limiter = anyio.CapacityLimiter(PROJECTS_AT_ONCE)

        async def ask(index: int, project: Project) -> None:
            async with limiter:
                try:
                    outcomes[index] = await self._history(project).answer(project, call, until)
                except ExpertError as error:
                    outcomes[index] = error

        async with anyio.create_task_group() as tasks:
            for index, project in enumerate(call.projects):
                tasks.start_soon(ask, index, project)
        return _merge(call, outcomes)

    def _history(self, project: Project) -> ProjectHistory:
        if project.root not in self._histories:
            self._histories[project.root] = ProjectHistory(
                project.root, self._config, self._cache_dir, self._reserve, self._teller if not project.withheld else None
            )
        return self._histories[project.root]

    async def health(self, projects: tuple[Project, ...]) -> Health:
        """Whether git is there and at least one of the projects has a history."""
        try:
            version = (await run_git(Path("/"), "--version")).stdout.decode("utf-8", "replace").removeprefix("git version ").strip()
        except ExpertError as error:
            return Health(False, str(error), ExpertStatus(error.failure.value))
        without: list[str] = []
        for project in projects:
            try:
                await read_head(project.root)
            except ExpertError as error:
                without.append(f"{project.id}: {error.message}")
        if projects and len(without) == len(projects):
            return Health(False, f"No project has a git history. {without[0]}", ExpertStatus.UNAVAILABLE, version)
        return Health(True, f"git {version}", version=version, details={"without history": " ".join(without)} if without else {})

    async def world(self, projects: tuple[Project, ...]) -> str | None:
        """See `KnowsItsWorld`: what HEAD reaches, and where a shallow clone ends."""
        return await anyio.to_thread.run_sync(_world_of, projects)

    async def aclose(self) -> None:
        """End all reading; safe to call twice."""
        histories, self._histories = self._histories, {}
        for history in histories.values():
            await history.aclose()
        if self._teller is not None:
            await self._teller.model.aclose()


def _world_of(projects: Sequence[Project]) -> str | None:
    """HEAD and the edge of the clone of each project, from files alone; None where they do not tell. Blocks."""
    told: list[str] = []
    for project in projects:
        git_dir = gitfiles.find_git_dir(project.root)
        if git_dir is None:
            told.append("no git")
            continue
        head = gitfiles.read_head(project.root)
        if head is None:
            return None
        edges = [gitfiles.common_dir(git_dir) / name for name in ("shallow", "info/grafts")]
        told.append(f"{head.commit} {[edge.stat().st_mtime_ns if edge.exists() else 0 for edge in edges]}")
    return "\n".join(told)


def _merge(call: ExpertCall, outcomes: Sequence[Answer | ExpertError]) -> ExpertResult:
    errors = [outcome for outcome in outcomes if isinstance(outcome, ExpertError)]
    rejected = [error for error in errors if error.failure is FailureClass.REJECTED]
    if rejected:
        raise rejected[0]
    if len(errors) == len(outcomes):
        raise next((error for error in errors if not _has_no_git(error)), _no_history(errors))
    several = len(outcomes) > 1
    shares = _shares(call, outcomes)
    hits: list[tuple[float, int, int, Hit]] = []
    partial: list[str] = []
    notes: list[str] = []
    heads: list[str] = []
    settled = True
    for index, (project, outcome) in enumerate(zip(call.projects, outcomes, strict=True)):
        name = f"{project.id}: " if several else ""
        if isinstance(outcome, ExpertError):
            (notes if _has_no_git(outcome) else partial).append(name + outcome.message)
            continue
        hits += [(-(hit.native_score or 0.0) * shares[index], -time, index, hit) for time, hit in outcome.hits]
        partial += [name + sentence for sentence in outcome.partial]
        notes += [name + sentence for sentence in outcome.notes]
        heads += [outcome.head] if outcome.head else []
        settled = settled and outcome.settled
    hits.sort(key=lambda item: item[:3])  # stable: equal ones of one project keep its order
    return ExpertResult(
        hits=tuple(hit for *_, hit in hits[: call.limit]),
        partial="; ".join(partial) or None,
        notes=tuple(notes),
        index_commit=heads[0] if len(outcomes) == 1 and heads else None,
        settled=settled,
    )


def _shares(call: ExpertCall, outcomes: Sequence[Answer | ExpertError]) -> list[float]:
    """What a project's ranks are worth beside the other projects': its best words' share of the best ones' of all, unless it has the asked
    change itself; and less where the question names another project. The only commit of a project is no answer by being its best."""
    factors = project_factors(call.sub_query.text, call.projects)
    worths = [outcome.worth if isinstance(outcome, Answer) else 0.0 for outcome in outcomes]
    top = max(worths, default=0.0)
    told = [1.0 if top <= 0 or (isinstance(o, Answer) and o.changed) else worth / top for o, worth in zip(outcomes, worths, strict=True)]
    return [share * factor for share, factor in zip(told, factors, strict=True)]


def _has_no_git(error: ExpertError) -> bool:
    return error.failure is FailureClass.UNAVAILABLE and "not a git repository" in error.detail


def _no_history(errors: Sequence[ExpertError]) -> ExpertError:
    return ExpertError(
        FailureClass.UNAVAILABLE,
        "no git history in scope",
        remedy=" ".join(error.message for error in errors[:3]) or "Ask about a project that is a git repository.",
    )
