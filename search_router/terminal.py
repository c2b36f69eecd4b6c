"""How answers look to people on a terminal: aligned, coloured where the terminal can, tier and nuance first."""

from __future__ import annotations

import sys
from collections.abc import AsyncGenerator, Iterable
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from textwrap import indent

import anyio
from rich.console import Console
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from search_router.answers import FetchAnswer, RegistryAnswer
from search_router.router.fanout import Progress
from search_router.router.render import FAILED
from search_router.schema import Answer, Confidence, Evidence, ExpertStatus
from search_router.wire_text import visible, visible_line

COLOURS = {Confidence.HIGH: "green", Confidence.MEDIUM: "yellow", Confidence.LOW: "red"}
PATIENCE_SECONDS = 0.5
PIPE_COLUMNS = 4000


class _OutputConsole(Console):
    def on_broken_pipe(self) -> None:
        """The command line knows what to do; rich would end the process with exit code 1, which means found nothing."""
        raise BrokenPipeError


def make_console() -> Console:
    """Standard output; as wide as needed when it is no terminal, so that nothing is cut for a pipe."""
    return _OutputConsole(highlight=False, soft_wrap=True, width=None if sys.stdout.isatty() else PIPE_COLUMNS)


def print_answer(console: Console, answer: Answer) -> None:
    """One block an item, then what the experts did, what was cut and the receipt."""
    if answer.error is not None:
        console.print(Text.assemble((answer.status.value, "bold red"), f"  {answer.error.code}: {visible(answer.error.message)}"))
        if answer.error.remedy:
            console.print(Text(f"→ {visible(answer.error.remedy)}", style="cyan"))
    elif not answer.evidence:
        console.print(Text.assemble(("no evidence", "bold yellow"), f"  {answer.empty_reason.value if answer.empty_reason else ''}"))
    for number, item in enumerate(answer.evidence, start=1):
        _print_item(console, number, item)
    for note in answer.notes:
        console.print(Text(f"note: {visible_line(note)}", style="yellow"))
    console.print(_experts_table(answer))
    if answer.cut.hint:
        more = f"  --cursor {answer.cut.cursor}" if answer.cut.cursor else ""
        console.print(Text(f"{answer.cut.hint}{more}", style="dim"))
    receipt = f"receipt {answer.receipt.id}" if answer.receipt else "no receipt"
    console.print(Text(f"{answer.budget.used_ms:.1f} ms · {answer.config.version} · {receipt}", style="dim"))


def _print_item(console: Console, number: int, item: Evidence) -> None:
    colour = COLOURS[item.confidence]
    if item.commit is not None:
        head = Text.assemble(
            (f"{number:>2} ", "bold"),
            (visible_line(item.id), "bold cyan"),
            f"  {(item.date or '')[:10]}  ",
            visible_line(item.subject or ""),
        )
    else:
        where = f"{item.path}:{item.start_line}-{item.end_line}" if item.path is not None else f"{item.library} {item.version}"
        head = Text.assemble(
            (f"{number:>2} ", "bold"),
            (visible_line(where), "bold cyan"),
            f"  {item.kind} " if item.symbol else "",
            (visible_line(item.symbol or ""), "bold"),
            (f"  {visible_line(item.id)}", "dim"),
        )
    console.print(head)
    sources = " ".join(f"{s.expert}#{s.rank}" for s in item.sources)
    flags = f"  !{' !'.join(item.flags)}" if item.flags else ""
    console.print(
        Text.assemble("   ", (f"{item.tier.value} · {item.confidence.value}", colour), f"  {sources}", (flags, "red"), f"  {item.nuance}")
    )
    if item.snippet:
        console.print(Text(indent(visible(item.snippet), " " * 5), style="dim"))


def _experts_table(answer: Answer) -> Table:
    table = Table.grid(padding=(0, 2))
    for e in answer.experts:
        style = "red" if e.status in FAILED else "dim" if e.status is ExpertStatus.SKIPPED else ""
        took = f"{e.latency_us / 1000:.1f} ms" if e.latency_us else ""
        table.add_row(
            *(
                Text(visible_line(c), style=style)
                for c in (e.id, e.status.value, str(e.results) if took else "", took, e.sub_query or "", e.reason)
            )
        )
    return table


def print_fetch(console: Console, answer: FetchAnswer) -> None:
    for item in answer.items:
        state = {True: ("fresh", "green"), False: ("changed since the search", "red"), None: ("freshness unknown", "yellow")}[item.fresh]
        console.print(Text.assemble((visible_line(item.id), "bold cyan"), "  ", state))
        console.print(Text(visible(item.text)))
        if item.cut:
            console.print(Text(visible(item.cut), style="yellow"))
    for problem in answer.problems:
        console.print(Text(visible_line(f"{problem.id}: {problem.code}: {problem.message} {problem.remedy}"), style="red"))
    if answer.error is not None:
        console.print(Text(f"{answer.status.value}: {answer.error.message} {answer.error.remedy}", style="red"))


def print_registry(console: Console, answer: RegistryAnswer) -> None:
    console.print(Text(f"search-router {answer.build.version} · {answer.config.version} · {answer.config.hash[:12]}", style="bold"))
    print_rows(
        console,
        ("expert", "class", "engine", "state", "cap", "why"),
        (
            (
                e.id,
                e.precision_class.value,
                f"{e.engine} {e.version or ''}",
                "off" if not e.enabled else "ready" if e.available else "unavailable",
                f"{e.cap_ms} ms",
                e.reason,
            )
            for e in answer.experts
        ),
    )
    print_rows(
        console,
        ("project", "kind", "branch", "head", "root"),
        ((p.id, p.kind, p.branch or "", (p.head or "")[:12], p.root) for p in answer.projects),
    )
    for note in answer.notes:
        console.print(Text(f"note: {visible_line(note)}", style="yellow"))


def print_rows(console: Console, header: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> None:
    """A plain aligned table."""
    table = Table(*header, box=None, pad_edge=False, header_style="bold")
    for row in rows:
        table.add_row(*(escape(visible_line(cell)) for cell in row))
    console.print(table)


def clock_time(time_us: int) -> str:
    """Microseconds since 1970 as ISO 8601 in UTC, to the second."""
    return datetime.fromtimestamp(time_us / 1e6, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


@asynccontextmanager
async def waiting_display(first: str = "asking the experts") -> AsyncGenerator[Progress | None]:
    """A progress line on standard error, only on a terminal and only when the answer takes longer than half a second."""
    if not sys.stderr.isatty():
        yield None
        return
    status = Console(stderr=True).status(first)

    async def show(message: str, done: float, total: int) -> None:
        status.update(f"{int(done)}/{total} {escape(visible_line(message))}")

    async def start_late() -> None:
        await anyio.sleep(PATIENCE_SECONDS)
        status.start()

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(start_late)
        try:
            yield show
        finally:
            tasks.cancel_scope.cancel()
            status.stop()
