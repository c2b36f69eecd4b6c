"""A remote expert on the fault server, and calls to it."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import AsyncGenerator, Generator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

from search_router.adapters.remote.expert import RemoteExpert
from search_router.adapters.remote.kinds import make_remote_experts
from search_router.benchmark import fault_server
from search_router.config.remote import CommandConfig, HttpJsonConfig, McpConfig
from search_router.schema import ExpertCall, Project, QueryForm, SubQuery

SERVER = Path(fault_server.__file__)
ITEMS = {
    "form": "json",
    "items": "items",
    "fields": {"path": "path", "start_line": "start", "end_line": "end", "symbol": "symbol"},
}
COMMON: dict[str, Any] = {
    "precision_class": "hybrid",
    "engine": "faulty",
    "intents": ["conceptual"],
    "cap_ms": 5000,
    "answer": ITEMS,
}
MODELS = {"mcp": McpConfig, "command": CommandConfig, "http-json": HttpJsonConfig}


def config_of(kind: str = "mcp", **more: Any) -> Any:
    if kind == "mcp":
        more = {"tool": "search", "arguments": {"question": "{question}"}, **more}
    return MODELS[kind].model_validate({"kind": kind, **COMMON, **more})


def stdio_config(start: str = "none", **more: Any) -> McpConfig:
    return config_of("mcp", command=[sys.executable, "-I", "-S", str(SERVER), "stdio", start], **more)


@asynccontextmanager
async def expert_of(config: Any) -> AsyncGenerator[RemoteExpert]:
    expert = make_remote_experts({"faulty": config})["faulty"]
    try:
        yield expert
    finally:
        await expert.aclose()


@contextmanager
def http_server(transport: str = "http", start: str = "none") -> Generator[str]:
    """The URL of a fault server in a process of its own."""
    argv = [sys.executable, "-I", "-S", str(SERVER), transport, start]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        port = process.stdout.readline().strip()
        try:
            yield f"http://127.0.0.1:{port}/{'sse' if transport == 'sse' else 'mcp'}"
        finally:
            process.kill()


def project_at(root: Path, name: str = "work") -> Project:
    return Project(name, root, "directory")


def call_for(
    root: Path, question: str = "where does it start", *, terms: tuple[str, ...] = (), form: QueryForm = QueryForm.TEXT, **more: Any
) -> ExpertCall:
    fields: dict[str, Any] = {"path": None, "language": None, "limit": 10, "budget_ms": 5000, "prior": 500, "reason": "test"} | more
    projects = fields.pop("projects", (project_at(root),))
    return ExpertCall(expert="faulty", sub_query=SubQuery(form, terms, question), projects=projects, **fields)
