"""Newline-delimited JSON-RPC over standard input and output, and nothing else on standard output.

The SDK's own stdio transport reads and writes in worker threads that no cancellation can interrupt (a signal would hang until the
next line), drops a line that it cannot parse without an answer (the client waits for ever), and joins a long line in quadratic time.
Here the descriptors are waited for on the event loop, every line gets an answer, and a line has a greatest length.
"""

from __future__ import annotations

import contextlib
import json
import logging
import os
import re
import select
import signal
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any, cast

import anyio
import anyio.lowlevel
import mcp_types as types
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from mcp.server import Server
from mcp.shared.message import SessionMessage
from pydantic import ValidationError
from pydantic_core import PydanticSerializationError

from search_router.standard_streams import Wire
from search_router.wire_text import encodable_json

MAX_LINE_BYTES = 4 * 2**20
READ_BYTES = 64 * 2**10
END_BYTES = 512
_PLAIN = rb'"(?:jsonrpc|method)"\s*:\s*"[^"\\]*"'
_ID = rb'"id"\s*:\s*(?P<id>-?(?:0|[1-9][0-9]{0,17})|"[ !#-\[\]-~]{0,256}")'
_ID_FIRST = re.compile(rb"\s*\{\s*(?:" + _PLAIN + rb"\s*,\s*)*" + _ID + rb"\s*[,}]")
_ID_LAST = re.compile(rb",\s*" + _ID + rb"\s*(?:,\s*" + _PLAIN + rb"\s*)*\}\s*\Z")

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class TooLong:
    """What is kept of a line that is longer than the limit: where its id may stand."""

    head: bytes
    tail: bytes


@dataclass(slots=True)
class LineSplitter:
    """Complete lines out of chunks, in linear time. Of a line longer than `limit` bytes only both ends are kept."""

    limit: int = MAX_LINE_BYTES
    _parts: list[bytes] = field(default_factory=list[bytes])
    _size: int = 0
    _head: bytes = b""

    def feed(self, chunk: bytes) -> list[bytes | TooLong]:
        """The lines that this chunk completes, without their line feeds."""
        *ends, rest = chunk.split(b"\n")
        lines: list[bytes | TooLong] = []
        for end in ends:
            self._keep(end)
            lines.append(self.flush())
        self._keep(rest)
        return lines

    def flush(self) -> bytes | TooLong:
        """What stands in the unfinished line, which is then empty."""
        kept = b"".join(self._parts)
        line = TooLong(self._head, kept[-END_BYTES:]) if self._size > self.limit else kept
        self._parts, self._size, self._head = [], 0, b""
        return line

    def _keep(self, part: bytes) -> None:
        if not part:
            return
        self._size += len(part)
        self._parts.append(part)
        if self._size > self.limit:
            kept = b"".join(self._parts)
            self._head = (self._head + part[:END_BYTES] if self._head else kept)[:END_BYTES]
            self._parts = [kept[-END_BYTES:]]


@dataclass(frozen=True, slots=True)
class Unreadable:
    """A line that is no message, and the error that answers it."""

    reply: types.JSONRPCError


def decode_line(line: bytes | TooLong) -> types.JSONRPCMessage | Unreadable:
    """The message in a line; for a line that is none, the answer that says so, with the line's id where it can be found.

    Lone surrogates and bytes that are not UTF-8 are let through inside parameters, as Python's surrogate escapes, so that the router can
    refuse them with a receipt; pydantic's JSON parser, which is tried first, takes neither.
    """
    if isinstance(line, TooLong):
        return _unreadable(_end_id(line.head, line.tail), types.INVALID_REQUEST, f"A line may have at most {MAX_LINE_BYTES} bytes.")
    with contextlib.suppress(ValidationError):
        return types.jsonrpc_message_adapter.validate_json(line, by_name=False)
    try:
        value: Any = json.loads(line.decode("utf-8", "surrogateescape"))
    except RecursionError:
        return _unreadable(_end_id(line, line), types.PARSE_ERROR, "The line is nested too deeply.")
    except ValueError:
        return _unreadable(None, types.PARSE_ERROR, "The line is not JSON.")
    try:
        return types.jsonrpc_message_adapter.validate_python(value, by_name=False)
    except ValidationError:
        request_id: Any = cast("dict[str, Any]", value).get("id") if isinstance(value, dict) else None
        return _unreadable(request_id, types.INVALID_REQUEST, "The line is not one JSON-RPC 2.0 message.")


def _end_id(head: bytes, tail: bytes) -> Any:
    """The id of a request of which only the ends can be read; None where it does not stand at one of them.

    There it is the request's own: in front of it nothing but other plain members was opened, or behind it only the outermost object is
    closed. Without it the client would wait for ever for an answer to that request.
    """
    found = _ID_FIRST.match(head[:END_BYTES]) or _ID_LAST.search(tail[-END_BYTES:])
    return json.loads(found["id"]) if found is not None else None


def _unreadable(request_id: Any, code: int, message: str) -> Unreadable:
    known = request_id if isinstance(request_id, str | int) and not isinstance(request_id, bool) else None
    return Unreadable(types.JSONRPCError(jsonrpc="2.0", id=known, error=types.ErrorData(code=code, message=message)))


def encode_line(message: types.JSONRPCMessage) -> bytes:
    """The message as one line of UTF-8. Surrogates, which a caller's own id can still bring along, are spelled out."""
    try:
        text = message.model_dump_json(by_alias=True, exclude_unset=True)
    except PydanticSerializationError:
        text = json.dumps(encodable_json(message.model_dump(mode="json", by_alias=True, exclude_unset=True)), separators=(",", ":"))
    return text.encode() + b"\n"


async def run_on_wire(server: Server[Any], wire: Wire) -> None:
    """Serve one client until it closes its end or SIGTERM or SIGINT arrives; running calls are cancelled then."""
    to_server, from_client = anyio.create_memory_object_stream[SessionMessage | Exception](0)
    to_client, from_server = anyio.create_memory_object_stream[SessionMessage](0)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(_stop_on_signal, tasks.cancel_scope)
        tasks.start_soon(_read_messages, wire.source, to_server, to_client.clone())
        tasks.start_soon(_write_messages, wire.sink, from_server, tasks.cancel_scope)
        await server.run(from_client, to_client, server.create_initialization_options())
        tasks.cancel_scope.cancel()


async def _stop_on_signal(scope: anyio.CancelScope) -> None:
    with anyio.open_signal_receiver(signal.SIGTERM, signal.SIGINT) as signals:
        async for _ in signals:
            scope.cancel()


async def _read_messages(
    source: int, to_server: MemoryObjectSendStream[SessionMessage | Exception], to_client: MemoryObjectSendStream[SessionMessage]
) -> None:
    splitter = LineSplitter()
    async with to_server, to_client:
        while chunk := await _read(source):
            for line in splitter.feed(chunk):
                await _deliver(line, to_server, to_client)
        await _deliver(splitter.flush(), to_server, to_client)


async def _deliver(
    line: bytes | TooLong, to_server: MemoryObjectSendStream[SessionMessage | Exception], to_client: MemoryObjectSendStream[SessionMessage]
) -> None:
    if isinstance(line, bytes) and not line.strip():
        return
    message = decode_line(line)
    if isinstance(message, Unreadable):
        _log.warning("Refused a line on standard input: %s", message.reply.error.message)
        await to_client.send(SessionMessage(message.reply))
    else:
        await to_server.send(SessionMessage(message))


async def _write_messages(sink: int, from_server: MemoryObjectReceiveStream[SessionMessage], scope: anyio.CancelScope) -> None:
    async with from_server:
        async for item in from_server:
            try:
                await _write(sink, encode_line(item.message))
            except BrokenPipeError:
                _log.warning("The client closed standard output; stopping.")
                scope.cancel()
                return


async def _when_ready(wait: Callable[[int], Awaitable[None]], descriptor: int) -> None:
    """Wait for a pipe, socket or terminal; a regular file or the null device cannot be waited for and is always ready."""
    try:
        await wait(descriptor)
    except PermissionError:
        await anyio.lowlevel.checkpoint()


async def _read(source: int) -> bytes:
    """The next bytes, empty at the end."""
    while True:
        await _when_ready(anyio.wait_readable, source)
        with contextlib.suppress(BlockingIOError):
            return os.read(source, READ_BYTES)


async def _write(sink: int, data: bytes) -> None:
    """Write all of it. PIPE_BUF bytes are what a descriptor that is reported as writable takes without blocking."""
    rest = memoryview(data)
    while rest:
        await _when_ready(anyio.wait_writable, sink)
        with contextlib.suppress(BlockingIOError):
            rest = rest[os.write(sink, rest[: select.PIPE_BUF]) :]
