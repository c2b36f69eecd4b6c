"""What the other tools answer: full text, the registry, one receipt, an outcome, experiments. The bottom layer, beside `schema`."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field

from search_router.schema import ConfigRef, Edge, ErrorReport, Intent, PrecisionClass, ReceiptRef, Status

MAX_FETCH_IDS = 20
MAX_FETCH_CHARACTERS = 1_000_000
MAX_OUTCOME_IDS = 20


class FetchRequest(Edge):
    """Evidence ids in, their full text out."""

    ids: tuple[str, ...] = Field(min_length=1, max_length=MAX_FETCH_IDS, description="Ids of evidence, from search_knowledge.")
    max_characters: int | None = Field(default=None, ge=200, le=MAX_FETCH_CHARACTERS, description="Budget of the whole answer's text.")


class ReceiptRequest(Edge):
    """Which receipt to read."""

    id: str = Field(min_length=1, max_length=256, description="The `receipt.id` of an earlier answer.")


class OutcomeRequest(Edge):
    """What became of an earlier answer."""

    receipt: str = Field(min_length=1, max_length=256, description="The `receipt.id` of the answer that was used.")
    outcome: Literal["success", "partial", "failure"] = Field(description="Whether the evidence led to what was wanted.")
    evidence: tuple[str, ...] = Field(
        default=(), max_length=MAX_OUTCOME_IDS, description="Ids of the evidence that was used; needed for success and partial."
    )


class Credit(Edge):
    """What one expert gets for one used item: the outcome's reward and its share in having found the item, both per mille."""

    evidence: str
    expert: str
    rank: int
    reward_pm: int
    share_pm: int


class FetchedItem(Edge):
    """The text behind one id, read from disk (or git) for this answer."""

    id: str
    project: str
    path: str | None = None
    start_line: int | None = Field(default=None, ge=1, description="First line given, 1-based.")
    end_line: int | None = Field(default=None, ge=1, description="Last line given.")
    total_lines: int | None = None
    text: str = Field(description="Each line with its number and a tab; for a commit its message and its changes.")
    language: str | None = None
    fresh: bool | None = Field(default=None, description="Whether the file still has the content that the id was made from.")
    content_hash: str | None = None
    flags: tuple[str, ...] = ()
    cut: str | None = Field(default=None, description="What was left out and how to get it.")


class FetchProblem(Edge):
    """Why one id gave no text."""

    id: str
    code: str
    message: str
    remedy: str = ""


class FetchAnswer(Edge):
    status: Status
    items: tuple[FetchedItem, ...] = ()
    problems: tuple[FetchProblem, ...] = ()
    error: ErrorReport | None = None
    config: ConfigRef
    receipt: ReceiptRef | None = None


class OutcomeAnswer(Edge):
    """Whether an outcome was taken, and whom it credits."""

    status: Status
    credited: tuple[Credit, ...] = ()
    error: ErrorReport | None = None
    config: ConfigRef
    receipt: ReceiptRef | None = None


class RegisteredExpert(Edge):
    """One configured expert as it runs."""

    id: str
    kind: str
    enabled: bool
    available: bool
    reason: str
    precision_class: PrecisionClass
    engine: str
    version: str | None = None
    intents: tuple[Intent, ...]
    languages: tuple[str, ...] | None = None
    transport: str
    cap_ms: int
    freshness: str
    priors: dict[str, float]
    details: dict[str, str] = Field(default_factory=dict[str, str])


class RegisteredProject(Edge):
    id: str
    root: str
    kind: str
    head: str | None = None
    branch: str | None = None
    shallow: bool = False
    groups: tuple[str, ...] = ()


class BuildRef(Edge):
    """Which code is running: package version, git commit and dirty flag where it runs from a checkout."""

    version: str
    commit: str | None = None
    dirty: bool | None = None


class RegistryAnswer(Edge):
    build: BuildRef
    config: ConfigRef
    experts: tuple[RegisteredExpert, ...]
    projects: tuple[RegisteredProject, ...]
    notes: tuple[str, ...] = ()


class ReceiptAnswer(Edge):
    """One receipt: the signed envelope as stored and its statement decoded for reading."""

    id: str
    seq: int
    log: str
    keyid: str
    envelope: dict[str, Any]
    statement: dict[str, Any]


# ------------------------------------------------------------------ experiments


class ExperimentArm(Edge):
    """One arm of an experiment: the router (kind `request`) or one expert (kind `call`). Latencies are milliseconds, nearest rank."""

    arm: str
    kind: str
    precision_class: str | None = None
    events: int
    hits: int = Field(description="Events that found something.")
    misses: int
    answered: int = Field(description="Events that ended without a failure, whether or not something was found.")
    results: int
    p50_ms: float
    p95_ms: float


class ExperimentClass(Edge):
    """One class of questions (intent)."""

    task_class: str
    requests: int
    calls: int
    hits: int
    cached: int


class ExperimentConfig(Edge):
    """One configuration that questions were answered with."""

    version: str
    hash: str
    requests: int
    first_us: int
    last_us: int


class ExperimentAnswer(Edge):
    """What the benchmark events of one paper slug add up to. Counts at the top are of all time, the rest of the events that are kept."""

    paper_slug: str
    created_us: int | None = Field(default=None, description="Unix time of its first event in microseconds; null when there is none.")
    updated_us: int | None = None
    requests: int = 0
    calls: int = Field(default=0, description="Expert calls.")
    cached: int = Field(default=0, description="Requests that were answered from the cache.")
    runs: int = Field(default=0, description="Processes that contributed.")
    arms: tuple[ExperimentArm, ...] = ()
    task_classes: tuple[ExperimentClass, ...] = ()
    configs: tuple[ExperimentConfig, ...] = ()
    retention: str
    notes: tuple[str, ...] = ()


# ------------------------------------------------------------------ replay


class ReplayedItem(Edge):
    """One item of the receipt or of the answer now, with its 1-based rank in each; `change` is empty when it is the same."""

    id: str
    then: int | None
    now: int | None
    change: str = ""


class ReplayAnswer(Edge):
    """How an answer differs from the receipt that is replayed."""

    replayed: str
    same_question: bool = Field(description="Whether the question has the receipt's digest.")
    same_request: bool = Field(description="Whether the whole request has the receipt's digest.")
    same: bool = Field(description="Whether experts, items, content, tiers and order are the same.")
    status_then: str
    status_now: str
    only_then: tuple[str, ...] = Field(default=(), description="Experts that were asked then and not now.")
    only_now: tuple[str, ...] = ()
    changed_experts: dict[str, str] = Field(default_factory=dict[str, str])
    order_differs: bool = False
    items: tuple[ReplayedItem, ...] = ()
    reasons: tuple[str, ...] = ()
    receipt: ReceiptRef | None = None
