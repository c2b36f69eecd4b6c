"""What a warm call costs through our MCP adapter, and through the SDK's bare client, in one run against the same kind of server."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import anyio
from mcp import Client, StdioServerParameters

from search_router.adapters.remote.kinds import make_remote_experts
from search_router.benchmark.remote_router import ARGV, BLOCK, fault_site
from search_router.benchmark.timing import quantile
from search_router.config.remote import McpConfig
from search_router.schema import ExpertCall, Project, QueryForm, SubQuery

ROUND = 10
"""Calls of one kind before it is the other's turn: the machine's moods meet both."""


def run(calls: int) -> dict[str, Any]:
    """Median milliseconds a call, and their ratio, over stdio and streamable HTTP."""
    return anyio.run(_run, calls)


async def _run(calls: int) -> dict[str, Any]:
    with fault_site() as url:
        stdio = await _compare(StdioServerParameters(command=ARGV[0], args=[*ARGV[1:], "stdio"]), {"command": [*ARGV, "stdio"]}, calls)
        http = await _compare(url, {"transport": "http", "url": url}, calls)
    return {"calls": calls, "stdio": stdio, "http": http}


async def _compare(theirs: StdioServerParameters | str, ours: dict[str, Any], calls: int) -> dict[str, float]:
    config = McpConfig.model_validate({**BLOCK, **ours})
    expert = make_remote_experts({"expert": config})["expert"]
    project = Project("work", Path("/"), "directory")
    asked = ExpertCall("expert", SubQuery(QueryForm.TEXT, (), "where"), (project,), None, None, 10, 60_000, 1, "bench")
    try:
        async with Client(theirs, mode="legacy") as client:

            async def bare() -> object:
                return await client.call_tool("search", {"question": "where"})

            async def adapter() -> object:
                return await expert.search(asked)

            samples: dict[str, list[float]] = {"bare": [], "adapter": []}
            for kind in (bare, adapter):
                await _time(kind, ROUND)
            for _ in range(max(1, calls // ROUND)):
                samples["bare"] += await _time(bare, ROUND)
                samples["adapter"] += await _time(adapter, ROUND)
    finally:
        await expert.aclose()
    middle = {name: quantile(values, 0.5) for name, values in samples.items()}
    return {
        "bare_ms": round(middle["bare"], 3),
        "adapter_ms": round(middle["adapter"], 3),
        "ratio": round(middle["adapter"] / middle["bare"], 3),
    }


async def _time(call: Callable[[], Awaitable[object]], times: int) -> list[float]:
    found: list[float] = []
    for _ in range(times):
        begun = time.perf_counter()
        await call()
        found.append((time.perf_counter() - begun) * 1000)
    return found
