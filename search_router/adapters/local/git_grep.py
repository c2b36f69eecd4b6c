"""`git grep` as the engine of the `grep` expert where there is no ripgrep: its command line, its output, its exit codes.

It reads the work tree by git's own rules. It cannot read UTF-16 files and knows no limit of file size.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Sequence
from pathlib import Path

from search_router.adapters.local.git import ENVIRONMENT, git_argv, git_failure
from search_router.adapters.local.grep_matches import LINE_KEPT, LineMatch, MatchEvent, Unread, cut_line, for_system
from search_router.adapters.local.grep_patterns import Patterns
from search_router.adapters.process import Finished
from search_router.errors import ExpertError, FailureClass

# The C locale would read bytes: case folding and \w beyond ASCII need a UTF-8 one.
GIT_GREP_ENVIRONMENT = {**ENVIRONMENT, "LC_ALL": "C.UTF-8"}
_UNREAD = re.compile(r"^(?:warning|error): (?:[a-z ]*)?'?(.*?)/?'?: ([^:]*)$")
_GONE = "No such file or directory"
GIT_GREP_NOTE = "git grep searched here, because ripgrep is not installed: UTF-16 and UTF-32 files are not searched"


def git_grep_listing(*, threads: int, is_git: bool, tracked_only: bool = False) -> list[str]:
    """The part of the command line that chooses files: tracked and untracked ones that no rule ignores, never binary ones."""
    argv = git_argv("grep", "-I", "--no-color", "--no-recurse-submodules", "--no-textconv", f"--threads={threads}")
    if not is_git:
        return [*argv, "--no-index", "--exclude-standard"]
    return argv if tracked_only else [*argv, "--untracked", "--exclude-standard"]


def git_grep_search(listing: Sequence[str], patterns: Patterns, paths: Sequence[str]) -> list[str]:
    """The whole command line: user text only behind `-e`, paths only behind `--` (and literal, by GIT_LITERAL_PATHSPECS)."""
    return [*listing, "--null", "--line-number", "--column", "--no-heading", "--no-break", *_pattern_options(patterns), "--", *paths]


def git_grep_count(listing: Sequence[str], patterns: Patterns, paths: Sequence[str]) -> list[str]:
    """The command line that prints `path NUL match` for every match, a line each."""
    bare = ("--only-matching", "-H", "--null", "--no-line-number", "--no-column", "--no-heading", "--no-break")
    return [*listing, *bare, *_pattern_options(patterns), "--", *paths]


def _pattern_options(patterns: Patterns) -> list[str]:
    argv = ["--fixed-strings" if patterns.fixed else "--perl-regexp"]
    if patterns.ignore_case:
        argv.append("--ignore-case")
    if patterns.whole_words:
        argv.append("--word-regexp")
    for spelling in patterns.spellings:
        argv += ["-e", for_system(spelling)]
    return argv


def judge_git_grep(root: Path, code: int, stderr: str, *, found: bool) -> str | None:
    """A note for the caller when git complained, None when it did not.

    Raises:
        ExpertError: `rejected` for a pattern that is no regex; what `git_failure` says for any other failure without matches.
    """
    lines = [line for line in stderr.splitlines() if line.strip()]
    if code in (0, 1):
        return f"{len(lines)} path(s) could not be read, the first: {lines[0][:200]}" if lines else None
    first = lines[0] if lines else ""
    if "-e option" in first or "command line," in first or "Perl-compatible" in first:
        # git repeats the whole pattern; only what it says about it is of use.
        said = first.rpartition("': ")[2] or first
        raise ExpertError(
            FailureClass.REJECTED,
            f"The pattern is not a regular expression that git grep can run: {said.removeprefix('fatal: ')[:200]}.",
            remedy="Mend the pattern, or ask for it as a quoted string.",
        )
    if found:
        return f"git grep ended with exit code {code}: {first[:200]}"
    raise git_failure(root, Finished(code, b"", stderr))


def unread_by_git_grep(stderr: str) -> tuple[Unread, ...]:
    """Files and directories that it could not read. One that has gone meanwhile hides nothing."""
    found = (_UNREAD.match(line) for line in stderr.splitlines())
    return tuple(Unread(each[1], each[2]) for each in found if each is not None and each[2] != _GONE)


class GitGrepReader:
    """Reads `path NUL line NUL column NUL text LF` records. A path may have line breaks in it, the text has none."""

    def __init__(self, max_columns: int) -> None:
        self._max_columns = max_columns
        self._held = bytearray()
        self._dropping = False

    def feed(self, chunk: bytes) -> Iterable[MatchEvent]:
        if self._dropping:
            _, found, chunk = chunk.partition(b"\n")
            if not found:
                return
            self._dropping = False
        self._held += chunk
        at = 0
        while True:
            path_end = self._held.find(b"\0", at)
            line_end = self._held.find(b"\0", path_end + 1)
            column_end = self._held.find(b"\0", line_end + 1)
            if path_end < 0 or line_end < 0 or column_end < 0:
                break
            start = column_end + 1
            end = self._held.find(b"\n", start)
            if end < 0 and len(self._held) - start < LINE_KEPT:
                break
            raw = self._held[start : end if end >= 0 else start + LINE_KEPT].decode("utf-8", "replace")
            text, is_cut = cut_line(raw, (), self._max_columns)
            path = os.fsdecode(bytes(self._held[at:path_end])).removeprefix("./")
            yield LineMatch(path, int(self._held[path_end + 1 : line_end]), text, is_cut or end < 0)
            if end < 0:
                self._held.clear()
                self._dropping = True
                return
            at = end + 1
        del self._held[:at]
