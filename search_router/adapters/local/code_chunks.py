"""How a file is cut for search: along its definitions where it has any, else by lines; and which of its lines are comments."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Sequence
from typing import Final, NamedTuple

from search_router.inside import Definition

CHUNK_LINES: Final = 50
MAX_LINE: Final = 2000
"""Of a longer line only this much is read: the rest is data, or minified."""

_HASH = frozenset({"python", "ruby", "bash", "elixir", "yaml", "toml", "makefile", "perl", "r", "julia", "nix", "dockerfile", "cmake"})
_DASHES = frozenset({"lua", "haskell", "sql", "ada"})
_TRIPLE = frozenset({"python", "elixir"})
_TRIPLE_QUOTED = re.compile(r'"""(.*?)"""', re.S)


class Chunk(NamedTuple):
    """1-based closed range of lines."""

    start: int
    end: int


def cut_chunks(line_count: int, definitions: Sequence[Definition]) -> list[Chunk]:
    """Chunks of at most CHUNK_LINES lines that together are the whole file, cut where a definition begins whenever one does in the
    second half of what fits, so that a small function is never cut."""
    starts = sorted({d.start_line for d in definitions if d.kind != "field"})
    chunks: list[Chunk] = []
    first = 1
    while first <= line_count:
        last = min(line_count, first + CHUNK_LINES - 1)
        if last < line_count:
            at = bisect_right(starts, last + 1) - 1
            if at >= 0 and starts[at] > first + CHUNK_LINES // 2:
                last = starts[at] - 1
        chunks.append(Chunk(first, last))
        first = last + 1
    return chunks


def comment_text(lines: Sequence[str], language: str, text: str) -> str:
    """The comments and docstrings of a file, roughly: whole-line and trailing line comments, block comments, triple-quoted strings."""
    if language in ("markdown", "rst", "text"):
        return ""
    found = [m[1] for m in _TRIPLE_QUOTED.finditer(text)] if language in _TRIPLE else []
    mark = "#" if language in _HASH else "--" if language in _DASHES else "//"
    closers = ("-}",) if language == "haskell" else ("*/",)
    inside = False
    for line in lines:
        stripped = line.lstrip()
        if inside or stripped.startswith(("/*", "{-")):
            found.append(stripped)
            inside = not any(c in stripped for c in closers)
        elif stripped.startswith(mark):
            found.append(stripped)
        elif language not in ("bash", "text") and (at := line.find(f"{mark} ")) > 0:
            found.append(line[at:])
    return "\n".join(found)
