"""Which commits changed how often a string occurs (git's -S), or changed a line that a pattern matches (-G).

Plumbing, not `git log`: `git diff-tree --stdin --always` looks at exactly the commits that it is given, in that order, and names
each one when it is done, so that a scan can start where the answer most likely is, stop at any time, say how far it came, and go on
from there later. A full scan costs 0.1 to 0.5 ms a commit, so the files that have the term now, under all their former names, come
first.
"""

from __future__ import annotations

import os
import re
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import anyio

from search_router.adapters.local.commit_log import CommitLog
from search_router.adapters.local.commit_stream import Record, RecordParser, text_of
from search_router.adapters.local.git import SAFE_DIFF, git_failure, run_git
from search_router.adapters.local.git_stream import stream_git
from search_router.adapters.local.history_question import Aspect
from search_router.adapters.process import Finished
from search_router.errors import ExpertError, FailureClass

MAX_FILES = 200
NEAR_SHARE = 0.5
"""Of the time for an introduction: its first commit comes early there, the later changes matter less than older ones elsewhere."""
SETTLED_SECONDS = 0.1
"""For an introduction that is settled, so much goes into the search for an earlier life; the whole time when it is asked again."""
MAX_STEPS_BACK = 4
CACHED_SCANS = 64
_DIFF_TREE = (
    "--no-replace-objects",
    "diff-tree",
    "--stdin",
    "--always",
    "-r",
    "--root",
    "-M",
    "-z",
    "--name-status",
    "--relative",
    "--format=%H",
)


@dataclass(frozen=True, slots=True)
class Needle:
    """What to look for in changes: a literal string, or an extended regular expression of POSIX."""

    term: str
    is_regex: bool = False

    @property
    def argument(self) -> str:
        """One argument for git: glued to its option, so that no term can be taken for another option, in UTF-8 under any locale."""
        return os.fsdecode((("-G" if self.is_regex else "-S") + self._text).encode())

    @property
    def pattern(self) -> str:
        """The value of git grep's `-e`."""
        return os.fsdecode(self._text.encode())

    @property
    def _text(self) -> str:
        return posix_pattern(self.term) if self.is_regex else self.term

    @property
    def tail(self) -> Needle | None:
        """The last part of a qualified name, as it stands where it is defined."""
        parts = re.split(r"\.|::|->|#", self.term)
        return Needle(parts[-1]) if not self.is_regex and len(parts) > 1 and len(parts[-1]) > 2 else None


def posix_pattern(pattern: str) -> str:
    r"""The pattern with `\d` and `\D`, which POSIX would silently read as the letters d and D, spelt out."""
    return re.sub(r"\\(.)", lambda m: {"d": "[0-9]", "D": "[^0-9]"}.get(m[1], m[0]), pattern, flags=re.DOTALL)


@dataclass(frozen=True, slots=True)
class Scan:
    """Commits that matched (row to the paths that did), and how far the search came in the near and in the far part.

    `near` and `far` count the commits that are done; `near_hits` are the rows found near, `reached` is the row of the last far one.
    `settled` is the commit before which no file had the term: what it came in with, unless it had been there and gone before.
    """

    needle: Needle
    hits: Mapping[int, tuple[str, ...]] = field(default_factory=dict[int, tuple[str, ...]])
    near_hits: frozenset[int] = frozenset()
    near: int = 0
    near_done: bool = False
    far: int = 0
    far_done: bool = False
    reached: int | None = None
    settled: int | None = None
    failure: str | None = None

    @property
    def complete(self) -> bool:
        return self.near_done and self.far_done


@dataclass(frozen=True, slots=True)
class Ground:
    """Where to dig: the table, the rows that may be looked at (newest first), and the path that limits them."""

    root: Path
    log: CommitLog
    rows: Sequence[int]
    path: str | None = None


class ScanCache:
    """The newest scans of one HEAD, so that a question asked again answers at once, or goes on where its time was up."""

    def __init__(self) -> None:
        self._scans: OrderedDict[tuple[str, ...], Scan] = OrderedDict()

    def get(self, *key: str) -> Scan | None:
        if key in self._scans:
            self._scans.move_to_end(key)
        return self._scans.get(key)

    def put(self, scan: Scan, *key: str) -> None:
        self._scans[key] = scan
        self._scans.move_to_end(key)
        while len(self._scans) > CACHED_SCANS:
            self._scans.popitem(last=False)


async def search_changes(ground: Ground, needle: Needle, aspect: Aspect, until: float, before: Scan | None = None) -> Scan:
    """Look near (the files that have the term now), then far (whole commits), until the clock of anyio says `until`.

    `before` is an earlier scan of the same ground that is continued. For an introduction the near part goes from the oldest commit on,
    and the far part looks only at commits older than the first one found near: nothing newer can be an earlier introduction. Between
    them the tree before that first one is asked whether another file had the term then, and that file's own history is near as well.

    Raises:
        ExpertError: `rejected` for a pattern that git cannot read.
    """
    scan = before or Scan(needle)
    introduction = aspect is Aspect.INTRODUCED
    if not scan.near_done:
        now = anyio.current_time()
        scan = await _search_near(ground, scan, introduction, now + (until - now) * NEAR_SHARE if introduction else until)
    if scan.failure is None and introduction and scan.near_hits and scan.settled is None and not scan.far:
        scan = await _step_back(ground, scan, until)
        if scan.settled is not None:
            until = min(until, anyio.current_time() + SETTLED_SECONDS)
    if scan.failure is None and not scan.far_done and (scan.near_done or (introduction and scan.near_hits)):
        scan = await _search_far(ground, scan, introduction, until)
    if scan.failure is None and scan.far_done and not scan.near_done:  # the first change is settled, time may be left for later ones
        scan = await _search_near(ground, scan, introduction, until)
    return scan


async def _search_near(ground: Ground, scan: Scan, introduction: bool, until: float) -> Scan:
    needle, files = await _files_with(ground, scan.needle)
    names = await anyio.to_thread.run_sync(ground.log.lineage, files)
    touching = await anyio.to_thread.run_sync(ground.log.touching, names)
    rows = [row for row in ground.rows if row in touching]
    wanted = (await anyio.to_thread.run_sync(ground.log.plain_shas, rows[::-1] if introduction else rows))[scan.near :]
    found = await scan_commits(ground.root, needle, wanted, names, until)
    return replace(
        scan,
        needle=needle,
        hits={**found.hits, **scan.hits},
        near_hits=scan.near_hits.union(found.hits),
        near=scan.near + found.looked,
        near_done=found.looked == len(wanted),
        failure=found.failure,
    )


async def _step_back(ground: Ground, scan: Scan, until: float) -> Scan:
    """From the first commit with the term on, look for it in the tree before, and in the history of the files that have it there."""
    places = {row: index for index, row in enumerate(ground.rows)}
    for _ in range(MAX_STEPS_BACK):
        first = max(scan.near_hits, key=places.__getitem__)
        (sha,) = (sha for _, sha in await anyio.to_thread.run_sync(ground.log.plain_shas, [first]))
        files: list[str] | None = None
        with anyio.move_on_after(until - anyio.current_time()):
            files = await _grep_tree(ground, scan.needle, sha)
        if files == []:
            return replace(scan, settled=first)
        if files is None:
            return scan
        names = await anyio.to_thread.run_sync(ground.log.lineage, files)
        touching = await anyio.to_thread.run_sync(ground.log.touching, names)
        older = [row for row in ground.rows[places[first] + 1 :] if row in touching]
        wanted = await anyio.to_thread.run_sync(ground.log.plain_shas, older[::-1])
        found = await scan_commits(ground.root, scan.needle, wanted, names, until)
        # Unfinished, or found nothing (a merge brought it in): the far part looks at every commit.
        done = found.looked == len(wanted) and found.failure is None
        scan = replace(scan, hits={**found.hits, **scan.hits}, near_hits=scan.near_hits.union(found.hits), failure=found.failure)
        if not done or not found.hits:
            return scan
    return scan


async def _grep_tree(ground: Ground, needle: Needle, sha: str) -> list[str] | None:
    """Files that had the term just before a commit; None when git cannot tell."""
    parents = await run_git(ground.root, "--no-replace-objects", "rev-list", "--parents", "--max-count=1", sha)
    if parents.returncode != 0:
        return None
    before = parents.stdout.decode("ascii", "replace").split()[1:2]
    return await _grep(ground, needle, before[0]) if before else []


async def _search_far(ground: Ground, scan: Scan, introduction: bool, until: float) -> Scan:
    # The list must not depend on what this part finds itself, or a scan could not be continued by counting.
    rows: Sequence[int] = ground.rows
    if introduction and scan.near_hits:
        places = {row: index for index, row in enumerate(rows)}
        rows = rows[max(places[row] for row in scan.near_hits) + 1 :]
    wanted = await anyio.to_thread.run_sync(ground.log.plain_shas, rows)
    rest = wanted[scan.far :]
    found = await scan_commits(ground.root, scan.needle, rest, [ground.path or "."], until)
    far = scan.far + found.looked
    hits = {**scan.hits, **found.hits}  # the same commit without a limit on paths names more of them
    reached = wanted[far - 1][0] if far else None
    return replace(scan, hits=hits, far=far, far_done=far == len(wanted), reached=reached, failure=found.failure)


async def _files_with(ground: Ground, needle: Needle) -> tuple[Needle, list[str]]:
    """Files of the work tree that have the term, and the term: a qualified name that nobody writes out gives way to its last part."""
    files = await _grep(ground, needle) or []
    if not files and (tail := needle.tail) is not None and (found := await _grep(ground, tail)):
        return tail, found
    return needle, files


async def _grep(ground: Ground, needle: Needle, tree: str | None = None) -> list[str] | None:
    """The files of the work tree, or of a commit, that have the term; None when git cannot tell."""
    form = "-E" if needle.is_regex else "-F"
    options = ("-l", "-z", "-I", "--no-recurse-submodules", "--no-textconv", "--no-color", form, "-e", needle.pattern)
    where = () if tree is None else (tree,)
    config = ("--no-replace-objects", "-c", "grep.fullName=false")
    finished = await run_git(ground.root, *config, "grep", *options, *where, "--", ground.path or ".", max_bytes=2**20)
    if _is_bad_pattern(needle, finished):
        raise _rejected(needle, finished)
    if finished.returncode not in (0, 1):
        return None  # a bare repository has no work tree; the far part looks at every commit
    prefix = "" if tree is None else f"{tree}:"
    return [text_of(name).removeprefix(prefix) for name in finished.stdout.split(b"\0")[:-1]][:MAX_FILES]


class _Tally:
    """Counts the commits that git has finished, and keeps those that matched."""

    def __init__(self, names: Sequence[tuple[int, str]]) -> None:
        self._rows = {sha: row for row, sha in names}
        self._parser = RecordParser(fields=1)
        self.hits: dict[int, tuple[str, ...]] = {}
        self.looked = 0
        self.failure: str | None = None

    async def take(self, chunk: bytes) -> None:
        self._count(self._parser.feed(chunk))

    def close(self) -> None:
        self._count(self._parser.close())

    def _count(self, records: Sequence[Record]) -> None:
        for record in records:
            self.looked += 1
            if record.changes:
                row = self._rows[text_of(record.fields[0])]
                self.hits[row] = tuple(change.path for change in record.changes)


async def scan_commits(root: Path, needle: Needle, names: Sequence[tuple[int, str]], paths: Sequence[str], until: float) -> _Tally:
    """Which of these (row, commit name) match in these paths, in this order, as far as the time goes.

    When git itself fails (a damaged object), what it found before stands, and `failure` says why it stopped.

    Raises:
        ExpertError: `rejected` for a bad pattern; `protocol-error`.
    """
    tally = _Tally(names)
    if not names:
        return tally
    arguments = (*_DIFF_TREE, *SAFE_DIFF, needle.argument, "--", *(os.fsdecode(path.encode()) for path in paths))
    stdin = "".join(f"{sha}\n" for _, sha in names).encode()
    finished: Finished | None = None
    try:
        with anyio.move_on_after(until - anyio.current_time()):
            finished = await stream_git(root, *arguments, on_chunk=tally.take, stdin=stdin)
        if finished is not None and finished.returncode == 0:
            tally.close()
    except (ValueError, KeyError) as error:
        raise ExpertError(FailureClass.PROTOCOL_ERROR, f"git diff-tree in {root} answered in another format: {error}.") from error
    if finished is not None and finished.returncode != 0:
        if _is_bad_pattern(needle, finished):
            raise _rejected(needle, finished)
        tally.failure = git_failure(root, finished).message
    return tally


def _is_bad_pattern(needle: Needle, finished: Finished) -> bool:
    return needle.is_regex and finished.returncode == 128 and ("-e option" in finished.stderr or "invalid regex" in finished.stderr)


def _rejected(needle: Needle, finished: Finished) -> ExpertError:
    return ExpertError(
        FailureClass.REJECTED,
        f"git cannot read the pattern {needle.term[:200]!r}: {finished.stderr.splitlines()[-1][:200]}.",
        remedy="Use a POSIX extended regular expression.",
    )
