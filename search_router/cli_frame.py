"""What every command shares: running async work, errors as one line and an exit code, JSON out, the workspace options."""

from __future__ import annotations

import contextlib
import json
import os
import sys
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any, NoReturn, TypeVar

import anyio
import click

from search_router.errors import ConfigError, ReceiptError, SearchRouterError, WorkspaceError
from search_router.schema import Answer, Status

T = TypeVar("T")
EXITS = {
    Status.ANSWERED: 0,
    Status.CACHED: 0,
    Status.EMPTY: 1,
    Status.DECLINED: 2,
    Status.REJECTED: 2,
    Status.FAILED: 3,
    Status.CANCELLED: 130,
}
UNANSWERED_EXIT = EXITS[Status.FAILED]
RECEIPT_EXIT, CONFIG_EXIT, SYSTEM_EXIT, INTERRUPTED_EXIT, CLOSED_PIPE_EXIT = 4, 5, 6, 130, 141


class CommandLine(click.Group):
    """The group of all commands: starts in UTF-8, and ends in good order when its output cannot be written."""

    def main(self, args: Sequence[str] | None = None, *more: Any, **extra: Any) -> Any:
        if args is None:
            _start_in_utf8()
        return super().main(args, *more, **extra)

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except BrokenPipeError:
            _give_up_output()
            sys.exit(CLOSED_PIPE_EXIT)
        except OSError as error:
            _give_up_output()
            about = f"{error.filename}: " if error.filename else ""
            click.echo(f"search-router: system-error: {about}{error.strerror or error}.", err=True)
            sys.exit(SYSTEM_EXIT)


def _start_in_utf8() -> None:
    """Under a locale such as C, Python would read arguments and file names as ASCII: begin again, in UTF-8 mode (PEP 540)."""
    if not sys.flags.utf8_mode and sys.getfilesystemencoding() != "utf-8":
        os.execv(sys.executable, [sys.executable, "-X", "utf8", *sys.orig_argv[1:]])  # noqa: S606 - ourselves, without a shell


def _give_up_output() -> None:
    """What is still buffered goes nowhere, or Python would try to write it again at its end."""
    with contextlib.suppress(OSError, ValueError):  # a stream without a descriptor has nobody who could go away
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def exit_of(answer: Answer) -> int:
    """The exit code of an answer. Nobody there to ask is declined like a faulty request, and is not the caller's fault."""
    if answer.found_nothing:
        return EXITS[Status.EMPTY]
    return UNANSWERED_EXIT if answer.error is not None and answer.error.code == "no-expert" else EXITS[answer.status]


def run(work: Callable[[], Awaitable[T]], receipt_exit: int = RECEIPT_EXIT) -> T:
    """Run async work; errors of the house become one clear line and the documented exit code."""
    try:
        return anyio.run(work)
    except KeyboardInterrupt:
        sys.exit(INTERRUPTED_EXIT)
    except BaseExceptionGroup as group:
        inner = _single(group)
        if isinstance(inner, SearchRouterError):
            _die(inner, receipt_exit)
        if isinstance(inner, OSError):
            raise inner from None
        raise
    except SearchRouterError as error:
        _die(error, receipt_exit)


def run_blocking(work: Callable[[], T]) -> T:
    """The same for work that is not async."""
    try:
        return work()
    except KeyboardInterrupt:
        sys.exit(INTERRUPTED_EXIT)
    except SearchRouterError as error:
        _die(error)


def _single(group: BaseExceptionGroup[BaseException]) -> BaseException:
    """The one error inside nested groups of one."""
    inner: BaseException = group
    while isinstance(inner, BaseExceptionGroup) and len(inner.exceptions) == 1:  # pyright: ignore[reportUnknownMemberType, reportUnknownArgumentType] - isinstance cannot tell of what the group is
        inner = inner.exceptions[0]  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType] - isinstance cannot tell of what the group is
    return inner  # pyright: ignore[reportUnknownVariableType] - isinstance cannot tell of what the group is


def _die(error: SearchRouterError, receipt_exit: int = RECEIPT_EXIT) -> NoReturn:
    click.echo(f"search-router: {error.code}: {error}", err=True)
    sys.exit(receipt_exit if isinstance(error, ReceiptError) else CONFIG_EXIT if isinstance(error, (ConfigError, WorkspaceError)) else 2)


def workspace_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """--root and --set, on every command that opens a router."""
    command = click.option("--set", "flags", multiple=True, metavar="KEY=VALUE", help="Override one configuration value.")(command)
    return click.option(
        "--root",
        "roots",
        multiple=True,
        type=click.Path(path_type=Path),
        help="A directory to search; repeatable. Default: the working directory.",
    )(command)


json_option = click.option("--json", "as_json", is_flag=True, help="Machine-readable output.")


def echo_json(value: Any) -> None:
    """One JSON document on standard output, in UTF-8 whatever the locale; lone surrogates as escapes."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    sys.stdout.buffer.write(text.encode("utf-8", "backslashreplace") + b"\n")
    sys.stdout.buffer.flush()


def load(roots: Sequence[Path], flags: Sequence[str]) -> Any:
    """The configuration of this process. Raises ConfigError."""
    from search_router.config.loader import load_config

    return load_config(roots=roots, environ=os.environ, flags=flags)


def load_or_die(roots: Sequence[Path], flags: Sequence[str]) -> Any:
    """The configuration; its mistakes end the process with their exit code."""
    try:
        return load(roots, flags)
    except ConfigError as error:
        click.echo(f"search-router: {error}", err=True)
        sys.exit(CONFIG_EXIT)
