"""One project's history: answers one call from its commit table, its changes and its files."""

from __future__ import annotations

import sqlite3
from array import array
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

import anyio

from search_router.adapters.language_model import LanguageModel
from search_router.adapters.local.commit_log import CommitLog, StoredCommit
from search_router.adapters.local.commit_reader import CommitReader, Head, HeadWatch
from search_router.adapters.local.commit_told import BEING_TOLD, VERSION, ToldCommits
from search_router.adapters.local.disk_space import DEFAULT_RESERVE, Reserve
from search_router.adapters.local.history_question import Aspect, asks_for_commit, aspect_of, code_terms, file_terms, message_tokens
from search_router.adapters.local.history_rank import LIST_LENGTH, Found, rank_commits
from search_router.adapters.local.pickaxe import Ground, Needle, Scan, ScanCache, search_changes
from search_router.config.experts import HistoryConfig
from search_router.config.schema import LanguageModelConfig
from search_router.errors import ExpertError, FailureClass
from search_router.schema import CommitRecord, ExpertCall, Hit, Intent, Project, QueryForm

READING_SHARE = 0.5
"""A first call waits so much of its time for the commits to be read, and then answers from what is there."""
SUMMARY_SECONDS = 0.3
"""So long a question waits for the changes to be summarised; later ones find more."""
CHANGED_WORDS_WEIGHT = 1.0
"""Of the BM25 of what a commit changed, beside that of its message and paths."""
SAME_NAMED_FILES = 20
MAX_PATHS = 100


class Teller(NamedTuple):
    """Who says what a commit is about, where that is switched on."""

    model: LanguageModel
    settings: LanguageModelConfig


@dataclass(frozen=True, slots=True)
class Answer:
    """What one project gave: (committer's time, hit), best first, and what to say about them.

    `worth` is the best BM25 of its commits' words, which nothing has where every commit has the word; `changed` whether a change of the
    asked code was found, other than in the first commit. Ranks say neither, and projects are compared by them.
    """

    hits: tuple[tuple[int, Hit], ...] = ()
    partial: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    head: str | None = None
    settled: bool = True
    worth: float = 0.0
    changed: bool = False


@dataclass(slots=True)
class _Search:
    """What one call has found so far. `place` is a row's index in the history, newest 0."""

    log: CommitLog
    place: Mapping[int, int]
    aspect: Aspect = Aspect.CHANGED
    messages: list[int] = field(default_factory=list[int])
    worth: float = 0.0
    files: set[int] = field(default_factory=set[int])
    scans: list[Scan] = field(default_factory=list[Scan])
    partial: list[str] = field(default_factory=list[str])
    notes: list[str] = field(default_factory=list[str])
    settled: bool = True


class ProjectHistory:
    """Owns the reader and the remembered scans of one project root."""

    def __init__(
        self, root: Path, config: HistoryConfig, cache_dir: Path, reserve: Reserve = DEFAULT_RESERVE, teller: Teller | None = None
    ) -> None:
        self._config = config
        self._reserve, self._teller = reserve, teller
        self._told: ToldCommits | None = None
        self._reader = CommitReader(root, config.max_commits, cache_dir, reserve)
        self._watch = HeadWatch(root)
        self._places: tuple[array[int], dict[int, int]] | None = None
        self._scans = ScanCache()
        self._scanned: CommitLog | None = None  # whose rows the remembered scans name

    async def aclose(self) -> None:
        """End the reading; safe to call twice."""
        told, self._told = self._told, None
        if told is not None:
            await told.aclose()
        await self._reader.aclose()

    async def answer(self, project: Project, call: ExpertCall, until: float) -> Answer:
        """Answer from what is read by then; `until` is a time of anyio's clock.

        Raises:
            ExpertError: `unavailable` without a git repository, `rejected` for a bad pattern, git's own failures.
        """
        head = await self._watch.read()
        if head is None:
            return Answer(notes=("the repository has no commit",))
        try:
            return await self._answer(project, head, call, until)
        except sqlite3.Error as error:  # the table on disk is damaged: the same again from memory
            await self._reader.distrust(error)
        try:
            return await self._answer(project, head, call, until)
        except sqlite3.Error as error:
            raise ExpertError(FailureClass.INTERNAL, f"The commit table of {project.root} failed twice: {error}.") from error

    async def _answer(self, project: Project, head: Head, call: ExpertCall, until: float) -> Answer:
        reader = self._reader
        reader.follow(head)
        await reader.wait((until - anyio.current_time()) * READING_SHARE)
        if call.intent is Intent.HISTORY:
            needed = not code_terms(call.sub_query)  # else the pickaxe needs the time, and answers better
            await reader.wait_for_summaries(min(SUMMARY_SECONDS, (until - anyio.current_time()) * READING_SHARE) if needed else 0)
        if (log := reader.log) is None:
            return Answer(partial=(_reading_so_far(reader),), head=head.sha)
        place = self._place_of_each()
        if call.path is not None:
            below = await anyio.to_thread.run_sync(log.below, call.path)
            place = {row: index for index, row in enumerate(row for row in place if row in below)}
        search = _Search(log, place)
        if not reader.is_complete:
            search.partial.append(_reading_so_far(reader))
        tokens = message_tokens(call.sub_query.text)
        matching = await anyio.to_thread.run_sync(log.matching, tokens, search.place, LIST_LENGTH)
        worth = dict(matching)
        if call.intent is Intent.HISTORY:
            for row, score in await anyio.to_thread.run_sync(log.matching_changes, tokens, search.place, LIST_LENGTH):
                worth[row] = worth.get(row, 0.0) + CHANGED_WORDS_WEIGHT * score
            if not reader.is_summarised and not code_terms(call.sub_query):
                search.notes.append("the words of changes are still being read; asked again, more is found")
                search.settled = False
            search.notes += [reader.summary_note] if reader.summary_note else []
            for row, score in (await self._what_is_told(search, head, tokens)).items():
                worth[row] = worth.get(row, 0.0) + CHANGED_WORDS_WEIGHT * score
        search.worth = max(worth.values(), default=0.0)
        search.messages = sorted(worth, key=lambda row: (-worth[row], search.place[row]))[:LIST_LENGTH]
        if call.intent is Intent.HISTORY:
            await self._search_changes(search, head, call, until)
        return await self._present(search, project, head, call.limit)

    async def _what_is_told(self, search: _Search, head: Head, tokens: Sequence[str]) -> Mapping[int, float]:
        """BM25 by row of what a language model says of commits, where one is configured for that; and what to say about it."""
        reader = self._reader
        if self._teller is None or not reader.is_complete or head.is_shallow or reader.is_partial_clone:
            return {}
        if self._told is None:
            place = reader.place_of(head, f"history-told-v{VERSION}")
            self._told = ToldCommits(reader.root, *self._teller, place, self._reserve)
        scores = await self._told.matching(search.log, reader.rows, tokens, search.place, LIST_LENGTH)
        search.notes += [self._told.note] if self._told.note else [BEING_TOLD] if self._told.is_underway else []
        search.settled = search.settled and not self._told.is_underway and self._told.note is None
        return scores

    def _place_of_each(self) -> Mapping[int, int]:
        """Each row's place, newest 0; remembered while the rows are the same, because there are tens of thousands."""
        rows = self._reader.rows
        if self._places is None or self._places[0] is not rows or len(self._places[1]) != len(rows):
            self._places = rows, {row: index for index, row in enumerate(rows)}
        return self._places[1]

    # -------------------------------------------------------------- changes and files

    async def _search_changes(self, search: _Search, head: Head, call: ExpertCall, until: float) -> None:
        question = call.sub_query
        code = list(code_terms(question))
        search.aspect = aspect_of(question.text, tuple(code)) if asks_for_commit(question.text) else Aspect.CHANGED
        for term in file_terms(question):
            rows = await anyio.to_thread.run_sync(_file_history, search.log, term)
            if rows:
                search.files |= rows & search.place.keys()
                code = [other for other in code if other != term and not term.endswith("/" + other)]
        if code and self._reader.is_partial_clone:
            search.notes.append("partial clone: old file contents are not here, so messages were searched and changes were not")
            return
        until = min(until, anyio.current_time() + self._config.pickaxe_ms / 1000)
        for term in code:
            needle = Needle(term, is_regex=question.form is QueryForm.REGEX)
            try:
                scan = await self._scan(search, head, needle, call.path, until)
            except ExpertError as error:
                if error.failure is FailureClass.REJECTED:
                    raise
                search.partial.append(f"pickaxe for {term!r} failed: {error.message}")
                continue
            search.scans.append(scan)
            if not scan.complete:
                search.partial.append(await anyio.to_thread.run_sync(_how_far, search.log, scan))

    async def _scan(self, search: _Search, head: Head, needle: Needle, path: str | None, until: float) -> Scan:
        if self._scanned is not search.log:
            self._scanned, self._scans = search.log, ScanCache()
        key = (head.sha, needle.argument, path or "", str(search.aspect is Aspect.INTRODUCED))
        ground = Ground(self._reader.root, search.log, list(search.place), path)
        scan = await search_changes(ground, needle, search.aspect, until, self._scans.get(*key))
        if self._reader.is_complete and scan.failure is None:
            self._scans.put(scan, *key)
        return scan

    # -------------------------------------------------------------- the answer

    async def _present(self, search: _Search, project: Project, head: Head, limit: int) -> Answer:
        doubtful = await anyio.to_thread.run_sync(search.log.rows_of, head.boundary) if head.boundary else {}
        changes = [{row: paths for row, paths in scan.hits.items() if row in search.place} for scan in search.scans]
        found = Found(search.messages, changes, search.files)
        ranked = rank_commits(found, search.aspect, search.place, frozenset(doubtful.values()))[:limit]
        commits = await anyio.to_thread.run_sync(search.log.commits, [*(row for row, _ in ranked), *doubtful.values()])
        if head.boundary:
            oldest = min((commits[row].date for row in doubtful.values()), default="its oldest commit")
            search.notes.append(f"shallow clone: history before {oldest[:10]} is not here")
        if self._reader.store_note is not None:
            search.notes.append(self._reader.store_note)
        if len(self._reader.rows) >= self._config.max_commits:
            search.notes.append(f"only the newest {self._config.max_commits} commits are searched (max_commits)")

        def hits() -> tuple[tuple[int, Hit], ...]:
            return tuple((commits[row].time, _hit(search, project, head, commits[row], score)) for row, score in ranked)

        # The first commit brought in all there was, which tells of no change.
        oldest = max(search.place, key=search.place.__getitem__, default=None)
        changed = any(rows.keys() - {oldest} for rows in changes)
        said = tuple(search.partial), tuple(search.notes)
        return Answer(await anyio.to_thread.run_sync(hits), *said, head.sha, search.settled, search.worth, changed)


def _hit(search: _Search, project: Project, head: Head, commit: StoredCommit, score: float) -> Hit:
    matched = dict.fromkeys(path for scan in search.scans for path in scan.hits.get(commit.row, ()))
    paths = tuple(dict.fromkeys([*matched, *search.log.paths_of(commit.row)]))
    at_boundary = commit.sha in head.boundary
    flags = [name for name, on in (("shallow-boundary", at_boundary and bool(matched)), ("paths-cut", len(paths) > MAX_PATHS)) if on]
    return Hit(
        project=project.id,
        kind="commit",
        is_exact=bool(matched) and not at_boundary,
        native_score=round(score, 6),
        commit=CommitRecord(commit.sha, commit.date, commit.author, commit.subject, paths[:MAX_PATHS]),
        flags=tuple(flags),
    )


def _file_history(log: CommitLog, term: str) -> set[int]:
    """The commits of the files with this path or name, under all their former names."""
    return log.touching(log.lineage(log.paths_named(term)[:SAME_NAMED_FILES]))


def _reading_so_far(reader: CommitReader) -> str:
    total = "" if reader.total is None else f" of about {reader.total}"
    return f"read {len(reader.rows)}{total} commits; ask again"


def _how_far(log: CommitLog, scan: Scan) -> str:
    term = scan.needle.term
    if scan.failure is not None:
        return f"pickaxe for {term!r} stopped: {scan.failure}"
    if scan.far_done:
        return f"pickaxe for {term!r} found the first change, but not all later ones were searched; ask again"
    reached = None if scan.reached is None else log.commits([scan.reached])[scan.reached].date[:10]
    if scan.settled is not None:
        life = "not searched for" if reached is None else f"searched for back to {reached}"
        return f"pickaxe for {term!r} found where it came in, no file had it just before; an earlier life was {life}; ask again"
    if reached is None:
        return f"pickaxe for {term!r} looked only at the files that have it now; ask again"
    return f"pickaxe for {term!r} read back to {reached}; older commits not searched, ask again"
