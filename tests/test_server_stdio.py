"""Standard input and output as a client sees them: bytes in, bytes out, how it ends."""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import time
from collections.abc import Generator
from pathlib import Path
from typing import Any

import anyio
import mcp_types as types
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from search_router.mcp_stdio import MAX_LINE_BYTES, LineSplitter, TooLong, Unreadable, Wire, decode_line, encode_line, run_on_wire
from search_router.server import create_server
from tests.fake_router import FakeRouter
from tests.server_child import COMMAND, ROOT, Child, child_env, running

MODERN = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientCapabilities": {},
    "io.modelcontextprotocol/clientInfo": {"name": "raw", "version": "0"},
    "progressToken": "t",
}
ANSWER_SECONDS = 20


def request(number: object, question: object) -> dict[str, Any]:
    params = {"name": "search_knowledge", "arguments": {"question": question}, "_meta": MODERN}
    return {"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": params}


class Talk:
    """A conversation with a stdio child: every line that comes back has to be one JSON-RPC message."""

    def __init__(self, child: Child) -> None:
        self.child = child
        self._rest = b""

    def send(self, line: bytes) -> None:
        assert self.child.process.stdin is not None
        self.child.process.stdin.write(line + b"\n")
        self.child.process.stdin.flush()

    def ask(self, message: dict[str, Any]) -> dict[str, Any]:
        self.send(json.dumps(message).encode())
        while (answer := self.hear()).get("method") == "notifications/progress":
            pass
        return answer

    def hear(self) -> dict[str, Any]:
        assert self.child.process.stdout is not None
        descriptor = self.child.process.stdout.fileno()
        deadline = time.monotonic() + ANSWER_SECONDS
        while b"\n" not in self._rest:
            ready, _, _ = select.select([descriptor], [], [], max(0.0, deadline - time.monotonic()))
            assert ready, f"no line within {ANSWER_SECONDS} s"
            chunk = os.read(descriptor, 65536)
            assert chunk, "the server closed standard output"
            self._rest += chunk
        line, self._rest = self._rest.split(b"\n", 1)
        message = json.loads(line)
        assert message["jsonrpc"] == "2.0"
        return message


def talking(*arguments: str, **env: str) -> Generator[Talk]:
    with running("stdio", *arguments, stdin=subprocess.PIPE, stdout=subprocess.PIPE, **env) as child:
        yield Talk(child)


@pytest.fixture(scope="module")
def talk() -> Generator[Talk]:
    """A noisy server in the poorest locale."""
    yield from talking("--noise", LANG="C", LC_ALL="C", PYTHONUTF8="0", PYTHONCOERCECLOCALE="0", PYTHONIOENCODING="")


def test_text_of_every_script_survives_a_locale_without_unicode(talk: Talk) -> None:
    question = "搜索 🧭 שָׁלוֹם é e\u0301 \u202eabc"
    answer = talk.ask(request(1, question))
    assert answer["id"] == 1
    assert answer["result"]["structuredContent"]["evidence"][0]["snippet"] == question


def test_what_a_library_prints_goes_to_standard_error(talk: Talk) -> None:
    assert talk.ask(request("print", "quick"))["id"] == "print"
    assert {"noise while starting", "noise from python", "noise from a library"} <= set(talk.child.errors)


@pytest.mark.parametrize(
    ("line", "code"),
    [
        (b"this is not JSON", -32700),
        (b'{"jsonrpc": "2.0", "id": 1', -32700),
        (b"\xff\xfe\x00", -32700),
        (b"[" * 100_000, -32700),
        (b"9" * 10_000, -32700),
        (b"[]", -32600),
        (b"5", -32600),
        (b'{"jsonrpc": "1.0", "id": 1, "method": "x"}', -32600),
        (b'{"id": 1}', -32600),
        (b"x" * (MAX_LINE_BYTES + 1), -32600),
    ],
    ids=lambda value: str(value[:12]) if isinstance(value, bytes) else "",
)
def test_a_line_that_is_no_message_is_answered_and_the_next_one_works(talk: Talk, line: bytes, code: int) -> None:
    talk.send(line)
    assert talk.hear()["error"]["code"] == code
    assert talk.ask(request(2, "quick"))["id"] == 2


def test_a_line_that_is_no_message_is_answered_with_its_own_id(talk: Talk) -> None:
    talk.send(b'{"jsonrpc": "3.0", "id": "mine", "method": "x"}')
    assert talk.hear()["id"] == "mine"


def test_a_message_of_a_few_megabytes_is_served(talk: Talk) -> None:
    answer = talk.ask(request(3, "x" * (3 * 2**20)))
    assert len(answer["result"]["structuredContent"]["evidence"][0]["snippet"]) == 3 * 2**20


@pytest.mark.parametrize("escape", [b"\\ud800", b"\\udfff", b"\xff", b"\xed\xa0\x80"])
def test_text_that_is_not_unicode_reaches_the_router_and_is_refused_there(talk: Talk, escape: bytes) -> None:
    talk.send(json.dumps(request(4, "a MARK b")).encode().replace(b"MARK", escape))
    answer = talk.hear()
    assert answer["id"] == 4
    assert answer["result"]["structuredContent"]["error"]["code"] == "invalid-encoding"
    assert answer["result"]["structuredContent"]["receipt"]["id"] == "r-1"


def test_an_id_that_is_not_unicode_comes_back_spelled_out(talk: Talk) -> None:
    assert talk.ask(request("\udce9", "quick"))["id"] == "\\xe9"


def test_empty_lines_are_skipped(talk: Talk) -> None:
    talk.send(b"\n  \n\r")
    assert talk.ask(request(5, "quick"))["id"] == 5


def test_closing_standard_input_ends_the_server_while_a_search_runs() -> None:
    for conversation in talking():
        conversation.send(json.dumps(request(1, "slow")).encode())
        assert conversation.hear()["method"] == "notifications/progress"
        assert conversation.child.process.stdin is not None
        conversation.child.process.stdin.close()
        assert conversation.child.wait(2) == 0
        assert conversation.child.errors[-1] == "ended cleanly"


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_the_server_cleanly_though_standard_input_stays_open(number: int) -> None:
    for conversation in talking():
        conversation.send(json.dumps(request(1, "slow")).encode())
        assert conversation.hear()["method"] == "notifications/progress"
        conversation.child.process.send_signal(number)
        assert conversation.child.wait(2) == 0
        assert conversation.child.errors[-1] == "ended cleanly"


def test_a_client_that_closes_its_end_of_the_answers_ends_the_server() -> None:
    for conversation in talking():
        assert conversation.ask(request(1, "quick"))["id"] == 1
        assert conversation.child.process.stdout is not None
        conversation.child.process.stdout.close()
        conversation.send(json.dumps(request(2, "quick")).encode())
        assert conversation.child.wait() == 0


def test_standard_input_may_be_a_file(tmp_path: Path) -> None:
    script = tmp_path / "requests"
    script.write_bytes(json.dumps(request(1, 5)).encode() + b"\n")
    with script.open("rb") as source, (tmp_path / "answers").open("wb") as sink:
        done = subprocess.run([*COMMAND, "stdio"], cwd=ROOT, env=child_env(), stdin=source, stdout=sink, timeout=30, check=False)
    assert done.returncode == 0
    assert all(json.loads(line)["jsonrpc"] == "2.0" for line in (tmp_path / "answers").read_bytes().splitlines())


@pytest.mark.anyio
async def test_a_client_that_stops_reading_does_not_keep_the_server_alive() -> None:
    """A long answer fills the pipe; the end of the requests still ends the server."""
    requests, answers = os.pipe(), os.pipe()
    try:
        router = FakeRouter()
        with anyio.fail_after(10):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(run_on_wire, create_server(router, session="s"), Wire(requests[0], answers[1]))
                line = json.dumps(request(1, "x" * 2**20)).encode() + b"\n"
                await anyio.to_thread.run_sync(os.write, requests[1], line[: 32 * 1024])
                await anyio.to_thread.run_sync(os.write, requests[1], line[32 * 1024 :])
                while not router.seen:
                    await anyio.lowlevel.checkpoint()
                os.close(requests[1])
    finally:
        for descriptor in (requests[0], *answers):
            os.close(descriptor)


@given(st.lists(st.binary(max_size=30).map(lambda b: b.replace(b"\n", b""))), st.lists(st.integers(1, 20), max_size=30))
def test_lines_come_out_as_they_went_in_however_the_bytes_are_cut(lines: list[bytes], cuts: list[int]) -> None:
    splitter = LineSplitter(limit=20)
    data = b"".join(line + b"\n" for line in lines)
    out: list[bytes | TooLong] = []
    for cut in cuts:
        out += splitter.feed(data[:cut])
        data = data[cut:]
    out += splitter.feed(data)
    assert out == [line if len(line) <= 20 else TooLong(line, line) for line in lines]
    assert splitter.flush() == b""


@pytest.mark.parametrize("request_id", [7, "a-7", 0, -1])
@pytest.mark.parametrize("too_much", ["x" * 2**23, "[" * 60_000 + "]" * 60_000], ids=["long", "deep"])
def test_a_request_that_is_too_long_or_too_deep_is_answered_by_its_id(request_id: int | str, too_much: str) -> None:
    value = too_much if too_much[0] == "[" else json.dumps(too_much)
    name, params = json.dumps(request_id), f'{{"id": 99, "a": {value}, "id": 98}}'
    plain = '"jsonrpc": "2.0", "method": "tools/call"'
    for text in (f'{{{plain}, "id": {name}, "params": {params}}}', f'{{{plain}, "params": {params},"id":{name}}}'):
        splitter = LineSplitter()
        (line,) = [each for at in range(0, len(text) + 1, 65_536) for each in splitter.feed((text + "\n")[at : at + 65_536].encode())]
        message = decode_line(line)
        assert isinstance(message, Unreadable) and message.reply.id == request_id
    inner = decode_line(
        f'{{{plain}, "params": {params}}}'.encode() if too_much[0] == "[" else TooLong(b"{" + plain.encode(), b'"id": 98}}')
    )
    assert isinstance(inner, Unreadable) and inner.reply.id is None


@settings(max_examples=50)
@given(st.text(st.characters()), st.recursive(st.none() | st.text(st.characters()), lambda x: st.lists(x) | st.dictionaries(st.text(), x)))
def test_any_json_text_in_the_parameters_is_a_message(method: str, value: object) -> None:
    message = decode_line(json.dumps({"jsonrpc": "2.0", "id": 1, "method": "m" + method, "params": {"value": value}}).encode())
    assert isinstance(message, types.JSONRPCRequest)
    assert message.params == {"value": value}
    assert json.loads(encode_line(message))["id"] == 1


@given(st.binary())
def test_any_bytes_are_a_message_or_an_answer(line: bytes) -> None:
    message = decode_line(line)
    if isinstance(message, Unreadable):
        assert encode_line(message.reply).endswith(b"\n")
