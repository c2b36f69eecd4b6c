"""Hits that point at the same code become one identity. Pure: what is on disk comes in as `FileFacts`.

A location is normalised to (project, POSIX path, 1-based closed lines) and resolved to its enclosing definition. Ranges in the same
definition are one item; ranges outside any definition are one item when they overlap. Identical text in two files stays two items.
"""

from __future__ import annotations

import posixpath
import re
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from operator import itemgetter
from pathlib import Path, PurePosixPath
from typing import NamedTuple
from urllib.parse import unquote_to_bytes

from search_router.schema import Definition, FileFacts, Hit, Project

FileKey = tuple[str, str]
WINDOWS_DRIVE = re.compile(r"^[A-Za-z]:[\\/]")
JACCARD_OF_A_CHUNK = 0.5


_key_of = itemgetter(0)


class Place(NamedTuple):
    """A hit on its canonical location; `definition` is the one that it is, or that encloses it."""

    project: str
    path: str
    start_line: int
    end_line: int
    definition: Definition | None
    stale: bool = False


class Ranked(NamedTuple):
    """One expert's hit with its 1-based rank and, for code, its place."""

    expert: str
    rank: int
    hit: Hit
    place: Place | None


class Candidate(NamedTuple):
    """Everything that was said about one identity; `votes` hold one entry an expert, at its best rank, in expert order."""

    key: tuple[str, ...]
    project: str
    path: str | None
    start_line: int | None
    end_line: int | None
    definition: Definition | None
    votes: tuple[Ranked, ...]


@dataclass(slots=True)
class Dropped:
    """Hits that were left out, by reason; they are counted in the stage report, never silently lost."""

    counts: dict[str, int] = field(default_factory=dict[str, int])

    def add(self, reason: str) -> None:
        self.counts[reason] = self.counts.get(reason, 0) + 1

    def __str__(self) -> str:
        return ", ".join(f"{n} {reason}" for reason, n in sorted(self.counts.items()))


def normalise_path(raw: str, project: Project, projects: Sequence[Project], exists: Callable[[Path], bool]) -> FileKey | None:
    """(project id, POSIX path relative to that project's root) of a path in any of the forms experts use.

    Accepts relative, absolute, `file://` and backslash forms. Backslashes separate only where no file has that literal name. None when
    the path lies in no visible project.
    """
    path = raw
    if path.startswith("file://"):
        path = unquote_to_bytes(path.removeprefix("file://").removeprefix("localhost")).decode("utf-8", "surrogateescape")
    if "\\" in path and not exists(project.root / path):
        path = path.replace("\\", "/")
    if path.startswith("/") or WINDOWS_DRIVE.match(path):
        pure = PurePosixPath(posixpath.normpath(path))
        owners = [p for p in projects if pure.is_relative_to(p.root.as_posix())]
        if not owners:
            return None
        owner = max(owners, key=lambda p: len(p.root.parts))
        relative = pure.relative_to(owner.root.as_posix()).as_posix()
        return None if relative == "." else (owner.id, relative)
    relative = posixpath.normpath(path)
    if relative in (".", "..") or relative.startswith("../"):
        return None
    return project.id, relative


def normalise_range(hit: Hit) -> tuple[int, int]:
    """1-based closed (start, end) of a hit; a missing range is the first line, a missing end is the start."""
    if hit.start_line is None:
        return 1, 1
    shift = 1 - hit.line_base
    start = hit.start_line + shift
    end = start if hit.end_line is None else hit.end_line + shift - hit.end_exclusive
    start = start if start > 1 else 1
    return start, end if end > start else start


def enclosing_definition(facts: FileFacts, start: int, end: int) -> Definition | None:
    """The definition that a range mostly is (Jaccard index of their lines at least 0.5), else the smallest one around it, else None."""
    touched: list[Definition] = []
    at = bisect_right(facts.definitions, end, key=lambda d: d.start_line) - 1
    while at >= 0 and facts.reach[at] >= start:
        definition = facts.definitions[at]
        if definition.end_line >= start:
            touched.append(definition)
        at -= 1
    if not touched:
        return None

    def overlap(d: Definition) -> float:
        common = min(end, d.end_line) - max(start, d.start_line) + 1
        return common / (max(end, d.end_line) - min(start, d.start_line) + 1)

    best = max(touched, key=lambda d: (overlap(d), -d.start_line, d.qualified))
    if overlap(best) >= JACCARD_OF_A_CHUNK:
        return best
    around = [d for d in touched if d.start_line <= start and end <= d.end_line]
    return min(around, key=lambda d: (d.end_line - d.start_line, d.start_line, d.qualified), default=None)


def place_hit(hit: Hit, key: FileKey, facts: FileFacts) -> Place:
    """Put a hit on the file as it is now. A range beyond the end of the file, or an older content hash, makes it stale."""
    start, end = normalise_range(hit)
    lines = facts.line_count or 1
    stale = start > lines or (hit.content_hash is not None and hit.content_hash != facts.content_hash)
    if end > lines:
        start, end = min(start, lines), lines
    definition = enclosing_definition(facts, start, end) if facts.definitions and hit.start_line is not None else None
    return Place(key[0], key[1], start, end, definition, stale)


def identify(
    answers: Mapping[str, Sequence[Hit]],
    keys: Mapping[tuple[str, str], FileKey | None],
    facts: Mapping[FileKey, FileFacts],
    dropped: Dropped,
    silent: Collection[str] = (),
) -> list[Candidate]:
    """Group every expert's hits into candidates, in an order that does not depend on who answered first.

    Args:
        answers: expert id to its ranked hits.
        keys: (project id, path as the expert wrote it) to the normalised file key, None when outside the workspace.
        facts: file key to what is on disk; a key that is missing here is a file that is gone.
        silent: experts of weight 0; they may join an item of the others, and never merge two of them.
    """
    commits: dict[tuple[str, str], list[Ranked]] = defaultdict(list)
    defined: dict[tuple[FileKey, Definition], list[Ranked]] = defaultdict(list)
    loose: dict[FileKey, list[_Span]] = defaultdict(list)
    for expert in sorted(answers):
        for rank, hit in enumerate(answers[expert], start=1):
            if hit.commit is not None:
                commits[hit.project, hit.commit.commit].append(Ranked(expert, rank, hit, None))
                continue
            key = keys.get((hit.project, hit.path or ""))
            found = None if key is None else facts.get(key)
            if key is None or found is None:
                dropped.add("outside the workspace" if key is None else "no longer there")
                continue
            place = place_hit(hit, key, found)
            ranked = Ranked(expert, rank, hit, place)
            if place.definition is not None:
                defined[key, place.definition].append(ranked)
            else:
                loose[key].append((place.start_line, place.end_line, expert, rank, ranked))

    candidates = [
        Candidate(("commit", project, commit), project, None, None, None, None, best_votes(group))
        for (project, commit), group in commits.items()
    ]
    candidates += [code_candidate(key, definition, group, silent) for (key, definition), group in defined.items()]
    for key, spans in loose.items():
        candidates += [code_candidate(key, None, part, silent) for part in split_overlapping(spans, silent)]
    return sorted(candidates, key=_key_of)


_Span = tuple[int, int, str, int, Ranked]
"""First and last line, expert, rank (so that spans sort without a key function), and the hit itself."""


def split_overlapping(spans: Sequence[_Span], silent: Collection[str] = ()) -> list[list[Ranked]]:
    """Parts of the hits of one file whose line ranges overlap, directly or through each other.

    Hits of silent experts join the first part that they overlap; those that overlap none are split among themselves.
    """
    parts: list[list[Ranked]] = []
    reaches: list[tuple[int, int]] = []
    for start, end, expert, _, ranked in sorted(spans):
        if expert in silent:
            continue
        if parts and start <= reaches[-1][1]:
            parts[-1].append(ranked)
            reaches[-1] = (reaches[-1][0], max(end, reaches[-1][1]))
        else:
            parts.append([ranked])
            reaches.append((start, end))
    alone: list[_Span] = []
    for span in sorted(spans) if silent else ():
        if span[2] in silent:
            at = next((i for i, (first, last) in enumerate(reaches) if span[0] <= last and first <= span[1]), None)
            if at is None:
                alone.append(span)
            else:
                parts[at].append(span[4])
    return parts + (split_overlapping(alone) if alone else [])


def best_votes(group: Sequence[Ranked]) -> tuple[Ranked, ...]:
    """One vote an expert, at its best rank; what only a worse-ranked duplicate knew (that it is a definition) is not lost."""
    if len(group) == 1:
        return (group[0],)
    best: dict[str, Ranked] = {}
    for ranked in sorted(group, key=lambda r: (r.expert, r.rank)):
        first = best.setdefault(ranked.expert, ranked)
        if (ranked.hit.is_definition and not first.hit.is_definition) or (ranked.hit.is_exact and not first.hit.is_exact):
            hit = replace(
                first.hit,
                is_definition=first.hit.is_definition or ranked.hit.is_definition,
                is_exact=first.hit.is_exact or ranked.hit.is_exact,
            )
            best[ranked.expert] = first._replace(hit=hit)
    return tuple(best[expert] for expert in sorted(best))


def code_candidate(key: FileKey, definition: Definition | None, group: Sequence[Ranked], silent: Collection[str] = ()) -> Candidate:
    """One code item. Its range is the definition's when somebody pointed at the definition itself, else the best hit's own."""
    if len(group) == 1 and definition is None:
        start, end = _lines(group[0])
        return Candidate(("code", *key, str(start), ""), key[0], key[1], start, end, None, (group[0],))
    votes = best_votes(group)
    if silent:
        group = [r for r in group if r.expert not in silent] or group
    focus = min(group, key=lambda v: (not v.hit.is_exact, v.rank, v.expert))
    start, end = _lines(focus)
    whole = definition is not None and (any(r.hit.is_definition for r in group) or definition.end_line - definition.start_line < 80)
    if definition is not None and whole:
        start, end = definition.start_line, definition.end_line
    name = (str(definition.start_line), definition.qualified) if definition is not None else (str(min(_lines(r)[0] for r in group)), "")
    return Candidate(("code", *key, *name), key[0], key[1], start, end, definition, votes)


def _lines(ranked: Ranked) -> tuple[int, int]:
    assert ranked.place is not None
    return ranked.place.start_line, ranked.place.end_line
