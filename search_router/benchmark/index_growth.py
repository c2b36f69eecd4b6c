"""How the code index grows: build speed, memory, disk and latency of a real server process at several sizes; then what edits cost."""

from __future__ import annotations

import asyncio
import os
import re
import shutil
import tempfile
import time
from collections import defaultdict
from collections.abc import Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any, Final

from search_router.benchmark.ask import NOTHING_REMEMBERED
from search_router.benchmark.corpus import Corpus, make_corpus
from search_router.benchmark.index_changes import measure_saves, measure_switches
from search_router.benchmark.index_report import write_index_report
from search_router.benchmark.mcp_client import McpClient
from search_router.benchmark.report import circumstances, write_line, write_table
from search_router.benchmark.served import cpu_seconds_of, http_server, peak_rss_mib, resources_of
from search_router.benchmark.served_questions import ask, until_ready
from search_router.benchmark.timing import summarise

QUESTIONS: Final = 50
SUBTOKEN = re.compile(r"[A-Z]?[a-z]{3,}")


def run(
    sources: Sequence[Path],
    sizes: Sequence[int],
    flags: Sequence[str] = (),
    *,
    saves: int = 30,
    switched: int = 500,
    out: Path | None = None,
) -> dict[str, Any]:
    """Figures of each size, in lines. Every size is a repository, a store and a server of its own.

    `out` receives index.json, report.html, the plots, and below home/LINES the server's receipts and benchmark events: they count for the
    experiment `bench-index-LINES`.

    Raises:
        UnusableData: too few lines, or no git.
        RuntimeError: the server did not start.
    """
    found: list[dict[str, Any]] = []
    result: dict[str, Any] = {"circumstances": circumstances(), "sizes": found}
    for size in sizes:
        kept = None if out is None else (out / "home" / str(size)).resolve()
        found.append(_one_size(sources, size, flags, saves, switched, kept))
        if out is not None:
            write_index_report(out, result)  # what was measured before a later size fails is there
    return result


def _one_size(
    sources: Sequence[Path], lines: int, flags: Sequence[str], saves: int, switched: int, kept_home: Path | None
) -> dict[str, Any]:
    flags = (f"enrich.paper_slug=bench-index-{lines}", *flags)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        home = kept_home or folder / "home"
        home.mkdir(parents=True, exist_ok=True)
        corpus = make_corpus(sources, lines, folder / "corpus")
        config = folder / "user.toml"
        config.touch()
        kept = {key: value for key, value in os.environ.items() if not key.startswith("SEARCH_ROUTER")}
        environ = kept | NOTHING_REMEMBERED | {"SEARCH_ROUTER_HOME": str(home), "SEARCH_ROUTER_CONFIG": str(config)}
        with http_server(corpus.root, flags, environ) as (pid, port):
            built = asyncio.run(_build(pid, port))
            asked = asyncio.run(_questions(pid, port, corpus))
            memory = {"rss_mib": resources_of(pid).rss_mib, "peak_rss_mib": peak_rss_mib(pid)}
            disk = _size_on_disk(home)
            saved = asyncio.run(measure_saves(pid, port, corpus, saves)) if saves else None
            switches = asyncio.run(measure_switches(pid, port, corpus, switched)) if switched else None
        with http_server(corpus.root, flags, environ) as (pid, port):
            again = asyncio.run(_build(pid, port))
            memory["rss_after_restart_mib"] = resources_of(pid).rss_mib
        shutil.rmtree(home / "cache", ignore_errors=True)  # the index itself is of no use once its corpus is gone
    return {
        "lines": corpus.lines,
        "files": corpus.files,
        "source_bytes": corpus.source_bytes,
        "build": {
            **built,
            "lines_a_second": round(corpus.lines / built["s"]),
            "lines_a_cpu_second": round(corpus.lines / built["cpu_s"]),
        },
        "restart": again,
        "questions": asked,
        "memory": memory,
        "disk_bytes": disk,
        "disk_of_source": round(disk / corpus.source_bytes, 3),
        "saves": saved,
        "switches": switches,
        "load_1m": round(os.getloadavg()[0], 2),
    }


async def _build(pid: int, port: int) -> dict[str, float]:
    """Seconds, wall and processor, from the first question until no expert is still reading."""
    async with McpClient("127.0.0.1", port) as client:
        began, cpu = time.perf_counter(), cpu_seconds_of(pid)
        await until_ready(client)
        return {"s": round(time.perf_counter() - began, 3), "cpu_s": round(cpu_seconds_of(pid) - cpu, 3)}


async def _questions(pid: int, port: int, corpus: Corpus) -> dict[str, object]:
    """Latency of whole requests as the client sees it, and of each expert as the server says; processor time of all of it."""
    step = max(1, len(corpus.names) // QUESTIONS)
    names = corpus.names[::step][:QUESTIONS]
    total: list[float] = []
    by_expert: dict[str, list[float]] = defaultdict(list)
    async with AsyncExitStack() as stack:
        client = await stack.enter_async_context(McpClient("127.0.0.1", port))
        await ask(client, "how are files read")
        cpu = cpu_seconds_of(pid)
        for number, name in enumerate(names):
            words = " ".join(w.lower() for w in SUBTOKEN.findall(name)) or name
            answered = await ask(client, f"where is {name} defined" if number % 2 else f"how does {words} work")
            total.append(answered.ms)
            for expert in answered.content["experts"]:
                if expert["status"] != "skipped":
                    by_expert[expert["id"]].append(expert["latency_us"] / 1000)
        used = (cpu_seconds_of(pid) - cpu) * 1000 / len(names)
    experts = {name: summarise(samples)["p50_ms"] for name, samples in sorted(by_expert.items())}
    return {**summarise(total), "cpu_mean_ms": round(used, 2), "expert_p50_ms": experts}


def _size_on_disk(home: Path) -> int:
    """Bytes of everything below the state directory but receipts and benchmark events: the index with its journals."""
    total = 0
    for folder, below, names in os.walk(home):
        below[:] = [name for name in below if name != "receipts"]
        names = [name for name in names if not name.startswith("enrich.")]
        total += sum((Path(folder) / name).stat().st_size for name in names)
    return total


def print_sizes(result: dict[str, Any]) -> None:
    """A row a size in each of three tables: building, asking, changing."""
    sizes: list[dict[str, Any]] = result["sizes"]
    write_line(str(result["circumstances"]))
    header = ("lines", "files", "build s", "CPU s", "lines/s", "lines/CPU s", "restart s", "disk/source", "RSS MiB", "peak MiB", "load")
    write_table(
        header,
        [
            [
                str(s["lines"]),
                s["files"],
                *(s["build"][key] for key in ("s", "cpu_s", "lines_a_second", "lines_a_cpu_second")),
                s["restart"]["s"],
                s["disk_of_source"],
                s["memory"]["rss_mib"],
                s["memory"]["peak_rss_mib"],
                s["load_1m"],
            ]
            for s in sizes
        ],
        "building the index, from the first question on",
    )
    experts = sorted({name for s in sizes for name in s["questions"]["expert_p50_ms"]})
    write_table(
        ("lines", "p50 ms", "p95 ms", "CPU mean ms", *(f"{name} p50" for name in experts)),
        [
            [
                str(s["lines"]),
                *(s["questions"][key] for key in ("p50_ms", "p95_ms", "cpu_mean_ms")),
                *(s["questions"]["expert_p50_ms"].get(name) for name in experts),
            ]
            for s in sizes
        ],
        f"{QUESTIONS} warm questions, whole requests over HTTP",
    )
    for s in sizes:
        write_line(f"\n{s['lines']} lines, changes: saves {s['saves']}; switches {s['switches']}")
