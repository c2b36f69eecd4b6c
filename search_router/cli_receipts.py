"""The commands about receipts: look at them, verify, audit, export, checkpoint, rotate, repair. Like `cli`, they only translate."""

from __future__ import annotations

import contextlib
import json
import re
import secrets
import sys
import time
from collections.abc import Generator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, BinaryIO, cast

import click

from search_router.cli_frame import RECEIPT_EXIT, echo_json, json_option, load_or_die, run, workspace_options
from search_router.errors import SearchRouterError

UNCHECKED_EXIT = 3
_AGE = re.compile(r"([0-9]{1,9})([smhd])")
_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86_400}
_key_file = click.Path(path_type=Path)


def _past_moment(ctx: click.Context, param: click.Parameter, value: str | None) -> int:
    """A time as microseconds since 1970, given as an age (`12h`) or in ISO 8601; 0 when it is not given."""
    if value is None:
        return 0
    if age := _AGE.fullmatch(value):
        return time.time_ns() // 1000 - int(age[1]) * _SECONDS[age[2]] * 1_000_000
    try:
        moment = datetime.fromisoformat(value)
    except ValueError as error:
        raise click.BadParameter(
            f"{value!r} is neither an age such as 12h (s, m, h, d) nor a time such as 2026-01-31 or 2026-01-31T09:30.", ctx, param
        ) from error
    return round((moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp() * 1_000_000)


@click.group()
def receipts() -> None:
    """List, show, verify, audit and export receipts; checkpoints and keys. Verifying imports nothing from the router."""


@contextlib.contextmanager
def _or_exit(code: int) -> Generator[None]:
    """An error of the house as one line and this exit code."""
    try:
        yield
    except SearchRouterError as error:
        click.echo(f"search-router: {error.code}: {error}", err=True)
        sys.exit(code)


def trust_options(command: Any) -> Any:
    """--key, --checkpoint-key and --pins, on every command that judges."""
    command = click.option("--pins", type=_key_file, help="File of trusted first keys, an id a line; default: our own.")(command)
    command = click.option("--checkpoint-key", type=_key_file, help="Public key (PEM) that signs checkpoints; default: our own.")(command)
    return click.option("--key", "keys", multiple=True, type=_key_file, help="Public key (PEM) to trust, in place of pinned ones.")(command)


@receipts.command("list")
@click.option("--limit", type=click.IntRange(1, 1000), default=20, show_default=True)
@click.option("--before", help="Only receipts before this id.")
@click.option(
    "--since", callback=_past_moment, help="None that is older: 90s, 30m, 12h, 7d, or an ISO 8601 time (UTC if it has no offset)."
)
@workspace_options
@json_option
def list_receipts(limit: int, before: str | None, since: int, roots: Sequence[Path], flags: Sequence[str], as_json: bool) -> None:
    """The newest receipts of every log of the store."""
    from search_router import terminal
    from search_router.receipts.reading import ReceiptReader

    paths = load_or_die(roots, flags).paths
    found = run(lambda: ReceiptReader(paths.receipts).list(limit, before, since))
    if as_json:
        echo_json([{"id": r.id, "time_us": r.time_us, "status": r.status, "intent": r.intent, "keyid": r.keyid} for r in found])
        return
    rows = ((r.id, terminal.clock_time(r.time_us), r.status, r.intent or "", r.keyid[:12]) for r in found)
    terminal.print_rows(terminal.make_console(), ("receipt", "time", "status", "intent", "key"), rows)


@receipts.command("show")
@click.argument("receipt_id", required=False)
@click.option("--last", is_flag=True, help="The newest receipt.")
@workspace_options
@json_option
def show_receipt(receipt_id: str | None, last: bool, roots: Sequence[Path], flags: Sequence[str], as_json: bool) -> None:
    """One receipt, RECEIPT_ID or the newest: its statement; with --json also the signed envelope."""
    from search_router.receipts.reading import ReceiptReader

    if last == (receipt_id is not None):
        raise click.UsageError("Name one RECEIPT_ID, or use --last.")
    paths = load_or_die(roots, flags).paths
    reader = ReceiptReader(paths.receipts)
    found = run(reader.newest if receipt_id is None else lambda: reader.get(receipt_id))
    statement = found.statement()
    if as_json:
        echo_json({"id": found.id, "envelope": json.loads(found.envelope), "statement": statement})
    else:
        click.echo(json.dumps(statement, indent=2, ensure_ascii=False))


@receipts.command("verify")
@click.argument("receipt_ids", nargs=-1)
@click.option("--all", "whole", is_flag=True, help="Every log of the store: chain, tree, rotations, checkpoints.")
@click.option("--log", "logs", multiple=True, help="One whole log; repeatable.")
@click.option("--last", is_flag=True, help="The newest receipt.")
@click.option("--since", type=click.Path(path_type=Path, exists=True, dir_okay=False), help="Only what came after a kept checkpoint.")
@click.option("--response", type=click.File("rb"), help="The JSON answer that the receipt should be about.")
@trust_options
@workspace_options
@json_option
def verify_receipts(
    receipt_ids: Sequence[str],
    whole: bool,
    logs: Sequence[str],
    last: bool,
    since: Path | None,
    response: Any,
    keys: Sequence[Path],
    checkpoint_key: Path | None,
    pins: Path | None,
    roots: Sequence[Path],
    flags: Sequence[str],
    as_json: bool,
) -> None:
    """Verify RECEIPT_IDS, the newest receipt, or whole logs. Exit code: 0 valid · 1 invalid · 2 usage · 3 not checkable."""
    from search_router.router import checking

    if not (receipt_ids or whole or logs or last or since):
        raise click.UsageError("Name RECEIPT_IDS, or use --last, --log, --all or --since.")
    paths = load_or_die(roots, flags).paths
    answer = _read_answer(response) if response is not None else None
    with _or_exit(UNCHECKED_EXIT):
        anchors = checking.find_anchors(paths, keys, checkpoint_key, pins)
        _say(anchors.notes)
        found = checking.verify_since(paths, anchors, since) if since is not None else []
        if whole or logs:
            found += checking.verify_whole_logs(paths, anchors, logs)
        elif receipt_ids or last:
            found += run(lambda: checking.verify_some(paths, anchors, receipt_ids, last, answer), receipt_exit=UNCHECKED_EXIT)
    if as_json:
        echo_json([{"what": v.what, "verdict": v.verdict, "reasons": list(v.reasons), "notes": list(v.notes)} for v in found])
    for v in () if as_json else found:
        click.echo(f"{v.verdict:<9} {v.what}" + "".join(f"\n          {line}" for line in (*v.reasons, *v.notes)))
    codes = {v.exit_code for v in found}
    sys.exit(1 if 1 in codes else max(codes, default=UNCHECKED_EXIT))


def _read_answer(stream: BinaryIO) -> dict[str, Any]:
    """A JSON object from a file that the caller named; anything else is wrong usage, and no verdict on a receipt."""
    try:
        answer: object = json.load(stream)
    except (ValueError, RecursionError) as error:
        raise click.BadParameter(f"{stream.name}: not JSON: {error}", param_hint="'--response'") from error
    if not isinstance(answer, dict):
        raise click.BadParameter(f"{stream.name}: not a JSON object.", param_hint="'--response'")
    return cast("dict[str, Any]", answer)


@receipts.command("audit")
@click.option("--against", "client_log", type=click.File("rb"), required=True, help="What a client received, a JSON answer a line.")
@trust_options
@workspace_options
@json_option
def audit_receipts(
    client_log: Any,
    keys: Sequence[Path],
    checkpoint_key: Path | None,
    pins: Path | None,
    roots: Sequence[Path],
    flags: Sequence[str],
    as_json: bool,
) -> None:
    """Join a client's log with the store: answers without a receipt, receipts that are gone or altered. Exit codes as for verify."""
    from search_router.receipts.crosscheck import cross_check
    from search_router.receipts.verify import EXIT_CODES
    from search_router.router import checking

    paths = load_or_die(roots, flags).paths
    with _or_exit(UNCHECKED_EXIT):
        anchors = checking.find_anchors(paths, keys, checkpoint_key, pins)
        _say(anchors.notes)
        found = cross_check(paths.receipts, client_log, anchors.trust)
    counts = ("answers", "found", "without", "missing", "altered", "mismatched", "faulty", "unreadable")
    shown = {"verdict": found.kind.value, "emission_pm": found.emission_pm} | {name: getattr(found, name) for name in counts}
    if as_json:
        echo_json(shown | {"reasons": found.reasons})
    else:
        click.echo(f"{found.kind:<9} {found.found} of {found.answers} answers have their receipt ({found.emission_pm / 10:.1f} %)")
        click.echo("          " + " · ".join(f"{name} {shown[name]}" for name in counts[2:]))
        _echo_lines(found.reasons)
    sys.exit(EXIT_CODES[found.kind])


@receipts.command("export")
@click.argument("directory", type=click.Path(path_type=Path, file_okay=False))
@click.argument("receipt_ids", nargs=-1)
@click.option("--log", "logs", multiple=True, help="Only this log; repeatable.")
@workspace_options
def export_receipts(directory: Path, receipt_ids: Sequence[str], logs: Sequence[str], roots: Sequence[Path], flags: Sequence[str]) -> None:
    """Write envelopes, public keys and checkpoints to DIRECTORY for other people's tools; RECEIPT_IDS (default: the newest) singly, too."""
    from search_router.receipts.export import export_receipts as export
    from search_router.receipts.log import log_ids
    from search_router.router import checking

    paths = load_or_die(roots, flags).paths
    with _or_exit(RECEIPT_EXIT):
        anchors = checking.find_anchors(paths)
        _say(anchors.notes)
        chosen = list(logs) or log_ids(paths.receipts)
        done = export(
            paths.receipts,
            chosen,
            directory,
            anchors.trust,
            checkpoints=paths.checkpoints,
            checkpoint_key=anchors.checkpoint_key,
            single=receipt_ids,
        )
    click.echo(f"{done.envelopes} envelopes of {done.logs} logs in {directory}")
    _echo_lines([f"receipts/{name}" for name in done.singles])


@receipts.command("checkpoint")
@workspace_options
def print_checkpoints(roots: Sequence[Path], flags: Sequence[str]) -> None:
    """Print the newest checkpoint of every log, made now where no process writes it. Keep them where the store's owner cannot reach."""
    from search_router.router import checking

    loaded = load_or_die(roots, flags)
    with _or_exit(RECEIPT_EXIT):
        for made in checking.make_checkpoints(loaded.paths):
            click.echo(f"verifier key: {made.verifier_key}" + ("" if made.fresh else " (a process writes this log)"), err=True)
            click.echo(made.note)


@receipts.command("rotate")
@workspace_options
def rotate_key(roots: Sequence[Path], flags: Sequence[str]) -> None:
    """Retire the signing key: every log records its successor, signed by both. The old private key is deleted; no process may run."""
    from search_router.receipts.rotate import rotate_key as rotate

    paths = load_or_die(roots, flags).paths
    with _or_exit(RECEIPT_EXIT):
        done = rotate(paths.receipts, paths.key, paths.pins, clock=lambda: time.time_ns() // 1000, nonce=lambda: secrets.token_hex(16))
    click.echo(f"retired {done.old}\nnow     {done.new}")
    _echo_lines([f"recorded in {record}" for record in done.records])
    if done.pinned_now:
        click.echo(f"The retired key was pinned in {paths.pins}, as nobody had pinned a key: verification goes on from it.")


@receipts.command("repair")
@click.argument("log")
@workspace_options
def repair_log(log: str, roots: Sequence[Path], flags: Sequence[str]) -> None:
    """Set a damaged or rolled-back LOG and its checkpoints aside, unchanged, so that a start can make a new one.

    Nothing is mended: a mended log proves nothing.
    """
    from search_router.receipts.claim import set_log_aside

    paths = load_or_die(roots, flags).paths
    with _or_exit(RECEIPT_EXIT):
        where = set_log_aside(paths.receipts, log, paths.checkpoints)
    click.echo(f"moved to {where}")


def _say(notes: Sequence[str]) -> None:
    """On standard error, so that what is printed can be read by programs."""
    for note in notes:
        click.echo(f"search-router: {note}", err=True)


def _echo_lines(lines: Sequence[str]) -> None:
    for line in lines:
        click.echo(f"          {line}")
