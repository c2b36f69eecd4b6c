"""chunkhound as a peer: its own server over stdio, asked through the preset that the router has for it, without an embedder.

Its regex search does not rank, so files are ranked as ripgrep's are: by how many different keywords of the question their hits have, then
by the number of hits. It writes its index into the folder that it indexes, so it gets a copy.
"""

from __future__ import annotations

import re
import shutil
import time
from collections import defaultdict
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

import anyio

from search_router.adapters.base import Expert
from search_router.adapters.process import run_command
from search_router.adapters.remote.kinds import make_remote_experts
from search_router.adapters.remote.presets import load_preset
from search_router.benchmark.gains import DEPTH, Result
from search_router.benchmark.questions import UnusableData
from search_router.benchmark.ripgrep_peer import Found, keywords
from search_router.config.remote import McpConfig
from search_router.errors import ExpertError
from search_router.schema import ExpertCall, Hit, Project, QueryForm, SubQuery

EXPERT: Final = "chunkhound-regex"
INDEX_SECONDS: Final = 600.0
ASK_SECONDS: Final = 120.0
PAGE: Final = 100
"""Hits that are asked for, of which files are ranked."""


def ask_chunkhound(program: Path, root: Path, questions: Sequence[tuple[str, str]], folder: Path) -> tuple[float, dict[str, Found]]:
    """(milliseconds of indexing, what was found by question id) of one folder. `folder` keeps the copy and chunkhound's own files.

    Raises:
        UnusableData: it could not index or answer.
    """
    return anyio.run(_ask, program, root, questions, folder)


async def _ask(program: Path, root: Path, questions: Sequence[tuple[str, str]], folder: Path) -> tuple[float, dict[str, Found]]:
    copy = folder / root.name
    shutil.copytree(root, copy, ignore=shutil.ignore_patterns(".git"))
    try:
        index_ms = await _index(program, copy, folder)
        async with _server(program, folder) as expert:
            await _search(expert, copy, "the")  # its start is not a question's
            return index_ms, {name: await _search(expert, copy, text) for name, text in questions}
    except (ExpertError, TimeoutError) as error:
        raise UnusableData(f"{program} did not answer about {root.name}: {error}.", remedy="Name a chunkhound that works here.") from error


async def _index(program: Path, copy: Path, home: Path) -> float:
    began = time.perf_counter()
    argv = [str(program), "index", str(copy), "--no-embeddings", "--database-provider", "lancedb"]
    with anyio.fail_after(INDEX_SECONDS):
        done = await run_command(argv, cwd=copy, env={"HOME": str(home)})
    if done.returncode != 0:
        raise UnusableData(f"{program} did not index {copy.name}: {done.stderr[-800:]}", remedy="Name a chunkhound that works here.")
    return (time.perf_counter() - began) * 1000


@asynccontextmanager
async def _server(program: Path, home: Path) -> AsyncGenerator[Expert]:
    block = dict(load_preset("chunkhound").experts[EXPERT])
    block |= {"command": [str(program), *block["command"][1:]], "env": {"HOME": str(home)}}
    expert = make_remote_experts({EXPERT: McpConfig.model_validate(block)})[EXPERT]
    try:
        yield expert
    finally:
        await expert.aclose()


async def _search(expert: Expert, root: Path, question: str) -> Found:
    words = tuple(keywords(question)) or (question,)
    pattern = "(?i)" + "|".join(re.escape(word) for word in words)
    asked = SubQuery(QueryForm.REGEX, (pattern,), question)
    project = Project(root.name, root, "directory")
    began = time.perf_counter()
    with anyio.fail_after(ASK_SECONDS):
        answered = await expert.search(ExpertCall(EXPERT, asked, (project,), None, None, PAGE, int(1000 * ASK_SECONDS), 1, "peer"))
    return Found(rank_files(answered.hits, words, root), (time.perf_counter() - began) * 1000)


def rank_files(hits: Sequence[Hit], words: Sequence[str], root: Path) -> list[Result]:
    """Each file at its first hit, those with most different words first."""
    first: dict[str, Hit] = {}
    seen: dict[str, set[str]] = defaultdict(set)
    count: dict[str, int] = defaultdict(int)
    for hit in hits:
        path = (hit.path or "").removeprefix(f"{root}/")
        first.setdefault(path, hit)
        count[path] += 1
        seen[path] |= {word for word in words if word in _text_of(hit, root / path)}
    best = sorted(first, key=lambda path: (-len(seen[path]), -count[path], path))[:DEPTH]
    return [Result(path, first[path].start_line, first[path].end_line) for path in best]


def _text_of(hit: Hit, path: Path) -> str:
    """The lines of a hit, in lower case."""
    lines = path.read_text("utf-8", "replace").splitlines() if path.is_file() else []
    return "\n".join(lines[(hit.start_line or 1) - 1 : hit.end_line]).lower()
