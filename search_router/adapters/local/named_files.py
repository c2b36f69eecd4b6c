"""Which files can have a name in them, from an index that is in step with the tree: the others need not be read to look for it."""

from __future__ import annotations

import codecs
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final, Protocol

import anyio.to_thread

from search_router.adapters.local.manifest import FileEntry
from search_router.adapters.local.textfile import BINARY_HEAD

if TYPE_CHECKING:
    from search_router.adapters.local.symbol_state import ProjectSymbols
    from search_router.adapters.local.symbol_table import SymbolTable

MOST_FILES: Final = 400
MOST_OF_ALL: Final = 1 / 40
"""With more to be read one by one than the larger of these, a search of the whole tree is as fast."""
MOST_CHARACTERS: Final = 250_000
"""Of all their paths together: a command line has two megabytes on Linux, with the environment."""
MOST_LOOKED_AT: Final = 5000
HIDES_FILES: Final = frozenset({"listing-cut", "unreadable", "nested-repository", "submodule-not-checked-out"})
"""Reasons for which there may be files that a search of the tree would meet, or speak of, and the list does not have."""


class Words(Protocol):
    """The words of every indexed file of a project, as of one generation of its table."""

    def files_with(self, names: Iterable[str]) -> set[str] | None:
        """Files that may have one of the names; None where it cannot tell."""
        ...

    def differing(self, table: SymbolTable) -> list[str]:
        """Files of the table, as it is now, whose words it does not know."""
        ...


class Unread:
    """The listed files of a project whose words no index has, but for those that are binary from their beginning."""

    def __init__(self) -> None:
        self._entries: tuple[FileEntry, ...] | None = None
        self._paths: tuple[str, ...] | None = None
        self._binary: dict[FileEntry, bool] = {}

    async def of(self, root: Path, state: ProjectSymbols) -> tuple[str, ...] | None:
        """Their paths; None where they are too many."""
        entries = state.entries
        if entries is not self._entries:
            seen, other = state.seen, state.other
            unread = [e for e in entries if e.path in other or (known := seen.get(e.path)) is None or known.reason or not known.settled]
            self._paths = await anyio.to_thread.run_sync(self._texts, root, unread) if len(unread) <= MOST_LOOKED_AT else None
            self._entries = entries
        return self._paths

    def _texts(self, root: Path, entries: Sequence[FileEntry]) -> tuple[str, ...]:
        self._binary = {entry: self._binary[entry] if entry in self._binary else _is_binary(root, entry.path) for entry in entries}
        return tuple(entry.path for entry, binary in self._binary.items() if not binary)


def _is_binary(root: Path, path: str) -> bool:
    """Whether a file has a NUL so near its start that git and ripgrep take it for binary; a file that cannot be read is not known to."""
    try:
        with (root / path).open("rb") as file:
            head = file.read(BINARY_HEAD)
    except (OSError, ValueError):
        return False
    return b"\0" in head and not head.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE, codecs.BOM_UTF32_BE))


async def files_that_may_have(root: Path, state: ProjectSymbols, names: Iterable[str]) -> tuple[str, ...] | None:
    """Every file of a project that may have one of these names as a word of its own, sorted.

    None where that is not known, or they are too many for it to be of use. The caller knows that the table is in step with the tree.
    """
    words, hidden = state.words, HIDES_FILES.intersection(state.reasons)
    found = words.files_with(names) if words is not None and not hidden else None
    most = max(MOST_FILES, MOST_OF_ALL * len(state.entries))
    if words is None or found is None or len(found) > most:
        return None
    found = {path for path in found if path in state.table}.union(words.differing(state.table))
    unread = await state.unread.of(root, state)
    if unread is None:
        return None
    found.update(unread)
    return tuple(sorted(found)) if len(found) <= most and sum(map(len, found)) <= MOST_CHARACTERS else None
