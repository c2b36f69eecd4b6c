"""Ranks what grep found. Pure: matches in, places out, and the same places whatever the order in which matches arrive.

By words: a file's score is BM25 over the question's words (Robertson, Zaragoza 2009), normalised to 0..1, with matching lines as the
counts and without a length norm (measured: with b = 0.3 NDCG@10 is 0.02 lower, because the file that does a thing is rarely the
shortest one that names it), plus what its path and its definitions say. Weights were set by hand and lie on a plateau.

By exact match: definitions first, then whole words, then files with more matches.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from search_router.adapters.local.grep_definitions import defined_name, definition_weight
from search_router.adapters.local.grep_matches import FileEnd, LineMatch
from search_router.adapters.local.grep_paths import path_damping, path_words, stem_coverage
from search_router.adapters.local.grep_patterns import Patterns
from search_router.adapters.local.qualified_names import subtokens
from search_router.schema import Intent, QueryForm

K1 = 2.0
INSIDE_WORD = 0.25
"""A word found inside another one (art in start) counts so much of a match at the start of a word or sub-word."""
STEM_WEIGHT, DIRECTORY_SHARE, COVERAGE_WEIGHT, DEFINED_WEIGHT = 0.6, 0.3, 0.5, 0.3
WINDOW_LINES = 15
WINDOWS_PER_FILE = 3
SECOND_WINDOW, SECOND_DECAY = 0.6, 0.5
"""Another window of a file is a place of its own from this share of the best one on, and then scores this share of the file."""
LINES_PER_FILE = 5
LINE_DECAY = 0.85


@dataclass(frozen=True, slots=True)
class Place:
    """A ranked range of lines, 1-based and closed."""

    project: str
    path: str
    start_line: int
    end_line: int
    score: float
    is_cut: bool
    is_binary: bool


class SeenLine(NamedTuple):
    """A matching line: the needles in it and those in a name that it defines, each as bits, and its weight as an exact match."""

    line: int
    needles: int
    defined: int
    weight: float
    is_cut: bool


@dataclass(slots=True)
class FileTally:
    """What was seen of one file so far. `counts` are matching lines for each needle."""

    project: str
    path: str
    counts: list[float]
    is_binary: bool = False
    lines: list[SeenLine] = field(default_factory=list["SeenLine"])


class Tally:
    """Collects the matches of one call, over all of its projects."""

    def __init__(self, patterns: Patterns) -> None:
        self.patterns = patterns
        self.files: dict[tuple[str, str], FileTally] = {}
        self._folded = tuple(needle.casefold() for needle in patterns.needles)
        self._read = self._read_words if patterns.by_words else self._read_exact

    @property
    def is_telling(self) -> bool:
        """Whether anything was found, and all of it in files that were read to their end."""
        return bool(self.files) and not any(file.is_binary for file in self.files.values())

    def see(self, project: str, match: LineMatch) -> None:
        """Count one matching line."""
        key = (project, match.path)
        file = self.files.get(key)
        if file is None:
            file = self.files[key] = FileTally(project, match.path, [0.0] * len(self._folded))
        file.lines.append(self._read(match, file.counts))

    def end(self, project: str, end: FileEnd) -> None:
        """Note whether a NUL byte ended the reading of a file."""
        if file := self.files.get((project, end.path)):
            file.is_binary = end.is_binary

    def _read_words(self, match: LineMatch, counts: list[float]) -> SeenLine:
        # Called for every matching line, twenty thousand times for common words: as few calls as can be.
        _, number, text, is_cut = match
        folded = text.casefold()
        if len(folded) != len(text):
            text = folded
        seen = defined = 0
        for index, needle in enumerate(self._folded):
            at = folded.find(needle)
            if at < 0:
                continue
            if at == 0 or not text[at - 1].isalnum() or _starts_word(text, folded, needle, at):
                counts[index] += 1
                seen |= 1 << index
            else:
                counts[index] += INSIDE_WORD
        if seen and (span := defined_name(text)) is not None:
            start, end = span
            for index, needle in enumerate(self._folded):
                if seen >> index & 1 and _starts_word(text, folded, needle, folded.find(needle, start, end), end):
                    defined |= 1 << index
        return SeenLine(number, seen, defined, 0.0, is_cut)

    def _read_exact(self, match: LineMatch, counts: list[float]) -> SeenLine:
        if self.patterns.form is QueryForm.REGEX:
            counts[0] += 1
            return SeenLine(match.line, 1, 0, 1.0 if defined_name(match.text) else 0.0, match.is_cut)
        seen = [i for i, needle in enumerate(self.patterns.needles) if needle in match.text]
        weight = max((definition_weight(match.text, self.patterns.needles[i]) for i in seen), default=0.0)
        weight += 0.5 * max(0, len(seen) - 1) + 0.5 * any(_is_whole(match.text, self.patterns.needles[i]) for i in seen)
        for index in seen:
            counts[index] += 1
        return SeenLine(match.line, sum(1 << index for index in seen), 0, weight, match.is_cut)


def rank_places(tally: Tally, intent: Intent, limit: int, *, files: int = 0, frequency: Sequence[int] | None = None) -> tuple[Place, ...]:
    """The best `limit` places.

    `files` counts all that was searched, also without matches; 0 when nobody counted. `frequency` is in how many of them each needle
    is, when not all of those with matches are in the tally.
    """
    places = _rank_words(tally, intent, limit, frequency, files) if tally.patterns.by_words else _rank_exact(tally, intent)
    return tuple(sorted(places, key=lambda p: (-p.score, p.project, p.path, p.start_line))[:limit])


def score_files(
    found: Sequence[FileTally], patterns: Patterns, intent: Intent, frequency: Sequence[int], files: int
) -> list[tuple[float, str, str, FileTally]]:
    """(negative score, project, path, file) of files found by words, best first."""
    weights = word_weights(frequency, max(files, len(found), *frequency))
    scored = [(-_word_score(file, patterns.needles, weights, intent), file.project, file.path, file) for file in found]
    return sorted(scored, key=_order)


def _rank_words(tally: Tally, intent: Intent, limit: int, frequency: Sequence[int] | None, files: int) -> Iterator[Place]:
    found = list(tally.files.values())
    if frequency is None:
        frequency = [sum(file.counts[i] > 0 for file in found) for i in range(len(tally.patterns.needles))]
    weights = word_weights(frequency, max(files, len(found), *frequency))
    for negative, _, _, file in score_files(found, tally.patterns, intent, frequency, files)[:limit]:
        windows = _best_windows(file.lines, weights)
        for position, (value, lines) in enumerate(windows):
            share = SECOND_DECAY * value / windows[0][0] if position and windows[0][0] else 1.0
            yield _place(file, lines, -negative * share)


def word_weights(frequency: Sequence[int], total: int) -> list[float]:
    """Inverse document frequency of each needle."""
    return [math.log(1 + (total - n + 0.5) / (n + 0.5)) for n in frequency]


def _order(scored: tuple[float, str, str, FileTally]) -> tuple[float, str, str]:
    return scored[:3]


def _word_score(file: FileTally, needles: Sequence[str], weights: Sequence[float], intent: Intent) -> float:
    whole = sum(weights) or 1.0
    stem, directory, _ = path_words(file.path)
    text = name = 0.0
    for weight, count, needle in zip(weights, file.counts, needles, strict=True):
        text += weight * count / (count + K1)
        name += weight if needle in stem else DIRECTORY_SHARE * weight if needle in directory else 0.0
    named = 0
    for line in file.lines:
        named |= line.defined
    defined = _weight_of(named, weights)
    coverage = stem_coverage(file.path, needles)
    score = (text + STEM_WEIGHT * name + DEFINED_WEIGHT * defined) / whole + COVERAGE_WEIGHT * coverage
    return round(score * path_damping(file.path, needles, intent), 6)


def _best_windows(lines: Sequence[SeenLine], weights: Sequence[float]) -> list[tuple[float, Sequence[SeenLine]]]:
    """(value, lines) of up to three windows that share no line, best first, at least one."""
    lines = sorted(lines, key=lambda line: line.line)
    spans: list[tuple[float, int, int]] = []
    values: dict[tuple[int, int], float] = {}
    start = 0
    for end, last in enumerate(lines):
        while last.line - lines[start].line >= WINDOW_LINES:
            start += 1
        content = _content(lines[start : end + 1])
        if content not in values:
            values[content] = _weight_of(content[0], weights) + DEFINED_WEIGHT * _weight_of(content[1], weights)
        spans.append((-values[content], start, end))
    best: list[tuple[float, int, int]] = []
    for value, first, last in sorted(spans):
        if best and (len(best) == WINDOWS_PER_FILE or -value < SECOND_WINDOW * -best[0][0]):
            break
        if all(last < taken_first or first > taken_last for _, taken_first, taken_last in best):
            best.append((value, first, last))
    return [(-value, _trim_window(lines[first : last + 1])) for value, first, last in best]


def _trim_window(lines: Sequence[SeenLine]) -> Sequence[SeenLine]:
    """The fewest lines that have as much in them: what adds nothing at the end goes first, then at the start."""
    content = _content(lines)
    while len(lines) > 1 and _content(lines[:-1]) == content:
        lines = lines[:-1]
    while len(lines) > 1 and _content(lines[1:]) == content:
        lines = lines[1:]
    return lines


def _content(lines: Sequence[SeenLine]) -> tuple[int, int]:
    """The needles of some lines, and those in names that they define, as bits."""
    found = defined = 0
    for line in lines:
        found |= line.needles
        defined |= line.defined
    return found, defined


def _weight_of(needles: int, weights: Sequence[float]) -> float:
    return sum(weight for index, weight in enumerate(weights) if needles >> index & 1)


def _rank_exact(tally: Tally, intent: Intent) -> Iterator[Place]:
    needles = tally.patterns.needles
    for file in tally.files.values():
        words = {word for needle in needles for word in subtokens(needle)} if tally.patterns.fixed else set[str]()
        base = 0.15 * math.log2(1 + len(file.lines)) - 0.01 * file.path.count("/")
        base += 0.5 * (stem_coverage(file.path, tuple(words)) if words else 0.0)
        damping = path_damping(file.path, needles, intent)
        best = sorted(file.lines, key=lambda line: (-line.weight, line.line))[:LINES_PER_FILE]
        for position, line in enumerate(best):
            yield _place(file, (line,), round((1 + base + line.weight) * damping * LINE_DECAY**position, 6))


def _place(file: FileTally, lines: Sequence[SeenLine], score: float) -> Place:
    cut = any(line.is_cut for line in lines)
    return Place(file.project, file.path, lines[0].line, lines[-1].line, score, cut, file.is_binary)


def _starts_word(text: str, folded: str, needle: str, at: int, end: int | None = None) -> bool:
    """Whether the needle stands at the start of a word or sub-word (jar in cookie_jar, CookieJar), at `at` or in a place behind it."""
    while at >= 0:
        if at == 0 or not text[at - 1].isalnum() or (text[at].isupper() and not text[at - 1].isupper()):
            return True
        at = folded.find(needle, at + 1, end)
    return False


def _is_whole(text: str, needle: str) -> bool:
    at = text.find(needle)
    end = at + len(needle)
    before, behind = text[at - 1 : at] if at > 0 else "", text[end : end + 1]
    return not (_is_word(before) and _is_word(needle[:1])) and not (_is_word(behind) and _is_word(needle[-1:]))


def _is_word(character: str) -> bool:
    return character == "_" or character.isalnum()
