"""Receipts a second, and how long a client waits for one: encoding, signature, chain, tree, commit and sync of one real store.

The statement is that of a real answer of four scripted experts, gathered beforehand as a request does; what gathering costs is said apart.
Clients are tasks of one process, each asking again as soon as its receipt is on disk; checkpoints are made as in service.
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
from search_router.receipts.store import MakePayload, ReceiptStore, open_store
from search_router.receipts.trust import Trust
from search_router.receipts.verify import VerdictKind
from search_router.receipts.whole_log import verify_log
from search_router.router.opening import open_router
from search_router.schema import Answer

CLIENTS = (1, 10, 50, 100)
ROUNDS = 300


async def make_answer(folder: Path) -> Answer:
    """One real answer, whose receipt is then written again and again."""
    environ = {"SEARCH_ROUTER_HOME": str(folder / "home"), "PATH": os.environ.get("PATH", "")}
    async with open_router(roots=[folder / "work"], flags=make_workspace(folder), environ=environ) as router:
        return await router.search({"question": QUESTION, "intent": "conceptual"})


def gather_statement(key: SigningKey, answer: Answer) -> tuple[MakePayload, int]:
    """The statement, and how many microseconds of processor time gathering it takes."""
    digests, request = digest_answer(answer), Digest("jcs", "0" * 64)
    context = ReceiptContext(Build(), "bench", time.time_ns() // 1000, question=QUESTION)
    cpu = time.process_time()
    for _ in range(ROUNDS):
        prepare_statement(answer, digests, request, context, key)
    return prepare_statement(answer, digests, request, context, key), round((time.process_time() - cpu) * 1e6 / ROUNDS)


async def measure_clients(store: ReceiptStore, statement: MakePayload, clients: int, seconds: float) -> dict[str, object]:
    """Receipts a second and the quantiles of one client's wait, in milliseconds."""
    waits: list[float] = []
    started = time.perf_counter()

    async def ask() -> None:
        while time.perf_counter() - started < seconds:
            asked = time.perf_counter()
            await store.append(statement)
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
        statement, gathering = gather_statement(key, answer)
        result: dict[str, object] = {}
        async with open_store(
            folder / "receipts", key, clock=lambda: time.time_ns() // 1000, nonce=lambda: secrets.token_hex(16), checkpoints=plan
        ) as store:
            await measure_clients(store, statement, 1, min(seconds, 0.3))
            for clients in CLIENTS:
                cpu = time.process_time()
                measured = await measure_clients(store, statement, clients, seconds)
                receipts = measured["n"]
                assert isinstance(receipts, int)
                result[f"clients_{clients}"] = measured | {"cpu_us_each": round((time.process_time() - cpu) * 1e6 / receipts)}
        started, cpu = time.perf_counter(), cpu_time()
        (log,) = log_ids(folder / "receipts")
        verdict = verify_log(log_path(folder / "receipts", log), Trust.pinning(key.public))
        spent = (cpu_time() - cpu) * 1e6 / max(1, verdict.rows)
        result["verify"] = {
            "per_second": round(verdict.rows / (time.perf_counter() - started)),
            "cpu_us_each": round(spent),
            "n": verdict.rows,
        }
        result["gathering_cpu_us"] = gathering
        if verdict.kind is not VerdictKind.VALID:
            raise RuntimeError(f"the log is {verdict.kind}: {verdict.reasons}")
        return result


def cpu_time() -> float:
    """Processor seconds of this process and of its children that ended."""
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system


def run(seconds: float = 3.0) -> dict[str, object]:
    """What `search-router bench receipts` prints: `seconds` at each number of clients, then the verification of all that was written."""
    return anyio.run(measure, seconds)
