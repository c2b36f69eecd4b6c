"""A real MCP client, started with the configuration that install wrote for each product, asks a question and gets evidence."""

from __future__ import annotations

import json
import os
import re
import sys
import tomllib
from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp import Client, StdioServerParameters

from search_router.clients.catalog import BY_ID, CLIENTS, Format, Scope, Surroundings
from search_router.clients.launch import Running, find_command
from search_router.clients.setup import Order, install
from tests.command_line import child_environ
from tests.repositories import make_repository

SECONDS = 60
FORMATS = ("claude-code", "vscode", "codex", "opencode")
"""One of each format and shape of an entry; the others are started in the slow run."""
BEFORE = {
    Format.JSON: '{"mcpServers": {"other": {"command": "x"}}}',
    Format.JSONC: '{\n  // settings of a person\n  "other": [1, 2,],\n}\n',
    Format.TOML: '# settings of a person\nmodel = "m"\n',
}


def read_as_the_client(client: str, text: str) -> dict[str, Any]:
    """The server's entry, without our parser: comments stand on lines of their own, commas before a closing bracket are dropped."""
    found = BY_ID[client]
    if found.format is Format.TOML:
        tree: Any = tomllib.loads(text)
    else:
        if found.format is Format.JSONC:
            text = re.sub(r",(\s*[\]}])", r"\1", re.sub(r"^\s*//.*$", "", text, flags=re.MULTILINE))
        tree = json.loads(text)
    for key in found.container:
        tree = tree[key]
    return tree["search-router"]


def server_of(client: str, entry: dict[str, Any], project: Path, environ: dict[str, str]) -> StdioServerParameters:
    """What the product would start: its own names for things replaced, in the directory in which it starts servers."""
    words = entry["command"] if isinstance(entry["command"], list) else [entry["command"], *entry["args"]]
    command, *arguments = [word.replace("${workspaceFolder}", str(project)) for word in words]
    assert Path(command).is_absolute()
    return StdioServerParameters(command=command, args=arguments, cwd=project if BY_ID[client].in_project else "/", env=environ)


@pytest.mark.anyio
@pytest.mark.parametrize(
    "client", [client.id if client.id in FORMATS else pytest.param(client.id, marks=pytest.mark.slow) for client in CLIENTS]
)
async def test_the_server_that_install_wrote_answers(tmp_path: Path, client: str) -> None:
    project = make_repository(tmp_path / "project ü", {"shop.py": "def charge_card(token):\n    return token\n"})
    (tmp_path / "home").mkdir()
    here = Surroundings("linux", tmp_path / "home", project, {})
    scope = Scope.PROJECT if BY_ID[client].project else Scope.USER
    path = BY_ID[client].project(here) if BY_ID[client].project else BY_ID[client].user(here)  # type: ignore[misc] - asked for in the same line
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(BEFORE[BY_ID[client].format])
    command = find_command(Running(sys.argv[0], sys.executable, sys.prefix, os.environ))
    roots = (project,) if BY_ID[client].names_no_project else ()
    install(BY_ID[client], Order(scope, command, roots), here, tmp_path / "state")
    target = server_of(client, read_as_the_client(client, path.read_text("utf-8")), project, child_environ(tmp_path))
    with anyio.fail_after(SECONDS):
        async with Client(target) as session:
            answer = (await session.call_tool("search_knowledge", {"question": "charge_card"})).structured_content
    assert answer is not None
    assert [item["path"] for item in answer["evidence"]] == ["shop.py"]
    assert answer["receipt"]["seq"] == 1
