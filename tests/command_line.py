"""The command line in a child process, as a user's shell starts it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

SECONDS = 30


@dataclass(frozen=True, slots=True)
class Ended:
    code: int
    stdout: bytes
    stderr: str

    @property
    def json(self) -> Any:
        return json.loads(self.stdout, parse_constant=_refuse)

    @property
    def lines(self) -> list[Any]:
        return [json.loads(line, parse_constant=_refuse) for line in self.stdout.splitlines()]


def _refuse(name: str) -> None:
    raise AssertionError(f"{name} is not JSON")


def child_environ(folder: Path, more: Mapping[str, str | None] | None = None) -> dict[str, str]:
    """Our environment with a state directory of the test's own; None takes a variable away."""
    config = folder / "user.toml"
    config.touch()
    given: dict[str, str | None] = {
        **{k: v for k, v in os.environ.items() if not k.startswith(("SEARCH_ROUTER_", "LC_", "LANG", "PYTHONUTF8"))},
        "PYTHONPATH": str(Path(__file__).parent.parent),
        "PYTHONDONTWRITEBYTECODE": None,  # compiling everything anew takes half of a child's time
        "SEARCH_ROUTER_HOME": str(folder / "home"),
        "SEARCH_ROUTER_CONFIG": str(config),
        **(more or {}),
    }
    return {k: v for k, v in given.items() if v is not None}


def run_cli(
    folder: Path,
    *arguments: str | bytes,
    stdin: bytes = b"",
    environ: Mapping[str, str | None] | None = None,
    launcher: Sequence[str] = ("-W", "error", "-m", "search_router"),
    preexec: Callable[[], None] | None = None,
) -> Ended:
    """Run it to the end; a traceback on standard error fails the test, whatever the exit code."""
    finished = subprocess.run(
        [sys.executable, *launcher, *arguments],
        input=stdin,
        env=child_environ(folder, environ),
        cwd=folder,
        capture_output=True,
        timeout=SECONDS,
        check=False,
        preexec_fn=preexec,
    )
    ended = Ended(finished.returncode, finished.stdout, finished.stderr.decode("utf-8", "replace"))
    assert "Traceback" not in ended.stderr, ended.stderr[-3000:]
    return ended
