"""Whole runs over a small suite with the real router, and what the comparison says of sound and of sabotaged ones."""

from __future__ import annotations

import importlib.util
import json
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from search_router.benchmark.ask import environment
from search_router.benchmark.fixture_run import RunOptions, run_suite
from search_router.benchmark.questions import UnusableData
from search_router.benchmark.run_arms import choose_arms, known_arms, patient_flags
from search_router.benchmark.run_compare import compare_runs
from search_router.benchmark.run_receipts import HOME, check_emission
from search_router.benchmark.run_rows import breaches, errors
from search_router.config.loader import load_config
from search_router.receipts.log import log_ids, log_path
from tests.benchmark.small_suite import QUESTIONS, make_suite
from tests.command_line import run_cli

pytestmark = [
    pytest.mark.heavy,
    pytest.mark.skipif(importlib.util.find_spec("scipy") is None, reason="scipy is not installed: the `benchmark` extra"),
    pytest.mark.timeout(300),
]
FEW = tuple(f"experts.{name}.enabled=false" for name in ("python-types", "docs", "callgraph", "semantic"))
"""No expert that starts slowly and has no question here."""
SABOTAGE = ("priors.identifier.grep=0.0", "experts.symbols.enabled=false")


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with `suite`, `built`, and the results `first`, `second` (the same again) and `sabotaged`."""
    folder = tmp_path_factory.mktemp("runs")
    suite, built = make_suite(folder)
    for name, flags in (("first", ()), ("second", ()), ("sabotaged", SABOTAGE)):
        options = RunOptions(str(suite), folder / name, name, flags=(*FEW, *flags), rounds=2, cold=1, built=built, score_with_ranx=False)
        _, summary = run_suite(options)
        assert summary["failed"] == [], summary["failed"]
    return folder


def summary_of(folder: Path) -> dict[str, Any]:
    return json.loads((folder / "summary.json").read_text())


def test_a_run_keeps_the_four_families_apart_and_everything_it_needs(runs: Path) -> None:
    folder = runs / "first"
    summary = summary_of(folder)
    fused = summary["arms"]["fused"]
    assert fused["retrieval"]["all"]["questions"] == len(QUESTIONS) + 1
    assert fused["retrieval"]["by_class"]["identifier"]["ndcg10"] == 1.0
    assert fused["selection"]["all"]["f1_micro"] > 0.9
    assert (fused["latency"]["warm"]["n"], fused["latency"]["cold"]["n"], fused["latency"]["cached"]) == (28, 1, {"n": 0})
    assert fused["hostile"] == {
        "handled": 1,
        "questions": 1,
        "by_kind": {"empty": "1/1", "huge": "0/0", "injection-shaped": "0/0", "non-ascii": "0/0"},
        "mishandled": [],
    }
    assert (summary["emission"]["answers"], summary["emission"]["share"]) == (29, 1.0)
    assert (fused["errors"], fused["unstable"]) == ({}, [])
    place = json.loads((folder / "place.json").read_text())
    assert place["run_name"] == "first" and place["config"]["version"].startswith("search-router@")
    assert place["suite"]["corpus"] and place["machine"]["cpus"] and "load_1m" in place["machine"]


def test_the_page_is_whole_and_names_no_address(runs: Path) -> None:
    page = (runs / "first" / "report.html").read_text()
    assert "The run is sound" in page and "<script" not in page and "src=" not in page
    if importlib.util.find_spec("matplotlib") is not None:
        assert page.count("<svg") == 3
        assert (runs / "first/plots/retrieval.png").read_bytes().startswith(b"\x89PNG")


def quiet(folder: Path) -> None:
    """Times of the run as they would be on a machine with nothing else to do: the gate on latency is tested apart."""
    change_rows(folder, lambda row: row | {"ms": [10.0 + len(row["id"])] * 2})


def change_rows(folder: Path, change: Callable[[dict[str, Any]], dict[str, Any]]) -> None:
    path = folder / "rows" / "fused.jsonl"
    path.write_text("".join(json.dumps(change(json.loads(line))) + "\n" for line in path.read_text().splitlines()))


@pytest.fixture
def copies(runs: Path, tmp_path: Path) -> Path:
    for name in ("first", "second", "sabotaged"):
        shutil.copytree(runs / name, tmp_path / name)
        quiet(tmp_path / name)
    return tmp_path


def test_two_identical_runs_pass(copies: Path) -> None:
    found = compare_runs(copies / "first", copies / "second")
    assert found.reasons == []
    assert all(difference.mean == 0 for difference, _ in found.ndcg.values())


def test_a_prior_of_0_and_an_expert_that_is_gone_fail_for_what_they_cost(copies: Path) -> None:
    reasons = compare_runs(copies / "first", copies / "sabotaged").reasons
    assert any(reason.startswith("ndcg: NDCG@10 of identifier questions dropped significantly") for reason in reasons), reasons
    assert any(reason.startswith("selection: f1_micro fell") for reason in reasons), reasons
    assert not any(reason.startswith(("receipts", "latency")) for reason in reasons)


def test_a_deleted_receipt_fails(copies: Path) -> None:
    paths = load_config(roots=[copies], environ=environment(copies / "second" / HOME)).paths
    (log,) = log_ids(paths.receipts)
    with sqlite3.connect(log_path(paths.receipts, log)) as connection:
        connection.execute("DELETE FROM receipts WHERE seq = (SELECT max(seq) FROM receipts)")
    connection.close()
    assert check_emission(copies / "second")["missing"] == 1
    reasons = compare_runs(copies / "first", copies / "second").reasons
    assert [reason.partition(":")[0] for reason in reasons] == ["receipts"]
    assert "28 of 29" in reasons[0]


@pytest.mark.parametrize(("factor", "gates"), [(1.05, []), (1.2, ["p95"]), (1.25, ["p95", "p99"])])
def test_added_latency_fails_beyond_the_limits(copies: Path, factor: float, gates: list[str]) -> None:
    change_rows(copies / "second", lambda row: row | {"ms": [ms * factor for ms in row["ms"]]})
    reasons = compare_runs(copies / "first", copies / "second").reasons
    assert [reason.split()[1] for reason in reasons] == gates
    assert all(reason.startswith("latency") for reason in reasons)


def test_one_slow_question_is_noise_and_no_reason(copies: Path) -> None:
    change_rows(copies / "second", lambda row: row | {"ms": [90.0] * 2} if row["id"] == "conceptual-0" else row)
    assert compare_runs(copies / "first", copies / "second").reasons == []


def test_an_error_of_the_router_fails(copies: Path) -> None:
    path = copies / "second/summary.json"
    summary = json.loads(path.read_text())
    summary["arms"]["fused"]["errors"] = {"crashed grep": 2}
    path.write_text(json.dumps(summary))
    assert compare_runs(copies / "first", copies / "second").reasons == ["errors: crashed grep × 2"]


def test_runs_over_different_suites_are_not_compared(copies: Path) -> None:
    path = copies / "second/summary.json"
    path.write_text(path.read_text().replace(summary_of(copies / "first")["place"]["suite"]["corpus"], "0" * 64))
    with pytest.raises(UnusableData, match="different suites"):
        compare_runs(copies / "first", copies / "second")


def test_a_patient_run_is_not_compared_with_one_that_had_deadlines(copies: Path) -> None:
    path = copies / "second/summary.json"
    path.write_text(json.dumps(summary_of(copies / "second") | {"place": summary_of(copies / "second")["place"] | {"patient": True}}))
    with pytest.raises(UnusableData, match="patient"):
        compare_runs(copies / "first", copies / "second")


def test_an_arm_over_other_commits_asks_nothing(runs: Path, tmp_path: Path) -> None:
    roots = [str(path) for path in sorted((runs / "built/projects").iterdir())]
    arm = {"name": "fused", "flags": FEW, "request": {}, "rotate": 0}
    job = {"roots": roots, "home": str(tmp_path), "config_file": "", "heads": ["0" * 40], "arms": [arm], "rounds": 1, "cold": 0}
    job["questions"] = [["a", {"question": "how are receipts printed"}]]
    command = [sys.executable, "-m", "search_router.benchmark.fixture_ask"]
    ended = subprocess.run(command, input=json.dumps(job), capture_output=True, text=True, check=False)
    assert ended.returncode == 1 and "other commits than the suite's" in ended.stderr
    assert ended.stdout == ""


def test_the_command_says_why_and_ends_with_1(copies: Path) -> None:
    ended = run_cli(copies, "bench", "compare", str(copies / "first"), str(copies / "sabotaged"))
    assert ended.code == 1
    assert b"FAILED selection: f1_micro fell" in ended.stdout
    assert run_cli(copies, "bench", "compare", str(copies / "first"), str(copies / "second"), "--json").json["passed"] is True


def test_a_folder_with_something_in_it_is_not_written_to(runs: Path) -> None:
    with pytest.raises(UnusableData, match="has something in it"):
        run_suite(RunOptions(str(runs / "suite"), runs / "first", built=runs / "built"))


def test_every_arm_is_made_from_the_configuration(tmp_path: Path) -> None:
    config = load_config(roots=[tmp_path], environ={"SEARCH_ROUTER_HOME": str(tmp_path / "home")}).config
    arms = known_arms(config)
    for name in ("fused", "hinted", "scoped", "grep alone", "no-fusion", "no-priors", "no-boosts", "rotated", "k=20", "k=100"):
        assert name in arms
    assert "experts.grep.cap_ms=60000" in patient_flags(config)
    load_config(roots=[tmp_path], environ={"SEARCH_ROUTER_HOME": str(tmp_path / "home")}, flags=patient_flags(config))
    for arm in arms.values():
        load_config(roots=[tmp_path], environ={"SEARCH_ROUTER_HOME": str(tmp_path / "home")}, flags=arm.flags)
    assert [arm.name for arm in choose_arms(["k=20"], config)] == ["fused", "k=20"]
    with pytest.raises(UnusableData, match="no arm 'fast'"):
        choose_arms(["fast"], config)


def asked(**given: Any) -> dict[str, Any]:
    answer = {"status": "answered", "error": None, "budget": {"used_ms": 10, "latency_ms": 3000}, "experts": [], **given}
    return {"answer": answer, "ms": 1.0, "cpu_ms": 1.0}


def test_breaches_and_errors_are_told_apart() -> None:
    ready = {"caps_ms": {"grep": 100, "docs": 100}}
    experts = [
        {"id": "grep", "status": "ok", "latency_us": 151_000},
        {"id": "docs", "status": "timeout", "latency_us": 100_000},
        {"id": "scip", "status": "skipped", "latency_us": 0},
        {"id": "symbols", "status": "internal", "latency_us": 1},
    ]
    rounds = [asked(experts=experts, budget={"used_ms": 3001, "latency_ms": 3000})]
    assert breaches(rounds, ready) == ["over-cap grep", "timeout docs", "over-budget request"]
    question = next(q for q in _questions() if not q.adversarial)
    assert errors(question, rounds) == ["internal symbols"]
    refused = asked(status="declined", error={"code": "no-expert"})
    assert errors(question, [refused]) == ["declined no-expert"]
    assert errors(next(q for q in _questions() if q.adversarial), [refused]) == []


def _questions() -> Any:
    from search_router.benchmark.fixture_manifest import PACKAGED
    from search_router.benchmark.fixture_suite import read_fixture_questions

    return read_fixture_questions(PACKAGED / "queries.jsonl")
