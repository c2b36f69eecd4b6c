"""The commands of the flywheel: experiments, outcome, replay, tune. Like `cli`, they only translate."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from search_router.answers import ReplayAnswer
from search_router.cli_frame import EXITS, echo_json, json_option, load_or_die, run, run_blocking, workspace_options

COMMAND_LINE = "command-line"
"""The session of outcomes that are told on the command line, whose every call is a process of its own."""


@click.command(short_help="What the benchmark events add up to.")
@click.option("--paper-slug", help="The experiment; default: the configured one.")
@workspace_options
@json_option
def experiments(paper_slug: str | None, roots: Sequence[Path], flags: Sequence[str], as_json: bool) -> None:
    """What the benchmark events of this state directory add up to: arms, classes of questions, configurations."""
    from search_router import terminal
    from search_router.router.enrich.database import FILE_NAME
    from search_router.router.enrich.enrichment import read_experiment_file

    loaded = load_or_die(roots, flags)
    slug = paper_slug or loaded.config.enrich.paper_slug
    answer = run_blocking(lambda: read_experiment_file(loaded.paths.home / FILE_NAME, slug))
    if as_json:
        echo_json(answer.model_dump(mode="json"))
        return
    click.echo(
        f"{answer.paper_slug}: {answer.requests} requests, {answer.calls} expert calls, {answer.cached} from the cache, {answer.runs} runs"
    )
    for note in answer.notes:
        click.echo(f"note: {note}")
    console = terminal.make_console()
    rows = ((a.arm, str(a.events), str(a.hits), str(a.misses), str(a.answered), f"{a.p50_ms:.1f}", f"{a.p95_ms:.1f}") for a in answer.arms)
    terminal.print_rows(console, ("arm", "events", "hits", "misses", "answered", "p50 ms", "p95 ms"), rows)
    classes = ((c.task_class, str(c.requests), str(c.calls), str(c.hits), str(c.cached)) for c in answer.task_classes)
    terminal.print_rows(console, ("class", "requests", "calls", "hits", "cached"), classes)


@click.command(short_help="Tell what became of an answer.")
@click.argument("receipt")
@click.argument("outcome", type=click.Choice(["success", "partial", "failure"]))
@click.argument("evidence", nargs=-1)
@workspace_options
@json_option
def outcome(receipt: str, outcome: str, evidence: Sequence[str], roots: Sequence[Path], flags: Sequence[str], as_json: bool) -> None:
    """Tell what became of an answer: its RECEIPT, the OUTCOME, and the ids of the EVIDENCE that was used."""

    async def work() -> int:
        from search_router.router.opening import open_router

        async with open_router(roots=roots, flags=flags) as router:
            raw = {"receipt": receipt, "outcome": outcome, "evidence": list(evidence)}
            answer = await router.report_outcome(raw, session=COMMAND_LINE, principal="local", owns=True)
            text = router.render_outcome(answer)
        echo_json(answer.model_dump(mode="json")) if as_json else click.echo(text)
        return EXITS[answer.status]

    sys.exit(run(work))


@click.command(short_help="Ask again what a receipt answered, and compare.")
@click.argument("receipt")
@click.option("--question", help="What was asked; needed where neither the receipt nor the state directory kept it.")
@workspace_options
@json_option
def replay(receipt: str, question: str | None, roots: Sequence[Path], flags: Sequence[str], as_json: bool) -> None:
    """Ask again, without cache and hints, what RECEIPT answered: what differs, and why. Exit code 1 when something differs."""

    async def work() -> int:
        from search_router.router.opening import open_router

        async with open_router(roots=roots, flags=flags) as router:
            await router.catch_up()  # a part of the index would answer otherwise
            answer = await router.replay(receipt, question, principal="local")
        echo_json(answer.model_dump(mode="json")) if as_json else _print_replay(answer)
        return 0 if answer.same else 1

    sys.exit(run(work))


def _print_replay(answer: ReplayAnswer) -> None:
    click.echo(
        f"receipt {answer.replayed}: {'the same' if answer.same else 'differs'} ({answer.status_then} then, {answer.status_now} now)"
    )
    for name, experts in (("asked then, not now", answer.only_then), ("asked now, not then", answer.only_now)):
        if experts:
            click.echo(f"{name}: {', '.join(experts)}")
    for item in answer.items:
        if item.change or item.then != item.now:
            click.echo(f"{item.then or '–'} → {item.now or '–'}  {item.id}  {item.change or 'moved'}")
    for reason in answer.reasons:
        click.echo(f"why: {reason}")
    if answer.receipt is not None:
        click.echo(f"receipt {answer.receipt.id}")


@click.command(short_help="Priors made of what was used.")
@click.option("--dry-run", is_flag=True, help="Write nothing: print the results and the difference.")
@click.option(
    "--qrels", type=click.Path(path_type=Path, exists=True, dir_okay=False), help="Judgements: `RECEIPT 0 EVIDENCE GRADE` a line."
)
@click.option("--unchecked", is_flag=True, help="Write also where the fixtures are not built, so that nobody can tell whether it is worse.")
@click.option("--apply", "in_place", is_flag=True, help="Put the written file in place of the user's, which is kept.")
@workspace_options
@json_option
def tune(
    dry_run: bool, qrels: Path | None, unchecked: bool, in_place: bool, roots: Sequence[Path], flags: Sequence[str], as_json: bool
) -> None:
    """Priors from what was used, in a new version of the user's configuration.

    Verifies every receipt first. Exit code: 0 written, shown, or nothing to change · 1 receipts that are not valid · 2 refused, such as
    worse on the fixtures · 3 receipts that cannot be checked.
    """
    from search_router.router.enrich.logged import LogsRefused
    from search_router.router.enrich.tuner import Tuner

    tuner = Tuner(load_or_die(roots, flags))

    def work() -> int:
        from search_router.benchmark.tuned_check import check_on_fixtures

        try:
            found = tuner.find(qrels)
        except LogsRefused as error:
            click.echo(f"search-router: {error.code}: {error}", err=True)
            return error.exit_code
        written = None if dry_run or found.file is None else tuner.write(found, check_on_fixtures, unchecked=unchecked, in_place=in_place)
        echo_json(found.as_json(written)) if as_json else _print_tuned(found, written)
        return 0

    sys.exit(run_blocking(work))


def _print_tuned(found: Any, written: Any) -> None:
    for line in found.lines():
        click.echo(line)
    if written is not None:
        for line in written.lines():
            click.echo(line)
    elif found.file is not None:
        click.echo(found.file.difference(), nl=False)
