"""Runs of `bench run` as the console's API gives them. A figure that a result folder does not have, or not as a number, is null.

Times are milliseconds and were measured when the run was made. The four families (retrieval, selection, latency, receipts and errors) stand
beside each other and are never put together into one score.
"""

from __future__ import annotations

from pydantic import Field

from search_router.console.records import Count
from search_router.schema import Edge

Figure = float | None


class BenchRun(Edge):
    """One result folder in the list."""

    id: str = Field(description="Made of the folder's name; the same as long as that is.")
    folder: str
    name: str = Field(description="What it was called with --run-name.")
    started: str
    suite: str
    commit: str
    branch: str
    changed: bool = Field(description="Whether the work tree differed from the commit.")
    config_version: str
    config_hash: str
    arms: tuple[str, ...]
    questions: int | None
    ndcg10: Figure
    f1_micro: Figure
    p50_ms: Figure
    p95_ms: Figure
    answers: int | None
    receipts: int | None
    failed: tuple[str, ...] = Field(description="Why the run itself says that its figures may not be used; none is a sound run.")
    unreadable: str = Field("", description="Why nothing can be shown of this folder.")


class BenchRuns(Edge):
    """The newest `shown` of the result folders."""

    runs: tuple[BenchRun, ...]
    folders: int = Field(description="How many folders there are.")
    notes: tuple[str, ...] = ()


class Retrieved(Edge):
    """Means over the questions of a group; `kind` is `all`, `class`, `half` or `source`."""

    name: str
    kind: str
    questions: int | None
    ndcg10: Figure
    mrr10: Figure
    recall10: Figure


class Selected(Edge):
    """Experts that were asked against those that should have been, over the questions of a group."""

    name: str
    kind: str
    questions: int | None
    precision_micro: Figure
    recall_micro: Figure
    f1_micro: Figure
    f1_macro: Figure
    exact: Figure


class ExpertChoice(Edge):
    """Questions of which one expert was rightly asked, asked too much, and missed."""

    expert: str
    right: int | None
    extra: int | None
    missed: int | None


class Latencies(Edge):
    """`kind` is `request`, `class` or `expert`; `limit_ms` is the budget, or the expert's cap."""

    name: str
    kind: str
    n: int | None
    p50: Figure
    p95: Figure
    p99: Figure
    limit_ms: Figure


class Handled(Edge):
    """Hostile questions of one kind, as `handled/asked`."""

    kind: str
    handled: str


class ArmFigures(Edge):
    """One arm of the run beside the others."""

    arm: str
    ndcg10: Figure
    f1_micro: Figure
    p50_ms: Figure
    p95_ms: Figure


class BenchRunView(Edge):
    """One run, and of `arm` everything that it measured."""

    run: BenchRun
    arm: str
    place: tuple[tuple[str, str], ...] = Field(description="Machine and versions, as (what, value).")
    flags: tuple[str, ...] = Field(description="Configuration values that the run set in every arm.")
    retrieval: tuple[Retrieved, ...]
    selection: tuple[Selected, ...]
    experts: tuple[ExpertChoice, ...]
    latency: tuple[Latencies, ...]
    breaches: tuple[Count, ...] = Field(description="Limits that calls or requests went over.")
    receipts_missing: tuple[str, ...] = Field(description="What the check of the receipts said.")
    hostile: tuple[Handled, ...]
    mishandled: tuple[str, ...]
    errors: tuple[Count, ...]
    unstable: int = Field(description="Questions that were not answered alike in every round.")
    arms: tuple[ArmFigures, ...]


class NdcgChange(Edge):
    """Second run minus first over the questions of a group; `p_holm` is Holm's corrected p of the paired t-test."""

    group: str
    mean: Figure
    error: Figure
    better: int | None
    worse: int | None
    p_holm: Figure


class FigurePair(Edge):
    name: str
    first: Figure
    second: Figure


class BenchComparison(Edge):
    """What `bench compare A B` says. `refused` is why the two cannot be compared; then there are no figures and `passed` is null."""

    a: BenchRun
    b: BenchRun
    arm: str
    passed: bool | None
    refused: str = ""
    reasons: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    ndcg10: tuple[NdcgChange, ...] = ()
    figures: tuple[FigurePair, ...] = ()
    compared_us: int = Field(description="When; it may be some minutes old.")
