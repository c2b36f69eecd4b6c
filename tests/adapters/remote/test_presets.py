"""The contract with each system that there is a preset for: its recorded answers, replayed by a local server in the recorded form.

Files named FROM-SOURCE or MADE-UP are no recordings: those systems could not be run where this was written.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import AsyncGenerator, Generator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

import pytest

from search_router.adapters.remote.expert import RemoteExpert
from search_router.adapters.remote.judge import Received, judge
from search_router.adapters.remote.kinds import make_remote_experts
from search_router.adapters.remote.presets import Preset, load_preset, preset_names
from search_router.config.loader import load_config
from search_router.config.remote import AnswerConfig
from search_router.errors import ExpertError, FailureClass
from search_router.schema import Hit, QueryForm
from tests.adapters.remote.desk import MODELS, call_for

pytestmark = pytest.mark.anyio
HERE = Path(__file__).parent
REPLAY = HERE / "replay_server.py"


def recording(name: str) -> Path:
    return HERE / "recordings" / f"{name}.json"


@contextmanager
def replayed(block: dict[str, Any], names: tuple[str, ...]) -> Generator[dict[str, Any]]:
    """The block with the recordings in the system's place."""
    argv = [sys.executable, "-I", "-S", str(REPLAY)]
    files = [str(recording(name)) for name in names]
    if block["transport"] == "stdio":
        yield block | {"command": [*argv, "stdio", *files], "requires_env": [], "index_files": []}
        return
    with subprocess.Popen([*argv, "http", *files], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        url = f"http://127.0.0.1:{process.stdout.readline().strip()}/mcp"
        try:
            yield block | {"url": url, "requires_env": [], "headers": {}}
        finally:
            process.kill()


@asynccontextmanager
async def replay(preset: str, expert: str, *names: str) -> AsyncGenerator[RemoteExpert]:
    with replayed(dict(load_preset(preset).experts[expert]), names) as block:
        made = make_remote_experts({expert: MODELS[block["kind"]].model_validate_json(json.dumps(block))})[expert]
        try:
            yield made
        finally:
            await made.aclose()


def places(hits: tuple[Hit, ...]) -> list[tuple[str | None, int | None, int | None]]:
    """Path and 1-based closed lines, as the router will count them."""
    shift = {hit: 1 - hit.line_base for hit in hits}
    return [
        (h.path, None if h.start_line is None else h.start_line + shift[h], None if h.end_line is None else h.end_line + shift[h])
        for h in hits
    ]


SYMBOL = {"form": QueryForm.SYMBOL, "terms": ("Client.send",)}


async def test_serena_finds_a_definition_in_lines_that_begin_at_zero(tmp_path: Path) -> None:
    async with replay("serena", "serena", "serena.find_symbol") as expert:
        result = await expert.search(call_for(tmp_path, "who calls Client.send", **SYMBOL))
        assert places(result.hits) == [("httpx/_client.py", 879, 928)]
        assert (result.hits[0].symbol, result.hits[0].kind, result.hits[0].is_definition) == ("Client.send", "method", True)
        with pytest.raises(ExpertError, match="question has none") as caught:
            await expert.search(call_for(tmp_path, "how are redirects followed"))
        assert caught.value.failure is FailureClass.REJECTED


async def test_serena_finds_references_in_two_steps(tmp_path: Path) -> None:
    async with replay("serena", "serena-references", "serena.find_symbol", "serena.find_referencing_symbols") as expert:
        result = await expert.search(call_for(tmp_path, "who calls Client.send", **SYMBOL))
        found = [(path, start) for path, start, _ in places(result.hits)]
        assert found[:2] == [("httpx/_client.py", 825), ("httpx/_client.py", 868)]
        assert len(found) == 6
        assert result.hits[0].symbol == "Client.request"


async def test_serena_without_its_language_server_is_unavailable(tmp_path: Path) -> None:
    async with replay("serena", "serena", "serena.ls-failure") as expert:
        with pytest.raises(ExpertError) as caught:
            await expert.search(call_for(tmp_path, **SYMBOL))
        assert caught.value.failure is FailureClass.UNAVAILABLE


async def test_chunkhound_blocks_are_read_by_their_headings_and_fences(tmp_path: Path) -> None:
    literal = {"form": QueryForm.LITERAL, "terms": ("def _build_redirect_request",)}
    async with replay("chunkhound", "chunkhound-regex", "chunkhound.regex") as expert:
        result = await expert.search(call_for(tmp_path, **literal))
        assert places(result.hits) == [("httpx/_client.py", a, b) for a, b in ((465, 490), (473, 504), (475, 492))]
    async with replay("chunkhound", "chunkhound", "chunkhound.semantic") as expert:
        result = await expert.search(call_for(tmp_path, "how are redirects followed"))
        assert [(h.path, h.start_line, h.native_score) for h in result.hits] == [
            ("docs/quickstart.md", 435, 68.0),
            ("httpx/_models.py", 536, 63.0),
            ("httpx/_client.py", 868, 60.0),
        ]


@pytest.mark.parametrize(
    ("preset", "expert", "name", "expected"),
    [
        ("chunkhound", "chunkhound-regex", "chunkhound.err-bad-regex-lancedb", FailureClass.REJECTED),
        ("chunkhound", "chunkhound", "chunkhound.err-embedder-down", FailureClass.UNAVAILABLE),
        ("chunkhound", "chunkhound", "chunkhound.err-semantic-without-embeddings", FailureClass.UNCONFIGURED),
        ("claude-context", "claude-context", "claude-context.err-not-indexed", FailureClass.INDEX_MISSING),
        ("claude-context", "claude-context", "claude-context.err-embedder-down", FailureClass.UNAVAILABLE),
        ("claude-context", "claude-context", "claude-context.crash-milvus-down", FailureClass.CRASHED),
        ("semble", "semble", "semble.err-bad-path-not-flagged", FailureClass.UNAVAILABLE),
        ("semble", "semble", "semble.err-model-offline", FailureClass.UNAVAILABLE),
        ("context7", "external-docs", "context7.err-offline-resolve", FailureClass.UNAVAILABLE),
        ("codegraph", "codegraph-callers", "codegraph.noindex-callers", FailureClass.INDEX_MISSING),
    ],
)
async def test_each_failure_that_was_seen_has_its_class(
    tmp_path: Path, preset: str, expert: str, name: str, expected: FailureClass
) -> None:
    asked = call_for(tmp_path, "how are redirects followed", form=QueryForm.LITERAL, terms=("redirects",))
    async with replay(preset, expert, name) as made:
        with pytest.raises(ExpertError) as caught:
            await made.search(asked)
        assert caught.value.failure is expected, str(caught.value)


@pytest.mark.parametrize(
    ("preset", "expert", "name"),
    [
        ("chunkhound", "chunkhound-regex", "chunkhound.empty"),
        ("claude-context", "claude-context", "claude-context.hybrid-silent-empty"),
    ],
)
async def test_nothing_found_is_no_failure(tmp_path: Path, preset: str, expert: str, name: str) -> None:
    async with replay(preset, expert, name) as made:
        assert (await made.search(call_for(tmp_path, "nothing", form=QueryForm.LITERAL, terms=("zzz",)))).hits == ()


async def test_claude_context_hits_are_read_from_anchor_to_anchor(tmp_path: Path) -> None:
    async with replay("claude-context", "claude-context", "claude-context.search") as expert:
        result = await expert.search(call_for(tmp_path, "how are redirects followed"))
        assert len(result.hits) == 3
        assert places(result.hits)[0] == ("httpx/_client.py", 896, 977)


async def test_semble_answers_json_in_text(tmp_path: Path) -> None:
    async with replay("semble", "semble", "semble.search") as expert:
        result = await expert.search(call_for(tmp_path, "how does the client follow redirects"))
        assert places(result.hits)[:2] == [("httpx/_client.py", 887, 910), ("tests/client/test_redirects.py", 243, 257)]
        assert result.hits[0].native_score == pytest.approx(0.0192110, abs=1e-6)


async def test_dora_counts_from_zero_and_leaves_a_dot_behind_names(tmp_path: Path) -> None:
    (tmp_path / "source/core").mkdir(parents=True)
    (tmp_path / "source/core/constants.ts").write_text("changed after it was indexed\n")
    async with replay("dora", "dora", "dora.symbol", "dora.status") as expert:
        result = await expert.search(call_for(tmp_path, form=QueryForm.SYMBOL, terms=("Ky",)))
        assert {hit.path for hit in result.hits if "stale-index" in hit.flags} == {"source/core/constants.ts"}
        assert places(result.hits)[0] == ("source/core/constants.ts", 246, 246)
        assert result.hits[0].symbol == "kyOptionKeys"
        assert (await expert.search(call_for(tmp_path, form=QueryForm.SYMBOL, terms=("NoSuchXyz",)))).hits == ()


async def test_codegraph_callers_are_read_from_its_markdown(tmp_path: Path) -> None:
    async with replay("codegraph", "codegraph-callers", "codegraph.callers") as expert:
        result = await expert.search(call_for(tmp_path, limit=100, **SYMBOL))
        assert places(result.hits)[0] == ("tests/conftest.py", 79, None)
        assert len(result.hits) == 20


def test_codegraph_json_of_its_command_line() -> None:
    answer = AnswerConfig.model_validate_json(json.dumps(load_preset("codegraph").experts["codegraph"]["answer"]))
    records = judge(answer, Received(recording("codegraph.cli-query").read_text()))
    assert records[1]["path"] == "httpx/_client.py"
    assert (records[1]["start_line"], records[1]["symbol"]) == (879, "Client::send")


async def test_external_docs_ask_twice_and_are_documents(tmp_path: Path) -> None:
    async with replay("context7", "external-docs", "context7.FROM-SOURCE") as expert:
        for _ in range(2):
            (hit,) = (await expert.search(call_for(tmp_path, "how to set timeouts in httpx", terms=("httpx",)))).hits
            assert hit.document is not None
            assert (hit.document.title, hit.path) == ("Set a timeout", None)


async def test_svelte_sections_are_chosen_by_the_words_of_the_question(tmp_path: Path) -> None:
    async with replay("svelte", "svelte-docs", "svelte.list-sections-STUBBED", "svelte.get-documentation-STUBBED") as expert:
        result = await expert.search(call_for(tmp_path, "how does reactive state work"))
        documents = [hit.document for hit in result.hits]
        assert documents[0] is not None and documents[0].title == "$state"
        assert (await expert.search(call_for(tmp_path, "zebra"))).hits == ()


async def test_cloudflare_is_read_from_structured_content(tmp_path: Path) -> None:
    async with replay("cloudflare-docs", "cloudflare-docs", "cloudflare-docs.FROM-SOURCE") as expert:
        (hit,) = (await expert.search(call_for(tmp_path, "kv limits"))).hits
        assert hit.document is not None
        assert (hit.document.url, hit.native_score) == ("https://developers.cloudflare.com/kv/", 0.8)
        assert (await expert.search(call_for(tmp_path, "nothing"))).hits == ()


async def test_sourcebot_repositories_become_projects_and_strangers_are_dropped_with_a_count(tmp_path: Path) -> None:
    async with replay("sourcebot", "sourcebot", "sourcebot.FROM-SOURCE") as expert:
        result = await expert.search(call_for(tmp_path, form=QueryForm.LITERAL, terms=("redirects",)))
        assert places(result.hits) == [("httpx/_client.py", 465, None), ("httpx/_client.py", 470, None)]
        assert result.notes == ("1 of its items name no file of these projects",)
        with pytest.raises(ExpertError, match="zoekt is away"):
            await expert.search(call_for(tmp_path, form=QueryForm.LITERAL, terms=("broken",)))


async def test_codesearch_says_as_success_that_its_index_is_missing(tmp_path: Path) -> None:
    async with replay("codesearch", "codesearch-rust", "codesearch.FROM-SOURCE") as expert:
        assert places((await expert.search(call_for(tmp_path, "redirects"))).hits) == [("httpx/_client.py", 465, 490)]
        assert (await expert.search(call_for(tmp_path, "nothing"))).hits == ()
        with pytest.raises(ExpertError) as caught:
            await expert.search(call_for(tmp_path, "no index"))
        assert caught.value.failure is FailureClass.INDEX_MISSING


async def test_coregraph_and_auggie_are_read_as_their_presets_suppose(tmp_path: Path) -> None:
    async with replay("coregraph", "coregraph", "coregraph.FROM-SOURCE") as expert:
        result = await expert.search(call_for(tmp_path, form=QueryForm.SYMBOL, terms=("send",)))
        assert places(result.hits) == [("httpx/_client.py", 879, None), ("httpx/_client.py", 825, None)]
    async with replay("auggie", "auggie", "auggie.MADE-UP") as expert:
        (hit,) = (await expert.search(call_for(tmp_path, "what is asked for"))).hits
        assert hit.document is not None and hit.document.text == "The code that was asked for."


@pytest.mark.parametrize("name", preset_names())
def test_each_preset_is_a_sound_configuration_with_priors_and_a_page(tmp_path: Path, name: str) -> None:
    preset: Preset = load_preset(name)
    user = tmp_path / "user.toml"
    user.write_text(preset.text)
    environ = {"SEARCH_ROUTER_HOME": str(tmp_path), "SEARCH_ROUTER_CONFIG": str(user)}
    config = load_config(roots=[tmp_path], environ=environ).config
    for expert in preset.experts:
        assert config.experts[expert].enabled
        assert any(expert in priors for priors in config.priors.values())
    assert (HERE.parents[2] / "docs" / "experts" / f"{name}.md").is_file()
    assert not any(os.environ.get(variable, "") in preset.text for variable in preset.variables if os.environ.get(variable))


def test_no_preset_is_on_by_default(tmp_path: Path) -> None:
    config = load_config(roots=[tmp_path], environ={"SEARCH_ROUTER_HOME": str(tmp_path)}).config
    assert not any(block.kind in ("mcp", "command", "http-json", "milvus") for block in config.experts.values())
