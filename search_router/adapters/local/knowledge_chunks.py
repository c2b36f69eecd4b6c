"""From sections to chunks of a size that one question can hit: a long section by its paragraphs, a wall of text by its sentences."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final, NamedTuple

from search_router.adapters.local.knowledge_sections import Section

ENOUGH: Final = 700
"""Paragraphs are joined up to so many characters."""
MOST: Final = 2200
"""A section of so many characters stays whole."""
WALL: Final = 1400
"""A paragraph of more characters is split by sentences."""
_SENTENCE_END = re.compile(r"(?<=[.!?…])[\"')\]]*\s+(?=[\"'(\[]?[A-Z0-9À-ÖØ-Þ一-鿿぀-ヿ])|(?<=[。！？])")


class Piece(NamedTuple):
    """One chunk: its section's heading and trail, 1-based closed lines of the file, its text."""

    heading: str | None
    trail: tuple[str, ...]
    start: int
    end: int
    text: str


class _Part(NamedTuple):
    start: int
    end: int
    text: str


def cut_pieces(sections: Sequence[Section]) -> tuple[list[Piece], bool]:
    """(chunks, whether anything was cut finer than the headings do)."""
    pieces: list[Piece] = []
    cut = False
    for section in sections:
        limit = MOST if section.heading is not None else ENOUGH
        if len(section.text) <= limit:
            pieces.append(Piece(section.heading, section.trail, section.start, section.end, section.text))
            continue
        parts = _join(_paragraphs(section))
        cut = cut or len(parts) > 1
        pieces += [Piece(section.heading, section.trail, p.start, p.end, p.text) for p in parts]
    return pieces, cut


def _paragraphs(section: Section) -> list[_Part]:
    """Paragraphs with their lines, and of a wall of text its sentences. Lines are counted from the end, where heading lines are not."""
    lines = section.text.split("\n")
    first = section.end - len(lines) + 1
    parts: list[_Part] = []
    held: list[str] = []
    for number, line in enumerate([*lines, ""]):
        if line.strip():
            held.append(line)
        elif held:
            start = max(section.start, first + number - len(held))
            end = max(start, min(section.end, first + number - 1))
            text = "\n".join(held)
            parts += [_Part(start, end, text)] if len(text) <= WALL else _sentences(_Part(start, end, text))
            held = []
    return parts


def _sentences(wall: _Part) -> list[_Part]:
    """Sentences, and of one that has no end at all, lines or runs of WALL characters."""
    found: list[_Part] = []
    at = 0
    for sentence in _SENTENCE_END.split(wall.text):
        place = wall.text.find(sentence, at)
        line = wall.start + wall.text.count("\n", 0, place)
        at = place + len(sentence)
        for cut in range(0, len(sentence), WALL):
            text = sentence[cut : cut + WALL]
            start = min(wall.end, line + sentence.count("\n", 0, cut))
            found.append(_Part(start, min(wall.end, start + text.count("\n")), text))
    return [part for part in found if part.text.strip()]


def _join(parts: Sequence[_Part]) -> list[_Part]:
    joined: list[_Part] = []
    for part in parts:
        if joined and len(joined[-1].text) + len(part.text) <= ENOUGH:
            last = joined[-1]
            between = "\n\n" if part.start > last.end + 1 else " " if part.start == last.end else "\n"
            joined[-1] = _Part(last.start, part.end, last.text + between + part.text)
        else:
            joined.append(part)
    return joined
