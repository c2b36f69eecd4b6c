"""Runs one grep engine over one project and feeds what it finds into the tally, within bounds of matches and bytes."""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import anyio
from anyio.abc import ByteReceiveStream

from search_router.adapters.local.git import run_git
from search_router.adapters.local.git_grep import (
    GIT_GREP_ENVIRONMENT,
    GitGrepReader,
    git_grep_count,
    git_grep_listing,
    git_grep_search,
    judge_git_grep,
    unread_by_git_grep,
)
from search_router.adapters.local.grep_census import Census, CensusReader
from search_router.adapters.local.grep_engine import Engine
from search_router.adapters.local.grep_matches import FileEnd, LineMatch, MatchReader, RunEnd, Unread
from search_router.adapters.local.grep_rank import Tally
from search_router.adapters.local.grep_scope import Ownership, globs_for_language, is_of_language, is_real_file
from search_router.adapters.local.languages import language_of, languages_named
from search_router.adapters.local.manifest import is_ignored
from search_router.adapters.local.ripgrep import (
    RipgrepReader,
    judge_ripgrep,
    ripgrep_count,
    ripgrep_listing,
    ripgrep_search,
    unread_by_ripgrep,
)
from search_router.adapters.local.withheld import withholds
from search_router.adapters.process import open_child
from search_router.config.experts import GrepConfig
from search_router.errors import ExpertError, FailureClass
from search_router.schema import Project

MAX_MATCHES = 20_000
"""Matching lines read in one call, over all projects."""
WORD_MATCHES = 2_000
"""Matching lines of the words of a question that are read as they come; with more, matches are counted first."""
MAX_STREAM_BYTES = 128 * 2**20
"""Bytes of engine output read in one call, over all projects."""
MAX_TRACKED_IGNORED = 500
STDERR_HEAD = 4096


@dataclass(frozen=True, slots=True)
class Target:
    """One project's part of a call: `scope` is a checked path below the root or empty, `nested` are other projects' roots below it."""

    project: Project
    scope: str
    language: str | None
    nested: tuple[str, ...]
    is_below_ignore_file: bool = False

    @property
    def is_git(self) -> bool:
        return self.project.kind != "directory"

    @property
    def walks_whole_root(self) -> bool:
        """Switching off ignore files above a plain directory also does so between root and scope; then the scope is cut afterwards."""
        return self.is_below_ignore_file or not self.scope

    @property
    def paths(self) -> tuple[str, ...]:
        # With `./` in front, a file that is called `-` is a file.
        return ("./",) if self.walks_whole_root else (f"./{self.scope}",)

    def holds(self, path: str) -> bool:
        """Whether a path that the engine reported is inside the scope and of the language."""
        inside = not self.scope or path == self.scope or path.startswith(self.scope + "/")
        return inside and is_of_language(path, self.language) and not withholds(self.project, path)

    def may_hold(self, path: str) -> bool:
        """Whether a file or directory that could not be read could have something of the scope in it; a folder's name tells no language."""
        inside = not self.scope or path == self.scope or path.startswith(self.scope + "/") or self.scope.startswith(path + "/")
        return (
            inside
            and (self.language is None or language_of(path) in {None, *languages_named(self.language)})
            and not withholds(self.project, path)
        )


@dataclass(slots=True)
class Allowance:
    """What one call may still read, shared by its projects."""

    matches: int = MAX_MATCHES
    bytes: int = MAX_STREAM_BYTES

    @property
    def is_used_up(self) -> bool:
        return self.matches <= 0 or self.bytes <= 0


@dataclass(slots=True)
class RunReport:
    """How the search of one project went.

    `files` is how many the engine read, 0 when it did not say; `tracked_ignored` files (`./` and the path) were searched in spite of an
    ignore rule, because git tracks them.
    """

    files: int = 0
    tracked_ignored: tuple[str, ...] = ()
    notes: list[str] = field(default_factory=list[str])
    unread: dict[Unread, None] = field(default_factory=dict[Unread, None])
    """What could not be read and might have had matches, each once."""
    utf_32: int = 0
    """Files that the engine takes for binary, counted after a search that found nothing."""


@dataclass(frozen=True, slots=True)
class Ended:
    """How a command ended: no code when it was stopped because enough was read. `stderr` is its beginning."""

    code: int | None
    stderr: str


async def read_command(argv: Sequence[str], *, cwd: Path, env: Mapping[str, str] | None, on_chunk: Callable[[bytes], bool]) -> Ended:
    """Run a command and hand on its output as it comes; it is killed when `on_chunk` says False."""
    stderr = bytearray()

    async def read_stderr(stream: ByteReceiveStream) -> None:
        async for chunk in stream:
            stderr.extend(chunk[: STDERR_HEAD - len(stderr)])

    stopped = False
    async with open_child(argv, cwd=cwd, env=env) as process:
        assert process.stdout is not None and process.stderr is not None
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(read_stderr, process.stderr)
            async for chunk in process.stdout:
                if not on_chunk(chunk):
                    stopped = True
                    tasks.cancel_scope.cancel()
                    break
        code = None if stopped else await process.wait()
    return Ended(code, stderr.decode("utf-8", "replace"))


def listing_of(engine: Engine, config: GrepConfig, target: Target, *, tracked_only: bool = False, any_size: bool = False) -> list[str]:
    """The engine's command line up to the choice of files. `tracked_only` is for files named one by one, which no filter leaves out."""
    threads = config.threads or min(4, os.cpu_count() or 2)
    if engine.name == "git":
        return git_grep_listing(threads=threads, is_git=target.is_git, tracked_only=tracked_only)
    listing = ripgrep_listing(
        engine.program,
        threads=threads,
        max_file_bytes=None if any_size else config.max_file_bytes,
        is_git=target.is_git,
        nested=() if tracked_only else target.nested,
        globs=() if tracked_only else globs_for_language(target.language),
    )
    return [*listing, "--no-ignore-parent"] if target.is_below_ignore_file else listing


class ProjectRun:
    """The search of one project in one call."""

    def __init__(self, engine: Engine, config: GrepConfig, target: Target, tally: Tally, allowance: Allowance) -> None:
        self._engine = engine
        self._config = config
        self._target = target
        self._tally = tally
        self._allowance = allowance
        self._ownership = Ownership(target.project, target.nested)
        self._found = False
        self._path: str | None = None
        self._is_wanted = False
        self._broken: str | None = None
        self._is_counted = False
        self._known_tracked: tuple[str, ...] | None = None
        self._report = RunReport()

    async def search(self) -> RunReport:
        """Search the project; matches are in the tally afterwards.

        Raises:
            ExpertError: `rejected` for a bad pattern, `unavailable` when the root is gone, else what became of the engine.
        """
        await self._over_files(self._run)
        return self._report

    async def search_in(self, files: Sequence[str]) -> RunReport:
        """As `search`, where no other file can have a match."""
        paths = [f"./{path}" for path in files if self._target.holds(path)]
        if paths:
            await self._run(listing_of(self._engine, self._config, self._target, tracked_only=True), paths, True)
        return self._report

    async def count(self, census: Census, before: RunReport | None) -> RunReport:
        """Count the matches of each file into the census. `before` is of a search of the same call, if it ended. Raises as `search`."""
        self._known_tracked = before.tracked_ignored if before else None

        async def run(listing: Sequence[str], paths: Sequence[str], named: bool) -> None:
            await self._count(census, listing, paths, named)

        await self._over_files(run)
        self._is_counted = True
        return self._report

    async def read(self, paths: Sequence[str], tally: Tally, *, named: bool) -> None:
        """Read the lines of these files alone, which a census found, into this tally; `named` as there. Raises as `search`."""
        self._tally = tally
        # ripgrep reads a file that is named whatever the rules say; git grep has to be told which kind it is.
        listing = listing_of(self._engine, self._config, self._target, tracked_only=named or self._engine.name == "ripgrep")
        await self._run(listing, [f"./{path}" for path in paths])

    async def _over_files(self, run: Callable[[Sequence[str], Sequence[str], bool], Awaitable[None]]) -> None:
        """Run over all files that the rules list, then over those that are named because git tracks them in spite of the rules."""
        if not self._target.project.root.is_dir():
            raise ExpertError(
                FailureClass.UNAVAILABLE,
                f"The root of project {self._target.project.id!r} is gone: {self._target.project.root}.",
                remedy="Correct workspace.roots.",
            )
        ignored = bool(self._target.scope) and await self._is_ignored()
        tracked = list(self._known_tracked or ())
        failure: ExpertError | None = None
        async with anyio.create_task_group() as tasks:
            if self._target.is_git and self._known_tracked is None:
                tasks.start_soon(self._list_tracked_ignored, tracked)
            try:
                if not ignored:
                    await run(listing_of(self._engine, self._config, self._target), self._target.paths, False)
            except ExpertError as error:
                failure = error
                tasks.cancel_scope.cancel()
        if failure is not None:
            raise failure
        self._report.tracked_ignored = tuple(tracked)
        if tracked and not self._allowance.is_used_up:
            await run(listing_of(self._engine, self._config, self._target, tracked_only=True), tracked, True)
        if self._ownership.foreign:
            names = ", ".join(sorted(self._ownership.foreign)[:3])
            self._report.notes.append(f"matches below {names} were left out: repositories of their own; add them to workspace.roots")

    async def _count(self, census: Census, listing: Sequence[str], paths: Sequence[str], named: bool) -> None:
        is_git_grep = self._engine.name == "git"
        build = git_grep_count if is_git_grep else ripgrep_count
        reader = CensusReader()

        def take(chunk: bytes) -> bool:
            self._allowance.bytes -= len(chunk)
            reader.feed(chunk)
            return not self._allowance.is_used_up

        ended = await read_command(
            build(listing, census.longest_first, paths),
            cwd=self._target.project.root,
            env=GIT_GREP_ENVIRONMENT if is_git_grep else None,
            on_chunk=take,
        )
        reader.close()
        self._found = False
        for path, matched, times in reader:
            self._found = True
            if self._wants(path):
                census.add((self._target.project.id, path), matched, times)
                if named:
                    census.named.add((self._target.project.id, path))
        self._report.files += reader.files_searched
        self._judge(ended)

    async def _run(self, listing: Sequence[str], paths: Sequence[str], named: bool = False) -> None:
        is_git_grep = self._engine.name == "git"
        build = git_grep_search if is_git_grep else ripgrep_search
        reader = (GitGrepReader if is_git_grep else RipgrepReader)(self._config.max_columns)
        ended = await read_command(
            build(listing, self._tally.patterns, paths),
            cwd=self._target.project.root,
            env=GIT_GREP_ENVIRONMENT if is_git_grep else None,
            on_chunk=lambda chunk: self._take(reader, chunk),
        )
        if self._broken is not None:
            raise ExpertError(
                FailureClass.PROTOCOL_ERROR,
                f"The output of {self._engine.version} could not be read.",
                remedy="Use the ripgrep that is installed with this package.",
                detail=self._broken,
            )
        self._judge(ended)

    def _judge(self, ended: Ended) -> None:
        if ended.code is None:
            return
        unread = (unread_by_git_grep if self._engine.name == "git" else unread_by_ripgrep)(ended.stderr)
        self._report.unread.update((each, None) for each in unread if self._target.may_hold(each.path))
        if self._engine.name == "git":
            note = judge_git_grep(self._target.project.root, ended.code, ended.stderr, found=self._found)
        else:
            note = judge_ripgrep(ended.code, ended.stderr, found=self._found)
        if note is not None:
            self._report.notes.append(note)

    def _take(self, reader: MatchReader, chunk: bytes) -> bool:
        self._allowance.bytes -= len(chunk)
        try:
            for event in reader.feed(chunk):
                match event:
                    case LineMatch():
                        self._take_match(event)
                    case FileEnd():
                        self._tally.end(self._target.project.id, event)
                    case RunEnd():
                        self._report.files += 0 if self._is_counted else event.files
        except (ValueError, KeyError, TypeError) as error:
            self._broken = repr(error)
            return False
        return not self._allowance.is_used_up

    def _take_match(self, match: LineMatch) -> None:
        self._found = True
        if self._wants(match.path):
            self._allowance.matches -= 1
            self._tally.see(self._target.project.id, match)

    async def _is_ignored(self) -> bool:
        """Whether the scope itself is ignored: an engine takes a path that is named as an order to search it all the same."""
        try:
            ignored = await is_ignored(self._target.project, self._target.scope)
        except ExpertError:
            return False  # there is no git, and no other judge
        if ignored:
            self._report.notes.append(f"{self._target.scope!r} is ignored: at most its tracked files were searched")
        return ignored

    def _wants(self, path: str) -> bool:
        if path != self._path:
            self._path = path
            self._is_wanted = self._target.holds(path) and self._ownership.owns(path)
        return self._is_wanted

    async def _list_tracked_ignored(self, into: list[str]) -> None:
        """Tracked files that an ignore rule matches: git's rules do not ignore them, ripgrep and `git grep --untracked` do (measured)."""
        root = self._target.project.root
        try:
            scope = ("--", self._target.scope) if self._target.scope else ()
            finished = await run_git(root, "ls-files", "-z", "--cached", "--ignored", "--exclude-standard", *scope, max_bytes=2**20)
        except ExpertError:
            # There is no git: then nobody here can know which files are tracked.
            self._report.notes.append("git is not installed: tracked files that an ignore rule matches were not searched")
            return
        if finished.returncode != 0:
            said = finished.stderr.splitlines()[0] if finished.stderr else f"exit code {finished.returncode}"
            self._report.notes.append(f"tracked files that an ignore rule matches were not searched: git says {said[:200]!r}")
            return
        names = [os.fsdecode(name) for name in finished.stdout.split(b"\0")[:-1]]
        files = [name for name in names if self._target.holds(name) and is_real_file(root, name)]
        if len(files) > MAX_TRACKED_IGNORED:
            self._report.notes.append(f"{len(files) - MAX_TRACKED_IGNORED} tracked files that an ignore rule matches were not searched")
        into.extend(f"./{name}" for name in files[:MAX_TRACKED_IGNORED])
