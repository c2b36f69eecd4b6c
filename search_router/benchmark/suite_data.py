"""A suite's questions for engines that search one folder and return places in files: each question is asked in its own project alone."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Final, NamedTuple

from search_router.benchmark.asking import Plan
from search_router.benchmark.fixture_build import build_suite, default_place
from search_router.benchmark.fixture_manifest import suite_folder
from search_router.benchmark.fixture_suite import COMMIT, FixtureQuestion, Label, Suite, load_suite
from search_router.benchmark.questions import Question, Repository, Target, UnusableData
from search_router.benchmark.run_bounds import draw_questions

RELEVANT: Final = 2
"""From this grade on a place is a target: the answer or a part of it."""
LANGUAGES: Final = {"pypi": "python", "npm": "javascript"}


class SuiteData(NamedTuple):
    """`suite` is `fixtures` or a folder; `only` leaves these projects, `drawn` is how many questions evenly by class and half."""

    suite: str
    built: Path | None = None
    only: tuple[str, ...] = ()
    drawn: int | None = None

    def plan(self, home: Path) -> Plan:
        """The suite is built first where it is not. Raises UnusableData, StaleLabel."""
        folder = suite_folder(self.suite)
        suite = load_suite(folder, build_suite(folder, self.built or default_place(folder)))
        languages = {archive.project: LANGUAGES[archive.registry] for archive in suite.manifest.archives}
        fit = [q for q in suite.questions if _project_of(q, suite.labels.get(q.id, ()), self.only)]
        if not fit:
            raise UnusableData("No question is about one of these projects alone.", remedy=f"Known: {', '.join(languages)}.")
        questions = tuple(_question(suite, q, languages) for q in draw_questions(fit, self.drawn))
        named = {q.repo for q in questions}
        repositories = tuple(Repository(name=name, language=languages[name]) for name in suite.manifest.projects if name in named)
        return Plan(questions, repositories, suite.projects, home)


def _project_of(question: FixtureQuestion, labels: Sequence[Label], only: Sequence[str]) -> str | None:
    """The one project that the question is about. None for commits, for several projects, and for a question that names its own scope."""
    projects = {label.project for label in labels}
    commits = any(label.path.startswith(COMMIT) for label in labels)
    if question.adversarial or question.request().keys() != {"question"} or commits or len(projects) != 1:
        return None
    (project,) = projects
    return project if not only or project in only else None


def _question(suite: Suite, question: FixtureQuestion, languages: dict[str, str]) -> Question:
    labels = suite.labels[question.id]
    targets = [Target(path=x.path, start_line=x.start, end_line=x.end) for x in labels if x.grade >= RELEVANT]
    project = labels[0].project
    return Question(
        id=question.id, repo=project, language=languages[project], category=question.kind, question=question.text, targets=tuple(targets)
    )
