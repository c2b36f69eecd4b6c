"""A run as one static page: verdict, the four families apart, arms, plots, misses. No script, no font, nothing from anywhere else."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from pathlib import Path
from typing import Any, Final

from search_router.benchmark.fixture_suite import ADVERSARIAL, CLASSES, FixtureQuestion
from search_router.benchmark.page import Cell, figure, table, write_page
from search_router.benchmark.plots import Plot, draw_plots
from search_router.benchmark.run_arms import FUSED
from search_router.benchmark.run_rows import Row

PAGE: Final = "report.html"
MISSES: Final = 60


def write_report(folder: Path, summary: Mapping[str, Any], rows: Sequence[Row], questions: Sequence[FixtureQuestion]) -> Path:
    """FOLDER/report.html, and its plots as files beside it. `rows` are the fused arm's."""
    fused: Mapping[str, Any] = summary["arms"][FUSED]
    plots = {plot.name: plot for plot in draw_plots(summary, folder / "plots")}
    place: Mapping[str, Any] = summary["place"]
    texts = {q.id: q.text * min(q.times, 2) for q in questions}
    body = [
        f"<h1>Benchmark {escape(place['run_name'] or folder.name)}</h1>",
        f'<p class="dim">{_place_line(place)}</p>',
        _verdict(summary),
        _tiles(summary, fused),
        "<h2>Retrieval</h2>",
        figure(plots, "retrieval"),
        _retrieval(fused["retrieval"]),
        "<h2>Selection</h2>",
        _selection(fused["selection"], summary),
        figure(plots, "selection"),
        "<h2>Latency</h2>",
        figure(plots, "latency"),
        _latency(fused["latency"]),
        "<h2>Receipts and hostile questions</h2>",
        _rest(summary, fused),
        *_arms(summary, plots),
        "<h2>Misses</h2>",
        _misses(rows, texts),
    ]
    return write_page(folder / PAGE, "search-router benchmark", body)


def _place_line(place: Mapping[str, Any]) -> str:
    code, machine = place["code"], place["machine"]
    commit = f"{(code['commit'] or 'no checkout')[:12]} {code['branch'] or ''}{' with changes' if code['dirty'] else ''}"
    suite = f"suite {place['suite']['name']} {place['suite']['version']} ({place['suite']['manifest']})"
    config = f"{place['config']['version']} {place['config']['hash'][:12]}{' with patience' if place.get('patient') else ''}"
    machine_said = f"{machine['processor']}, {machine['cpus']} CPUs, load {machine['load_1m']}"
    return escape(f"{place['started']} · {commit} · {config} · {suite} · {machine_said} · Python {place['python']}")


def _verdict(summary: Mapping[str, Any]) -> str:
    failed: Sequence[str] = summary["failed"]
    if not failed:
        return '<p class="verdict good">The run is sound: every answer has its receipt and every arm saw the same code.</p>'
    return "".join(f'<p class="verdict bad">Not usable: {escape(reason)}</p>' for reason in failed)


def _tiles(summary: Mapping[str, Any], fused: Mapping[str, Any]) -> str:
    retrieval, selection = fused["retrieval"]["all"], fused["selection"]["all"]
    hostile = fused["hostile"]
    shown = (
        ("NDCG@10", f"{retrieval['ndcg10']:.3f}"),
        ("MRR@10", f"{retrieval['mrr10']:.3f}"),
        ("Recall@10", f"{retrieval['recall10']:.3f}"),
        ("selection F1 micro", f"{selection['f1_micro']:.3f}"),
        ("selection F1 macro", f"{selection['f1_macro']:.3f}"),
        ("p50 / p95 ms", f"{fused['latency']['warm']['p50']:.0f} / {fused['latency']['warm']['p95']:.0f}"),
        ("receipts", f"{100 * summary['emission']['share']:.1f} %"),
        ("hostile handled", f"{hostile['handled']} / {hostile['questions']}"),
    )
    return '<div class="tiles">' + "".join(f'<div class="tile"><b>{value}</b>{name}</div>' for name, value in shown) + "</div>"


def _retrieval(figures: Mapping[str, Any]) -> str:
    groups = [*figures["by_class"].items(), *figures["by_half"].items(), *figures["by_source"].items(), ("all", figures["all"])]
    rows = [[name, g["questions"], g["ndcg10"], g["mrr10"], g["recall10"]] for name, g in groups]
    said = f"{figures['items']} items, {figures['unmapped']} of them of no file of the suite, {figures['commits']} commits."
    return table(("questions by class, half and source", "n", "NDCG@10", "MRR@10", "Recall@10"), rows) + f"<p>{said}</p>"


def _selection(figures: Mapping[str, Any], summary: Mapping[str, Any]) -> str:
    keys = ("questions", "precision_micro", "recall_micro", "f1_micro", "f1_macro", "exact")
    groups = [("all", figures["all"]), *figures["by_half"].items(), *figures["by_class"].items()]
    groups += [("one expert alone", figures["sole"])] if figures["sole"] else []
    listed = table(("fired against gold", *keys), [[name, *(g[key] for key in keys)] for name, g in groups])
    said = [f"class recognised: {', '.join(f'{half} {share:.3f}' for half, share in figures['recognised'].items())}"]
    if "oracle_gap_ndcg10" in summary:
        said.append(f"oracle gap of the best single expert: {summary['oracle_gap_ndcg10']:.4f} NDCG@10")
    if "rotation" in summary:
        r = summary["rotation"]
        said.append(f"experts declared in another order: {r['other_results']} of {r['questions']} answers differ")
    return listed + f"<p>{escape('; '.join(said))}.</p>"


def _latency(figures: Mapping[str, Any]) -> str:
    rows: list[list[Cell]] = [["request, warm", *_three(figures["warm"]), figures["budget_ms"]]]
    rows += [[f"request, {name}", *_three(figures[name]), figures["budget_ms"]] for name in ("cold", "cached") if figures[name]["n"]]
    rows += [[f"request, {name}", *_three(row), figures["budget_ms"]] for name, row in figures["by_class"].items()]
    rows += [[name, *_three(row), row["cap_ms"]] for name, row in figures["experts"].items()]
    said = ", ".join(f"{name} × {count}" for name, count in figures["breaches"].items()) or "none"
    cached = "" if figures["cached"]["n"] else " No answer came from the cache."
    note = f"<p>Breaches of the budget: {escape(said)}. Ready after {figures['ready_ms'] / 1000:.1f} s.{cached}</p>"
    return table(("ms", "n", "p50", "p95", "p99", "budget"), rows) + note


def _three(row: Mapping[str, Any]) -> list[Cell]:
    return [row["n"], *(row.get(key) for key in ("p50", "p95", "p99"))]


def _rest(summary: Mapping[str, Any], fused: Mapping[str, Any]) -> str:
    emission, hostile = summary["emission"], fused["hostile"]
    rows = [["answers with their receipt in the store", f"{emission['found']} / {emission['answers']}"]]
    rows += [[f"{kind} questions handled", hostile["by_kind"][kind]] for kind in ADVERSARIAL]
    rows += [[f"error: {name}", count] for name, count in fused["errors"].items()]
    return table(("", ""), rows)


def _arms(summary: Mapping[str, Any], plots: Mapping[str, Plot]) -> list[str]:
    arms: Mapping[str, Any] = summary["arms"]
    if len(arms) == 1:
        return []
    rows = [
        [
            name,
            arm["retrieval"]["all"]["ndcg10"],
            *(arm["retrieval"]["by_class"].get(kind, {}).get("ndcg10") for kind in CLASSES),
            arm["selection"]["all"]["f1_micro"],
            arm["latency"]["warm"].get("p50"),
            arm["latency"]["warm"].get("p95"),
        ]
        for name, arm in arms.items()
    ]
    missing: Sequence[str] = summary.get("not_in_time", ())
    said = f"<p>Not asked, for want of time: {escape(', '.join(missing))}.</p>" if missing else ""
    listed = table(("NDCG@10", "all", *CLASSES, "F1", "p50", "p95"), rows)
    return ["<h2>Arms</h2>", figure(plots, "arms"), figure(plots, "k"), listed, said]


def _misses(rows: Sequence[Row], texts: Mapping[str, str]) -> str:
    worst = sorted((row for row in rows if row.get("ndcg", 1.0) < 0.5), key=lambda row: (row["ndcg"], row["id"]))[:MISSES]
    lines = [[row["id"], texts[row["id"]][:160], f"{row['ndcg']:.2f}", str(row["intent"]), ", ".join(row["results"][:3])] for row in worst]
    return table(("question", "text", "NDCG@10", "taken for", "first results"), lines, wide=True)
