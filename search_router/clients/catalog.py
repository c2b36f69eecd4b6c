"""The MCP clients that install knows: where each keeps its servers, in what format, and what an entry looks like.

Every format was looked up in the client's own documentation on 2026-11-30; `source` says where. Nothing here reads the process's
environment or its home directory: they come in as `Surroundings`.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any

SERVER_NAME = "search-router"
STARTUP_SECONDS = 20


class Scope(StrEnum):
    """Whose configuration is written: this user's, for every project, or one project's."""

    USER = "user"
    PROJECT = "project"


class Format(StrEnum):
    """How a client reads its file: strict JSON, JSON with comments and trailing commas, TOML."""

    JSON = "json"
    JSONC = "jsonc"
    TOML = "toml"


@dataclass(frozen=True, slots=True)
class Surroundings:
    """The machine as install sees it: `sys.platform`, the home and project directories, and the environment."""

    platform: str
    home: Path
    project: Path
    environ: Mapping[str, str]

    @property
    def config_home(self) -> Path:
        """XDG_CONFIG_HOME, which counts only when it is absolute (XDG Base Directory Specification 0.8)."""
        named = Path(self.environ.get("XDG_CONFIG_HOME", ""))
        return named if named.is_absolute() else self.home / ".config"

    @property
    def app_config(self) -> Path:
        """Where desktop applications keep their settings."""
        if self.platform == "darwin":
            return self.home / "Library/Application Support"
        return self.app_data if self.platform == "win32" else self.config_home

    @property
    def app_data(self) -> Path:
        return Path(self.environ.get("APPDATA") or self.home / "AppData/Roaming")

    def named(self, variable: str, otherwise: Path) -> Path:
        """The directory that a variable names, if it is set."""
        text = self.environ.get(variable, "")
        return self.home / text.removeprefix("~/") if text else otherwise

    def find_program(self, name: str) -> str | None:
        return shutil.which(name, path=self.environ.get("PATH", ""))


@dataclass(frozen=True, slots=True)
class Launch:
    """What a client is to start: an absolute program (or one on PATH), its arguments, and names of variables to hand on."""

    command: str
    arguments: tuple[str, ...]
    variables: tuple[str, ...] = ()


MakeEntry = Callable[[Launch, Mapping[str, str]], dict[str, Any]]
"""An entry from what to start and the variables, each with the client's way to refer to it."""


@dataclass(frozen=True, slots=True)
class Client:
    """One MCP client.

    `container` is the path of keys to the table of servers; `user` and `project` give its file; `traces` are directories and `programs`
    executables that tell that it is here. `root` is what stands for the open project in its arguments, `in_project` whether it starts
    servers in the project's directory; with neither, what to search has to be named. `variable` is its way to refer to an environment
    variable, with `{}` for the name; None when it has none.
    """

    id: str
    title: str
    format: Format
    container: tuple[str, ...]
    user: Callable[[Surroundings], Path]
    project: Callable[[Surroundings], Path] | None
    traces: Callable[[Surroundings], tuple[Path, ...]]
    programs: tuple[str, ...]
    make_entry: MakeEntry
    source: str
    variable: str | None = None
    root: str | None = None
    in_project: bool = False
    remark: str = ""
    project_remark: str = ""

    @property
    def names_no_project(self) -> bool:
        return self.root is None and not self.in_project

    def evidence(self, here: Surroundings) -> str | None:
        """What tells that this client is on the machine, or None."""
        for trace in self.traces(here):
            if trace.exists():
                return str(trace)
        return next((found for name in self.programs if (found := here.find_program(name))), None)


# ------------------------------------------------------------------ entries


def _plain(launch: Launch, variables: Mapping[str, str]) -> dict[str, Any]:
    env = {"env": dict(variables)} if variables else {}
    return {"command": launch.command, "args": list(launch.arguments), **env}


def _typed(launch: Launch, variables: Mapping[str, str]) -> dict[str, Any]:
    return {"type": "stdio", **_plain(launch, variables)}


def _codex(launch: Launch, variables: Mapping[str, str]) -> dict[str, Any]:
    names = {"env_vars": list(variables)} if variables else {}
    return {"command": launch.command, "args": list(launch.arguments), **names, "startup_timeout_sec": STARTUP_SECONDS}


def _opencode(launch: Launch, variables: Mapping[str, str]) -> dict[str, Any]:
    env = {"environment": dict(variables)} if variables else {}
    return {"type": "local", "command": [launch.command, *launch.arguments], "enabled": True, **env}


# ------------------------------------------------------------------ places


def _claude_code_file(here: Surroundings) -> Path:
    return here.named("CLAUDE_CONFIG_DIR", here.home) / ".claude.json"


def _windsurf_file(here: Surroundings) -> Path:
    # Windsurf became Devin Desktop, which reads a file of its own; the old place is for those who have nothing newer.
    devin = here.app_data / "devin" if here.platform == "win32" else here.config_home / "devin"
    old = here.home / ".codeium/windsurf"
    return (old if old.exists() and not devin.exists() else devin) / "mcp_config.json"


def _zed_directory(here: Surroundings) -> Path:
    return (
        here.app_data / "Zed"
        if here.platform == "win32"
        else (here.home / ".config" if here.platform == "darwin" else here.config_home) / "zed"
    )


def _either(directory: Path) -> Path:
    """opencode reads opencode.json and opencode.jsonc alike; the one that is there is edited."""
    other = directory / "opencode.jsonc"
    return other if other.exists() else directory / "opencode.json"


CLIENTS: tuple[Client, ...] = (
    Client(
        id="claude-code",
        title="Claude Code",
        format=Format.JSON,
        container=("mcpServers",),
        user=_claude_code_file,
        project=lambda here: here.project / ".mcp.json",
        traces=lambda here: (_claude_code_file(here), here.named("CLAUDE_CONFIG_DIR", here.home / ".claude")),
        programs=("claude",),
        make_entry=_typed,
        source="code.claude.com/docs/en/mcp",
        variable="${{{}}}",
        in_project=True,
        project_remark="it asks once before it uses servers of a project's .mcp.json",
    ),
    Client(
        id="claude-desktop",
        title="Claude Desktop",
        format=Format.JSON,
        container=("mcpServers",),
        user=lambda here: here.app_config / "Claude/claude_desktop_config.json",
        project=None,
        traces=lambda here: (here.app_config / "Claude",),
        programs=("claude-desktop",),
        make_entry=_plain,
        source="modelcontextprotocol.io/docs/develop/connect-local-servers",
        remark="restart it: closing the window is not enough",
    ),
    Client(
        id="cursor",
        title="Cursor",
        format=Format.JSONC,
        container=("mcpServers",),
        user=lambda here: here.home / ".cursor/mcp.json",
        project=lambda here: here.project / ".cursor/mcp.json",
        traces=lambda here: (here.home / ".cursor",),
        programs=("cursor", "cursor-agent"),
        make_entry=_typed,
        source="cursor.com/docs/mcp",
        variable="${{env:{}}}",
        root="${workspaceFolder}",
    ),
    Client(
        id="vscode",
        title="VS Code",
        format=Format.JSONC,
        container=("servers",),
        user=lambda here: here.app_config / "Code/User/mcp.json",
        project=lambda here: here.project / ".vscode/mcp.json",
        traces=lambda here: (here.app_config / "Code", here.home / ".vscode"),
        programs=("code",),
        make_entry=_typed,
        source="code.visualstudio.com/docs/agents/reference/mcp-configuration",
        variable="${{env:{}}}",
        root="${workspaceFolder}",
    ),
    Client(
        id="codex",
        title="Codex CLI",
        format=Format.TOML,
        container=("mcp_servers",),
        user=lambda here: here.named("CODEX_HOME", here.home / ".codex") / "config.toml",
        project=lambda here: here.project / ".codex/config.toml",
        traces=lambda here: (here.named("CODEX_HOME", here.home / ".codex"),),
        programs=("codex",),
        make_entry=_codex,
        source="developers.openai.com/codex/mcp",
        variable="{}",
        in_project=True,
        project_remark="a project's file counts only in a trusted project",
    ),
    Client(
        id="gemini-cli",
        title="Gemini CLI",
        format=Format.JSONC,
        container=("mcpServers",),
        user=lambda here: here.home / ".gemini/settings.json",
        project=lambda here: here.project / ".gemini/settings.json",
        traces=lambda here: (here.home / ".gemini",),
        programs=("gemini",),
        make_entry=_plain,
        source="geminicli.com/docs/tools/mcp-server",
        variable="${{{}}}",
        in_project=True,
    ),
    Client(
        id="windsurf",
        title="Windsurf (Devin Desktop)",
        format=Format.JSONC,
        container=("mcpServers",),
        user=_windsurf_file,
        project=None,
        traces=lambda here: (_windsurf_file(here).parent,),
        programs=("windsurf",),
        make_entry=_plain,
        source="docs.devin.ai/desktop/cascade/mcp",
        variable="${{env:{}}}",
    ),
    Client(
        id="zed",
        title="Zed",
        format=Format.JSONC,
        container=("context_servers",),
        user=lambda here: _zed_directory(here) / "settings.json",
        project=lambda here: here.project / ".zed/settings.json",
        traces=lambda here: (_zed_directory(here),),
        programs=("zed", "zeditor"),
        make_entry=_plain,
        source="zed.dev/docs/ai/mcp",
        in_project=True,
    ),
    Client(
        id="opencode",
        title="opencode",
        format=Format.JSONC,
        container=("mcp",),
        user=lambda here: _either(here.config_home / "opencode"),
        project=lambda here: _either(here.project),
        traces=lambda here: (here.config_home / "opencode",),
        programs=("opencode",),
        make_entry=_opencode,
        source="opencode.ai/docs/mcp-servers and opencode.ai/docs/migrate-v1",
        variable="{{env:{}}}",
        in_project=True,
    ),
)
BY_ID: Mapping[str, Client] = {client.id: client for client in CLIENTS}
