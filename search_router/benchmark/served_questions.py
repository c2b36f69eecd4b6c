"""Questions to a running server, as a client times them."""

from __future__ import annotations

import asyncio
import itertools
import time
from typing import Any, Final, NamedTuple

from search_router.benchmark.mcp_client import McpClient

READY_SECONDS: Final = 3600.0
PATIENT: Final = {"latency_ms": 10_000}
NOT_READY: Final = frozenset({"timeout", "index-missing"})
_number = itertools.count(1)


class Answered(NamedTuple):
    """The structured answer and the milliseconds that the client waited."""

    content: dict[str, Any]
    ms: float

    @property
    def complete(self) -> bool:
        """Every expert that was asked looked at everything."""
        return not any("partial" in e["reason"] or e["status"] in NOT_READY for e in self.content["experts"])

    @property
    def paths(self) -> list[str]:
        return [e["path"] for e in self.content["evidence"] if e["path"]]


async def ask(client: McpClient, question: str, **more: object) -> Answered:
    """One question, waited for."""
    began = time.perf_counter()
    answer = await client.ask({"question": question, **more})
    return Answered(answer.content, (time.perf_counter() - began) * 1000)


async def until_ready(client: McpClient) -> Answered:
    """Ask until an answer is complete, each time another question. Raises TimeoutError."""
    async with asyncio.timeout(READY_SECONDS):
        while True:
            answered = await ask(client, f"read the file {next(_number)}", intent="conceptual", budget=PATIENT)
            if answered.complete:
                return answered
            await asyncio.sleep(0.02)
