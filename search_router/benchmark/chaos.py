"""Every fault of a remote server, over stdio and HTTP, while many clients ask: answers in time, true classes, nothing left behind."""

from __future__ import annotations

import os
import secrets
import tempfile
import time
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread

from search_router.adapters.process import run_command
from search_router.benchmark.remote_router import ARGV, fault_site, remote_router
from search_router.schema import Answer

PROTOCOL, REJECTED = "protocol-error", "rejected"
FAULTS: Mapping[str, str] = {
    "none": "ok",
    "junk": "ok",
    "invalid-utf8": "ok",
    "huge": "ok",
    "nothing": "empty",
    "truncated": PROTOCOL,
    "wrong-id": PROTOCOL,
    "null-id": PROTOCOL,
    "surrogate": PROTOCOL,
    "nan": PROTOCOL,
    "prose": PROTOCOL,
    "empty-result": PROTOCOL,
    "no-content": PROTOCOL,
    "is-error": REJECTED,
    "rpc-error": REJECTED,
    "never": "timeout",
    "die": "crashed",
}
HTTP_CLASSES = {"null-id": REJECTED}
"""Over HTTP an error without an id is the only answer in its response, and so it is about this call."""
START_FAULTS: Mapping[str, str] = {
    "die-start": "crashed",
    "never-start": "timeout",
    "old-version": PROTOCOL,
    "no-version": PROTOCOL,
    "refuse-start": "unavailable",
}
SHORT = ("junk", "huge", "truncated", "wrong-id", "is-error", "never", "die", "die-start")
GRACE_MS = 100
BUDGET_MS = 1500
SETTLE_SECONDS, SETTLE_LOOKS = 5.0, 50


def run(clients: int, *, whole: bool) -> dict[str, Any]:
    """Each fault over both transports; `ok` says that every rule held."""
    return anyio.run(_run, clients, whole)


async def _run(clients: int, whole: bool) -> dict[str, Any]:
    token = secrets.token_hex(8)
    await run_command(["true"], cwd=Path("/"))  # the first child opens the lifeline, which stays
    before = _open_files()
    rows: dict[str, Any] = {}
    for name, expected in {**FAULTS, **START_FAULTS}.items():
        if not whole and name not in SHORT:
            continue
        for transport in ("stdio", "http"):
            if transport == "http" and name == "die-start":
                continue  # nobody listens then, which is no fault of a session
            wanted = HTTP_CLASSES.get(name, expected) if transport == "http" else expected
            rows[f"{name} {transport}"] = await _one(name, transport, wanted, clients, token)
    left = await _settle(token)
    files = _open_files() - before
    held = all(row["ok"] for row in rows.values()) and left == 0 and files <= 0
    return {"clients": clients, "budget_ms": BUDGET_MS, **rows, "processes_left": left, "file_handles_left": max(0, files), "ok": held}


async def _one(fault: str, transport: str, expected: str, clients: int, token: str) -> dict[str, Any]:
    """One fault: all clients ask at once, a sound expert beside the faulty one."""
    start = fault if fault in START_FAULTS else "none"
    arguments = {"question": f"fault={fault} {{question}}"}
    env = {"CHAOS_RUN": token, "FAULT_HUGE_MB": "2", "PATH": os.environ.get("PATH", "")}
    sound = {"command": [*ARGV, "stdio"], "env": env, "engine": "sound"}
    with ExitStack() as stack, tempfile.TemporaryDirectory() as folder:
        if transport == "stdio":
            faulty: dict[str, Any] = {"command": [*ARGV, "stdio", start], "env": env}
        else:
            faulty = {"transport": "http", "url": stack.enter_context(fault_site(start, env))}
        blocks = {"faulty": {**faulty, "arguments": arguments, "max_bytes": 100_000}, "sound": sound}
        async with remote_router(Path(folder), blocks) as router:
            await router.search({"question": "warm", "intent": "conceptual", "budget": {"latency_ms": 20_000, "max_experts": 1}})
            answers: list[tuple[Answer, float]] = []

            async def ask(number: int) -> None:
                begun = time.perf_counter()
                request = {"question": f"where does it start {number}", "intent": "conceptual", "budget": {"latency_ms": BUDGET_MS}}
                answer = await router.search(request)
                answers.append((answer, (time.perf_counter() - begun) * 1000))

            async with anyio.create_task_group() as tasks:
                for number in range(clients):
                    tasks.start_soon(ask, number)
    classes = sorted({_status(answer) for answer, _ in answers})
    slowest = max(ms for _, ms in answers)
    receipts = sum(answer.receipt is not None for answer, _ in answers)
    in_time = slowest <= BUDGET_MS + GRACE_MS
    good = classes == [expected] and receipts == clients and in_time
    return {"class": ", ".join(classes), "expected": expected, "slowest_ms": round(slowest), "receipts": receipts, "ok": good}


def _status(answer: Answer) -> str:
    return next((report.status.value for report in answer.experts if report.id == "faulty"), "absent")


# ------------------------------------------------------------------ what is left


def _open_files() -> int:
    """File handles of this process; 0 where nobody can tell."""
    try:
        return sum(1 for _ in Path("/proc/self/fd").iterdir())
    except OSError:
        return 0


async def _settle(token: str) -> int:
    """How many processes of this run are still there after a moment."""
    left = 0
    for _ in range(SETTLE_LOOKS):
        left = await anyio.to_thread.run_sync(_count_marked, token)
        if not left:
            break
        await anyio.sleep(SETTLE_SECONDS / SETTLE_LOOKS)
    return left


def _count_marked(token: str) -> int:
    found = 0
    for entry in Path("/proc").iterdir() if Path("/proc/self").exists() else ():
        if entry.name.isdigit():
            try:
                found += f"CHAOS_RUN={token}".encode() in (entry / "environ").read_bytes().split(b"\0")
            except OSError:
                continue
    return found
