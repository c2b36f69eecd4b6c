"""What the console shows, as the JSON that its API gives. Times are Unix microseconds, durations milliseconds."""

from __future__ import annotations

from pydantic import Field

from search_router.answers import ExperimentArm, RegisteredExpert, RegisteredProject
from search_router.schema import ConfigRef, Edge


class Count(Edge):
    """How often something was."""

    name: str
    count: int


class Bucket(Edge):
    """One bar of a distribution of latencies: up to `up_to_ms`, None for everything slower."""

    up_to_ms: float | None
    count: int


class Distribution(Edge):
    """The latencies of one expert, or of whole requests of one class."""

    name: str
    kind: str = Field(description="`expert` or `class`.")
    events: int
    p50_ms: float
    p95_ms: float
    p99_ms: float
    buckets: tuple[Bucket, ...]


class Overview(Edge):
    """The newest requests in numbers. Counts are of the newest `window` benchmark events of this principal, not of all time."""

    version: str
    commit: str | None
    config: ConfigRef
    receipts: int = Field(description="Receipts of all logs of the store, of all principals when this one may see them.")
    window: int
    requests: int
    receipted: int = Field(description="Of those requests, how many have a receipt in the store.")
    since_us: int | None
    until_us: int | None
    per_hour: tuple[Count, ...] = Field(description="Requests of each of the last 24 hours; `name` is the hour's Unix time in seconds.")
    statuses: tuple[Count, ...]
    classes: tuple[Count, ...]
    failures: tuple[Count, ...] = Field(description="Expert calls that failed, as `expert: failure class`.")
    cached: int
    saved_ms: float = Field(description="What requests answered from the cache would have taken at the median of those that were not.")
    hinted: int = Field(description="Expert calls that were not made because a hint stood for them.")
    hinted_ms: float = Field(
        description="The time of those calls at the median of each expert; experts run side by side, so nobody waited so long."
    )
    calls: int
    latencies: tuple[Distribution, ...]
    metrics: bool = Field(description="Whether /metrics has the same for Prometheus.")
    notes: tuple[str, ...] = ()


class ReceiptRow(Edge):
    """One receipt in a list."""

    id: str
    seq: int
    log: str
    time_us: int
    status: str
    intent: str | None
    operation: str
    principal: str | None
    used_ms: float | None
    items: int


class ReceiptPage(Edge):
    """Receipts, newest first. `before` continues the list; `looked_at` says how many were read to find these.

    A principal that sees its own receipts alone is `still_searching` until the whole store was looked through for them: ask again.
    """

    rows: tuple[ReceiptRow, ...]
    before: str | None
    looked_at: int
    still_searching: bool = False


class Verdict(Edge):
    """What verification says of one receipt, with the trust of this store."""

    what: str
    verdict: str
    reasons: tuple[str, ...]
    notes: tuple[str, ...]


class ReportedOutcome(Edge):
    """What was said later of the evidence of a receipt, and the receipt in which that was said."""

    receipt: str
    source: str = Field(description="`reported`, or `fetched` when a fetch told it.")
    outcome: str
    time_us: int


class ReceiptView(Edge):
    """One receipt with its verdict. `statement` is the signed in-toto statement, `envelope` the DSSE envelope as stored.

    Both are empty where what is stored cannot be read, which the verdict says.
    """

    id: str
    seq: int
    log: str
    keyid: str
    time_us: int
    status: str
    verdict: Verdict
    statement: dict[str, object]
    envelope: dict[str, object]
    outcomes: tuple[ReportedOutcome, ...] = ()


class LeftOutFile(Edge):
    path: str
    reason: str


class RepositoryIndex(Edge):
    """One project against the index."""

    id: str
    root: str
    kind: str
    branch: str | None
    head: str | None
    indexed: int
    waiting: int
    damaged: int
    left_out: int
    files_left_out: tuple[LeftOutFile, ...] = Field(description="At most 200 of them.")
    languages: dict[str, int]
    failure: str | None = None


class IndexStore(Edge):
    """The index of this machine. Orphans are work trees that are in it and not on disk."""

    path: str
    bytes: int
    rows: int
    unused_rows: int
    orphans: tuple[str, ...]


class Repositories(Edge):
    """Coverage of every project by the index as of `read_us`, and the store that they share with every other workspace of this machine."""

    projects: tuple[RepositoryIndex, ...]
    store: IndexStore | None = Field(description="Null for a principal that sees only its own.")
    notes: tuple[str, ...]
    read_us: int


class Experts(Edge):
    """Every configured expert as it was at `read_us`, and the projects."""

    experts: tuple[RegisteredExpert, ...]
    projects: tuple[RegisteredProject, ...]
    notes: tuple[str, ...]
    read_us: int


class Slugs(Edge):
    """Names of experiments, most recent first."""

    slugs: tuple[str, ...]


class Comparison(Edge):
    """Two configurations of one experiment, each by the beginning of its hash, arm by arm."""

    paper_slug: str
    a: str
    b: str
    arms_a: tuple[ExperimentArm, ...]
    arms_b: tuple[ExperimentArm, ...]


class SetValue(Edge):
    """One effective value, and the layer, file and line that set it."""

    key: str
    value: object
    layer: str
    source: str
    line: int


class Configuration(Edge):
    version: str
    hash: str
    values: tuple[SetValue, ...]
    notes: tuple[str, ...] = Field(description="Drift and other words of the start.")


class Refusal(Edge):
    """A request to the API that was refused, or failed."""

    error: str
    message: str
    remedy: str = ""
