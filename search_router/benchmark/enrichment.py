"""What remembering costs the answer: two routers in one process, one that keeps events, cache and hints, and one that keeps none.

They are asked in turn, without a pause for BLOCK_SECONDS at a time, so that what is written after an answer burdens the next requests of
the same router; what still waits after that is written before the other's turn. The file of the first holds many events already. The
experts are scripted, so that a request is nothing but the router's own work; or they are the default ones over a real checkout.
"""

from __future__ import annotations

import os
import sqlite3
import tempfile
import time
from contextlib import AsyncExitStack
from pathlib import Path

import anyio

from search_router.benchmark.ask import NOTHING_REMEMBERED
from search_router.benchmark.latency import make_questions, sample_names, wait_until_warm
from search_router.benchmark.overhead import QUESTION, make_workspace
from search_router.benchmark.timing import quantile, summarise
from search_router.databases import transaction
from search_router.router.enrich.database import FILE_NAME, open_for_writing
from search_router.router.enrich.events import Event, write_events
from search_router.router.opening import open_router
from search_router.router.service import Router
from search_router.schema import Status

BLOCK_SECONDS = 4.0
"""Several times as long as a record waits to be written."""
SEED = 7
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


async def _open(stack: AsyncExitStack, events: int, root: Path | None) -> Router:
    """A router that remembers, with so many events; `events` < 0: one that remembers nothing."""
    folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
    home = folder / "home"
    home.mkdir()
    environ = {"SEARCH_ROUTER_HOME": str(home), "PATH": os.environ.get("PATH", ""), "HOME": os.environ.get("HOME", str(home))}
    if events < 0:
        environ |= NOTHING
    else:
        database = open_for_writing(home / FILE_NAME)
        fill(database, events)
        database.close()
    flags = make_workspace(folder) if root is None else ()
    return await stack.enter_async_context(open_router(roots=[root or folder / "work"], flags=flags, environ=environ))


async def _questions(router: Router, root: Path | None, count: int) -> list[tuple[str, str]]:
    """(intent, question), each once: an answer from the cache would be no measure of remembering."""
    if root is None:
        return [("conceptual", f"{QUESTION} {number}") for number in range(count)]
    await router.catch_up()
    await wait_until_warm(router)
    return list(dict.fromkeys(make_questions(await sample_names(router, count, SEED))))


async def _ask(router: Router, intent: str, question: str) -> float:
    """Milliseconds."""
    started = time.perf_counter()
    answer = await router.search({"question": question, "intent": intent})
    if answer.receipt is None or answer.status not in (Status.ANSWERED, Status.EMPTY):
        raise RuntimeError(f"unexpected answer: {answer.status}, {answer.error}")
    return (time.perf_counter() - started) * 1000


async def measure(events: int, requests: int, warm_up: int, root: Path | None) -> dict[str, object]:
    took: dict[str, list[float]] = {"without": [], "with": []}
    async with AsyncExitStack() as stack:
        routers = {"without": await _open(stack, -1, root), "with": await _open(stack, events, root)}
        questions = await _questions(routers["without"], root, warm_up + requests)
        if root is not None:
            await routers["with"].catch_up()
            await wait_until_warm(routers["with"])
        warm_up = min(warm_up, len(questions) // 4)
        for router in routers.values():
            for intent, question in questions[:warm_up]:
                await _ask(router, intent, question)
            await router.enrichment.settle()
        questions_left = {name: iter(questions[warm_up:]) for name in routers}
        turn = 0
        while any(len(samples) < len(questions) - warm_up for samples in took.values()):
            for name in took if turn % 2 else reversed(took):
                until = time.perf_counter() + BLOCK_SECONDS
                while time.perf_counter() < until and (asked := next(questions_left[name], None)) is not None:
                    took[name].append(await _ask(routers[name], *asked))
                await routers[name].enrichment.settle()
            turn += 1
        kept = (await routers["with"].experiments()).requests
    ratio = quantile(took["with"], 0.95) / quantile(took["without"], 0.95)
    return {"p95_ratio": round(ratio, 3), **{name: summarise(samples) for name, samples in took.items()}, "filled": events, "kept": kept}


def run(events: int = 100_000, requests: int = 2000, warm_up: int = 50, root: Path | None = None) -> dict[str, object]:
    """`p95_ratio` is with over without. `kept` is how many requests the experiment counts in the end."""
    return anyio.run(measure, events, requests, warm_up, root)
