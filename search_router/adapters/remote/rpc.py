"""JSON-RPC 2.0 with a server that may misbehave: which answer belongs to which call, and what is wrong when none comes.

One `Exchange` belongs to one connection on which messages go both ways (stdio, SSE). Calls wait for their own answer only. A message that
nobody can use fails the calls that it must have been meant for, at once, instead of letting them wait for their deadline.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import json
from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, cast

from search_router.adapters.remote.eras import enveloped
from search_router.adapters.remote.framing import Broken, Line, Message, Noise, decode_message
from search_router.errors import ExpertError, FailureClass
from search_router.wire_text import encodable_json

METHOD_NOT_FOUND = -32601
REMEMBERED_IDS = 1000
Send = Callable[[bytes], None]
"""Hands one whole message over to whoever writes; never waits, so that no cancellation can cut a message in two."""


class RpcError(Exception):
    """The server's own error answer."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.message = message


@dataclass(frozen=True, slots=True)
class Reply:
    """The result of a call, and how many bytes of it were cut."""

    result: Any
    cut: int = 0


@dataclass(slots=True)
class Waiting:
    """One call that waits. `strays` is what came in meanwhile that nobody could use, and may have been its answer."""

    future: asyncio.Future[Reply]
    strays: list[str] = field(default_factory=list[str])


def request_bytes(request_id: int | None, method: str, params: Mapping[str, Any] | None) -> bytes:
    """A request (a notification without an id) as UTF-8; surrogates are spelled out."""
    message: dict[str, Any] = {"jsonrpc": "2.0", **({"id": request_id} if request_id is not None else {}), "method": method}
    if params is not None:
        message["params"] = params
    return _encode(message)


def _encode(message: Any) -> bytes:
    try:
        return json.dumps(message, ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode()
    except UnicodeEncodeError:
        return json.dumps(encodable_json(message), ensure_ascii=False, separators=(",", ":")).encode()


def read_answer(message: Message) -> Reply:
    """The result in an answer.

    Raises:
        RpcError: it is an error.
        ExpertError: `protocol-error`, when it is neither.
    """
    error = message.body.get("error")
    if isinstance(error, dict):
        fields = cast("dict[str, Any]", error)
        code, text = fields.get("code"), fields.get("message")
        raise RpcError(code if isinstance(code, int) else 0, text if isinstance(text, str) else "an error without a message")
    if not isinstance(message.body.get("result"), dict):
        raise ExpertError(FailureClass.PROTOCOL_ERROR, "The server's answer has neither a result object nor an error.")
    return Reply(message.body["result"], message.cut)


class Exchange:
    """Calls and answers over one connection."""

    def __init__(self, send: Send, roots: Callable[[], list[dict[str, str]]]) -> None:
        self._send = send
        self._roots = roots
        self._ids = itertools.count(1)
        self._waiting: dict[int, Waiting] = {}
        self._given_up: OrderedDict[int, None] = OrderedDict()
        self._ended: ExpertError | None = None
        self._notified = False
        self.version: str | None = None
        """The protocol version that was agreed on; from 2026-07-28 on every request says it."""
        self.noise = 0
        """Lines that were no message."""

    async def call(self, method: str, params: Mapping[str, Any] | None, seconds: float) -> Reply:
        """The answer to one request.

        Raises:
            RpcError: the server answered with an error.
            ExpertError: `timeout`, or why there can be no answer; `protocol-error` when the server sent something unusable instead.
        """
        if self._ended is not None:
            raise self._ended
        request_id = next(self._ids)
        waiting = self._waiting[request_id] = Waiting(asyncio.get_running_loop().create_future())
        answered = False
        try:
            async with asyncio.timeout(seconds):
                self._send(request_bytes(request_id, method, enveloped(params, self.version)))
                reply = await waiting.future
                answered = True
                return reply
        except TimeoutError:
            raise silence(method, seconds, waiting.strays) from None
        finally:
            del self._waiting[request_id]
            if waiting.future.done() and not waiting.future.cancelled():
                waiting.future.exception()  # seen, whoever raised
            elif not answered:
                self._give_up(request_id)

    def notify(self, method: str, params: Mapping[str, Any] | None = None) -> None:
        """Say something that has no answer. Raises ExpertError like `call`."""
        self._notified = True
        self._send(request_bytes(None, method, enveloped(params, self.version)))

    def end(self, error: ExpertError) -> None:
        """The connection is over: every call that waits, and every later one, fails with this."""
        self._ended = self._ended or error
        for waiting in self._waiting.values():
            if not waiting.future.done():
                waiting.future.set_exception(self._ended)

    def receive(self, line: Line) -> None:
        """Take one line that came in."""
        message = decode_message(line)
        if isinstance(message, Noise):
            self.noise += bool(line.data.strip())
        elif isinstance(message, Broken):
            self._unusable(message.id, f"a message that cannot be read: {message.why}", at_once=True)
        elif "method" in message.body:
            if message.id is not None:
                self._serve(message)
        elif message.is_answer:
            self._answer(message)
        else:
            self._unusable(None, "a message that is neither request nor answer", at_once=False)

    def _answer(self, message: Message) -> None:
        request_id = message.id
        if request_id is None and message.cut and len(self._waiting) == 1:
            request_id = next(iter(self._waiting))  # it stood in the part that was cut
        if isinstance(request_id, int) and request_id in self._waiting:
            future = self._waiting[request_id].future
            if not future.done():
                try:
                    future.set_result(read_answer(message))
                except (RpcError, ExpertError) as error:
                    future.set_exception(error)
        elif isinstance(request_id, int) and request_id in self._given_up:
            del self._given_up[request_id]  # late; nobody wants it any more
        elif request_id is None:
            # Some servers answer notifications with one, so that it need not be about a call.
            self._unusable(None, "an answer without an id", at_once=not self._notified)
        else:
            self._unusable(None, f"an answer to a request that was never made (id {str(request_id)[:40]!r})", at_once=True)

    def _unusable(self, request_id: int | None, what: str, *, at_once: bool) -> None:
        """Fail the call that this must have been for; where that cannot be told, remember it for those that wait."""
        concerned = [self._waiting[request_id]] if request_id in self._waiting else list(self._waiting.values())
        for waiting in concerned:
            if not waiting.strays:  # the first says it; a flood of them is not to be kept
                waiting.strays.append(what)
            if at_once and len(concerned) == 1 and not waiting.future.done():
                waiting.future.set_exception(ExpertError(FailureClass.PROTOCOL_ERROR, f"The server sent {what}."))

    def _give_up(self, request_id: int) -> None:
        self._given_up[request_id] = None
        if len(self._given_up) > REMEMBERED_IDS:
            self._given_up.popitem(last=False)
        with contextlib.suppress(ExpertError):
            self.notify("notifications/cancelled", {"requestId": request_id, "reason": "the caller no longer waits"})

    def _serve(self, message: Message) -> None:
        """Answer what a server may ask its client: `ping` and `roots/list`; anything else is not there."""
        method = message.body.get("method")
        body: dict[str, Any]
        if method == "ping":
            body = {"result": {}}
        elif method == "roots/list":
            body = {"result": {"roots": self._roots()}}
        else:
            body = {"error": {"code": METHOD_NOT_FOUND, "message": "This client does not serve that."}}
        with contextlib.suppress(ExpertError):
            self._send(_encode({"jsonrpc": "2.0", "id": message.id, **body}))


def silence(method: str, seconds: float, strays: list[str]) -> ExpertError:
    """Why a call has no answer: nothing came, or what came could not be used."""
    if strays:
        return ExpertError(FailureClass.PROTOCOL_ERROR, f"The server sent {strays[0]}, and no answer to `{method}`.")
    return ExpertError(FailureClass.TIMEOUT, f"No answer to `{method}` within {round(seconds * 1000)} ms.")
