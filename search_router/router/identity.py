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
from operator import attrgetter, itemgetter
from pathlib import Path, PurePosixPath
from typing import NamedTuple
from urllib.parse import unquote_to_bytes

from search_router.canonical import sha256_hex
from search_router.schema import Definition, DocumentFacts, ExpertCard, FileFacts, Hit, Project

FileKey = tuple[str, str]
WINDOWS_DRIVE = re.compile(r"^[A-Za-z]:[\\/]")
ODD_PATH = re.compile(r"^(?:[/.]|$)|[\\:]|/[/.]|/$")
"""What a path must have to be anything but relative and normal already."""
JACCARD_OF_A_CHUNK = 0.5


class Ranked(NamedTuple):
    """One expert's hit with its 1-based rank and, for code, its lines as the file is now; a commit has the lines 0 to 0.

    Hits of one file sort by their lines, then by expert and rank.
    """

    start_line: int
    end_line: int
    expert: str
    rank: int
    hit: Hit
    stale: bool = False
    """It was seen in other bytes than the file has now, or beyond the file's end."""


def engine_of(vote: Ranked, cards: Mapping[str, ExpertCard]) -> str:
    """What resolved this vote's hit. Two votes of one engine are one source."""
    return vote.hit.engine or cards[vote.expert].engine


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
    if not ODD_PATH.search(raw):
        return project.id, raw
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
    start, end = hit.start_line, hit.end_line
    if start is None:
        return 1, 1
    shift = 1 - hit.line_base
    start += shift
    end = start if end is None else end + shift - hit.end_exclusive
    start = start if start > 1 else 1
    return start, end if end > start else start


def enclosing_definition(facts: FileFacts, start: int, end: int) -> Definition | None:
    """The definition that a range mostly is (Jaccard index of their lines at least 0.5), else the smallest one around it, else None."""
    definitions = facts.definitions
    at = bisect_right(definitions, end, key=attrgetter("start_line")) - 1
    alike: list[tuple[float, int, str, Definition]] = []
    around: list[Definition] = []
    while at >= 0:
        definition = definitions[at]
        first, last = definition.start_line, definition.end_line
        if last >= start:
            overlap = ((end if end < last else last) - (start if start > first else first) + 1) / (
                (last if last > end else end) - (first if first < start else start) + 1
            )
            if overlap >= JACCARD_OF_A_CHUNK:
                alike.append((overlap, -first, definition.qualified, definition))
            elif first <= start and end <= last:
                around.append(definition)
        at = at - 1 if first > start else facts.outer[at]
    if alike:
        return max(alike, key=itemgetter(0, 1, 2))[3]
    return min(around, key=lambda d: (d.end_line - d.start_line, d.start_line, d.qualified), default=None)


def identify(
    answers: Mapping[str, Sequence[Hit]],
    keys: Mapping[tuple[str, str], FileKey | None],
    facts: Mapping[FileKey, FileFacts],
    dropped: Dropped,
    silent: Collection[str] = (),
) -> list[Candidate]:
    """Group every expert's hits into candidates, in an order that does not depend on who answered first (and means nothing).

    Args:
        answers: expert id to its ranked hits.
        keys: (project id, path as the expert wrote it) to the normalised file key, None when outside the workspace.
        facts: file key to what is on disk; a key that is missing here is a file that is gone.
        silent: experts of weight 0; they may join an item of the others, and never merge two of them.
    """
    commits: dict[tuple[str, str], list[Ranked]] = defaultdict(list)
    documents: dict[tuple[str, str], list[Ranked]] = defaultdict(list)
    entries: dict[tuple[str, str], list[Ranked]] = defaultdict(list)
    defined: dict[tuple[FileKey, Definition], list[Ranked]] = defaultdict(list)
    loose: dict[FileKey, list[Ranked]] = {key: [] for key in facts}
    spots = {raw: (key, facts[key], loose[key]) for raw, key in keys.items() if key is not None and key in facts}
    for expert in sorted(answers):
        for rank, hit in enumerate(answers[expert], start=1):
            if hit.commit is not None:
                commits[hit.project, hit.commit.commit].append(Ranked(0, 0, expert, rank, hit))
                continue
            if hit.document is not None:
                about = hit.document
                documents[hit.project, sha256_hex((about.url or about.text).encode("utf-8", "replace"))].append(
                    Ranked(0, 0, expert, rank, hit)
                )
                continue
            if hit.about is not None and hit.about.library is not None:
                entries[hit.project, library_key(hit.about)].append(Ranked(0, 0, expert, rank, hit))
                continue
            raw = hit.project, hit.path or ""
            spot = spots.get(raw)
            if spot is None:
                dropped.add("outside the workspace" if keys.get(raw) is None else "no longer there")
                continue
            key, file, alone = spot
            ranked = _place_hit(expert, rank, hit, file)
            definition = None
            if file.definitions and hit.start_line is not None:
                definition = enclosing_definition(file, ranked.start_line, ranked.end_line)
            if definition is None:
                alone.append(ranked)
            else:
                defined[key, definition].append(ranked)

    candidates = [
        Candidate(("commit", project, commit), project, None, None, None, None, best_votes(group))
        for (project, commit), group in commits.items()
    ]
    candidates += [
        Candidate(("document", project, name), project, None, None, None, None, best_votes(group))
        for (project, name), group in documents.items()
    ]
    candidates += [
        Candidate(("library", project, entry), project, None, None, None, None, best_votes(group))
        for (project, entry), group in entries.items()
    ]
    candidates += [code_candidate(key, definition, group, silent) for (key, definition), group in defined.items()]
    for key, hits in loose.items():
        if hits:
            candidates += _loose_candidates(key, hits, silent)
    return candidates


def library_key(document: DocumentFacts) -> str:
    """What names an entry of a library's documentation: `ecosystem/name@version#entry`."""
    return f"{document.library}@{document.version}#{document.entry}"


def _place_hit(expert: str, rank: int, hit: Hit, file: FileFacts) -> Ranked:
    """Put a hit on the file as it is now. A range beyond the end of the file, or an older content hash, makes it stale."""
    start, end = normalise_range(hit)
    lines, seen = file.line_count or 1, hit.content_hash
    stale = start > lines or (seen is not None and seen != file.content_hash)
    if end > lines:
        start, end = min(start, lines), lines
    return Ranked(start, end, expert, rank, hit, stale)


def _loose_candidates(key: FileKey, hits: list[Ranked], silent: Collection[str]) -> list[Candidate]:
    """The items of one file's hits outside any definition. Most stand alone, so that is the short way."""
    project, path = key
    found: list[Candidate] = []
    for part in split_overlapping(hits, silent) if len(hits) > 1 else (hits,):
        if len(part) == 1:
            start, end, *_ = part[0]
            found.append(Candidate(("code", project, path, str(start), ""), project, path, start, end, None, (part[0],)))
        else:
            found.append(code_candidate(key, None, part, silent))
    return found


def split_overlapping(hits: Sequence[Ranked], silent: Collection[str] = ()) -> list[list[Ranked]]:
    """Parts of the hits of one file whose line ranges overlap, directly or through each other.

    Hits of silent experts join the first part that they overlap; those that overlap none are split among themselves.
    """
    ordered = sorted(hits)
    parts: list[list[Ranked]] = []
    last = 0
    for ranked in ordered:
        if ranked.expert in silent:
            continue
        if ranked.start_line <= last:
            parts[-1].append(ranked)
        else:
            parts.append([ranked])
            last = 0
        last = max(last, ranked.end_line)
    if not silent:
        return parts
    reaches = [(part[0].start_line, max(r.end_line for r in part)) for part in parts]
    alone: list[Ranked] = []
    for ranked in ordered:
        if ranked.expert in silent:
            touching = (i for i, (first, last) in enumerate(reaches) if ranked.start_line <= last and first <= ranked.end_line)
            at = next(touching, None)
            if at is None:
                alone.append(ranked)
            else:
                parts[at].append(ranked)
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
    votes = best_votes(group)
    if silent:
        group = [r for r in group if r.expert not in silent] or group
    focus = min(group, key=lambda v: (not v.hit.is_exact, v.rank, v.expert))
    start, end = focus.start_line, focus.end_line
    whole = definition is not None and (any(r.hit.is_definition for r in group) or definition.end_line - definition.start_line < 80)
    if definition is not None and whole:
        start, end = definition.start_line, definition.end_line
    name = (str(definition.start_line), definition.qualified) if definition is not None else (str(min(r.start_line for r in group)), "")
    return Candidate(("code", *key, *name), key[0], key[1], start, end, definition, votes)
