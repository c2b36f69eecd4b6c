"""An MCP server as a child process: newline-delimited JSON-RPC over its standard input and output.

Not the SDK's client: that waits for its deadline on answers that cannot be read, has no cap on an answer (20 MB in one line stall the event
loop for ten seconds), and knows neither exit code nor standard error when the child dies. See docs/decisions/0016.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
from collections.abc import AsyncGenerator, Mapping
from pathlib import Path
from typing import Any

import anyio
from anyio.abc import ByteReceiveStream, Process

from search_router.adapters.process import STDERR_KEPT, open_child
from search_router.adapters.remote.framing import LineReader
from search_router.adapters.remote.link import Link, Target
from search_router.adapters.remote.rpc import Exchange, Reply
from search_router.errors import ExpertError, FailureClass
from search_router.redact import scrub

UNSENT_MESSAGES = 1000
POLITE_SECONDS = 0.4
"""How long a child has to leave after its input has ended, and again after SIGTERM; then its group is killed."""
LAST_WORDS_SECONDS = 0.2
STDERR_SHOWN = 600


class StdioLink:
    """A running child. Made by `open_stdio`."""

    def __init__(self, process: Process, target: Target) -> None:
        self._process = process
        self._target = target
        self._unsent: asyncio.Queue[bytes] = asyncio.Queue(UNSENT_MESSAGES)
        self._stderr = bytearray()
        self._heard = asyncio.Event()
        self._gone = asyncio.Event()
        self._why = ""
        self._exchange = Exchange(self._send, self._roots)

    @property
    def noise(self) -> int:
        return self._exchange.noise

    async def call(self, method: str, params: Mapping[str, Any] | None, seconds: float) -> Reply:
        return await self._exchange.call(method, params, seconds)

    async def notify(self, method: str) -> None:
        self._exchange.notify(method)

    async def ended(self) -> str:
        await self._gone.wait()
        return self._why

    def agree(self, version: str) -> None:
        self._exchange.version = version

    async def run(self) -> None:
        """Move bytes until the child closes its output."""
        assert self._process.stdout is not None and self._process.stderr is not None
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._read_stderr, self._process.stderr)
            tasks.start_soon(self._write)
            over = asyncio.Event()
            tasks.start_soon(self._read, self._process.stdout, over)
            tasks.start_soon(self._watch, over)
            await over.wait()
            await self._say_end()
            tasks.cancel_scope.cancel()

    def _send(self, message: bytes) -> None:
        try:
            self._unsent.put_nowait(message)
        except asyncio.QueueFull:
            raise ExpertError(FailureClass.BUSY, f"The server has not read its last {UNSENT_MESSAGES} messages.") from None

    async def _write(self) -> None:
        assert self._process.stdin is not None
        with contextlib.suppress(anyio.BrokenResourceError, anyio.ClosedResourceError):  # it is leaving; its output says so as well
            while True:
                await self._process.stdin.send(await self._unsent.get() + b"\n")

    async def _read(self, stdout: ByteReceiveStream, over: asyncio.Event) -> None:
        reader = LineReader(self._target.max_bytes)
        with contextlib.suppress(anyio.BrokenResourceError, anyio.ClosedResourceError):
            async for chunk in stdout:
                for line in reader.feed(chunk):
                    self._exchange.receive(line)
        if (rest := reader.finish()) is not None:
            self._exchange.receive(rest)
        over.set()

    async def _watch(self, over: asyncio.Event) -> None:
        """A child that has died is over, even when a grandchild still holds its output open."""
        await self._process.wait()
        with anyio.move_on_after(LAST_WORDS_SECONDS):
            await over.wait()
        over.set()

    async def _read_stderr(self, stderr: ByteReceiveStream) -> None:
        with contextlib.suppress(anyio.BrokenResourceError, anyio.ClosedResourceError):
            async for chunk in stderr:
                self._stderr.extend(chunk)
                del self._stderr[:-STDERR_KEPT]
        self._heard.set()

    async def _say_end(self) -> None:
        """The child is going or gone: wait a moment for its exit code and last words."""
        with anyio.move_on_after(LAST_WORDS_SECONDS):
            await self._process.wait()
            await self._heard.wait()
        code = self._process.returncode
        how = (
            f"exited with code {code}"
            if code is not None and code >= 0
            else f"was killed by signal {-code}"
            if code
            else "closed its output"
        )
        words = scrub(self._stderr.decode("utf-8", "replace").strip())[-STDERR_SHOWN:].strip()
        self._why = f"The server {how}"
        detail = f"{self._why}; standard error: {words}" if words else self._why
        last = words.rpartition("\n")[2][:200]
        self._exchange.end(ExpertError(FailureClass.CRASHED, f"{self._why}{f': {last}' if last else '.'}", detail=detail))
        self._gone.set()

    def _roots(self) -> list[dict[str, str]]:
        return [{"uri": root.as_uri(), "name": root.name} for root in self._target.roots]

    async def leave(self) -> None:
        """Ask the child to go: end of input, then SIGTERM to its group."""
        if self._process.stdin is not None:
            with contextlib.suppress(anyio.BrokenResourceError, anyio.ClosedResourceError, OSError):
                await self._process.stdin.aclose()
        with anyio.move_on_after(POLITE_SECONDS):
            await self._process.wait()
            return
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, signal.SIGTERM)
        with anyio.move_on_after(POLITE_SECONDS):
            await self._process.wait()


@contextlib.asynccontextmanager
async def open_stdio(target: Target) -> AsyncGenerator[Link]:
    """A child and the connection to it. On leaving it is asked to go, and then its whole group is dead and reaped.

    Raises:
        ExpertError: `spawn-failed`.
    """
    async with open_child(target.argv, cwd=Path(target.cwd or "/"), env=dict(target.env), inherit=target.inherit, stdin=True) as process:
        link = StdioLink(process, target)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(link.run)
            try:
                yield link
            finally:
                with anyio.CancelScope(shield=True), anyio.move_on_after(3 * POLITE_SECONDS):
                    await link.leave()
                tasks.cancel_scope.cancel()
