"""How often each word of a question is in each file, counted without reading the lines, and which files that makes worth reading.

Reading a matching line costs some ten times as much as counting its matches. Where the words of a question are on too many lines, the
engine prints the matches alone, and the lines of the best files only are read afterwards. No word is left out, however common.
"""

from __future__ import annotations

import os
import re
import unicodedata
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

from search_router.adapters.local.grep_matches import decode_line
from search_router.adapters.local.grep_patterns import Patterns, keep_needles
from search_router.adapters.local.grep_rank import FileTally, Tally, score_files, word_weights
from search_router.schema import Intent

FileKey = tuple[str, str]
"""Project id and path."""
FILES_A_PLACE = 3
"""So many files for each place that is wanted: what a count cannot see (a definition, the start of a word) moves files about."""
LINES_READ, LEAST_FILES, MOST_LINES = 2_000, 20, 12_000
"""Files are chosen until they have so many matches; at least so many files, unless those would have far too many."""
TELLING = 0.35
"""A word with less than this share of the best word's weight is not worth a line of its own, where there are too many lines."""
COUNTED_AT_ONCE = 2**20
"""Bytes. The engine writes in small pieces, and counting each on its own takes several times as long."""
_SEARCHED = re.compile(rb"^(\d+) files searched$", re.MULTILINE)


@dataclass(slots=True)
class Census:
    """What was counted in one call, over all of its projects. `counts` are matches of each needle; `named` files no filter lists."""

    patterns: Patterns
    counts: dict[FileKey, list[float]] = field(default_factory=dict[FileKey, list[float]])
    named: set[FileKey] = field(default_factory=set[FileKey])
    _index: dict[str, tuple[int, ...]] = field(init=False)

    def __post_init__(self) -> None:
        folded = [needle.casefold() for needle in self.patterns.needles]
        self._index = {
            spelling.casefold(): tuple(i for i, needle in enumerate(folded) if needle in spelling.casefold()) for spelling in folded
        }
        for spelling in self.patterns.spellings:  # those with decomposed accents stand behind the needles, in the needles' order
            self._index.setdefault(spelling.casefold(), self._index.get(_composed(spelling), ()))

    @property
    def longest_first(self) -> Patterns:
        """The patterns in the order in which a longer one is not taken for a shorter one at its beginning."""
        return replace(self.patterns, spellings=tuple(sorted(self.patterns.spellings, key=lambda s: (-len(s), s))))

    @property
    def frequency(self) -> list[int]:
        """In how many files each needle is."""
        return [sum(counts[i] > 0 for counts in self.counts.values()) for i in range(len(self.patterns.needles))]

    def matches_in(self, project: str) -> list[float]:
        """How often each needle is in the files of one project."""
        return [sum(counts[i] for key, counts in self.counts.items() if key[0] == project) for i in range(len(self.patterns.needles))]

    def add(self, key: FileKey, matched: str, times: int) -> None:
        """Count one text that matched in one file."""
        counts = self.counts.get(key)
        if counts is None:
            counts = self.counts[key] = [0.0] * len(self.patterns.needles)
        for index in self._index.get(matched) or self._index.get(matched.casefold(), ()):
            counts[index] += times

    def best_files(self, intent: Intent, places: int, files: int) -> list[FileKey]:
        """The files whose lines are worth reading for so many places, best first; `files` as for `rank_places`."""
        tallies = [FileTally(*key, counts) for key, counts in self.counts.items()]
        chosen: list[FileKey] = []
        lines = 0.0
        for _, project, path, file in score_files(tallies, self.patterns, intent, self.frequency, files)[: places * FILES_A_PLACE]:
            lines += sum(file.counts)
            if chosen and (lines > MOST_LINES or (lines > LINES_READ and len(chosen) >= LEAST_FILES)):
                break
            chosen.append((project, path))
        return chosen

    def telling_patterns(self, chosen: Sequence[FileKey], files: int) -> Patterns:
        """The patterns whose lines are worth reading in the chosen files; the others are still seen on those lines.

        The commonest words go first, until the lines are few enough or only words remain that tell much.
        """
        frequency = self.frequency
        weights = word_weights(frequency, max(files, len(self.counts), *frequency))
        matches = [sum(self.counts[key][i] for key in chosen) for i in range(len(weights))]
        kept = set(range(len(weights)))
        for index in sorted(kept, key=lambda i: (weights[i], i)):
            if sum(matches[i] for i in kept) <= LINES_READ or weights[index] >= TELLING * max(weights):
                break
            kept.remove(index)
        return keep_needles(self.patterns, kept)

    def complete(self, tally: Tally) -> None:
        """Give the tally the counts of the words whose lines were not all read."""
        unread = [i for i, needle in enumerate(tally.patterns.needles) if needle not in tally.patterns.spellings]
        for key, file in tally.files.items():
            for index in unread:
                file.counts[index] = max(file.counts[index], self.counts[key][index] if key in self.counts else 0.0)


def _composed(spelling: str) -> str:
    return unicodedata.normalize("NFC", spelling).casefold()


class CensusReader:
    """Reads `path NUL match LF` records, and ripgrep's statistics behind them. A path may have line breaks in it, a match has none."""

    def __init__(self) -> None:
        self._counts: Counter[bytes] = Counter()
        self._held = bytearray()

    def feed(self, chunk: bytes) -> None:
        """Take a chunk, which may be cut anywhere."""
        self._held += chunk
        if len(self._held) >= COUNTED_AT_ONCE:
            self._count()

    def close(self) -> None:
        """Count what is held."""
        self._count()

    def _count(self) -> None:
        *lines, rest = bytes(self._held).split(b"\n")
        whole = [line for line in lines if b"\0" in line]
        tail = lines[len(whole) :]
        if any(b"\0" in line for line in tail):
            whole, rest = _rejoin(lines, rest)
        elif tail:  # the statistics, or the beginning of a path
            rest = b"\n".join((*tail, rest))
        self._held[:] = rest
        self._counts.update(whole)

    @property
    def files_searched(self) -> int:
        """How many files the engine read, 0 when it did not say."""
        said = _SEARCHED.search(self._held)
        return int(said[1]) if said else 0

    def __iter__(self) -> Iterator[tuple[str, str, int]]:
        """(path, matched text, times)."""
        texts: dict[bytes, str] = {}
        last, path = b"", ""
        for record, times in self._counts.items():
            name, _, matched = record.partition(b"\0")
            if name != last:  # records of one file come together
                last, path = name, os.fsdecode(name).removeprefix("./")
            text = texts.get(matched)
            if text is None:
                text = texts[matched] = decode_line(matched)
            yield path, text, times


def _rejoin(lines: Sequence[bytes], rest: bytes) -> tuple[list[bytes], bytes]:
    """Lines without a NUL are the beginning of the path in the next one; those at the end wait for it."""
    whole: list[bytes] = []
    begun: list[bytes] = []
    for line in lines:
        begun.append(line)
        if b"\0" in line:
            whole.append(b"\n".join(begun))
            begun.clear()
    return whole, b"\n".join((*begun, rest))
