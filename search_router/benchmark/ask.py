"""One repository's questions, asked through the library's own door in a process of its own; started by `asking`.

Reads one JSON job on standard input, {root, home, warm_up, arms: [{name, flags}], questions: [[id, question]], limit, texts,
candidates, seconds}, and writes JSON lines: one {arm, ready} when an arm's index is complete, then one answer a question. What is warm is
the process and its indexes, never the answer: each question is asked once an arm. `warm_up` is a folder that is indexed before anything is
measured, or "". After `seconds` no further arm is begun; null is without end.
"""

from __future__ import annotations

import json
import os
import resource
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

import anyio

import search_router
from search_router.adapters.local.codesearch import CodeSearchExpert

READY_SECONDS: Final = 900.0
WARM_UP: Final = "read the file"
FAILURES: Final = frozenset({"ok", "empty", "skipped"})


NOTHING_REMEMBERED: Final = {
    "SEARCH_ROUTER__CACHE__POSITIVE_SECONDS": "0",
    "SEARCH_ROUTER__CACHE__NEGATIVE_SECONDS": "0",
    "SEARCH_ROUTER__ENRICH__HINTS": "false",
}
"""What is measured is asked, however often."""


def environment(home: Path) -> dict[str, str]:
    """State of our own below `home`, and nobody's configuration; no cache and no hints, unless flags switch them on."""
    home.mkdir(parents=True, exist_ok=True)
    empty = home / "empty.toml"
    empty.touch()
    kept = {name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ}
    return kept | NOTHING_REMEMBERED | {"SEARCH_ROUTER_HOME": str(home / "state"), "SEARCH_ROUTER_CONFIG": str(empty)}


def cpu_seconds() -> float:
    """User and system time of this process and its finished children."""
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time() + children.ru_utime + children.ru_stime


async def until_ready(search: Callable[[dict[str, object]], Any]) -> None:
    """Ask until no expert says that it has not looked at everything yet. Raises TimeoutError."""
    with anyio.fail_after(READY_SECONDS):
        number = 0
        while True:
            number += 1
            answer = await search({"question": f"{WARM_UP} {number}", "intent": "conceptual", "budget": {"latency_ms": 10_000}})
            if not any("partial" in e.reason or e.status.value in ("timeout", "index-missing") for e in answer.experts):
                return
            await anyio.sleep(0.05)


class _Candidates:
    """The last ranking of the code index, with its signals."""

    def __init__(self, router: search_router.Router) -> None:
        self.ranked: list[dict[str, object]] = []
        for expert in router.experts.values():
            if isinstance(expert, CodeSearchExpert):
                expert.on_ranked = lambda _, files: self.ranked.extend(
                    {"path": f.path, "damping": f.damping, "signals": dict(f.signals)} for f in files
                )

    def take(self) -> list[dict[str, object]]:
        taken, self.ranked = self.ranked, []
        return taken


async def ask_arm(job: Mapping[str, Any], arm: Mapping[str, Any], write: Callable[[dict[str, object]], None]) -> None:
    """Open, make ready, ask everything, write everything."""
    name: str = arm["name"]
    async with search_router.open_router(roots=[job["root"]], flags=arm["flags"], environ=environment(Path(job["home"]))) as router:
        candidates = _Candidates(router) if job["candidates"] else None
        started, cpu = time.perf_counter(), cpu_seconds()
        await until_ready(router.search)
        write({"arm": name, "ready_ms": (time.perf_counter() - started) * 1000, "ready_cpu_ms": (cpu_seconds() - cpu) * 1000})
        await router.catch_up()  # vectors too: an arm whose first questions are ranked without them is another arm
        for question_id, text in job["questions"]:
            if candidates is not None:
                candidates.take()
            started, cpu = time.perf_counter(), cpu_seconds()
            answer = await router.search({"question": text, "limit": job["limit"]})
            took, used = (time.perf_counter() - started) * 1000, (cpu_seconds() - cpu) * 1000
            row: dict[str, object] = {
                "arm": name,
                "id": question_id,
                "ms": took,
                "cpu_ms": used,
                "status": answer.status.value,
                "without_vectors": any("ranked without vectors" in note for note in answer.notes),
                "failed": [e.id for e in answer.experts if e.status.value not in FAILURES],
                "results": [
                    {"id": e.id, "path": e.path, "start": e.start_line, "end": e.end_line} for e in answer.evidence if e.path is not None
                ],
            }
            if job["texts"]:
                row["text"] = router.render(answer)
            if candidates is not None:
                row["candidates"] = candidates.take()
            write(row)


async def ask_all(job: Mapping[str, Any]) -> None:
    def write(row: dict[str, object]) -> None:
        sys.stdout.write(json.dumps(row) + "\n")

    if job["warm_up"]:
        async with search_router.open_router(roots=[job["warm_up"]], environ=environment(Path(job["home"]) / "warm-up")) as router:
            await until_ready(router.search)
    began, longest = time.monotonic(), 0.0
    for arm in job["arms"]:
        started = time.monotonic()
        if job["seconds"] is not None and longest and started - began + longest > job["seconds"]:
            break  # the next one would probably end too late; a first one is always asked
        await ask_arm(job, arm, write)
        longest = max(longest, time.monotonic() - started)


if __name__ == "__main__":
    anyio.run(ask_all, json.load(sys.stdin))
