"""All questions to all arms, a process a repository: who is asked with which configuration, and what came back."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, NamedTuple

from search_router.benchmark.gains import Result, distinct_files
from search_router.benchmark.questions import Question, Repository, UnusableData

REPOSITORY_SECONDS: Final = 3600.0
ERROR_KEPT: Final = 2000


class Arm(NamedTuple):
    """A name and the `--set` flags that make it."""

    name: str
    flags: tuple[str, ...] = ()


class Candidate(NamedTuple):
    """A file that the code index ranked: its score is the weighted sum of the signals times the damping."""

    path: str
    damping: float
    signals: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class Asked:
    """One answer. Paths of `results` and `candidates` are relative to the checkout; `ids` are the evidence ids, in the same order."""

    question: Question
    results: tuple[Result, ...]
    ids: tuple[str, ...]
    ms: float
    cpu_ms: float
    status: str
    failed: tuple[str, ...]
    text: str = ""
    candidates: tuple[Candidate, ...] = ()
    without_vectors: bool = False
    """Whether the code index ranked without vectors that it is to use."""


@dataclass(slots=True)
class Answers:
    """Everything that one arm answered, and what each repository's index took to be ready (of a fresh store only for the first arm)."""

    arm: Arm
    asked: dict[str, Asked] = field(default_factory=dict[str, Asked])
    ready_ms: dict[str, float] = field(default_factory=dict[str, float])
    ready_cpu_ms: dict[str, float] = field(default_factory=dict[str, float])

    def files(self) -> dict[str, list[Result]]:
        """Question id to the files of its evidence, in the order of the evidence."""
        return {name: distinct_files(asked.results) for name, asked in self.asked.items()}


@dataclass(frozen=True, slots=True)
class Plan:
    """What is asked where. `home` keeps the indexes; `limit` is the evidence asked for."""

    questions: tuple[Question, ...]
    repositories: tuple[Repository, ...]
    checkouts: Path
    home: Path
    limit: int = 10
    texts: bool = False
    candidates: bool = False
    warm_up: Path | None = None
    """A folder to index before anything is measured, so that imports and grammars are loaded."""
    seconds: float | None = None
    """Time for everything. When it is up, no further arm is begun."""


def ask_everything(plan: Plan, arms: Sequence[Arm]) -> list[Answers]:
    """Every question to every arm, repository after repository. Where the plan's time ends before, the last arms lack questions.

    Raises:
        UnusableData: a checkout is missing, or the process that asks ended with an error or took too long.
    """
    answers = {arm.name: Answers(arm) for arm in arms}
    until = None if plan.seconds is None else time.monotonic() + plan.seconds
    for at, repository in enumerate(plan.repositories):
        questions = {q.id: q for q in plan.questions if q.repo == repository.name}
        seconds = None if until is None else max(0.0, until - time.monotonic()) / (len(plan.repositories) - at)
        for row in _rows(plan, repository, questions.values(), arms, seconds):
            into = answers[row["arm"]]
            if "id" in row:
                into.asked[row["id"]] = _asked(repository, questions[row["id"]], row)
            else:
                into.ready_ms[repository.name] = row["ready_ms"]
                into.ready_cpu_ms[repository.name] = row["ready_cpu_ms"]
    return list(answers.values())


def is_complete(plan: Plan, answers: Answers) -> bool:
    """Whether the arm was asked everything."""
    return len(answers.asked) == len(plan.questions)


def _rows(plan: Plan, repository: Repository, questions: Any, arms: Sequence[Arm], seconds: float | None) -> Iterator[dict[str, Any]]:
    job = {
        "root": str(repository.folder(plan.checkouts)),
        "home": str(plan.home),
        "warm_up": str(plan.warm_up) if plan.warm_up else "",
        "arms": [{"name": arm.name, "flags": arm.flags} for arm in arms],
        "questions": [(q.id, q.question) for q in questions],
        "limit": plan.limit,
        "texts": plan.texts,
        "candidates": plan.candidates,
        "seconds": seconds,
    }
    try:
        done = subprocess.run(
            [sys.executable, "-m", "search_router.benchmark.ask"],
            input=json.dumps(job).encode(),
            capture_output=True,
            timeout=REPOSITORY_SECONDS + (seconds or 0.0),
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise UnusableData(
            f"Asking {repository.name} took longer than {error.timeout:.0f} s.", remedy="Name fewer arms, or set --minutes."
        ) from error
    if done.returncode != 0:
        said = done.stderr.decode("utf-8", "replace")[-ERROR_KEPT:]
        raise UnusableData(f"Asking {repository.name} ended with exit code {done.returncode}: {said}", remedy="Mend that first.")
    for line in done.stdout.splitlines():
        yield json.loads(line)


def _asked(repository: Repository, question: Question, row: Mapping[str, Any]) -> Asked:
    found: list[dict[str, Any]] = row["results"]
    results = tuple(Result(repository.from_checkout(r["path"]), r["start"], r["end"]) for r in found)
    ranked: list[dict[str, Any]] = row.get("candidates", [])
    return Asked(
        question,
        results,
        tuple(r["id"] for r in found),
        row["ms"],
        row["cpu_ms"],
        row["status"],
        tuple(row["failed"]),
        row.get("text", ""),
        tuple(Candidate(repository.from_checkout(c["path"]), c["damping"], c["signals"]) for c in ranked),
        row["without_vectors"],
    )


def failures_of(answers: Answers) -> dict[str, int]:
    """How often each expert failed or was late: figures of a run with such are not the product's."""
    counts: dict[str, int] = defaultdict(int)
    for asked in answers.asked.values():
        for expert in asked.failed:
            counts[expert] += 1
    return dict(sorted(counts.items()))
