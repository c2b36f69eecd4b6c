"""The operator's commands: receipts, config, doctor. Like `cli`, they only translate."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from search_router.cli_frame import CONFIG_EXIT, RECEIPT_EXIT, echo_json, json_option, run, workspace_options
from search_router.errors import ConfigError, SearchRouterError


@click.group()
def receipts() -> None:
    """List, show and verify receipts. Verifying imports nothing from the router."""


def _load(roots: Sequence[Path], flags: Sequence[str]) -> Any:
    from search_router.config.loader import load_config

    return load_config(roots=roots, environ=os.environ, flags=flags)


def _load_or_die(roots: Sequence[Path], flags: Sequence[str]) -> Any:
    try:
        return _load(roots, flags)
    except ConfigError as error:
        click.echo(f"search-router: {error}", err=True)
        sys.exit(CONFIG_EXIT)


@receipts.command("list")
@click.option("--limit", type=click.IntRange(1, 1000), default=20, show_default=True)
@click.option("--before", help="Only receipts before this id.")
@workspace_options
@json_option
def list_receipts(limit: int, before: str | None, roots: Sequence[Path], flags: Sequence[str], as_json: bool) -> None:
    """The newest receipts of every log of the store."""
    from search_router import terminal
    from search_router.receipts.reading import ReceiptReader

    paths = _load_or_die(roots, flags).paths
    found = run(lambda: ReceiptReader(paths.receipts).list(limit, before))
    if as_json:
        echo_json([{"id": r.id, "time_us": r.time_us, "status": r.status, "intent": r.intent, "keyid": r.keyid} for r in found])
        return
    rows = ((r.id, terminal.clock_time(r.time_us), r.status, r.intent or "", r.keyid[:12]) for r in found)
    terminal.print_rows(terminal.make_console(), ("receipt", "time", "status", "intent", "key"), rows)


@receipts.command("show")
@click.argument("receipt_id")
@workspace_options
@json_option
def show_receipt(receipt_id: str, roots: Sequence[Path], flags: Sequence[str], as_json: bool) -> None:
    """One receipt: its statement; with --json also the signed envelope."""
    from search_router.receipts.reading import ReceiptReader

    paths = _load_or_die(roots, flags).paths
    found = run(lambda: ReceiptReader(paths.receipts).get(receipt_id))
    statement = found.statement()
    if as_json:
        echo_json({"id": found.id, "envelope": json.loads(found.envelope), "statement": statement})
    else:
        click.echo(json.dumps(statement, indent=2, ensure_ascii=False))


@receipts.command("verify")
@click.argument("receipt_ids", nargs=-1)
@click.option("--all", "whole", is_flag=True, help="Every log of the store, with its chain.")
@click.option("--log", "logs", multiple=True, help="One whole log; repeatable.")
@click.option("--last", is_flag=True, help="The newest receipt.")
@click.option("--key", "keys", multiple=True, type=click.Path(path_type=Path), help="Public key (PEM) to trust; default: our own.")
@click.option("--response", type=click.File("rb"), help="The JSON answer that the receipt should be about.")
@workspace_options
@json_option
def verify_receipts(
    receipt_ids: Sequence[str],
    whole: bool,
    logs: Sequence[str],
    last: bool,
    keys: Sequence[Path],
    response: Any,
    roots: Sequence[Path],
    flags: Sequence[str],
    as_json: bool,
) -> None:
    """Verify RECEIPT_IDS, the newest receipt, or whole logs. Exit code: 0 valid · 1 invalid · 2 usage · 3 not checkable."""
    from search_router.router.checking import verify_some, verify_whole_logs

    if not (receipt_ids or whole or logs or last):
        raise click.UsageError("Name RECEIPT_IDS, or use --last, --log or --all.")
    paths = _load_or_die(roots, flags).paths
    answer = json.load(response) if response is not None else None
    try:
        some = not (whole or logs)
        found = run(lambda: verify_some(paths, keys, receipt_ids, last, answer)) if some else verify_whole_logs(paths, keys, logs)
    except SearchRouterError as error:
        click.echo(f"search-router: {error.code}: {error}", err=True)
        sys.exit(3)
    if as_json:
        echo_json([{"what": v.what, "verdict": v.verdict, "reasons": list(v.reasons), "notes": list(v.notes)} for v in found])
    for v in () if as_json else found:
        click.echo(f"{v.verdict:<9} {v.what}" + "".join(f"\n          {line}" for line in (*v.reasons, *v.notes)))
    sys.exit(max((v.exit_code for v in found), default=3))


@receipts.command("repair")
@click.argument("log")
@workspace_options
def repair_log(log: str, roots: Sequence[Path], flags: Sequence[str]) -> None:
    """Set a damaged LOG aside, unchanged, so that a start can make a new one. Nothing is mended: a mended log proves nothing."""
    from search_router.receipts.claim import set_log_aside

    paths = _load_or_die(roots, flags).paths
    try:
        where = set_log_aside(paths.receipts, log)
    except SearchRouterError as error:
        click.echo(f"search-router: {error.code}: {error}", err=True)
        sys.exit(RECEIPT_EXIT)
    click.echo(f"moved to {where}")


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

    loaded = _load_or_die(roots, flags)
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
        loaded = _load(roots, flags)
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
