"""What a language model says of commits, with a real git and a real server that answers in the recorded form of chat completions."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Callable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest

from search_router.adapters.local.commit_told import BEING_TOLD
from search_router.adapters.local.history import HistoryExpert
from search_router.config.experts import HistoryConfig
from search_router.config.loader import load_config
from search_router.schema import ExpertCall, ExpertResult, Intent, Project, QueryForm, SubQuery
from tests.adapters.answering_server import AnsweringServer, Asked, answering_server
from tests.adapters.local.git_repository import Repository

pytestmark = pytest.mark.anyio


def completion(content: str) -> dict[str, Any]:
    """As OpenAI's API answers POST /v1/chat/completions."""
    choice = {"index": 0, "message": {"role": "assistant", "content": content, "refusal": None}, "finish_reason": "stop"}
    return {"id": "chatcmpl-B9MB", "object": "chat.completion", "created": 1741569952, "model": "m", "choices": [choice]}


def tells(asked: Asked) -> Any:
    """Of the commit that brings in `jar.py` the model knows a word that stands nowhere in the repository."""
    patch = json.loads(asked.body["messages"][1]["content"])["commit"]
    return completion(json.dumps({"summary": "Adds biscuit storage for browsers." if "class Jar" in patch else "Changes the wording."}))


@pytest.fixture
def server() -> Iterator[AnsweringServer]:
    with answering_server(tells) as running:
        yield running


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    made = Repository(tmp_path / "work")
    made.commit("Start", {"a.py": "A = 1\n"})
    made.commit("Add jar", {"jar.py": "class Jar:\n    pass\n"})
    made.commit("Polish", {"a.py": "A = 2\n"})
    return made


@asynccontextmanager
async def expert_over(folder: Path, server: AnsweringServer, *flags: str) -> AsyncGenerator[HistoryExpert]:
    told = ['llm.kind="chat-completions"', f'llm.url="{server.url}/v1"', 'llm.model="m"', "llm.allow_remote=true"]
    config = load_config(roots=[], environ={"SEARCH_ROUTER_HOME": str(folder / "home")}, flags=[*told, *flags]).config
    settings = config.experts["history"]
    assert isinstance(settings, HistoryConfig)
    expert = HistoryExpert("history", settings, folder / "cache", llm=config.llm)
    try:
        yield expert
    finally:
        await expert.aclose()
        await expert.aclose()


async def ask(expert: HistoryExpert, repository: Repository, question: str = "when did biscuit storage come") -> ExpertResult:
    """The answer once nothing is being told any more."""
    project = Project("work", repository.root, "git")
    call = ExpertCall("history", SubQuery(QueryForm.TEXT, (), question), (project,), None, None, 10, 30_000, 1000, "test", Intent.HISTORY)
    with anyio.fail_after(60):
        while BEING_TOLD in (found := await expert.search(call)).notes:
            await anyio.lowlevel.checkpoint()
    return found


def subjects(result: ExpertResult) -> list[str]:
    return [hit.commit.subject for hit in result.hits if hit.commit is not None]


async def test_by_default_no_model_is_asked_about_commits(tmp_path: Path, server: AnsweringServer, repository: Repository) -> None:
    async with expert_over(tmp_path, server) as expert:
        assert subjects(await ask(expert, repository)) == []
    assert server.asked == []


async def test_a_commit_is_found_by_what_the_model_says_and_told_once(
    tmp_path: Path, server: AnsweringServer, repository: Repository
) -> None:
    async with expert_over(tmp_path, server, "llm.commit_summaries=true") as expert:
        found = await ask(expert, repository)
        assert subjects(found)[:1] == ["Add jar"] and found.settled
        assert len(server.asked) == 3
        repository.commit("Later", {"a.py": "A = 3\n"})
        await ask(expert, repository)
        assert len(server.asked) == 4
    async with expert_over(tmp_path, server, "llm.commit_summaries=true") as expert:
        assert subjects(await ask(expert, repository))[:1] == ["Add jar"]
    assert len(server.asked) == 4


async def test_only_the_newest_commits_are_sent_and_of_each_a_bounded_text(
    tmp_path: Path, server: AnsweringServer, repository: Repository
) -> None:
    repository.commit("Large", {"large.py": "X = 1\n" * 5000})
    async with expert_over(tmp_path, server, "llm.commit_summaries=true", "llm.commits=2", "llm.characters=200") as expert:
        await ask(expert, repository)
    sent = [json.loads(asked.body["messages"][1]["content"])["commit"] for asked in server.asked]
    assert [text.split("\n")[0] for text in sent] == ["Large", "Polish"]
    assert max(map(len, sent)) == 200


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (lambda _: 503, "503"),
        (lambda _: completion('{"summary": 7}'), "another form"),
        (lambda _: b"<html>", "answer"),
        (lambda _: None, "within 400 ms"),
    ],
    ids=["busy", "other form", "no json", "silent"],
)
async def test_its_failure_is_said_and_messages_are_searched(
    tmp_path: Path, server: AnsweringServer, repository: Repository, answer: Callable[[Asked], Any], said: str
) -> None:
    server.answer = answer
    cap = 400 if "400" in said else 30_000
    async with expert_over(tmp_path, server, "llm.commit_summaries=true", f"llm.cap_ms={cap}") as expert:
        found = await ask(expert, repository, "which commit did add a jar")
        assert subjects(found)[:1] == ["Add jar"]
        (note,) = [note for note in found.notes if "not summarised by m at" in note]
        assert said in note and not found.settled
        await ask(expert, repository)
    assert len(server.asked) <= 1  # within the pause after a failure nobody is asked again


async def test_a_store_that_is_no_database_is_said(tmp_path: Path, server: AnsweringServer, repository: Repository) -> None:
    async with expert_over(tmp_path, server, "llm.commit_summaries=true") as expert:
        await ask(expert, repository)
    (store,) = (tmp_path / "cache").glob("history-told-*.sqlite")
    for path in (tmp_path / "cache").glob("history-told-*"):
        path.unlink()
    store.write_bytes(b"no database at all, but as long as the header of one would be" * 40)
    async with expert_over(tmp_path, server, "llm.commit_summaries=true") as expert:
        found = await ask(expert, repository, "which commit did add a jar")
    assert subjects(found)[:1] == ["Add jar"]
    assert any("cannot be kept" in note and str(store) in note for note in found.notes)
