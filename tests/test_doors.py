"""The product as a client meets it: real servers as child processes, a real repository, real experts, every transport, both eras."""

from __future__ import annotations

import base64
import hashlib
import json
import subprocess
from collections.abc import AsyncGenerator, Generator
from contextlib import ExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import anyio
import jsonschema
import mcp_types as types
import pytest
import rfc8785
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from cryptography.hazmat.primitives.serialization import load_pem_public_key
from mcp import Client, StdioServerParameters
from mcp.client.sse import sse_client

from search_router.receipts.reading import ReceiptReader
from tests.repositories import commit_all, make_repository, write_files
from tests.scripted_router import EMBEDDED, expert_flags
from tests.server_child import PRODUCT, ROOT, child_env, running

pytestmark = pytest.mark.anyio
ERAS = {"auto": "2026-07-28", "legacy": "2025-11-25"}
DOORS = [f"{transport}-{era}" for transport in ("stdio", "sse", "http") for era in ERAS]
TOOLS = ["search_knowledge", "fetch_evidence", "expert_registry", "get_receipt", "report_outcome"]

FIRST = {
    "src/billing/invoice.py": (
        "from src.billing.tax import add_tax\n\n\n"
        "class InvoiceBook:\n"
        '    """Invoices by number."""\n\n'
        "    def __init__(self):\n        self.invoices = {}\n\n"
        "    def total_with_tax(self, number):\n"
        '        """The amount of one invoice, tax included."""\n'
        "        return add_tax(self.invoices[number])\n"
    ),
    "src/billing/tax.py": "RATE = 0.19\n\n\ndef add_tax(amount):\n    return amount * (1 + RATE)\n",
    "README.md": "# Shop\n\nInvoices are computed with tax.\n",
}
SECOND = {
    "web/cart.js": "export function renderCart(items) {\n  return items.map((item) => `<li>${item.name}</li>`).join('')\n}\n",
    "web/naïve 搜索.js": "export const naiveGreeting = 'שלום 🧭'\n",
}
THIRD = {"src/billing/tax.py": "RATE = 0.2\n\n\ndef add_tax(amount):\n    return round(amount * (1 + RATE), 2)\n"}


@dataclass(frozen=True)
class House:
    """A repository to search, and where a server keeps its state. `flags` are its command line."""

    root: Path
    home: Path
    flags: tuple[str, ...] = ()

    @property
    def env(self) -> dict[str, str]:
        return {"SEARCH_ROUTER_HOME": str(self.home), "SEARCH_ROUTER_CONFIG": str(self.home / "user.toml")}

    def arguments(self, transport: str) -> list[str]:
        return ["serve", "--transport", transport, "--port", "0", "--root", str(self.root), *self.flags]

    @property
    def public_key(self) -> bytes:
        return (self.home / "keys/receipt-ed25519.pem.pub").read_bytes()


def make_house(folder: Path, *flags: str) -> House:
    root = make_repository(folder / "shop", FIRST)
    for message, files in (("Add the cart", SECOND), ("Raise the tax rate", THIRD)):
        write_files(root, files)
        commit_all(root, message)
    home = folder / "home"
    home.mkdir()
    (home / "user.toml").touch()
    remembers_nothing = ("cache.positive_seconds=0", "cache.negative_seconds=0", "enrich.hints=false")  # the doors share a house
    fresh = [word for flag in remembers_nothing for word in ("--set", flag)]
    return House(root, home, (*fresh, *flags))


@contextmanager
def serving(house: House) -> Generator[dict[str, str]]:
    """One server for each HTTP transport; a stdio client starts its own."""
    with ExitStack() as servers:
        children = {
            transport: servers.enter_context(
                running(*house.arguments(transport), command=PRODUCT, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, **house.env)
            )
            for transport in ("http", "sse")
        }
        yield {"stdio": ""} | {transport: child.url() for transport, child in children.items()}


@asynccontextmanager
async def connected(house: House, transport: str, era: str, url: str) -> AsyncGenerator[Client]:
    target: Any = url
    if transport == "stdio":
        command, *arguments = [*PRODUCT, *house.arguments("stdio")]
        target = StdioServerParameters(command=command, args=arguments, cwd=ROOT, env=child_env(**house.env))
    elif transport == "sse":
        target = sse_client(url)
    async with Client(target, mode=era) as client:
        assert client.protocol_version == ERAS[era]
        yield client


@pytest.fixture(scope="module")
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory) -> House:
    return make_house(tmp_path_factory.mktemp("doors"))


@pytest.fixture(scope="module")
def urls(house: House) -> Generator[dict[str, str]]:
    with serving(house) as found:
        yield found


@pytest.fixture(scope="module", params=DOORS)
async def client(request: pytest.FixtureRequest, house: House, urls: dict[str, str]) -> AsyncGenerator[Client]:
    transport, era = request.param.split("-")
    async with connected(house, transport, era, urls[transport]) as client:
        yield client


async def call(client: Client, tool: str, arguments: Any) -> types.CallToolResult:
    with anyio.fail_after(30):
        return await client.call_tool(tool, arguments)


def text_of(result: types.CallToolResult) -> str:
    assert isinstance(result.content[0], types.TextContent)
    return result.content[0].text


def verify_independently(envelope: Any, public_pem: bytes, request: Any, response: dict[str, Any]) -> dict[str, Any]:
    """The statement of a receipt, checked by the published formats alone: DSSE v1, in-toto, RFC 8785. Nothing of ours runs here."""
    public = load_pem_public_key(public_pem)
    assert isinstance(public, Ed25519PublicKey)
    (signature,) = envelope["signatures"]
    assert signature["keyid"] == hashlib.sha256(public.public_bytes_raw()).hexdigest()
    kind, payload = envelope["payloadType"].encode(), base64.b64decode(envelope["payload"], validate=True)
    assert kind == b"application/vnd.in-toto+json"
    public.verify(base64.b64decode(signature["sig"], validate=True), b"DSSEv1 %d %b %d %b" % (len(kind), kind, len(payload), payload))
    statement = json.loads(payload)
    assert payload == rfc8785.dumps(statement)
    assert statement["_type"] == "https://in-toto.io/Statement/v1"
    answer = {name: value for name, value in response.items() if name != "receipt"}
    assert {s["name"]: s["digest"]["sha256"] for s in statement["subject"]} == {
        "request": hashlib.sha256(rfc8785.dumps(request)).hexdigest(),
        "response": hashlib.sha256(rfc8785.dumps(answer)).hexdigest(),
    }
    return statement


def checked(result: types.CallToolResult, house: House, request: Any) -> dict[str, Any]:
    """The predicate of the receipt that came with a result."""
    assert result.meta is not None
    envelope = result.meta["search-router/receipt"]
    statement = verify_independently(envelope, house.public_key, request, result.structured_content)
    reference = result.structured_content["receipt"]
    assert (reference["log"], reference["seq"]) == (statement["predicate"]["log"], statement["predicate"]["seq"])
    return statement["predicate"]


async def test_a_question_is_answered_fetched_and_proved_from_end_to_end(client: Client, house: House) -> None:
    assert [tool.name for tool in (await client.list_tools()).tools] == TOOLS

    question = {"question": "where is total_with_tax defined"}
    found = await call(client, "search_knowledge", question)
    assert not found.is_error
    answer = found.structured_content
    assert answer["status"] == "answered"
    first = answer["evidence"][0]
    assert (first["project"], first["path"], first["symbol"]) == ("shop", "src/billing/invoice.py", "InvoiceBook.total_with_tax")
    assert {source["expert"] for source in first["sources"]} >= {"grep", "symbols"}
    assert first["tier"] == "symbol-confirmed"
    assert f"1. {first['id']}" in text_of(found)

    fetched = await call(client, "fetch_evidence", {"ids": [first["id"]]})
    assert not fetched.is_error
    (item,) = fetched.structured_content["items"]
    assert item["fresh"] is True
    assert "return add_tax(self.invoices[number])" in item["text"]

    predicate = checked(found, house, question)
    assert (predicate["operation"], predicate["status"]) == ("search", "answered")
    assert {e["expert"] for e in predicate["experts"] if e["status"] == "ok"} >= {"grep", "symbols"}
    assert checked(fetched, house, {"ids": [first["id"]]})["operation"] == "fetch"

    read = await call(client, "get_receipt", {"id": answer["receipt"]["id"]})
    assert read.structured_content["envelope"] == (found.meta or {})["search-router/receipt"]
    link = found.content[1]
    assert isinstance(link, types.ResourceLink)
    (content,) = (await client.read_resource(link.uri)).contents
    assert isinstance(content, types.TextResourceContents)
    assert json.loads(content.text)["envelope"] == read.structured_content["envelope"]


async def test_history_is_answered_with_a_commit_that_can_be_fetched(client: Client, house: House) -> None:
    question = {"question": "when was the tax rate changed", "intent": "history"}
    found = await call(client, "search_knowledge", question)
    (commit, *_) = found.structured_content["evidence"]
    assert (commit["subject"], commit["path"]) == ("Raise the tax rate", None)
    fetched = await call(client, "fetch_evidence", {"ids": [commit["id"]]})
    assert "+RATE = 0.2" in fetched.structured_content["items"][0]["text"]
    checked(found, house, question)


async def test_text_of_every_script_comes_through(client: Client, house: House) -> None:
    question = {"question": "naiveGreeting", "detail": "full"}
    found = await call(client, "search_knowledge", question)
    first = found.structured_content["evidence"][0]
    assert first["path"] == "web/naïve 搜索.js"
    assert "שלום 🧭" in first["snippet"]
    checked(found, house, question)


@pytest.mark.parametrize(
    ("arguments", "status", "fault"),
    [
        ({}, "rejected", "question"),
        ({"question": 7, "limit": "many"}, "rejected", "limit"),
        ({"question": "add_tax", "unknown": 1}, "rejected", "unknown"),
        ({"question": "add_tax", "scope": {"project": "nope"}}, "rejected", "scope.project"),
        ({"question": "  \t "}, "declined", "empty"),
        ({"question": "x" * 5000}, "declined", "4096"),
    ],
)
async def test_a_bad_request_is_an_error_result_with_a_receipt(
    client: Client, house: House, arguments: dict[str, Any], status: str, fault: str
) -> None:
    result = await call(client, "search_knowledge", arguments)
    assert result.is_error
    assert result.structured_content["status"] == status
    assert fault in text_of(result)
    assert checked(result, house, arguments)["status"] == status


async def test_every_answer_fits_the_published_schema_of_its_tool(client: Client) -> None:
    listed = {tool.name: tool.output_schema for tool in (await client.list_tools()).tools}
    wanted = {
        "answered": {"question": "add_tax"},
        "empty": {"question": "zyxwvutsrq"},
        "declined": {"question": ""},
        "rejected": {"question": "add_tax", "limit": 0},
    }
    for status, arguments in wanted.items():
        result = await call(client, "search_knowledge", arguments)
        assert result.structured_content["status"] == status
        _validate(listed["search_knowledge"], result.structured_content)
        receipt = await call(client, "get_receipt", {"id": result.structured_content["receipt"]["id"]})
        _validate(listed["get_receipt"], receipt.structured_content)
    for ids in (["shop/README.md#L1-L2@000000000000"], ["nonsense"], "wrong"):
        _validate(listed["fetch_evidence"], (await call(client, "fetch_evidence", {"ids": ids})).structured_content)
    registry = (await call(client, "expert_registry", {})).structured_content
    _validate(listed["expert_registry"], registry)
    assert all(e["available"] or "optional" in e["details"] for e in registry["experts"])
    assert {e["id"] for e in registry["experts"]} >= {"grep", "symbols", "history"}


def _validate(schema: dict[str, Any] | None, value: Any) -> None:
    assert schema is not None
    jsonschema.Draft202012Validator(schema).validate(value)


# ------------------------------------------------------------------ with experts that fail and hang


@pytest.fixture(scope="module")
def scripted(tmp_path_factory: pytest.TempPathFactory) -> House:
    """Two scripted experts beside none of the real ones: `quick` answers or fails, `slow` never answers to `wait`."""
    folder = tmp_path_factory.mktemp("scripted")
    scripts = {
        "quick": [{"when": "boom", "fault": "crashed"}, {"when": "*", "hits": [{"path": "src/billing/tax.py", "start_line": 4}]}],
        "slow": [{"when": "wait", "fault": "hang"}, {"when": "boom", "fault": "timeout"}, {"when": "*", "hits": []}],
    }
    flags = [f"experts.{name}.enabled=false" for name in EMBEDDED]
    flags += ['gate.default_set=["quick","slow"]', "budget.latency_ms=60000"]
    for name, answers in scripts.items():
        script = folder / f"{name}.json"
        script.write_text(json.dumps({"answers": answers}))
        flags += expert_flags(name, script, cap_ms=60_000)
    return make_house(folder, *(word for flag in flags for word in ("--set", flag)))


@pytest.fixture(scope="module")
def scripted_urls(scripted: House) -> Generator[dict[str, str]]:
    with serving(scripted) as found:
        yield found


@pytest.fixture(scope="module", params=DOORS)
async def scripted_client(request: pytest.FixtureRequest, scripted: House, scripted_urls: dict[str, str]) -> AsyncGenerator[Client]:
    transport, era = request.param.split("-")
    async with connected(scripted, transport, era, scripted_urls[transport]) as client:
        yield client


async def cancelled_receipts(house: House) -> dict[str, dict[str, Any]]:
    """Receipt id to predicate, of the cancelled requests of every server of this house."""
    found = await ReceiptReader(house.home / "receipts").list(200)
    return {r.id: r.statement()["predicate"] for r in found if r.status == "cancelled"}


async def test_a_client_that_leaves_cancels_the_experts_and_leaves_a_receipt(scripted_client: Client, scripted: House) -> None:
    before = await cancelled_receipts(scripted)
    asked = anyio.Event()

    async def on_progress(progress: float, total: float | None, message: str | None) -> None:
        asked.set()

    async def search() -> None:
        await scripted_client.call_tool("search_knowledge", {"question": "please wait"}, progress_callback=on_progress)

    with anyio.fail_after(20):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(search)
            await asked.wait()  # one expert has answered, the other hangs
            tasks.cancel_scope.cancel()
        while not (new := (await cancelled_receipts(scripted)).keys() - before.keys()):
            await anyio.lowlevel.checkpoint()
    (receipt,) = new
    experts = {e["expert"]: e["status"] for e in (await cancelled_receipts(scripted))[receipt]["experts"]}
    assert experts["slow"] == "cancelled"
    assert not (await call(scripted_client, "search_knowledge", {"question": "tax rate"})).is_error


async def test_experts_that_all_fail_are_an_error_that_fits_the_schema(scripted_client: Client, scripted: House) -> None:
    schema = (await scripted_client.list_tools()).tools[0].output_schema
    result = await call(scripted_client, "search_knowledge", {"question": "boom"})
    assert result.is_error
    assert (result.structured_content["status"], result.structured_content["empty_reason"]) == ("failed", "all_experts_failed")
    assert "crashed" in text_of(result)
    _validate(schema, result.structured_content)
    assert checked(result, scripted, {"question": "boom"})["status"] == "failed"
