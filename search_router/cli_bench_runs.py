"""`bench fixtures`, `bench run` and `bench compare`: the suite, a run over it, and two runs against each other."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

import click

from search_router.cli_frame import json_option, run_blocking

FILE = click.Path(path_type=Path, exists=True, dir_okay=False)
FOLDER = click.Path(path_type=Path, exists=True, file_okay=False)
PLACE = click.Path(path_type=Path, file_okay=False)
suite_option = click.option("--suite", default="fixtures", show_default=True, help="`fixtures`, or a suite's folder.")
built_option = click.option("--built", type=PLACE, help="Where its code is, or will be; default: below the user's cache.")


@click.group("fixtures")
def fixtures() -> None:
    """The suite of questions with known answers: build its code, make its labels, see how well people agree on them."""


@fixtures.command("build")
@suite_option
@built_option
@click.option("--archives", type=PLACE, help="Keep or find the fetched archives here.")
@json_option
def build_fixtures(suite: str, built: Path | None, archives: Path | None, as_json: bool) -> None:
    """Fetch the pinned archives with pip and npm, and make a git repository of each project. Checks every label against the result."""
    from search_router.benchmark import fixture_build, fixture_manifest, fixture_suite
    from search_router.benchmark.timing import print_result

    def work() -> dict[str, object]:
        folder = fixture_manifest.suite_folder(suite)
        place = built or fixture_build.default_place(folder)
        projects = fixture_build.build_suite(folder, place, archives)
        loaded = fixture_suite.load_suite(folder, projects)
        labels = sum(len(labels) for labels in loaded.labels.values())
        return {
            "projects": str(projects),
            "corpus": fixture_build.check_corpus(place),
            "questions": len(loaded.questions),
            "labels": labels,
        }

    print_result(run_blocking(work), as_json)


@fixtures.command("label")
@suite_option
@built_option
@json_option
def label_fixtures(suite: str, built: Path | None, as_json: bool) -> None:
    """Write queries.jsonl and qrels.tsv anew, from hand.tsv, a typed index and the code. Needs the `typed` extra."""
    from search_router.benchmark import fixture_build, fixture_label, fixture_manifest
    from search_router.benchmark.timing import print_result

    def work() -> dict[str, object]:
        folder = fixture_manifest.suite_folder(suite)
        projects = fixture_build.build_suite(folder, built or fixture_build.default_place(folder))
        questions, labels = fixture_label.label_suite(folder, projects)
        return {"questions": questions, "labels": labels}

    print_result(run_blocking(work), as_json)


@fixtures.command("agreement")
@suite_option
@json_option
def agreement_of_fixtures(suite: str, as_json: bool) -> None:
    """Cohen's kappa of the labels and a second judgement that did not see them, over audit.jsonl."""
    from search_router.benchmark import fixture_audit, fixture_manifest
    from search_router.benchmark.timing import print_result

    print_result(run_blocking(lambda: fixture_audit.agreement(fixture_manifest.suite_folder(suite))), as_json)


@click.command("run")
@suite_option
@built_option
@click.option("--config-file", type=FILE, help="A configuration file in place of the user's, for every arm.")
@click.option("--run-name", default="", metavar="NAME", help="What the run is called in reports.")
@click.option("--arm", "arms", multiple=True, metavar="NAME", help="One more arm beside `fused`; repeatable; `all` is every one.")
@click.option("--out", type=PLACE, help="A new folder for the results; default: below bench-results.")
@click.option("--rounds", type=click.IntRange(1, 100), default=3, show_default=True, help="How often every question is asked.")
@click.option("--cold", type=click.IntRange(0, 100), default=6, show_default=True, help="Questions asked of a router that was just opened.")
@click.option("--only", multiple=True, metavar="PREFIX", help="Only questions whose id begins so; repeatable.")
@click.option("--questions", type=click.IntRange(1), metavar="N", help="Only N scored questions, drawn evenly by class and half.")
@click.option("--minutes", type=click.FloatRange(0, min_open=True), help="Begin no further arm that would probably end later.")
@click.option("--patient", is_flag=True, help="A minute for every expert: ranking as on a quiet machine; times say nothing then.")
@click.option("--cache", is_flag=True, help="Let answers come from the cache and hints leave experts out. Off, so that all is measured.")
@click.option("--set", "flags", multiple=True, metavar="KEY=VALUE", help="Override one configuration value in every arm.")
@json_option
def run_benchmark(
    suite: str,
    built: Path | None,
    config_file: Path | None,
    run_name: str,
    arms: Sequence[str],
    out: Path | None,
    rounds: int,
    cold: int,
    only: Sequence[str],
    questions: int | None,
    minutes: float | None,
    patient: bool,
    cache: bool,
    flags: Sequence[str],
    as_json: bool,
) -> None:
    """Ask a suite's questions; keep figures, answers, receipts and a page. Exit code 1 when a receipt is lost or the run not sound."""
    from search_router.benchmark import fixture_run
    from search_router.benchmark.report import write_json

    options = fixture_run.RunOptions(
        suite=suite,
        out=out,
        run_name=run_name,
        config_file=config_file,
        arms=tuple(arms),
        flags=tuple(flags),
        rounds=rounds,
        cold=cold,
        built=built,
        only=tuple(only),
        questions=questions,
        minutes=minutes,
        patient=patient,
        cache=cache,
    )
    folder, summary = run_blocking(lambda: fixture_run.run_suite(options))
    write_json({"folder": str(folder), **summary}) if as_json else fixture_run.print_summary(folder, summary)
    sys.exit(1 if summary["failed"] else 0)


@click.command("compare")
@click.argument("first", type=FOLDER)
@click.argument("second", type=FOLDER)
@click.option("--arm", default="fused", show_default=True)
@json_option
def compare_benchmarks(first: Path, second: Path, arm: str, as_json: bool) -> None:
    """Gate SECOND against FIRST: ranking, selection, latency, receipts, errors. Exit code 1, with the reasons, when one does not hold."""
    from search_router.benchmark import run_compare
    from search_router.benchmark.report import write_json

    found = run_blocking(lambda: run_compare.compare_runs(first, second, arm))
    write_json(found.as_json()) if as_json else run_compare.print_comparison(found)
    sys.exit(1 if found.reasons else 0)
