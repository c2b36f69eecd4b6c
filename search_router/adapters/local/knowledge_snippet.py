"""The lines of a section that say most of the question, with what matches between « ». The corpus is Markdown, so ** would be text."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Final

from search_router.adapters.local.code_words import IDENTIFIER, parts_of, words_of

LINES: Final = 6
CHARACTERS: Final = 480
LINE_CHARACTERS: Final = 240
OPEN, CLOSE, ELISION = "«", "»", "⋯"


def mark_snippet(text: str, information: Mapping[str, float]) -> str:
    """At most LINES lines around the line with most of the question's information; empty for a text of nothing but blanks."""
    lines = [line.rstrip() for line in text.split("\n") if line.strip()]
    if not lines:
        return ""
    worth = [_worth(line, information) for line in lines]
    best = max(range(len(lines)), key=lambda n: (worth[n], -n))
    first = max(0, min(best - 1, len(lines) - LINES))
    shown: list[str] = []
    room = CHARACTERS
    for line in lines[first : first + LINES]:
        piece = _window(line, information) if len(line) > LINE_CHARACTERS else line
        if len(piece) > room and shown:
            break
        shown.append(_mark(piece, information))
        room -= len(piece)
    head = [ELISION] if first > 0 else []
    tail = [ELISION] if first + len(shown) < len(lines) else []
    return "\n".join([*head, *shown, *tail])


def _worth(line: str, information: Mapping[str, float]) -> float:
    """The share of the question's information in a line, each word once, in the question's order: sums of floats are no sets."""
    wanted = information.keys()
    met = {word for identifier in set(IDENTIFIER.findall(line)) if not wanted.isdisjoint(words := _words(identifier)) for word in words}
    return sum(share for word, share in information.items() if word in met) if met else 0.0


@lru_cache(maxsize=65_536)
def _words(identifier: str) -> frozenset[str]:
    return frozenset((*words_of(identifier), *parts_of(identifier)))


def _window(line: str, information: Mapping[str, float]) -> str:
    """The run of LINE_CHARACTERS of a long line that has most of the question's words in it."""
    wanted = information.keys()
    places = [found.start() for found in IDENTIFIER.finditer(line) if not wanted.isdisjoint(words_of(found[0]))]
    start = max(places, key=lambda s: (sum(s <= p < s + LINE_CHARACTERS - 40 for p in places), -s), default=0)
    start = max(0, start - 40)
    end = min(len(line), start + LINE_CHARACTERS)
    return f"{ELISION if start else ''}{line[start:end]}{ELISION if end < len(line) else ''}"


def _mark(line: str, information: Mapping[str, float]) -> str:
    out: list[str] = []
    at = 0
    wanted = information.keys()
    for found in IDENTIFIER.finditer(line):
        if not wanted.isdisjoint(words_of(found[0])):
            out += [line[at : found.start()], OPEN, found[0], CLOSE]
            at = found.end()
    return "".join(out) + line[at:]
