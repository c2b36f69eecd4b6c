"""How this package calls git: argument-safe, read-only, deaf to a repository's own programs.

A repository's configuration may name programs (fsmonitor, hooks, external diff, textconv) and a hostile one would use them, so they
are all switched off; optional locks too, so that a reader never blocks the owner's git.
"""

from __future__ import annotations

import shutil
from pathlib import Path

from search_router.adapters.process import Finished, run_command
from search_router.errors import ExpertError, FailureClass

ENVIRONMENT = {
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_NO_LAZY_FETCH": "1",
    "GIT_LITERAL_PATHSPECS": "1",
    "GIT_PAGER": "cat",
    "LC_ALL": "C",
}
SAFE = ("-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null", "-c", "core.quotePath=false", "-c", "log.showSignature=false")
SAFE_DIFF = ("--no-ext-diff", "--no-textconv", "--no-color")


def git_argv(*arguments: str) -> list[str]:
    """The command line for one git call; user text must stand behind an option that takes a value, or after `--`."""
    return ["git", *SAFE, *arguments]


async def run_git(root: Path, *arguments: str, stdin: bytes | None = None, max_bytes: int = 64 * 2**20) -> Finished:
    """Run git in `root`; the return code is the caller's to judge. Raises ExpertError `spawn-failed` when git is missing."""
    return await run_command(git_argv(*arguments), cwd=root, env=ENVIRONMENT, stdin=stdin, max_bytes=max_bytes)


def is_git_missing(error: ExpertError) -> bool:
    """Whether a call failed because there is no git at all."""
    return error.failure is FailureClass.SPAWN_FAILED and shutil.which("git") is None


def git_failure(root: Path, finished: Finished) -> ExpertError:
    """The classified error of a git call that failed."""
    text = finished.stderr.splitlines()[-1] if finished.stderr else f"exit code {finished.returncode}"
    if "dubious ownership" in finished.stderr:
        return ExpertError(
            FailureClass.UNAVAILABLE,
            f"git refuses {root}: it belongs to another user.",
            remedy=f"Run `git config --global --add safe.directory {root}` if you trust it.",
            detail=finished.stderr,
        )
    if "not a git repository" in finished.stderr:
        return ExpertError(FailureClass.UNAVAILABLE, f"{root} is not a git repository.", detail=finished.stderr)
    return ExpertError(FailureClass.CRASHED, f"git failed in {root}: {text}", detail=finished.stderr)
