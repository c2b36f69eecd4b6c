"""The blocks of experts in the configuration: the settings of every embedded kind, and which kinds there are."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from search_router.config.remote import AnyRemoteConfig
from search_router.config.section import ExpertConfig, Section, Weight


class GrepConfig(ExpertConfig):
    kind: Literal["grep"]
    rg: str = ""
    """Path of ripgrep. Empty: the wheel's, then PATH's, then git grep."""
    threads: int = Field(ge=0, le=64)
    """0: half of the processors, 1 to 4: the other experts run at the same time."""
    max_file_bytes: int = Field(ge=1024)
    max_columns: int = Field(ge=40, le=1_000_000)
    """A longer matching line is cut there."""


class SymbolsConfig(ExpertConfig):
    kind: Literal["symbols"]
    max_file_bytes: int = Field(ge=1024)
    workers: int = Field(ge=0, le=64)
    """Processes that read new files. 0: one a processor, at most 8."""


class CodeSearchWeights(Section):
    """Weights of the ranking signals, each normalised to 1 at its best file, and damping factors of paths. See docs/codesearch.md."""

    strong: Weight
    """Sum of the file's chunks that score at least 30 % of the best chunk (BM25)."""
    decayed: Weight
    """Sum of its eight best chunks, each counting 70 % of the one before."""
    body: Weight
    """BM25 with the whole file as the document."""
    path: Weight
    """BM25 over the words of its path."""
    names: Weight
    """BM25 over the names that it defines."""
    comments: Weight
    """BM25 over its comments and docstrings."""
    stem: Weight
    """Its name consists of words of the question."""
    path_cover: Weight
    """The share of the question's information that its path has."""
    name_cover: Weight
    """The share that its best-fitting definition's name has, times how much of that name is the question's."""
    definition: Weight
    """It defines a name of the question."""
    size: Weight
    """Logarithm of its length."""
    central: Weight
    """How many other files speak of it by name."""
    vector: Weight
    """Cosine between the question and its best chunk. 0: no vectors are made for it."""
    hint: Weight = 0.0
    """The question names the file by its path or name; half of it for the files of a folder that it names."""
    test_damping: Weight
    prose_damping: Weight
    foreign_damping: Weight
    legacy_damping: Weight
    internal_damping: Weight


class CodeSearchStages(Section):
    """The stages of the code search: each can be switched off and then says so. See docs/codesearch.md."""

    entity_filter: bool = True
    """A question for a name is answered only by files that have the whole name."""
    files: bool = True
    """BM25 over paths, names of definitions, comments: the signals path, names, comments."""
    structure: bool = True
    """The signals stem, path_cover, name_cover, size, central, hint."""
    definitions: bool = True
    """Who defines a name of the question: the signal definition, and the place that is shown."""
    vectors: bool = True
    """The signal vector. Off: no vectors are made for it."""
    summaries: bool = True
    """In projects with more than `summaries_above` chunks, only the best `summary_files` files by file-level signals are looked into."""
    chunks: bool = True
    """BM25 over chunks and whole texts: the signals strong, decayed, body."""
    damping: bool = True
    """The dampings by path."""
    summaries_above: int = Field(default=400_000, ge=0)
    summary_files: int = Field(default=1000, ge=10)


class CodeSearchConfig(ExpertConfig):
    kind: Literal["codesearch"]
    weights: CodeSearchWeights
    stages: CodeSearchStages = Field(default_factory=CodeSearchStages)


class CallGraphConfig(ExpertConfig):
    kind: Literal["callgraph"]
    depth: int = Field(ge=1, le=5)
    """How many steps of callers a question about the effects of a change follows."""


class SemanticConfig(ExpertConfig):
    kind: Literal["semantic"]


class HistoryConfig(ExpertConfig):
    kind: Literal["history"]
    max_commits: int = Field(ge=1)
    """Only the newest so many commits are read."""
    pickaxe_ms: int = Field(ge=1, le=600_000)
    """How long one pickaxe scan may read before it reports what it has and where it stopped."""


class ScipConfig(ExpertConfig):
    kind: Literal["scip"]
    files: tuple[str, ...] = Field(min_length=1)
    """Where indexes may lie in a project: globs relative to its root, `*` within one name. Our own index is found in any case."""
    max_index_bytes: int = Field(ge=1024)


class PythonTypesConfig(ExpertConfig):
    kind: Literal["python-types"]
    max_places: int = Field(ge=1, le=100_000)
    """At most so many places are resolved for one question."""
    max_worker_mb: int = Field(ge=128)
    """A worker process that has grown larger than this is replaced."""
    idle_seconds: int = Field(ge=1)
    """A worker process that nobody has asked for so long is ended."""


class KnowledgeWeights(Section):
    """What each retriever's position is worth in the fusion of documents, and what time does to the result. See docs/knowledge.md."""

    lexical: Weight
    semantic: Weight
    document: Weight
    temporal: Weight
    """A document of today earns this part of its score; half of it after the half-life. 0 is neutral."""
    historical_damping: Weight
    """Superseded, historical and expired documents lose this part of their score."""


class KnowledgeConfig(ExpertConfig):
    kind: Literal["knowledge"]
    max_file_bytes: int = Field(ge=1024)
    half_life_days: int = Field(ge=1, le=36_500)
    semantic: Literal["auto", "always", "never"]
    """Whether documents are also found by vectors. `auto`: with every embedder but `lsa`, which did not help on labelled questions."""
    weights: KnowledgeWeights


class DocsConfig(ExpertConfig):
    kind: Literal["docs"]


class ScriptedConfig(ExpertConfig):
    kind: Literal["scripted"]
    script: str
    """JSON file with answers, delays and faults."""
    freshness: Literal["live", "content-hash", "none"] = "live"


AnyExpertConfig = Annotated[
    GrepConfig
    | SymbolsConfig
    | CodeSearchConfig
    | CallGraphConfig
    | SemanticConfig
    | HistoryConfig
    | ScipConfig
    | PythonTypesConfig
    | KnowledgeConfig
    | DocsConfig
    | ScriptedConfig
    | AnyRemoteConfig,
    Field(discriminator="kind"),
]
