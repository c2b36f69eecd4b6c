"""What is known of a project between two refreshes of its symbols, and what a refresh reports."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple
from weakref import WeakValueDictionary

from search_router.adapters.local.grammars import extractor_version
from search_router.adapters.local.languages import LANGUAGES
from search_router.adapters.local.left_out import LeftOut
from search_router.adapters.local.live_listing import LiveListing
from search_router.adapters.local.manifest import FileEntry
from search_router.adapters.local.named_files import Unread, Words
from search_router.adapters.local.symbol_store import DerivedKey, FileStamp
from search_router.adapters.local.symbol_table import IndexedFile, SymbolTable

KnownFiles = WeakValueDictionary[DerivedKey, IndexedFile]


@dataclass(frozen=True, slots=True)
class RefreshReport:
    """What one refresh did.

    `files` have symbols now; `parsed` and `reused` count those that were new or changed; `left_out` have none, for a reason that
    lies in the file; `missing` have none because extraction failed, and are tried again next time.
    """

    files: int
    parsed: int
    reused: int
    left_out: tuple[LeftOut, ...]
    missing: tuple[LeftOut, ...]
    ms: float


class Changed(NamedTuple):
    """A source file that is new, or may have other bytes than before."""

    path: str
    language: str
    stamp: FileStamp


class Seen(NamedTuple):
    """What is known of a path: its stamp, whether an equal stamp means equal bytes, its blob id, or why it has no symbols."""

    stamp: FileStamp
    settled: bool
    blob: str
    reason: str = ""


class Identified(NamedTuple):
    """A changed file with the blob id of its bytes, and whether an equal stamp will mean equal bytes."""

    changed: Changed
    blob: str
    settled: bool


@dataclass(eq=False, slots=True)
class ProjectSymbols:
    """One project's state between refreshes. `waiting` of `total` source files are not in the table as they are on disk.

    `entries` is the last list of files, `reasons` why others were left out of it. `listed` is the same list where everything here agrees
    with it, None when some of it has to be looked at again whatever it says. `report` is the one that was made of it, and `nested` what
    was left to other projects. `words` is set by who made something of the table that knows the words of each file.
    """

    table: SymbolTable = field(default_factory=SymbolTable)
    seen: dict[str, Seen] = field(default_factory=dict[str, Seen])
    other: set[str] = field(default_factory=set[str])
    stamps: dict[str, tuple[FileStamp, str]] | None = None
    waiting: int = 0
    total: int | None = None
    listed: tuple[FileEntry, ...] | None = None
    report: RefreshReport | None = None
    nested: tuple[Path, ...] = ()
    entries: tuple[FileEntry, ...] = ()
    reasons: frozenset[str] = frozenset()
    listing: LiveListing | None = None
    words: Words | None = None
    unread: Unread = field(default_factory=Unread)


def derived_key(language: str, blob: str) -> DerivedKey:
    """The store's name for the symbols of these bytes in this language, as this version extracts them."""
    return DerivedKey(f"symbols/{language}", blob, extractor_version(language))


def reason_key(language: str, blob: str) -> DerivedKey:
    """The store's name for why these bytes have no symbols in this language; its payload is the reason in UTF-8."""
    return DerivedKey(f"left-out/{language}", blob, extractor_version(language))


def tries_key(language: str, blob: str) -> DerivedKey:
    """The store's name for how often reading these bytes came to no end; its payload is the number in decimal digits."""
    return DerivedKey(f"tries/{language}", blob, extractor_version(language))


def current_names() -> frozenset[tuple[str, str]]:
    """(kind, version) of every row that this installation would read."""
    languages = (*LANGUAGES, "text")
    keys = [make(language, "") for language in languages for make in (derived_key, reason_key, tries_key)]
    return frozenset((key.kind, key.version) for key in keys)
