"""How well questions about the APIs of installed libraries are answered: forty of them, with the symbol that each wants.

The libraries are this project's own dependencies, so every development environment has them; the questions were written by hand from their
documentation, before the ranking was looked at. What is compared is library, installed version and symbol.
"""

from __future__ import annotations

import importlib.metadata
import json
import tempfile
from importlib.resources import files
from pathlib import Path

import anyio
from pydantic import BaseModel, ConfigDict

from search_router.router.opening import open_router
from search_router.schema import Answer, Intent

NEAR = 3
DEPTH = 10


class DocsQuestion(BaseModel):
    """`symbol` is the end of the qualified name that answers the question."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    id: str
    question: str
    library: str
    symbol: str


def read_docs_questions() -> list[DocsQuestion]:
    """The questions whose library is installed here."""
    text = files("search_router.benchmark").joinpath("fixtures/installed_docs.jsonl").read_text("utf-8")
    return [q for line in text.splitlines() if _version((q := DocsQuestion.model_validate_json(line)).library) is not None]


def rank_of_symbol(answer: Answer, question: DocsQuestion) -> int | None:
    """The place of the right symbol of the right library in the installed version, among all of the evidence."""
    version = _version(question.library)
    for rank, item in enumerate(answer.evidence, start=1):
        name = (item.symbol or "").removesuffix("()")
        named = name == question.symbol or name.endswith(f".{question.symbol}")
        if named and (item.library, item.version) == (question.library, version):
            return rank
    return None


def _version(library: str) -> str | None:
    try:
        return importlib.metadata.version(library.partition("/")[2])
    except importlib.metadata.PackageNotFoundError:
        return None


async def ask_all(questions: list[DocsQuestion]) -> dict[str, int | None]:
    """Each question's rank, asked through a router over an empty project, with the hint `docs`."""
    ranks: dict[str, int | None] = {}
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder) / "work"
        root.mkdir()
        environ = {"SEARCH_ROUTER_HOME": f"{folder}/home", "HOME": folder}
        async with open_router(roots=[root], flags=("budget.latency_ms=60000", "experts.docs.cap_ms=60000"), environ=environ) as router:
            for question in questions:
                answer = await router.search({"question": question.question, "intent": Intent.DOCS.value, "limit": DEPTH})
                ranks[question.id] = rank_of_symbol(answer, question)
    return ranks


def run() -> dict[str, object]:
    """Questions asked, the share with the right symbol among the first three, MRR@10, and each one's rank."""
    questions = read_docs_questions()
    ranks = anyio.run(ask_all, questions)
    found = [rank for rank in ranks.values() if rank is not None]
    count = max(1, len(questions))
    return {
        "questions": len(questions),
        "top3": round(sum(rank <= NEAR for rank in found) / count, 4),
        "mrr10": round(sum(1 / rank for rank in found) / count, 4),
        "ranks": json.dumps(ranks),
    }
