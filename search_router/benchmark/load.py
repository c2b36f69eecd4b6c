"""Many clients at once on one real server process: throughput, latencies, a receipt for every answer, and nothing that leaks.

The experts are scripted, so that the router, the receipts and the HTTP door are what is measured.
"""

from __future__ import annotations

import asyncio
import os
import tempfile
import time
from dataclasses import asdict
from pathlib import Path

from search_router.benchmark.ask import NOTHING_REMEMBERED
from search_router.benchmark.mcp_client import BrokenAnswer, McpClient
from search_router.benchmark.overhead import QUESTION, make_workspace
from search_router.benchmark.served import Resources, http_server, resources_of
from search_router.benchmark.timing import summarise
from search_router.config.loader import load_config
from search_router.router.checking import find_anchors, verify_whole_logs

WARM_UP = 20
REQUEST_SECONDS = 60.0
REST_SECONDS = 5.0


class _Outcome:
    """What all clients saw."""

    def __init__(self) -> None:
        self.latencies: list[float] = []
        self.receipts: list[str] = []
        self.errors: list[str] = []


async def _one_client(port: int, name: int, requests: int, outcome: _Outcome, start: asyncio.Event) -> None:
    await start.wait()
    try:
        async with McpClient("127.0.0.1", port) as client:
            for number in range(requests):
                began = time.perf_counter()
                async with asyncio.timeout(REQUEST_SECONDS):
                    answer = await client.ask({"question": f"{QUESTION} {name} {number}", "intent": "conceptual"})
                outcome.latencies.append((time.perf_counter() - began) * 1000)
                outcome.receipts.append(answer.receipt_id)
                if answer.content["status"] != "answered":
                    outcome.errors.append(f"client {name}: status {answer.content['status']}")
    except (BrokenAnswer, OSError, asyncio.IncompleteReadError, TimeoutError) as error:
        outcome.errors.append(f"client {name}: {error!r}")


async def _all_clients(port: int, clients: int, requests: int) -> tuple[_Outcome, float]:
    """(what they saw, seconds)."""
    outcome, start = _Outcome(), asyncio.Event()
    async with asyncio.TaskGroup() as tasks:
        for name in range(clients):
            tasks.create_task(_one_client(port, name, requests, outcome, start))
        start.set()
        began = time.perf_counter()
    return outcome, time.perf_counter() - began


def _at_rest(pid: int, before: Resources) -> Resources:
    """The server's resources once the last connections are closed, or after REST_SECONDS."""
    until = time.monotonic() + REST_SECONDS
    while (found := resources_of(pid)).files > before.files and time.monotonic() < until:
        time.sleep(0.05)
    return found


def run(clients: int = 100, requests: int = 20) -> dict[str, object]:
    """`clients` at once, each asking `requests` questions one after another.

    `answers` and `receipts` must be equal, `errors` empty and `verified` true. Memory is in MiB; `resources` are the server's before the
    first and after the last client, with a second round after that: what grows from round to round leaks.
    """
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        flags = make_workspace(folder)
        config = folder / "user.toml"
        config.touch()
        kept = {key: value for key, value in os.environ.items() if not key.startswith("SEARCH_ROUTER")}
        environ = kept | NOTHING_REMEMBERED | {"SEARCH_ROUTER_HOME": str(folder / "home"), "SEARCH_ROUTER_CONFIG": str(config)}
        with http_server(folder / "work", flags, environ) as (pid, port):
            asyncio.run(_all_clients(port, 2, WARM_UP))
            before = resources_of(pid)
            outcome, seconds = asyncio.run(_all_clients(port, clients, requests))
            after = _at_rest(pid, before)
            again, _ = asyncio.run(_all_clients(port, clients, requests))
            last = _at_rest(pid, before)
        paths = load_config(roots=[folder / "work"], environ=environ, flags=flags).paths
        logs = verify_whole_logs(paths, find_anchors(paths))
        stored = sum(int(checked.what.split()[-2]) for checked in logs)
    answers = len(outcome.receipts) + len(again.receipts)
    return {
        **summarise(outcome.latencies),
        "answers_per_second": round(len(outcome.latencies) / seconds, 1),
        "clients": clients,
        "answers": answers,
        "receipts": stored - 2 * WARM_UP,
        "distinct_receipts": len({*outcome.receipts, *again.receipts}),
        "errors": [*outcome.errors, *again.errors][:20],
        "verified": all(checked.verdict == "valid" for checked in logs),
        "resources": {"before": asdict(before), "after": asdict(after), "after_second_round": asdict(last)},
    }
