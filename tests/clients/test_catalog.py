"""Where each client keeps its servers on each system, and what an entry looks like."""

from __future__ import annotations

from pathlib import Path

import pytest

from search_router.cli_install import IDS
from search_router.clients.catalog import BY_ID, CLIENTS
from search_router.clients.launch import Running, find_command, make_entry, make_launch
from search_router.errors import ClientFileError
from tests.clients.machine import Machine

COMMAND = ("/opt/bin/search-router",)


@pytest.mark.parametrize(
    ("platform", "client", "place"),
    [
        ("linux", "claude-code", ".claude.json"),
        ("linux", "claude-desktop", ".config/Claude/claude_desktop_config.json"),
        ("darwin", "claude-desktop", "Library/Application Support/Claude/claude_desktop_config.json"),
        ("win32", "claude-desktop", "AppData/Roaming/Claude/claude_desktop_config.json"),
        ("linux", "cursor", ".cursor/mcp.json"),
        ("linux", "vscode", ".config/Code/User/mcp.json"),
        ("darwin", "vscode", "Library/Application Support/Code/User/mcp.json"),
        ("win32", "vscode", "AppData/Roaming/Code/User/mcp.json"),
        ("linux", "codex", ".codex/config.toml"),
        ("linux", "gemini-cli", ".gemini/settings.json"),
        ("linux", "windsurf", ".config/devin/mcp_config.json"),
        ("win32", "windsurf", "AppData/Roaming/devin/mcp_config.json"),
        ("linux", "zed", ".config/zed/settings.json"),
        ("darwin", "zed", ".config/zed/settings.json"),
        ("linux", "opencode", ".config/opencode/opencode.json"),
    ],
)
def test_each_client_has_its_place_on_each_system(tmp_path: Path, platform: str, client: str, place: str) -> None:
    machine = Machine.make(tmp_path, platform)
    assert machine.file(client) == machine.here.home / place
    assert BY_ID[client].evidence(machine.here) is None


def test_variables_move_the_places(tmp_path: Path) -> None:
    there = str(tmp_path / "there")
    machine = Machine.make(tmp_path, XDG_CONFIG_HOME=there, CODEX_HOME=there, CLAUDE_CONFIG_DIR=there, APPDATA=there)
    assert machine.file("zed") == Path(there) / "zed/settings.json"
    assert machine.file("codex") == Path(there) / "config.toml"
    assert machine.file("claude-code") == Path(there) / ".claude.json"
    relative = Machine.make(tmp_path, XDG_CONFIG_HOME="relative")
    assert relative.file("zed") == relative.here.home / ".config/zed/settings.json"


def test_what_is_here_is_found_by_its_directory_or_its_program(tmp_path: Path) -> None:
    program = tmp_path / "bin" / "codex"
    program.parent.mkdir()
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    machine = Machine.make(tmp_path, PATH=str(program.parent))
    (machine.here.home / ".gemini").mkdir()
    assert [client.id for client in CLIENTS if client.evidence(machine.here)] == ["codex", "gemini-cli"]
    assert BY_ID["codex"].evidence(machine.here) == str(program)


def test_the_older_windsurf_and_the_jsonc_of_opencode_are_found(tmp_path: Path) -> None:
    machine = Machine.make(tmp_path)
    (machine.here.home / ".codeium/windsurf").mkdir(parents=True)
    assert machine.file("windsurf") == machine.here.home / ".codeium/windsurf/mcp_config.json"
    (machine.here.home / ".config/opencode").mkdir(parents=True)
    (machine.here.home / ".config/opencode/opencode.jsonc").touch()
    assert machine.file("opencode").name == "opencode.jsonc"


@pytest.mark.parametrize(
    ("client", "entry"),
    [
        ("claude-code", {"type": "stdio", "command": COMMAND[0], "args": ["serve"], "env": {"TOKEN": "${TOKEN}"}}),
        (
            "cursor",
            {
                "type": "stdio",
                "command": COMMAND[0],
                "args": ["serve", "--root", "${workspaceFolder}"],
                "env": {"TOKEN": "${env:TOKEN}"},
            },
        ),
        ("codex", {"command": COMMAND[0], "args": ["serve"], "env_vars": ["TOKEN"], "startup_timeout_sec": 20}),
        ("gemini-cli", {"command": COMMAND[0], "args": ["serve"], "env": {"TOKEN": "${TOKEN}"}}),
        ("opencode", {"type": "local", "command": [COMMAND[0], "serve"], "enabled": True, "environment": {"TOKEN": "{env:TOKEN}"}}),
    ],
)
def test_a_variable_is_named_in_the_clients_own_way_and_its_value_is_nowhere(client: str, entry: dict[str, object]) -> None:
    launch = make_launch(BY_ID[client], COMMAND, (), ("TOKEN",))
    assert make_entry(BY_ID[client], launch) == entry


@pytest.mark.parametrize("client", ["claude-desktop", "windsurf"])
def test_a_client_that_tells_no_project_needs_a_root(client: str) -> None:
    with pytest.raises(ClientFileError, match="--root DIR"):
        make_launch(BY_ID[client], COMMAND, (), ())
    assert make_launch(BY_ID[client], COMMAND, (Path("/work/a"),), ()).arguments == ("serve", "--root", "/work/a")


def test_what_cannot_be_written_is_refused() -> None:
    with pytest.raises(ClientFileError, match="no way to name an environment variable"):
        make_launch(BY_ID["zed"], COMMAND, (), ("TOKEN",))
    with pytest.raises(ClientFileError, match="is no name of a variable") as caught:
        make_launch(BY_ID["cursor"], COMMAND, (), ("TOKEN=sk-secret",))
    assert "sk-secret" not in str(caught.value)
    with pytest.raises(ClientFileError, match="not UTF-8"):
        make_launch(BY_ID["cursor"], COMMAND, (Path("/work/\udcff"),), ())


def test_the_command_is_the_script_that_runs_or_lies_beside_this_python(tmp_path: Path) -> None:
    script = tmp_path / "bin" / "search-router"
    script.parent.mkdir()
    script.write_text("#!/bin/sh\n")
    python = str(tmp_path / "bin" / "python")
    assert find_command(Running(str(script), python, str(tmp_path), {})) == (python, "-m", "search_router"), "not executable"
    script.chmod(0o755)
    assert find_command(Running(str(script), "/usr/bin/python3", "/usr", {})) == (str(script),)
    assert find_command(Running("/x/search_router/__main__.py", python, str(tmp_path), {})) == (str(script),)
    assert find_command(Running("-c", python, str(tmp_path), {"UV": "/opt/uv"})) == (str(script),), "uv run has an environment that stays"


def test_through_uvx_the_command_is_uvx(tmp_path: Path) -> None:
    prefix = str(tmp_path / "archive-v0" / "BDlOgJmAAAcf-RwV")
    running = Running("search-router", f"{prefix}/bin/python", prefix, {"UV": str(tmp_path / "uv"), "PATH": ""})
    assert find_command(running) == ("uvx", "search-router")
    uvx = tmp_path / "uvx"
    uvx.touch(0o755)
    assert find_command(running) == (str(uvx), "search-router")
    assert make_launch(BY_ID["codex"], (str(uvx), "search-router"), (), ()).arguments == ("search-router", "serve")


def test_the_command_line_names_every_client() -> None:
    assert tuple(client.id for client in CLIENTS) == IDS
    assert all("." in client.source for client in CLIENTS)
