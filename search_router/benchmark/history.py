"""How well questions about the past are answered: labelled questions, asked through the front door of a real router over a checkout.

A file of questions has one JSON object a line: {id, kind, question, gold: {sha, gold_files}}. A question of kind `files` describes a
change and wants the files that it touches; of any other kind it wants the commit. For `files` give a checkout whose history lacks the
commits asked for, or they answer for themselves.
"""

from __future__ import annotations

import json
import tempfile
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import anyio
from pydantic import BaseModel, ConfigDict

from search_router.router.opening import open_router
from search_router.router.service import Router
from search_router.schema import Answer, Intent

DEPTH = 10
"""MRR@10: a right answer below this counts nothing."""
NEAR = 5
FILES = "files"
FLAGS = ("budget.latency_ms=20000",)
HINTS = {"changelog": Intent.HISTORY}
"""An entry of a change log is a statement, which nothing in its words tells from any other: who asks says that a commit is wanted."""


class Gold(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore")

    sha: str
    gold_files: tuple[str, ...] = ()


class LabelledQuestion(BaseModel):
    """One line of the file of questions."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    id: str
    kind: str
    question: str
    gold: Gold


@dataclass(frozen=True, slots=True)
class Outcome:
    """Where the first right answer stood (1-based; None: not among the evidence), and what the classifier took the question for."""

    id: str
    kind: str
    rank: int | None
    intent: str


def read_questions(path: Path, *, kinds: Iterable[str] = (), prefix: str = "") -> list[LabelledQuestion]:
    """The questions of these kinds (all when none is named) whose id begins with the prefix. Raises ValueError for a bad line."""
    wanted = frozenset(kinds)
    questions = [LabelledQuestion.model_validate_json(line) for line in path.read_text("utf-8").splitlines() if line.strip()]
    return [q for q in questions if q.id.startswith(prefix) and (not wanted or q.kind in wanted)]


def rank_of(answer: Answer, question: LabelledQuestion) -> int | None:
    """The place of the first right item: for `files` among the distinct files of the evidence, else among all of the evidence."""
    if question.kind == FILES:
        paths = list(dict.fromkeys(e.path for e in answer.evidence if e.path is not None))
        return next((rank for rank, path in enumerate(paths, 1) if path in question.gold.gold_files), None)
    return next((rank for rank, e in enumerate(answer.evidence, 1) if e.commit == question.gold.sha), None)


def summarise_outcomes(outcomes: Sequence[Outcome]) -> Mapping[str, Mapping[str, float | int]]:
    """For each kind: how many, the share with the right answer in the first five, MRR@10, and how many were taken for what."""
    by_kind: dict[str, list[Outcome]] = defaultdict(list)
    for outcome in outcomes:
        by_kind[outcome.kind].append(outcome)
    table: dict[str, Mapping[str, float | int]] = {}
    for kind, found in sorted(by_kind.items()):
        ranks = [o.rank for o in found if o.rank is not None and o.rank <= DEPTH]
        taken = {f"taken for {intent}": sum(o.intent == intent for o in found) for intent in sorted({o.intent for o in found})}
        table[kind] = {
            "questions": len(found),
            "top5": round(sum(rank <= NEAR for rank in ranks) / len(found), 4),
            "mrr10": round(sum(1 / rank for rank in ranks) / len(found), 4),
            **taken,
        }
    return table


async def ask_all(root: Path, questions: Sequence[LabelledQuestion], flags: Sequence[str] = ()) -> list[Outcome]:
    """Ask one after another, in a router with a state of its own."""
    outcomes: list[Outcome] = []
    with tempfile.TemporaryDirectory() as home:
        environ = {"SEARCH_ROUTER_HOME": home, "HOME": home, "PATH": str(Path("/usr/bin")) + ":/usr/local/bin:/bin"}
        async with open_router(roots=[root], flags=(*FLAGS, *flags), environ=environ) as router:
            await _warm(router)
            for question in questions:
                raw = {"question": question.question, "limit": DEPTH * 2}
                if question.kind in HINTS:
                    raw["intent"] = HINTS[question.kind].value
                answer = await router.search(raw)
                taken = answer.classification.intent.value if answer.classification else "none"
                outcomes.append(Outcome(question.id, question.kind, rank_of(answer, question), taken))
    return outcomes


async def _warm(router: Router) -> None:
    """Ask until nothing is partial any more, at most a minute: reading the commits and the files is not what is measured."""
    with anyio.move_on_after(60):
        for intent in (Intent.HISTORY, Intent.CONCEPTUAL):
            while True:
                answer = await router.search({"question": "the first change", "intent": intent.value})
                still = any("partial:" in e.reason for e in answer.experts) or any("still being read" in note for note in answer.notes)
                if not still:
                    break


def run(root: Path, path: Path, *, kinds: Sequence[str] = (), prefix: str = "", flags: Sequence[str] = ()) -> dict[str, object]:
    """The table of `summarise_outcomes` and each question's rank."""
    outcomes = anyio.run(ask_all, root, read_questions(path, kinds=kinds, prefix=prefix), flags)
    return {**summarise_outcomes(outcomes), "ranks": json.dumps({o.id: o.rank for o in outcomes})}
