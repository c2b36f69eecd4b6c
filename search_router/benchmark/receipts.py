"""Receipts a second, and how long a client waits for one: statement, signature, tree, commit and sync of one real store.

The statement is that of a real answer of four scripted experts. Clients are tasks of one process, each asking again as soon as its receipt
is on disk; checkpoints are made as in service.
"""

from __future__ import annotations

import os
import secrets
import tempfile
import time
from pathlib import Path

import anyio

from search_router.benchmark.overhead import QUESTION, make_workspace
from search_router.benchmark.timing import summarise
from search_router.receipts.body import Build, ReceiptContext, digest_answer, prepare_statement
from search_router.receipts.checkpointer import CheckpointPlan
from search_router.receipts.keys import SigningKey, load_or_create_key
from search_router.receipts.log import log_ids, log_path
from search_router.receipts.statement import Digest
from search_router.receipts.store import ReceiptStore, open_store
from search_router.receipts.trust import Trust
from search_router.receipts.verify import VerdictKind
from search_router.receipts.whole_log import verify_log
from search_router.router.service import open_router
from search_router.schema import Answer

CLIENTS = (1, 10, 50, 100)


async def make_answer(folder: Path) -> Answer:
    """One real answer, whose receipt is then written again and again."""
    environ = {"SEARCH_ROUTER_HOME": str(folder / "home"), "PATH": os.environ.get("PATH", "")}
    async with open_router(roots=[folder / "work"], flags=make_workspace(folder), environ=environ) as router:
        return await router.search({"question": QUESTION, "intent": "conceptual"})


async def measure_clients(store: ReceiptStore, key: SigningKey, answer: Answer, clients: int, seconds: float) -> dict[str, object]:
    """Receipts a second and the quantiles of one client's wait, statement included, in milliseconds."""
    digests, request = digest_answer(answer), Digest("jcs", "0" * 64)
    context = ReceiptContext(Build(), "bench", time.time_ns() // 1000, question=QUESTION)
    waits: list[float] = []
    started = time.perf_counter()

    async def ask() -> None:
        while time.perf_counter() - started < seconds:
            asked = time.perf_counter()
            await store.append(prepare_statement(answer, digests, request, context, key))
            waits.append((time.perf_counter() - asked) * 1000)

    async with anyio.create_task_group() as tasks:
        for _ in range(clients):
            tasks.start_soon(ask)
    return {"per_second": round(len(waits) / (time.perf_counter() - started)), **summarise(waits)}


async def measure(seconds: float) -> dict[str, object]:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        answer = await make_answer(folder)
        key = load_or_create_key(folder / "keys" / "receipts.pem")
        plan = CheckpointPlan(folder / "checkpoints", load_or_create_key(folder / "keys" / "checkpoints.pem"))
        result: dict[str, object] = {}
        async with open_store(
            folder / "receipts", key, clock=lambda: time.time_ns() // 1000, nonce=lambda: secrets.token_hex(16), checkpoints=plan
        ) as store:
            await measure_clients(store, key, answer, 1, min(seconds, 0.3))
            for clients in CLIENTS:
                cpu = time.process_time()
                measured = await measure_clients(store, key, answer, clients, seconds)
                receipts = measured["n"]
                assert isinstance(receipts, int)
                result[f"clients_{clients}"] = measured | {"cpu_us_each": round((time.process_time() - cpu) * 1e6 / receipts)}
        started, cpu = time.perf_counter(), time.process_time()
        (log,) = log_ids(folder / "receipts")
        verdict = verify_log(log_path(folder / "receipts", log), Trust.pinning(key.public))
        result["verify"] = {
            "per_second": round(verdict.rows / (time.perf_counter() - started)),
            "cpu_us_each": round((time.process_time() - cpu) * 1e6 / max(1, verdict.rows)),
            "n": verdict.rows,
        }
        if verdict.kind is not VerdictKind.VALID:
            raise RuntimeError(f"the log is {verdict.kind}: {verdict.reasons}")
        return result


def run(seconds: float = 3.0) -> dict[str, object]:
    """What `search-router bench receipts` prints: `seconds` at each number of clients, then the verification of all that was written."""
    return anyio.run(measure, seconds)
