"""Keeps the commit table of one project in step with its HEAD, in the background.

The first question starts the reading; who asks meanwhile is answered from what is there. The task is the reader's own: it goes on
after the call that started it, and ends with `aclose`.
"""

from __future__ import annotations

import asyncio
import hashlib
import sqlite3
from array import array
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path

import anyio

from search_router.adapters.local.commit_log import FORMAT_VERSION, CommitLog, NoRoom, Reading, move_table_aside, says_damage
from search_router.adapters.local.commit_stream import FORMAT, HEADER, Record, RecordParser, commit_of
from search_router.adapters.local.commit_summary import ARGUMENTS, SummaryParser
from search_router.adapters.local.disk_space import DEFAULT_RESERVE, Reserve
from search_router.adapters.local.git import SAFE_DIFF, git_failure, run_git
from search_router.adapters.local.git_stream import stream_git
from search_router.adapters.local.gitfiles import common_dir, find_git_dir
from search_router.adapters.local.gitfiles import read_head as read_git_files
from search_router.adapters.process import Finished
from search_router.errors import ExpertError, FailureClass

SLICE_BYTES = 256 * 1024
"""So much of git's output is parsed and stored in one go, in a worker thread: some 50 ms."""
MAX_SUMMARISED = 50_000
"""Of so many newest commits the changes are searched as words; older ones by message, path and pickaxe."""
MAX_REWRITTEN = 5000
"""When HEAD left more commits than this behind, everything is read anew."""


@dataclass(frozen=True, slots=True)
class Head:
    """The repository as one `git rev-parse` saw it. `prefix` is the project's folder inside it, with a slash at the end, or empty."""

    sha: str
    prefix: str
    common_dir: Path
    boundary: frozenset[str] = frozenset()

    @property
    def is_shallow(self) -> bool:
        return bool(self.boundary)


async def read_head(root: Path) -> Head | None:
    """Where HEAD is now, in about 3 ms; None when the repository has no commit yet.

    Raises:
        ExpertError: `unavailable` when it is no repository or belongs to another user, `crashed`, `spawn-failed`.
    """
    finished = await run_git(root, "rev-parse", "--is-shallow-repository", "HEAD", "--show-prefix", "--git-common-dir")
    lines = finished.stdout.decode("utf-8", "surrogateescape").split("\n")
    if finished.returncode != 0:
        if lines[1:2] == ["HEAD"] and "broken ref" not in finished.stderr:
            return None
        raise git_failure(root, finished)
    if len(lines) != 5:
        raise ExpertError(FailureClass.PROTOCOL_ERROR, f"git rev-parse in {root} gave {len(lines) - 1} lines where 4 belong.")
    shallow, sha, prefix, common = lines[:4]
    common_dir = (root / common).resolve()
    boundary = await anyio.to_thread.run_sync(_boundary, common_dir) if shallow == "true" else frozenset[str]()
    return Head(sha, prefix, common_dir, boundary)


class HeadWatch:
    """HEAD of one project, asked of git again only when the repository's files say that it may be another one."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._seen: tuple[object, ...] | None = None
        self._head: Head | None = None

    async def read(self) -> Head | None:
        """As `read_head`; raises as it does."""
        seen = await anyio.to_thread.run_sync(self._look)
        if seen is None or seen != self._seen:
            self._seen = None
            self._head = await read_head(self._root)
            self._seen = seen  # of before git looked: what changed between is seen as a change next time
        return self._head

    def _look(self) -> tuple[object, ...] | None:
        """What HEAD and the limits of the history depend on; None when the files do not tell."""
        git_dir = find_git_dir(self._root)
        told = read_git_files(self._root)
        if git_dir is None or told is None or told.commit is None:
            return None
        try:
            info = (common_dir(git_dir) / "shallow").stat()
        except OSError:
            return git_dir, told.commit, None
        return git_dir, told.commit, (info.st_mtime_ns, info.st_size, info.st_ino)


def _boundary(shared: Path) -> frozenset[str]:
    try:
        return frozenset((shared / "shallow").read_text("ascii").split())
    except FileNotFoundError:  # deepened to the full history since git looked
        return frozenset()


async def is_partial_clone(root: Path) -> bool:
    """Whether file contents may be missing here (clone --filter): looking at them would fail or go to the network."""
    finished = await run_git(root, "config", "--get-regexp", r"^remote\..*\.promisor$")
    return finished.returncode == 0 and b" true\n" in finished.stdout


class Pursuit:
    """One piece of work in the background that can be stopped. `finished` is true only when it came to its end."""

    def __init__(self, work: Callable[[], Awaitable[None]]) -> None:
        self.finished = False
        self._scope = anyio.CancelScope()  # not asyncio's own cancel: that one does not respect what a child process shields
        self._task = asyncio.get_running_loop().create_task(self._run(work))

    async def _run(self, work: Callable[[], Awaitable[None]]) -> None:
        with self._scope:
            await work()
            self.finished = True

    @property
    def ended(self) -> bool:
        """Whether it runs no more, however it came out."""
        return self._task.done()

    @property
    def failed(self) -> bool:
        return self._task.done() and not self.finished

    async def wait(self, seconds: float) -> None:
        """Wait at most so long, and raise what the work raised."""
        await asyncio.wait({self._task}, timeout=seconds)
        if self._task.done() and not self._task.cancelled():
            self._task.result()

    async def stop(self) -> None:
        """End it now, whatever it does."""
        self._scope.cancel()
        await asyncio.wait({self._task})
        if not self._task.cancelled():
            self._task.exception()  # taken, so that asyncio does not log it


class CommitReader:
    """One project's commits. `rows` and `alive` grow while a reading runs; `log` is where their data is."""

    def __init__(self, root: Path, max_commits: int, cache_dir: Path, reserve: Reserve = DEFAULT_RESERVE) -> None:
        self.root = root
        self.log: CommitLog | None = None
        self.rows: array[int] = array("I")
        self.alive: set[int] = set()
        self.total: int | None = None
        self.is_partial_clone = False
        self.store_note: str | None = None
        self.summary_note: str | None = None
        self._summary: Pursuit | None = None
        self._max_commits = max_commits
        self._cache_dir = cache_dir
        self._reserve = reserve
        self._place: tuple[Path, str, frozenset[str]] | None = None
        self._damage: sqlite3.Error | None = None  # of the stored table, to be dealt with by the next reading
        self._head: Head | None = None  # what `rows` follow, or are on the way to
        self._pursuit: Pursuit | None = None

    @property
    def is_complete(self) -> bool:
        """Whether everything that HEAD reaches is in `rows`."""
        return self._pursuit is not None and self._pursuit.finished

    def follow(self, head: Head) -> None:
        """Start to read what is missing for this HEAD, unless that is done or under way."""
        earlier = self._pursuit
        if head == self._head and earlier is not None and not earlier.failed and self._damage is None:
            return
        self._head = head
        self._pursuit = Pursuit(lambda: self._bring_up(head, earlier))

    async def wait(self, seconds: float) -> None:
        """Wait until the reading is complete, at most so long.

        Raises:
            ExpertError: the reading failed; the next `follow` starts it again.
        """
        if self._pursuit is not None:
            await self._pursuit.wait(max(0.0, seconds))

    async def wait_for_summaries(self, seconds: float) -> None:
        """Start to summarise the changes of what was read, if that is not done or under way, and wait for it at most so long."""
        head = self._head
        if not self.is_complete or head is None or head.is_shallow or self.is_partial_clone:
            return
        if self._summary is None:
            self._summary = Pursuit(self._summarise)
        await self._summary.wait(max(0.0, seconds))

    @property
    def is_summarised(self) -> bool:
        """Whether changes are searched as words as far as they can be: a shallow or partial clone has none to read."""
        return self._summary is None or self._summary.finished

    async def distrust(self, error: sqlite3.Error) -> None:
        """Give the stored table up: the next `follow` moves it aside when it is damaged, and reads everything anew."""
        await self._stop()
        self._damage, self._head = error, None

    async def aclose(self) -> None:
        """End the reading and close the table; safe to call twice."""
        with anyio.CancelScope(shield=True):
            await self._stop()
            log, self.log = self.log, None
            if log is not None:
                await anyio.to_thread.run_sync(log.close)

    async def _stop(self) -> None:
        pursuit, self._pursuit = self._pursuit, None
        if pursuit is not None:
            await pursuit.stop()
        await self._stop_summary()

    async def _stop_summary(self) -> None:
        summary, self._summary = self._summary, None
        if summary is not None:
            await summary.stop()

    # -------------------------------------------------------------- the background task

    async def _bring_up(self, head: Head, earlier: Pursuit | None) -> None:
        if earlier is not None:
            await earlier.stop()
        await self._stop_summary()
        damage, self._damage = self._damage, None
        try:
            if damage is not None:
                await self._set_aside(head, damage)
            await self._open(head)
            await self._read(head)
            return
        except sqlite3.Error as error:
            damage = error
        except OSError as error:
            await self._read_into_memory(head, error)
            return
        try:
            await self._set_aside(head, damage)
            await self._open(head)
            await self._read(head)
        except (sqlite3.Error, OSError) as error:
            await self._read_into_memory(head, error)

    async def _open(self, head: Head) -> None:
        place = (head.common_dir, head.prefix, head.boundary)
        if self.log is not None and self._place == place:
            return
        if self.log is not None:
            self.log.close()
        self._place, self.rows, self.alive = place, array("I"), set()
        self.is_partial_clone = await is_partial_clone(self.root)
        # A shallow clone's oldest commits seem to add everything; such rows must never be shared with a full clone.
        self.log = await anyio.to_thread.run_sync(CommitLog, None if head.is_shallow else self._store(head), self._reserve)

    def place_of(self, head: Head, what: str) -> Path:
        """Where a table of this project's commits is kept; `what` names it, with its version."""
        name = hashlib.sha256(f"{head.common_dir}\0{head.prefix}\0{self.is_partial_clone}".encode("utf-8", "surrogateescape")).hexdigest()[
            :24
        ]
        return self._cache_dir / f"{what}-{name}.sqlite"

    def _store(self, head: Head) -> Path:
        return self.place_of(head, f"history-v{FORMAT_VERSION}")

    async def _set_aside(self, head: Head, damage: sqlite3.Error) -> None:
        """Move the damaged table out of the way, so that a new one is made in its place.

        Raises:
            sqlite3.Error: this very one, when it says nothing about the file's health, or there is no file.
            OSError: the file cannot be moved.
        """
        if head.is_shallow or not says_damage(damage):
            raise damage
        log, self.log, self._place = self.log, None, None
        if log is not None:
            log.close()
        aside = await anyio.to_thread.run_sync(move_table_aside, self._store(head), log.inode if log is not None else None)
        self.store_note = f"The history cache was damaged ({damage}); it was moved to {aside}, and the commits were read anew."

    async def _read_into_memory(self, head: Head, error: sqlite3.Error | OSError) -> None:
        if self.log is not None:
            self.log.close()
        self.log, self.rows, self.alive = CommitLog(None), array("I"), set()
        self._place = (head.common_dir, head.prefix, head.boundary)
        if isinstance(error, NoRoom):
            self.store_note = f"Nothing more is kept in the history cache {self._cache_dir}: {error}. Commits are read into memory."
            return
        self.store_note = (
            f"The history cache in {self._cache_dir} cannot be used ({error}); commits are read into memory for this process. "
            "Make its directory writable, and leave room on its disk."
        )
        await self._read(head)

    async def _read(self, head: Head) -> None:
        assert self.log is not None
        saved = await anyio.to_thread.run_sync(self.log.reading, head.sha, self._max_commits)
        if saved is not None and saved.complete:
            self._start_from(saved.rows)
            return
        if saved is None and await self._read_difference(head):
            return
        self._start_from(array("I") if saved is None else saved.rows)
        await self._count_commits(head)
        await self._read_log(self.rows, (f"--skip={len(self.rows)}", head.sha), keep_for=head)
        await self._save(head)

    async def _read_difference(self, head: Head) -> bool:
        """Read only what the newest complete reading lacks, and drop what HEAD has left; False when there is nothing to build on."""
        assert self.log is not None
        base = await anyio.to_thread.run_sync(self.log.latest_reading, self._max_commits)
        if base is None:
            return False
        scope = ("--", ".") if head.prefix else ("--",)
        limit = f"--max-count={MAX_REWRITTEN + 1}"
        left = await run_git(self.root, "--no-replace-objects", "rev-list", limit, base.head, f"^{head.sha}", *scope)
        gone = left.stdout.decode("ascii", "replace").split()
        if left.returncode != 0 or len(gone) > MAX_REWRITTEN:  # its old HEAD was pruned, or it is another history
            return False
        dead = set((await anyio.to_thread.run_sync(self.log.rows_of, gone)).values())
        fresh: array[int] = array("I")
        await self._read_log(fresh, (head.sha, f"^{base.head}"))
        dead.update(fresh)
        self._start_from((fresh + array("I", (row for row in base.rows if row not in dead)))[: self._max_commits])
        await self._save(head)
        return True

    async def _read_log(self, rows: array[int], what: tuple[str, ...], *, keep_for: Head | None = None) -> None:
        """Stream `git log` into the table and append to `rows`; with `keep_for`, each slice also saves how far that reading has come."""
        room = self._max_commits - len(rows)
        if room <= 0:
            return
        parser, buffer = RecordParser(len(HEADER)), bytearray()

        async def absorb(chunk: bytes) -> None:
            buffer.extend(chunk)
            if len(buffer) >= SLICE_BYTES:
                data = bytes(buffer)
                buffer.clear()
                await self._store_slice(rows, lambda: parser.feed(data), keep_for)

        detect = "-M100%" if self.is_partial_clone else "-M"  # likeness needs contents, which a partial clone lacks
        options = ("-z", "--name-status", detect, "--diff-merges=off", "--relative", "--encoding=UTF-8", *SAFE_DIFF, FORMAT)
        config = ("-c", "log.showRoot=true", "-c", "log.follow=false", "--no-replace-objects")
        scope = ("--", ".") if self._place is not None and self._place[1] else ("--",)
        finished = await stream_git(self.root, *config, "log", *options, f"--max-count={room}", *what, *scope, on_chunk=absorb)
        if finished.returncode != 0:
            raise git_failure(self.root, finished)
        await self._store_slice(rows, lambda: parser.feed(bytes(buffer)) + parser.close(), keep_for)

    async def _store_slice(self, rows: array[int], parse: Callable[[], list[Record]], keep_for: Head | None) -> None:
        log = self.log
        assert log is not None
        progress = None if keep_for is None else (keep_for.sha, self._max_commits, rows[:])

        def absorb() -> list[int]:
            return log.add([commit_of(record) for record in parse()], progress)

        try:
            added = await anyio.to_thread.run_sync(absorb)
        except ValueError as error:
            raise ExpertError(FailureClass.PROTOCOL_ERROR, f"git log in {self.root} answered in another format: {error}.") from error
        rows.extend(added)
        if rows is self.rows:
            self.alive.update(added)

    async def _summarise(self) -> None:
        """Read the patches of the newest commits that have no summary, newest first. A failure costs the summaries, never the answer."""
        log = self.log
        assert log is not None
        try:
            rows = await anyio.to_thread.run_sync(log.without_summary, self.rows[:MAX_SUMMARISED].tolist())
            if not rows:
                return
            names = await anyio.to_thread.run_sync(log.plain_shas, rows)
            by_name = {sha: row for row, sha in names}
            parser, buffer = SummaryParser(), bytearray()

            async def absorb(chunk: bytes) -> None:
                buffer.extend(chunk)
                if len(buffer) >= SLICE_BYTES:
                    data = bytes(buffer)
                    buffer.clear()
                    await anyio.to_thread.run_sync(keep, data)

            def keep(data: bytes, last: bool = False) -> None:
                found = [*parser.feed(data), *(parser.close() if last else [])]
                log.add_summaries([(by_name[s.sha], s.words) for s in found if s.sha in by_name])

            stdin = "".join(f"{sha}\n" for _, sha in names).encode()
            finished = await stream_git(self.root, "--no-replace-objects", *ARGUMENTS, *SAFE_DIFF, "--", ".", on_chunk=absorb, stdin=stdin)
            if finished.returncode != 0:
                raise git_failure(self.root, finished)
            await anyio.to_thread.run_sync(keep, bytes(buffer), True)
        except (ExpertError, sqlite3.Error) as error:
            self.summary_note = f"changes were not summarised, messages and paths were searched: {error}"
            if isinstance(error, sqlite3.Error) and log.path is not None and says_damage(error):
                self._damage = error

    async def _count_commits(self, head: Head) -> None:
        if head.prefix:
            return  # counting those of a folder costs as much as reading them
        limit = f"--max-count={self._max_commits}"
        counted: Finished = await run_git(self.root, "--no-replace-objects", "rev-list", "--count", limit, head.sha, "--")
        self.total = int(counted.stdout) if counted.returncode == 0 else None

    async def _save(self, head: Head) -> None:
        assert self.log is not None
        await anyio.to_thread.run_sync(self.log.save, Reading(head.sha, self.rows[:], complete=True), self._max_commits)

    def _start_from(self, rows: array[int]) -> None:
        self.rows, self.alive = rows, set(rows)
