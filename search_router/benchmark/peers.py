"""Ourselves beside other search engines: the same questions and repositories, one run, one table. Peers are what the user names."""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Protocol

from search_router.benchmark import ripgrep_peer
from search_router.benchmark.asking import Arm, Plan, ask_everything, failures_of
from search_router.benchmark.chunkhound_peer import ask_chunkhound
from search_router.benchmark.gains import Result, distinct_files
from search_router.benchmark.metrics import mean_metrics, score_run, scorer_name, spread_over
from search_router.benchmark.peers_report import write_peers
from search_router.benchmark.questions import UnusableData
from search_router.benchmark.report import circumstances, write_line, write_table
from search_router.benchmark.ripgrep_peer import Found
from search_router.benchmark.timing import quantile

DRIVER: Final = Path(__file__).with_name("semble_driver.py")
SECONDS: Final = 3600.0
COUNTED_BYTES: Final = 2 * 2**20
ERROR_KEPT: Final = 2000


@dataclass(slots=True)
class Peer:
    """What one system answered. Index times are sums over all repositories; None when it has no index."""

    name: str
    what: str
    rankings: dict[str, list[Result]] = field(default_factory=dict[str, list[Result]])
    ms: list[float] = field(default_factory=list[float])
    cpu_ms: list[float] = field(default_factory=list[float])
    index_ms: float | None = None
    index_cpu_ms: float | None = None
    failed: dict[str, int] = field(default_factory=dict[str, int])


class Questions(Protocol):
    """Where questions come from: data files (`quality.Data`) or a suite (`suite_data.SuiteData`)."""

    def plan(self, home: Path, /) -> Plan: ...


@dataclass(frozen=True, slots=True)
class Others:
    """Who stands beside us: an interpreter with semble and its model, a ripgrep, a chunkhound."""

    semble_python: Path | None = None
    semble_model: Path | None = None
    rg: str | None = None
    chunkhound: Path | None = None


def run(data: Questions, others: Others, *, flags: Sequence[str] = (), out: Path | None = None) -> dict[str, Any]:
    """Figures of every system by name. `out` receives peers.json, report.html and the plot.

    Raises:
        UnusableData: a data file, a checkout or a peer cannot be used.
    """
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        plan = data.plan(folder / "home")
        small = _small_folder(folder)
        peers = [_ask_us(plan, small, flags)]
        if others.semble_python is not None:
            peers.append(_ask_semble(plan, others.semble_python, others.semble_model, small, folder))
        if others.chunkhound is not None:
            peers.append(_ask_chunkhound(plan, others.chunkhound, folder))
        if others.rg is not None:
            peers.append(_ask_ripgrep(plan, others.rg, "ripgrep, the question", ripgrep_peer.ask_literally))
            peers.append(_ask_ripgrep(plan, others.rg, "ripgrep, keywords", ripgrep_peer.ask_keywords))
    lines = sum(count_lines(r.folder(plan.checkouts)) for r in plan.repositories)
    result: dict[str, Any] = {
        "questions": len(plan.questions),
        "repositories": len(plan.repositories),
        "lines": lines,
        "scorer": scorer_name(),
        "circumstances": circumstances(),
        "systems": {peer.name: _figures(plan, peer, lines) for peer in peers},
    }
    if out is not None:
        write_peers(out, result)
    return result


def count_lines(root: Path) -> int:
    """Lines of the text files below a folder, hidden ones and those over 2 MiB left out: one measure for every system."""
    total = 0
    for folder, below, names in os.walk(root):
        below[:] = sorted(name for name in below if not name.startswith("."))
        for path in (Path(folder) / name for name in names if not name.startswith(".")):
            if path.is_file() and not path.is_symlink() and path.stat().st_size <= COUNTED_BYTES:
                text = path.read_bytes()
                total += 0 if b"\0" in text[:8192] else text.count(b"\n")
    return total


def _small_folder(folder: Path) -> Path:
    """Something small to index first, so that imports and models are not measured."""
    small = folder / "small"
    small.mkdir(parents=True)
    (small / "main.py").write_text("def main():\n    '''The entry point.'''\n    return 0\n")
    return small


def _ask_us(plan: Plan, small: Path, flags: Sequence[str]) -> Peer:
    plan = Plan(plan.questions, plan.repositories, plan.checkouts, plan.home, warm_up=small)
    (answers,) = ask_everything(plan, [Arm("search-router", tuple(flags))])
    peer = Peer("search-router", "whole requests with their receipts, shipped configuration" + (f" and {list(flags)}" if flags else ""))
    peer.rankings = answers.files()
    peer.ms, peer.cpu_ms = [a.ms for a in answers.asked.values()], [a.cpu_ms for a in answers.asked.values()]
    peer.index_ms, peer.index_cpu_ms = sum(answers.ready_ms.values()), sum(answers.ready_cpu_ms.values())
    peer.failed = failures_of(answers)
    return peer


def _ask_semble(plan: Plan, python: Path, model: Path | None, small: Path, folder: Path) -> Peer:
    roots = [
        {
            "name": r.name,
            "root": str(r.folder(plan.checkouts)),
            "questions": [(q.id, q.question) for q in plan.questions if q.repo == r.name],
        }
        for r in plan.repositories
    ]
    job = {"model": str(model) if model else "", "roots": roots, "warm_up": str(small)}
    repositories = {r.name: r for r in plan.repositories}
    peer = Peer("semble", "", index_ms=0.0, index_cpu_ms=0.0)
    for row in _driven(python, job, folder):
        if "version" in row:
            peer.name, peer.what = f"semble {row['version']}", f"model: {row['model']}; calls of its library"
        elif "index_ms" in row:
            peer.index_ms, peer.index_cpu_ms = (peer.index_ms or 0) + row["index_ms"], (peer.index_cpu_ms or 0) + row["index_cpu_ms"]
        else:
            repository = repositories[row["name"]]
            found = [Result(repository.from_checkout(path), start, end) for path, start, end in row["results"]]
            peer.rankings[row["id"]] = distinct_files(found)
            peer.ms.append(row["ms"])
            peer.cpu_ms.append(row["cpu_ms"])
    return peer


def _driven(python: Path, job: dict[str, Any], folder: Path) -> Iterator[dict[str, Any]]:
    """The driver's rows, its caches below our folder and the hub switched off. Raises UnusableData when it ends with an error."""
    ours = {"HOME": str(folder), "XDG_CACHE_HOME": str(folder / "cache"), "HF_HUB_OFFLINE": "1"}
    environ = {k: v for k, v in os.environ.items() if not k.startswith(("PYTHON", "SEARCH_ROUTER"))} | ours
    try:
        done = subprocess.run(
            [str(python), str(DRIVER)], input=json.dumps(job).encode(), capture_output=True, env=environ, timeout=SECONDS, check=False
        )
    except OSError as error:
        raise UnusableData(f"{python} cannot be run: {error}.", remedy="Name the interpreter of an environment with semble.") from error
    if done.returncode != 0:
        said = done.stderr.decode("utf-8", "replace")[-ERROR_KEPT:]
        raise UnusableData(f"semble's driver ended with exit code {done.returncode}: {said}", remedy="Check its environment and model.")
    for line in done.stdout.splitlines():
        yield json.loads(line)


def _ask_chunkhound(plan: Plan, program: Path, folder: Path) -> Peer:
    peer = Peer("chunkhound", "regex of the keywords over MCP, no embedder; files ranked by different keywords", index_ms=0.0)
    for repository in plan.repositories:
        questions = [(q.id, q.question) for q in plan.questions if q.repo == repository.name]
        index_ms, found = ask_chunkhound(program, repository.folder(plan.checkouts), questions, folder / "chunkhound")
        peer.index_ms = (peer.index_ms or 0) + index_ms
        peer.rankings |= {name: [r._replace(path=repository.from_checkout(r.path)) for r in f.results] for name, f in found.items()}
        peer.ms += [f.ms for f in found.values()]
    return peer


def _ask_ripgrep(plan: Plan, program: str, name: str, ask: Callable[[str, Path, str], Found]) -> Peer:
    peer = Peer(name, "a process a question")
    repositories = {r.name: r for r in plan.repositories}
    for question in plan.questions:
        repository = repositories[question.repo]
        try:
            found = ask(program, repository.folder(plan.checkouts), question.question)
        except (OSError, subprocess.SubprocessError) as error:
            raise UnusableData(f"{program} failed: {error}.", remedy="Name a ripgrep with --rg.") from error
        peer.rankings[question.id] = [Result(repository.from_checkout(r.path)) for r in found.results]
        peer.ms.append(found.ms)
    return peer


def _figures(plan: Plan, peer: Peer, lines: int) -> dict[str, object]:
    per = score_run(plan.questions, peer.rankings)
    repositories = spread_over(plan.questions, per, "repo")

    def a_thousand(ms: float | None) -> float | None:
        return None if ms is None else round(1000 * ms / max(lines, 1), 3)

    return {
        "what": peer.what,
        **{f"{name}10": round(value, 4) for name, value in mean_metrics(per)._asdict().items()},
        "repo_mean": round(repositories.mean, 4),
        "by": {key: {n: round(v, 4) for n, v in spread_over(plan.questions, per, key).by_group.items()} for key in ("category", "repo")},
        "index_ms_a_thousand_lines": a_thousand(peer.index_ms),
        "index_cpu_ms_a_thousand_lines": a_thousand(peer.index_cpu_ms),
        "p50_ms": round(quantile(peer.ms, 0.5), 2),
        "p95_ms": round(quantile(peer.ms, 0.95), 2),
        "cpu_p50_ms": round(quantile(peer.cpu_ms, 0.5), 2) if peer.cpu_ms else None,
        "failed_experts": peer.failed,
    }


def print_systems(result: dict[str, Any]) -> None:
    systems: dict[str, dict[str, Any]] = result["systems"]
    write_line(f"{result['questions']} questions, {result['repositories']} repositories, {result['lines']} lines; {result['scorer']}")
    write_line(str(result["circumstances"]))
    header = (
        "system",
        "NDCG@10",
        "MRR@10",
        "Recall@10",
        "repo mean",
        "index ms/kline",
        "CPU ms/kline",
        "query p50 ms",
        "p95 ms",
        "CPU p50 ms",
    )
    keys = (
        "ndcg10",
        "mrr10",
        "recall10",
        "repo_mean",
        "index_ms_a_thousand_lines",
        "index_cpu_ms_a_thousand_lines",
        "p50_ms",
        "p95_ms",
        "cpu_p50_ms",
    )
    write_table(header, [[name, *(figures[key] for key in keys)] for name, figures in systems.items()])
    kinds = sorted({kind for figures in systems.values() for kind in figures["by"]["category"]})
    by_kind = [[name, *(figures["by"]["category"].get(kind) for kind in kinds)] for name, figures in systems.items()]
    write_table(("NDCG@10", *kinds), by_kind, "by class")
    for name, figures in systems.items():
        write_line(f"{name}: {figures['what']}" + (f"; failed: {figures['failed_experts']}" if figures["failed_experts"] else ""))
