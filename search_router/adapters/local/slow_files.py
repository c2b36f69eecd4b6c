"""Files that nobody came to the end of reading: remembered in the store, read last, and in the end set aside with the reason.

So a process that has only a moment, and is asked again and again, gets further each time. `index refresh` tries them again.
"""

from __future__ import annotations

import contextlib
import hashlib
from collections.abc import Iterable
from typing import Final

import anyio.to_thread

from search_router.adapters.local.symbol_state import Identified, reason_key, tries_key
from search_router.adapters.local.symbol_store import Derived, DerivedKey, DerivedStore

MOST_TRIES: Final = 3
BIG_BYTES: Final = 128 * 2**10
"""Larger files are read by a child process, which can be ended; a thread of ours would hold everybody up."""
_SET_ASIDE: Final = "set aside, "


def is_set_aside(reason: str) -> bool:
    """Whether a stored reason is of this room: it may not hold on another day."""
    return reason.startswith(_SET_ASIDE)


class SlowFiles:
    """What the store remembers of slow files. `again`: those that were set aside are read all the same."""

    def __init__(self, store: DerivedStore, *, again: bool) -> None:
        self.again = again
        self._store = store

    async def among(self, files: Iterable[Identified]) -> set[str]:
        """The paths of those that were tried before in vain."""
        keys = {each.changed.path: tries_key(each.changed.language, each.blob) for each in files}
        rows = await anyio.to_thread.run_sync(self._store.load, set(keys.values())) if keys else {}
        return {path for path, key in keys.items() if key in rows}

    async def tried_in_vain(self, file: Identified, reason: str) -> str | None:
        """One more time; the reason for which it is set aside from now on, None while it is still tried."""
        language, blob = file.changed.language, file.blob
        key = tries_key(language, blob)
        tries = 1 + _count((await anyio.to_thread.run_sync(self._store.load, [key])).get(key))
        rows: dict[DerivedKey, Derived] = {key: _row(str(tries))}
        said = None
        if tries >= MOST_TRIES:
            said = f"{_SET_ASIDE}{reason} ({tries} times); `search-router index refresh` tries again"
            rows[reason_key(language, blob)] = _row(said)
        await anyio.to_thread.run_sync(self._store.keep, rows)
        return said


def _row(text: str) -> Derived:
    return Derived(hashlib.sha256(text.encode()).hexdigest(), text.encode())


def _count(row: Derived | None) -> int:
    with contextlib.suppress(ValueError):
        return int(row.payload) if row is not None else 0
    return 0
