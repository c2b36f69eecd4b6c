"""A run over a suite: build the code, ask every question of every arm in a process of its own, judge, summarise, keep everything in a
folder.

The folder has place.json (commit, machine, versions), summary.json, rows/ARM.jsonl, answers/ARM.jsonl.gz (what the client got), home/ (the
receipts) and report.html. `bench compare` needs nothing else.
"""

from __future__ import annotations

import gzip
import json
import re
import shutil
import subprocess
import sys
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from search_router.benchmark.ask import environment
from search_router.benchmark.fixture_build import build_suite, check_corpus, default_place, head_of
from search_router.benchmark.fixture_manifest import suite_folder
from search_router.benchmark.fixture_suite import FixtureQuestion, Suite, load_suite
from search_router.benchmark.graded import Judged
from search_router.benchmark.metrics import score_graded, scorer_name
from search_router.benchmark.questions import UnusableData
from search_router.benchmark.report import write_line, write_table
from search_router.benchmark.run_arms import ALONE, FUSED, RunArm, choose_arms, patient_flags
from search_router.benchmark.run_bounds import ArmTime, draw_questions
from search_router.benchmark.run_place import describe_place
from search_router.benchmark.run_receipts import ANSWERS, HOME, check_emission
from search_router.benchmark.run_report import PAGE, write_report
from search_router.benchmark.run_rows import Row, file_name, make_row
from search_router.benchmark.run_summary import summarise_arm
from search_router.benchmark.selection import oracle_gap
from search_router.config.loader import load_config

NO_MEMORY: Final = ("cache.positive_seconds=0", "cache.negative_seconds=0", "enrich.hints=false")
"""Every question is answered anew, by everybody that the gate picks."""
ERROR_KEPT: Final = 2000


@dataclass(frozen=True, slots=True)
class RunOptions:
    """What is asked for. `built` is where the suite's code is or will be; `only` keeps questions whose id begins with one of its texts."""

    suite: str = "fixtures"
    out: Path | None = None
    run_name: str = ""
    config_file: Path | None = None
    arms: tuple[str, ...] = ()
    flags: tuple[str, ...] = ()
    rounds: int = 3
    cold: int = 6
    built: Path | None = None
    only: tuple[str, ...] = ()
    questions: int | None = None
    """How many scored questions are drawn; None asks all."""
    minutes: float | None = None
    """Time for all arms. `fused` is always asked; an arm that would probably end later is named and has no figures."""
    patient: bool = False
    """Whether everybody has a minute: ranking and selection are then those of a quiet machine, and times say nothing about budgets."""
    cache: bool = False
    """Whether answers may come from the cache and hints may leave experts out, as they would for people."""
    score_with_ranx: bool = True
    """Whether ranx, where it is installed, has to agree; it compiles itself for up to minutes when it is first used."""


@dataclass(slots=True)
class _Asked:
    """What the process said of one arm."""

    ready: dict[str, Any] = field(default_factory=dict[str, Any])
    cold_ms: list[float] = field(default_factory=list[float])
    rounds: dict[str, list[dict[str, Any]]] = field(default_factory=lambda: defaultdict(list))


def run_suite(options: RunOptions) -> tuple[Path, dict[str, Any]]:
    """(the result folder, the summary). The summary's `failed` says why the run is no good; empty means that it is.

    Raises:
        UnusableData, StaleLabel, ConfigError
    """
    folder = suite_folder(options.suite)
    place = options.built or default_place(folder)
    suite = load_suite(folder, build_suite(folder, place))
    corpus = check_corpus(place)
    out = _result_folder(options)
    config_file = options.config_file.resolve() if options.config_file else None
    sidecar = describe_place(suite, corpus, options.run_name, options.flags, config_file) | {"patient": options.patient}
    arms = _arms(options, suite, out, config_file)
    questions = draw_questions([q for q in suite.questions if not options.only or q.id.startswith(options.only)], options.questions)
    summaries: dict[str, Any] = {}
    every: dict[str, list[Row]] = {}
    not_in_time: list[str] = []
    time_left = ArmTime(options.minutes)
    for arm in arms:
        seconds = time_left.seconds_for_next()
        asked = None if seconds is None else _ask(options, suite, arm, [(q.id, _request(suite, arm, q)) for q in questions], out, seconds)
        if asked is None:
            not_in_time.append(arm.name)
            continue
        every[arm.name] = [make_row(q, suite.labels.get(q.id, ()), asked.rounds[q.id], asked.ready) for q in questions]
        _write_rows(out / "rows" / f"{file_name(arm.name)}.jsonl", every[arm.name])
        summaries[arm.name] = summarise_arm(every[arm.name], asked.ready, asked.cold_ms) | {"parity": _parity(asked.ready)}
    if options.score_with_ranx:
        scored = [row for row in every[FUSED] if "gains" in row]
        score_graded({row["id"]: Judged(tuple(row["gains"]), tuple(row["grades"]), tuple(row["met"])) for row in scored})
    shutil.rmtree(out / HOME / "state" / "cache", ignore_errors=True)
    summary = {
        "place": sidecar | {"config": summaries[FUSED]["config"]},
        "corpus_unchanged": check_corpus(place) == corpus,
        "arms": summaries,
        **_across(every),
        "not_in_time": not_in_time,
        "emission": check_emission(out),
        "scorer": scorer_name(),
    }
    summary["failed"] = _faults(summary)
    (out / "place.json").write_text(json.dumps(summary["place"], indent=1), "utf-8")
    (out / "summary.json").write_text(json.dumps(summary, indent=1), "utf-8")
    write_report(out, summary, every[FUSED], suite.questions)
    return out, summary


def _flags(options: RunOptions, arm: RunArm | None = None) -> tuple[str, ...]:
    """Flags of every arm, the caller's last; with an arm also the experiment that the router's own benchmark events count for."""
    alone = () if options.cache else NO_MEMORY
    name = re.sub(r"[^a-z0-9._-]+", "-", f"bench-{options.run_name or 'run'}-{arm.name}".lower())[:100] if arm else ""
    return (*alone, *((f"enrich.paper_slug={name}",) if name else ()), *options.flags)


def _result_folder(options: RunOptions) -> Path:
    """A new folder; never one that has something in it."""
    name = options.run_name or "run"
    out = (options.out or Path("bench-results") / f"{datetime.now(UTC):%Y%m%dT%H%M%SZ}-{file_name(name)}").resolve()
    if out.exists() and any(out.iterdir()):
        raise UnusableData(f"{out} has something in it.", remedy="Name a new folder with --out.")
    for part in ("rows", ANSWERS, HOME):
        (out / part).mkdir(parents=True, exist_ok=True)
    return out


def _arms(options: RunOptions, suite: Suite, out: Path, config_file: Path | None) -> list[RunArm]:
    environ = environment(out / HOME) | ({"SEARCH_ROUTER_CONFIG": str(config_file)} if config_file else {})
    loaded = load_config(roots=suite.roots(), environ=environ, flags=_flags(options))
    patience = patient_flags(loaded.config) if options.patient else ()
    return [arm._replace(flags=(*patience, *arm.flags)) for arm in choose_arms(options.arms, loaded.config)]


def _ask(
    options: RunOptions, suite: Suite, arm: RunArm, questions: Sequence[tuple[str, object]], out: Path, seconds: float
) -> _Asked | None:
    """What the arm answered; None when a run with an end did not leave it the time."""
    job = {
        "roots": [str(root) for root in suite.roots()],
        "home": str(out / HOME),
        "config_file": str(options.config_file.resolve()) if options.config_file else "",
        "heads": sorted(head_of(root) for root in suite.roots()),
        "arms": [arm.job(_flags(options, arm))],
        "questions": questions,
        "rounds": options.rounds,
        "cold": options.cold,
    }
    command = [sys.executable, "-m", "search_router.benchmark.fixture_ask"]
    asked = _Asked()
    try:
        done = subprocess.run(command, input=json.dumps(job).encode(), capture_output=True, timeout=seconds, check=False)
    except subprocess.TimeoutExpired as error:
        if options.minutes is not None and arm.name != FUSED:
            return None
        raise UnusableData(f"Arm {arm.name} did not end within {seconds:.0f} s.", remedy="Ask fewer questions with --only.") from error
    if done.returncode != 0:
        said = done.stderr.decode("utf-8", "replace")[-ERROR_KEPT:]
        raise UnusableData(f"Arm {arm.name} ended with exit code {done.returncode}: {said}", remedy="Mend that first.")
    with gzip.open(out / ANSWERS / f"{file_name(arm.name)}.jsonl.gz", "wb", compresslevel=3) as log:
        for line in done.stdout.splitlines():
            row = json.loads(line)
            if "answer" in row:
                log.write(json.dumps(row["answer"]).encode() + b"\n")
            if "id" in row:
                asked.rounds[row["id"]].append(row)
            elif "cold_ms" in row:
                asked.cold_ms.append(row["cold_ms"])
            else:
                asked.ready = row
    return asked


def _request(suite: Suite, arm: RunArm, question: FixtureQuestion) -> dict[str, object]:
    """What this arm asks. A question that is for all projects keeps its scope when the arm tells projects."""
    asked = question.request()
    labels = suite.labels.get(question.id, ())
    if arm.tells == "intent" and not question.adversarial:
        asked["intent"] = question.kind
    if arm.tells == "project" and labels and "scope" not in asked and question.kind != "cross-repo-impact":
        asked["scope"] = {"project": labels[0].project}
    return asked


def _parity(ready: Mapping[str, Any]) -> dict[str, Any]:
    """What an arm's experts stood on: projects by commit, and engines by version. Arms of one run must not differ in it."""
    engines = {k: v for k, v in ready["engines"].items() if v["version"]}
    return {"projects": ready["projects"], "engines": engines, "not_whole": ready["not_whole"]}


def _across(every: Mapping[str, Sequence[Row]]) -> dict[str, Any]:
    """What only several arms can say: the oracle gap, and what the order of the experts changes."""
    found: dict[str, Any] = {}
    scored = {arm: {row["id"]: row["ndcg"] for row in rows if "ndcg" in row} for arm, rows in every.items()}
    alone = [values for arm, values in scored.items() if arm.endswith(ALONE)]
    if alone:
        found["oracle_gap_ndcg10"] = round(oracle_gap(scored[FUSED], alone), 4)
    if "rotated" in every:
        pairs = list(zip(every[FUSED], every["rotated"], strict=True))
        found["rotation"] = {
            "questions": len(pairs),
            "other_results": sum(a.get("results") != b.get("results") for a, b in pairs),
            "other_experts": sum(a.get("fired") != b.get("fired") for a, b in pairs),
        }
    return found


def _faults(summary: Mapping[str, Any]) -> list[str]:
    """Why these figures may not be used: a receipt that is not there, code that changed, arms that saw different things."""
    faults: list[str] = []
    emission = summary["emission"]
    if emission["found"] != emission["answers"] or not emission["answers"]:
        faults.append(f"receipts: {emission['found']} of {emission['answers']} answers have theirs: {'; '.join(emission['reasons'])}")
    if not summary["corpus_unchanged"]:
        faults.append("corpus: the code was changed during the run")
    parities = {json.dumps(arm["parity"]["projects"], sort_keys=True) for arm in summary["arms"].values()}
    if len(parities) > 1:
        faults.append("parity: the arms did not search the same commits")
    whole = set(summary["arms"][FUSED]["parity"]["not_whole"])
    for name, arm in summary["arms"].items():
        if set(arm["parity"]["not_whole"]) - whole:
            faults.append(f"parity: {', '.join(arm['parity']['not_whole'])} had no whole index when arm {name} was asked")
    return faults


def print_summary(out: Path, summary: Mapping[str, Any]) -> None:
    """The families of every arm in tables, and where everything is."""
    arms: dict[str, dict[str, Any]] = summary["arms"]
    fused = arms[FUSED]
    keys = ("ndcg10", "mrr10", "recall10", "questions")
    groups = [*fused["retrieval"]["by_class"].items(), *fused["retrieval"]["by_half"].items(), ("all", fused["retrieval"]["all"])]
    write_table(("retrieval", *keys), [[name, *(group[key] for key in keys)] for name, group in groups])
    scores = ("f1_micro", "f1_macro", "precision_micro", "recall_micro", "questions")
    chosen = [("all", fused["selection"]["all"]), *fused["selection"]["by_half"].items()]
    write_table(("selection", *scores), [[name, *(group[key] for key in scores)] for name, group in chosen], "selection")
    warm = fused["latency"]["warm"]
    write_line(
        f"\nwarm: p50 {warm['p50']} ms, p95 {warm['p95']} ms, p99 {warm['p99']} ms; breaches: {fused['latency']['breaches'] or 'none'}"
    )
    if len(arms) > 1:
        write_table(
            ("arm", "NDCG@10", "F1 micro"),
            [[n, a["retrieval"]["all"]["ndcg10"], a["selection"]["all"]["f1_micro"]] for n, a in arms.items()],
            "arms",
        )
    if summary["not_in_time"]:
        write_line(f"not asked, for want of time: {', '.join(summary['not_in_time'])}")
    emission, hostile = summary["emission"], fused["hostile"]
    handled = f"hostile: {hostile['handled']} of {hostile['questions']}; errors: {fused['errors'] or 'none'}"
    write_line(f"receipts: {emission['found']} of {emission['answers']}; {handled}")
    for reason in summary["failed"]:
        write_line(f"FAILED {reason}")
    write_line(f"{out / PAGE}")


def _write_rows(path: Path, rows: Sequence[Row]) -> None:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
