"""The texts that are given to embedders: chunks of a file, its path, and both as plain words. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from search_router.adapters.local.code_chunks import MAX_LINE, Chunk
from search_router.adapters.local.code_words import IDENTIFIER, MAX_IDENTIFIER
from search_router.adapters.local.qualified_names import subtokens
from search_router.adapters.local.textfile import split_lines

PLAIN: Final = "text-1"
SPLIT: Final = "subtokens-1"
MAX_CHARACTERS: Final = 8000
"""Of a longer chunk only this much is embedded."""


def chunk_texts(text: str, chunks: Sequence[Chunk]) -> list[str]:
    """The text of each chunk, cut at MAX_CHARACTERS."""
    lines = [line[:MAX_LINE] for line in split_lines(text)]
    return ["\n".join(lines[chunk.start - 1 : chunk.end])[:MAX_CHARACTERS] for chunk in chunks]


def path_text(path: str) -> str:
    """What a path says of its file: everything but the extension."""
    return path.rpartition(".")[0] or path


def split_words(text: str) -> str:
    """The subtokens of a text in order: `getCookieJar(x)` becomes `get cookie jar x`. Static embedders know words, not identifiers."""
    names = (name for name in IDENTIFIER.findall(text) if len(name) <= MAX_IDENTIFIER)
    return " ".join(part for name in names for part in subtokens(name))
