"""The summary of a run as the console's records. Pure. What has another shape than `bench run` writes counts as not there."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any, Final

from search_router.console.bench_folders import Summary
from search_router.console.bench_records import (
    ArmFigures,
    BenchComparison,
    BenchRun,
    BenchRunView,
    ExpertChoice,
    Figure,
    FigurePair,
    Handled,
    Latencies,
    NdcgChange,
    Retrieved,
    Selected,
)
from search_router.console.records import Count
from search_router.console.shown import MOST, members, number, text, words
from search_router.wire_text import encodable

FUSED: Final = "fused"
"""The product as it is: the arm that every run has."""
LARGEST: Final = 1e12
Table = Mapping[str, Any]


def tell_run(run_id: str, folder: str, summary: Summary) -> BenchRun:
    """The row of one run."""
    facts, place = summary.facts, members(summary.facts.get("place"))
    code, suite, config, emission = (
        members(place.get("code")),
        members(place.get("suite")),
        members(place.get("config")),
        members(facts.get("emission")),
    )
    arms = members(facts.get("arms"))
    fused = _arm(FUSED, members(arms.get(FUSED)))
    return BenchRun(
        id=run_id,
        folder=encodable(folder),
        name=text(place.get("run_name")),
        started=text(place.get("started")),
        suite=f"{text(suite.get('name'))} {text(suite.get('version'))}".strip(),
        commit=text(code.get("commit")),
        branch=text(code.get("branch")),
        changed=code.get("dirty") is True,
        config_version=text(config.get("version")),
        config_hash=text(config.get("hash")),
        arms=tuple(text(name) for name, _ in _tables(arms)),
        questions=number(members(arms.get(FUSED)).get("questions")),
        ndcg10=fused.ndcg10,
        f1_micro=fused.f1_micro,
        p50_ms=fused.p50_ms,
        p95_ms=fused.p95_ms,
        answers=number(emission.get("answers")),
        receipts=number(emission.get("found")),
        failed=words(facts.get("failed")),
        unreadable=summary.unreadable,
    )


def tell_view(run: BenchRun, summary: Summary, arm: str) -> BenchRunView:
    """One arm of a run, family by family; empty families where the run has no such arm."""
    facts = summary.facts
    arms = members(facts.get("arms"))
    told = members(arms.get(arm))
    hostile = members(told.get("hostile"))
    return BenchRunView(
        run=run,
        arm=arm,
        place=tuple(_place(members(facts.get("place")))),
        flags=words(members(facts.get("place")).get("flags")),
        retrieval=tuple(_retrieval(members(told.get("retrieval")))),
        selection=tuple(_selection(members(told.get("selection")))),
        experts=tuple(
            ExpertChoice(expert=text(name), right=number(x.get("right")), extra=number(x.get("extra")), missed=number(x.get("missed")))
            for name, x in _tables(members(members(told.get("selection")).get("by_expert")))
        ),
        latency=tuple(_latency(members(told.get("latency")))),
        breaches=_counts(members(told.get("latency")).get("breaches")),
        receipts_missing=words(members(facts.get("emission")).get("reasons")),
        hostile=tuple(Handled(kind=text(k), handled=text(v)) for k, v in _few(members(hostile.get("by_kind")))),
        mishandled=words(hostile.get("mishandled")),
        errors=_counts(told.get("errors")),
        unstable=len(words(told.get("unstable"))),
        arms=tuple(_arm(text(name), each) for name, each in _tables(arms)),
    )


def tell_comparison(a: BenchRun, b: BenchRun, arm: str, said: Table, compared_us: int) -> BenchComparison:
    """What `bench compare --json` printed."""
    ndcg = [
        NdcgChange(
            group=text(name),
            mean=figure(x.get("mean")),
            error=figure(x.get("error")),
            better=number(x.get("better")),
            worse=number(x.get("worse")),
            p_holm=figure(x.get("p_holm")),
        )
        for name, x in _tables(members(said.get("ndcg10")))
    ]
    figures = members(said.get("figures"))
    return BenchComparison(
        a=a,
        b=b,
        arm=arm,
        passed=said.get("passed") is True,
        reasons=words(said.get("reasons")),
        notes=words(said.get("notes")),
        ndcg10=tuple(ndcg),
        figures=tuple(
            FigurePair(name=text(name), first=figure(x.get("first")), second=figure(x.get("second"))) for name, x in _tables(figures)
        ),
        compared_us=compared_us,
    )


def figure(value: object) -> Figure:
    """A finite number of a size that a table can show; None for anything else, also for NaN."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value) if abs(value) <= LARGEST and math.isfinite(value) else None


def _retrieval(told: Table) -> Iterator[Retrieved]:
    for kind, name, group in _groups(told):
        yield Retrieved(
            name=name,
            kind=kind,
            questions=number(group.get("questions")),
            ndcg10=figure(group.get("ndcg10")),
            mrr10=figure(group.get("mrr10")),
            recall10=figure(group.get("recall10")),
        )


def _selection(told: Table) -> Iterator[Selected]:
    sole = members(told.get("sole"))
    for kind, name, group in (*_groups(told), *([("sole", "one expert alone", sole)] if sole else [])):
        yield Selected(
            name=name,
            kind=kind,
            questions=number(group.get("questions")),
            precision_micro=figure(group.get("precision_micro")),
            recall_micro=figure(group.get("recall_micro")),
            f1_micro=figure(group.get("f1_micro")),
            f1_macro=figure(group.get("f1_macro")),
            exact=figure(group.get("exact")),
        )


def _groups(told: Table) -> Iterator[tuple[str, str, Table]]:
    """(kind, name, figures) of all questions and of their groups."""
    if whole := members(told.get("all")):
        yield "all", "all", whole
    for kind in ("class", "half", "source"):
        yield from ((kind, text(name), group) for name, group in _tables(members(told.get(f"by_{kind}"))))


def _latency(told: Table) -> Iterator[Latencies]:
    budget = figure(told.get("budget_ms"))
    for name in ("warm", "cold", "cached"):
        row = members(told.get(name))
        if number(row.get("n")):
            yield _latencies(name, "request", row, budget)
    yield from (_latencies(text(name), "class", row, budget) for name, row in _tables(members(told.get("by_class"))))
    yield from (_latencies(text(name), "expert", row, figure(row.get("cap_ms"))) for name, row in _tables(members(told.get("experts"))))


def _latencies(name: str, kind: str, row: Table, limit_ms: Figure) -> Latencies:
    p50, p95, p99 = (figure(row.get(key)) for key in ("p50", "p95", "p99"))
    return Latencies(name=name, kind=kind, n=number(row.get("n")), p50=p50, p95=p95, p99=p99, limit_ms=limit_ms)


def _arm(name: str, told: Table) -> ArmFigures:
    warm = members(members(told.get("latency")).get("warm"))
    return ArmFigures(
        arm=name,
        ndcg10=figure(members(members(told.get("retrieval")).get("all")).get("ndcg10")),
        f1_micro=figure(members(members(told.get("selection")).get("all")).get("f1_micro")),
        p50_ms=figure(warm.get("p50")),
        p95_ms=figure(warm.get("p95")),
    )


def _place(place: Table) -> Iterator[tuple[str, str]]:
    machine = members(place.get("machine"))
    said = {
        "Processor": f"{text(machine.get('processor'))}, {number(machine.get('cpus')) or '?'} CPUs",
        "Memory": f"{number(machine.get('memory_mib')) or '?'} MiB",
        "Load before": str(figure(machine.get("load_1m"))),
        "System": f"{text(machine.get('system'))} {text(machine.get('kernel'))}",
        "Python": text(place.get("python")),
        "Configuration file": text(place.get("config_file")),
    }
    yield from ((name, value) for name, value in said.items() if value)


def _counts(told: object) -> tuple[Count, ...]:
    return tuple(Count(name=text(name), count=number(count) or 0) for name, count in _few(members(told)))


def _tables(told: Table) -> list[tuple[str, Table]]:
    return [(name, found) for name, each in _few(told) if (found := members(each))]


def _few(told: Table) -> list[tuple[str, Any]]:
    return list(told.items())[:MOST]
