"""Documents found by vectors: with the embedder that is made of them, and with a server; real experts, real files."""

from __future__ import annotations

import itertools
from collections.abc import AsyncGenerator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from search_router.adapters.local.embedding import Embedding
from search_router.adapters.local.knowledge import KnowledgeExpert
from search_router.config.experts import KnowledgeConfig
from search_router.config.schema import VectorsConfig
from search_router.schema import ExpertResult, Project, StageFacts
from tests.adapters.local.embedding_server import DIMENSIONS, EmbeddingServer, embedding_server
from tests.adapters.local.knowledge_workspace import TODAY, call_for, default_config, paths, write

pytestmark = pytest.mark.anyio

TOPICS = [("broker", "queue", "message"), ("wheel", "car", "engine"), ("soup", "spoon", "kitchen"), ("ledger", "invoice", "tax")]
QUESTION = "broker"
TARGET = {"target.md": "# Delivery\n\nThe queue is drained at night.\n"}
"""Has no word of the question; written after the basis was made, of text in which queues and brokers go together."""


def corpus() -> dict[str, str]:
    """160 sections in which the words of one topic occur together."""
    files: dict[str, str] = {}
    for number in range(40):
        one, two, three = TOPICS[number % len(TOPICS)]
        sections = "".join(f"## Part {n}\n\nThe {one} and the {two} belong to the {three}, case {number} {n}.\n\n" for n in range(4))
        files[f"note-{number}.md"] = f"# Notes {number}\n\n{sections}"
    return files


@asynccontextmanager
async def expert_with(folder: Path, semantic: str = "always", **vectors: object) -> AsyncGenerator[KnowledgeExpert]:
    config: KnowledgeConfig = default_config().model_copy(update={"semantic": semantic})
    embedding = Embedding(VectorsConfig.model_validate({"embedder": "lsa"} | vectors), folder / "cache")
    expert = KnowledgeExpert("knowledge", config, folder / "cache", embedding=embedding, today=lambda: TODAY)
    try:
        yield expert
    finally:
        await expert.aclose()


def semantic_stage(result: ExpertResult) -> StageFacts:
    return next(stage for stage in result.stages if stage.stage == "semantic")


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return write(tmp_path / "work", corpus())


@pytest.fixture
def server() -> Iterator[EmbeddingServer]:
    with embedding_server() as running:
        yield running


async def test_words_that_occur_together_find_a_section_that_has_none_of_the_question(tmp_path: Path, project: Project) -> None:
    async with expert_with(tmp_path) as expert:
        await expert.search(call_for(QUESTION, project))
        write(project.root, TARGET)
        found = await expert.search(call_for(QUESTION, project, limit=50))
    async with expert_with(tmp_path, "never") as expert:
        without = await expert.search(call_for(QUESTION, project, limit=50))
    assert "target.md" in paths(found) and "target.md" not in paths(without)
    hit = next(hit for hit in found.hits if hit.path == "target.md")
    assert hit.about is not None and any(signal.startswith("semantic #") for signal in hit.about.signals)
    assert not hit.is_exact
    stage = semantic_stage(found)
    assert stage.active and stage.reason.startswith("lsa ") and stage.out > 0


async def test_it_is_off_with_lsa_by_itself_and_says_why(tmp_path: Path, project: Project) -> None:
    async with expert_with(tmp_path, "auto") as expert:
        stage = semantic_stage(await expert.search(call_for(QUESTION, project)))
    assert (stage.active, stage.out) == (False, 0)
    assert "did not help on labelled questions" in stage.reason
    assert not (tmp_path / "cache" / "vectors-1.sqlite3").exists()


async def test_a_few_sections_are_no_basis_and_it_says_so(tmp_path: Path) -> None:
    few = write(tmp_path / "few", {"a.md": "# A\n\nbroker queue\n"})
    async with expert_with(tmp_path) as expert:
        result = await expert.search(call_for(QUESTION, few))
    assert paths(result) == ["a.md"]
    assert (semantic_stage(result).active, semantic_stage(result).reason) == (False, "1 sections are too few to learn from")


async def test_an_edit_a_new_document_and_a_removal_are_in_the_vectors_of_the_next_question(tmp_path: Path, project: Project) -> None:
    async with expert_with(tmp_path) as expert:
        await expert.search(call_for(QUESTION, project))
        write(project.root, {"new.md": TARGET["target.md"], "note-4.md": "# Soup\n\nA spoon.\n"})
        (project.root / "note-0.md").unlink()
        result = await expert.search(call_for(QUESTION, project, limit=50))
    assert "new.md" in paths(result)
    assert not {"note-4.md", "note-0.md"} & set(paths(result))
    assert semantic_stage(result).active


async def test_a_server_embeds_each_text_once_and_the_answer_says_where_text_goes(
    tmp_path: Path, project: Project, server: EmbeddingServer
) -> None:
    there = {"embedder": "tei", "url": server.url, "dimensions": DIMENSIONS, "allow_remote": True}
    async with expert_with(tmp_path, "auto", **there) as expert:
        result = await expert.search(call_for(QUESTION, project, limit=50))
        assert semantic_stage(result).active
        assert any("are sent to" in note for note in result.notes)
        sent = len(server.texts)
        write(project.root, {"another.md": "# Delivery\n\nAnother sentence.\n"})
        await expert.search(call_for("queue", project))
        assert len(server.texts) - sent == 2  # the changed section and the question
    async with expert_with(tmp_path, "auto", **there) as expert:
        sent = len(server.texts)
        await expert.search(call_for("spoon", project))
        assert len(server.texts) - sent == 1


async def test_a_server_that_fails_costs_a_note_and_the_words_still_answer(
    tmp_path: Path, project: Project, server: EmbeddingServer
) -> None:
    server.script = [500] * 20
    async with expert_with(
        tmp_path, "auto", embedder="tei", url=server.url, dimensions=DIMENSIONS, allow_remote=True, timeout_ms=1000
    ) as expert:
        result = await expert.search(call_for("broker queue", project))
    assert result.hits
    assert not semantic_stage(result).active
    assert any("ranked without vectors" in note for note in result.notes)


async def test_vectors_count_nothing_and_are_not_made_at_weight_zero(tmp_path: Path, project: Project) -> None:
    embedding = Embedding(VectorsConfig(embedder="lsa"), tmp_path / "cache")
    config = default_config(semantic=0.0).model_copy(update={"semantic": "always"})
    expert = KnowledgeExpert("knowledge", config, tmp_path / "cache", embedding=embedding)
    try:
        assert semantic_stage(await expert.search(call_for(QUESTION, project))).reason == "its weight is 0"
    finally:
        await expert.aclose()


async def test_vectors_find_no_row_outside_of_what_the_caller_may_see(tmp_path: Path) -> None:
    """Both projects have vectors; each has documents outside of the path, and one that is hidden for its time."""
    files = {f"{'in' if n % 4 < 2 else 'out'}/{name}": text for n, (name, text) in enumerate(corpus().items())}
    files["in/old.md"] = "---\nvalid_until: 2020-01-01\n---\n# Old\n\nbroker queue\n"
    projects = [write(tmp_path / f"p{n}", files) for n in range(2)]
    async with expert_with(tmp_path) as expert:
        await expert.search(call_for(QUESTION, *projects))
        for asked, prefix, expired in itertools.product(([projects[0]], [projects[1]], projects), (None, "in"), (False, True)):
            result = await expert.search(call_for(QUESTION, *asked, path=prefix, limit=100, include_expired=expired))
            assert semantic_stage(result).active
            assert {hit.project for hit in result.hits} == {p.id for p in asked}
            assert all(prefix is None or (hit.path or "").startswith("in/") for hit in result.hits)
            assert ("in/old.md" in paths(result)) is expired
