"""The HTTP doors from outside: raw requests to real children, no MCP client between."""

from __future__ import annotations

import hashlib
import json
import re
import signal
import socket
from collections.abc import AsyncGenerator, AsyncIterator, Generator
from pathlib import Path
from typing import Any

import anyio
import httpx2
import pytest
from mcp import Client
from mcp.client.sse import sse_client
from starlette.applications import Starlette
from uvicorn.protocols.http.h11_impl import H11Protocol

from search_router import __version__
from search_router.config.schema import HttpConfig
from search_router.errors import ConfigError
from search_router.mcp_http import allowed_callers
from search_router.mcp_listener import bind, listener_config
from search_router.server import build_http_app
from tests.command_line import run_cli
from tests.fake_router import FakeRouter
from tests.server_child import Child, running

pytestmark = pytest.mark.anyio
TOKEN = "correct-horse-battery-staple"
MODERN = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientCapabilities": {},
    "io.modelcontextprotocol/clientInfo": {"name": "raw", "version": "0"},
    "progressToken": "t",
}
ACCEPT = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}


@pytest.fixture(scope="module")
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(scope="module", params=["http", "sse"])
def guarded(request: pytest.FixtureRequest) -> Generator[str]:
    """Either kind of door, with a token: the guards are the same."""
    with running(request.param, "--token", TOKEN) as child:
        yield child.url()


@pytest.fixture(scope="module")
def door() -> Generator[str]:
    with running("http") as child:
        yield child.url()


@pytest.fixture(scope="module")
async def web() -> AsyncGenerator[httpx2.AsyncClient]:
    async with httpx2.AsyncClient(timeout=10) as connected:
        yield connected


def origin_of(url: str) -> str:
    return url.rsplit("/", 1)[0]


def call(question: str, *, modern: bool = True, number: int = 1) -> dict[str, Any]:
    params: dict[str, Any] = {"name": "search_knowledge", "arguments": {"question": question}}
    params["_meta"] = MODERN if modern else {"progressToken": "t"}
    return {"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": params}


def modern_headers(name: str = "search_knowledge") -> dict[str, str]:
    return ACCEPT | {"MCP-Protocol-Version": "2026-07-28", "Mcp-Method": "tools/call", "Mcp-Name": name}


async def legacy_headers(web: httpx2.AsyncClient, url: str, revision: str = "2025-11-25") -> dict[str, str]:
    info = {"protocolVersion": revision, "capabilities": {}, "clientInfo": {"name": "raw", "version": "0"}}
    opened = await web.post(url, headers=ACCEPT, json={"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": info})
    headers = ACCEPT | {"MCP-Protocol-Version": revision, "Mcp-Session-Id": opened.headers["mcp-session-id"]}
    await web.post(url, headers=headers, json={"jsonrpc": "2.0", "method": "notifications/initialized"})
    return headers


def message_in(response: httpx2.Response) -> dict[str, Any]:
    """The JSON-RPC message of an answer, whether it came as JSON or as an event stream."""
    if response.headers["content-type"].startswith("application/json"):
        return response.json()
    return json.loads([line for line in response.text.splitlines() if line.startswith("data: ")][-1].removeprefix("data: "))


async def cancelled(web: httpx2.AsyncClient, url: str) -> int:
    body = {"jsonrpc": "2.0", "id": 9, "method": "tools/call", "params": {"name": "expert_registry", "arguments": {}, "_meta": MODERN}}
    answer = message_in(await web.post(url, headers=modern_headers("expert_registry"), json=body))
    return int(re.findall(r"cancelled=(\d+)", json.dumps(answer))[0])


async def test_health_needs_no_token_and_tells_only_the_version(guarded: str, web: httpx2.AsyncClient) -> None:
    answer = await web.get(origin_of(guarded) + "/healthz")
    assert answer.status_code == 200
    assert answer.json() == {"status": "ok", "version": __version__}


@pytest.mark.parametrize(
    "header", [None, "Bearer wrong", f"Basic {TOKEN}", f"Bearer {TOKEN}x", TOKEN, "Bearer", "Bearer \xff", f"Bearer {TOKEN} {TOKEN}"]
)
async def test_without_the_token_nothing_is_reached(guarded: str, web: httpx2.AsyncClient, header: str | None) -> None:
    headers = [] if header is None else [(b"Authorization", header.encode("latin-1"))]
    for method, path in (("GET", ""), ("POST", ""), ("DELETE", ""), ("POST", "/messages/"), ("GET", "/nothing")):
        answer = await web.request(method, origin_of(guarded) + path if path else guarded, headers=headers)
        assert answer.status_code == 401
        assert answer.headers["www-authenticate"].startswith("Bearer")
        assert TOKEN not in answer.text


async def test_a_foreign_host_is_421_on_every_path(guarded: str, web: httpx2.AsyncClient) -> None:
    port = httpx2.URL(guarded).port
    for host in ("evil.example", f"evil.example:{port}", "127.0.0.1:1", "localhost", f"127.0.0.1.evil.example:{port}"):
        for path in ("/healthz", "/mcp", "/sse", "/messages/"):
            answer = await web.get(origin_of(guarded) + path, headers={"Host": host, "Authorization": f"Bearer {TOKEN}"})
            assert answer.status_code == 421


async def test_a_foreign_origin_is_403_on_every_path(guarded: str, web: httpx2.AsyncClient) -> None:
    port = httpx2.URL(guarded).port
    for origin in ("https://evil.example", "null", f"http://127.0.0.1.evil.example:{port}", f"https://127.0.0.1:{port}"):
        for path in ("/healthz", "/mcp", "/sse"):
            answer = await web.get(origin_of(guarded) + path, headers={"Origin": origin, "Authorization": f"Bearer {TOKEN}"})
            assert answer.status_code == 403


@pytest.mark.parametrize("name", ["127.0.0.1", "localhost", "[::1]"])
async def test_loopback_names_with_the_port_are_served(guarded: str, web: httpx2.AsyncClient, name: str) -> None:
    port = httpx2.URL(guarded).port
    headers = {"Host": f"{name}:{port}", "Origin": f"http://{name}:{port}"}
    assert (await web.get(origin_of(guarded) + "/healthz", headers=headers)).status_code == 200


async def test_a_body_over_the_limit_is_413_declared_or_streamed(guarded: str, web: httpx2.AsyncClient) -> None:
    async def chunks() -> AsyncGenerator[bytes]:
        for _ in range(5):
            yield b"x" * 32 * 1024

    path = "/messages/?session_id=" + "0" * 32 if guarded.endswith("/sse") else "/mcp"
    headers = ACCEPT | {"Authorization": f"Bearer {TOKEN}"}
    for content in (b"x" * (64 * 1024 + 1), chunks()):
        answer = await web.post(origin_of(guarded) + path, headers=headers, content=content)
        assert answer.status_code == 413


async def test_receipts_name_the_token_by_the_start_of_its_digest(web: httpx2.AsyncClient) -> None:
    with running("http", "--token", TOKEN) as child:
        url = child.url()
        headers = {"Authorization": f"Bearer {TOKEN}"}
        await web.post(url, headers=modern_headers() | headers, json=call("quick"))
        params = {"name": "expert_registry", "arguments": {}, "_meta": MODERN}
        body = {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": params}
        registry = await web.post(url, headers=modern_headers("expert_registry") | headers, json=body)
        errors = child.errors
    assert f"principal=token:{hashlib.sha256(TOKEN.encode()).hexdigest()[:8]}" in registry.text
    assert not any(TOKEN in line for line in errors)


async def test_a_closed_connection_cancels_the_search_in_both_eras(door: str, web: httpx2.AsyncClient) -> None:
    for era in ("modern", "legacy"):
        headers = modern_headers() if era == "modern" else await legacy_headers(web, door)
        before = await cancelled(web, door)
        async with web.stream("POST", door, headers=headers, json=call("slow", modern=era == "modern")) as answer:
            async for line in answer.aiter_lines():
                if "notifications/progress" in line:
                    break
        with anyio.fail_after(5):
            while await cancelled(web, door) != before + 1:
                await anyio.lowlevel.checkpoint()


async def test_a_cancelled_notification_cancels_the_search_of_an_older_client(door: str, web: httpx2.AsyncClient) -> None:
    headers = await legacy_headers(web, door)
    before = await cancelled(web, door)
    async with web.stream("POST", door, headers=headers, json=call("slow", modern=False, number=77)) as answer:
        async for line in answer.aiter_lines():
            if "notifications/progress" in line:
                break
        notice = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 77, "reason": "enough"}}
        assert (await web.post(door, headers=headers, json=notice)).status_code == 202
        with anyio.fail_after(5):
            while await cancelled(web, door) != before + 1:
                await anyio.lowlevel.checkpoint()


async def test_a_client_that_leaves_the_event_stream_cancels_its_searches(web: httpx2.AsyncClient) -> None:
    with running("sse") as child:
        url = child.url()
        async with web.stream("GET", url) as stream:
            lines = stream.aiter_lines()
            path = [line async for line in _until(lines, "data: /messages/")][-1].removeprefix("data: ")
            assert (await web.post(origin_of(url) + path, headers=ACCEPT, json=call("slow"))).status_code == 202
            assert [line async for line in _until(lines, "notifications/progress")]
        async with Client(sse_client(url)) as client:
            with anyio.fail_after(5):
                while True:
                    registry = await client.call_tool("expert_registry", {})
                    if "cancelled=1 " in registry.structured_content["experts"][0]["reason"]:
                        break


async def _until(lines: AsyncIterator[str], text: str) -> AsyncGenerator[str]:
    """Lines up to and with the first one that has the text. The iterator stays usable."""
    while True:
        line = await anext(lines)
        yield line
        if text in line:
            return


async def test_a_client_older_than_resource_links_gets_text_only(door: str, web: httpx2.AsyncClient) -> None:
    headers = await legacy_headers(web, door, "2025-03-26")
    result = message_in(await web.post(door, headers=headers, json=call("quick", modern=False)))["result"]
    assert [block["type"] for block in result["content"]] == ["text"]


@pytest.mark.parametrize("arguments", [[1], "text", 5, True])
async def test_arguments_that_are_no_object_reach_the_router_too(door: str, web: httpx2.AsyncClient, arguments: object) -> None:
    for modern in (True, False):
        body = call("", modern=modern)
        body["params"]["arguments"] = arguments
        headers = modern_headers() if modern else await legacy_headers(web, door)
        result = message_in(await web.post(door, headers=headers, json=body))["result"]
        assert result["isError"]
        assert result["structuredContent"]["error"]["fields"] == ["arguments"]


async def test_a_lone_surrogate_is_answered_at_once(door: str, web: httpx2.AsyncClient) -> None:
    """In the newest revision it reaches the router; older revisions' parser refuses the body, which is a JSON-RPC error."""
    modern = await web.post(door, headers=modern_headers(), content=json.dumps(call("a \ud800 b")))
    assert message_in(modern)["result"]["structuredContent"]["error"]["code"] == "invalid-encoding"
    legacy = await web.post(door, headers=await legacy_headers(web, door), content=json.dumps(call("a \ud800 b", modern=False)))
    assert legacy.status_code == 400
    assert legacy.json()["error"]["code"] == -32700


async def test_header_values_are_read_without_the_spaces_around_them(door: str) -> None:
    """SEP-2243; another parser than h11 keeps them. httpx2 refuses to send such a header, so this is written by hand."""
    address = httpx2.URL(door)
    body = json.dumps(call("quick")).encode()
    headers = modern_headers() | {"Mcp-Name": "  search_knowledge  ", "Host": f"127.0.0.1:{address.port}", "Content-Length": str(len(body))}
    head = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
    with anyio.fail_after(10):
        async with await anyio.connect_tcp("127.0.0.1", address.port or 0) as connection:
            await connection.send(f"POST /mcp HTTP/1.1\r\n{head}\r\n".encode() + body)
            assert (await connection.receive()).startswith(b"HTTP/1.1 200 ")


def test_uvicorn_parses_with_h11_whatever_is_installed() -> None:
    config = listener_config(Starlette(), HttpConfig(host="127.0.0.1", port=1, max_body_bytes=1024))
    config.load()
    assert issubclass(config.http_protocol_class, H11Protocol)
    assert not config.access_log
    assert config.timeout_graceful_shutdown == 3


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.1", "example.org"])
def test_a_host_that_others_can_reach_needs_a_token(host: str) -> None:
    with pytest.raises(ConfigError, match="a bearer token is required"):
        build_http_app(FakeRouter(), HttpConfig(host=host, port=1, max_body_bytes=1024), None)
    assert build_http_app(FakeRouter(), HttpConfig(host=host, port=1, max_body_bytes=1024), TOKEN)


@pytest.mark.parametrize("host", ["0.0.0.0", "127.0.0.1"])
@pytest.mark.parametrize("token", [" ", "\t\n", "\u00a0\u2003"])
def test_a_token_of_white_space_is_refused_at_start_wherever_it_listens(host: str, token: str) -> None:
    with pytest.raises(ConfigError, match="SEARCH_ROUTER_TOKEN: is nothing but white space"):
        build_http_app(FakeRouter(), HttpConfig(host=host, port=1, max_body_bytes=1024), token)


def test_an_empty_token_is_none() -> None:
    http = HttpConfig(host="0.0.0.0", port=1, max_body_bytes=1024)
    with pytest.raises(ConfigError, match="a bearer token is required"):
        build_http_app(FakeRouter(), http, "")
    assert build_http_app(FakeRouter(), http.model_copy(update={"host": "127.0.0.1"}), "")


def test_the_command_refuses_a_blank_token_with_the_exit_code_of_the_configuration(tmp_path: Path) -> None:
    ended = run_cli(tmp_path, "serve", "--transport", "http", "--port", "0", environ={"SEARCH_ROUTER_TOKEN": "  "})
    assert ended.code == 5
    assert "SEARCH_ROUTER_TOKEN" in ended.stderr
    assert "listening" not in ended.stderr


@pytest.mark.parametrize("host", ["127.0.0.1", "127.8.8.8", "::1", "[::1]", "localhost"])
def test_a_loopback_host_needs_none(host: str) -> None:
    assert build_http_app(FakeRouter(), HttpConfig(host=host, port=1, max_body_bytes=1024), None)


def test_configured_callers_are_added_to_the_loopback_names() -> None:
    http = HttpConfig(host="0.0.0.0", port=80, max_body_bytes=1024, allowed_hosts=("code.lan",), allowed_origins=("https://code.lan",))
    callers = allowed_callers(http)
    assert {"127.0.0.1:80", "localhost:80", "[::1]:80", "127.0.0.1", "code.lan"} <= set(callers.allowed_hosts)
    assert {"http://localhost:80", "https://code.lan"} <= set(callers.allowed_origins)


def test_a_port_in_use_is_an_error_that_says_so() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(ConfigError, match=f"cannot listen on 127.0.0.1 port {port}: .*in use"):
            bind(HttpConfig(host="127.0.0.1", port=port, max_body_bytes=1024))


def test_a_server_without_the_token_that_it_needs_ends_with_a_reason() -> None:
    child = Child("http", "--host", "0.0.0.0")
    try:
        assert child.wait(30) == 2
    finally:
        child.stop()
    assert any("a bearer token is required" in line for line in child.errors)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
async def test_a_signal_ends_the_server_cleanly_while_a_search_and_a_stream_are_open(web: httpx2.AsyncClient, number: int) -> None:
    with running("http") as child:
        url = child.url()
        async with web.stream("POST", url, headers=modern_headers(), json=call("slow")) as answer:
            async for line in answer.aiter_lines():
                if "notifications/progress" in line:
                    break
            child.process.send_signal(number)
            assert await anyio.to_thread.run_sync(child.wait) == 0
    assert child.errors[-1] == "ended cleanly"
