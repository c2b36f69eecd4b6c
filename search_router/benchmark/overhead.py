"""The router's own share of a request: everything but the experts, the signed and durable receipt included.

Four scripted experts answer at once with 50 hits each over 60 real files; their own time is subtracted from each request. It adds up:
they wait for nothing, so on the one thread they run one after the other.
"""

from __future__ import annotations

import json
import os
import random
import tempfile
import time
from pathlib import Path

import anyio

from search_router.benchmark.timing import summarise
from search_router.config.loader import load_config
from search_router.router.opening import open_router

EXPERTS = {"lexical": "engine-a", "syntactic": "engine-b", "semantic": "engine-c", "typed": "engine-d"}
FILES = 60
HITS = 50
QUESTION = "where does the parser handle nested quotes and escaped newlines"


def make_workspace(folder: Path, seed: int = 7) -> list[str]:
    """Real files and four scripts below `folder`; returns the configuration flags that select them."""
    rnd = random.Random(seed)  # noqa: S311 - reproducible sample, no secret
    root = folder / "work"
    root.mkdir()
    for number in range(FILES):
        text = "\n".join(f"def function_{number}_{n}(value): return value + {n}" for n in range(80))
        (root / f"module_{number}.py").write_text(text + "\n")
    off = [
        f"experts.{name}.enabled=false" for name in load_config(roots=[folder], environ={"SEARCH_ROUTER_HOME": str(folder)}).config.experts
    ]
    flags = [*off, "budget.max_experts=8"]
    for precision, engine in EXPERTS.items():
        lines = [(rnd.randrange(FILES), rnd.randrange(1, 78)) for _ in range(HITS)]
        hits = [{"path": f"module_{m}.py", "start_line": n, "end_line": n + 2, "is_exact": n % 3 == 0} for m, n in lines]
        script = folder / f"{precision}.json"
        script.write_text(json.dumps({"answers": [{"when": "*", "hits": hits}]}))
        block = (
            f'{{kind="scripted", precision_class="{precision}", engine="{engine}", cap_ms=1000, script="{script}", intents=["conceptual"]}}'
        )
        flags += [f"experts.scripted-{precision}={block}", f"priors.conceptual.scripted-{precision}=0.8"]
    return flags


async def measure(requests: int, warm_up: int) -> dict[str, object]:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        flags = make_workspace(folder)
        environ = {"SEARCH_ROUTER_HOME": str(folder / "home"), "PATH": os.environ.get("PATH", "")}
        shares: list[float] = []
        totals: list[float] = []
        async with open_router(roots=[folder / "work"], flags=flags, environ=environ) as router:
            for number in range(warm_up + requests):
                started = time.perf_counter()
                answer = await router.search({"question": f"{QUESTION} {number}", "intent": "conceptual"})
                total = (time.perf_counter() - started) * 1000
                if (
                    answer.receipt is None
                    or len(answer.evidence) != 10
                    or len([e for e in answer.experts if e.results == HITS]) != len(EXPERTS)
                ):
                    raise RuntimeError(f"unexpected answer: {answer.status}, {answer.error}, {answer.experts}")
                if number >= warm_up:
                    totals.append(total)
                    shares.append(total - sum(e.latency_us for e in answer.experts) / 1000)
    return {**summarise(shares), "total": summarise(totals), "experts": len(EXPERTS), "hits_each": HITS}


def run(requests: int = 400, warm_up: int = 50) -> dict[str, object]:
    """p50_ms and p95_ms of the router's own share over `requests` sequential requests."""
    return anyio.run(measure, requests, warm_up)
