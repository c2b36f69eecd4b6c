"""The commands of the flywheel: experiments. Like `cli`, they only translate."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import click

from search_router.cli_frame import echo_json, json_option, load_or_die, run_blocking, workspace_options


@click.command()
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
