"""Callers that share one `search-router serve` process over its standard streams: many questions in flight on one pipe."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

from search_router.benchmark.mcp_client import Answer, BrokenAnswer, call_message, read_answer

STOP_SECONDS: Final = 10.0
LINE_BYTES: Final = 2**24


class StdioServer:
    """One server process; `ask` may be called any number of times at once."""

    def __init__(self, root: Path, flags: Sequence[str], environ: Mapping[str, str]) -> None:
        options = [option for flag in flags for option in ("--set", flag)]
        self._argv = [sys.executable, "-m", "search_router", "serve", "--transport", "stdio", "--root", str(root), *options]
        self._environ = dict(environ)
        self._waiting: dict[int, asyncio.Future[dict[str, Any]]] = {}
        self._number = 0
        self._process: asyncio.subprocess.Process | None = None
        self._reader: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Self:
        pipe, none = asyncio.subprocess.PIPE, asyncio.subprocess.DEVNULL
        self._process = await asyncio.create_subprocess_exec(
            *self._argv, stdin=pipe, stdout=pipe, stderr=none, env=self._environ, limit=LINE_BYTES
        )
        self._reader = asyncio.create_task(self._read(), name="read the server")
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        assert self._process is not None and self._process.stdin is not None and self._reader is not None
        self._process.stdin.close()
        try:
            await asyncio.wait_for(self._process.wait(), STOP_SECONDS)
        except TimeoutError:
            self._process.kill()
            await self._process.wait()
        self._reader.cancel()
        with suppress(asyncio.CancelledError):
            await self._reader

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    async def ask(self, question: dict[str, Any]) -> Answer:
        """Ask and wait. Raises BrokenAnswer when the answer is none or the server has ended."""
        assert self._process is not None and self._process.stdin is not None
        self._number += 1
        number = self._number
        answer = self._waiting[number] = asyncio.get_running_loop().create_future()
        try:
            self._process.stdin.write(json.dumps(call_message(number, question)).encode() + b"\n")
            await self._process.stdin.drain()
            return read_answer(await answer)
        finally:
            self._waiting.pop(number, None)

    async def _read(self) -> None:
        assert self._process is not None and self._process.stdout is not None
        async for line in self._process.stdout:
            message = json.loads(line)
            waiting = self._waiting.get(message.get("id"))
            if waiting is not None and not waiting.done():
                waiting.set_result(message)
        for waiting in self._waiting.values():
            if not waiting.done():
                waiting.set_exception(BrokenAnswer("the server has ended"))
