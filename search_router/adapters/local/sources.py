"""What is on disk now for the files that hits point at: decoded text, content hash, definitions. Cached by stat, bounded."""

from __future__ import annotations

import itertools
import math
import os
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import anyio
import anyio.to_thread

from search_router.adapters.local.languages import language_of
from search_router.adapters.local.textfile import TextFile, read_text_file
from search_router.errors import EvidenceError
from search_router.schema import Definition, FileFacts, Project

FileKey = tuple[str, str]
DefinitionsOf = Callable[[Project, str, str], Awaitable[tuple[Definition, ...] | None]]
"""Definitions of a project's file, by path and git blob id of its bytes; None when its language has no grammar here."""
MAX_CACHED_CHARACTERS = 64 * 2**20
MAX_FILE_BYTES = 16 * 2**20
READ_AT_ONCE, READ_IN_ONE_GO = 2, 24

Stamp = tuple[int, int, int]


@dataclass(frozen=True, slots=True)
class _Cached:
    stamp: Stamp
    facts: FileFacts


class SourceReader:
    """Reads files for the identity step and for fetching; one a router."""

    def __init__(self, definitions_of: DefinitionsOf | None = None) -> None:
        self._definitions_of = definitions_of
        self._cache: OrderedDict[tuple[Path, str], _Cached] = OrderedDict()
        self._characters = 0

    async def read(
        self, keys: Sequence[FileKey], projects: Mapping[str, Project], seconds: float = math.inf
    ) -> tuple[dict[FileKey, FileFacts], int]:
        """(facts, how many of them lack the definitions) of every file that is there.

        A missing, refused or unreadable file is simply not in the result. When the seconds are over, the files that are left, the last
        of the keys, are still read, but no longer parsed: only while an index is being built does that take long.
        """
        until = time.monotonic() + seconds
        found: dict[FileKey, FileFacts | None] = {key: self._warm(projects[key[0]], key[1]) for key in keys}
        undefined = 0
        missing = [key for key, facts in found.items() if facts is None]
        # Some at a time: a trip to a thread takes longer than reading a file of usual size, and one that blocks delays few others.
        cold = iter([missing[at : at + READ_IN_ONE_GO] for at in range(0, len(missing), READ_IN_ONE_GO)])

        async def read_some() -> None:
            nonlocal undefined
            for some in cold:
                read = await self._read_cold([(projects[project], path) for project, path in some], until)
                for key, facts in zip(some, read, strict=True):
                    if not isinstance(facts, EvidenceError):
                        found[key], is_whole = facts
                        undefined += not is_whole

        if missing:
            async with anyio.create_task_group() as tasks:
                for _ in range(min(READ_AT_ONCE, len(missing))):
                    tasks.start_soon(read_some)
        return {key: facts for key, facts in found.items() if facts is not None}, undefined

    async def read_one(self, project: Project, path: str) -> FileFacts:
        """Facts of one file, from the cache when its stat says so. Raises EvidenceError when it is refused or gone."""
        warm = self._warm(project, path)
        if warm is not None:
            return warm
        (read,) = await self._read_cold([(project, path)], math.inf)
        if isinstance(read, EvidenceError):
            raise read
        return read[0]

    async def _read_cold(self, files: Sequence[tuple[Project, str]], until: float) -> list[tuple[FileFacts, bool] | EvidenceError]:
        """(facts, whether the definitions are among them) of each, or why it cannot be read. Facts without them are not kept."""
        read = await anyio.to_thread.run_sync(lambda: [_read_file(project.root, path) for project, path in files])
        known: list[tuple[Definition, ...]] = []
        with anyio.move_on_after(until - time.monotonic()):
            for (project, path), (_, file) in zip(files, read, strict=True):
                known.append(() if isinstance(file, EvidenceError) else await self._define(project, path, file))
        answers: list[tuple[FileFacts, bool] | EvidenceError] = []
        for (project, path), (stamp, file), definitions in itertools.zip_longest(files, read, known):
            if isinstance(file, EvidenceError):
                answers.append(file)
                continue
            facts = FileFacts(file.content_hash, file.text, language_of(path), definitions or (), file.flags)
            if stamp is not None and definitions is not None:
                self._keep((project.root, path), _Cached(stamp, facts))
            answers.append((facts, definitions is not None))
        return answers

    async def _define(self, project: Project, path: str, file: TextFile) -> tuple[Definition, ...]:
        """The definitions, none for a language without a grammar."""
        if self._definitions_of is None or not file.text:
            return ()
        return await self._definitions_of(project, path, file.blob) or ()

    def _warm(self, project: Project, path: str) -> FileFacts | None:
        cached = self._cache.get((project.root, path))
        if cached is None or cached.stamp != _stamp(project.root, path):
            return None
        self._cache.move_to_end((project.root, path))
        return cached.facts

    def _keep(self, key: tuple[Path, str], cached: _Cached) -> None:
        old = self._cache.pop(key, None)
        self._characters += len(cached.facts.text) - (len(old.facts.text) if old else 0)
        self._cache[key] = cached
        while self._characters > MAX_CACHED_CHARACTERS and len(self._cache) > 1:
            _, dropped = self._cache.popitem(last=False)
            self._characters -= len(dropped.facts.text)


def _read_file(root: Path, path: str) -> tuple[Stamp | None, TextFile | EvidenceError]:
    stamp = _stamp(root, path)
    try:
        return stamp, read_text_file(root, path, max_bytes=MAX_FILE_BYTES)
    except EvidenceError as error:
        return stamp, error


def _stamp(root: Path, path: str) -> Stamp | None:
    try:
        info = os.stat(f"{root}/{path}")  # noqa: PTH116 - hundreds a request: building a Path costs more than the call
    except (OSError, ValueError):
        return None
    return max(info.st_mtime_ns, info.st_ctime_ns), info.st_size, info.st_ino
