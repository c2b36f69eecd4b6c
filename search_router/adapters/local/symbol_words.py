"""Rank definitions by the words of a question: which of them are in the name, around it, and in the path.

A definition's score is the share of the question's words that it covers, each word weighted by its rarity among the names of the
searched projects (inverse document frequency, Spärck Jones 1972, in BM25's form). A word in the name counts whole, one that only shares
its stem a little less, one in the container or the path a part. A name that the question spells out in full, in order, comes first.
"""

from __future__ import annotations

import functools
import heapq
import itertools
import math
import re
from collections.abc import Sequence
from typing import Final, NamedTuple

from search_router.adapters.local.code_words import told_words
from search_router.adapters.local.qualified_names import stem, subtokens
from search_router.adapters.local.symbol_space import SearchSpace, definition_hit
from search_router.adapters.local.symbol_table import FoundDefinition, SymbolTable, file_number
from search_router.schema import Hit

MAX_WORDS: Final = 24
CANDIDATES: Final = 64
"""So many definitions, those with the rarest words, and all that are equal to the last of them, are scored in full."""

_IN_NAME, _STEM_IN_NAME, _AROUND, _IN_PATH = 1.0, 0.8, 0.4, 0.3
_TIGHTNESS, _SPELLED_OUT = 0.25, 0.5
_TEST, _FOREIGN = 0.6, 0.5
_KIND = {"function": 1.0, "method": 0.97, "type": 0.9, "macro": 0.9, "module": 0.8, "constant": 0.8, "variable": 0.7, "field": 0.6}
_WORD = re.compile(r"[\w$]+")
_ASKS_FOR_TESTS = frozenset({"test", "tests", "tested", "testing", "spec", "specs", "fixture", "fixtures"})
_EMPTY = """a about all an and any are as at be been being but by can could did do does doing for from get gets had has have how i if in
    into is it its itself me my no not of off on or our out over should so some such than that the their them then there these they
    this those to under up us use used uses using via was we were what when where which while who whom why will with within would you
    your code file files function functions method methods class classes implementation implemented implement happen happens work works
    find show tell explain"""
_EMPTY_WORDS = frozenset(_EMPTY.split())


class _Word(NamedTuple):
    text: str
    stem: str
    weight: float = 0.0


def question_words(terms: Sequence[str], text: str) -> list[str]:
    """The words to rank by, in order, each stem once: of the terms if there are any, else of the text without empty words."""
    source = " ".join(terms) if terms else text
    found: dict[str, str] = {}
    for word in (part for whole in _WORD.findall(source) for part in subtokens(whole)):
        if (terms or word not in _EMPTY_WORDS) and (len(word) > 1 or not word.isascii()):
            found.setdefault(stem(word), word)
    return list(found.values())[:MAX_WORDS]


def rank_by_words(space: SearchSpace, words: Sequence[str], *, limit: int) -> list[Hit]:
    """At most `limit` definitions that share words with the question, best first, in one total order."""
    wanted = [_Word(word, stem(word)) for word in words]
    found = [_Places.of(space, table, wanted) for _, table in space.tables]
    total = sum(table.definition_count for _, table in space.tables)
    counts = [sum(len(places.named[at]) for places in found) for at in range(len(wanted))]
    weights = [math.log(1 + (total - count + 0.5) / (count + 0.5)) for count in counts]
    candidates = _gather(space, found, weights)
    asks_for_tests = not _ASKS_FOR_TESTS.isdisjoint(words)
    weighed = [word._replace(weight=weight) for word, weight in zip(wanted, weights, strict=True)]
    total_weight = sum(weights) or 1.0
    scored = [(-_score(found, weighed, total_weight, asks_for_tests), number, found) for number, found in candidates]
    scored.sort(key=lambda s: (s[0], s[1], s[2].file.path, s[2].definition.start_line, s[2].definition.end_line, s[2].definition.name))
    return [
        definition_hit(space.tables[number][0], found, exact=False, score=-score) for score, number, found in scored[:limit] if score < 0
    ]


class _Places(NamedTuple):
    """Places of one table, a list for each word: definitions with it in their names, and outermost ones of files with it in theirs.

    They stay numbers until it is known which of them are worth a full score: a common word has tens of thousands.
    """

    named: list[Sequence[int]]
    outlines: list[Sequence[int]]

    @classmethod
    def of(cls, space: SearchSpace, table: SymbolTable, wanted: Sequence[_Word]) -> _Places:
        named: list[Sequence[int]] = [table.places_with_stem(word.stem) for word in wanted]
        outlines: list[Sequence[int]] = [table.outlines_with_stem(word.stem) for word in wanted]
        if table.is_whole and space.is_open:
            return cls(named, outlines)
        files = table.files_of(itertools.chain(*named, *outlines))
        there = {number for number, file in files.items() if space.admits(file)}

        def of_these(places: Sequence[int]) -> Sequence[int]:
            return [place for place in places if file_number(place) in there]

        return cls([of_these(places) for places in named], [of_these(places) for places in outlines])


def _gather(space: SearchSpace, found: Sequence[_Places], weights: Sequence[float]) -> list[tuple[int, FoundDefinition]]:
    """The definitions that are worth a full score, by the weight of the words in their names and their files' names."""
    sums: list[dict[int, float]] = []
    for places in found:
        of_table: dict[int, float] = {}
        for named, outlines, weight in zip(places.named, places.outlines, weights, strict=True):
            for share, group in ((weight, named), (weight * _IN_PATH, outlines)):
                for place in group:
                    of_table[place] = of_table.get(place, 0.0) + share
        sums.append(of_table)
    least = heapq.nlargest(CANDIDATES, itertools.chain.from_iterable(of_table.values() for of_table in sums))[-1:] or [0.0]
    return [
        (number, table.at(place))
        for number, ((_, table), of_table) in enumerate(zip(space.tables, sums, strict=True))
        for place, value in of_table.items()
        if value >= least[0]
    ]


def _score(found: FoundDefinition, wanted: Sequence[_Word], total: float, asks_for_tests: bool) -> float:
    _, facts, definition = found
    name, stems = _words_of(definition.name)
    told = told_words(definition.name)
    _, around = _words_of(definition.container)
    covered, in_name = 0.0, set[str]()
    for text, word_stem, weight in wanted:
        if word_stem in stems:
            in_name.add(word_stem)
            covered += weight * (_IN_NAME if text in name else _STEM_IN_NAME)
        elif word_stem in told:
            in_name.add(word_stem)
            covered += weight * _STEM_IN_NAME
        elif word_stem in around:
            covered += weight * _AROUND
        elif word_stem in facts.words:
            covered += weight * _IN_PATH
    tightness = len(in_name) / len(set(stems)) if stems else 0.0
    score = covered / total * (1 - _TIGHTNESS + _TIGHTNESS * tightness)
    if _is_spelled_out(stems, wanted):
        score += _SPELLED_OUT * sum(word.weight for word in wanted if word.stem in in_name) / total
    score *= _KIND.get(definition.kind, 1.0)
    if facts.test and not asks_for_tests:
        score *= _TEST
    return score * _FOREIGN if facts.foreign else score


@functools.lru_cache(maxsize=65_536)
def _words_of(name: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """(subtokens of a name, their stems)."""
    words = tuple(subtokens(name))
    return words, tuple(map(stem, words))


def _is_spelled_out(stems: Sequence[str], wanted: Sequence[_Word]) -> bool:
    """Whether a name of two words or more stands in the question, word by word."""
    if len(stems) < 2:
        return False
    asked = [word.stem for word in wanted]
    if stems[0] not in asked:
        return False
    start = asked.index(stems[0])
    return tuple(asked[start : start + len(stems)]) == tuple(stems)
