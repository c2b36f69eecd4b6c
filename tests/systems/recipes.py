"""How each real system is made: its packages, what must be prepared, what must run beside it; and why some cannot be had."""

from __future__ import annotations

import contextlib
import json
import os
import socket
import subprocess
import sys
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import anyio

from search_router.adapters.remote.handshake import shake_hands
from search_router.adapters.remote.link import Link, Target
from search_router.adapters.remote.stdio import open_stdio

SYMBOL = "parse_layer"
INSTALL_SECONDS, PREPARE_SECONDS, INDEX_SECONDS = 1800, 600, 300
HERE = Path(__file__).parent
SYMGREP = """
[experts.symgrep]
kind = "mcp"
precision_class = "syntactic"
engine = "symgrep"
intents = ["identifier", "typed-symbol"]
cap_ms = 2000
command = ["symgrep-mcp"]
tool = "search"
arguments = { pattern = "{regex}", roots = ["{root}"], json_output = true, k = "{limit}" }
freshness = "live"

[experts.symgrep.answer]
form = "json"
items = "hits"
fields = { path = "path", start_line = "start_line", end_line = "end_line", symbol = "symbol", kind = "kind", role = "role" }
is_exact = true
errors = [{ pattern = '"status": "no_index"', failure = "index-missing" }]
"""
"""A system that there is no preset for: docs/tutorial-your-own-expert.md is this block."""


class Place(NamedTuple):
    """Where one system is tried: its programs, the project, and the home directory that it may write to."""

    programs: Path
    project: Path
    home: Path

    @property
    def environment(self) -> dict[str, str]:
        return {"PATH": f"{self.programs}:{os.environ.get('PATH', '')}", "HOME": str(self.home)}

    def run(self, *argv: str) -> None:
        """Raises CalledProcessError with what it printed."""
        subprocess.run(argv, check=True, capture_output=True, text=True, timeout=PREPARE_SECONDS, cwd=self.project, env=self.environment)


@dataclass(frozen=True, slots=True)
class System:
    """How one system is made and asked."""

    name: str
    experts: tuple[str, ...]
    question: str
    intent: str
    program: str
    packages: tuple[str, ...] = ()
    """From PyPI, in a virtual environment; with `npm`, from npm."""
    npm: bool = False
    preset: str | None = None
    prepare: Callable[[Place], None] | None = None
    services: Callable[[Place], AbstractAsyncContextManager[dict[str, str]]] | None = None
    """What has to run as long as it is asked; gives variables of its environment."""
    engine: str | None = None
    beside: tuple[str, ...] = ("symbols", "grep")
    """Embedded experts that are asked as well."""
    confirmed: bool = False
    """Whether a second typed engine stands beside it, so that something must become typed-graph-confirmed."""


class NotHere(NamedTuple):
    """A system that this script does not start, why, and which recording its contract test replays."""

    name: str
    why: str
    recording: str


def home() -> Path:
    """Where the environments are kept."""
    return Path(os.environ.get("SYSTEMS_HOME") or Path.home() / ".cache" / "search-router-systems")


def make_environment(name: str, program: str, packages: Sequence[str], *, npm: bool = False) -> Path:
    """The directory of the programs of an environment; made once. Raises CalledProcessError when a registry does not have it."""
    where = home() / name
    programs = where / ("node_modules/.bin" if npm else "bin")
    if (programs / program).exists():
        return programs
    where.mkdir(parents=True, exist_ok=True)
    if npm:
        argv = ["npm", "install", "--ignore-scripts", "--no-audit", "--no-fund", "--prefix", str(where), *packages]
    else:
        subprocess.run([sys.executable, "-m", "venv", str(where)], check=True, capture_output=True)
        argv = [str(programs / "pip"), "install", "-q", "--disable-pip-version-check", *packages]
    subprocess.run(argv, check=True, capture_output=True, text=True, timeout=INSTALL_SECONDS)
    return programs


# ------------------------------------------------------------------ preparing


def _index_chunkhound(place: Place) -> None:
    place.run(str(place.programs / "chunkhound"), "index", str(place.project), "--no-embeddings", "--database-provider", "lancedb")


def _configure_serena(place: Place) -> None:
    (place.project / ".serena").mkdir(exist_ok=True)
    settings = f'project_name: "{place.project.name}"\nlanguage_servers: ["python_ty"]\nencoding: "utf-8"\n'
    (place.project / ".serena/project.yml").write_text(settings)
    # Without a network its own way to ty (uvx) fails, and a project's file may not name a program.
    template = next(place.programs.parent.glob("lib/python*/site-packages/serena/resources/serena_config.template.yml")).read_text()
    named = f"ls_specific_settings:\n  python_ty:\n    ls_path: {place.programs / 'ty'}"
    (place.home / ".serena").mkdir()
    (place.home / ".serena/serena_config.yml").write_text(template.replace("ls_specific_settings: {}", named))


def _index_scip(place: Place) -> None:
    head = subprocess.run(["git", "rev-parse", "HEAD"], cwd=place.project, check=True, capture_output=True, text=True).stdout.strip()
    place.run(
        str(place.programs / "ty-scip"),
        "index",
        str(place.project),
        str(place.project / "index.scip"),
        "--project-name",
        "sample",
        "--project-version",
        head,
    )


def _init_codegraph(place: Place) -> None:
    place.run(str(place.programs / "codegraph"), "init", str(place.project))


def _make_model(place: Place) -> None:
    """A static model that needs no download: every word of the project has its own fixed direction."""
    place.run(str(place.programs / "python"), str(HERE / "static_model.py"), str(place.project), str(place.home / "model"))


@contextlib.asynccontextmanager
async def _semble_model(place: Place) -> AsyncGenerator[dict[str, str]]:
    yield {"SEMBLE_MODEL_NAME": str(place.home / "model"), "HF_HUB_OFFLINE": "1", "SEMBLE_CACHE_LOCATION": str(place.home / "cache")}


# ------------------------------------------------------------------ claude-context, its Milvus and its embedder


@contextlib.asynccontextmanager
async def _claude_context(place: Place) -> AsyncGenerator[dict[str, str]]:
    """An embedder, a milvus-lite server, and the project indexed by claude-context's own tool."""
    programs = await anyio.to_thread.run_sync(lambda: make_environment("milvus", "milvus-lite", ("milvus-lite==3.2.2", "pymilvus==3.0.2")))
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    lite = [str(programs / "milvus-lite"), "server", "--data-dir", str(place.home / "milvus"), "--host", "127.0.0.1", "--port", str(port)]
    with contextlib.ExitStack() as stack:
        quiet: dict[str, Any] = {"stderr": subprocess.DEVNULL, "text": True}
        embedder = subprocess.Popen([sys.executable, "-I", "-S", str(HERE / "embedding_stub.py")], stdout=subprocess.PIPE, **quiet)
        stack.callback(_stop, embedder)
        stack.callback(_stop, subprocess.Popen(lite, stdout=subprocess.DEVNULL, **quiet))
        assert embedder.stdout is not None
        url = f"http://127.0.0.1:{(await anyio.to_thread.run_sync(embedder.stdout.readline)).strip()}/v1"
        with anyio.fail_after(60):
            while not await _listens(port):
                await anyio.sleep(0.1)
        told = {
            "OPENAI_API_KEY": "none",
            "OPENAI_BASE_URL": url,
            "EMBEDDING_PROVIDER": "OpenAI",
            "EMBEDDING_MODEL": "words",  # for a name that it knows it would expect that model's length, and store nothing
            "MILVUS_ADDRESS": f"127.0.0.1:{port}",
        }
        await _let_it_index(place, told)
        yield told


async def _let_it_index(place: Place, told: dict[str, str]) -> None:
    env = {**place.environment, **told, "HYBRID_MODE": "false", "CLAUDE_CONTEXT_BACKGROUND_SYNC": "false"}
    program = str(place.programs / "claude-context-mcp")
    async with open_stdio(Target("stdio", argv=(program,), cwd=str(place.project), env=tuple(env.items()))) as link:
        await shake_hands(link, 60)
        await _call(link, "index_codebase", {"path": str(place.project)})
        last = ""
        with anyio.fail_after(INDEX_SECONDS):
            while True:  # its status has been seen to say `completed` too early: two equal ones are believed
                said = await _call(link, "get_indexing_status", {"path": str(place.project)})
                if "fully indexed" in said and said == last:
                    return
                last = said
                await anyio.sleep(2)


async def _call(link: Link, tool: str, arguments: dict[str, Any]) -> str:
    return json.dumps((await link.call("tools/call", {"name": tool, "arguments": arguments}, 60)).result)


async def _listens(port: int) -> bool:
    try:
        await (await anyio.connect_tcp("127.0.0.1", port)).aclose()
    except OSError:
        return False
    return True


def _stop(process: subprocess.Popen[str]) -> None:
    process.kill()
    process.wait(10)
    if process.stdout is not None:
        process.stdout.close()


# ------------------------------------------------------------------ the table

CALLERS = f"who calls `{SYMBOL}`"
SYSTEMS = (
    System(
        "scip",
        ("scip",),
        CALLERS,
        "typed-symbol",
        "ty-scip",
        ("ty-scip==0.1.0",),
        prepare=_index_scip,
        beside=("symbols", "grep", "python-types"),
        confirmed=True,
    ),
    System(
        "serena",
        ("serena", "serena-references"),
        CALLERS,
        "typed-symbol",
        "serena",
        ("serena-agent==2.1.0", "ty"),
        preset="serena",
        prepare=_configure_serena,
        engine="ty",
        beside=("symbols", "grep", "python-types"),
        confirmed=True,
    ),
    System(
        "chunkhound",
        ("chunkhound-regex",),
        f"`{SYMBOL}`",
        "identifier",
        "chunkhound",
        ("chunkhound==6.1.0",),
        preset="chunkhound",
        prepare=_index_chunkhound,
    ),
    System("symgrep", ("symgrep",), f"`{SYMBOL}`", "identifier", "symgrep-mcp", ("symgrep-codesearch==0.7.2",)),
    System(
        "semble",
        ("semble",),
        "how is a layer of the configuration parsed",
        "conceptual",
        "semble",
        ("semble[mcp]==0.7.0",),
        preset="semble",
        prepare=_make_model,
        services=_semble_model,
    ),
    System(
        "codegraph",
        ("codegraph", "codegraph-callers"),
        CALLERS,
        "cross-repo-impact",
        "codegraph",
        ("@colbymchenry/codegraph@1.6.1",),
        npm=True,
        preset="codegraph",
        prepare=_init_codegraph,
    ),
    System(
        "claude-context",
        ("claude-context",),
        "how is a layer of the configuration parsed",
        "conceptual",
        "claude-context-mcp",
        ("@zilliz/claude-context-mcp@0.1.15",),
        npm=True,
        preset="claude-context",
        services=_claude_context,
    ),
)
NOT_HERE = (
    NotHere("dora", "is on no registry: a build of its repository with bun", "dora.symbol"),
    NotHere("codesearch", "is on no registry as a program: a cargo build, whose models come from a hub", "codesearch.FROM-SOURCE"),
    NotHere("coregraph", "cannot be had", "coregraph.FROM-SOURCE"),
    NotHere("sourcebot", "is a set of containers with a licence key", "sourcebot.FROM-SOURCE"),
    NotHere("context7", "answers from its own servers only", "context7.FROM-SOURCE"),
    NotHere("cloudflare-docs", "exists only on the internet", "cloudflare-docs.FROM-SOURCE"),
    NotHere("svelte", "ends at its start without the internet", "svelte.list-sections-STUBBED"),
    NotHere("auggie", "ends at its start without an account", "auggie.MADE-UP"),
)
