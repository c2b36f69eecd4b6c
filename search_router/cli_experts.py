"""The commands about experts that are other systems: list the presets, write one into the configuration, try one out."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path

import click

from search_router.cli_frame import CONFIG_EXIT, UNANSWERED_EXIT, echo_json, json_option, run, workspace_options
from search_router.errors import SearchRouterError


@click.group(invoke_without_command=True, short_help="Experts, their health, and the projects they search.")
@workspace_options
@json_option
@click.pass_context
def experts(context: click.Context, roots: Sequence[Path], flags: Sequence[str], as_json: bool) -> None:
    """Experts, their health, and the projects they search; with a command: search systems that you already run, as experts."""
    if context.invoked_subcommand is not None:
        return

    async def work() -> None:
        from search_router import terminal
        from search_router.router.opening import open_router

        async with open_router(roots=roots, flags=flags) as router:
            answer = await router.registry()
        if as_json:
            echo_json(answer.model_dump(mode="json", by_alias=True))
        else:
            terminal.print_registry(terminal.make_console(), answer)

    run(work)


@experts.command("presets")
@json_option
def list_presets(as_json: bool) -> None:
    """The systems that there are settings for."""
    from search_router import terminal
    from search_router.adapters.remote.presets import load_preset, preset_names

    found = [load_preset(name) for name in preset_names()]
    if as_json:
        echo_json([{"name": p.name, "summary": p.summary, "seen": p.seen, "experts": list(p.experts)} for p in found])
        return
    rows = ((p.name, ", ".join(p.experts), p.summary) for p in found)
    terminal.print_rows(terminal.make_console(), ("preset", "experts", "what"), rows)


@experts.command("add")
@click.argument("name")
@click.option("--off", is_flag=True, help="Write the block switched off; a project's file may then switch it on.")
@click.option("--project", is_flag=True, help="Off in your own file, on in this project's .search-router.toml.")
@click.option("--probe/--no-probe", default=True, show_default=True, help="Ask it one question afterwards.")
@click.option("--question", help="What to ask; default: a name that this project has.")
@workspace_options
def add_expert(name: str, off: bool, project: bool, probe: bool, question: str | None, roots: Sequence[Path], flags: Sequence[str]) -> None:
    """Write the settings of the system NAME into your configuration, look for its program and variables, and try it.

    What an expert runs is never taken from a project's own file: it comes with the repository. Exit code 3 when it did not answer.
    """
    from search_router.expert_setup import ExistsAlready, UnknownPreset, add_preset, look_around

    try:
        added = add_preset(name, roots=roots, environ=os.environ, enabled=not (off or project), in_project=project)
    except (UnknownPreset, ExistsAlready) as error:
        raise click.UsageError(str(error)) from error
    except SearchRouterError as error:
        click.echo(f"search-router: {error.code}: {error}", err=True)
        sys.exit(CONFIG_EXIT)
    for line in (*added.said, *look_around(added.preset, os.environ)):
        click.echo(line)
    if probe and not off:
        sys.exit(0 if _probe(tuple(added.preset.experts), question, roots, flags) else UNANSWERED_EXIT)


@experts.command("probe")
@click.argument("ids", nargs=-1, required=True)
@click.option("--question", help="What to ask; default: a name that this project has.")
@workspace_options
def probe_experts(ids: Sequence[str], question: str | None, roots: Sequence[Path], flags: Sequence[str]) -> None:
    """Ask each of the experts IDS one question, with time to start, and say what came back. Exit code 3 when one did not answer."""
    sys.exit(0 if _probe(ids, question, roots, flags) else UNANSWERED_EXIT)


def _probe(ids: Sequence[str], question: str | None, roots: Sequence[Path], flags: Sequence[str]) -> bool:
    from search_router.expert_setup import probe_all

    results = run(lambda: probe_all(ids, question, roots, flags))
    for result in results:
        click.echo(str(result))
    return all(result.ok for result in results)
