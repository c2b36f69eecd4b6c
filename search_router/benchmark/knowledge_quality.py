"""How well documents and history are found: labelled questions over real projects, asked through the library's own door."""

from __future__ import annotations

import contextlib
import statistics
import tempfile
import time
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import anyio

from search_router.benchmark.arms import named_arms
from search_router.benchmark.ask import FAILURES, environment, until_ready
from search_router.benchmark.asking import Arm
from search_router.benchmark.gains import DEPTH, Metrics
from search_router.benchmark.knowledge_questions import Found, KnowledgeQuestion, LabelledSet, check_labels, read_labelled_set, score_answer
from search_router.benchmark.knowledge_sources import build_workspace
from search_router.benchmark.metrics import mean_metrics
from search_router.benchmark.report import circumstances, write_line, write_table
from search_router.benchmark.timing import quantile
from search_router.router.opening import open_router
from search_router.router.service import Router
from search_router.schema import Answer, Evidence, Intent

SHIPPED: Final = "shipped"
READY_SECONDS: Final = 600.0
LATENCY_MS: Final = 20_000
PATIENT: Final = (f"budget.latency_ms={LATENCY_MS}",)
ALONE: Final = tuple(
    f"experts.{name}.enabled=false" for name in ("grep", "symbols", "codesearch", "callgraph", "semantic", "docs", "scip", "python-types")
)
"""The documents and the history without anybody else."""
KNOWN: Final = (
    Arm(SHIPPED),
    Arm("knowledge alone", ALONE),
    Arm("no semantic", ("experts.knowledge.weights.semantic=0",)),
    Arm("knowledge alone, no semantic", (*ALONE, "experts.knowledge.weights.semantic=0")),
)
Scores = Mapping[str, Metrics]


def found_of(evidence: Sequence[Evidence], versions: Mapping[str, str]) -> list[Found]:
    """The items of an answer; `versions` gives the version of a release by its commit."""
    return [Found(e.path, e.start_line, e.end_line, versions.get(e.commit) if e.commit else None) for e in evidence]


async def _ask_arm(
    roots: Sequence[Path],
    home: Path,
    arm: Arm,
    questions: Sequence[KnowledgeQuestion],
    commits: Mapping[str, Mapping[str, str]],
    hints: bool,
) -> dict[str, object]:
    scores: dict[str, Metrics] = {}
    ms: list[float] = []
    failed: dict[str, int] = defaultdict(int)
    async with open_router(roots=list(roots), flags=(*PATIENT, *arm.flags), environ=environment(home)) as router:
        await _make_ready(router)
        for question in questions:
            versions = {sha: version for version, sha in commits.get(question.source, {}).items()}
            raw: dict[str, object] = {"question": question.question, "scope": {"project": question.source}, "limit": DEPTH}
            if hints:
                raw["intent"] = question.intent.value
            started = time.perf_counter()
            answer = await router.search(raw)
            ms.append((time.perf_counter() - started) * 1000)
            scores[question.id] = score_answer(found_of(answer.evidence, versions), question.labels)
            for expert in _failures(answer):
                failed[expert] += 1
    return {**_figures(questions, scores), "p50_ms": round(quantile(ms, 0.5), 1), "p95_ms": round(quantile(ms, 0.95), 1)} | {
        "failed_experts": dict(sorted(failed.items())),
        "flags": list(arm.flags),
        "scores": {name: round(found.ndcg, 4) for name, found in scores.items()},
    }


def _failures(answer: Answer) -> list[str]:
    return [e.id for e in answer.experts if e.status.value not in FAILURES]


async def _make_ready(router: Router) -> None:
    """Ask until nothing is partial: building indexes is not what is measured. Raises TimeoutError."""
    await until_ready(router.search)
    with anyio.fail_after(READY_SECONDS):
        for intent in (Intent.DOCS, Intent.HISTORY):
            while True:
                answer = await router.search({"question": "the first change", "intent": intent.value})
                waiting = [n for n in answer.notes if "still being read" in n or "being made" in n]
                if not waiting and not any("partial" in e.reason or e.status.value == "timeout" for e in answer.experts):
                    break
                await anyio.sleep(0.05)


def _figures(questions: Sequence[KnowledgeQuestion], scores: Scores) -> dict[str, object]:
    """NDCG@10, MRR@10 and Recall@10 of each half, and of each class in it."""
    groups: dict[str, dict[str, Metrics]] = defaultdict(dict)
    for question in questions:
        for name in (question.half, f"{question.half}: {question.class_}", "all"):
            groups[name][question.id] = scores[question.id]
    return {"by": {name: [len(per), *(round(value, 4) for value in mean_metrics(per))] for name, per in sorted(groups.items())}}


def compare(first: Mapping[str, float], second: Mapping[str, float]) -> dict[str, float | int]:
    """Paired differences of NDCG@10: mean, its standard error, how many questions got better and worse."""
    differences = [second[name] - first[name] for name in first]
    error = statistics.stdev(differences) / len(differences) ** 0.5 if len(differences) > 1 else 0.0
    return {
        "difference": round(statistics.fmean(differences), 4),
        "standard_error": round(error, 4),
        "better": sum(d > 1e-9 for d in differences),
        "worse": sum(d < -1e-9 for d in differences),
    }


async def _ask_all(
    labelled: LabelledSet, work: Path, home: Path, arms: Sequence[Arm], commits: Mapping[str, Mapping[str, str]], hints: bool
) -> dict[str, dict[str, Any]]:
    roots = [work / source.name for source in labelled.sources]
    return {arm.name: await _ask_arm(roots, home / "home", arm, labelled.questions, commits, hints) for arm in arms}


def run(
    archives: Path | None = None,
    arms: Sequence[str] = (),
    flags: Sequence[str] = (),
    *,
    half: str | None = None,
    hints: bool = True,
) -> dict[str, Any]:
    """Figures of each arm. `archives` keeps what was downloaded; `flags` hold for all arms; `half` leaves only those questions.

    Raises:
        UnusableData: an archive is missing or another one, a label is stale, an arm is not known.
        ConfigError: the flags are wrong.
    """
    labelled = read_labelled_set()
    with contextlib.ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        commits = build_workspace(labelled.sources, archives or folder / "archives", folder / "work")
        check_labels(labelled, folder / "work")
        chosen = [Arm(arm.name, (*flags, *arm.flags)) for arm in named_arms(arms or [SHIPPED], KNOWN)]
        asked = labelled._replace(questions=tuple(q for q in labelled.questions if half is None or q.half == half))
        results = anyio.run(_ask_all, asked, folder / "work", folder, chosen, commits, hints)
    first = next(iter(results.values()))["scores"]
    for name, result in results.items():
        if name != chosen[0].name:
            result |= compare(first, result["scores"])
    return {"questions": len(asked.questions), "sources": len(asked.sources), "circumstances": circumstances(), "arms": results}


def print_figures(result: Mapping[str, Any]) -> None:
    """A table an arm: halves and classes."""
    write_line(f"{result['questions']} questions, {result['sources']} projects; {result['circumstances']}")
    arms: dict[str, dict[str, Any]] = result["arms"]
    for name, arm in arms.items():
        write_table(("questions", "count", "NDCG@10", "MRR@10", "Recall@10"), [[group, *row] for group, row in arm["by"].items()], name)
        write_line(f"p50 {arm['p50_ms']} ms, p95 {arm['p95_ms']} ms")
        if "difference" in arm:
            against = f"{arm['difference']:+.4f} ± {arm['standard_error']:.4f}"
            write_line(f"against the first arm: {against}, {arm['better']} questions better, {arm['worse']} worse")
        if arm["failed_experts"]:
            write_line(f"experts that failed or were late, so that these figures are not the product's: {arm['failed_experts']}")
