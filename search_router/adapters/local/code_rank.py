"""Ranks the files of one or several projects by a search plan: normalised signals, summed with the configured weights.

Several projects are ranked as one collection: word statistics and the best value of each signal are those of all of them, or else every
project's best file would look like an answer, however little it has of the question. Pure but for numpy and times.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np
import numpy.typing as npt

from search_router.adapters.local.code_chunks import Chunk
from search_router.adapters.local.code_fields import B_PATH, B, Fields, Mask
from search_router.adapters.local.code_plan import SearchPlan, Stage
from search_router.adapters.local.code_segment import Floats, Segment
from search_router.adapters.local.code_stages import StageTally
from search_router.adapters.local.code_summaries import choose_files

SHARES: Final = frozenset({"stem", "path_cover", "name_cover", "central", "definition", "hint"})
"""Signals that are shares, 0 to 1, and so are not scaled to their best file."""
ORDER: Final = (
    "strong", "decayed", "body", "path", "names", "comments", "stem", "path_cover", "name_cover", "size", "vector", "central", "definition",
    "hint",
)  # fmt: skip
"""In which signals are added up: sums of floats depend on it."""
SILENT: Final = frozenset({"size", "central", "vector"})
"""Signals that order what others find, and find nothing themselves, unless nothing else is on."""
DECAY: Final = 0.7
DECAYED: Final = 8
STRONG: Final = 0.3
"""A chunk that scores at least this share of the best one counts in its file's sum."""
FOLDER_HINT: Final = 0.5
"""What a file in a folder that the question names earns of what the named file itself does."""

Signal = list[Floats]
"""By segment, then by file."""


@dataclass(frozen=True, slots=True)
class RankedFile:
    """A file with its score, its best chunk, and what made the score: the weighted sum of its signals, times its damping."""

    path: str
    score: float
    chunk: Chunk
    damping: float
    segment: int
    """Which of the segments it is in."""
    number: int
    """Which of that segment's files it is."""
    normal: Mapping[str, Signal] = field(repr=False, compare=False)
    """Every normalised signal, of all files."""

    @property
    def signals(self) -> dict[str, float]:
        """Every normalised signal of this file."""
        return {name: round(float(values[self.segment][self.number]), 4) for name, values in self.normal.items()}


@dataclass(frozen=True, slots=True)
class Admitted:
    """What the scope and the question say of each file, by segment: whether it may be found, and the factor its path earns."""

    mask: Sequence[Mask]
    damping: Sequence[Floats]


@dataclass(frozen=True, slots=True)
class Known:
    """What others know of files.

    Attributes:
        central: for each segment's files, how many others speak of them, 0 to 1.
        defined: path to 1.0 or less for files that define a name of the question.
        similar: gives for paths the cosine of each file's vectors and the question's, 0 to 1; None where there are no vectors.
    """

    central: Sequence[Floats]
    defined: Mapping[str, float]
    similar: Callable[[tuple[str, ...]], Floats] | None = None
    parts: tuple[Known, ...] = ()

    @staticmethod
    def of_all(parts: Sequence[Known]) -> Known:
        """What is known of several projects, whose segments follow one another; paths are told apart by the project."""
        return Known([central for part in parts for central in part.central], {}, None, tuple(parts))

    def by_segment(self) -> list[Known]:
        """Whose paths each segment has."""
        return [part for part in self.parts or (self,) for _ in part.central]


def rank_files(fields: Fields, plan: SearchPlan, admitted: Admitted, known: Known, tally: StageTally) -> list[RankedFile]:
    """At most `plan.limit` files, best first; equal scores by path."""
    signals = _signals_of_files(fields, plan, known, tally)
    normal = {name: _scaled(name, values, fields.segments) for name, values in signals.items()}
    mask = choose_files(fields, plan, admitted.mask, normal, tally)
    within = mask if mask is not admitted.mask else None
    chunks, chunk_scores = _signals_of_chunks(fields, plan, within, tally)
    normal |= {name: _scaled(name, values, fields.segments) for name, values in chunks.items()}
    normal = {name: normal[name] for name in ORDER if name in normal}
    total, found = _sum(fields.segments, normal, plan.weights)
    best = _best(fields.segments, total, found, Admitted(mask, admitted.damping), plan.limit)
    results: list[RankedFile] = []
    for score, path, at, number in best:
        chunk = _best_chunk(fields.segments[at], chunk_scores[at], number) if chunk_scores else _first_chunk(fields.segments[at], number)
        results.append(RankedFile(path, score, chunk, float(admitted.damping[at][number]), at, number, normal))
    return results


def _signals_of_files(fields: Fields, plan: SearchPlan, known: Known, tally: StageTally) -> dict[str, Signal]:
    """Everything that is known without looking into chunks."""
    segments, words, count = fields.segments, plan.words, fields.files
    signals: dict[str, Signal] = {}
    if plan.runs(Stage.FILES):
        with tally.run(Stage.FILES, count) as stage:
            signals["path"] = fields.bm25("in_path", "path_size", words, B_PATH)
            signals["names"] = fields.bm25("names", "name_words", words, B)
            signals["comments"] = fields.bm25("comments", "comment_words", words, B)
            stage.out += _met(signals, ("path", "names", "comments"))
    if plan.runs(Stage.STRUCTURE):
        with tally.run(Stage.STRUCTURE, count) as stage:
            information = fields.information(words)
            signals["stem"] = fields.stem_exact(information)
            signals["path_cover"] = fields.path_cover(information)
            signals["name_cover"] = fields.name_cover(information)
            signals["size"] = [np.log1p(s.line_count) for s in segments]
            signals["central"] = list(known.central)
            if plan.hints and plan.weights["hint"] > 0:
                signals["hint"] = [_hinted(s, plan.hints) for s in segments]
            stage.out += _met(signals, ("stem", "path_cover", "name_cover", "hint"))
    owners = tuple(zip(known.by_segment(), segments, strict=True))
    if plan.runs(Stage.DEFINITIONS):
        signals["definition"] = [_by_path(own.defined, s) for own, s in owners]
    if plan.runs(Stage.VECTORS):
        signals["vector"] = [own.similar(s.paths) if own.similar else np.zeros(len(s), np.float32) for own, s in owners]
    return signals


def _signals_of_chunks(
    fields: Fields, plan: SearchPlan, within: Sequence[Mask] | None, tally: StageTally
) -> tuple[dict[str, Signal], list[Floats]]:
    """(the signals, the score of every chunk)."""
    if not plan.runs(Stage.CHUNKS):
        return {}, []
    count = fields.files if within is None else sum(int(np.count_nonzero(w)) for w in within)
    with tally.run(Stage.CHUNKS, count) as stage:
        scores = fields.bm25_of_chunks(plan.words, within)
        signals = _from_chunks(fields.segments, scores)
        signals["body"] = fields.body_by_file(plan.words, within)
        stage.out += _met(signals, ("body",))
    return signals, scores


def _scaled(name: str, values: Signal, segments: Sequence[Segment]) -> Signal:
    """The signal with 1 at its best living file; shares as they are."""
    if name in SHARES:
        return values
    top = max((float((v * s.alive).max(initial=0.0)) for v, s in zip(values, segments, strict=True)), default=0.0)
    return [v / top if top > 0 else v for v in values]


def _sum(segments: Sequence[Segment], normal: Mapping[str, Signal], weights: Mapping[str, float]) -> tuple[Signal, list[Mask]]:
    """(the weighted sum of all signals, which files any signal that finds has found)."""
    total = [np.zeros(len(s), np.float32) for s in segments]
    found = [np.zeros(len(s), np.bool_) for s in segments]
    finding = normal.keys() - SILENT or normal.keys() - {"size", "central"}
    for name, values in normal.items():
        for at, value in enumerate(values):
            total[at] += weights[name] * value
            if name in finding:
                found[at] |= value > 0
    return total, found


def _best(
    segments: Sequence[Segment], total: Signal, found: Sequence[Mask], admitted: Admitted, limit: int
) -> list[tuple[float, str, int, int]]:
    """(score, path, segment, file number) of the best files, best first."""
    ranked: list[tuple[float, str, int, int]] = []
    for at, segment in enumerate(segments):
        score = total[at] * admitted.damping[at] * (found[at] & segment.alive & admitted.mask[at])
        most = min(limit, len(score))
        top = np.argpartition(-score, most - 1)[: most + 1] if most < len(score) else np.arange(len(score))
        edge = float(score[top].min()) if len(top) else 0.0
        chosen = np.nonzero((score >= edge) & (score > 0))[0]
        ranked += [(-float(score[number]), segment.paths[number], at, int(number)) for number in chosen]
    ranked.sort()
    return [(-negative, path, at, number) for negative, path, at, number in ranked[:limit]]


def _met(signals: Mapping[str, Signal], names: Sequence[str]) -> int:
    """How many files any of these signals meets."""
    met: list[Mask] = []
    for name in names:
        for at, value in enumerate(signals.get(name, ())):
            if at == len(met):
                met.append(value > 0)
            else:
                met[at] |= value > 0
    return sum(int(np.count_nonzero(m)) for m in met)


def _by_path(values: Mapping[str, float], segment: Segment) -> Floats:
    """The value of each file, 0 where it has none or a negative one."""
    if not values:
        return np.zeros(len(segment), np.float32)
    found = np.fromiter(map(values.get, segment.paths, itertools.repeat(0.0)), np.float32, len(segment))
    return np.maximum(found, 0)


def _hinted(segment: Segment, hints: Sequence[str]) -> Floats:
    """1.0 for a file that a hint names, by its whole path or the end of it; less for the files of a folder that one names."""
    found: npt.NDArray[np.float32] = np.zeros(len(segment), np.float32)
    for number, path in enumerate(segment.paths):
        rooted = f"/{path}"
        if any(rooted.endswith(f"/{hint}") for hint in hints):
            found[number] = 1.0
        elif any("/" in hint and f"/{hint}/" in rooted for hint in hints):
            found[number] = FOLDER_HINT
    return found


def _best_chunk(segment: Segment, scores: Floats, number: int) -> Chunk:
    first, last = int(segment.first_chunk[number]), int(segment.first_chunk[number + 1])
    if first == last:
        return Chunk(1, 1)
    return segment.chunks[number][int(np.argmax(scores[first:last]))]


def _first_chunk(segment: Segment, number: int) -> Chunk:
    return segment.chunks[number][0] if segment.chunks[number] else Chunk(1, 1)


def _from_chunks(segments: Sequence[Segment], scores: Sequence[Floats]) -> dict[str, Signal]:
    """Two sums over a file's chunks: of the strong ones, and of the best eight with geometric decay."""
    best = max((float(s.max(initial=0.0)) for s in scores), default=0.0)
    strong: list[Floats] = []
    decayed: list[Floats] = []
    for segment, score in zip(segments, scores, strict=True):
        hit = np.nonzero(score)[0]
        owner, value = segment.owner[hit], score[hit]
        strong.append(np.bincount(owner, np.where(value >= STRONG * best, value, 0), len(segment)).astype(np.float32))
        order = np.lexsort((-value, owner))
        owner, value = owner[order], value[order]
        starts = np.searchsorted(owner, owner, side="left")
        rank = np.arange(len(owner)) - starts
        factor = np.where(rank < DECAYED, DECAY ** np.minimum(rank, DECAYED), 0)
        decayed.append(np.bincount(owner, value * factor, len(segment)).astype(np.float32))
    return {"strong": strong, "decayed": decayed}
