"""Real search systems behind the router: made in virtual environments of their own, asked one question, and told in a table.

    scripts/run-systems [NAME…]         SYSTEMS_HOME=/some/where keeps the environments

A system that cannot be installed here is said to be so; nothing is skipped in silence.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import anyio

from search_router.adapters.remote.presets import load_preset
from search_router.config.loader import load_config
from search_router.router.service import open_router

PACKAGE = Path(__file__).parents[2] / "search_router"
INTENTS = ("conceptual", "identifier", "typed-symbol", "cross-repo-impact", "docs", "history", "unknown")
SYMBOL = "parse_layer"
INSTALL_SECONDS, PREPARE_SECONDS = 1800, 600
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


@dataclass(frozen=True, slots=True)
class System:
    """How one system is made and asked."""

    name: str
    packages: tuple[str, ...]
    experts: tuple[str, ...]
    question: str
    intent: str
    program: str
    prepare: Callable[[Path, Path, Path], None] | None = None
    """Given its environment's programs, the project and its home."""
    preset: str | None = None
    extra: tuple[str, ...] = ()
    """Further packages in an environment beside."""
    engine: str | None = None
    beside: tuple[str, ...] = ("symbols", "grep")
    """Embedded experts that are asked as well."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """One line of the table. `hits` by expert."""

    system: str
    ok: bool
    said: str
    hits: dict[str, int] = field(default_factory=dict[str, int])
    server: str = ""
    cold_s: float = 0.0
    warm_ms: float = 0.0
    tiers: tuple[str, ...] = ()
    places: tuple[str, ...] = ()

    def __str__(self) -> str:
        figures = f"{self.hits} first {self.cold_s:.1f} s, warm {self.warm_ms:.0f} ms, {', '.join(self.tiers)}" if self.ok else self.said
        return f"{self.system:<18} {'ok' if self.ok else 'NO':<3} {self.server:<28} {figures}"


def _index_chunkhound(programs: Path, project: Path, home: Path) -> None:
    _run([str(programs / "chunkhound"), "index", str(project), "--no-embeddings", "--database-provider", "lancedb"], home, project)


def _configure_serena(programs: Path, project: Path, home: Path) -> None:
    (project / ".serena").mkdir(exist_ok=True)
    (project / ".serena/project.yml").write_text(f'project_name: "{project.name}"\nlanguage_servers: ["python_ty"]\nencoding: "utf-8"\n')
    # Without a network its own way to ty (uvx) fails, and a project's file may not name a program.
    template = next(programs.parent.glob("lib/python*/site-packages/serena/resources/serena_config.template.yml")).read_text()
    named = f"ls_specific_settings:\n  python_ty:\n    ls_path: {programs / 'ty'}"
    (home / ".serena").mkdir()
    (home / ".serena/serena_config.yml").write_text(template.replace("ls_specific_settings: {}", named))


SYSTEMS = (
    System(
        "chunkhound",
        ("chunkhound==6.1.0",),
        ("chunkhound-regex",),
        f"`{SYMBOL}`",
        "identifier",
        "chunkhound",
        _index_chunkhound,
        "chunkhound",
    ),
    System(
        "serena",
        ("serena-agent==2.1.0",),
        ("serena", "serena-references"),
        f"who calls `{SYMBOL}`",
        "typed-symbol",
        "serena",
        _configure_serena,
        "serena",
        extra=("ty",),
        engine="ty",
        beside=("symbols", "grep", "python-types"),
    ),
    System("symgrep", ("symgrep-codesearch==0.7.2",), ("symgrep",), f"`{SYMBOL}`", "identifier", "symgrep-mcp"),
)


def home() -> Path:
    """Where the environments are kept."""
    return Path(os.environ.get("SYSTEMS_HOME") or Path.home() / ".cache" / "search-router-systems")


def make_project(folder: Path) -> Path:
    """A git repository of real code: two rooms of this package, with one commit."""
    project = folder / "project"
    project.mkdir(parents=True)
    for room in ("config", "receipts"):
        for file in sorted((PACKAGE / room).glob("*.py")):
            target = project / room / file.name
            target.parent.mkdir(exist_ok=True)
            target.write_bytes(file.read_bytes())
    git = ["git", "-c", "user.name=t", "-c", "user.email=t@example.org", "-C", str(project)]
    for arguments in (["init", "-q"], ["add", "-A"], ["commit", "-qm", "code"]):
        subprocess.run([*git, *arguments], check=True, capture_output=True)
    return project


def install(system: System) -> Path:
    """The directory of its programs; made once. Raises CalledProcessError when a registry does not have it."""
    where = home() / system.name
    programs = where / "bin"
    if not (programs / system.program).exists():
        subprocess.run([sys.executable, "-m", "venv", str(where)], check=True, capture_output=True)
        packages = [*system.packages, *system.extra]
        argv = [str(programs / "pip"), "install", "-q", "--disable-pip-version-check", *packages]
        subprocess.run(argv, check=True, capture_output=True, text=True, timeout=INSTALL_SECONDS)
    return programs


async def ask(system: System, folder: Path) -> Outcome:
    """Install, prepare, and put one question through a whole router."""
    try:
        programs = await anyio.to_thread.run_sync(install, system)
        project, own_home = make_project(folder), folder / "systems-home"
        own_home.mkdir()
        if system.prepare is not None:
            await anyio.to_thread.run_sync(system.prepare, programs, project, own_home)
    except subprocess.SubprocessError as error:
        words = str(getattr(error, "stderr", None) or error).strip().splitlines()
        return Outcome(system.name, False, f"cannot be had here: {words[-1][:120] if words else error}")
    environ = {"SEARCH_ROUTER_HOME": str(folder / "home"), "SEARCH_ROUTER_CONFIG": str(folder / "user.toml")}
    _configure(system, folder, project, programs, own_home, environ)
    request: dict[str, Any] = {"question": system.question, "intent": system.intent, "budget": {"latency_ms": 240_000}}
    async with open_router(roots=[project], environ=environ) as router:
        begun = time.perf_counter()
        answer = await router.search(request)
        cold = time.perf_counter() - begun
        begun = time.perf_counter()
        answer = await router.search(request)
        warm = (time.perf_counter() - begun) * 1000
        assert answer.receipt is not None
        receipt = (await router.receipt(answer.receipt.id)).statement
    reports = {e.id: e for e in answer.experts if e.id in system.experts}
    failed = "; ".join(f"{e.id} {e.status.value}: {e.reason}" for e in reports.values() if e.status.value != "ok")
    mine = [item for item in answer.evidence if {s.expert for s in item.sources} & set(system.experts)]
    return Outcome(
        system.name,
        not failed and bool(mine),
        failed or "no evidence",
        {name: report.results for name, report in reports.items()},
        _server_words(receipt, system.experts[0]),
        cold,
        warm,
        tuple(sorted({item.tier.value for item in mine})),
        tuple(f"{item.path}:{item.start_line}" for item in mine),
    )


def _server_words(receipt: Any, expert: str) -> str:
    """Name and version of an expert's server, as its receipt has them."""
    asked = next(e for e in receipt["predicate"]["experts"] if e["expert"] == expert)
    server = asked.get("server") or {}
    return f"{server.get('name')} {server.get('version')}" if server else ""


def _configure(system: System, folder: Path, project: Path, programs: Path, own_home: Path, environ: dict[str, str]) -> None:
    """The preset's blocks with this environment's program, and the embedded symbols and grep beside it."""
    blocks = load_preset(system.preset).text if system.preset else SYMGREP
    blocks = blocks[: blocks.index("[priors.")] if "[priors." in blocks else blocks
    blocks = blocks.replace(f'command = ["{system.program}"', f'command = ["{programs / system.program}"')
    path = ":".join([str(programs), os.environ.get("PATH", "")])
    env = {"PATH": path, "HOME": str(own_home)}
    blocks = re.sub(r"^env = \{.*\}\n", "", blocks, flags=re.MULTILINE)
    more = ", ".join(f"{key} = {json.dumps(value)}" for key, value in {**env, "SERENA_USAGE_REPORTING": "false"}.items())
    blocks = re.sub(r"^(command = .*)$", rf"\1\nenv = {{ {more} }}", blocks, flags=re.MULTILINE)
    blocks = re.sub(r"^cap_ms = \d+$", "cap_ms = 200000", blocks, flags=re.MULTILINE)
    if system.engine:
        blocks = re.sub(r'^engine = ".*"$', f'engine = "{system.engine}"', blocks, flags=re.MULTILINE)
    user = folder / "user.toml"
    user.write_text(blocks)
    there = load_config(roots=[project], environ=environ, flags=[f"priors.unknown.{e}=0.5" for e in _enabled(blocks)]).config.experts
    off = [name for name in there if name not in (*system.experts, *system.beside)]
    switches = "".join(f"[experts.{name}]\nenabled = false\n\n" for name in off if f"[experts.{name}]" not in blocks)
    blocks = re.sub(r"^\[experts\.([a-z-]+)\]\n", lambda m: f"{m[0]}enabled = false\n" if m[1] in off else m[0], blocks, flags=re.MULTILINE)
    priors = "".join(
        f"[priors.{intent}]\n" + "".join(f"{name} = 0.8\n" for name in (*system.experts, *system.beside)) + "\n" for intent in INTENTS
    )
    user.write_text(f"{blocks}\n{switches}{priors}")


def _enabled(blocks: str) -> list[str]:
    return re.findall(r"^\[experts\.([a-z-]+)\]$", blocks, flags=re.MULTILINE)


def _run(argv: Sequence[str], own_home: Path, project: Path) -> None:
    environ = {"PATH": os.environ.get("PATH", ""), "HOME": str(own_home)}
    subprocess.run(argv, check=True, capture_output=True, text=True, timeout=PREPARE_SECONDS, cwd=project, env=environ)


async def main(names: Sequence[str]) -> int:
    """Print a line a system; 1 when one did not answer."""
    import tempfile

    worst = 0
    for system in SYSTEMS:
        if names and system.name not in names:
            continue
        with tempfile.TemporaryDirectory() as folder:
            outcome = await ask(system, Path(folder))
        print(outcome, *(f"                       {place}" for place in outcome.places[:4]), sep="\n", flush=True)
        worst = max(worst, not outcome.ok)
    return worst


if __name__ == "__main__":
    sys.exit(anyio.run(main, sys.argv[1:]))
