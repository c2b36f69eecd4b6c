from __future__ import annotations

import json
from pathlib import Path

import pytest

from search_router.benchmark.history import FILES, Gold, LabelledQuestion, Outcome, ask_all, rank_of, read_questions, summarise_outcomes
from search_router.schema import Answer, BudgetReport, Confidence, ConfigRef, Evidence, Scores, Source, Status, Tier
from tests.adapters.local.git_repository import Repository


def item(commit: str | None = None, path: str | None = None) -> Evidence:
    return Evidence(
        id=commit or path or "",
        kind="commit" if commit else "text",
        project="p",
        path=path,
        commit=commit,
        tier=Tier.HISTORY,
        nuance="",
        confidence=Confidence.LOW,
        sources=(Source(expert="history", rank=1),),
        scores=Scores(rrf=0.1),
    )


def answer(*evidence: Evidence) -> Answer:
    return Answer(
        status=Status.ANSWERED,
        evidence=evidence,
        budget=BudgetReport(latency_ms=1, used_ms=1, max_experts=1, asked=1),
        config=ConfigRef(version="v", hash="h"),
    )


def question(kind: str, sha: str = "a" * 40, *files: str) -> LabelledQuestion:
    return LabelledQuestion(id="q", kind=kind, question="x", gold=Gold(sha=sha, gold_files=files))


def test_a_commit_counts_at_its_place_among_everything_shown() -> None:
    shown = answer(item(path="a.py"), item("b" * 40), item("a" * 40))
    assert rank_of(shown, question("pickaxe")) == 3
    assert rank_of(shown, question("pickaxe", "c" * 40)) is None


def test_files_are_counted_once_and_without_the_commits() -> None:
    shown = answer(item("b" * 40), item(path="a.py"), item(path="a.py"), item(path="b.py"))
    assert rank_of(shown, question(FILES, "c" * 40, "b.py")) == 2


def test_the_table_has_the_share_in_the_first_five_and_the_mean_reciprocal_rank() -> None:
    outcomes = [
        Outcome("1", "k", 1, "history"),
        Outcome("2", "k", 10, "history"),
        Outcome("3", "k", 11, "docs"),
        Outcome("4", "k", None, "docs"),
    ]
    assert summarise_outcomes(outcomes) == {
        "k": {"questions": 4, "top5": 0.25, "mrr10": 0.275, "taken for docs": 2, "taken for history": 2}
    }


@pytest.mark.anyio
async def test_questions_are_asked_of_a_real_repository(tmp_path: Path) -> None:
    repository = Repository(tmp_path / "work")
    repository.commit("start", {"a.py": "def first():\n    return 1\n"})
    sha = repository.commit("more", {"a.py": "def first():\n    return 1\n\n\ndef retry_limit():\n    return 2\n"})
    lines = [
        {"id": "r:1", "kind": "pickaxe", "question": "when did retry_limit land", "gold": {"sha": sha}},
        {"id": "s:1", "kind": "pickaxe", "question": "when did first land", "gold": {"sha": sha}},
    ]
    path = tmp_path / "questions.jsonl"
    path.write_text("\n".join(map(json.dumps, lines)))
    outcomes = await ask_all(repository.root, read_questions(path, prefix="r:"))
    assert [(o.id, o.rank, o.intent) for o in outcomes] == [("r:1", 1, "history")]
