"""Files that are new or may have changed: in which order they are taken, in which pieces, and what their bytes are."""

from __future__ import annotations

import time
from collections.abc import Container, Iterator, Sequence
from pathlib import Path
from typing import Final

from search_router.adapters.local.code_words import count_words
from search_router.adapters.local.extract_worker import read_source
from search_router.adapters.local.grammars import SYNTAX_LANGUAGES
from search_router.adapters.local.languages import is_test_path, is_vendored_path
from search_router.adapters.local.left_out import LeftOut
from search_router.adapters.local.symbol_state import Changed, Identified

RACY_NS: Final = 2_000_000_000
"""A file that changed less than this before it was read may change again within one tick of its clock: it is read again."""

_FIRST_FILES = 120
_FIRST_BYTES = 2**20
_SLICE_FILES = 8
_SLICE_BYTES = 256 * 2**10


def identify_file(root: Path, changed: Changed, max_bytes: int) -> tuple[Identified | LeftOut, bool]:
    """(the file's hash or why it has none, whether an equal stamp will mean the same). Blocks."""
    now = time.time_ns()
    source = read_source(root, changed.path, max_bytes=max_bytes)
    old = now - changed.stamp.mtime_ns > RACY_NS
    if isinstance(source, LeftOut):
        return source, old and source.lies_in_bytes
    settled = old and "changing" not in source.flags
    return Identified(changed, source.blob, settled), settled


def in_order(changed: Sequence[Changed], words: Container[str]) -> list[Changed]:
    """What a question is likely to want first: paths with its words, then source, tests, what others wrote, and text without syntax."""

    def place(each: Changed) -> tuple[int, bool, bool, bool]:
        named = sum(word in words for word in count_words(each.path)) if words else 0
        return -named, is_vendored_path(each.path), each.language not in SYNTAX_LANGUAGES, is_test_path(each.path)

    return sorted(changed, key=place)


def few_first(changed: Sequence[Changed]) -> list[Changed]:
    """The first of many files, about as much as is extracted here until a child has started: the likeliest, when they are in order."""
    size = 0
    for count, each in enumerate(changed):
        size += each.stamp.size
        if count >= _FIRST_FILES or size > _FIRST_BYTES:
            return list(changed[:count])
    return list(changed)


def short_slices(changed: Sequence[Changed]) -> Iterator[list[Changed]]:
    """Pieces of work that are short enough to wait for when a refresh is cancelled."""
    part: list[Changed] = []
    size = 0
    for each in changed:
        if part and (len(part) >= _SLICE_FILES or size + each.stamp.size > _SLICE_BYTES):
            yield part
            part, size = [], 0
        part.append(each)
        size += each.stamp.size
    if part:
        yield part
