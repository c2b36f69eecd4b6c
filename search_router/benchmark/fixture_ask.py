"""A suite's questions, asked through the library's own door in a process of its own; started by `fixture_run`.

Reads one JSON job on standard input: {roots, home, config_file, heads, arms: [{name, flags, request, rotate}], questions: [[id, request]],
rounds, cold}; `heads` are the commits that the labels are about.
Writes JSON lines for each arm: {arm, ready_ms, …} when its indexes are complete; one {arm, id, round, ms, cpu_ms, answer} a question and
round; then {arm, cold_ms, answer} for each of `cold` questions asked as the first one of a router that was just opened. The
answer is what `search --json` prints, without the envelope. Questions of every class are asked before anything is measured; no answer is
asked twice in a row, so that with the cache on a second round is what a client would see.
"""

from __future__ import annotations

import dataclasses
import json
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

import anyio

import search_router
from search_router.answers import RegistryAnswer
from search_router.benchmark.ask import cpu_seconds, environment, until_ready
from search_router.config.loader import LoadedConfig, load_config

Write = Callable[[dict[str, object]], None]
WARM_UPS: Final = {
    "identifier": '"read the file"',
    "typed-symbol": "read_the_file",
    "cross-repo-impact": "who calls read_the_file()",
    "docs": "documentation of reading the file",
    "history": "when was read_the_file added",
}
WARM_ROUNDS: Final = 20


def load_arm(job: Mapping[str, Any], arm: Mapping[str, Any]) -> LoadedConfig:
    """The arm's configuration, its experts declared in another order when it says so."""
    environ = environment(Path(job["home"]))
    if job["config_file"]:
        environ = environ | {"SEARCH_ROUTER_CONFIG": str(job["config_file"])}
    loaded = load_config(roots=[Path(root) for root in job["roots"]], environ=environ, flags=arm["flags"])
    names = list(loaded.config.experts)
    turned = names[arm["rotate"] :] + names[: arm["rotate"]]
    experts = {name: loaded.config.experts[name] for name in turned}
    return dataclasses.replace(loaded, config=loaded.config.model_copy(update={"experts": experts}))


async def ask_arm(job: Mapping[str, Any], arm: Mapping[str, Any], write: Write) -> None:
    """Open, make ready, ask everything in every round; then each cold question of a router that was just opened over complete indexes."""
    loaded = load_arm(job, arm)
    async with search_router.open_router(roots=job["roots"], loaded=loaded) as router:
        started = time.perf_counter()
        await router.catch_up()
        not_whole = await _warm_up(router)
        registry = await router.registry()
        _check_heads(job, arm, registry)
        write(
            {
                "arm": arm["name"],
                "ready_ms": (time.perf_counter() - started) * 1000,
                "available": [e.id for e in registry.experts if e.available],
                "caps_ms": {e.id: e.cap_ms for e in registry.experts},
                "budget_ms": loaded.config.budget.latency_ms,
                "engines": {e.id: {"engine": e.engine, "version": e.version} for e in registry.experts},
                "projects": {p.id: p.head for p in registry.projects},
                "not_whole": not_whole,
                "config": {"version": loaded.version, "hash": loaded.hash},
            }
        )
        for number in range(job["rounds"]):
            for question_id, request in job["questions"]:
                started, cpu = time.perf_counter(), cpu_seconds()
                answer = await router.search({**request, **arm["request"]})
                took, used = (time.perf_counter() - started) * 1000, (cpu_seconds() - cpu) * 1000
                body = answer.model_dump(mode="json", by_alias=True)
                write({"arm": arm["name"], "id": question_id, "round": number, "ms": took, "cpu_ms": used, "answer": body})
    for _, request in job["questions"][: job["cold"]]:
        async with search_router.open_router(roots=job["roots"], loaded=loaded) as router:
            started = time.perf_counter()
            answer = await router.search({**request, **arm["request"]})
            took = (time.perf_counter() - started) * 1000
            write({"arm": arm["name"], "cold_ms": took, "answer": answer.model_dump(mode="json", by_alias=True)})


def _check_heads(job: Mapping[str, Any], arm: Mapping[str, Any], registry: RegistryAnswer) -> None:
    """Before anything is asked: the arm is about the commits that the labels are about. Ends the process otherwise."""
    heads = sorted(str(project.head) for project in registry.projects)
    if heads != job["heads"]:
        sys.exit(f"Arm {arm['name']} would search other commits than the suite's: {heads}, not {job['heads']}. Nothing was asked.")


async def _warm_up(router: search_router.Router) -> list[str]:
    """A question of each class until nobody is late or partial, so that what is measured is warm; experts without a whole index still."""
    await until_ready(router.search)
    not_whole: set[str] = set()
    for intent, question in WARM_UPS.items():
        partial: set[str] = set()
        for number in range(WARM_ROUNDS):
            answer = await router.search({"question": f"{question} {number}", "intent": intent, "budget": {"latency_ms": 30_000}})
            partial = {e.id for e in answer.experts if "partial" in e.reason or e.status.value == "index-missing"}
            if not partial and not any(e.status.value in ("timeout", "busy") for e in answer.experts):
                break
        not_whole |= partial
    return sorted(not_whole)


async def ask_all(job: Mapping[str, Any]) -> None:
    def write(row: dict[str, object]) -> None:
        sys.stdout.write(json.dumps(row) + "\n")

    for arm in job["arms"]:
        await ask_arm(job, arm, write)


if __name__ == "__main__":
    anyio.run(ask_all, json.load(sys.stdin))
