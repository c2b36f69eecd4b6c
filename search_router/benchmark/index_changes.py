"""What edits cost: the first question after one saved file, and after switching between branches that differ in many files."""

from __future__ import annotations

import time
from typing import Final

from search_router.benchmark.corpus import Corpus, commit_all, run_git
from search_router.benchmark.mcp_client import McpClient
from search_router.benchmark.served import cpu_seconds_of
from search_router.benchmark.served_questions import ask, until_ready
from search_router.benchmark.timing import summarise

ROUNDS: Final = 5
OTHER: Final = "other"


async def measure_saves(pid: int, port: int, corpus: Corpus, saves: int) -> dict[str, object]:
    """A line with a name of its own is appended to a file, then that name is asked for: p50 and p95 of the question. `found` counts the
    answers that had the file, `complete` those in which every expert had looked at everything."""
    took: list[float] = []
    found = complete = 0
    used = 0.0
    step = max(1, len(corpus.code) // saves)
    async with McpClient("127.0.0.1", port) as client:
        await until_ready(client)
        for number, path in enumerate(corpus.code[::step][:saves]):
            name = f"savedMarker{number}Quince"
            with (corpus.root / path).open("a") as file:
                file.write(f"\n{name}\n")
            cpu = cpu_seconds_of(pid)
            answered = await ask(client, f"where is {name} defined")
            used += cpu_seconds_of(pid) - cpu
            took.append(answered.ms)
            found += path in answered.paths
            complete += answered.complete
    return {**summarise(took), "cpu_mean_ms": round(1000 * used / len(took), 1), "found": found, "complete": complete}


async def measure_switches(pid: int, port: int, corpus: Corpus, files: int) -> dict[str, object]:
    """A branch that differs in `files` files (or in all there are): the first question after switching to it when it was never indexed,
    and when both sides have been; and how long until an answer is complete. The switch itself is git's and is not measured."""
    chosen = corpus.code[:files]
    commit_all(corpus.root, "saved")
    run_git(corpus.root, "switch", "-q", "-c", OTHER)
    async with McpClient("127.0.0.1", port) as client:
        await until_ready(client)
        for number, path in enumerate(chosen):
            with (corpus.root / path).open("a") as file:
                file.write(f"\nbranchMarker{number}Quince\n")
        commit_all(corpus.root, "many")
        run_git(corpus.root, "switch", "-q", "main")
        await until_ready(client)
        never = await _after_switch(client, corpus, OTHER, f"branchMarker{len(chosen) - 1}Quince", chosen[-1])
        first: list[float] = []
        ready: list[float] = []
        right = 0
        cpu = cpu_seconds_of(pid)
        for number in range(ROUNDS):
            for branch in ("main", OTHER):
                at = number % len(chosen)
                asked, complete, found = await _after_switch(client, corpus, branch, f"branchMarker{at}Quince", chosen[at])
                first.append(asked)
                ready.append(complete)
                right += found == (branch == OTHER)
        used = (cpu_seconds_of(pid) - cpu) * 1000 / (2 * ROUNDS)
    return {
        "files": len(chosen),
        "never_seen": {"first_ms": round(never[0], 1), "complete_ms": round(never[1], 1), "found": never[2]},
        "seen": {"first": summarise(first), "complete": summarise(ready), "cpu_mean_ms": round(used, 1), "right": right, "of": 2 * ROUNDS},
    }


async def _after_switch(client: McpClient, corpus: Corpus, branch: str, marker: str, path: str) -> tuple[float, float, bool]:
    """(milliseconds of the first question, of all until an answer is complete, whether the first one had the file)."""
    run_git(corpus.root, "switch", "-q", branch)
    began = time.perf_counter()
    answered = await ask(client, f"where is {marker} defined")
    if not answered.complete:
        await until_ready(client)
    return answered.ms, (time.perf_counter() - began) * 1000, path in answered.paths
