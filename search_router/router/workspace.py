"""The set of visible projects, computed once: which directories are searched, what git says of them, and what they are called."""

from __future__ import annotations

import difflib
import os
import re
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType

import anyio
import anyio.to_thread

from search_router.adapters.local.gitfiles import head_now
from search_router.adapters.local.languages import LANGUAGES, language_of
from search_router.adapters.local.survey import Survey, survey_directory
from search_router.adapters.local.withheld import withholds
from search_router.config.schema import WorkspaceConfig
from search_router.errors import ExpertError, FieldProblem, RequestRejected, WorkspaceError
from search_router.schema import Project, Scope

__all__ = ["Workspace", "discover_workspace", "head_now"]

SURVEY_SECONDS = 10.0
"""How long git may take over one directory at start."""
SURVEYS_AT_ONCE = 4
NEAREST = 8
MAX_ID = 100

_VALID_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._@~/-]{0,255}")


@dataclass(frozen=True, slots=True)
class Workspace:
    """All projects, sorted by path; groups by name; `notes` are sentences about what was found, for people."""

    projects: tuple[Project, ...]
    groups: Mapping[str, tuple[str, ...]]
    notes: tuple[str, ...] = ()

    def visible(self, scope: Scope, languages: Collection[str] = ()) -> tuple[Project, ...]:
        """The projects that a scope leaves; empty when its project is not in its group. A path or language prunes files, not projects.

        `languages` are names that experts know beyond those that we know files of.

        Raises:
            RequestRejected: `unknown-project`, `unknown-group` or `unknown-language`, with the names that exist.
        """
        ids = [project.id for project in self.projects]
        problems: list[FieldProblem] = []
        if scope.project is not None and scope.project not in ids:
            message = f"no project is called {scope.project!r}; {_nearest('projects', scope.project, ids)}"
            problems.append(FieldProblem("scope.project", "unknown-project", message))
        if scope.group is not None and scope.group not in self.groups:
            message = f"no group is called {scope.group!r}; {_nearest('groups', scope.group, self.groups)}"
            problems.append(FieldProblem("scope.group", "unknown-group", message))
        if scope.language is not None and scope.language not in LANGUAGES and scope.language not in languages:
            problems.append(FieldProblem("scope.language", "unknown-language", _no_language(scope.language, {*LANGUAGES, *languages})))
        if problems:
            raise RequestRejected(tuple(problems), remedy="Use one of these names, or leave the field out to search the whole workspace.")
        return tuple(
            project
            for project in self.projects
            if scope.project in (None, project.id) and (scope.group is None or scope.group in project.groups)
        )

    def below(self, project: Project) -> tuple[Path, ...]:
        """Roots of other projects inside this one, whose files `read_manifest(project, nested=…)` leaves to them."""
        return tuple(p.root for p in self.projects if p.root != project.root and p.root.is_relative_to(project.root))


async def discover_workspace(config: WorkspaceConfig, roots: Sequence[Path] = ()) -> Workspace:
    """Find the projects under `roots`, else under the configured roots, else under the working directory.

    A root is searched as it is given, also inside a larger work tree. Submodules, linked worktrees, and repositories below a plain
    directory become projects of their own. Roots that are the same directory are one.

    Raises:
        WorkspaceError: a root cannot be read or has nothing to search, git refuses it, or names and groups clash.
    """
    named = await anyio.to_thread.run_sync(_read_roots, config, tuple(roots))
    surveys = await _survey_all(named, config.submodules)
    projects = _without_withheld([_project(survey, config) for survey in surveys if survey.kind is not None], named)
    projects.sort(key=lambda project: os.fsencode(project.root))
    names = await anyio.to_thread.run_sync(_read_names, config.names)
    ids = _assign_ids(projects, names)
    groups = _checked_groups(config.groups, list(ids.values()))
    found = tuple(
        replace(
            p,
            id=ids[p.root],
            groups=tuple(sorted(name for name, members in groups.items() if ids[p.root] in members)),
        )
        for p in projects
    )
    return Workspace(found, MappingProxyType(groups), tuple(sorted(note for survey in surveys for note in survey.notes)))


def _read_roots(config: WorkspaceConfig, roots: tuple[Path, ...]) -> tuple[Path, ...]:
    """Real paths without repetition, in the order given. All faults are reported at once."""
    try:
        given = roots or tuple(_expanded(root) for root in config.roots) or (Path.cwd(),)
    except OSError as error:
        raise WorkspaceError("The working directory does not exist any more.", remedy="Name a directory with --root.") from error
    faults = [f"{root}: {fault}" for root in given if (fault := _fault(root))]
    if faults:
        raise WorkspaceError(f"Cannot search {'; '.join(faults)}.", remedy="Mend --root or workspace.roots in the configuration.")
    return tuple(dict.fromkeys(Path(os.path.realpath(root)) for root in given))


def _expanded(directory: str) -> Path:
    try:
        return Path(directory).expanduser()
    except RuntimeError as error:
        raise WorkspaceError(f"{directory!r} names a home directory that is not known.", remedy="Write the path in full.") from error


def _fault(root: Path) -> str | None:
    if not os.path.lexists(root):
        return "it does not exist"
    if not os.path.isdir(root):  # noqa: PTH112 - Path.is_dir raises where a parent cannot be entered
        return "it is not a directory"
    readable = os.access(root, os.R_OK | os.X_OK, effective_ids=os.access in os.supports_effective_ids)
    return None if readable else "no permission to read it"


def _read_names(names: Mapping[str, str]) -> dict[Path, str]:
    """Real path to id. Directories that are not in this workspace do no harm: the user file may name many."""
    for directory, name in names.items():
        if not _VALID_ID.fullmatch(name):
            raise WorkspaceError(
                f"workspace.names: {name!r} for {directory} cannot be a project id.",
                remedy="Use letters, digits and . _ - @ ~ /, starting with a letter or digit.",
            )
    return {Path(os.path.realpath(_expanded(directory))): name for directory, name in names.items()}


async def _survey_all(named: tuple[Path, ...], submodules: bool) -> list[Survey]:
    """Survey the named roots, then what lies below them, wave by wave. A fault below a root is a note, at a named root an error."""
    surveys = await _survey_wave(named, submodules)
    for survey in surveys:
        if isinstance(survey, WorkspaceError):
            raise survey
    found = [survey for survey in surveys if isinstance(survey, Survey)]
    seen, wave = set(named), found
    while below := tuple(sorted({path for survey in wave for path in survey.below} - seen)):
        seen.update(below)
        looked = zip(below, await _survey_wave(below, submodules), strict=True)
        wave = [_as_candidate(path, survey) for path, survey in looked]
        found.extend(wave)
    for root in named:
        if not any(survey.kind is not None and survey.root.is_relative_to(root) for survey in found):
            raise WorkspaceError(f"{root} is a bare repository or lies in a .git.", remedy="Name a work tree: `git worktree add`.")
    return found


def _as_candidate(path: Path, survey: Survey | WorkspaceError) -> Survey:
    """A candidate is a project only if it is the top of a work tree of its own, or a plain directory by its own note."""
    if isinstance(survey, WorkspaceError):
        return Survey(path, None, path, notes=(f"{path} is not searched: {survey}",))
    if survey.kind is not None and survey.top != path:
        return Survey(path, None, path, notes=(f"{path} is not searched: its .git is not a repository.",))
    return survey


async def _survey_wave(roots: tuple[Path, ...], submodules: bool) -> list[Survey | WorkspaceError]:
    """Several at once, in the order of `roots`; errors are values, so that the first root's error wins, not the fastest."""
    results: dict[Path, Survey | WorkspaceError] = {}
    limit = anyio.Semaphore(SURVEYS_AT_ONCE)

    async def survey(root: Path) -> None:
        async with limit:
            try:
                with anyio.fail_after(SURVEY_SECONDS):
                    results[root] = await survey_directory(root, submodules=submodules)
            except ExpertError as error:
                results[root] = WorkspaceError(error.message, remedy=error.remedy)
            except TimeoutError:
                results[root] = WorkspaceError(f"git took over {SURVEY_SECONDS:.0f} s for {root}.", remedy="Check the file system.")

    async with anyio.create_task_group() as tasks:
        for root in roots:
            tasks.start_soon(survey, root)
    return [results[root] for root in roots]


def _without_withheld(projects: Sequence[Project], named: Collection[Path]) -> list[Project]:
    """Those that nobody named and that lie in a withheld folder of another are none: a submodule, a linked worktree."""

    def is_withheld(project: Project) -> bool:
        above = (other for other in projects if other.root != project.root and project.root.is_relative_to(other.root))
        return any(withholds(other, project.root.relative_to(other.root).as_posix()) for other in above)

    return [project for project in projects if project.root in named or not is_withheld(project)]


def _project(survey: Survey, config: WorkspaceConfig) -> Project:
    assert survey.kind is not None
    commit, branch = (survey.head.commit, survey.head.branch) if survey.head else (None, None)
    return Project("", survey.root, survey.kind, commit, branch, (), survey.shallow, config.withhold)


def _assign_ids(projects: Sequence[Project], names: Mapping[Path, str]) -> dict[Path, str]:
    """An id for each root. A configured name wins; else the directory's; a linked worktree that clashes gets its branch, then ~2, ~3."""
    ids = {p.root: names[p.root] for p in projects if p.root in names}
    twice = [name for name, count in Counter(ids.values()).items() if count > 1]
    if twice:
        raise WorkspaceError(f"workspace.names gives {twice[0]!r} to more than one project.", remedy="Give each its own id.")
    taken = set(ids.values())
    unnamed = [p for p in projects if p.root not in ids]
    clashes = Counter(_sanitised(p.root.name) for p in unnamed)
    # Linked worktrees last: the main checkout keeps the plain name wherever it lies.
    for project in sorted(unnamed, key=lambda p: p.kind == "worktree"):
        stem = _sanitised(project.root.name)
        if project.kind == "worktree" and project.branch and (clashes[stem] > 1 or stem in taken):
            stem = f"{stem}@{_sanitised(project.branch)}"
        name, number = stem, 1
        while name in taken:
            number += 1
            name = f"{stem}~{number}"
        taken.add(name)
        ids[project.root] = name
    return ids


def _sanitised(name: str) -> str:
    return re.sub(r"[^A-Za-z0-9._-]+", "-", name).strip("-")[:MAX_ID] or "root"


def _checked_groups(groups: Mapping[str, tuple[str, ...]], ids: list[str]) -> dict[str, tuple[str, ...]]:
    faults = [
        f"group {name!r} names {member!r}, {_nearest('projects', member, ids)}"
        for name, members in groups.items()
        for member in members
        if member not in ids
    ]
    if faults:
        raise WorkspaceError(
            f"workspace.groups: {'; '.join(faults)}.", remedy="Name projects that exist, or give them ids with workspace.names."
        )
    return {name: tuple(dict.fromkeys(members)) for name, members in groups.items()}


def _nearest(what: str, wanted: str, known: Sequence[str] | Mapping[str, object]) -> str:
    names = difflib.get_close_matches(wanted, list(known), n=NEAREST, cutoff=0.0)
    return f"nearest of {len(known)} {what}: {', '.join(names)}" if names else f"there are no {what}"


def _no_language(wanted: str, known: Collection[str]) -> str:
    """What is said of a language that nobody knows; `js` and `Python` are understood well enough to name what was meant."""
    lower = wanted.lower()
    meant = lower if lower in known else language_of(f"x.{lower}") or next(iter(difflib.get_close_matches(lower, sorted(known), n=1)), None)
    hint = f"did you mean {meant}? Known are" if meant else "known are"
    return f"no language is called {wanted!r}; {hint} {', '.join(sorted(known))}"
