"""Answers that may be given again: in memory, and in the file for other processes. What is here is not yet proven to hold.

An entry is found by what was asked (see `wording`), one a question, the latest; whether it still holds is told by the fingerprint of the
files, by the worlds of the experts, and by the stamps of the very files that its evidence is in.
"""

from __future__ import annotations

import json
import os
import sqlite3
import zlib
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from search_router.config.schema import CacheConfig
from search_router.errors import EvidenceError
from search_router.router.enrich.owner import Owner
from search_router.router.evidence import CodeAddress, parse_evidence_id
from search_router.schema import Answer, Project

TOUCH_US: Final = 60_000_000
"""That an entry was used is written so often at most."""
MAX_ENTRY_BYTES: Final = 1_000_000

FileStamp = tuple[str, str, int, int, int]
"""Project id, path, the later of mtime and ctime in nanoseconds, size, inode."""


@dataclass(frozen=True, slots=True)
class CachedAnswer:
    """One answer with what it depends on. `answer` is without its receipt, which `receipt_id` names: the one that earned it."""

    key: str
    stored_us: int
    receipt_id: str
    fingerprint: str
    worlds: Mapping[str, str]
    stamps: tuple[FileStamp, ...]
    answer: Answer

    @property
    def is_positive(self) -> bool:
        """Whether it has evidence."""
        return bool(self.answer.evidence)

    def holds(self, fingerprint: str | None, worlds: Mapping[str, str], roots: Mapping[str, Path]) -> bool:
        """Whether the same question would be answered the same now; the files of its evidence are looked at once more."""
        return (
            fingerprint is not None
            and fingerprint == self.fingerprint
            and dict(worlds) == dict(self.worlds)
            and all(stamp_of(roots.get(stamp[0]), stamp[0], stamp[1]) == stamp for stamp in self.stamps)
        )


class AnswerCache:
    """The entries of one router. Belongs to its event loop; reads the file on it, by key, without waiting for writers."""

    def __init__(self, settings: CacheConfig, owner: Owner) -> None:
        self._settings = settings
        self._owner = owner
        self._memory: OrderedDict[str, CachedAnswer] = OrderedDict()

    @property
    def is_on(self) -> bool:
        """Whether anything is ever given again."""
        return self._settings.positive_seconds > 0 or self._settings.negative_seconds > 0

    def remembered(self, key: str) -> CachedAnswer | None:
        """The entry in memory, if it is not too old."""
        found = self._memory.get(key)
        if found is None or not self._is_young(found):
            return None
        self._memory.move_to_end(key)
        return found

    def stored(self, key: str) -> CachedAnswer | None:
        """The entry in the file, if it is not too old; it is in memory from then on."""
        database = self._owner.reader()
        if database is None:
            return None
        try:
            row = database.execute("SELECT stored_us, receipt_id, entry FROM answers WHERE key = ?", (key,)).fetchone()
        except sqlite3.Error as error:
            self._owner.read_failed(error)
            return None
        found = _unpacked(key, *row) if row is not None else None
        if found is None or not self._is_young(found):
            return None
        self._remember(found)
        return found

    def keep(self, entry: CachedAnswer) -> None:
        """Take an entry in the place of an earlier one; it is written later."""
        if self.seconds_of(entry) == 0:
            return
        self._remember(entry)

        def write(database: sqlite3.Connection) -> None:
            packed = _packed(entry)
            if len(packed) <= MAX_ENTRY_BYTES:
                values = (entry.key, entry.stored_us, entry.stored_us, entry.is_positive, entry.receipt_id, packed)
                database.execute("INSERT OR REPLACE INTO answers VALUES (?, ?, ?, ?, ?, ?)", values)

        self._owner.submit(write)

    def touch(self, entry: CachedAnswer) -> None:
        """It was given again: its row is the last to go."""
        now = self._owner.clock()
        if now - entry.stored_us > TOUCH_US:
            statement = "UPDATE answers SET used_us = ? WHERE key = ? AND used_us < ?"
            self._owner.submit(lambda database: database.execute(statement, (now, entry.key, now - TOUCH_US)))

    def seconds_of(self, entry: CachedAnswer) -> int:
        """How long it may be given again."""
        return self._settings.positive_seconds if entry.is_positive else self._settings.negative_seconds

    def age_seconds(self, entry: CachedAnswer) -> float:
        """Never negative, whatever was done to the clock."""
        return max(0, self._owner.clock() - entry.stored_us) / 1e6

    def _is_young(self, entry: CachedAnswer) -> bool:
        age = self._owner.clock() - entry.stored_us
        return 0 <= age < self.seconds_of(entry) * 1_000_000  # from the future: the clock was set back, so its age is not known

    def _remember(self, entry: CachedAnswer) -> None:
        self._memory[entry.key] = entry
        self._memory.move_to_end(entry.key)
        while len(self._memory) > self._settings.entries:
            self._memory.popitem(last=False)


def stamps_of(answer: Answer, projects: Mapping[str, Project]) -> tuple[FileStamp, ...] | None:
    """The stamps of the files that the evidence is in; None when one is not there."""
    found: dict[tuple[str, str], FileStamp | None] = {}
    for item in answer.evidence:
        if item.path is None:
            continue
        try:
            address = parse_evidence_id(item.id)
        except EvidenceError:
            return None
        if isinstance(address, CodeAddress) and (address.project, address.path) not in found:
            project = projects.get(address.project)
            found[address.project, address.path] = stamp_of(project.root if project else None, address.project, address.path)
    stamps = tuple(stamp for stamp in found.values() if stamp is not None)
    return stamps if len(stamps) == len(found) else None


def stamp_of(root: Path | None, project: str, path: str) -> FileStamp | None:
    """The stamp of a file now; None when it is not there."""
    try:
        info = os.stat(f"{root}/{path}") if root is not None else None  # noqa: PTH116 - ten for each hit
    except (OSError, ValueError):
        return None
    return (project, path, max(info.st_mtime_ns, info.st_ctime_ns), info.st_size, info.st_ino) if info is not None else None


def _packed(entry: CachedAnswer) -> bytes:
    """Raises ValueError for what JSON in UTF-8 cannot say, such as a path that is no text."""
    head = {"fingerprint": entry.fingerprint, "worlds": dict(entry.worlds), "stamps": entry.stamps}
    text = json.dumps(head, ensure_ascii=True) + "\n" + entry.answer.model_dump_json(by_alias=True, exclude={"receipt"})
    return zlib.compress(text.encode("utf-8"), 1)


def _unpacked(key: str, stored_us: int, receipt_id: str, packed: bytes) -> CachedAnswer | None:
    """None for a row that is damaged or of another build's shape: the question is then asked."""
    try:
        head, _, answer = zlib.decompress(packed).partition(b"\n")
        known: dict[str, Any] = json.loads(head)
        stamps: tuple[FileStamp, ...] = tuple(tuple(stamp) for stamp in known["stamps"])
        return CachedAnswer(key, stored_us, receipt_id, known["fingerprint"], known["worlds"], stamps, Answer.model_validate_json(answer))
    except (zlib.error, ValueError, KeyError, TypeError):
        return None
