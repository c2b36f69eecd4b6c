"""`bench compare` for the console, in a process of its own: it loads scipy, reads whole receipt logs and is none of the server's business.

Nothing here imports the benchmark: the command line is the one door to it.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple

import anyio

from search_router.adapters.process import Finished, run_command
from search_router.console.bench_folders import Folder, RunsUnavailable
from search_router.console.shown import members
from search_router.errors import ExpertError

SECONDS: Final = 60.0
"""For waiting until an earlier comparison is done and for comparing, together."""
MAX_BYTES: Final = 2**20
FRESH_SECONDS: Final = 300.0
"""How long a comparison is shown again: receipts that are deleted later are missed then."""
KEPT: Final = 50
SAYS: Final = "search-router: "
"""How the command line begins when it says why it cannot do what was asked."""
_ARGV: Final = (sys.executable, "-P", "-m", "search_router", "bench", "compare", "--json")


class Compared(NamedTuple):
    """The JSON of `bench compare`, or why the two runs cannot be compared; and when, as Unix microseconds."""

    said: Mapping[str, Any]
    refused: str
    time_us: int


class RunComparer:
    """One comparison at a time, each remembered for FRESH_SECONDS."""

    def __init__(self) -> None:
        self._turn = anyio.Lock()
        self._kept: dict[tuple[Folder, Folder, str], tuple[float, Compared]] = {}

    async def compare(self, first: Folder, second: Folder, arm: str) -> Compared:
        """Second against first. Raises RunsUnavailable when that takes too long or fails."""
        with anyio.move_on_after(SECONDS):
            async with self._turn:
                return await self._compare((first, second, arm))
        raise RunsUnavailable(
            f"Comparing the runs took more than {SECONDS:g} s.", remedy="Ask again, or run `search-router bench compare` in a terminal."
        )

    async def _compare(self, key: tuple[Folder, Folder, str]) -> Compared:
        now = time.monotonic()
        self._kept = {k: kept for k, kept in self._kept.items() if kept[0] > now}
        if key in self._kept:
            return self._kept[key][1]
        first, second, arm = key
        argv = [*_ARGV, f"--arm={arm}", "--", str(first.path), str(second.path)]
        try:
            compared = _read(await run_command(argv, cwd=_working_directory(), max_bytes=MAX_BYTES))
        except ExpertError as error:
            raise RunsUnavailable(f"The runs could not be compared: {error}") from error
        if len(self._kept) < KEPT:
            self._kept[key] = (now + FRESH_SECONDS, compared)
        return compared


def _read(done: Finished) -> Compared:
    now = time.time_ns() // 1000
    if done.returncode and not done.stdout and done.stderr.startswith(SAYS):
        return Compared({}, done.stderr.removeprefix(SAYS), now)
    try:
        said = members(None if done.cut else json.loads(done.stdout))
    except (ValueError, RecursionError):
        said = members(None)
    if done.returncode not in (0, 1) or not said:
        raise RunsUnavailable(
            f"`bench compare` ended with exit code {done.returncode} and no figures.",
            remedy="One of the folders is not as `bench run` left it: run it in a terminal to see more.",
        )
    return Compared(said, "", now)


def _working_directory() -> Path:
    """Ours, for the sake of a relative PYTHONPATH; `-P` keeps Python from importing what lies in it."""
    try:
        return Path.cwd()
    except FileNotFoundError:
        return Path("/")
