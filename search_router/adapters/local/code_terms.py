"""What is kept of one file's text for ranking: for each chunk how often each word stands in it, and the words of names and comments."""

from __future__ import annotations

import json
import struct
import zlib
from array import array
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from search_router.adapters.local.code_chunks import MAX_LINE, Chunk, comment_text, cut_chunks
from search_router.adapters.local.code_words import count_words
from search_router.adapters.local.symbol_packing import DamagedPayload
from search_router.inside import Definition

_HEADER = struct.Struct("<III")
_LEVEL = 1
_MOST = 65_535


@dataclass(frozen=True, slots=True)
class FileTerms:
    """Words of one file, each once, and triples (field, word, count): field 0 is comments, 1 names of definitions, 2 + i chunk i.

    `whole` says that the chunks have every word of the file's text, so that one which is not among them is not in the file.
    """

    line_count: int
    chunks: tuple[Chunk, ...]
    words: tuple[str, ...]
    fields: array[int]
    places: array[int]
    counts: array[int]
    whole: bool = False


def derive_terms(text: str, language: str, definitions: Sequence[Definition]) -> FileTerms:
    """The words of one file. Lines are cut at MAX_LINE characters."""
    lines = text.split("\n")
    is_whole = max(map(len, lines)) <= MAX_LINE
    if not is_whole:
        lines = [line if len(line) <= MAX_LINE else line[:MAX_LINE] for line in lines]
    if lines and not lines[-1]:
        lines.pop()
    text = "\n".join(lines)
    chunks = tuple(cut_chunks(len(lines), definitions))
    counted: list[Counter[str]] = [count_words(comment_text(lines, language, text)), Counter()]
    for definition in definitions:
        counted[1].update(count_words(definition.name))
    counted += [count_words("\n".join(lines[c.start - 1 : c.end])) for c in chunks]
    number: dict[str, int] = {}
    fields, places, counts = array("H"), array("I"), array("H")
    for field, words in enumerate(counted[:_MOST]):
        fields.extend([field] * len(words))
        places.extend([number.setdefault(word, len(number)) for word in words])
        counts.extend([min(count, _MOST) for count in words.values()])
    return FileTerms(len(lines), chunks, tuple(number), fields, places, counts, is_whole and len(counted) <= _MOST)


def pack_terms(terms: FileTerms) -> bytes:
    """Bytes of a file's terms: compressed, with zlib's checksum over them; arrays in this machine's byte order."""
    text = json.dumps([terms.line_count, list(terms.chunks), terms.words], separators=(",", ":")).encode()
    head = _HEADER.pack(len(text), len(terms.fields), terms.whole)
    return zlib.compress(head + text + terms.fields.tobytes() + terms.places.tobytes() + terms.counts.tobytes(), _LEVEL)


def unpack_terms(data: bytes) -> FileTerms:
    """The terms that were packed. Raises DamagedPayload for anything else."""
    try:
        raw = zlib.decompress(data)
        size, count, whole = _HEADER.unpack_from(raw)
        at = _HEADER.size + size
        line_count, chunks, words = json.loads(raw[_HEADER.size : at])
        fields, places, counts = array("H"), array("I"), array("H")
        for numbers in (fields, places, counts):
            width = numbers.itemsize * count
            numbers.frombytes(raw[at : at + width])
            at += width
        if at != len(raw):
            raise ValueError(f"{len(raw)} bytes instead of {at}")
        return FileTerms(line_count, tuple(Chunk(*c) for c in chunks), tuple(words), fields, places, counts, bool(whole))
    except (zlib.error, struct.error, ValueError, TypeError) as error:
        raise DamagedPayload(f"a packed terms record is damaged: {error}") from error
