"""Servers of 2026-07-28, which have no `initialize`: a strict one of our own that refuses it, and the SDK's, asked in the newer way."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from search_router.adapters.remote.eras import enveloped, header_value
from search_router.adapters.remote.handshake import discover
from search_router.adapters.remote.http import open_http
from search_router.adapters.remote.link import Target
from search_router.adapters.remote.stdio import open_stdio
from search_router.errors import ExpertError, FailureClass
from tests.adapters.remote import test_sdk_servers as sdk
from tests.adapters.remote.desk import call_for, config_of, expert_of

pytestmark = [pytest.mark.anyio, pytest.mark.network]
SERVER = Path(__file__).with_name("modern_server.py")
REFUSALS = (-32601, -32602, -32022)


@contextmanager
def config_on(transport: str, code: int, *offered: str, **more: Any) -> Generator[Any]:
    argv = [sys.executable, "-I", "-S", str(SERVER), transport, str(code), *([json.dumps(offered)] if offered else [])]
    if transport == "stdio":
        yield config_of("mcp", command=argv, **more)
        return
    with subprocess.Popen(argv, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            yield config_of("mcp", transport="http", url=f"http://127.0.0.1:{process.stdout.readline().strip()}/mcp", **more)
        finally:
            process.kill()


@pytest.mark.parametrize("transport", ["stdio", "http"])
@pytest.mark.parametrize("code", REFUSALS)
async def test_a_server_without_initialize_is_spoken_with_in_the_newer_way_and_that_is_said(
    tmp_path: Path, transport: str, code: int
) -> None:
    with config_on(transport, code) as config:
        async with expert_of(config) as expert:
            for _ in range(2):
                result = await expert.search(call_for(tmp_path))
                assert [(h.path, h.start_line) for h in result.hits] == [("src/app.py", 4)]
                assert (result.server_name, result.server_version, result.notes) == ("newest", "7", ())
            details = (await expert.health(())).details
            assert details["protocol"] == "2026-07-28"
            assert details["initialize"] == f"refused: the initialize handshake is not accepted (code {code})"


@pytest.mark.parametrize("transport", ["stdio", "http"])
async def test_a_server_of_no_version_that_we_know_is_a_protocol_error_that_names_both_sides(tmp_path: Path, transport: str) -> None:
    with config_on(transport, -32022, "2031-01-01") as config:
        async with expert_of(config) as expert:
            with pytest.raises(ExpertError, match=r"offers 2031-01-01; this client knows 2024-11-05.*2026-07-28") as caught:
                await expert.search(call_for(tmp_path))
            assert caught.value.failure is FailureClass.PROTOCOL_ERROR


@pytest.mark.parametrize("transport", ["stdio", "http"])
async def test_a_server_that_wants_input_before_it_answers_is_a_refusal(tmp_path: Path, transport: str) -> None:
    with config_on(transport, -32601, tool="ask") as config:
        async with expert_of(config) as expert:
            with pytest.raises(ExpertError, match=r"wants more before it answers \(input_required\)") as caught:
                await expert.search(call_for(tmp_path))
            assert caught.value.failure is FailureClass.REJECTED


async def test_a_server_with_trouble_of_its_own_is_not_asked_in_another_way(tmp_path: Path) -> None:
    with config_on("stdio", -32000) as config:
        async with expert_of(config) as expert:
            with pytest.raises(ExpertError) as caught:
                await expert.search(call_for(tmp_path))
            assert caught.value.failure is FailureClass.UNAVAILABLE
            assert "code -32000" in str(caught.value) and "discover" not in str(caught.value)


async def test_the_sdks_server_understands_the_newer_way_over_stdio() -> None:
    target = Target("stdio", argv=(sys.executable, str(sdk.SERVER), "stdio"), cwd="/", inherit=None)
    async with open_stdio(target) as link:
        await check(link)


async def test_the_sdks_server_understands_the_newer_way_over_http() -> None:
    port = sdk.free_port()
    async with sdk.running("http", port), open_http(Target("http", url=f"http://127.0.0.1:{port}/mcp")) as link:
        await check(link)


async def check(link: Any) -> None:
    connected = await discover(link, 60)
    assert (connected.protocol, connected.server_name, connected.server_version) == ("2026-07-28", "made with the SDK", "2.3")
    assert set(connected.tools) == {"search"}
    result = (await link.call("tools/call", {"name": "search", "arguments": {"question": "x"}}, 60)).result
    assert result["structuredContent"]["items"][0]["path"] == "src/app.py"


@given(st.text(max_size=40))
def test_a_header_is_printable_and_says_the_same(text: str) -> None:
    from mcp.shared.inbound import decode_header_value

    made = header_value(text)
    assert made.isascii() and made.isprintable() and made == made.strip()
    try:
        text.encode()
    except UnicodeEncodeError:
        return
    assert decode_header_value(made) == text


def test_older_requests_carry_nothing_new() -> None:
    params = {"name": "search"}
    assert enveloped(params, "2025-06-18") is params
    assert enveloped(params, None) is params
    assert set(enveloped(params, "2026-07-28") or {}) == {"name", "_meta"}
