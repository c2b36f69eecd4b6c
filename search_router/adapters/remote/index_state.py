"""What a system says of its own index: the commit or the time that it was made of; and which files are not in it as they are now.

The question about the index runs beside the question itself, at most one at a time a project, and its answer is kept for a while. When it
has no answer yet, the hits come without: that nobody could tell is said in a note, and never taken for fresh.
"""

from __future__ import annotations

import asyncio
import os
import posixpath
import re
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import unquote, urlsplit

from pydantic_core import from_json

from search_router.adapters.local.scip_freshness import changed_since
from search_router.adapters.remote.judge import Received, said
from search_router.adapters.remote.records import field_reader
from search_router.config.remote import FreshnessProbe
from search_router.errors import ExpertError, FailureClass
from search_router.schema import Hit, Project

STALE = "stale-index"
PROBE_SECONDS = 30.0
"""For one question about the index, with the start of the server."""
PATIENCE_SECONDS = 0.5
"""So much longer than the hits themselves may the news of the index take."""
_COMMIT = re.compile(r"[0-9a-f]{7,64}")
MILLISECONDS_FROM = 1e11
"""A number of this size or more is no time in seconds: it would lie in the year 5138."""

Values = Mapping[str, Any]
AskState = Callable[[Values, Project, float], Awaitable[Received]]
"""Puts the question about the index: (values of placeholders, project, seconds)."""


class IndexState(NamedTuple):
    """What an index was made of: a commit, a time in seconds since 1970, or both."""

    commit: str | None = None
    made_at: float | None = None


class Seen(NamedTuple):
    """Which files an index has seen as they are: `changed` differ from its commit, those newer than `made_at` came later.

    With both, a file must be both to be stale: an index made of uncommitted work has seen that work.
    """

    changed: frozenset[str] | None = None
    made_at: float | None = None


class IndexProbe:
    """Asks one system about its indexes."""

    def __init__(self, config: FreshnessProbe, ask: AskState) -> None:
        self._config = config
        self._ask = ask
        self._asked: dict[str, tuple[float, asyncio.Task[IndexState]]] = {}

    def begin(self, project: Project, values: Values) -> None:
        """Ask now, unless that is under way or its answer is young enough."""
        now = asyncio.get_running_loop().time()
        until, task = self._asked.get(project.id, (0.0, None))
        if task is None or (task.done() and now >= until):
            asking = asyncio.create_task(self._read(project, values), name=f"index of {project.id}")
            self._asked[project.id] = (now + self._config.keep_ms / 1000, asking)

    async def state(self, project: Project) -> IndexState:
        """What was said, waiting for `PATIENCE_SECONDS` at most. Raises ExpertError: it said nothing that can be used, or nothing yet."""
        _, task = self._asked[project.id]
        await asyncio.wait((task,), timeout=PATIENCE_SECONDS)
        if not task.done():
            raise ExpertError(FailureClass.TIMEOUT, "it has not said so yet")
        return task.result()

    def known(self) -> dict[str, IndexState]:
        """What was last said, by project. At once."""
        done = {name: task for name, (_, task) in self._asked.items() if task.done() and not task.cancelled()}
        return {name: task.result() for name, task in done.items() if task.exception() is None}

    async def aclose(self) -> None:
        tasks = [task for _, task in self._asked.values()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _read(self, project: Project, values: Values) -> IndexState:
        try:
            async with asyncio.timeout(PROBE_SECONDS):
                return read_state(self._config, await self._ask(values, project, PROBE_SECONDS))
        except TimeoutError:
            raise ExpertError(FailureClass.TIMEOUT, "it was asked for it and did not answer") from None


def read_state(config: FreshnessProbe, received: Received) -> IndexState:
    """The commit and the time in an answer: in its structured part, its text as JSON, or its text. Pure.

    Raises:
        ExpertError: `rejected`: it is an error; `protocol-error`: it has neither.
    """
    if received.is_error:
        raise ExpertError(FailureClass.REJECTED, f"it says: {said(received.text)}")
    for document in (received.structured, _json(received.text), received.text):
        commit = _text(field_reader(config.commit)(document, ())) if config.commit else None
        made = field_reader(config.time)(document, ()) if config.time else None
        state = IndexState(commit if commit is not None and _COMMIT.fullmatch(commit.lower()) else None, read_time(made))
        if state != IndexState():
            return state
    raise ExpertError(FailureClass.PROTOCOL_ERROR, f"there is no commit and no time where they should be: {said(received.text)}")


def read_time(value: object) -> float | None:
    """Seconds since 1970 of a number of seconds or milliseconds, or of an ISO 8601 text (UTC where it names no zone); else None."""
    if isinstance(value, str) and re.fullmatch(r"\d+(?:\.\d+)?", value.strip()):
        value = float(value)
    if isinstance(value, int | float) and not isinstance(value, bool):
        seconds = value / 1000 if value >= MILLISECONDS_FROM else value
        return float(seconds) if 0 < seconds < MILLISECONDS_FROM else None
    try:
        found = datetime.fromisoformat(str(value).strip()) if isinstance(value, str) else None
        return None if found is None else (found if found.tzinfo else found.replace(tzinfo=UTC)).timestamp()
    except (ValueError, OverflowError):
        return None


def _text(value: object) -> str | None:
    return value.strip() if isinstance(value, str) else None


def _json(text: str) -> Any:
    try:
        return from_json(text, allow_inf_nan=False)
    except ValueError:
        return None


async def compare_index(project: Project, state: IndexState) -> Seen:
    """What an index has not seen. One call of git, when it names a commit.

    Raises:
        ExpertError: nothing can be told: the commit is none of this repository's, and there is no time.
    """
    changed = await changed_since(project, state.commit) if state.commit is not None and project.kind != "directory" else None
    if changed is None and state.made_at is None:
        raise ExpertError(FailureClass.REJECTED, f"its commit {(state.commit or '')[:12]} cannot be compared with the work tree")
    return Seen(changed, state.made_at)


# ------------------------------------------------------------------ files


@dataclass(slots=True)
class _Judged:
    """Of each file once, whether it is stale."""

    roots: dict[str, Path]
    seen: Mapping[str, Seen]
    known: dict[tuple[str, str], bool]

    def is_stale(self, hit: Hit) -> bool:
        if hit.path is None or hit.project not in self.roots or hit.project not in self.seen:
            return False
        key = hit.project, hit.path
        if key not in self.known:
            self.known[key] = _is_stale(self.roots[hit.project], hit.path, self.seen[hit.project])
        return self.known[key]


def flag_stale(hits: Sequence[Hit], projects: Sequence[Project], seen: Mapping[str, Seen]) -> Iterator[Hit]:
    """The hits; those in files that their project's index has not seen as they are carry the flag `stale-index`. One stat a file."""
    judged = _Judged({p.id: p.root for p in projects}, seen, {})
    for hit in hits:
        yield replace(hit, flags=(*hit.flags, STALE)) if judged.is_stale(hit) else hit


def _is_stale(root: Path, raw: str, seen: Seen) -> bool:
    path = relative_path(root, raw)
    if seen.changed is not None and path not in seen.changed:
        return False
    if seen.made_at is None:
        return True
    modified = file_time(root / path)
    return modified is not None and modified > seen.made_at


def relative_path(root: Path, raw: str) -> str:
    """A path in any of the forms that systems use, relative to a root where it lies below it."""
    text = unquote(urlsplit(raw).path) if raw.startswith("file://") else raw
    if "\\" in text and not os.path.lexists(root / text):
        text = text.replace("\\", "/")
    text = posixpath.normpath(text)
    return text.removeprefix(f"{root.as_posix()}/")


def index_time(root: Path, globs: Sequence[str]) -> float | None:
    """Modification time of the newest file that any of the globs finds below a root; None when there is none. Blocks."""
    return max((seen for glob in globs for path in root.glob(glob) if (seen := file_time(path)) is not None), default=None)


def file_time(path: Path) -> float | None:
    """When a file was last changed, in seconds since 1970; None when there is none."""
    try:
        return os.stat(path).st_mtime  # noqa: PTH116 - one call, whatever the path is
    except (OSError, ValueError):
        return None
