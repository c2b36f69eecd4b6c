"""An older client's roots decide what is searched for it; a client that does not tell them is answered all the same."""

from __future__ import annotations

import warnings
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import anyio
import mcp_types as types
import pytest
from mcp import Client, StdioServerParameters

from search_router.mcp_roots import ANSWER_SECONDS, local_directories
from tests.command_line import child_environ
from tests.repositories import make_repository
from tests.server_child import PRODUCT

pytestmark = [pytest.mark.heavy, pytest.mark.anyio]


@dataclass
class Desk:
    """Three repositories with a file each; the server stands in the first."""

    folder: Path
    asked: int = 0
    told: list[str] = field(default_factory=list)

    def repository(self, name: str) -> Path:
        return self.folder / name

    async def tell(self, context: Any) -> types.ListRootsResult:
        self.asked += 1
        return types.ListRootsResult(roots=[types.Root(uri=uri) for uri in self.told])  # type: ignore[arg-type] - pydantic makes the URI

    async def refuse(self, context: Any) -> types.ErrorData:
        self.asked += 1
        return types.ErrorData(code=-32600, message="not your business")

    async def be_silent(self, context: Any) -> types.ListRootsResult:
        self.asked += 1
        await anyio.sleep_forever()
        raise AssertionError


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    for name in ("home base", "été 1", "other"):
        make_repository(tmp_path / name, {"a.py": f"zebra = {name!r}\n"})
    return Desk(tmp_path)


@asynccontextmanager
async def connected(
    desk: Desk, roots: Any, era: str = "legacy", flags: Sequence[str] = ("workspace.client_roots=true",)
) -> AsyncGenerator[Client]:
    options = [option for flag in flags for option in (("--set", flag) if "=" in flag else ("--root", flag))]
    command, *arguments = [*PRODUCT, "serve", *options]
    target = StdioServerParameters(command=command, args=arguments, cwd=desk.repository("home base"), env=child_environ(desk.folder))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # roots are deprecated, which is why this is an option
        async with Client(target, mode=era, list_roots_callback=roots) as client:
            yield client


async def projects_of(client: Client) -> tuple[set[str], list[str]]:
    """(projects with evidence, notes)."""
    with anyio.fail_after(30):
        answer = (await client.call_tool("search_knowledge", {"question": "zebra"})).structured_content
    assert answer is not None
    return {item["project"] for item in answer["evidence"]}, answer["notes"]


async def test_questions_are_answered_within_the_clients_roots_and_it_is_asked_once(desk: Desk) -> None:
    desk.told = [desk.repository("été 1").as_uri()]
    assert "%C3%A9t%C3%A9%201" in desk.told[0]
    async with connected(desk, desk.tell) as client:
        found, notes = await projects_of(client)
        assert (found, [n for n in notes if "roots" in n]) == ({"t-1"}, [])
        assert (await projects_of(client))[0] == {"t-1"}
        assert desk.asked == 1
        registry = (await client.call_tool("expert_registry", {})).structured_content
        assert registry is not None and [p["root"] for p in registry["projects"]] == [str(desk.repository("été 1"))]
        desk.told = [desk.repository("other").as_uri()]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            await client.send_roots_list_changed()
        assert (await projects_of(client))[0] == {"other"}
        assert desk.asked == 2


async def test_what_is_found_can_be_fetched_and_nothing_outside_of_the_roots(desk: Desk) -> None:
    desk.told = [desk.repository("other").as_uri()]
    async with connected(desk, desk.tell) as client:
        answer = (await client.call_tool("search_knowledge", {"question": "zebra"})).structured_content
        assert answer is not None
        fetched = (await client.call_tool("fetch_evidence", {"ids": [answer["evidence"][0]["id"]]})).structured_content
        assert fetched is not None and "zebra = 'other'" in fetched["items"][0]["text"]
        outside = await client.call_tool("fetch_evidence", {"ids": ["home-base/a.py#L1-L1@0123456789ab"]})
        assert outside.is_error


async def test_a_client_that_never_answers_is_answered_from_the_configured_workspace(desk: Desk) -> None:
    async with connected(desk, desk.be_silent) as client:
        began = anyio.current_time()
        found, notes = await projects_of(client)
        assert anyio.current_time() - began >= ANSWER_SECONDS - 0.1
        assert found == {"home-base"}
        assert any("it did not tell them within 2 s" in note for note in notes)
        assert (await projects_of(client))[0] == {"home-base"}
        assert desk.asked == 1


@pytest.mark.parametrize("how", ["refuses", "not here", "none"])
async def test_a_client_without_roots_that_can_be_used_is_told_so(desk: Desk, how: str) -> None:
    desk.told = {"refuses": [], "not here": [f"{desk.folder.as_uri()}/missing", "file://elsewhere/tmp"], "none": []}[how]
    async with connected(desk, desk.refuse if how == "refuses" else desk.tell) as client:
        found, notes = await projects_of(client)
    (note,) = [note for note in notes if "roots" in note]
    assert found == {"home-base"}
    assert {"refuses": "not your business", "not here": "directory of this machine", "none": "announced none"}[how] in note
    assert "the configured workspace was searched" in note


@pytest.mark.parametrize("why", ["newest", "no capability", "switched off", "root option", "configured"])
async def test_nobody_is_asked_who_should_not_be(desk: Desk, why: str) -> None:
    desk.told = [desk.repository("other").as_uri()]
    on = "workspace.client_roots=true"
    flags = {
        "switched off": (),
        "root option": (on, str(desk.repository("home base"))),
        "configured": (on, f'workspace.roots=["{desk.repository("home base")}"]'),
    }.get(why, (on,))
    era = "2026-07-28" if why == "newest" else "legacy"
    async with connected(desk, None if why == "no capability" else desk.tell, era, flags) as client:
        found, notes = await projects_of(client)
    assert (found, desk.asked) == ({"home-base"}, 0)
    assert not any("roots" in note for note in notes)


def test_only_local_existing_directories_are_taken(tmp_path: Path) -> None:
    (tmp_path / "a b").mkdir()
    (tmp_path / "ü").mkdir()
    (tmp_path / "file").touch()
    good = [f"file://{tmp_path}/a%20b", f"file://localhost{tmp_path}/%C3%BC", f"file://{tmp_path}/a b"]
    bad = [
        f"file://{tmp_path}/file",
        f"file://{tmp_path}/gone",
        f"file://host{tmp_path}",
        f"http://localhost{tmp_path}",
        "file:relative",
        "file:///%00",
        "file://[",
        "",
    ]
    assert local_directories([*good, *bad]) == ([tmp_path / "a b", tmp_path / "ü"], bad)
