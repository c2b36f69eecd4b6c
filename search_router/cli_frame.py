"""What every command shares: running async work, errors as one line and an exit code, JSON out, the workspace options."""

from __future__ import annotations

import json
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, NoReturn, TypeVar

import anyio
import click

from search_router.errors import ConfigError, ReceiptError, SearchRouterError, WorkspaceError
from search_router.schema import Status

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
RECEIPT_EXIT, CONFIG_EXIT, INTERRUPTED_EXIT = 4, 5, 130


def run(work: Callable[[], Awaitable[T]]) -> T:
    """Run async work; errors of the house become one clear line and the documented exit code."""
    try:
        return anyio.run(work)
    except KeyboardInterrupt:
        sys.exit(INTERRUPTED_EXIT)
    except BaseExceptionGroup as group:
        inner = _single(group)
        if isinstance(inner, SearchRouterError):
            _die(inner)
        raise
    except SearchRouterError as error:
        _die(error)


def _single(group: BaseExceptionGroup[BaseException]) -> BaseException:
    """The one error inside nested groups of one."""
    inner: BaseException = group
    while isinstance(inner, BaseExceptionGroup) and len(inner.exceptions) == 1:  # pyright: ignore[reportUnknownMemberType, reportUnknownArgumentType]
        inner = inner.exceptions[0]  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]
    return inner  # pyright: ignore[reportUnknownVariableType]


def _die(error: SearchRouterError) -> NoReturn:
    click.echo(f"search-router: {error.code}: {error}", err=True)
    sys.exit(RECEIPT_EXIT if isinstance(error, ReceiptError) else CONFIG_EXIT if isinstance(error, (ConfigError, WorkspaceError)) else 2)


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
