"""A router whose experts are fault servers, for measurements; everything in a directory of its own."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import AsyncGenerator, Generator, Mapping
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

from search_router.benchmark import fault_server
from search_router.config.loader import load_config
from search_router.router.opening import open_router
from search_router.router.service import Router

FILES = {"src/app.py": "import os\n\n\ndef start(name):\n    value = os.environ[name]\n    return value\n", "notes.txt": "start here\n"}
INTENTS = ("conceptual", "identifier", "typed-symbol", "cross-repo-impact", "docs", "history", "unknown")
BLOCK: Mapping[str, Any] = {
    "kind": "mcp",
    "precision_class": "hybrid",
    "engine": "faulty",
    "intents": INTENTS[:-1],
    "cap_ms": 60_000,
    "tool": "search",
    "arguments": {"question": "{question}"},
    "max_parallel": 64,
    "answer": {"form": "json", "items": "items", "fields": {"path": "path", "start_line": "start", "end_line": "end"}},
}
ARGV = (sys.executable, "-I", "-S", fault_server.__file__)


@contextmanager
def fault_site(start: str = "none", env: Mapping[str, str] | None = None) -> Generator[str]:
    """The URL of a fault server over HTTP, in a process of its own."""
    with subprocess.Popen([*ARGV, "http", start], stdout=subprocess.PIPE, text=True, env=dict(env or {})) as process:
        assert process.stdout is not None
        try:
            yield f"http://127.0.0.1:{process.stdout.readline().strip()}/mcp"
        finally:
            process.kill()


@asynccontextmanager
async def remote_router(folder: Path, blocks: Mapping[str, Mapping[str, Any]]) -> AsyncGenerator[Router]:
    """A router over a small directory with these experts alone; each block is laid over BLOCK."""
    root = folder / "work"
    for name, text in FILES.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    user = folder / "user.toml"
    user.touch()
    environ = {"SEARCH_ROUTER_HOME": str(folder / "home"), "SEARCH_ROUTER_CONFIG": str(user)}
    embedded = load_config(roots=[root], environ=environ).config.experts
    lines = [f"experts.{name} = {_toml({**BLOCK, **block})}" for name, block in blocks.items()]
    lines += [f"experts.{name}.enabled = false" for name in embedded if name not in blocks]
    lines += [f"gate.default_set = {_toml(list(blocks))}"]
    lines += [f"priors.{intent}.{name} = 0.5" for intent in INTENTS for name in blocks]
    user.write_text("\n".join(lines) + "\n")
    async with open_router(roots=[root], environ=environ) as router:
        yield router


def _toml(value: Any) -> str:
    match value:
        case dict():
            return "{" + ", ".join(f"{json.dumps(k)} = {_toml(v)}" for k, v in value.items()) + "}"  # pyright: ignore[reportUnknownVariableType] - whatever TOML can say
        case list() | tuple():
            return "[" + ", ".join(_toml(v) for v in value) + "]"  # pyright: ignore[reportUnknownVariableType] - whatever TOML can say
        case _:
            return json.dumps(value)
