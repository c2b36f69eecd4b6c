"""Ranks the entries of some libraries for a question: BM25 over name, signature and documentation, and how far the name is the question's.

Pure but for numpy. BM25 as in Robertson and Zaragoza 2009.
"""

from __future__ import annotations

import math
import re
from array import array
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

import numpy as np

from search_router.adapters.local.code_chunks import Chunk
from search_router.adapters.local.code_segment import Segment, SegmentFile
from search_router.adapters.local.code_terms import FileTerms
from search_router.adapters.local.code_words import IDENTIFIER, count_words
from search_router.adapters.local.docs_entries import Entry

K1: Final = 1.2
B: Final = 0.5
NAME_WORTH: Final = 3
NAME_COVER: Final = 1.0
EXACT: Final = 2.0
PRIVATE: Final = 0.6
SECTION: Final = 0.8
UNDOCUMENTED: Final = 0.8
"""Factors and shares were set by reason and not fitted: a name that is the question's counts as much as all text together."""


class LibraryText(NamedTuple):
    """The entries of one library, and their postings: one chunk an entry."""

    entries: tuple[Entry, ...]
    segment: Segment


class RankedEntry(NamedTuple):
    """An entry (number in its library's list) with its score and the share of the question's information that it has."""

    library: int
    number: int
    score: float
    coverage: float
    bm25: float
    exact: bool


def make_library_text(entries: Sequence[Entry]) -> LibraryText:
    """Count the words of every entry. Blocks."""
    kept = tuple(entries[:60_000])
    number: dict[str, int] = {}
    fields, places, counts = array("H"), array("I"), array("H")
    for at, entry in enumerate(kept):
        name = count_words(_own_name(entry.name))
        words = Counter({word: count * NAME_WORTH for word, count in name.items()})
        words.update(count_words(f"{entry.name} {entry.signature} {entry.doc}"))
        for word, count in words.items():
            fields.append(at + 2)
            places.append(number.setdefault(word, len(number)))
            counts.append(min(count, 65_535))
    terms = FileTerms(len(kept), tuple(Chunk(1, 1) for _ in kept), tuple(number), fields, places, counts)
    return LibraryText(kept, Segment([SegmentFile("library", terms)]))


def rank_entries(libraries: Sequence[LibraryText], words: Mapping[str, float], names: Sequence[str], limit: int) -> list[RankedEntry]:
    """At most `limit` entries of all libraries, best first; ties by library and name.

    `words` are the question's index words without the names of the libraries themselves, `names` what in it is written like code.
    """
    count = sum(len(text.entries) for text in libraries)
    lengths = [text.segment.chunk_words for text in libraries]
    average = sum(float(n.sum()) for n in lengths) / max(count, 1)
    scores = [np.zeros(len(n), np.float32) for n in lengths]
    covered = [np.zeros(len(n), np.float32) for n in lengths]
    information: dict[str, float] = {}
    for word, weight in words.items():
        rows = [text.segment.body.of(text.segment.number.get(word)) for text in libraries]
        holders = sum(len(docs) for docs, _ in rows)
        information[word] = math.log(1 + (count - holders + 0.5) / (holders + 0.5)) * weight
        for score, cover, n, (docs, counts) in zip(scores, covered, lengths, rows, strict=True):
            cover[docs] += information[word]
            score[docs] += information[word] * (K1 + 1) * counts / (counts + K1 * (1 - B + B * n[docs] / max(average, 1e-9)))
    total = max(sum(information.values()), 1e-9)
    top = max((float(s.max(initial=0.0)) for s in scores), default=0.0) or 1.0
    wanted = [name.lower().removesuffix("()") for name in names]
    found: list[RankedEntry] = []
    for at, (text, score, cover) in enumerate(zip(libraries, scores, covered, strict=True)):
        strong = {int(number) for number in np.argsort(-score, kind="stable")[: limit * 4]}
        named = {n for n, entry in enumerate(text.entries) if wanted and _is_named(entry.name, wanted)}
        for number in strong | named:
            raw, entry = float(score[number]), text.entries[number]
            exact = number in named
            if raw <= 0 and not exact:
                continue
            value = (raw / top + NAME_COVER * _name_cover(entry, information, total) + (EXACT if exact else 0.0)) * _worth(entry)
            found.append(RankedEntry(at, number, round(value, 6), round(min(1.0, float(cover[number]) / total), 4), round(raw, 3), exact))
    found.sort(
        key=lambda r: (-r.score, r.library, len(libraries[r.library].entries[r.number].name), libraries[r.library].entries[r.number].name)
    )
    return found[:limit]


def _own_name(name: str) -> str:
    """The last part of a qualified name, with its class."""
    return " ".join(re.split(r"\.|::", name.removesuffix("()"))[-2:])


def _name_cover(entry: Entry, information: Mapping[str, float], total: float) -> float:
    """The share of the question's information in the entry's own name, times the share of that name that is the question's."""
    if entry.kind == "section":
        return 0.0
    own = set(count_words(re.split(r"\.|::", entry.name.removesuffix("()"))[-1]))
    met = [word for word in own if word in information]
    return sum(information[word] for word in met) / total * len(met) / len(own) if own else 0.0


def _is_named(name: str, wanted: Sequence[str]) -> bool:
    lower = name.lower().removesuffix("()")
    return any(lower == each or lower.endswith((f".{each}", f"::{each}")) for each in wanted)


def _worth(entry: Entry) -> float:
    factor = SECTION if entry.kind == "section" else 1.0
    if any(part.startswith("_") for part in re.split(r"\.|::", entry.name)):
        factor *= PRIVATE
    return factor if entry.doc else factor * UNDOCUMENTED


def code_names(question: str) -> tuple[str, ...]:
    """What in a question is written like code: dotted, with an underscore or a hump, followed by parentheses, or quoted."""
    found = re.findall(r"`([^`]{2,80})`|([A-Za-z_]\w*(?:(?:\.|::)\w+)+)|([A-Za-z_]\w*)\(\)|\b(\w*[a-z][A-Z]\w*|\w+_\w+)\b", question)
    return tuple(dict.fromkeys(name for groups in found for name in groups if name and IDENTIFIER.search(name)))
