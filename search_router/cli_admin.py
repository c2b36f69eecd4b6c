"""The operator's commands: config, doctor. Like `cli`, they only translate."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

import click

from search_router.cli_frame import CONFIG_EXIT, echo_json, json_option, load, load_or_die, run, workspace_options
from search_router.errors import ConfigError


@click.group()
def config() -> None:
    """The effective configuration and where each value comes from."""


@config.command("show")
@workspace_options
@json_option
def show_config(roots: Sequence[Path], flags: Sequence[str], as_json: bool) -> None:
    """Every effective value with the layer, file and line that set it."""
    from search_router import terminal
    from search_router.config.keys import show_value
    from search_router.config.loader import explain

    loaded = load_or_die(roots, flags)
    rows = explain(loaded)
    if as_json:
        values = [{"key": r.key, "value": r.value, "layer": r.layer.value, "source": r.source, "line": r.line} for r in rows]
        echo_json({"version": loaded.version, "hash": loaded.hash, "values": values})
        return
    click.echo(f"{loaded.version} · {loaded.hash}")
    shown = ((r.key, show_value(r.value), r.layer.value, f"{r.source}:{r.line}" if r.line else r.source) for r in rows)
    terminal.print_rows(terminal.make_console(), ("key", "value", "layer", "where"), shown)


@config.command("check")
@workspace_options
@json_option
def check_config(roots: Sequence[Path], flags: Sequence[str], as_json: bool) -> None:
    """Report every mistake of every layer at once. Exit code 5 when there is one."""
    try:
        loaded = load(roots, flags)
    except ConfigError as error:
        if as_json:
            echo_json(
                {
                    "ok": False,
                    "problems": [{"source": p.source, "line": p.line, "key": p.key, "message": p.message} for p in error.problems],
                }
            )
        else:
            click.echo(str(error), err=True)
        sys.exit(CONFIG_EXIT)
    if as_json:
        echo_json({"ok": True, "version": loaded.version, "hash": loaded.hash, "notes": list(loaded.notes)})
        return
    click.echo(f"ok: {loaded.version} · {loaded.hash}")
    for note in loaded.notes:
        click.echo(f"note: {note}")


@click.command()
@workspace_options
@json_option
def doctor(roots: Sequence[Path], flags: Sequence[str], as_json: bool) -> None:
    """What is running, and what to do about each fault. Exit code 1 when something is wrong."""
    from search_router.router.diagnosis import diagnose

    findings = run(lambda: diagnose(roots, flags))
    if as_json:
        echo_json([{"what": f.what, "ok": f.ok, "found": f.found, "remedy": f.remedy} for f in findings])
    for f in () if as_json else findings:
        click.secho("ok   " if f.ok else "FAULT", fg="green" if f.ok else "red", nl=False)
        click.echo(f" {f.what:<22} {f.found}" + (f"\n      → {f.remedy}" if f.remedy else ""))
    sys.exit(0 if all(f.ok for f in findings) else 1)
