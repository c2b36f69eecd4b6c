"""How the commit table grows: the first reading of a long made-up history, questions after it, and what one new commit costs.

git itself makes the history (`git fast-import`), some 100,000 commits in seconds; the expert is the real one, with no router around it.
"""

from __future__ import annotations

import asyncio
import random
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from search_router.adapters.local.history import HistoryExpert
from search_router.benchmark.corpus import run_git
from search_router.benchmark.timing import summarise
from search_router.config.experts import HistoryConfig
from search_router.config.loader import load_config
from search_router.schema import ExpertCall, ExpertResult, Intent, Project, QueryForm, SubQuery

FILES: Final = 2000
SCANS: Final = 5
"""So many questions name something in code, and have changes scanned by git within `pickaxe_ms`."""
STILL_READ: Final = "the words of changes are still being read"
BUILD_SECONDS: Final = 3600.0
WORDS: Final = (
    "retry parser cookie token cache index socket header buffer queue worker schema cursor digest ledger payment router session filter "
    "stream packet branch render layout kernel thread signal window driver module"
).split()
NEW_WORDS: Final = tuple(f"zebra{letter * 3}" for letter in "abcdefghij")
"""Which no commit has before."""


def fast_import_stream(commits: int, seed: int) -> Iterator[bytes]:
    """The input of `git fast-import` for a straight history: each commit writes one of FILES files, in words that tell it from others."""
    chance = random.Random(seed)  # noqa: S311 - reproducible, no secret
    for number in range(commits):
        words = chance.sample(WORDS, 4)
        message = f"Change {words[0]} and {words[1]} of {part_name(number)}\n".encode()
        text = "".join(f"def {w}_{chance.randrange(10_000)}():\n    return {number}\n" for w in words).encode()
        path = f"src/area{number % 40}/{WORDS[number % len(WORDS)]}_{number % FILES}.py"
        stamp = f"A Person <person@example.org> {1_400_000_000 + number * 600} +0000"
        yield f"commit refs/heads/main\ncommitter {stamp}\ndata {len(message)}\n".encode() + message
        yield f"M 100644 inline {path}\ndata {len(text)}\n".encode() + text + b"\n"


def part_name(number: int) -> str:
    """A word for one commit alone, of letters, so that it does not look like a name in code."""
    return "part" + "".join("abcdefghij"[int(digit)] for digit in str(number)) + "x"


def make_history(root: Path, commits: int, seed: int = 1) -> None:
    """A repository with so many commits. Raises UnusableData when git fails."""
    root.mkdir(parents=True)
    run_git(root, "init", "-q", "-b", "main")
    stream = root.parent / f"{root.name}.stream"
    with stream.open("wb") as file:
        file.writelines(fast_import_stream(commits, seed))
    with stream.open("rb") as file:
        run_git(root, "fast-import", "--quiet", stdin=file)
    stream.unlink()
    run_git(root, "reset", "-q", "--hard", "main")


def add_commit(root: Path, word: str) -> None:
    """One more commit, whose message and text have this word."""
    (root / "added.txt").write_text(f"{word}\n", "utf-8")
    run_git(root, "add", "-A")
    run_git(root, "-c", "user.name=A", "-c", "user.email=a@example.org", "commit", "-q", "-m", f"Bring in {word}")


async def _measure(folder: Path, commits: int, questions: int, added: int) -> dict[str, object]:
    root = folder / "work"
    started = time.perf_counter()
    await asyncio.to_thread(make_history, root, commits)
    made = time.perf_counter() - started
    config = load_config(roots=[], environ={"SEARCH_ROUTER_HOME": str(folder / "home")}).config.experts["history"]
    assert isinstance(config, HistoryConfig)
    project = Project(id="work", root=root, kind="git")
    chance = random.Random(2)  # noqa: S311 - reproducible, no secret
    expert = HistoryExpert("history", config, folder / "cache")
    try:
        started, cpu = time.perf_counter(), time.process_time()
        await expert.search(_call("why was the retry changed", project))
        first = time.perf_counter() - started
        await _ask_until(expert, project, messages=True)
        read = time.perf_counter() - started
        await _ask_until(expert, project, messages=False)
        summarised, used = time.perf_counter() - started, time.process_time() - cpu
        warm: list[float] = []
        burnt: list[float] = []
        for _ in range(questions):
            word, words = part_name(chance.randrange(commits)), chance.sample(WORDS, 2)
            cpu = time.process_time()
            warm.append(await _timed(expert, project, f"when was {words[0]} {words[1]} changed for {word}", word))
            burnt.append((time.process_time() - cpu) * 1000)
        scanned = [await _timed(expert, project, f"when was `{part_name(chance.randrange(commits))}` changed", "") for _ in range(SCANS)]
        after: list[float] = []
        for word in NEW_WORDS[:added]:
            await asyncio.to_thread(add_commit, root, word)
            after.append(await _timed(expert, project, f"which commit brought in {word}", word))
    finally:
        await expert.aclose()
    again = HistoryExpert("history", config, folder / "cache")
    try:
        restarted = await _timed(again, project, f"which commit brought in {NEW_WORDS[0]}", NEW_WORDS[0])
    finally:
        await again.aclose()
    return {
        "commits": commits,
        "made_by_git_s": round(made, 1),
        "first_answer_s": round(first, 2),
        "messages_read_s": round(read, 1),
        "changes_read_s": round(summarised, 1),
        "cpu_s": round(used, 1),
        "question": summarise(warm),
        "question_cpu": summarise(burnt),
        "pickaxe": summarise(scanned),
        "after_a_commit": summarise(after),
        "new_process_ms": round(restarted, 1),
        "disk_mib": round(sum(p.stat().st_size for p in (folder / "cache").rglob("*") if p.is_file()) / 2**20, 1),
    }


async def _timed(expert: HistoryExpert, project: Project, question: str, word: str) -> float:
    """Milliseconds of one question. Raises RuntimeError when the commit that has the word is not among the first five."""
    started = time.perf_counter()
    result = await expert.search(_call(question, project, 60_000))
    took = (time.perf_counter() - started) * 1000
    if not any(hit.commit is not None and word in hit.commit.subject for hit in result.hits[:5]):
        raise RuntimeError(f"the commit with {word} was not found: {result.partial or result.notes}")
    return took


async def _ask_until(expert: HistoryExpert, project: Project, *, messages: bool) -> None:
    """Ask until all messages, or also all changes, are read."""
    async with asyncio.timeout(BUILD_SECONDS):
        while True:
            result = await expert.search(_call("why was the retry changed", project))
            if result.partial is None and (messages or not _is_being_read(result)):
                return
            await asyncio.sleep(0.2)


def _is_being_read(result: ExpertResult) -> bool:
    return any(STILL_READ in note for note in result.notes)


def _call(question: str, project: Project, budget_ms: int = 2500) -> ExpertCall:
    return ExpertCall(
        "history", SubQuery(QueryForm.TEXT, (), question), (project,), None, None, 10, budget_ms, 1000, "measured", Intent.HISTORY
    )


def run(commits: int, questions: int, added: int) -> dict[str, object]:
    """Seconds until messages and changes of a made-up history are read, milliseconds of questions then, right after one more commit, and of
    the first question of a new process.

    Raises:
        UnusableData: git fails.
        RuntimeError: a question did not find its commit.
    """
    with tempfile.TemporaryDirectory() as name:
        return asyncio.run(_measure(Path(name), commits, questions, added))
