"""Two runs over the same suite, gate by gate: what got worse than the noise allows, and why.

Gates, second run against first: NDCG@10 may not drop significantly, over all questions or in a class (paired, Holm-corrected); selection
F1, micro and macro, may drop by at most 0.05; p95 may grow by 10 %, p99 by 20 %; every answer of either run has its receipt; the router
makes no error; hostile questions are handled as before. Latency is compared on each question's median round, and only what is beyond the
noise counts: the lower end of a paired bootstrap interval of the ratio must be above 1.
"""

from __future__ import annotations

import json
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from search_router.benchmark.questions import UnusableData
from search_router.benchmark.report import write_line, write_table
from search_router.benchmark.run_arms import FUSED
from search_router.benchmark.run_receipts import check_emission
from search_router.benchmark.run_rows import Row, file_name
from search_router.benchmark.run_summary import median
from search_router.benchmark.significance import ALPHA, Difference, holm, paired
from search_router.benchmark.timing import quantile

F1_DROP: Final = 0.05
LATENCY_GATES: Final = (("p95", 0.95, 1.10), ("p99", 0.99, 1.20))
RESAMPLES: Final = 500
SURE: Final = 0.05
"""The share of resampled ratios that may be below 1."""
ALL: Final = "all"


@dataclass(slots=True)
class Comparison:
    """The figures side by side, and the reasons why the second run does not pass; none is a pass."""

    first: str
    second: str
    ndcg: dict[str, tuple[Difference, float]] = field(default_factory=dict[str, tuple[Difference, float]])
    figures: list[tuple[str, float, float]] = field(default_factory=list[tuple[str, float, float]])
    reasons: list[str] = field(default_factory=list[str])
    notes: list[str] = field(default_factory=list[str])

    def as_json(self) -> dict[str, Any]:
        return {
            "first": self.first,
            "second": self.second,
            "passed": not self.reasons,
            "reasons": self.reasons,
            "notes": self.notes,
            "ndcg10": {name: {**d._asdict(), "p_holm": p} for name, (d, p) in self.ndcg.items()},
            "figures": {name: {"first": a, "second": b} for name, a, b in self.figures},
        }


def compare_runs(first: Path, second: Path, arm: str = FUSED) -> Comparison:
    """Raises UnusableData when a folder is no run or the runs are not over the same suite."""
    summaries = [_read_summary(folder) for folder in (first, second)]
    suites = [summary["place"]["suite"]["corpus"] + summary["place"]["suite"]["manifest"] for summary in summaries]
    if suites[0] != suites[1]:
        raise UnusableData("The runs are over different suites or versions of one.", remedy="Run the older code over the newer suite.")
    for folder, summary in zip((first, second), summaries, strict=True):
        if arm not in summary["arms"]:
            raise UnusableData(f"{folder} has no arm {arm}.", remedy=f"It has {', '.join(summary['arms'])}.")
    if summaries[0]["place"].get("patient", False) != summaries[1]["place"].get("patient", False):
        raise UnusableData("One run was patient and the other was not: load cut experts off in one alone.", remedy="Run both alike.")
    rows = [_read_rows(folder, arm) for folder in (first, second)]
    if rows[0].keys() != rows[1].keys():
        raise UnusableData("The runs did not ask the same questions.", remedy="Run both without --only, or with the same.")
    found = Comparison(_name(summaries[0], first), _name(summaries[1], second))
    arms: list[dict[str, Any]] = [summary["arms"][arm] for summary in summaries]
    _gate_ndcg(found, rows[0], rows[1])
    _gate_selection(found, arms[0], arms[1])
    _gate_latency(found, rows[0], rows[1])
    _gate_receipts(found, (first, second))
    _gate_errors(found, arms[0], arms[1])
    machines = [summary["place"]["machine"] for summary in summaries]
    if machines[0]["processor"] != machines[1]["processor"] or machines[0]["cpus"] != machines[1]["cpus"]:
        found.notes.append("The runs are from different machines: their latencies say nothing about the code.")
    return found


def _name(summary: Mapping[str, Any], folder: Path) -> str:
    return str(summary["place"]["run_name"] or folder.name)


def _gate_ndcg(found: Comparison, first: Mapping[str, Row], second: Mapping[str, Row]) -> None:
    scored = [name for name, row in first.items() if "ndcg" in row]
    groups: dict[str, list[str]] = {ALL: scored}
    for name in scored:
        groups.setdefault(first[name]["kind"], []).append(name)
    differences = {group: paired([first[n]["ndcg"] for n in names], [second[n]["ndcg"] for n in names]) for group, names in groups.items()}
    adjusted = holm({group: d.p for group, d in differences.items()})
    for group, difference in differences.items():
        found.ndcg[group] = (difference, adjusted[group])
        if difference.mean < 0 and adjusted[group] < ALPHA:
            said = f"{difference.mean:+.4f}, p = {adjusted[group]:.2g}, {difference.worse} worse, {difference.better} better"
            found.reasons.append(f"ndcg: NDCG@10 of {group} questions dropped significantly ({said})")


def _gate_selection(found: Comparison, first: Mapping[str, Any], second: Mapping[str, Any]) -> None:
    for name in ("f1_micro", "f1_macro"):
        before, after = first["selection"]["all"][name], second["selection"]["all"][name]
        found.figures.append((f"selection {name}", before, after))
        if after < before - F1_DROP:
            found.reasons.append(f"selection: {name} fell from {before:.3f} to {after:.3f}, more than {F1_DROP}")


def _gate_latency(found: Comparison, first: Mapping[str, Row], second: Mapping[str, Row]) -> None:
    names = list(first)
    wall = [[median(rows[n]["ms"]) for n in names] for rows in (first, second)]
    for name, share, most in LATENCY_GATES:
        before, after = (quantile(values, share) for values in wall)
        found.figures.append((f"{name} ms", round(before, 2), round(after, 2)))
        low = _lowest_ratio(wall[0], wall[1], share)
        if after > before * most and low > 1:
            said = (
                f"{before:.1f} ms to {after:.1f} ms, {100 * (after / before - 1):+.0f} %, at least {100 * (low - 1):+.0f} % by resampling"
            )
            found.reasons.append(f"latency: {name} grew from {said}; the limit is {100 * (most - 1):.0f} %")


def _lowest_ratio(first: Sequence[float], second: Sequence[float], share: float) -> float:
    """The lower end of the bootstrap interval of the ratio of two quantiles, questions drawn in pairs (Efron and Tibshirani 1993)."""
    drawn = random.Random(1)  # noqa: S311 - reproducible resampling, no secret
    ratios: list[float] = []
    for _ in range(RESAMPLES):
        chosen = drawn.choices(range(len(first)), k=len(first))
        ratios.append(quantile([second[n] for n in chosen], share) / max(quantile([first[n] for n in chosen], share), 1e-9))
    return quantile(ratios, SURE)


def _gate_receipts(found: Comparison, folders: Sequence[Path]) -> None:
    """The stores are read again: a receipt that was there when the run ended may be gone now."""
    for folder in folders:
        emission = check_emission(folder)
        if emission["found"] != emission["answers"] or not emission["answers"]:
            why = "; ".join(emission["reasons"][:2])
            found.reasons.append(f"receipts: {emission['found']} of {emission['answers']} answers of {folder.name} have theirs: {why}")


def _gate_errors(found: Comparison, first: Mapping[str, Any], second: Mapping[str, Any]) -> None:
    if second["errors"]:
        found.reasons.append(f"errors: {', '.join(f'{name} × {count}' for name, count in second['errors'].items())}")
    worse = sorted(set(second["hostile"]["mishandled"]) - set(first["hostile"]["mishandled"]))
    if worse:
        found.reasons.append(f"hostile: {', '.join(worse)} were handled before and are not now")
    if second["unstable"]:
        found.notes.append(f"{len(second['unstable'])} questions were not answered alike in every round.")


def _read_summary(folder: Path) -> dict[str, Any]:
    path = folder / "summary.json"
    try:
        return json.loads(path.read_text("utf-8"))
    except (OSError, ValueError) as error:
        raise UnusableData(f"{path} cannot be read: {error}.", remedy="Name the result folder of a `bench run`.") from error


def _read_rows(folder: Path, arm: str) -> dict[str, Row]:
    path = folder / "rows" / f"{file_name(arm)}.jsonl"
    try:
        rows: list[Row] = [json.loads(line) for line in path.read_text("utf-8").splitlines()]
    except (OSError, ValueError) as error:
        raise UnusableData(f"{path} cannot be read: {error}.", remedy=f"Run with the arm {arm}.") from error
    return {row["id"]: row for row in rows}


def print_comparison(found: Comparison) -> None:
    write_line(f"{found.first} → {found.second}")
    rows = [(group, d.mean, d.error, d.better, d.worse, p) for group, (d, p) in found.ndcg.items()]
    write_table(("NDCG@10", "Δ", "±", "better", "worse", "p (Holm)"), rows)
    write_table(("figure", "first", "second"), found.figures, "figures")
    for note in found.notes:
        write_line(f"note: {note}")
    for reason in found.reasons:
        write_line(f"FAILED {reason}")
    if not found.reasons:
        write_line("passed")
