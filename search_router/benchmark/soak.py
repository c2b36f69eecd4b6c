"""How many clients a server bears, and whether it stays as it was: a ladder of clients, then hours at half of what it bears.

The ladder asks with 1, 10, 50 and 100 clients over HTTP, and with as many callers on one process over its standard streams. The *knee* is
the last step that brought at least a tenth more answers a second; the *ceiling* is the most that any step answered. The soak asks at half
the ceiling over HTTP, a question at its time whether or not the one before has come back, so that a server that falls behind is seen (open
loop; closed loops hide it: Schroeder et al., NSDI 2006). Its time is cut into windows; *drift* compares the last quarter of the windows
with the second.
"""

from __future__ import annotations

import asyncio
import os
import statistics
import tempfile
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from search_router.benchmark.ask import environment
from search_router.benchmark.fixture_run import NO_MEMORY
from search_router.benchmark.mcp_client import Answer, BrokenAnswer, McpClient
from search_router.benchmark.report import circumstances, write_line, write_table
from search_router.benchmark.served import http_server, resources_of
from search_router.benchmark.stdio_client import StdioServer
from search_router.benchmark.timing import quantile, summarise
from search_router.config.loader import load_config
from search_router.router.checking import find_anchors, verify_whole_logs

LADDER: Final = (1, 10, 50, 100)
GAIN: Final = 1.1
WINDOWS: Final = 12
REQUEST_SECONDS: Final = 120.0
READY_SECONDS: Final = 600.0
QUESTIONS: Final = (
    {"question": "how is a request retried after a failure"},
    {"question": "where is parse_header defined"},
    {"question": 'grep for "not found"'},
    {"question": "who calls parse_header()"},
    {"question": "when was the parser changed"},
    {"question": "documentation of the configuration"},
)
LIMITS: Final = {"p95_ms": 1.5, "p99_ms": 2.0, "rss_mib": 1.2, "files": 1.1, "threads": 1.2, "children": 1.0}
"""What the last windows may be of the earlier ones; small absolute growth is allowed beside it."""
ROOM: Final = {"p95_ms": 50.0, "p99_ms": 200.0, "rss_mib": 32.0, "files": 8.0, "threads": 8.0, "children": 2.0}
Ask = Callable[[dict[str, Any]], Awaitable[Answer]]


@dataclass(slots=True)
class Tally:
    """What clients saw. Latencies in milliseconds; errors are sentences."""

    ms: list[float] = field(default_factory=list[float])
    receipts: list[str] = field(default_factory=list[str])
    errors: list[str] = field(default_factory=list[str])

    async def ask(self, ask: Ask, number: int) -> None:
        began = time.perf_counter()
        try:
            async with asyncio.timeout(REQUEST_SECONDS):
                answer = await ask(QUESTIONS[number % len(QUESTIONS)])
        except (BrokenAnswer, OSError, asyncio.IncompleteReadError, TimeoutError) as error:
            self.errors.append(repr(error)[:200])
            return
        self.ms.append((time.perf_counter() - began) * 1000)
        self.receipts.append(answer.receipt_id)
        if answer.content["status"] not in ("answered", "empty", "cached"):
            self.errors.append(f"status {answer.content['status']}")


async def _step(askers: Sequence[Ask], seconds: float) -> dict[str, Any]:
    """All askers at once, one question after another each, for so long."""
    tally, until = Tally(), time.monotonic() + seconds

    async def one(at: int, ask: Ask) -> None:
        number = at
        while time.monotonic() < until:
            await tally.ask(ask, number)
            number += 1

    began = time.perf_counter()
    async with asyncio.TaskGroup() as tasks:
        for at, ask in enumerate(askers):
            tasks.create_task(one(at, ask))
    took = time.perf_counter() - began
    figures = summarise(tally.ms) if tally.ms else {"n": 0}
    return {**figures, "clients": len(askers), "answers_per_second": round(len(tally.ms) / took, 2), "errors": tally.errors[:5]}


def knee_of(steps: Sequence[dict[str, Any]]) -> int:
    """The clients of the last step that answered at least a tenth more a second than the best one before."""
    best, knee = 0.0, steps[0]["clients"]
    for step in steps:
        if step["answers_per_second"] >= best * GAIN:
            knee = step["clients"]
        best = max(best, step["answers_per_second"])
    return knee


async def _until_answering(ask: Ask) -> None:
    """Ask each kind of question until nobody is partial or late."""
    async with asyncio.timeout(READY_SECONDS):
        for question in QUESTIONS:
            while True:
                answer = await ask({**question, "budget": {"latency_ms": 30_000}})
                if not any("partial" in e["reason"] or e["status"] in ("timeout", "index-missing") for e in answer.content["experts"]):
                    break
                await asyncio.sleep(0.2)


async def _ladder_http(port: int, seconds: float) -> list[dict[str, Any]]:
    steps: list[dict[str, Any]] = []
    for clients in LADDER:
        opened = [McpClient("127.0.0.1", port) for _ in range(clients)]
        for client in opened:
            await client.__aenter__()
        try:
            steps.append(await _step([client.ask for client in opened], seconds))
        finally:
            for client in opened:
                await client.__aexit__(None, None, None)
    return steps


async def _ladder_stdio(root: Path, flags: Sequence[str], environ: dict[str, str], seconds: float) -> list[dict[str, Any]]:
    async with StdioServer(root, flags, environ) as server:
        await _until_answering(server.ask)
        return [await _step([server.ask] * clients, seconds) for clients in LADDER]


def _children_of(pid: int) -> int:
    path = Path(f"/proc/{pid}/task/{pid}/children")
    return len(path.read_text("utf-8").split()) if path.exists() else 0


def _mib_below(folder: Path) -> float:
    return sum(p.stat().st_size for p in folder.rglob("*") if p.is_file()) / 2**20


async def _soak(pid: int, port: int, rate: float, seconds: float, store: Path) -> dict[str, Any]:
    """Open loop: `rate` questions a second, whoever is still waiting."""
    windows: list[dict[str, float]] = []
    total = Tally()
    tasks: set[asyncio.Task[None]] = set()
    number = 0

    async def one(tally: Tally, at: int) -> None:
        async def ask(question: dict[str, Any]) -> Answer:
            async with McpClient("127.0.0.1", port) as client:  # a connection each: an idle one would be closed by the server
                return await client.ask(question)

        await tally.ask(ask, at)

    for _ in range(WINDOWS):
        tally, due = Tally(), time.monotonic()
        until = due + seconds / WINDOWS
        while due < until:
            task = asyncio.create_task(one(tally, number))
            tasks.add(task)
            task.add_done_callback(tasks.discard)
            number += 1
            due += 1 / rate
            await asyncio.sleep(max(0.0, due - time.monotonic()))
        await asyncio.gather(*tasks)
        seen = resources_of(pid)
        windows.append(
            {
                "p95_ms": quantile(tally.ms, 0.95) if tally.ms else 0.0,
                "p99_ms": quantile(tally.ms, 0.99) if tally.ms else 0.0,
                "rss_mib": seen.rss_mib,
                "files": seen.files,
                "threads": seen.threads,
                "children": _children_of(pid),
                "store_mib": await asyncio.to_thread(_mib_below, store),
            }
        )
        for name in ("ms", "receipts", "errors"):
            getattr(total, name).extend(getattr(tally, name))
    return {"windows": windows, "answers": len(total.ms), "receipts": total.receipts, "errors": total.errors, "asked": number}


def drift_of(windows: Sequence[dict[str, float]]) -> dict[str, dict[str, float | bool]]:
    """For each quantity the median of the second quarter of the windows, that of the last, and whether the growth is within limits."""
    quarter = max(1, len(windows) // 4)
    found: dict[str, dict[str, float | bool]] = {}
    for name, limit in LIMITS.items():
        before = statistics.median(w[name] for w in windows[quarter : 2 * quarter] or windows[:quarter])
        after = statistics.median(w[name] for w in windows[-quarter:])
        found[name] = {"before": round(before, 2), "after": round(after, 2), "ok": after <= max(before * limit, before + ROOM[name])}
    return found


def run(root: Path, seconds: float, step_seconds: float, flags: Sequence[str] = ()) -> dict[str, Any]:
    """The ladders and the soak over a checkout. `ok` is false when an answer is lost, a log is not valid, or something drifts."""
    with tempfile.TemporaryDirectory() as name:
        environ = environment(Path(name)) | {key: value for key, value in os.environ.items() if key in ("PYTHONPATH", "VIRTUAL_ENV")}
        store = Path(name) / "state" / "receipts"
        flags = (*NO_MEMORY, *flags)
        with http_server(root, flags, environ) as (pid, port):
            first = McpClient("127.0.0.1", port)

            async def http() -> tuple[list[dict[str, Any]], dict[str, Any], float]:
                async with first:
                    await _until_answering(first.ask)
                steps = await _ladder_http(port, step_seconds)
                rate = max(0.1, max(step["answers_per_second"] for step in steps) / 2)
                return steps, await _soak(pid, port, rate, seconds, store), rate

            steps, soak, rate = asyncio.run(http())
        stdio = asyncio.run(_ladder_stdio(root, flags, environ, step_seconds))
        paths = load_config(roots=[root], environ=environ, flags=flags).paths
        valid = all(checked.verdict == "valid" for checked in verify_whole_logs(paths, find_anchors(paths)))
    drift = drift_of(soak["windows"])
    lost = soak["asked"] - soak["answers"]
    errors = [*soak["errors"], *(error for step in (*steps, *stdio) for error in step["errors"])]
    return {
        "circumstances": circumstances(),
        "http": {"steps": steps, "knee": knee_of(steps)},
        "stdio": {"steps": stdio, "knee": knee_of(stdio)},
        "soak": {
            "seconds": seconds,
            "rate": round(rate, 2),
            "asked": soak["asked"],
            "lost": lost,
            "windows": soak["windows"],
            "drift": drift,
        },
        "distinct_receipts": len(set(soak["receipts"])) == len(soak["receipts"]),
        "logs_valid": valid,
        "errors": errors[:10],
        "ok": valid and not errors and not lost and all(each["ok"] for each in drift.values()),
    }


def print_soak(result: dict[str, Any]) -> None:
    for door in ("http", "stdio"):
        rows = [[s["clients"], s["answers_per_second"], s.get("p50_ms"), s.get("p95_ms"), s.get("p99_ms")] for s in result[door]["steps"]]
        write_table(("clients", "answers/s", "p50 ms", "p95 ms", "p99 ms"), rows, f"{door}: knee at {result[door]['knee']}")
    soak = result["soak"]
    write_table(
        ("drift", "before", "after", "within limits"),
        [[name, each["before"], each["after"], "yes" if each["ok"] else "NO"] for name, each in soak["drift"].items()],
        f"{soak['asked']} questions in {soak['seconds']:.0f} s, {soak['rate']} a second, {soak['lost']} lost",
    )
    write_line(f"logs valid: {result['logs_valid']}; errors: {result['errors'] or 'none'}; {'ok' if result['ok'] else 'NOT OK'}")
