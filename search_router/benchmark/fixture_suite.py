"""A suite's questions and labels, read and held against the code that they are about: a label that no longer fits is an error, not a miss.

queries.jsonl has one `FixtureQuestion` a line. qrels.tsv has a header and one label a line, tab-separated: query, project, path, start,
end, symbol, grade, sha256. `path` is POSIX below the project; `start` and `end` are 1-based closed lines, or empty for the whole file;
`symbol` is for people; `grade` is 1 (related), 2 (part of the answer) or 3 (the answer); what is not listed is 0. A commit's path is
`@VERSION`, its tag; its sha256 column is the beginning of its commit id, a file's that of its bytes.
"""

from __future__ import annotations

import csv
import hashlib
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from search_router.benchmark.fixture_build import head_of
from search_router.benchmark.fixture_manifest import Manifest, read_manifest
from search_router.benchmark.questions import UnusableData

HEADER: Final = ("query", "project", "path", "start", "end", "symbol", "grade", "sha256")
DIGITS: Final = 12
COMMIT: Final = "@"
CLASSES: Final = ("conceptual", "identifier", "typed-symbol", "cross-repo-impact", "docs", "history")
ADVERSARIAL: Final = ("empty", "huge", "injection-shaped", "non-ascii")
Half = Literal["dev", "test"]


class StaleLabel(UnusableData):
    """A label is about other code than the code that is there."""

    code = "stale-label"


class FixtureQuestion(BaseModel):
    """One question. `kind` is its intent class, or how it is adversarial; `experts` is the set that should be asked; the text is repeated
    `times`. `origin` says where mined wording stands. An adversarial question expects one of `statuses` and, if any, `flag`."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    id: str = Field(pattern=r"^[a-z0-9-]+$")
    text: str
    kind: Literal[
        "conceptual", "identifier", "typed-symbol", "cross-repo-impact", "docs", "history", "empty", "huge", "injection-shaped", "non-ascii"
    ]
    half: Half
    source: Literal["mined", "typed", "computed", "own"]
    origin: str = ""
    experts: tuple[str, ...] = ()
    project: str | None = None
    path: str | None = None
    times: int = Field(default=1, ge=1, le=10_000)
    statuses: tuple[str, ...] = ()
    flag: str = ""

    @property
    def adversarial(self) -> bool:
        return self.kind in ADVERSARIAL

    def request(self) -> dict[str, object]:
        """The question as a client sends it: without an intent."""
        scope = {name: value for name, value in (("project", self.project), ("path", self.path)) if value is not None}
        return {"question": self.text * self.times, **({"scope": scope} if scope else {})}


@dataclass(frozen=True, slots=True)
class Label:
    """One judged place or commit; see the module for its fields. `commit` is the whole commit id of a label on one."""

    query: str
    project: str
    path: str
    start: int | None
    end: int | None
    symbol: str
    grade: int
    digest: str
    commit: str = ""


@dataclass(frozen=True, slots=True)
class Suite:
    """A suite whose labels fit the code in `projects`. Labels are by question id, in the file's order."""

    folder: Path
    manifest: Manifest
    digest: str
    projects: Path
    questions: tuple[FixtureQuestion, ...]
    labels: Mapping[str, tuple[Label, ...]]

    def roots(self) -> tuple[Path, ...]:
        return tuple(self.projects / name for name in self.manifest.projects)


def load_suite(folder: Path, projects: Path) -> Suite:
    """Read everything and check every label.

    Raises:
        UnusableData: a file is missing or not in shape, or a question has no label.
        StaleLabel: the first ten labels that do not fit the code.
    """
    manifest, digest = read_manifest(folder)
    questions = read_fixture_questions(folder / "queries.jsonl")
    labels = tuple(read_labels(folder / "qrels.tsv"))
    checked = check_labels(labels, projects)
    by_query: dict[str, list[Label]] = defaultdict(list)
    for label in checked:
        by_query[label.query].append(label)
    unknown = set(by_query) - {q.id for q in questions}
    bare = [q.id for q in questions if not q.adversarial and q.id not in by_query]
    if unknown or bare:
        raise UnusableData(
            f"{folder}: labels without a question: {sorted(unknown)}; questions without a label: {bare}.", remedy="Label again."
        )
    return Suite(folder, manifest, digest, projects, questions, {name: tuple(rows) for name, rows in by_query.items()})


def read_fixture_questions(path: Path) -> tuple[FixtureQuestion, ...]:
    """Raises UnusableData, naming the line."""
    found: dict[str, FixtureQuestion] = {}
    for number, line in enumerate(_lines(path), start=1):
        try:
            question = FixtureQuestion.model_validate_json(line)
        except ValidationError as error:
            fault = error.errors(include_url=False)[0]
            raise UnusableData(
                f"{path}:{number}: {fault['loc']}: {fault['msg']}.", remedy="See docs/benchmarks.md for the shape."
            ) from error
        if question.id in found:
            raise UnusableData(f"{path}:{number}: {question.id} is there twice.", remedy="Give each question its own id.")
        found[question.id] = question
    return tuple(found.values())


def read_labels(path: Path) -> Iterator[Label]:
    """Raises UnusableData, naming the line."""
    rows = csv.reader(_lines(path), delimiter="\t", quoting=csv.QUOTE_NONE)
    for number, row in enumerate(rows, start=1):
        if number == 1:
            if tuple(row) != HEADER:
                raise UnusableData(f"{path}: its header is {row}, not {list(HEADER)}.", remedy="Label again.")
            continue
        try:
            query, project, name, start, end, symbol, grade, digest = row
            label = Label(query, project, name, int(start) if start else None, int(end) if end else None, symbol, int(grade), digest)
        except ValueError as error:
            raise UnusableData(f"{path}:{number}: {error}.", remedy="See docs/benchmarks.md for the shape.") from error
        if label.grade not in (1, 2, 3) or (label.start is None) != (label.end is None) or len(digest) != DIGITS:
            raise UnusableData(f"{path}:{number}: no label: {row}.", remedy="See docs/benchmarks.md for the shape.")
        yield label


def check_labels(labels: Sequence[Label], projects: Path) -> list[Label]:
    """The labels, those on commits with their ids. Raises StaleLabel with the first ten that do not fit."""
    texts: dict[tuple[str, str], tuple[str, int]] = {}
    checked: list[Label] = []
    faults: list[str] = []
    for label in labels:
        where = f"{label.query}: {label.project}/{label.path}"
        if label.path.startswith(COMMIT):
            commit = head_of(projects / label.project, label.path[1:])
            if not commit.startswith(label.digest):
                faults.append(f"{where} is commit {commit[:DIGITS]}, not {label.digest}")
            checked.append(Label(*_fields(label), commit=commit))
            continue
        facts = texts.setdefault((label.project, label.path), _facts(projects / label.project / label.path))
        if facts[0] != label.digest:
            faults.append(f"{where} {'is gone' if not facts[0] else 'has other bytes'}")
        elif label.end is not None and not 1 <= (label.start or 0) <= label.end <= facts[1]:
            faults.append(f"{where} has {facts[1]} lines, not {label.start} to {label.end}")
        checked.append(label)
    if faults:
        raise StaleLabel(
            f"{len(faults)} labels do not fit the code: {'; '.join(faults[:10])}.", remedy="Build the suite again, or label again."
        )
    return checked


def digest_of(path: Path) -> str:
    """What the sha256 column says of a file."""
    return hashlib.sha256(path.read_bytes()).hexdigest()[:DIGITS]


def _fields(label: Label) -> tuple[str, str, str, int | None, int | None, str, int, str]:
    return label.query, label.project, label.path, label.start, label.end, label.symbol, label.grade, label.digest


def _facts(path: Path) -> tuple[str, int]:
    """(digest, lines); an empty digest for a file that is not there."""
    if not path.is_file():
        return "", 0
    text = path.read_bytes()
    return digest_of(path), text.count(b"\n") + (not text.endswith(b"\n"))


def _lines(path: Path) -> list[str]:
    try:
        return [line for line in path.read_text("utf-8").split("\n") if line]
    except (OSError, UnicodeDecodeError) as error:
        raise UnusableData(f"{path} cannot be read: {error}.", remedy="Name a suite's folder.") from error
