"""The same behaviour on every transport and in both protocol eras: one body, eight runs, real child processes, the SDK's client."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Generator
from typing import Any

import anyio
import jsonschema
import mcp_types as types
import pytest
from mcp import Client, MCPError, StdioServerParameters
from mcp.client.sse import sse_client

from search_router.server import create_server
from tests.fake_router import ENVELOPE, FakeRouter
from tests.server_child import COMMAND, ROOT, child_env, running

pytestmark = pytest.mark.anyio
TRANSPORTS = ("memory", "stdio", "sse", "http")
ERAS = ("auto", "legacy")


@pytest.fixture(scope="module")
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(scope="module")
def http_url() -> Generator[str]:
    with running("http") as child:
        yield child.url()


@pytest.fixture(scope="module")
def sse_url() -> Generator[str]:
    with running("sse") as child:
        yield child.url()


@pytest.fixture(scope="module", params=[f"{t}-{e}" for t in TRANSPORTS for e in ERAS])
async def client(request: pytest.FixtureRequest) -> AsyncGenerator[Client]:
    transport, era = request.param.split("-")
    target: Any
    match transport:
        case "memory":
            target = create_server(FakeRouter(), session="memory")
        case "stdio":
            target = StdioServerParameters(command=COMMAND[0], args=[*COMMAND[1:], "stdio", "--noise"], cwd=ROOT, env=child_env())
        case "sse":
            target = sse_client(request.getfixturevalue("sse_url"))
        case _:
            target = request.getfixturevalue("http_url")
    async with Client(target, mode=era) as connected:
        assert connected.protocol_version == ("2026-07-28" if era == "auto" else "2025-11-25")
        yield connected


def text_of(result: types.CallToolResult) -> str:
    assert isinstance(result.content[0], types.TextContent)
    return result.content[0].text


async def cancelled_searches(client: Client) -> int:
    with anyio.fail_after(5):
        registry = await client.call_tool("expert_registry", {})
    return int(registry.structured_content["experts"][0]["reason"].split("cancelled=")[1].split()[0])


async def test_the_server_says_who_it_is_and_how_to_use_it(client: Client) -> None:
    assert client.server_info is not None
    assert (client.server_info.name, client.server_info.title) == ("search-router", "Search router")
    assert client.server_info.version
    assert client.instructions is not None
    assert "ONE question per call" in client.instructions


async def test_the_five_tools_are_listed_with_honest_annotations(client: Client) -> None:
    tools = (await client.list_tools()).tools
    assert [t.name for t in tools] == ["search_knowledge", "fetch_evidence", "expert_registry", "get_receipt", "report_outcome"]
    for tool in tools:
        assert tool.title
        assert tool.output_schema
        assert tool.annotations is not None
        flags = tool.annotations
        reads = tool.name != "report_outcome"
        assert (flags.read_only_hint, flags.idempotent_hint, flags.destructive_hint, flags.open_world_hint) == (reads, True, False, False)


async def test_an_answer_is_text_then_a_link_with_everything_structured_and_the_envelope_in_meta(client: Client) -> None:
    result = await client.call_tool("search_knowledge", {"question": "wo ist 搜索 🧭 שלום?"})
    assert not result.is_error
    assert text_of(result).startswith("answered: 1 item(s) 🧭 שלום")
    link = result.content[1]
    assert isinstance(link, types.ResourceLink)
    assert link.uri == "receipt://r-1"
    assert result.structured_content["evidence"][0]["path"] == "src/搜索.py"
    assert result.structured_content["evidence"][0]["snippet"] == "wo ist 搜索 🧭 שלום?"
    assert result.structured_content["receipt"] == {"id": "r-1", "seq": 1, "log": "main", "keyid": "k"}
    assert result.meta is not None
    assert result.meta["search-router/receipt"] == ENVELOPE


@pytest.mark.parametrize(
    ("question", "status"), [("decline this", "declined"), ("fail this", "failed"), ("   ", "declined"), ("a \x00 question", "answered")]
)
async def test_a_refusal_is_an_error_result_that_still_carries_the_whole_answer(client: Client, question: str, status: str) -> None:
    result = await client.call_tool("search_knowledge", {"question": question})
    assert result.structured_content["status"] == status
    assert result.is_error == (status != "answered")
    if result.is_error:
        assert text_of(result).startswith(f"{status}: ")
        assert "Mend the request." in text_of(result)
    tool = (await client.list_tools()).tools[0]
    assert tool.output_schema is not None
    jsonschema.validate(result.structured_content, tool.output_schema)
    assert result.meta is not None
    assert "search-router/receipt" in result.meta


@pytest.mark.parametrize(
    "arguments", [{}, {"question": 7}, {"question": None}, {"question": ["a"]}, {"question": "a", "unknown": 1}, {"Question": "a"}]
)
async def test_arguments_that_break_the_schema_reach_the_router_and_get_a_receipt(client: Client, arguments: dict[str, Any]) -> None:
    result = await client.call_tool("search_knowledge", arguments)
    assert result.is_error
    assert result.structured_content["status"] == "rejected"
    assert result.structured_content["error"]["fields"] == sorted(arguments)
    assert result.structured_content["receipt"]["id"] == "r-1"


async def test_an_answer_without_a_receipt_does_not_leave(client: Client) -> None:
    result = await client.call_tool("search_knowledge", {"question": "no receipt"})
    assert result.is_error
    assert result.structured_content is None
    assert len(result.content) == 1
    assert text_of(result) == "receipt-store-unavailable: The receipt store is read-only. Free some space and ask again."
    assert result.meta is not None
    assert "search-router/receipt" not in result.meta


async def test_a_path_that_is_not_utf8_is_spelled_out(client: Client) -> None:
    result = await client.call_tool("search_knowledge", {"question": "odd bytes"})
    assert result.structured_content["evidence"][0]["path"] == "caf\\xe9/na\\xefve.py"
    assert "caf\\xe9/na\\xefve.py" in text_of(result)


async def test_progress_arrives_while_experts_run(client: Client) -> None:
    seen: list[tuple[float, float | None, str | None]] = []

    async def on_progress(progress: float, total: float | None, message: str | None) -> None:
        seen.append((progress, total, message))

    await client.call_tool("search_knowledge", {"question": "quick"}, progress_callback=on_progress)
    await client.call_tool("expert_registry", {})  # the last notification may still be on its way
    assert seen == [(float(n), 3.0, f"expert {n} answered 🧭") for n in (1, 2, 3)]


async def test_a_client_that_stops_waiting_cancels_the_search(client: Client) -> None:
    before = await cancelled_searches(client)
    asked = anyio.Event()

    async def on_progress(progress: float, total: float | None, message: str | None) -> None:
        asked.set()

    async def search() -> None:
        await client.call_tool("search_knowledge", {"question": "slow one"}, progress_callback=on_progress)

    with anyio.fail_after(10):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(search)
            await asked.wait()
            tasks.cancel_scope.cancel()
        while await cancelled_searches(client) == before:
            await anyio.lowlevel.checkpoint()
    assert await cancelled_searches(client) == before + 1


async def test_a_slow_search_does_not_hold_up_another(client: Client) -> None:
    async def slow() -> None:
        await client.call_tool("search_knowledge", {"question": "slow two"})

    with anyio.fail_after(10):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(slow)
            assert not (await client.call_tool("search_knowledge", {"question": "quick"})).is_error
            tasks.cancel_scope.cancel()


async def test_evidence_is_fetched_and_what_cannot_be_is_named(client: Client) -> None:
    result = await client.call_tool("fetch_evidence", {"ids": ["e1", "gone"]})
    assert not result.is_error
    assert result.structured_content["items"][0]["text"] == "def a(): ...\n"
    assert [p["id"] for p in result.structured_content["problems"]] == ["gone"]
    nothing = await client.call_tool("fetch_evidence", {"ids": ["gone"]})
    assert nothing.is_error
    wrong = await client.call_tool("fetch_evidence", {"ids": "e1"})
    assert wrong.is_error
    assert "1 to 20 strings" in text_of(wrong)


async def test_the_registry_takes_no_arguments(client: Client) -> None:
    assert (await client.call_tool("expert_registry", {})).structured_content["experts"][0]["id"] == "grep"
    refused = await client.call_tool("expert_registry", {"x": 1})
    assert refused.is_error
    assert "leave out 'x'" in text_of(refused)


async def test_a_receipt_is_read_by_tool_and_by_resource(client: Client) -> None:
    result = await client.call_tool("get_receipt", {"id": "r-1"})
    assert result.structured_content["envelope"] == ENVELOPE
    assert '"_type": "s"' in text_of(result)
    content = (await client.read_resource("receipt://r-1")).contents[0]
    assert isinstance(content, types.TextResourceContents)
    assert content.mime_type == "application/json"
    assert '"statement": {"_type": "s"' in content.text
    templates = (await client.list_resource_templates()).resource_templates
    assert [t.uri_template for t in templates] == ["receipt://{id}"]
    assert (await client.list_resources()).resources == []


@pytest.mark.parametrize("arguments", [{"id": "nope"}, {"id": 3}, {}, {"id": "r-1", "more": True}])
async def test_a_receipt_that_is_not_there_is_an_error_result(client: Client, arguments: dict[str, Any]) -> None:
    result = await client.call_tool("get_receipt", arguments)
    assert result.is_error
    assert text_of(result).split(":")[0] == ("receipt-not-found" if arguments == {"id": "nope"} else "invalid-request")


@pytest.mark.parametrize("uri", ["receipt://nope", "receipt://", "file:///etc/passwd", "receipt://../r-1"])
async def test_an_unknown_resource_is_refused(client: Client, uri: str) -> None:
    with pytest.raises(MCPError) as caught:
        await client.read_resource(uri)
    assert caught.value.error.code == types.INVALID_PARAMS


async def test_an_unknown_tool_is_a_protocol_error_that_names_the_tools(client: Client) -> None:
    with pytest.raises(MCPError, match=r"Unknown tool: nope\. The tools are search_knowledge"):
        await client.call_tool("nope", {})


async def test_every_receipt_names_its_session_and_principal(client: Client, request: pytest.FixtureRequest) -> None:
    await client.call_tool("search_knowledge", {"question": "who am I"})
    reason = (await client.call_tool("expert_registry", {})).structured_content["experts"][0]["reason"]
    session = reason.split("session=")[1].split()[0]
    assert reason.endswith("principal=local")
    expected = {"memory": "memory", "stdio": "stdio:", "sse": "http:", "http": "http:"}
    transport, era = request.node.callspec.params["client"].split("-")
    assert session == "None" if (transport, era) == ("http", "auto") else session.startswith(expected[transport])
