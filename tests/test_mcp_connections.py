"""Clients that open connections and send little: the server stays there for the others, and says little about it."""

from __future__ import annotations

import contextlib
import json
import select
import signal
import socket
import sys
import time
from collections.abc import Generator, Iterator
from pathlib import Path

import httpx2
import pytest

from search_router.mcp_connections import FEWEST, Seldom, connections_allowed
from tests.server_child import COMMAND, Child, running
from tests.test_server_http import MODERN, call, message_in, modern_headers

pytestmark = pytest.mark.heavy

UNDER_128 = ("bash", "-c", 'ulimit -n 128; exec "$@"', "limited", *COMMAND)
LINES_AT_MOST = 8


def port_of(child: Child) -> int:
    return httpx2.URL(child.url()).port or 0


@contextlib.contextmanager
def half_open(port: int, count: int, head: bytes = b"POST /mcp HTTP/1.1\r\nHost: ") -> Generator[list[socket.socket]]:
    """Connections that have sent the beginning of a request."""
    with contextlib.ExitStack() as stack:
        opened: list[socket.socket] = []
        for _ in range(count):
            opened.append(stack.enter_context(socket.create_connection(("127.0.0.1", port), timeout=10)))
            with contextlib.suppress(ConnectionError):
                opened[-1].sendall(head)
        yield opened


def is_answered(port: int) -> bool:
    answer = httpx2.get(f"http://127.0.0.1:{port}/healthz", timeout=10)
    return answer.status_code == 200


def closed_within(connection: socket.socket, seconds: float) -> bool:
    connection.settimeout(seconds)
    try:
        return connection.recv(1) == b""
    except ConnectionError:
        return True
    except TimeoutError:
        return False


@pytest.mark.parametrize("kind", ["http", "sse"])
def test_half_open_connections_beyond_the_descriptor_limit_starve_nobody_and_flood_nothing(kind: str) -> None:
    with running(kind, command=UNDER_128) as child:
        port = port_of(child)
        with half_open(port, 150):
            assert all(is_answered(port) for _ in range(5))
            with half_open(port, 50):
                assert is_answered(port)
        assert is_answered(port)
    assert len(child.errors) <= LINES_AT_MOST, child.errors
    assert not any("Traceback" in line for line in child.errors), child.errors
    assert any("connections are taken" in line for line in child.errors)


@pytest.mark.parametrize("sent", [b"", b"GET /healthz HTTP/1.1\r\nHost: 127", b"GET /healthz"])
def test_a_head_that_does_not_come_whole_in_time_closes_the_connection(sent: bytes) -> None:
    with running("http", "--header-timeout-ms", "300") as child:
        port = port_of(child)
        with half_open(port, 1, sent) as (connection,):
            assert closed_within(connection, 5)
        assert is_answered(port)


def test_a_head_that_comes_a_byte_at_a_time_is_not_waited_for_either() -> None:
    with running("http", "--header-timeout-ms", "500") as child, half_open(port_of(child), 1, b"GET /") as (connection,):
        began, sent = time.monotonic(), 0
        while not select.select([connection], [], [], 0.05)[0]:
            with contextlib.suppress(ConnectionError):
                sent += connection.send(b"x")
            assert time.monotonic() - began < 5
        assert sent > 1


def test_an_open_event_stream_and_a_slow_answer_outlive_the_time_for_a_head() -> None:
    with running("sse", "--header-timeout-ms", "200") as sse, running("http", "--header-timeout-ms", "200") as http:
        with httpx2.stream("GET", sse.url(), timeout=10) as stream, half_open(port_of_url(str(stream.url)), 1) as (other,):
            lines = stream.iter_lines()
            path = next(line for line in lines if line.startswith("data: ")).removeprefix("data: ")
            assert closed_within(other, 5)  # so the time is over
            question = call("quick", modern=False)
            posted = httpx2.post(f"http://127.0.0.1:{stream.url.port}{path}", json=question, timeout=10)
            assert posted.status_code == 202
            assert next(line for line in lines if '"id":1' in line)
        url = http.url()
        with httpx2.stream("POST", url, headers=modern_headers(), json=call("slow"), timeout=10) as answer:
            lines = answer.iter_lines()
            assert next(line for line in lines if "notifications/progress" in line)
            with half_open(port_of_url(url), 1) as (other,):
                assert closed_within(other, 5)
            body = {"jsonrpc": "2.0", "id": 2, "method": "tools/call"}
            body |= {"params": {"name": "expert_registry", "arguments": {}, "_meta": MODERN}}
            registry = message_in(httpx2.post(url, headers=modern_headers("expert_registry"), json=body, timeout=10))
            assert "cancelled=0 " in json.dumps(registry)


def port_of_url(url: str) -> int:
    return httpx2.URL(url).port or 0


def test_when_every_connection_is_busy_a_new_one_is_told_so_at_once() -> None:
    with running("http", "--max-connections", "8") as child:
        url = child.url()
        streams: list[Iterator[str]] = []
        with contextlib.ExitStack() as stack:
            for number in range(8):
                answer = stack.enter_context(
                    httpx2.stream("POST", url, headers=modern_headers(), json=call("slow", number=number), timeout=10)
                )
                streams.append(answer.iter_lines())  # one that is forgotten closes its connection
                assert next(line for line in streams[-1] if "notifications/progress" in line)
            refused = socket.create_connection(("127.0.0.1", port_of_url(url)), timeout=10)
            with refused:
                assert refused.recv(4096).startswith(b"HTTP/1.1 503 ")
                assert closed_within(refused, 5)
        assert is_answered(port_of_url(url))


def whole_answer(connection: socket.socket) -> bytes:
    """All that comes until the server closes the connection."""
    connection.settimeout(5)
    answer = b""
    with contextlib.suppress(ConnectionError):
        while part := connection.recv(4096):
            answer += part
    return answer


def head_of(port: int, path: str = "/mcp", length: int = 500) -> bytes:
    return (
        f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nContent-Type: application/json\r\n"
        "Accept: application/json, text/event-stream\r\nMcp-Method: tools/call\r\nMcp-Name: search_knowledge\r\n"
        f"MCP-Protocol-Version: 2026-07-28\r\nContent-Length: {length}\r\n\r\n"
    ).encode()


@pytest.mark.parametrize("kind", ["http", "sse"])
def test_a_body_that_comes_a_byte_at_a_time_is_answered_with_408_and_the_connection_closed(kind: str) -> None:
    path = {"http": "/mcp", "sse": "/messages/"}[kind]
    with running(kind, "--body-timeout-ms", "600") as child:
        port = port_of(child)
        with half_open(port, 1, head_of(port, path)) as (connection,):
            began, sent = time.monotonic(), 0
            while not select.select([connection], [], [], 0.05)[0]:
                sent += connection.send(b" ")
                assert time.monotonic() - began < 10
            assert whole_answer(connection).startswith(b"HTTP/1.1 408 ") and sent > 1
        assert is_answered(port)
    assert child.errors[-1] == "ended cleanly" and not any("Traceback" in line for line in child.errors), child.errors


def test_a_signal_in_the_middle_of_a_body_ends_the_server_without_a_traceback() -> None:
    with running("http") as child:
        port = port_of(child)
        with half_open(port, 2, head_of(port) + b"{") as connections:
            assert is_answered(port)
            child.process.send_signal(signal.SIGTERM)
            assert child.wait() == 0
            assert whole_answer(connections[0]).startswith(b"HTTP/1.1 503 ")
    assert child.errors[-1] == "ended cleanly" and not any("Traceback" in line for line in child.errors), child.errors


def leave_in_the_body(port: int, path: str, sent: int) -> None:
    for version in ("2026-07-28", "2025-11-25"):
        head = (
            f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nContent-Type: application/json\r\n"
            "Accept: application/json, text/event-stream\r\nMcp-Method: tools/call\r\nMcp-Name: search_knowledge\r\n"
            f"MCP-Protocol-Version: {version}\r\nContent-Length: 500\r\n\r\n"
        )
        with half_open(port, 1, head.encode() + b"{" * sent):
            assert is_answered(port)  # the request has reached the application
    assert is_answered(port)


@pytest.mark.parametrize("sent", [5, 0])
def test_a_client_that_leaves_in_the_middle_of_its_body_is_no_error(sent: int) -> None:
    with running("http") as http, running("sse") as sse:
        leave_in_the_body(port_of(http), "/mcp", sent)
        with httpx2.stream("GET", sse.url(), timeout=10) as stream:
            lines = stream.iter_lines()
            path = next(line for line in lines if line.startswith("data: ")).removeprefix("data: ")
            leave_in_the_body(stream.url.port or 0, path, sent)
    for child in (http, sse):
        assert len(child.errors) == 2, child.errors  # where it listens, and its end
        assert child.errors[-1] == "ended cleanly"


def test_a_line_that_is_said_seldom_says_how_often() -> None:
    now, said = [0.0], list[str]()
    seldom = Seldom(said.append, clock=lambda: now[0])
    for second in (0.0, 1.0, 9.9, 10.0, 11.0, 30.0):
        now[0] = second
        seldom.tell("full")
    assert said == ["full", "full (3 times)", "full (2 times)"]


def test_fewer_connections_are_allowed_than_files_may_be_open() -> None:
    asked = (
        "import resource, sys; from search_router.mcp_connections import connections_allowed as f;"
        "n = int(sys.argv[1]); resource.setrlimit(resource.RLIMIT_NOFILE, (n, n)); print(f(1000), f(9))"
    )
    with running("256", command=(sys.executable, "-c", asked), stdout=-1) as child:
        assert child.process.stdout is not None
        many, few = map(int, child.process.stdout.read().split())
    assert 64 < many < 160
    assert few == 9
    assert connections_allowed(FEWEST) == FEWEST
    assert Path("/dev/fd").exists()
