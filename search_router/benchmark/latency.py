"""Warm latency of real questions to grep, symbols and history together, on any checkout.

The questions are made from the repository itself: names of its definitions, words of such names, and when such a name came in. Every
question is asked once; what is warm is the process and its indexes, not the answer.
"""

from __future__ import annotations

import os
import random
import re
import tempfile
import time
from collections import defaultdict
from pathlib import Path

import anyio

from search_router.benchmark.ask import NOTHING_REMEMBERED
from search_router.benchmark.timing import summarise
from search_router.config.loader import load_config
from search_router.router.opening import open_router
from search_router.router.service import Router
from search_router.schema import ExpertStatus

ASKED = frozenset({"grep", "symbols", "history"})
"""Those that read the tree and the history themselves; the figure is comparable with that of a router without any index of ranks."""
FLAGS = ("gate.min_prior=0.0", "budget.latency_ms=10000", "gate.one_expert_suffices=false")
SUBTOKEN = re.compile(r"[A-Z]?[a-z]{3,}")
WARM_UP_SECONDS = 240.0
COMMON_WORDS = ["parse", "read", "write", "create", "update", "delete", "connect", "error", "config", "file", "data", "request"]
WARM_UP = ("conceptual", "read the file"), ("history", "fix error")


async def sample_names(router: Router, count: int, seed: int) -> list[str]:
    """Names of definitions, from the answers to questions with the commonest words of programs; reproducible."""
    names: set[str] = set()
    for word in (
        "parse",
        "read",
        "write",
        "create",
        "update",
        "delete",
        "connect",
        "error",
        "config",
        "file",
        "data",
        "request",
        "name",
        "value",
    ):
        answer = await router.search({"question": f"{word} {word}s", "intent": "conceptual", "limit": 100})
        names |= {e.symbol.rpartition(".")[2] for e in answer.evidence if e.symbol}
    ordered = sorted(n for n in names if len(n) > 4)
    random.Random(seed).shuffle(ordered)  # noqa: S311 - reproducible sample, no secret
    return ordered[:count]


def make_questions(names: list[str]) -> list[tuple[str, str]]:
    """(intent, question), one of three kinds for each name in turn."""
    questions: list[tuple[str, str]] = []
    for number, name in enumerate(names):
        words = " ".join(w.lower() for w in SUBTOKEN.findall(name)) or name
        match number % 3:
            case 0:
                questions.append(("typed-symbol", f"where is {name} defined"))
            case 1:
                questions.append(("conceptual", f"how does {words} work"))
            case _:
                questions.append(("history", f"when was {name} introduced"))
    return questions


async def wait_until_warm(router: Router) -> float:
    """Ask until no expert says that it is still reading; milliseconds."""
    started = time.perf_counter()
    with anyio.fail_after(WARM_UP_SECONDS):
        while True:
            answers = [
                await router.search({"question": q, "intent": i}) for i, q in (("conceptual", "read the file"), ("history", "fix error"))
            ]
            if not any("partial" in e.reason for a in answers for e in a.experts):
                return (time.perf_counter() - started) * 1000
            await anyio.sleep(0.5)


async def measure(root: Path, count: int, seed: int) -> dict[str, object]:
    with tempfile.TemporaryDirectory() as home:
        environ = NOTHING_REMEMBERED | {
            "SEARCH_ROUTER_HOME": home,
            "PATH": os.environ.get("PATH", ""),
            "HOME": os.environ.get("HOME", home),
        }
        others = [name for name in load_config(roots=[root], environ=environ).config.experts if name not in ASKED]
        flags = (*FLAGS, *(f"experts.{name}.enabled=false" for name in others))
        async with open_router(roots=[root], flags=flags, environ=environ) as router:
            cold = await wait_until_warm(router)
            questions = make_questions(await sample_names(router, count, seed))
            by_intent: dict[str, list[float]] = defaultdict(list)
            by_expert: dict[str, list[float]] = defaultdict(list)
            outcomes: dict[str, int] = defaultdict(int)
            for intent, question in questions:
                started = time.perf_counter()
                answer = await router.search({"question": question, "intent": intent})
                by_intent[intent].append((time.perf_counter() - started) * 1000)
                for e in answer.experts:
                    if e.status is not ExpertStatus.SKIPPED:
                        by_expert[e.id].append(e.latency_us / 1000)
                    outcomes[f"{e.id} {e.status.value}"] += 1
    everything = [ms for samples in by_intent.values() for ms in samples]
    return {
        **summarise(everything),
        "cold_ms": round(cold),
        "by_intent": {i: summarise(s)["p50_ms"] for i, s in sorted(by_intent.items())},
        "by_expert": {e: summarise(s)["p50_ms"] for e, s in sorted(by_expert.items())},
        "outcomes": dict(sorted(outcomes.items())),
    }


def run(root: Path, count: int = 90, seed: int = 7) -> dict[str, object]:
    """p50_ms and p95_ms of whole requests, receipts included; p50 by intent and by expert; how each expert ended."""
    return anyio.run(measure, root, count, seed)
