"""Latency of questions to a large body of documents, and of one edit: a real expert over made-up Markdown, no router around it.

Words are drawn by Zipf's law, so that a question has rare and common ones, as real ones do; everything is reproducible.
"""

from __future__ import annotations

import asyncio
import random
import tempfile
import time
from itertools import accumulate
from pathlib import Path

from search_router.adapters.local.embedding import Embedding
from search_router.adapters.local.knowledge import KnowledgeExpert
from search_router.adapters.local.knowledge_vectors import BEING_MADE
from search_router.benchmark.timing import summarise
from search_router.config.experts import KnowledgeConfig
from search_router.config.loader import load_config
from search_router.errors import ExpertError, FailureClass
from search_router.schema import ExpertCall, Intent, Project, QueryForm, SubQuery

SECTIONS = 40
WORDS = 30_000
WORDS_OF_A_SECTION = 60
BUILD_SECONDS = 1800.0
SYLLABLES = "ba de fi go hu ka le mi no pu ra se ti vo wu za che dro fle gri".split()


def make_corpus(folder: Path, chunks: int, seed: int) -> list[str]:
    """Write documents of 40 sections until there are so many chunks; gives the vocabulary, commonest words first."""
    chance = random.Random(seed)  # noqa: S311 - reproducible, no secret
    words = [f"{chance.choice(SYLLABLES)}{chance.choice(SYLLABLES)}{chance.choice(SYLLABLES)}{n % 97}x" for n in range(WORDS)]
    words = [word.translate(str.maketrans("0123456789", "qwrtypsdfg")) for word in words]
    weights = list(accumulate(1 / rank for rank in range(1, WORDS + 1)))
    for number in range(max(1, chunks // SECTIONS)):
        lines = [f"# {' '.join(chance.choices(words, cum_weights=weights, k=3))}", ""]
        for _ in range(SECTIONS):
            drawn = chance.choices(words, cum_weights=weights, k=WORDS_OF_A_SECTION)
            lines += [f"## {' '.join(drawn[:3])}", "", " ".join(drawn), ""]
        path = folder / f"area{number % 20}" / f"document-{number}.md"
        path.parent.mkdir(exist_ok=True)
        path.write_text("\n".join(lines), "utf-8")
    return words


def _call(question: str, project: Project) -> ExpertCall:
    query = SubQuery(QueryForm.KEYWORDS, tuple(question.split()), question)
    return ExpertCall("knowledge", query, (project,), None, None, 50, 600_000, 1000, "measured", Intent.DOCS)


async def _measure(folder: Path, chunks: int, questions: int, edits: int, *, vectors: bool) -> dict[str, object]:
    root = folder / "work"
    root.mkdir()
    words = make_corpus(root, chunks, 1)
    loaded = load_config(
        roots=[],
        environ={"SEARCH_ROUTER_HOME": str(folder / "home")},
        flags=[f"experts.knowledge.semantic={'always' if vectors else 'auto'}"],
    ).config
    config = loaded.experts["knowledge"]
    assert isinstance(config, KnowledgeConfig)
    project = Project(id="work", root=root, kind="directory")
    expert = KnowledgeExpert("knowledge", config, folder / "cache", embedding=Embedding(loaded.vectors, folder / "cache"))
    chance = random.Random(2)  # noqa: S311 - reproducible, no secret
    weights = list(accumulate(1 / rank for rank in range(1, WORDS + 1)))
    try:
        started = time.perf_counter()
        await _ask_until_ready(expert, project, words[10])
        built = time.perf_counter() - started
        warm: list[float] = []
        used: list[float] = []
        edited: list[float] = []
        await asyncio.sleep(2.5)  # a file that was just written is read again, because its clock may not have ticked
        await _ask_until_ready(expert, project, words[10])
        for _ in range(questions):
            question = " ".join(chance.choices(words, cum_weights=weights, k=chance.randint(2, 8)))
            started, cpu = time.perf_counter(), time.process_time()
            await expert.search(_call(question, project))
            warm.append((time.perf_counter() - started) * 1000)
            used.append((time.process_time() - cpu) * 1000)
        paths = sorted(root.rglob("*.md"))
        for number in range(edits):
            path = chance.choice(paths)
            path.write_text(f"{path.read_text('utf-8')}\n## Edited\n\nedited marker{SYLLABLES[number % 20]}zz\n", "utf-8")
            started = time.perf_counter()
            result = await expert.search(_call(f"marker{SYLLABLES[number % 20]}zz", project))
            edited.append((time.perf_counter() - started) * 1000)
            if path.relative_to(root).as_posix() not in [hit.path for hit in result.hits]:
                raise RuntimeError(f"the edit of {path} was not found")
    finally:
        await expert.aclose()
    return {
        "chunks": chunks,
        "documents": len(paths),
        "build_s": round(built, 1),
        "question": summarise(warm),
        "question_cpu": summarise(used),
        "edit": summarise(edited),
    }


async def _ask_until_ready(expert: KnowledgeExpert, project: Project, word: str) -> None:
    async with asyncio.timeout(BUILD_SECONDS):
        while True:
            try:
                result = await expert.search(_call(word, project))
                if result.partial is None and BEING_MADE not in result.notes:
                    return
            except ExpertError as error:
                if error.failure is not FailureClass.TIMEOUT:
                    raise


def run(chunks: int, questions: int, edits: int, *, vectors: bool = False) -> dict[str, object]:
    """Milliseconds of warm questions, and of a question that comes right after one document was edited; with `vectors` also found by the
    embedder `lsa`, which is off by default."""
    with tempfile.TemporaryDirectory() as name:
        return asyncio.run(_measure(Path(name), chunks, questions, edits, vectors=vectors))
