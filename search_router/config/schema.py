"""The shape of the configuration. Strict: unknown keys and wrong types are mistakes. Weights are 0 to 1 with three decimals."""

from __future__ import annotations

import re
from typing import Final, Literal

from pydantic import Field, field_validator

from search_router.config.experts import AnyExpertConfig
from search_router.config.section import Section, Weight
from search_router.config.vectors import VectorsConfig
from search_router.schema import Intent

_ODD_STARS: Final = re.compile(r"\*{3}|[^/]\*\*|\*\*[^/]")


class WorkspaceConfig(Section):
    """Which directories are searched."""

    roots: tuple[str, ...] = ()
    """Directories; relative ones are relative to the working directory. Empty: the working directory."""
    names: dict[str, str] = Field(default_factory=dict[str, str])
    """Directory to project id, where the directory's own name will not do."""
    groups: dict[str, tuple[str, ...]] = Field(default_factory=dict[str, tuple[str, ...]])
    """Group name to project ids."""
    submodules: bool = True
    """Whether submodules that are checked out are projects of their own."""
    client_roots: bool = False
    """Whether an older client over stdio is asked for its roots, where none are configured. The newest protocol has no roots."""
    withhold: tuple[str, ...] = ()
    """Files that no answer shows and no fetch reads, though git may track them: patterns as in a `.gitignore` at each project's root."""

    @field_validator("withhold")
    @classmethod
    def _patterns(cls, patterns: tuple[str, ...]) -> tuple[str, ...]:
        for pattern in patterns:
            if _ODD_STARS.search(pattern.lstrip("!")):  # what matches them reads these otherwise than git does
                raise ValueError(f"{pattern!r}: two stars stand alone between slashes, as in **/name or folder/**")
        if patterns:
            from pathspec import GitIgnoreSpec  # no start needs it but one with such patterns

            try:
                GitIgnoreSpec.from_lines(patterns)
            except ValueError as error:
                raise ValueError(f"not a pattern of a .gitignore: {error}") from error
        return patterns


class BudgetConfig(Section):
    """The request's limits where the caller names none."""

    latency_ms: int = Field(ge=1, le=600_000)
    """Time for the whole request."""
    max_experts: int = Field(ge=1, le=64)
    """At most so many experts are asked."""


class ClassifyConfig(Section):
    """When the rules' verdict counts."""

    min_score: Weight
    """A winner below this is no winner: abstain."""
    min_margin: Weight
    """A winner's lead over the runner-up below this is too close: abstain."""


class GateConfig(Section):
    """How experts are picked."""

    min_prior: Weight
    """Experts with a lower prior for the intent are left out."""
    default_set: tuple[str, ...]
    """Asked when the classifier abstains."""
    one_expert_suffices: bool = True
    """Whether a question with a known path and an exact symbol goes to the best expert alone."""
    reserve: dict[str, str]
    """Expert to the one whose complete index holds the same words: for questions in words it is asked only when nobody else finds any."""


class FusionConfig(Section):
    """Weighted reciprocal rank fusion (Cormack, Clarke, Buettcher 2009)."""

    k: int = Field(ge=1, le=1000)
    """A hit at rank r is worth weight / (k + r)."""
    candidates: int = Field(ge=1, le=1000)
    """At most so many hits of one expert enter the fusion."""
    corroboration_bonus: Weight
    """Paid for each further kind of source, as a fraction of 1/(k+1)."""
    definition_bonus: Weight
    """Paid to an exact definition of a name in the question, as a fraction of 1/(k+1)."""
    test_penalty: Weight
    """Taken from tests, vendored and generated files where the question does not ask for them, as a fraction of the item's score."""


class OutputConfig(Section):
    """What the caller reads."""

    text_characters: int = Field(ge=500, le=1_000_000)
    """Budget of the text for the model, in characters."""
    snippet_lines: int = Field(ge=1, le=1000)
    """At most so many lines of an item are shown."""
    snippet_line_characters: int = Field(ge=40, le=10_000)
    """A longer line of a snippet is cut there."""
    fetch_characters: int = Field(ge=500, le=10_000_000)
    """Budget of one fetch_evidence answer where the request names none, in characters."""


class ReceiptsConfig(Section):
    """Where receipts go. Only the packaged, user, environment and flag layers may set it."""

    directory: str = ""
    """Empty: `receipts` below the state directory."""
    key: str = ""
    """Private key file. Empty: `keys/receipt-ed25519.pem` below the state directory; SEARCH_ROUTER_KEY overrides."""
    checkpoints: str = ""
    """Directory of the checkpoint files. Empty: `checkpoints` below the state directory. Best on another disk than the receipts."""
    checkpoint_key: str = ""
    """Private key file that signs checkpoints. Empty: `keys/checkpoint-ed25519.pem` below the state directory."""
    checkpoint_receipts: int = Field(default=1000, ge=1)
    """A checkpoint is made after so many receipts."""
    checkpoint_seconds: int = Field(default=60, ge=1, le=86_400)
    """A checkpoint is made after so many seconds in which there was a receipt."""
    question: Literal["digest", "text"]
    """Whether the question is stored as a keyed digest or as text."""
    max_wait_ms: int = Field(ge=1, le=60_000)
    """How long an answer waits for its receipt before it becomes an error."""


class HttpConfig(Section):
    """The HTTP and SSE transports. Only the packaged, user, environment and flag layers may set it."""

    host: str
    """Where it listens; anything but loopback needs SEARCH_ROUTER_TOKEN."""
    port: int = Field(ge=0, le=65535)
    """0 picks a free one."""
    allowed_hosts: tuple[str, ...] = ()
    """Further Host header values; loopback names are always allowed."""
    allowed_origins: tuple[str, ...] = ()
    """Further Origin header values; loopback ones are always allowed."""
    max_body_bytes: int = Field(ge=1024, le=64 * 2**20)
    """A larger request is refused."""
    max_connections: int = Field(default=1000, ge=8, le=1_000_000)
    """At most so many open at once; fewer where the limit of open files is lower. Then silent ones make room, else the answer is 503."""
    header_timeout_ms: int = Field(default=10_000, ge=100, le=600_000)
    """A connection that has not sent the whole head of a request by then is closed."""
    body_timeout_ms: int = Field(default=20_000, ge=100, le=600_000)
    """A request whose body has not come whole so long after its head is answered with 408, and its connection closed."""
    console: bool = True
    """Whether the pages at /console are served; the JSON API at /api always is."""
    bench_results: str = ""
    """The folder that `bench run` writes its results to, shown in the console; empty shows none."""


class RerankConfig(Section):
    """What reorders the best candidates where a request sets budget.rerank. Only the packaged, user, environment and flag layers may set
    it: some of it sends source text away."""

    kind: Literal["off", "cross-encoder", "http"]
    model: str = ""
    """The folder of a cross-encoder, or the name by which a server knows the model."""
    url: str = ""
    """Of a server: the whole address that is asked, such as https://api.jina.ai/v1/rerank."""
    form: Literal["results", "tei"] = "results"
    """What a server is sent: `results` is Cohere's and Jina's form, `tei` that of Text Embeddings Inference. Answers of both are read."""
    api_key_env: str = Field(default="", pattern=r"^[A-Z_][A-Z0-9_]*$|^$")
    """Name of the environment variable that holds the server's key. Never the key."""
    allow_remote: bool = False
    """Whether source text and questions may be sent to a server at all."""
    pool: int = Field(ge=2, le=1000)
    """So many of the best candidates are reordered; the others stay behind them."""
    characters: int = Field(ge=100, le=100_000)
    """So much of each candidate's text is read."""
    cap_ms: int = Field(ge=1, le=600_000)
    """Its deadline, whatever the request's budget."""


class LanguageModelConfig(Section):
    """A language model that requests with budget.allow_llm may ask. Only the packaged, user, environment and flag layers may set it: it
    is sent questions and source text."""

    kind: Literal["off", "chat-completions"]
    url: str = ""
    """Of a server in OpenAI's form, up to and with /v1."""
    model: str = ""
    """The name by which the server knows the model."""
    api_key_env: str = Field(default="", pattern=r"^[A-Z_][A-Z0-9_]*$|^$")
    """Name of the environment variable that holds the server's key. Never the key."""
    allow_remote: bool = False
    """Whether source text and questions may be sent to the server at all."""
    answer_form: Literal["json_schema", "json_object", "text"] = "json_schema"
    """How the server is told to answer in JSON; what it answers is checked in any case."""
    classify: bool
    """Whether it is asked for the intent of a question on which the rules abstain."""
    reading_order: bool
    """Whether it is asked in which order the best files are to be read."""
    commit_summaries: bool
    """Whether it is asked, in the background and whatever a request's budget says, what the newest commits change."""
    commits: int = Field(ge=1, le=100_000)
    """Of so many commits."""
    files: int = Field(ge=2, le=100)
    """Of so many files."""
    characters: int = Field(ge=100, le=100_000)
    """So much of each file's text, or of a commit's message and patch, is read."""
    cap_ms: int = Field(ge=1, le=600_000)
    """Its deadline for one call, whatever the request's budget."""


class IndexConfig(Section):
    """The index that the experts share. Only the packaged, user, environment and flag layers may set it."""

    watch: bool
    """Whether a server watches the work trees that it was asked about, so that the next question finds the index current."""
    unused_days: int = Field(ge=0, le=3650)
    """`index gc` deletes what no work tree has any more and nobody used for so many days."""
    reserve_mib: int = Field(ge=0, le=1_048_576)
    """Index and caches stop growing when their disk has less free than this, or than a tenth of it: receipts need the rest. 0: never."""


class CacheConfig(Section):
    """Answers that are given again while nothing they depend on has changed. Not settable by a project's file."""

    positive_seconds: int = Field(ge=0, le=2_592_000)
    """How long an answer with evidence may be given again; 0: never."""
    negative_seconds: int = Field(ge=0, le=2_592_000)
    """How long an answer that found nothing may be given again; 0: never."""
    entries: int = Field(ge=1, le=100_000)
    """At most so many answers are kept in memory, and as many in the file."""
    also: tuple[str, ...] = ()
    """Experts that answer from elsewhere than this machine's files (remote ones), whose answers may be given again all the same."""


class EnrichConfig(Section):
    """What is learned from requests, in a file beside the receipts. Not settable by a project's file."""

    hints: bool
    """Whether an expert that only confirmed what others found is left out while the files are unchanged."""
    events: bool
    """Whether benchmark events are kept."""
    paper_slug: str = Field(pattern=r"^[a-z0-9][a-z0-9._-]{0,99}$")
    """The experiment that events count for."""
    outcomes_per_minute: int = Field(ge=1, le=10_000)
    """At most so many outcomes of one session are taken in a minute."""
    keep_questions: bool
    """Whether requests are kept as text, for `replay` without --question."""


class BanditConfig(Section):
    """How outcomes of a session move the weights of its experts. Not settable by a project's file. See docs/flywheel.md."""

    enabled: bool
    strength: float = Field(ge=1, le=1000)
    """So many outcomes weigh as much as the configured prior."""
    floor: float = Field(ge=0.1, le=1)
    """No weight falls below this part of its prior."""
    cap: float = Field(ge=1, le=3)
    """No weight rises above this multiple of its prior."""
    discount: float = Field(ge=0.5, le=1)
    """What an outcome counts after the next one, so that a change within the session is followed; 1 forgets nothing."""
    exploration: float = Field(ge=0.001, le=1)
    """How far draws stray: 1 is plain Thompson sampling, less is nearer to what is most likely (the posterior's variance times this)."""


class TelemetryConfig(Section):
    """What is told of the work, and to whom. Only the packaged, user, environment and flag layers may set it. See docs/observability.md."""

    traces: bool = False
    """OpenTelemetry spans over OTLP/HTTP; where to is said by the standard OTEL_* variables."""
    metrics: bool = False
    """OpenTelemetry metrics over OTLP/HTTP."""
    prometheus: bool = False
    """The same metrics as a page at /metrics of the HTTP and SSE servers."""
    logs: bool = False
    """JSON lines on standard error."""
    content: bool = False
    """Whether questions, sub-queries and reasons of failures may be in spans and logs, scrubbed of what looks like a secret."""
    propagate: bool = True
    """Whether remote experts are told the trace (traceparent and tracestate)."""


class Config(Section):
    """The whole effective configuration."""

    version: str = Field(pattern=r"^search-router@\d+\.\d+\.\d+$")
    workspace: WorkspaceConfig
    budget: BudgetConfig
    classify: ClassifyConfig
    gate: GateConfig
    fusion: FusionConfig
    output: OutputConfig
    receipts: ReceiptsConfig
    http: HttpConfig
    vectors: VectorsConfig
    rerank: RerankConfig
    llm: LanguageModelConfig
    index: IndexConfig
    cache: CacheConfig
    enrich: EnrichConfig
    bandit: BanditConfig
    telemetry: TelemetryConfig
    experts: dict[str, AnyExpertConfig]
    priors: dict[Intent, dict[str, Weight]]
