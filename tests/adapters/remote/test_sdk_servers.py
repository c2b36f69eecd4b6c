"""Our clients against servers made with the official SDK: the handshake, sessions and streams are as they say."""

from __future__ import annotations

import contextlib
import socket
import subprocess
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest

from search_router.errors import ExpertError, FailureClass
from tests.adapters.remote.desk import ITEMS, call_for, config_of, expert_of

pytestmark = [pytest.mark.anyio, pytest.mark.network]
SERVER = Path(__file__).with_name("sdk_server.py")
STRUCTURED = {**ITEMS, "content": "structured"}


@asynccontextmanager
async def running(transport: str, port: int) -> AsyncGenerator[None]:
    argv = [sys.executable, str(SERVER), transport, str(port)]
    with subprocess.Popen(argv, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        try:
            with anyio.fail_after(60):
                while True:
                    with contextlib.suppress(OSError):
                        await (await anyio.connect_tcp("127.0.0.1", port)).aclose()
                        break
                    await anyio.sleep(0.05)
            yield
        finally:
            process.terminate()


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


async def check(config: Any, root: Path) -> None:
    async with expert_of(config) as expert:
        for _ in range(2):
            result = await expert.search(call_for(root, budget_ms=60_000))
            assert [(h.path, h.start_line) for h in result.hits] == [("src/app.py", 4)]
            assert (result.server_name, result.server_version) == ("made with the SDK", "2.3")
        with pytest.raises(ExpertError) as caught:
            await expert.search(call_for(root, "boom", budget_ms=60_000))
        assert caught.value.failure is FailureClass.REJECTED
        assert len((await expert.search(call_for(root, budget_ms=60_000))).hits) == 1


async def test_over_stdio(tmp_path: Path) -> None:
    await check(config_of(command=[sys.executable, str(SERVER), "stdio"], answer=STRUCTURED), tmp_path)


@pytest.mark.parametrize(("transport", "path"), [("http", "mcp"), ("sse", "sse")])
async def test_over_http(tmp_path: Path, transport: str, path: str) -> None:
    port = free_port()
    config = config_of(transport=transport, url=f"http://127.0.0.1:{port}/{path}", answer=STRUCTURED)
    async with running(transport, port):
        await check(config, tmp_path)


async def test_a_session_lives_through_a_restart_of_its_server(tmp_path: Path) -> None:
    port = free_port()
    config = config_of(transport="http", url=f"http://127.0.0.1:{port}/mcp", answer=STRUCTURED)
    async with expert_of(config) as expert:
        for _ in range(2):
            async with running("http", port):
                assert len((await expert.search(call_for(tmp_path, budget_ms=60_000))).hits) == 1
