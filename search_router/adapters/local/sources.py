"""What is on disk now for the files that hits point at: decoded text, content hash, definitions. Cached by stat, bounded."""

from __future__ import annotations

import os
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

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

    async def read(self, keys: Sequence[FileKey], projects: Mapping[str, Project]) -> dict[FileKey, FileFacts]:
        """Facts of every file that is there; a missing, refused or unreadable file is simply not in the result."""
        found: dict[FileKey, FileFacts] = {}
        cold: list[FileKey] = []
        for key in dict.fromkeys(keys):
            facts = self._warm(projects[key[0]], key[1])
            if facts is None:
                cold.append(key)
            else:
                found[key] = facts
        for key in cold:
            try:
                found[key] = await self.read_one(projects[key[0]], key[1])
            except EvidenceError:
                continue
        return found

    async def read_one(self, project: Project, path: str) -> FileFacts:
        """Facts of one file, from the cache when its stat says so. Raises EvidenceError when it is refused or gone."""
        warm = self._warm(project, path)
        if warm is not None:
            return warm
        stamp = _stamp(project.root, path)
        file = await anyio.to_thread.run_sync(lambda: read_text_file(project.root, path, max_bytes=MAX_FILE_BYTES))
        definitions = await self._define(project, path, file)
        facts = FileFacts(file.content_hash, file.text, language_of(path), definitions, file.flags)
        if stamp is not None:
            self._keep((project.root, path), _Cached(stamp, facts))
        return facts

    async def _define(self, project: Project, path: str, file: TextFile) -> tuple[Definition, ...]:
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


def _stamp(root: Path, path: str) -> Stamp | None:
    try:
        info = os.stat(f"{root}/{path}")  # noqa: PTH116 - hundreds a request: building a Path costs more than the call
    except (OSError, ValueError):
        return None
    return info.st_mtime_ns, info.st_size, info.st_ino
