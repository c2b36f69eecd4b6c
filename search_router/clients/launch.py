"""How a client is to start this very program: found from how it runs now, and never with the value of a variable in it."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from search_router.clients.catalog import Client, Launch
from search_router.errors import ClientFileError

PROGRAM = "search-router"
_CACHED = re.compile(r"(?:archive|environments|builds)-v\d+\Z")
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")


@dataclass(frozen=True, slots=True)
class Running:
    """How this process was started: `sys.argv[0]`, `sys.executable`, `sys.prefix`, the environment."""

    started_as: str
    executable: str
    prefix: str
    environ: Mapping[str, str]


def find_command(running: Running) -> tuple[str, ...]:
    """The words that start search-router again, without `serve`.

    Through uvx, whose environments come and go with its cache: `uvx search-router`, with uvx's own path where it is known. Otherwise the
    absolute path of the script that runs, or that lies beside this Python; otherwise this Python with `-m search_router`.
    """
    if "UV" in running.environ and any(_CACHED.match(part) for part in Path(running.prefix).parts):
        uv = running.environ["UV"]
        beside = Path(uv).with_name("uvx")
        uvx = str(beside) if os.access(beside, os.X_OK) else shutil.which("uvx", path=running.environ.get("PATH", ""))
        return (uvx or "uvx", PROGRAM)
    for script in (Path(running.started_as), Path(running.prefix) / "bin" / PROGRAM, Path(running.executable).with_name(PROGRAM)):
        if script.name == PROGRAM and script.is_file() and os.access(script, os.X_OK):
            return (os.path.abspath(script),)  # noqa: PTH100 - resolve() would follow the link of a tool directory to a version of it
    return (os.path.abspath(running.executable), "-m", "search_router")  # noqa: PTH100 - a virtual environment's Python is a link


def make_launch(client: Client, command: Sequence[str], roots: Sequence[Path], variables: Sequence[str]) -> Launch:
    """What this client is to start, for these roots (none: the project that is open in it).

    Raises:
        ClientFileError: the client tells its servers no project and no root is named, it has no way to refer to a variable, a variable's
            name is none, or a path is not UTF-8.
    """
    if not roots and client.names_no_project:
        raise ClientFileError(f"{client.title} tells its servers no project.", remedy="Say what to search with --root DIR.")
    if variables and client.variable is None:
        raise ClientFileError(
            f"{client.title} has no way to name an environment variable in its configuration.",
            remedy="Leave --env out, and set the variable where the client itself is started.",
        )
    if wrong := [name for name in variables if not _VARIABLE.match(name)]:
        raise ClientFileError(
            f"{len(wrong)} of the names given with --env is no name of a variable.", remedy="Give the name alone, without a value."
        )
    named = [os.path.abspath(root) for root in roots] or ([client.root] if client.root else [])  # noqa: PTH100 - links stay
    arguments = (*command[1:], "serve", *(word for root in named for word in ("--root", root)))
    try:
        "\0".join((command[0], *arguments)).encode("utf-8")
    except UnicodeEncodeError:
        raise ClientFileError("A path of the command is not UTF-8.", remedy="Name a root, and install, where all names are.") from None
    return Launch(command[0], arguments, tuple(variables))


def make_entry(client: Client, launch: Launch) -> dict[str, object]:
    """The client's entry for this launch, variables by reference."""
    return client.make_entry(launch, {name: (client.variable or "").format(name) for name in launch.variables})
