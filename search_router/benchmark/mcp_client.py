"""The thinnest MCP client over HTTP/1.1: one connection, one question at a time, so that the server is measured and not the client.

It speaks the newest revision, whose calls need no session, and reads answers as event streams or as JSON.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Self

PROTOCOL = "2026-07-28"
META = {
    "io.modelcontextprotocol/protocolVersion": PROTOCOL,
    "io.modelcontextprotocol/clientCapabilities": {},
    "io.modelcontextprotocol/clientInfo": {"name": "search-router-bench", "version": "1"},
}
RECEIPT_META = "search-router/receipt"


class BrokenAnswer(Exception):
    """The server's answer is not one: it closed the connection, refused, or said something else."""


@dataclass(frozen=True, slots=True)
class Answer:
    """The structured answer, and the receipt that came with it."""

    content: dict[str, Any]
    receipt_id: str
    envelope: dict[str, Any]


def call_message(number: int, question: dict[str, Any]) -> dict[str, Any]:
    """One `search_knowledge` call as a JSON-RPC message."""
    params = {"name": "search_knowledge", "arguments": question, "_meta": META}
    return {"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": params}


def read_answer(message: dict[str, Any]) -> Answer:
    """The answer in a JSON-RPC response. Raises BrokenAnswer for an error, or an answer without a receipt."""
    try:
        result: dict[str, Any] = message["result"]
        content: dict[str, Any] = result["structuredContent"]
        return Answer(content, content["receipt"]["id"], result["_meta"][RECEIPT_META])
    except (KeyError, TypeError) as error:
        raise BrokenAnswer(f"no answer with a receipt: {str(message)[:500]}") from error


class McpClient:
    """One keep-alive connection to a server on this machine."""

    def __init__(self, host: str, port: int) -> None:
        self._host = host
        self._port = port
        self._number = 0
        self._streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None

    async def __aenter__(self) -> Self:
        self._streams = await asyncio.open_connection(self._host, self._port, limit=2**24)
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        assert self._streams is not None
        self._streams[1].close()
        with contextlib.suppress(ConnectionError):  # the server was killed
            await self._streams[1].wait_closed()

    async def ask(self, question: dict[str, Any]) -> Answer:
        """Ask and wait. Raises BrokenAnswer, and OSError or asyncio.IncompleteReadError when the connection ends."""
        assert self._streams is not None
        reader, writer = self._streams
        self._number += 1
        body = json.dumps(call_message(self._number, question)).encode()
        head = (
            "POST /mcp HTTP/1.1",
            f"Host: {self._host}:{self._port}",
            "Content-Type: application/json",
            "Accept: application/json, text/event-stream",
            f"MCP-Protocol-Version: {PROTOCOL}",
            "Mcp-Method: tools/call",
            "Mcp-Name: search_knowledge",
            f"Content-Length: {len(body)}",
        )
        writer.write("\r\n".join(head).encode() + b"\r\n\r\n" + body)
        await writer.drain()
        status, received = await _read_response(reader)
        if status != 200:
            raise BrokenAnswer(f"HTTP {status}: {received[:300]!r}")
        lines = [line for line in received.splitlines() if line.startswith(b"data: ")]
        message: dict[str, Any] = json.loads(lines[-1].removeprefix(b"data: ") if lines else received)
        if message.get("id") != self._number:
            raise BrokenAnswer(f"an answer to {message.get('id')!r} instead of {self._number}")
        return read_answer(message)


async def _read_response(reader: asyncio.StreamReader) -> tuple[int, bytes]:
    """(status, body) of one response with a length or in chunks."""
    head = await reader.readuntil(b"\r\n\r\n")
    fields = {
        name.strip().lower(): value.strip() for name, _, value in (line.partition(b":") for line in head.split(b"\r\n")[1:]) if name.strip()
    }
    status = int(head.split(b" ", 2)[1])
    if fields.get(b"transfer-encoding") != b"chunked":
        return status, await reader.readexactly(int(fields.get(b"content-length", b"0")))
    body = bytearray()
    while size := int(await reader.readuntil(b"\r\n"), 16):
        body += await reader.readexactly(size)
        await reader.readexactly(2)
    await reader.readuntil(b"\r\n")
    return status, bytes(body)
