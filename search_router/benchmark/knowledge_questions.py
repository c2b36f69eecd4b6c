"""Labelled questions over real projects' documents and history, and how an answer to one is scored. Pure but for reading the fixtures.

A label names a document, a section of one (1-based closed lines that begin with its heading), or the commit of a release, with a grade:
3 answers the question, 2 answers a part or says the same elsewhere, 1 is near it. Gains are 2^grade - 1 (Burges et al. 2005), NDCG as
in Järvelin and Kekäläinen 2002. The right document at another section counts as grade 1, once.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping, Sequence
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Final, Literal, NamedTuple

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter

from search_router.benchmark.gains import DEPTH, Metrics, discount
from search_router.benchmark.questions import UnusableData
from search_router.schema import Intent

ANSWERS: Final = 2
"""A label of this grade or more is an answer: it counts for MRR and recall."""
NEAR: Final = 1
Half = Literal["dev", "held-out"]


class _Row(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Release(_Row):
    """One archive as its registry has it."""

    version: str
    file: str = Field(pattern=r"^[A-Za-z0-9._-]+$")
    sha256: str = Field(pattern=r"^[0-9a-f]{64}$")


class Source(_Row):
    """A project. With `history`, its releases become a git repository, one commit each; else the one release is its folder."""

    name: str = Field(pattern=r"^[a-z0-9-]+$")
    registry: Literal["pypi", "npm"]
    licence: str
    history: bool = False
    releases: tuple[Release, ...] = Field(min_length=1)


class Label(_Row):
    """What answers a question: a document, a section of it, or the commit of a release (`commit` is its version)."""

    path: str | None = None
    heading: str | None = None
    start: int | None = None
    end: int | None = None
    commit: str | None = None
    grade: int = Field(ge=1, le=3)


class KnowledgeQuestion(_Row):
    """One question. `intent` is the hint that the caller gives; `half` says whether rules may be tuned on it."""

    id: str
    class_: str = Field(alias="class")
    source: str
    half: Half
    intent: Intent
    question: str
    labels: tuple[Label, ...] = Field(min_length=1)


class Found(NamedTuple):
    """One item of an answer: a place in a file, or a commit by the version of its release."""

    path: str | None
    start: int | None = None
    end: int | None = None
    commit: str | None = None


class LabelledSet(NamedTuple):
    """Everything of the fixtures: `hashes` are SHA-256 of the labelled files, by `source/path`."""

    sources: tuple[Source, ...]
    questions: tuple[KnowledgeQuestion, ...]
    hashes: Mapping[str, str]


def read_labelled_set(folder: Traversable | None = None) -> LabelledSet:
    """The packaged questions and sources, or those of another folder."""
    folder = folder or files("search_router.benchmark").joinpath("fixtures/knowledge")
    lines = folder.joinpath("questions.jsonl").read_text("utf-8").splitlines()
    return LabelledSet(
        TypeAdapter(tuple[Source, ...]).validate_json(folder.joinpath("sources.json").read_text("utf-8")),
        tuple(KnowledgeQuestion.model_validate_json(line) for line in lines),
        json.loads(folder.joinpath("files.json").read_text("utf-8")),
    )


def check_labels(labelled: LabelledSet, work: Path) -> None:
    """Whether every label still points at what it was given for, in `work`, which has a folder for each source.

    Raises:
        UnusableData: files changed or went, sections are not where they were, or a version is not among the releases; it names all.
    """
    stale = [f"{name}: another file" for name, digest in labelled.hashes.items() if _digest(work / name) != digest]
    releases = {(s.name, r.version) for s in labelled.sources for r in s.releases}
    for question in labelled.questions:
        for label in question.labels:
            if label.commit is not None:
                bad = (question.source, label.commit) not in releases
            else:
                bad = f"{question.source}/{label.path}" not in labelled.hashes or not _stands(label, work / question.source)
            if bad:
                stale.append(f"{question.id}: {label.commit or label.path} {label.heading or ''}".rstrip())
    if stale:
        raise UnusableData(f"{len(stale)} label(s) are stale: {'; '.join(stale[:5])}.", remedy="Label them anew.")


def _digest(path: Path) -> str | None:
    return hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else None


def _stands(label: Label, folder: Path) -> bool:
    """Whether the label's heading is at its first line or, with an overline, the next one."""
    if label.start is None:
        return (folder / str(label.path)).is_file()
    if not (path := folder / str(label.path)).is_file() or not label.heading:
        return False
    lines = path.read_text("utf-8").split("\n")
    near = " ".join(lines[label.start - 1 : label.start + 1])
    letters = [word for word in label.heading.split() if word.isalnum()]
    return label.start <= (label.end or 0) <= len(lines) and all(word in near for word in letters)


def meets(found: Found, label: Label) -> bool:
    """Whether an item is what a label names."""
    if label.commit is not None:
        return found.commit == label.commit
    if found.path is None or found.path != label.path:
        return False
    if label.start is None or label.end is None or found.start is None or found.end is None:
        return True
    return found.start <= label.end and found.end >= label.start


def score_answer(found: Sequence[Found], labels: Sequence[Label]) -> Metrics:
    """NDCG@10, MRR@10 and Recall@10 of one answer; each label is earned once, at the first item that meets it."""
    top = found[:DEPTH]
    earned = [0] * len(top)
    first = [next((rank for rank, item in enumerate(top) if meets(item, label)), None) for label in labels]
    for label, rank in zip(labels, first, strict=True):
        if rank is not None:
            earned[rank] = max(earned[rank], label.grade)
    met = {label.path for label, rank in zip(labels, first, strict=True) if rank is not None}
    for path in {label.path for label in labels if label.path is not None} - met:
        rank = next((rank for rank, item in enumerate(top) if item.path == path), None)
        if rank is not None:
            earned[rank] = max(earned[rank], NEAR)
    ideal = sorted((label.grade for label in labels), reverse=True)[:DEPTH]
    answers = [rank for label, rank in zip(labels, first, strict=True) if label.grade >= ANSWERS]
    ranks = [rank for rank in answers if rank is not None]
    return Metrics(_dcg(earned) / _dcg(ideal), 1 / (min(ranks) + 1) if ranks else 0.0, len(ranks) / max(1, len(answers)))


def _dcg(grades: Sequence[int]) -> float:
    return math.fsum((2**grade - 1) * discount(rank) for rank, grade in enumerate(grades))
