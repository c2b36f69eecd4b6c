"""Remote experts inside a router: what the answer, the receipt and the registry say of them."""

from __future__ import annotations

import json
import sys
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from search_router.config.loader import load_config
from search_router.router.opening import open_router
from search_router.router.service import Router
from search_router.schema import Answer, Status, Tier
from tests.adapters.remote.desk import COMMON, SERVER, http_server
from tests.scripted_router import environ, write_files

pytestmark = [pytest.mark.anyio, pytest.mark.network]
INTENTS = ["conceptual", "identifier", "typed-symbol", "cross-repo-impact", "docs", "history"]


def toml(value: Any) -> str:
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{json.dumps(k)} = {toml(v)}" for k, v in value.items()) + "}"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(toml, value)) + "]"
    return json.dumps(value)


@asynccontextmanager
async def router_of(folder: Path, blocks: Mapping[str, Mapping[str, Any]], *flags: str) -> AsyncGenerator[Router]:
    root = folder / "work"
    write_files(root)
    there = load_config(roots=[root], environ=environ(folder)).config.experts
    whole = {name: {**COMMON, "kind": "mcp", "intents": INTENTS, **block} for name, block in blocks.items()}
    lines = [f"experts.{name} = {toml({k: v for k, v in block.items() if v is not None})}" for name, block in whole.items()]
    lines += [f"experts.{name}.enabled = false" for name in there]
    lines += [f"gate.default_set = {toml(sorted(blocks))}"]
    lines += [f"priors.{intent}.{name} = 0.5" for intent in (*INTENTS, "unknown") for name in blocks]
    user = folder / "user.toml"
    user.write_text("\n".join(lines) + "\n")
    async with open_router(roots=[root], flags=flags, environ=environ(folder)) as router:
        yield router


def stdio(start: str = "none", **more: Any) -> dict[str, Any]:
    command = [sys.executable, "-I", "-S", str(SERVER), "stdio", start]
    return {"command": command, "tool": "search", "arguments": {"question": "{question}"}, **more}


async def statement(router: Router, answer: Answer) -> dict[str, Any]:
    assert answer.receipt is not None
    return (await router.receipt(answer.receipt.id)).statement


QUESTION = {"question": "where does the application start", "intent": "conceptual", "budget": {"latency_ms": 20_000}}


async def test_a_stdio_and_an_http_server_answer_and_the_receipt_names_their_version(tmp_path: Path) -> None:
    with http_server() as url:
        web = {"transport": "http", "url": url, "tool": "search", "arguments": {"question": "{question}"}, "engine": "other"}
        async with router_of(tmp_path, {"near": stdio(), "far": web}) as router:
            answer = await router.search(QUESTION)
            assert {e.id: e.status.value for e in answer.experts if e.id in ("near", "far")} == {"near": "ok", "far": "ok"}
            assert [(i.path, i.tier) for i in answer.evidence] == [
                ("src/app.py", Tier.HYBRID_CONFIRMED),
                ("notes.txt", Tier.HYBRID_CONFIRMED),
            ]
            text = json.dumps(await statement(router, answer))
            assert '"9.1"' in text


async def test_two_typed_servers_on_different_engines_confirm_each_other(tmp_path: Path) -> None:
    blocks = {
        "one": stdio(precision_class="typed", engine="pyright"),
        "two": stdio(precision_class="typed", engine="ty"),
    }
    async with router_of(tmp_path, blocks) as router:
        answer = await router.search({**QUESTION, "question": "where is `start` defined", "intent": "typed-symbol"})
        assert answer.evidence[0].tier is Tier.TYPED_GRAPH_CONFIRMED


async def test_a_broken_server_holds_up_nobody_and_is_named(tmp_path: Path) -> None:
    blocks = {"good": stdio(), "dead": stdio("die-start"), "dumb": stdio("never-start", cap_ms=700)}
    async with router_of(tmp_path, blocks) as router:
        await router.search(QUESTION)  # starts the good one, however busy the machine is
        answer = await router.search({**QUESTION, "budget": {"latency_ms": 5000}})
        assert answer.status is Status.ANSWERED
        assert {e.id: e.status.value for e in answer.experts if e.id in blocks} == {"good": "ok", "dead": "crashed", "dumb": "timeout"}
        assert answer.budget.used_ms < 2500
        registry = await router.registry()
        dead = next(e for e in registry.experts if e.id == "dead")
        assert "cannot open the database" in dead.reason
        assert "Next try in" in dead.reason if not dead.available else "tried again by the next question" in dead.reason
        assert "sk-abcdefgh" not in registry.model_dump_json() + json.dumps(await statement(router, answer))


async def test_hits_outside_the_asked_work_tree_are_dropped_with_a_count(tmp_path: Path) -> None:
    outside = {"form": "json", "items": "env", "fields": {"path": ""}}  # names of variables: no files
    async with router_of(tmp_path, {"lost": stdio(answer=outside), "good": stdio(engine="x")}) as router:
        answer = await router.search(QUESTION)
        assert {i.path for i in answer.evidence} == {"src/app.py", "notes.txt"}
        assert "no longer there" in next(s.reason for s in answer.stages if s.stage == "identify")


async def test_an_expert_that_keeps_finding_nothing_while_others_find_becomes_suspect(tmp_path: Path) -> None:
    empty = stdio(arguments={"question": "fault=nothing"})
    async with router_of(tmp_path, {"good": stdio(), "silent": empty}) as router:
        seen: list[str] = []
        for _ in range(10):
            answer = await router.search(QUESTION)
            seen += [e.status.value for e in answer.experts if e.id == "silent"]
        assert seen == ["empty"] * 8 + ["suspect-empty"] * 2
        registry = await router.registry()
        silent = next(e for e in registry.experts if e.id == "silent")
        assert silent.available and "8 requests in a row" in silent.details["suspicion"]


async def test_an_expert_that_finds_its_canary_is_believed(tmp_path: Path) -> None:
    honest = stdio(arguments={"question": "{question}"}, answer={**COMMON["answer"], "empty": ['"question": "where']}, canary="def start")
    async with router_of(tmp_path, {"good": stdio(), "honest": honest}) as router:
        for _ in range(10):
            answer = await router.search(QUESTION)
            assert next(e.status.value for e in answer.experts if e.id == "honest") == "empty"
        broken = stdio(arguments={"question": "fault=nothing {question}"}, canary="def start")
    (tmp_path / "second").mkdir()
    async with router_of(tmp_path / "second", {"good": stdio(), "broken": broken}) as router:
        for _ in range(8):
            await router.search(QUESTION)
        answer = await router.search(QUESTION)
        report = next(e for e in answer.experts if e.id == "broken")
        assert report.status.value == "suspect-empty" and "nothing for 'def start' either" in report.reason


async def test_documents_from_elsewhere_are_evidence_that_cannot_be_fetched_again(tmp_path: Path) -> None:
    answer_form = {"form": "document"}
    async with router_of(tmp_path, {"manual": stdio(precision_class="docs", answer=answer_form, intents=["docs"])}) as router:
        answer = await router.search({**QUESTION, "intent": "docs"})
        (item,) = answer.evidence
        assert (item.kind, item.path, item.tier) == ("document", None, Tier.DOCS)
        assert item.id.startswith("work@document:")
        assert item.id in router.render(answer)
        fetched = await router.fetch({"ids": [item.id]})
        assert fetched.problems[0].code == "evidence-not-kept"
        assert answer.receipt is not None


async def test_the_catalog_never_waits_for_a_remote_server(tmp_path: Path) -> None:
    async with router_of(tmp_path, {"dumb": stdio("never-start")}) as router:
        registry = await router.registry()
        assert next(e.reason for e in registry.experts if e.id == "dumb") == "is started by the first question"
