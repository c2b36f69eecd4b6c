"""The words of the product that stay inside: what experts are asked and answer, files, projects, plans; and the enumerations.

Frozen dataclasses without pydantic, so that the processes that read files start quickly. What crosses a door stands in `schema.py`,
which gives these names as well. Line ranges are 1-based and closed, paths are POSIX and relative to the project's root, times are integer
microseconds unless a name says otherwise.
"""

from __future__ import annotations

from array import array
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from itertools import accumulate, islice
from pathlib import Path
from typing import Literal, NamedTuple


class Intent(StrEnum):
    """What kind of question it is. `unknown` as a hint means: classify it."""

    CONCEPTUAL = "conceptual"
    IDENTIFIER = "identifier"
    TYPED_SYMBOL = "typed-symbol"
    CROSS_REPO_IMPACT = "cross-repo-impact"
    DOCS = "docs"
    HISTORY = "history"
    UNKNOWN = "unknown"


class Shape(StrEnum):
    """How the caller wants evidence presented. It never changes the fan-out and never asks for a summary."""

    RANKED_EVIDENCE = "ranked-evidence"
    SINGLE_FILE = "single-file"
    SYMBOL_LIST = "symbol-list"
    ANSWER_WITH_CITATIONS = "answer-with-citations"


class PrecisionClass(StrEnum):
    """What an expert's match is worth, strongest first."""

    TYPED = "typed"
    SYNTACTIC = "syntactic"
    HYBRID = "hybrid"
    SEMANTIC = "semantic"
    LEXICAL = "lexical"
    HISTORY = "history"
    DOCS = "docs"


class Tier(StrEnum):
    """How far an item can be trusted, from which kinds of source agree on it."""

    TYPED_GRAPH_CONFIRMED = "typed-graph-confirmed"
    SYMBOL_CONFIRMED = "symbol-confirmed"
    HYBRID_CONFIRMED = "hybrid-confirmed"
    LEXICAL_EXACT = "lexical-exact"
    SEMANTIC_ONLY = "semantic-only"
    DOCS = "docs"
    HISTORY = "history"


class Confidence(StrEnum):
    """Worded confidence in one item; it comes from agreement and freshness, never from the fused score."""

    HIGH = "high"
    MEDIUM = "medium"
    LOW = "low"


class Status(StrEnum):
    """How a request ended."""

    ANSWERED = "answered"
    """There is evidence."""
    EMPTY = "empty"
    """Somebody could look, and found nothing."""
    CACHED = "cached"
    """An earlier answer that still holds; it may have no evidence."""
    DECLINED = "declined"
    """Understood, and nothing that could be searched."""
    REJECTED = "rejected"
    """The request is wrong: fields, types, ranges."""
    FAILED = "failed"
    """Nobody could answer."""
    CANCELLED = "cancelled"
    """The caller went away."""


class EmptyReason(StrEnum):
    """Why an answer has no evidence."""

    NO_VISIBLE_PROJECTS = "no_visible_projects"
    """The scope leaves no project."""
    NO_INDEXED_CONTENT = "no_indexed_content"
    """The scope leaves no file that could be searched."""
    NO_MATCHES = "no_matches"
    """Looked, and nothing matched."""
    ALL_EXPERTS_FAILED = "all_experts_failed"
    """Nobody could look, so nothing is known."""


class ExpertStatus(StrEnum):
    """What became of one expert in one request: asked and answered, left out, or one of the failure classes."""

    OK = "ok"
    EMPTY = "empty"
    SKIPPED = "skipped"
    CANCELLED = "cancelled"
    TIMEOUT = "timeout"
    UNAVAILABLE = "unavailable"
    UNCONFIGURED = "unconfigured"
    INDEX_MISSING = "index-missing"
    CRASHED = "crashed"
    PROTOCOL_ERROR = "protocol-error"
    SPAWN_FAILED = "spawn-failed"
    BUSY = "busy"
    REJECTED = "rejected"
    SUSPECT_EMPTY = "suspect-empty"
    INTERNAL = "internal"


@dataclass(frozen=True, slots=True)
class Project:
    """One searchable root: a git work tree (main, linked or submodule) or a plain directory."""

    id: str
    root: Path
    kind: Literal["git", "worktree", "submodule", "directory"]
    head: str | None = None
    branch: str | None = None
    groups: tuple[str, ...] = ()
    shallow: bool = False
    withheld: tuple[str, ...] = ()
    """Patterns, as in a `.gitignore`, of files that no answer shows."""


@dataclass(frozen=True, slots=True)
class Definition:
    """A named definition in a file: 1-based closed lines; `container` is the qualified name around it, or empty."""

    name: str
    kind: str
    start_line: int
    end_line: int
    container: str = ""

    @property
    def qualified(self) -> str:
        return f"{self.container}.{self.name}" if self.container else self.name


def _outer(definitions: Sequence[Definition]) -> tuple[int, ...]:
    """For each in reading order the last one before it that reaches the line on which it starts, or -1."""
    found: list[int] = []
    for at, definition in enumerate(definitions):
        before = at - 1
        while before >= 0 and definitions[before].end_line < definition.start_line:
            before = found[before]
        found.append(before)
    return tuple(found)


@dataclass(frozen=True, slots=True)
class FileFacts:
    """What is on disk now for one file. `text` is decoded for people; `flags` says what was odd about it.

    `definitions` are in reading order. `outer[i]` is the last of them before `i` that still covers the line on which `i` starts, or -1, so
    that a look-up by line climbs from one to the one around it, past all that ended before.
    """

    content_hash: str
    text: str
    language: str | None
    definitions: tuple[Definition, ...] = ()
    flags: tuple[str, ...] = ()
    line_count: int = field(init=False)
    outer: tuple[int, ...] = field(init=False, repr=False)
    _line_ends: array[int] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        ordered = tuple(sorted(self.definitions, key=lambda d: (d.start_line, d.end_line, d.qualified)))
        object.__setattr__(self, "definitions", ordered)
        object.__setattr__(self, "outer", _outer(ordered))
        object.__setattr__(self, "line_count", self.text.count("\n") + (not self.text.endswith("\n") and bool(self.text)))
        object.__setattr__(self, "_line_ends", array("I"))

    def lines(self, start: int, end: int) -> list[str]:
        """The lines of a 1-based closed range, without their line ends; those beyond the last line are not there."""
        ends = self._line_ends
        if not ends:
            lengths = map(len, self.text.split("\n"))
            ends.extend(islice(accumulate(map((1).__add__, lengths), initial=-1), 1, None))  # each end is one before the next beginning
        if start > len(ends):
            return []
        first = ends[start - 2] + 1 if start > 1 else 0
        return self.text[first : ends[min(end, len(ends)) - 1]].split("\n")


@dataclass(frozen=True, slots=True)
class CommitRecord:
    """A commit as a history item; it is never a path."""

    commit: str
    date: str
    author: str
    subject: str
    paths: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class DocumentRecord:
    """A piece of documentation that is no file of the workspace, with its text as it came; `url` says where it is, if anything does."""

    text: str
    title: str | None = None
    url: str | None = None


@dataclass(frozen=True, slots=True)
class DocumentFacts:
    """What a document expert knows of a hit beyond its place. `snippet` is text with its matches marked « », empty where it has none.

    `status` is one of current, superseded, historical, pending, expired; dates are ISO 8601. For documentation that is no file of a
    project, `library` is `ecosystem/name`, `version` its version and `entry` what is documented.
    """

    title: str
    heading: str | None = None
    status: str | None = None
    valid_from: str | None = None
    valid_until: str | None = None
    snippet: str = ""
    signals: tuple[str, ...] = ()
    library: str | None = None
    version: str | None = None
    entry: str | None = None


@dataclass(frozen=True, slots=True)
class Hit:
    """One ranked result of one expert, as that expert gave it. Order in its list is its rank.

    `path` may be relative to the root, absolute, a file:// URI or use backslashes; `line_base` and `end_exclusive` say how the
    expert counts. `content_hash` is the SHA-256 of the file when the expert indexed it, if it knows. A commit hit has `commit` and no path,
    a document from elsewhere has `document` and no path.
    `engine` is what resolved this very hit, where the expert's card does not say it: one expert may read the indexes of several engines.
    """

    project: str
    path: str | None = None
    start_line: int | None = None
    end_line: int | None = None
    line_base: int = 1
    end_exclusive: bool = False
    symbol: str | None = None
    kind: str | None = None
    is_definition: bool = False
    is_exact: bool = False
    native_score: float | None = None
    content_hash: str | None = None
    commit: CommitRecord | None = None
    document: DocumentRecord | None = None
    flags: tuple[str, ...] = ()
    engine: str | None = None
    about: DocumentFacts | None = None

    @property
    def is_in_a_file(self) -> bool:
        """Whether it points at a file of a project; commits, documentation of libraries and documents from elsewhere do not."""
        return self.commit is None and self.document is None and (self.about is None or self.about.library is None)


class QueryForm(StrEnum):
    """How an expert is to read a sub-query's terms."""

    LITERAL = "literal"
    REGEX = "regex"
    KEYWORDS = "keywords"
    SYMBOL = "symbol"
    TEXT = "text"


@dataclass(frozen=True, slots=True)
class SubQuery:
    """What one expert is asked: the form and its terms, most important first; `text` is the whole question in normal form."""

    form: QueryForm
    terms: tuple[str, ...]
    text: str

    def __str__(self) -> str:
        return f"{self.form.value}: {' '.join(self.terms) if self.terms else self.text}"


@dataclass(frozen=True, slots=True)
class DocumentFilters:
    """Which documents are asked for: the fields of the request's `filters`."""

    tags: tuple[str, ...] | None = None
    folder: str | None = None
    type: str | None = None
    entities: tuple[str, ...] | None = None
    date_from: str | None = None
    date_to: str | None = None
    include_expired: bool = False
    include_pending: bool = False


@dataclass(frozen=True, slots=True)
class ExpertCall:
    """One planned call. `projects` is the set the caller may see, already narrowed by the scope; `prior` is in thousandths.

    `is_quiet` says that the expert is asked beside others that weigh much more: it can agree with them, and puts nothing in front.
    """

    expert: str
    sub_query: SubQuery
    projects: tuple[Project, ...]
    path: str | None
    language: str | None
    limit: int
    budget_ms: int
    prior: int
    reason: str
    intent: Intent = Intent.UNKNOWN
    filters: DocumentFilters = field(default_factory=DocumentFilters)
    is_quiet: bool = False


class Yielding(NamedTuple):
    """In this project, one document gives way to another that answers the same: wherever both are found, the other stands first."""

    project: str
    path: str
    successor: str


class StageFacts(NamedTuple):
    """One step of an expert, as a `StageReport` of the answer has it."""

    stage: str
    active: bool
    reason: str
    in_: int
    out: int
    ms: float


@dataclass(frozen=True, slots=True)
class ExpertResult:
    """What an expert answered. `partial` is a sentence when it did not look at everything; notes go to the caller.

    `stages` are its own steps. `hidden` are (project, path) of documents that are not valid now and were not asked for, and `yields`
    those that a successor replaces: both count for what other experts find in these files as well.
    """

    hits: tuple[Hit, ...]
    partial: str | None = None
    notes: tuple[str, ...] = ()
    bytes_cut: int = 0
    server_name: str | None = None
    server_version: str | None = None
    index_commit: str | None = None
    stages: tuple[StageFacts, ...] = ()
    hidden: tuple[tuple[str, str], ...] = ()
    yields: tuple[Yielding, ...] = ()
    settled: bool = True
    """False when the same call may find more soon though nothing changed, such as while something is still being read."""


@dataclass(frozen=True, slots=True)
class ExpertCard:
    """What an expert declares about itself. `engine` names what really resolves: two experts on one engine are one source."""

    id: str
    kind: str
    precision_class: PrecisionClass
    engine: str
    intents: frozenset[Intent]
    languages: frozenset[str] | None
    transport: Literal["embedded", "command", "stdio", "sse", "http"]
    cap_ms: int
    freshness: str
    serves_history: bool = False


@dataclass(frozen=True, slots=True)
class Health:
    """Whether an expert can be asked now, and if not, why and what to do."""

    available: bool
    reason: str
    failure: ExpertStatus | None = None
    version: str | None = None
    details: Mapping[str, str] = field(default_factory=dict[str, str])
