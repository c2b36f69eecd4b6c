"""How well files are ranked: NDCG@10 of every arm on questions with known targets, overall, by group, with its spread and its latency."""

from __future__ import annotations

import statistics
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

from search_router.benchmark.arms import SHIPPED, ablation_arms, named_arms, read_weights
from search_router.benchmark.asking import Answers, Arm, Plan, ask_everything, failures_of, is_complete
from search_router.benchmark.gains import Metrics
from search_router.benchmark.metrics import mean_metrics, score_run, scorer_name, spread_over
from search_router.benchmark.questions import Question, UnusableData, read_questions, read_repositories, write_run
from search_router.benchmark.report import Cell, circumstances, write_line, write_table
from search_router.benchmark.timing import quantile

GROUPS: Final = ("category", "language", "repo")


class Data(NamedTuple):
    """Where the questions, the repositories and their checkouts are; `only` leaves just those repositories."""

    questions: Path
    repositories: Path
    checkouts: Path
    only: tuple[str, ...] = ()

    def plan(self, home: Path, *, limit: int = 10, texts: bool = False, candidates: bool = False, seconds: float | None = None) -> Plan:
        """Raises UnusableData."""
        questions = read_questions(self.questions, self.only)
        repositories = read_repositories(self.repositories, questions)
        return Plan(questions, repositories, self.checkouts, home, limit, texts, candidates, seconds=seconds)


def run(
    data: Data,
    arms: Sequence[str] = (),
    flags: Sequence[str] = (),
    *,
    ablate: bool = False,
    out: Path | None = None,
    seconds: float | None = None,
) -> dict[str, object]:
    """Figures of each arm, by name. `flags` hold for all of them; `out` receives the rankings (a file an arm when there are several).

    After `seconds` no further arm is begun, and those that were not asked everything are named and have no figures.

    Raises:
        UnusableData, ConfigError, ScorersDisagree
    """
    with tempfile.TemporaryDirectory() as name:
        plan = data.plan(Path(name), seconds=seconds)
        known = ablation_arms(read_weights(Path(name), flags))
        chosen = known if ablate and not arms else named_arms(arms or [SHIPPED], known)
        everything = ask_everything(plan, [Arm(arm.name, (*flags, *arm.flags)) for arm in chosen])
    answered = [each for each in everything if is_complete(plan, each)]
    scores = [score_run(plan.questions, each.files()) for each in answered]
    if out is not None:
        for each in answered:
            _write(out if len(answered) == 1 else out.with_name(f"{out.stem}.{each.arm.name.replace(' ', '-')}{out.suffix}"), each)
    first = scores[0]
    return {
        "questions": len(plan.questions),
        "repositories": len(plan.repositories),
        "scorer": scorer_name(),
        "circumstances": circumstances(),
        "arms": {
            each.arm.name: {**_figures(plan.questions, each, per), **(_against(per, first) if per is not first else {})}
            for each, per in zip(answered, scores, strict=True)
        },
        "not_in_time": [each.arm.name for each in everything if not is_complete(plan, each)],
    }


def _figures(questions: Sequence[Question], answers: Answers, per: Mapping[str, Metrics]) -> dict[str, object]:
    overall = mean_metrics(per)
    spreads = {key: spread_over(questions, per, key) for key in GROUPS}
    ms = [asked.ms for asked in answers.asked.values()]
    cpu = [asked.cpu_ms for asked in answers.asked.values()]
    return {
        "ndcg10": round(overall.ndcg, 4),
        "mrr10": round(overall.mrr, 4),
        "recall10": round(overall.recall, 4),
        "by": {key: {name: round(value, 4) for name, value in spread.by_group.items()} for key, spread in spreads.items()},
        "spread": {
            key: {
                "mean": round(spread.mean, 4),
                "sd": round(spread.deviation, 4),
                "min": round(spread.lowest, 4),
                "min_at": spread.lowest_at,
            }
            for key, spread in spreads.items()
        },
        "p50_ms": round(quantile(ms, 0.5), 2),
        "p95_ms": round(quantile(ms, 0.95), 2),
        "cpu_p50_ms": round(quantile(cpu, 0.5), 2),
        "answered": sum(bool(asked.results) for asked in answers.asked.values()),
        "failed_experts": failures_of(answers),
        "without_vectors": sum(asked.without_vectors for asked in answers.asked.values()),
        "flags": list(answers.arm.flags),
    }


def _against(per: Mapping[str, Metrics], first: Mapping[str, Metrics]) -> dict[str, object]:
    """Paired with the first arm: mean difference of NDCG@10, its standard error, and how many questions got better and worse."""
    differences = [per[name].ndcg - first[name].ndcg for name in per]
    error = statistics.stdev(differences) / len(differences) ** 0.5 if len(differences) > 1 else 0.0
    return {
        "difference": round(statistics.fmean(differences), 4),
        "standard_error": round(error, 4),
        "better": sum(d > 0 for d in differences),
        "worse": sum(d < 0 for d in differences),
    }


def _write(path: Path, answers: Answers) -> None:
    rankings = [(name, [{"path": r.path, "start": r.start, "end": r.end} for r in results]) for name, results in answers.files().items()]
    try:
        write_run(path, rankings)
    except OSError as error:
        raise UnusableData(f"{path} cannot be written: {error}.", remedy="Name a file in a folder that exists.") from error


def print_figures(result: dict[str, Any]) -> None:
    """The arms in one table; below it the groups of the first arm."""
    arms: dict[str, dict[str, Any]] = result["arms"]
    header = ("arm", "NDCG@10", "Δ", "±", "better", "worse", "repo sd", "repo min", "lang sd", "lang min", "p50 ms", "p95 ms", "cpu p50")
    write_line(f"{result['questions']} questions, {result['repositories']} repositories; {result['scorer']}; {result['circumstances']}")
    write_table(header, [_row(name, arm) for name, arm in arms.items()])
    first = next(iter(arms))
    by: dict[str, dict[str, float]] = arms[first]["by"]
    for key, groups in by.items():
        write_table((key, "NDCG@10"), list(groups.items()), f"by {key}, {first}")
    failed = {name: arm["failed_experts"] for name, arm in arms.items() if arm["failed_experts"]}
    lacking = {name: arm["without_vectors"] for name, arm in arms.items() if arm["without_vectors"]}
    if lacking:
        write_line(f"\nquestions that were ranked before there were vectors, so that these figures are not the product's: {lacking}")
    if result["not_in_time"]:
        write_line(f"\nnot asked everything in time, so without figures: {', '.join(result['not_in_time'])}")
    if failed:
        write_line(f"\nexperts that failed or were late, so that these figures are not the product's: {failed}")


def _row(name: str, arm: dict[str, Any]) -> list[Cell]:
    repo, language = arm["spread"]["repo"], arm["spread"]["language"]
    paired: list[Cell] = [arm.get(key) for key in ("difference", "standard_error", "better", "worse")]
    times: list[Cell] = [arm[key] for key in ("p50_ms", "p95_ms", "cpu_p50_ms")]
    return [name, arm["ndcg10"], *paired, repo["sd"], repo["min"], language["sd"], language["min"], *times]
