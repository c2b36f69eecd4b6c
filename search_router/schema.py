"""The words of the product as types: request and answer at the edges; and every name of `inside.py`.

Edges are frozen pydantic models that refuse unknown keys. Line ranges are 1-based and closed, paths are POSIX and relative to the
project's root, times are integer microseconds unless a name says otherwise.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import AliasChoices, BaseModel, ConfigDict, Field

from search_router.inside import (
    CommitRecord,
    Confidence,
    Definition,
    DocumentFacts,
    DocumentFilters,
    DocumentRecord,
    EmptyReason,
    ExpertCall,
    ExpertCard,
    ExpertResult,
    ExpertStatus,
    FileFacts,
    Health,
    Hit,
    Intent,
    PrecisionClass,
    Project,
    QueryForm,
    Shape,
    StageFacts,
    Status,
    SubQuery,
    Tier,
    Yielding,
)

__all__ = [
    "DEFAULT_LIMIT",
    "MAX_LIMIT",
    "MAX_QUESTION_BYTES",
    "Answer",
    "Budget",
    "BudgetReport",
    "Classification",
    "CommitRecord",
    "Confidence",
    "ConfigRef",
    "Cut",
    "Definition",
    "DocumentFacts",
    "DocumentFilters",
    "DocumentRecord",
    "Edge",
    "EmptyReason",
    "ErrorReport",
    "Evidence",
    "ExpertCall",
    "ExpertCard",
    "ExpertReport",
    "ExpertResult",
    "ExpertStatus",
    "FileFacts",
    "Filters",
    "Health",
    "Hit",
    "Intent",
    "PrecisionClass",
    "Project",
    "QueryForm",
    "Rank",
    "ReceiptRef",
    "RuleFired",
    "Scope",
    "Scores",
    "SearchRequest",
    "Shape",
    "Source",
    "StageFacts",
    "StageReport",
    "Status",
    "SubQuery",
    "Tier",
    "Yielding",
]

MAX_QUESTION_BYTES = 4096
DEFAULT_LIMIT = 10
MAX_LIMIT = 100


class Edge(BaseModel):
    """Base of everything that crosses a door: frozen, and unknown keys are refused."""

    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)


# ------------------------------------------------------------------ request


class Scope(Edge):
    """Prunes experts and files before anything runs. Missing fields mean the whole workspace."""

    project: str | None = Field(default=None, min_length=1, max_length=256, description="One project id.")
    group: str | None = Field(default=None, min_length=1, max_length=256, description="A named group of projects from the configuration.")
    path: str | None = Field(
        default=None, min_length=1, max_length=4096, description="POSIX path prefix relative to the project root: a folder or one file."
    )
    language: str | None = Field(default=None, min_length=1, max_length=64, description="Language name in lower case, such as python.")


class Budget(Edge):
    """Back-pressure. An expert that cannot answer inside it is declined, and the receipt says so."""

    latency_ms: int | None = Field(default=None, ge=1, le=600_000, description="Time for the whole request, in milliseconds.")
    max_experts: int | None = Field(default=None, ge=1, le=64, description="At most so many experts are asked.")
    min_precision_class: PrecisionClass | None = Field(
        default=None, description="Only experts of this class or a stronger one (typed > syntactic > hybrid > semantic > lexical)."
    )
    allow_llm: bool = Field(
        default=False, description="Whether a configured language model may be asked: for the intent on abstention, for a reading order."
    )
    rerank: bool = Field(default=False, description="Whether a configured reranker may reorder the candidates.")


class Filters(Edge):
    """For knowledge documents only; code and commits are not filtered by them."""

    tags: tuple[str, ...] | None = Field(default=None, max_length=64, description="Only documents with all of these tags.")
    folder: str | None = Field(default=None, max_length=4096, description="Only documents below this folder.")
    type: str | None = Field(default=None, max_length=64, description="Only documents of this type.")
    entities: tuple[str, ...] | None = Field(
        default=None, max_length=64, description="Only documents that name all of these: components, or names in code marks."
    )
    date_from: str | None = Field(default=None, pattern=r"^\d{4}-\d{2}-\d{2}$", description="ISO 8601 date, inclusive.")
    date_to: str | None = Field(default=None, pattern=r"^\d{4}-\d{2}-\d{2}$", description="ISO 8601 date, inclusive.")
    include_expired: bool = Field(default=False, description="Also documents whose validity has ended.")
    include_pending: bool = Field(default=False, description="Also documents that are not valid yet.")


class SearchRequest(Edge):
    """One structured question. The same fields over MCP, on the command line and in the library."""

    question: str = Field(
        min_length=1,
        max_length=MAX_QUESTION_BYTES,
        description="One natural-language question or identifier, 1 to 4096 bytes of UTF-8. Ask one thing; split compound questions.",
    )
    intent: Intent = Field(default=Intent.UNKNOWN, description="A hint that skips classification unless it is `unknown`.")
    scope: Scope = Field(default_factory=Scope, description="Which part of the workspace to search.")
    budget: Budget = Field(default_factory=Budget, description="Limits on time, experts and precision.")
    expected_shape: Shape = Field(default=Shape.RANKED_EVIDENCE, description="How the evidence is presented.")
    filters: Filters = Field(default_factory=Filters, description="Filters on knowledge documents.")
    limit: int = Field(default=DEFAULT_LIMIT, ge=1, le=MAX_LIMIT, description="At most so many items of evidence on a page.")
    cursor: str | None = Field(default=None, max_length=512, description="The `cut.cursor` of an earlier answer, to read its next page.")
    detail: Literal["skim", "full"] = Field(default="skim", description="skim: snippet and signals. full: the whole range of each item.")


# ------------------------------------------------------------------ answer


class RuleFired(Edge):
    """One classification rule that matched, for which intent, with what weight (per mille)."""

    rule: str
    intent: Intent
    weight: int


class Classification(Edge):
    """What the local rules made of the question. `confidence` is the winner's share of all scores, 0 to 1."""

    intent: Intent
    confidence: float = Field(ge=0, le=1)
    abstained: bool
    runner_up: Intent | None
    rules: tuple[RuleFired, ...]
    by: Literal["hint", "rules", "llm"] = "rules"


class Source(Edge):
    """One expert's vote for an item: its best 1-based rank there, and the expert's own score if it gives one."""

    expert: str
    rank: int = Field(ge=1)
    native_score: float | None = None


class Scores(Edge):
    """Sub-scores of an item. None means that nobody could tell; it is never filled in."""

    rrf: float
    precision: float | None = None
    freshness: float | None = None
    scope: float | None = None


class Evidence(Edge):
    """One fused item: a place in a file, a commit, or a document section."""

    id: str = Field(description="Give it to fetch_evidence to read the full text.")
    kind: str = Field(description="function, class, method, …, text, commit, document.")
    project: str
    path: str | None = Field(default=None, description="POSIX path relative to the project root; null for a commit.")
    start_line: int | None = Field(default=None, ge=1, description="1-based, closed range.")
    end_line: int | None = Field(default=None, ge=1)
    symbol: str | None = None
    language: str | None = None
    snippet: str = ""
    tier: Tier
    nuance: str = Field(description="One plain sentence on how far to trust this item.")
    confidence: Confidence
    flags: tuple[str, ...] = Field(default=(), description="Such as stale-index, other-encoding, long-line, bidi.")
    sources: tuple[Source, ...] = Field(min_length=1)
    scores: Scores
    content_hash: str | None = Field(default=None, description="SHA-256 of the file's bytes as read for this answer.")
    linked: tuple[str, ...] = Field(default=(), description="Ids of items in this answer with the identical text.")
    commit: str | None = None
    date: str | None = Field(default=None, description="ISO 8601.")
    subject: str | None = None
    paths: tuple[str, ...] | None = Field(default=None, description="Paths that the commit touches.")
    url: str | None = Field(default=None, description="Where a document is that is no file of the workspace.")
    title: str | None = None
    heading: str | None = None
    status: str | None = None
    valid_from: str | None = None
    valid_until: str | None = None
    library: str | None = Field(default=None, description="Whose documentation it is, when not the project's own: ecosystem/name.")
    version: str | None = Field(default=None, description="The version of the library that the documentation came with.")
    signals: tuple[str, ...] = Field(default=(), description="How each retriever of a document expert ranked it, with its raw score.")


class ExpertReport(Edge):
    """One line for each configured expert: those that were asked and those that were left out."""

    id: str
    status: ExpertStatus
    latency_us: int = Field(default=0, ge=0)
    results: int = Field(default=0, ge=0)
    sub_query: str | None = None
    reason: str


class StageReport(Edge):
    """One step of the request. `in` and `out` count what went through it, `ms` is wall time."""

    stage: str
    active: bool
    reason: str
    in_: int = Field(validation_alias=AliasChoices("in", "in_"), serialization_alias="in", ge=0)
    out: int = Field(ge=0)
    ms: float = Field(ge=0)


class BudgetReport(Edge):
    """What the request was allowed and what it took, in milliseconds."""

    latency_ms: int
    used_ms: float
    max_experts: int
    asked: int


class Cut(Edge):
    """What was left out of the answer and how to get it. All zero and null when nothing was."""

    items: int = Field(default=0, ge=0, description="Items beyond this page.")
    characters: int = Field(default=0, ge=0, description="Characters of snippets left out.")
    cursor: str | None = None
    hint: str | None = None


class ConfigRef(Edge):
    """Which configuration made the answer."""

    version: str
    hash: str


class ReceiptRef(Edge):
    """Where the receipt is: `id` for get_receipt, its log, its place in it, and the signing key's id."""

    id: str
    seq: int
    log: str
    keyid: str
    envelope: dict[str, Any] | None = Field(default=None, description="The DSSE envelope; only in `--json` output and the library.")


class ErrorReport(Edge):
    """Why a request was declined, rejected or failed: a stable code, a sentence, what to do, and the fields at fault."""

    code: str
    message: str
    remedy: str = ""
    fields: tuple[str, ...] = ()


class Answer(Edge):
    """The whole answer to one request. Every one of them, whatever its status, has a receipt."""

    status: Status
    empty_reason: EmptyReason | None = None
    error: ErrorReport | None = None
    question_classes: tuple[str, ...] = Field(default=(), description="empty, huge, injection-shaped, non-ascii, bidi, control-characters.")
    classification: Classification | None = None
    evidence: tuple[Evidence, ...] = ()
    experts: tuple[ExpertReport, ...] = ()
    stages: tuple[StageReport, ...] = ()
    budget: BudgetReport
    cut: Cut = Field(default_factory=Cut)
    notes: tuple[str, ...] = Field(default=(), description="Facts about the search that change how to read the answer.")
    config: ConfigRef
    receipt: ReceiptRef | None = None

    @property
    def found_nothing(self) -> bool:
        """Whether the question was answered, now or earlier, and nothing was found."""
        return self.status is Status.EMPTY or (self.status is Status.CACHED and not self.evidence)


Rank = Annotated[int, Field(ge=1)]
