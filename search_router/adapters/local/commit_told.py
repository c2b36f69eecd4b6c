"""What a language model says of commits, kept by commit and model: an option beside the words of their changes, off by default.

A commit never changes, so it is told once. That is done in the background, newest first, by the question that finds it missing; a failure
costs these summaries alone, is said with each answer, and is tried again later.
"""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Final

import anyio
import anyio.to_thread
from pydantic import Field

from search_router.adapters.language_model import LanguageModel, Reply
from search_router.adapters.local.commit_log import LOCK_SECONDS, CommitLog
from search_router.adapters.local.commit_reader import Pursuit
from search_router.adapters.local.commit_stream import text_of
from search_router.adapters.local.disk_space import DEFAULT_RESERVE, Reserve
from search_router.adapters.local.git import SAFE_DIFF, git_failure, run_git
from search_router.adapters.local.history_question import tokens_of
from search_router.config.schema import LanguageModelConfig
from search_router.databases import transaction
from search_router.errors import ExpertError, FailureClass
from search_router.plain_files import check_database
from search_router.redact import scrub

VERSION: Final = 1
FAILED_SECONDS: Final = 30.0
"""After a failure nobody is asked for so long."""
MOST_TOKENS: Final = 300
TASK: Final = (
    "You are given one commit of a code base: its subject and its patch, maybe cut. Say in at most 60 words what it changes for those who "
    "use or read the code, and why if that is told, in plain words that somebody would search for."
)
BEING_TOLD: Final = "a language model is still summarising commits; asked again, more is found"
_SCHEMA: Final = (
    "CREATE TABLE IF NOT EXISTS told "
    "(id INTEGER PRIMARY KEY, sha TEXT NOT NULL, maker TEXT NOT NULL, text TEXT NOT NULL, UNIQUE (sha, maker))",
    "CREATE VIRTUAL TABLE IF NOT EXISTS heard USING fts5(words, content='', tokenize='porter unicode61')",
)


class CommitReply(Reply):
    """What a model says of a commit."""

    summary: Annotated[str, Field(min_length=1, max_length=4000)]


class ToldLog:
    """The summaries of one project's commits: one SQLite file. Synchronous, from any thread, one at a time; raises sqlite3.Error."""

    def __init__(self, path: Path, reserve: Reserve = DEFAULT_RESERVE) -> None:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        check_database(path)
        self._path, self._reserve = path, reserve
        self._lock = threading.Lock()
        self._db = sqlite3.connect(path, timeout=LOCK_SECONDS, check_same_thread=False, isolation_level=None)
        try:
            self._db.execute("PRAGMA journal_mode=WAL")
            for statement in _SCHEMA:
                self._db.execute(statement)
        except sqlite3.Error:
            self._db.close()
            raise

    def missing(self, shas: Sequence[str], maker: str) -> list[str]:
        """Those of which this maker has said nothing, in the given order."""
        with self._lock:
            known = {sha for (sha,) in self._db.execute("SELECT sha FROM told WHERE maker = ?", (maker,))}
        return [sha for sha in shas if sha not in known]

    def keep(self, sha: str, maker: str, text: str) -> None:
        """Keep what was said; what is there already stays."""
        if lack := self._reserve.lack(self._path):
            raise sqlite3.OperationalError(lack)
        with self._lock, transaction(self._db):
            row = self._db.execute("INSERT OR IGNORE INTO told (sha, maker, text) VALUES (?, ?, ?)", (sha, maker, text))
            if row.rowcount:
                words = " ".join(list(tokens_of(text))[:MOST_TOKENS])
                self._db.execute("INSERT INTO heard (rowid, words) VALUES (?, ?)", (row.lastrowid, words))

    def matching(self, tokens: Sequence[str], maker: str, limit: int) -> dict[str, float]:
        """BM25 by commit of the best that have any of the tokens in what this maker said."""
        query = " OR ".join('"' + token.replace('"', "") + '"' for token in tokens)
        if not query:
            return {}
        with self._lock:
            found = self._db.execute(
                "SELECT told.sha, bm25(heard) AS score FROM heard JOIN told ON told.id = heard.rowid "
                "WHERE heard MATCH ? AND told.maker = ? ORDER BY score, told.id LIMIT ?",
                (query, maker, limit),
            ).fetchall()
        return {sha: -score for sha, score in found}

    def close(self) -> None:
        """Close the file; safe to call twice."""
        with self._lock:
            self._db.close()


class ToldCommits:
    """Has the newest commits of one project told, and searches what was said. Belongs to one event loop."""

    def __init__(
        self, root: Path, model: LanguageModel, settings: LanguageModelConfig, path: Path, reserve: Reserve = DEFAULT_RESERVE
    ) -> None:
        self._root, self._model, self._settings = root, model, settings
        self._path, self._reserve = path, reserve
        self._log: ToldLog | None = None
        self._work: Pursuit | None = None
        self._for: tuple[CommitLog, int, int] | None = None
        self._failed_at: float | None = None
        self.note: str | None = None
        self.is_underway = False
        """Whether commits were still being told when the last question looked at what is there."""

    async def matching(
        self, commits: CommitLog, rows: Sequence[int], tokens: Sequence[str], among: Collection[int], limit: int
    ) -> Mapping[int, float]:
        """BM25 by row. `rows` are all, newest first: of the first `llm.commits` those that are missing begin to be told."""
        try:
            if self._log is None:
                self._log = await anyio.to_thread.run_sync(ToldLog, self._path, self._reserve)
            await self._begin(commits, rows)
            self.is_underway = self._work is not None and not self._work.ended
            scores = await anyio.to_thread.run_sync(self._log.matching, tokens, self._settings.model, limit)
            found = await anyio.to_thread.run_sync(commits.rows_of, list(scores))
        except (sqlite3.Error, OSError) as error:
            self.note = f"what a language model said of commits cannot be kept in {self._path}: {error}. Move that file away."
            return {}
        return {row: scores[sha] for sha, row in found.items() if row in among}

    async def aclose(self) -> None:
        """Stop; safe to call twice."""
        work, self._work = self._work, None
        if work is not None:
            await work.stop()
        log, self._log = self._log, None
        if log is not None:
            await anyio.to_thread.run_sync(log.close)

    async def _begin(self, commits: CommitLog, rows: Sequence[int]) -> None:
        if self._work is not None and self._work.ended:
            work, self._work = self._work, None
            await work.wait(0)  # raises what nobody thought of
        wanted = (commits, len(rows), rows[0] if rows else 0)
        if self._work is not None or (self._for == wanted and self._failed_at is None):
            return
        if self._failed_at is not None and anyio.current_time() - self._failed_at < FAILED_SECONDS:
            return
        self._for, self._failed_at, self.note = wanted, None, None
        newest = list(rows[: self._settings.commits])
        self._work = Pursuit(lambda: self._tell(commits, newest))

    async def _tell(self, commits: CommitLog, rows: Sequence[int]) -> None:
        log = self._log
        assert log is not None
        done = 0
        try:
            names = [sha for _, sha in await anyio.to_thread.run_sync(commits.plain_shas, rows)]
            for sha in await anyio.to_thread.run_sync(log.missing, names, self._settings.model):
                patch = await self._patch_of(sha)
                seconds = self._settings.cap_ms / 1000
                with anyio.fail_after(seconds):
                    reply = await self._model.ask(TASK, {"commit": patch}, CommitReply, seconds)
                await anyio.to_thread.run_sync(log.keep, sha, self._settings.model, reply.summary)
                done += 1
        except TimeoutError:
            self._fail(done, f"it did not answer within {self._settings.cap_ms} ms ({FailureClass.TIMEOUT.value})")
        except (ExpertError, sqlite3.Error) as error:
            self._fail(done, scrub(str(error)))

    def _fail(self, done: int, why: str) -> None:
        self._failed_at = anyio.current_time()
        self.note = f"commits are not summarised by {self._model.name}, messages and changes were searched ({done} were told before): {why}"

    async def _patch_of(self, sha: str) -> str:
        """The message and the patch, at most `llm.characters` of them."""
        most = self._settings.characters
        options = ("--format=%B", "-p", "-U1", "-M", "--relative", *SAFE_DIFF)
        finished = await run_git(self._root, "--no-replace-objects", "show", *options, sha, "--", ".", max_bytes=4 * most)
        if finished.returncode != 0 and not finished.cut:
            raise git_failure(self._root, finished)
        return text_of(finished.stdout)[:most]
