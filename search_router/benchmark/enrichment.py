"""What remembering costs the answer: two routers in one process, one that keeps events, cache and hints, and one that keeps none.

They are asked in turn, BLOCK requests without a pause at a time, so that what is written after an answer burdens the next requests of the
same router and not the other's. The file of the first holds many events already.
"""

from __future__ import annotations

import os
import sqlite3
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import AsyncExitStack
from pathlib import Path

import anyio

from search_router.benchmark.ask import NOTHING_REMEMBERED
from search_router.benchmark.overhead import QUESTION, make_workspace
from search_router.benchmark.timing import quantile, summarise
from search_router.router.enrich.database import FILE_NAME, open_for_writing, transaction
from search_router.router.enrich.events import Event, write_events
from search_router.router.service import Router, open_router

BLOCK = 25
NOTHING = NOTHING_REMEMBERED | {"SEARCH_ROUTER__ENRICH__EVENTS": "false"}


def fill(database: sqlite3.Connection, count: int) -> None:
    """`count` events of one request and four calls each, of the last hours."""
    now = time.time_ns() // 1000
    with transaction(database):
        for number in range(count):
            expert = None if number % 5 == 0 else f"scripted-{number % 5}"
            event = Event(
                event_id=f"filled-{number}",
                time_us=now - (count - number) * 1000,
                paper_slug="moe-search-router",
                run_id="filled",
                kind="request" if expert is None else "call",
                operation="search",
                arm=expert or "router",
                expert_id=expert,
                task_class="conceptual",
                question_hash="0" * 64,
                status="answered" if expert is None else "ok",
                latency_ms=12.5,
                result_count=10,
                precision_class=None if expert is None else "lexical",
                hit_miss="hit",
                cache=None,
                config_version="search-router@1.0.0",
                config_hash="0" * 64,
                receipt_id=f"000000000000:{number // 5 + 1}",
                session="filled",
                principal="local",
            )
            write_events(database, (event,))


def _turns(names: Sequence[str], count: int) -> Iterator[tuple[str, int]]:
    """(router, number of its request), in blocks; who begins changes from block to block."""
    for start in range(0, count, BLOCK):
        for name in names if start // BLOCK % 2 else reversed(names):
            yield from ((name, number) for number in range(start, min(start + BLOCK, count)))


async def measure(events: int, requests: int, warm_up: int) -> dict[str, object]:
    took: dict[str, list[float]] = {"without": [], "with": []}
    async with AsyncExitStack() as stack:
        routers: dict[str, Router] = {}
        for name in took:
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
            home = folder / "home"
            home.mkdir()
            if name == "with":
                database = open_for_writing(home / FILE_NAME)
                fill(database, events)
                database.close()
            environ = {"SEARCH_ROUTER_HOME": str(home), "PATH": os.environ.get("PATH", "")} | (NOTHING if name == "without" else {})
            opened = open_router(roots=[folder / "work"], flags=make_workspace(folder), environ=environ)
            routers[name] = await stack.enter_async_context(opened)
        for name, number in _turns(tuple(routers), warm_up + requests):
            router = routers[name]
            started = time.perf_counter()
            answer = await router.search({"question": f"{QUESTION} {number}", "intent": "conceptual"})
            if answer.receipt is None or not answer.evidence:
                raise RuntimeError(f"unexpected answer: {answer.status}, {answer.error}")
            if number >= warm_up:
                took[name].append((time.perf_counter() - started) * 1000)
        kept = (await routers["with"].experiments()).requests
    ratio = quantile(took["with"], 0.95) / quantile(took["without"], 0.95)
    return {"p95_ratio": round(ratio, 3), **{name: summarise(samples) for name, samples in took.items()}, "filled": events, "kept": kept}


def run(events: int = 100_000, requests: int = 400, warm_up: int = 50) -> dict[str, object]:
    """`p95_ratio` is with over without. `kept` is how many requests the experiment counts in the end."""
    return anyio.run(measure, events, requests, warm_up)
