"""The command line. It only translates: every command is a call on an open router or on a room below it.

Exit codes: 0 answered · 1 nothing found · 2 the request or the arguments are wrong · 3 no expert could answer · 4 no receipt could be
written, so there is no answer · 5 configuration or workspace · 6 the operating system refused, such as to write the output · 130
interrupted · 141 the reader of the output went away. `receipts verify`: 0 valid · 1 invalid · 3 not checkable. `index`: see `cli_index`.
"""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, BinaryIO, Final, Literal

import click

from search_router import cli_admin, cli_bench, cli_experts, cli_flywheel, cli_index, cli_install, cli_receipts, cli_scip
from search_router.cli_frame import EXITS, CommandLine, echo_json, exit_of, json_option, run, workspace_options
from search_router.collector import collector_paused
from search_router.schema import Intent, PrecisionClass, Shape

MAX_LINE: Final = 1 << 24
"""Bytes of one line of a batch that are kept: far more than any question may have."""


def _say_version(context: click.Context, _option: click.Parameter, asked: bool) -> None:
    """Also where the configuration has mistakes: its version is the packaged one."""
    if not asked:
        return
    from search_router.config.sources import read_packaged
    from search_router.router.build import read_build

    build = read_build()
    changed = {True: ", changed since", False: "", None: ""}[build.dirty]
    commit = f" (commit {build.commit[:12]}{changed})" if build.commit else " (installed package)"
    click.echo(f"search-router {build.version}{commit}, configuration {read_packaged().values['version']}")
    context.exit()


@click.group(cls=CommandLine, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 120})
@click.option("--version", is_flag=True, is_eager=True, expose_value=False, callback=_say_version, help="Version, build and configuration.")
def main() -> None:
    """One question to many code-search experts: fused evidence with visible trust, and a signed receipt for every request."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(encoding="utf-8", errors="backslashreplace")  # pyright: ignore[reportAttributeAccessIssue, reportUnknownMemberType] - hasattr has asked


@main.command()
@click.argument("question", required=False)
@click.option("--intent", type=click.Choice([i.value for i in Intent]), help="Skip classification.")
@click.option("--project", help="Only this project.")
@click.option("--group", help="Only this group of projects.")
@click.option("--path", "path", help="Only below this path.")
@click.option("--language", help="Only this language.")
@click.option("--latency-ms", type=int, help="Time for the whole request.")
@click.option("--max-experts", type=int, help="At most so many experts are asked.")
@click.option("--min-precision-class", type=click.Choice([c.value for c in PrecisionClass]), help="No expert below this class.")
@click.option("--shape", type=click.Choice([s.value for s in Shape]), help="How evidence is presented.")
@click.option("--limit", type=int, help="Items on a page (10).")
@click.option("--cursor", help="Next page, from an earlier answer.")
@click.option("--detail", type=click.Choice(["skim", "full"]), help="Snippets (skim), or up to the whole definition.")
@click.option("--batch", type=click.File("rb"), help='JSON lines {"id", "question", …} in, one JSON answer a line out.')
@workspace_options
@json_option
def search(question: str | None, batch: Any, roots: Sequence[Path], flags: Sequence[str], as_json: bool, **options: Any) -> None:
    """Ask QUESTION."""
    if batch is not None and question is not None:
        raise click.UsageError("Give a QUESTION or --batch FILE, not both.")
    if batch is not None:
        sys.exit(run(lambda: _search_batch(batch, roots, flags)))
    if question is None:
        raise click.UsageError("Give a QUESTION, or --batch FILE.")
    sys.exit(run(lambda: _search_once(_request(question, options), roots, flags, as_json)))


def _request(question: str, options: dict[str, Any]) -> dict[str, Any]:
    """The structured request; only what was given is in it."""
    scope = {k: options[k] for k in ("project", "group", "path", "language") if options[k] is not None}
    budget = {k: options[k] for k in ("latency_ms", "max_experts", "min_precision_class") if options[k] is not None}
    plain = {k: options[k] for k in ("intent", "limit", "cursor", "detail") if options[k] is not None}
    shape = {"expected_shape": options["shape"]} if options["shape"] else {}
    return {"question": question, **plain, **shape, **({"scope": scope} if scope else {}), **({"budget": budget} if budget else {})}


async def _search_once(request: dict[str, Any], roots: Sequence[Path], flags: Sequence[str], as_json: bool) -> int:
    from search_router import terminal
    from search_router.router.opening import open_router

    async with open_router(roots=roots, flags=flags) as router:
        _say_notes(router.notes)
        async with terminal.waiting_display() as progress:
            answer = await router.search(request, principal="local", progress=progress)
        if as_json:
            echo_json(answer.model_dump(mode="json", by_alias=True))
        else:
            terminal.print_answer(terminal.make_console(), answer)
    return exit_of(answer)


def _say_notes(notes: Sequence[str]) -> None:
    for note in notes:
        click.echo(f"search-router: {note}", err=True)


async def _search_batch(lines: BinaryIO, roots: Sequence[Path], flags: Sequence[str]) -> int:
    """One answer a line, in the order of the questions; a line that is not JSON gets a rejected answer. The worst exit code is returned."""
    from search_router.router.opening import open_router

    worst = 0
    async with open_router(roots=roots, flags=flags) as router:
        _say_notes(router.notes)
        await router.catch_up()
        for line in _bounded(lines):
            if not line.strip():
                continue
            name, raw = _batch_request(line)
            answer = await router.search(raw, principal="local")
            echo_json({"id": name, **answer.model_dump(mode="json", by_alias=True)})
            worst = max(worst, 0 if answer.found_nothing else exit_of(answer))
    return worst


def _bounded(lines: BinaryIO) -> Iterator[bytes]:
    """The lines; of one longer than `MAX_LINE` only its beginning, which is no JSON, so that it is refused by its name."""
    while line := lines.readline(MAX_LINE):
        rest = line
        while not rest.endswith(b"\n") and (rest := lines.readline(MAX_LINE)):
            pass
        yield line


def _batch_request(line: bytes) -> tuple[Any, Any]:
    """(id, request) of one line; what is not JSON goes to the router as it is, which refuses it with a receipt."""
    try:
        raw: Any = json.loads(line, parse_constant=_no_json, parse_float=_finite)
    except (ValueError, RecursionError):  # the latter: nested without end
        return None, line.decode("utf-8", "replace")
    if not isinstance(raw, dict):
        return None, raw
    request: dict[str, Any] = {**raw}
    return request.pop("id", None), request


def _no_json(name: str) -> None:
    raise ValueError(f"{name} is not JSON")


def _finite(digits: str) -> float:
    number = float(digits)
    if not math.isfinite(number):
        raise ValueError("a number without bounds could not be written back")
    return number


@main.command()
@click.argument("ids", nargs=-1, required=True)
@click.option("--max-characters", type=int, help="Of all texts together; what is cut is named.")
@workspace_options
@json_option
def fetch(ids: Sequence[str], max_characters: int | None, roots: Sequence[Path], flags: Sequence[str], as_json: bool) -> None:
    """Full text of evidence IDS."""

    async def work() -> int:
        from search_router import terminal
        from search_router.router.opening import open_router

        request = {"ids": list(ids)} | ({"max_characters": max_characters} if max_characters is not None else {})
        async with open_router(roots=roots, flags=flags) as router:
            answer = await router.fetch(request, principal="local")
        if as_json:
            echo_json(answer.model_dump(mode="json", by_alias=True))
        else:
            terminal.print_fetch(terminal.make_console(), answer)
        return EXITS[answer.status] if not answer.problems else max(1, EXITS[answer.status])

    sys.exit(run(work))


@main.command()
@click.option("--transport", type=click.Choice(["stdio", "sse", "http"]), default="stdio", show_default=True, help="How clients connect.")
@click.option("--host", help="Where HTTP listens; anything but loopback needs SEARCH_ROUTER_TOKEN.")
@click.option("--port", type=int, help="0 picks a free port.")
@workspace_options
def serve(
    transport: Literal["stdio", "sse", "http"], host: str | None, port: int | None, roots: Sequence[Path], flags: Sequence[str]
) -> None:
    """Run the MCP server."""
    http = [*([f"http.host={json.dumps(host)}"] if host is not None else []), *([f"http.port={port}"] if port is not None else [])]

    async def work() -> None:
        with collector_paused():
            from search_router.start import serve as start

        await start(transport, roots=roots, flags=[*flags, *http])

    run(work)


@main.command()
@json_option
def schema(as_json: bool) -> None:
    """JSON Schema of the request and of the answer."""
    from search_router.router.schemas import published_schemas

    if as_json:
        echo_json(published_schemas())
    else:
        click.echo(json.dumps(published_schemas(), indent=2))


cli_index.index.add_command(cli_scip.index_scip)
for _command in (
    cli_receipts.receipts,
    cli_admin.config,
    cli_admin.doctor,
    cli_bench.bench,
    cli_index.index,
    cli_experts.experts,
    cli_flywheel.experiments,
    cli_install.install,
    cli_install.uninstall,
    cli_install.completion,
    cli_flywheel.outcome,
    cli_flywheel.replay,
    cli_flywheel.tune,
):
    main.add_command(_command)
