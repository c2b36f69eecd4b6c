"""The commands that make MCP clients start search-router, and stop: install, uninstall; and the shell's completions."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from search_router.cli_frame import echo_json, json_option, run_blocking
from search_router.errors import ClientFileError

if TYPE_CHECKING:
    from search_router.clients.catalog import Client, Surroundings
    from search_router.clients.setup import Outcome

REFUSED_EXIT = 2
IDS = ("claude-code", "claude-desktop", "cursor", "vscode", "codex", "gemini-cli", "windsurf", "zed", "opencode")


def _options(command: Callable[..., Any]) -> Callable[..., Any]:
    """What install and uninstall share."""
    for option in (
        click.option("--dry-run", is_flag=True, help="Show what would change, and change nothing."),
        click.option("--force", is_flag=True, help="Also an entry that was edited since, or that install did not write."),
        click.option("--project", type=click.Path(path_type=Path, file_okay=False, exists=True), help="The project of --scope project."),
        click.option("--scope", type=click.Choice(["user", "project"]), default="user", show_default=True, help="Whose configuration."),
        click.option("--all", "every", is_flag=True, help="Every client that is on this machine."),
        click.argument("clients", nargs=-1, type=click.Choice(IDS), metavar="[CLIENT]..."),
        json_option,
    ):
        command = option(command)
    return command


@click.command(short_help="Have MCP clients start search-router.")
@click.option(
    "--root", "roots", multiple=True, type=click.Path(path_type=Path, file_okay=False), help="Search this instead of the open project."
)
@click.option("--env", "variables", multiple=True, metavar="NAME", help="Hand this variable on, by name; its value is never written.")
@_options
def install(clients: Sequence[str], roots: Sequence[Path], variables: Sequence[str], as_json: bool, **options: Any) -> None:
    """Have MCP clients start search-router: CLIENT is claude-code, claude-desktop, cursor, vscode, codex, gemini-cli, windsurf, zed or
    opencode. Without one, tell which are here. A copy of each changed file is left beside it.
    """
    from search_router.clients.launch import Running, find_command
    from search_router.clients.setup import install as install_one

    command = find_command(Running(sys.argv[0], sys.executable, sys.prefix, os.environ))
    _work(install_one, clients, as_json, options, command=command, roots=roots, variables=variables)


@click.command(short_help="Take away what install wrote.")
@_options
def uninstall(clients: Sequence[str], as_json: bool, **options: Any) -> None:
    """Take away what install wrote into the configuration of CLIENT, and nothing else."""
    from search_router.clients.setup import uninstall as uninstall_one

    _work(uninstall_one, clients, as_json, options, command=())


def _work(work: Callable[..., Outcome], names: Sequence[str], as_json: bool, options: dict[str, Any], **order: Any) -> None:
    from search_router.clients.catalog import BY_ID, CLIENTS, Scope, Surroundings
    from search_router.clients.setup import Order
    from search_router.config.state import find_home

    here = Surroundings(sys.platform, Path.home(), (options["project"] or Path.cwd()).resolve(), os.environ)
    if not names and not options["every"]:
        _tell_clients(here, as_json)
        return
    present = [c for c in CLIENTS if c.evidence(here) and (c.project is not None or options["scope"] == Scope.USER)]
    chosen = [BY_ID[name] for name in dict.fromkeys(names)] if names else present
    wanted = Order(Scope(options["scope"]), dry_run=options["dry_run"], force=options["force"], **order)
    home = run_blocking(lambda: find_home(os.environ))
    rows: list[dict[str, Any]] = []
    for client in chosen:
        try:
            outcome = work(client, wanted, here, home)
        except ClientFileError as error:
            rows.append(
                {"client": client.id, "scope": wanted.scope.value, "action": "refused", "error": error.message, "remedy": error.remedy}
            )
        else:
            rows.append(_row(outcome))
        if not as_json:
            _say(client, rows[-1], wanted.dry_run)
    if as_json:
        echo_json({"dry_run": wanted.dry_run, "clients": rows})
    elif not chosen:
        click.echo("No client was found on this machine; name one to write its configuration all the same.")
    sys.exit(REFUSED_EXIT if any(row["action"] == "refused" for row in rows) else 0)


def _row(outcome: Outcome) -> dict[str, Any]:
    return {
        "client": outcome.client,
        "scope": outcome.scope.value,
        "action": outcome.action.value,
        "file": str(outcome.path),
        "backup": str(outcome.backup) if outcome.backup else None,
        "diff": outcome.diff,
        "note": outcome.note,
    }


def _say(client: Client, row: dict[str, Any], dry_run: bool) -> None:
    from search_router.wire_text import visible, visible_line

    if row["action"] == "refused":
        click.echo(f"{client.title}: refused: {visible_line(row['error'])} {row['remedy']}", err=True)
        return
    would = "would be " if dry_run and row["diff"] else ""
    click.echo(f"{client.title}: {would}{row['action']} ({visible_line(row['file'])})")
    if dry_run and row["diff"]:
        click.echo(visible(row["diff"]))
    if row["backup"]:
        click.echo(f"  what was there: {visible_line(row['backup'])}")
    if row["note"] and not dry_run:
        click.echo(f"  {row['note']}")


def _tell_clients(here: Surroundings, as_json: bool) -> None:
    from search_router import terminal
    from search_router.clients.catalog import CLIENTS

    found = [(client, client.evidence(here)) for client in CLIENTS]
    if as_json:
        echo_json([{"client": c.id, "title": c.title, "found": bool(seen), "seen": seen, "file": str(c.user(here))} for c, seen in found])
        return
    rows = ((c.id, c.title, seen or "not found", str(c.user(here))) for c, seen in found)
    terminal.print_rows(terminal.make_console(), ("client", "what", "on this machine", "its file"), rows)


@click.command(short_help="Print the completion script of SHELL.")
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def completion(shell: str) -> None:
    """Print the completion script of SHELL: for bash, put `eval "$(search-router completion bash)"` into ~/.bashrc."""
    from click.shell_completion import get_completion_class

    made = get_completion_class(shell)
    command = click.get_current_context().find_root().command
    if made is None:
        raise click.UsageError(f"There is no completion for {shell}.")
    click.echo(made(command, {}, "search-router", "_SEARCH_ROUTER_COMPLETE").source())
