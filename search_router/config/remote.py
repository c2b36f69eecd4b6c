"""The blocks of experts that are other systems: an MCP server, a command, an HTTP service with JSON, a Milvus collection.

See docs/remote-experts.md.

Text in these blocks may hold placeholders: `{question}`, `{sub_query}`, `{terms}`, `{symbol}`, `{name_path}`, `{regex}`, `{path}`,
`{language}`, `{limit}`, `{root}`, `{project}`, `{before.FIELD}`, and `{env:NAME}` in `env`, `headers` and `url`.
"""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field

from search_router.config.section import ExpertConfig, Section
from search_router.config.vectors import VectorsConfig

MAX_PATTERN = 2000
REMOTE_FAILURES = ("unavailable", "unconfigured", "index-missing", "crashed", "protocol-error", "busy", "rejected")


class ErrorRule(Section):
    """Text that is really a failure, whatever flag it came with."""

    pattern: str = Field(min_length=1, max_length=MAX_PATTERN)
    failure: Literal["unavailable", "unconfigured", "index-missing", "crashed", "protocol-error", "busy", "rejected"]
    remedy: str = Field(default="", max_length=500)


class AnswerConfig(Section):
    """How an answer is read. The order of judgement is: errors, empty, then the form; text that fits none is `protocol-error`."""

    form: Literal["json", "pattern", "document"]
    """json: items at a dotted path. pattern: a regular expression over text. document: the text itself is one piece of documentation."""
    content: Literal["text", "structured"] = "text"
    """Which part of an MCP result: its text blocks, or structuredContent."""
    items: str = ""
    """json: dotted path to the array of items; `*` goes through all members, whose keys are `@1`, `@2`, …; empty: the whole document."""
    fields: dict[str, str] = Field(default_factory=dict[str, str])
    """json: field to dotted path below an item (empty: the item itself), or `PATH ~ REGEX`, whose first group counts."""
    pattern: str = Field(default="", max_length=MAX_PATTERN)
    """pattern: groups named path, start, end, symbol, kind, score, project, title, url, text; `ordinal` must count 1, 2, 3, …"""
    header: str = Field(default="", max_length=MAX_PATTERN)
    """pattern: lines that match give their groups to the lines below them; `pattern` is then tried line by line."""
    fenced: bool = False
    """pattern: a code fence follows each match, and what is in it is not looked at."""
    split: str = Field(default="", max_length=MAX_PATTERN)
    """document: where one document ends and the next begins."""
    line_base: Literal[0, 1] = 1
    end_exclusive: bool = False
    separator: str = ""
    """What stands between the parts of a symbol, where it is not a dot."""
    is_definition: bool = False
    """Whether every item is a definition of the name that was asked for."""
    is_exact: bool = False
    """Whether every item matched the asked text or name exactly."""
    min_score: float | None = None
    """Items with a lower native score are left out: some systems always fill the page."""
    empty: tuple[str, ...] = ()
    """Patterns of text that says: looked, and found nothing."""
    errors: tuple[ErrorRule, ...] = ()


class StepConfig(Section):
    """A call that is made first; `{before.FIELD}` in the main arguments is what its chosen items say."""

    tool: str = Field(min_length=1)
    arguments: dict[str, Any] = Field(default_factory=dict[str, Any])
    answer: AnswerConfig
    choose: Literal["first", "words"] = "first"
    """first: its first items. words: those that share most words with the question."""
    take: int = Field(default=1, ge=1, le=10)
    """So many of its items are followed up."""
    keep_ms: int = Field(default=0, ge=0, le=86_400_000)
    """How long its answer to the same arguments may be used again."""


class FreshnessProbe(Section):
    """Where a system says what its index was made of: in the answer of one of its tools, or of a command."""

    tool: str = ""
    """mcp: a tool of the same server."""
    arguments: dict[str, Any] = Field(default_factory=dict[str, Any])
    command: tuple[str, ...] = ()
    """Any kind: a program and its arguments, run in the project."""
    commit: str = Field(default="", max_length=MAX_PATTERN)
    """Dotted path to the commit in the JSON of the answer, with ` ~ REGEX` behind it where its first group counts; text that is no JSON has
    the empty path."""
    time: str = Field(default="", max_length=MAX_PATTERN)
    """The same for the time: ISO 8601, or seconds or milliseconds since 1970."""
    keep_ms: int = Field(default=5_000, ge=0, le=3_600_000)
    """How long its answer is believed."""


class RemoteConfig(ExpertConfig):
    """What all experts have that are other systems."""

    pass_env: tuple[str, ...] = ()
    """Names of environment variables that a child gets beside PATH, HOME, the locale and the like. Never SEARCH_ROUTER_*."""
    requires_env: tuple[str, ...] = ()
    """Without these variables the expert is `unconfigured`."""
    max_bytes: int = Field(default=1_048_576, ge=4096, le=64 * 2**20)
    """Of one answer; the rest is cut, and the answer says so."""
    max_parallel: int = Field(default=4, ge=1, le=256)
    """Calls at once; more wait, and are `busy` when their time is over."""
    max_projects: int = Field(default=3, ge=1, le=64)
    """At most so many projects of a request are asked about, where the call names one."""
    freshness: Literal["live", "index", "probe", "none"] = "none"
    """live: it reads the files as they are. index: as of `index_files`. probe: as `freshness_probe` says. none: nobody can tell."""
    freshness_probe: FreshnessProbe | None = None
    index_files: tuple[str, ...] = ()
    """Globs below a project's root. Without a match the expert is `index-missing`; a file newer than all of them is stale."""
    egress: Literal["local", "third-party"] = "local"
    """Whether the question leaves this machine."""
    canary: str = ""
    """A question that surely finds something; asked when empty answers become suspicious."""


class AnsweringConfig(RemoteConfig):
    """A system whose answers are text or JSON of its own form."""

    answer: AnswerConfig


class McpConfig(AnsweringConfig):
    """An MCP server is an expert."""

    kind: Literal["mcp"]
    transport: Literal["stdio", "http", "sse"] = "stdio"
    command: tuple[str, ...] = ()
    """stdio: the program and its arguments; never a shell."""
    cwd: str = ""
    """stdio: where it runs, such as `{root}`; empty: the file system's root. A command, cwd or env that names the project's root makes it
    one server a project."""
    env: dict[str, str] = Field(default_factory=dict[str, str])
    url: str = ""
    headers: dict[str, str] = Field(default_factory=dict[str, str])
    tool: str = Field(min_length=1)
    arguments: dict[str, Any] = Field(default_factory=dict[str, Any])
    before: StepConfig | None = None
    check_tool: bool = True
    """Whether the tool must be in tools/list, and literal arguments in the enums of its schema."""
    start_ms: int = Field(default=20_000, ge=100, le=600_000)
    """Until it has answered `initialize` and `tools/list`."""
    max_servers: int = Field(default=4, ge=1, le=64)
    """stdio: at most so many children at once, where the command names the project's root."""


class CommandConfig(AnsweringConfig):
    """A command is an expert: one process a question."""

    kind: Literal["command"]
    command: tuple[str, ...] = Field(min_length=1)
    cwd: str = "{root}"
    env: dict[str, str] = Field(default_factory=dict[str, str])
    ok_exits: tuple[int, ...] = (0,)
    """Exit codes of an answer; any other is a failure."""
    version_command: tuple[str, ...] = ()
    """Prints the version, for the receipt."""


class HttpJsonConfig(AnsweringConfig):
    """An HTTP service that answers with JSON (or text) is an expert."""

    kind: Literal["http-json"]
    url: str = Field(min_length=1)
    method: Literal["GET", "POST"] = "POST"
    headers: dict[str, str] = Field(default_factory=dict[str, str])
    query: dict[str, str] = Field(default_factory=dict[str, str])
    """Parameters of the URL."""
    body: dict[str, Any] = Field(default_factory=dict[str, Any])
    """POST: the JSON document."""


class MilvusFields(Section):
    """Which field of the collection holds what; empty: it has none."""

    path: str = Field(default="path", min_length=1)
    start_line: str = "start_line"
    end_line: str = "end_line"
    project: str = ""
    """The id of the project, or the name of its folder; a question then looks only at rows of the asked projects."""
    language: str = ""
    """In lower case, as the scope of a request has it."""
    symbol: str = ""
    kind: str = ""
    text: str = ""
    """Only shown for rows without a path, which are documents; the text of code is read from the file."""
    title: str = ""
    url: str = ""
    content_hash: str = ""
    """SHA-256 of the file when it was indexed, in hexadecimal: hits in files that have changed since are stale."""


class MilvusConfig(RemoteConfig):
    """A Milvus collection is an expert: a file of milvus-lite, or a cluster."""

    kind: Literal["milvus"]
    uri: str = Field(min_length=1)
    """Path of a milvus-lite database, which ends in `.db`, such as `{root}/.milvus/code.db`; or http://host:19530, or {env:NAME}."""
    token_env: str = Field(default="", pattern=r"^[A-Za-z_][A-Za-z0-9_]*$|^$")
    """Name of the variable that holds the token, or user:password. Never the token."""
    database: str = ""
    """Of a cluster; empty: its default."""
    collection: str = Field(min_length=1)
    vector_field: str = ""
    """Empty: the only one that the collection has."""
    metric: Literal["", "COSINE", "IP", "L2", "BM25", "HAMMING", "JACCARD"] = ""
    """What the field must be indexed with; empty: whatever it is."""
    asks: Literal["vector", "text"] = "vector"
    """vector: the question's vector. text: its words, for a field that a function of Milvus makes (BM25, or a model of its own)."""
    vectors: VectorsConfig | None = None
    """The embedder that made the collection's vectors; without it, the section `vectors`."""
    fields: MilvusFields = Field(default_factory=MilvusFields)
    filter: str = Field(default="", max_length=4000)
    """A boolean expression of Milvus that every row must satisfy besides."""
    line_base: Literal[0, 1] = 1
    end_exclusive: bool = False
    min_score: float | None = None
    """Rows with a lower score are left out. For L2 the score is the distance below zero, so that more is always better."""
    start_ms: int = Field(default=20_000, ge=100, le=600_000)
    """Until the process that speaks with Milvus has started."""
    idle_ms: int = Field(default=10_000, ge=100, le=3_600_000)
    """A milvus-lite database is let go of after so long without a question: only one process can have it open."""


AnyRemoteConfig = McpConfig | CommandConfig | HttpJsonConfig | MilvusConfig
