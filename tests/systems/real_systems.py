"""Real search systems behind the router: made in environments of their own, asked one question, and told in a table.

    scripts/run-systems [NAME…]         SYSTEMS_HOME=/some/where keeps the environments

A system that cannot be had is said to be so, with the recording that its contract test replays; nothing is skipped in silence.
"""

from __future__ import annotations

import contextlib
import json
import subprocess
import sys
import time
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import anyio

from search_router.adapters.remote.presets import load_preset
from search_router.config.loader import load_config
from search_router.router.opening import open_router
from tests.systems.recipes import NOT_HERE, SYMGREP, SYSTEMS, Place, System, make_environment

PACKAGE = Path(__file__).parents[2] / "search_router"
INTENTS = ("conceptual", "identifier", "typed-symbol", "cross-repo-impact", "docs", "history", "unknown")
CAP_MS = 200_000
"""Long enough for a first start of anything on a busy machine."""


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


async def ask(system: System, folder: Path) -> Outcome:
    """Install, prepare, and put one question through a whole router."""
    try:
        programs = await anyio.to_thread.run_sync(lambda: make_environment(system.name, system.program, system.packages, npm=system.npm))
        place = Place(programs, make_project(folder), folder / "systems-home")
        place.home.mkdir()
        if system.prepare is not None:
            await anyio.to_thread.run_sync(system.prepare, place)
    except subprocess.SubprocessError as error:
        words = str(getattr(error, "stderr", None) or error).strip().splitlines()
        return Outcome(system.name, False, f"cannot be had here: {words[-1][:160] if words else error}")
    async with system.services(place) if system.services is not None else contextlib.nullcontext({}) as told:
        return await _ask_router(system, folder, place, told)


async def _ask_router(system: System, folder: Path, place: Place, told: Mapping[str, str]) -> Outcome:
    environ = {"SEARCH_ROUTER_HOME": str(folder / "home"), "SEARCH_ROUTER_CONFIG": str(folder / "user.toml")}
    _configure(system, folder / "user.toml", place, told, environ)
    request: dict[str, Any] = {"question": system.question, "intent": system.intent, "budget": {"latency_ms": 240_000}}
    async with open_router(roots=[place.project], environ=environ) as router:
        begun = time.perf_counter()
        await router.search(request)
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
        _server_words(receipt, system.experts),
        cold,
        warm,
        tuple(sorted({item.tier.value for item in mine})),
        tuple(f"{item.path}:{item.start_line}" for item in mine),
    )


def _server_words(receipt: Any, experts: Sequence[str]) -> str:
    """Name and version of the experts' server, as their receipt has them: the first that names a version."""
    servers = [e.get("server") or {} for e in receipt["predicate"]["experts"] if e["expert"] in experts]
    named = [f"{s.get('name')} {s.get('version')}" for s in servers if s.get("version")]
    return named[0] if named else ""


# ------------------------------------------------------------------ configuration


def _configure(system: System, user: Path, place: Place, told: Mapping[str, str], environ: dict[str, str]) -> None:
    """The preset's blocks with this environment's program, the embedded experts beside it, and nothing else."""
    preset: Mapping[str, Any] = load_preset(system.preset).experts if system.preset else tomllib.loads(SYMGREP)["experts"]
    blocks = {name: _fitted(system, dict(preset[name]), place, told) for name in system.experts if name in preset}
    user.write_text("")
    packaged = load_config(roots=[place.project], environ=environ).config.experts
    asked = (*system.experts, *system.beside)
    lines = [f"experts.{name} = {toml(block)}" for name, block in blocks.items()]
    lines += [f"experts.{name}.enabled = {toml(name in asked)}" for name in packaged if name not in blocks]
    lines += [f"experts.{name}.cap_ms = {CAP_MS}" for name in asked if name not in blocks]
    lines += [f"gate.default_set = {toml(sorted(asked))}", "gate.reserve = {}"]
    lines += [f"priors.{intent}.{name} = 0.8" for intent in INTENTS for name in asked]
    user.write_text("\n".join(lines) + "\n")


def _fitted(system: System, block: dict[str, Any], place: Place, told: Mapping[str, str]) -> dict[str, Any]:
    """A block with full paths of programs and an environment that is not this user's."""
    for key in ("command", "version_command"):
        if key in block:
            block[key] = _located(block[key], system, place)
    probe = block.get("freshness_probe")
    if probe and probe.get("command"):
        block["freshness_probe"] = {**probe, "command": _located(probe["command"], system, place)}
    env = {**block.get("env", {}), **place.environment, "SERENA_USAGE_REPORTING": "false", **told}
    more: dict[str, Any] = {"intents": sorted({*block["intents"], system.intent})}  # all experts of a system are asked one question
    if system.engine:
        more["engine"] = system.engine
    return {**block, **more, "env": env, "requires_env": [], "cap_ms": CAP_MS}


def _located(command: Sequence[str], system: System, place: Place) -> list[str]:
    return [str(place.programs / part) if at == 0 and part == system.program else part for at, part in enumerate(command)]


def toml(value: Any) -> str:
    """A value as inline TOML."""
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{json.dumps(k)} = {toml(v)}" for k, v in value.items()) + "}"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(toml, value)) + "]"
    return json.dumps(value)


async def main(names: Sequence[str]) -> int:
    """Print a line a system; 1 when one did not answer that should."""
    import tempfile

    worst = 0
    for system in SYSTEMS:
        if names and system.name not in names:
            continue
        with tempfile.TemporaryDirectory() as folder:
            outcome = await ask(system, Path(folder))
        missing = system.confirmed and outcome.ok and "typed-graph-confirmed" not in outcome.tiers
        print(outcome, *(f"                       {place}" for place in outcome.places[:4]), sep="\n", flush=True)
        if missing:
            print("                       and NOTHING became typed-graph-confirmed")
        worst = max(worst, not outcome.ok or missing)
    for absent in NOT_HERE:
        if not names or absent.name in names:
            print(f"{absent.name:<18} --  not started here: it {absent.why}; its contract test replays {absent.recording}")
    return worst


if __name__ == "__main__":
    sys.exit(anyio.run(main, sys.argv[1:]))
