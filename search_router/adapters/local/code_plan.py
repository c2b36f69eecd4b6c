"""The search plan: what one question makes of the code index, as a frozen value. Pure, and made in one place from the question and the
configuration, so that an answer can be explained and an ablation is a setting.

    entity-filter   only files that have a whole name that is asked for
    files           path, names, comments: BM25 over what a file says of itself as a whole
    structure       stem, path_cover, name_cover, size, central, hint
    definitions     who defines a name of the question, as opposed to using it
    vectors         nearness of meaning
    summaries       in large projects: only the best files by the signals so far
    chunks          strong, decayed, body: BM25 over chunks and whole texts
    damping         of tests, prose, vendored, generated, legacy and internal files
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from search_router.adapters.local.code_words import names_in, question_words, words_of
from search_router.adapters.local.languages import language_of, languages_named
from search_router.adapters.local.qualified_names import cut_qualified
from search_router.adapters.local.symbol_lookup import WantedName, read_names
from search_router.config.experts import CodeSearchConfig
from search_router.schema import ExpertCall, QueryForm

_PATH_LIKE = re.compile(r"[\w.-]+(?:/[\w.-]+)*")
_ASKED: Final = {
    "test": re.compile(r"\b(?:tests?|testing|examples?|benchmarks?|mocks?|fixtures?|specs?)\b", re.IGNORECASE),
    "prose": re.compile(r"\b(?:docs?|documentation|readme|guide|config\w*|changelog|tutorial)\b", re.IGNORECASE),
    "foreign": re.compile(r"\b(?:vendor\w*|third[ -]party|generated|node_modules)\b", re.IGNORECASE),
    "legacy": re.compile(r"legacy|deprecat|compat|\bv\d+\b|\bold(?:er)?\b", re.IGNORECASE),
}


class Stage(StrEnum):
    """A step of the search, in the order in which they are reported."""

    ENTITY_FILTER = "entity-filter"
    FILES = "files"
    STRUCTURE = "structure"
    DEFINITIONS = "definitions"
    VECTORS = "vectors"
    SUMMARIES = "summaries"
    CHUNKS = "chunks"
    DAMPING = "damping"


@dataclass(frozen=True, slots=True)
class SearchPlan:
    """What is looked for, by which stages, with which weights, among how many candidates.

    Attributes:
        words: index words of the question with their weights.
        names: words of the question that are written like names of definitions.
        members: names that the question writes behind the name of what holds them: `Session.close`, `geo::Shape#area`.
        required: index words of whole names; only files that have one are found. Empty: no filter.
        hints: paths and file names that the question mentions.
        prefix, languages: the scope; empty: everything.
        stages: those that are on.
        weights: signal to weight.
        factors: what a path's role (test, prose, foreign, legacy, internal) leaves of a file's score.
        summaries_above: projects with more chunks than this have file summaries searched first.
        summary_files: candidates of the stage `summaries`.
        limit: files that are given back.
    """

    words: Mapping[str, float]
    names: tuple[str, ...]
    members: tuple[WantedName, ...]
    required: frozenset[str]
    hints: tuple[str, ...]
    prefix: str
    languages: frozenset[str]
    stages: frozenset[Stage]
    weights: Mapping[str, float]
    factors: Mapping[str, float]
    summaries_above: int
    summary_files: int
    limit: int

    def runs(self, stage: Stage) -> bool:
        return stage in self.stages


def plan_search(call: ExpertCall, config: CodeSearchConfig) -> SearchPlan:
    """The plan for one call: its question and scope, and the weights and stages of the configuration."""
    question, stages = call.sub_query.text, config.stages
    table = config.weights.model_dump()
    on = {
        Stage.ENTITY_FILTER: stages.entity_filter,
        Stage.FILES: stages.files,
        Stage.STRUCTURE: stages.structure,
        Stage.DEFINITIONS: stages.definitions,
        Stage.VECTORS: stages.vectors,
        Stage.SUMMARIES: stages.summaries,
        Stage.CHUNKS: stages.chunks,
        Stage.DAMPING: stages.damping,
    }
    return SearchPlan(
        words=question_words(question),
        names=names_in(question),
        members=tuple(each for each in read_names((question,), literal=True) if each.qualifiers),
        required=exact_words(call.sub_query.terms) if call.sub_query.form is QueryForm.SYMBOL else frozenset(),
        hints=file_hints(question),
        prefix=(call.path or "").strip("/"),
        languages=languages_named(call.language) or frozenset(config.languages),
        stages=frozenset(stage for stage, is_on in on.items() if is_on),
        weights=table,
        factors={
            **{role: 1 - (0 if asked.search(question) else table[f"{role}_damping"]) for role, asked in _ASKED.items()},
            "internal": 1 - table["internal_damping"],
        },
        summaries_above=stages.summaries_above,
        summary_files=stages.summary_files,
        limit=call.limit,
    )


def exact_words(terms: Sequence[str]) -> frozenset[str]:
    """The index word of each whole name: a question for a name is not answered by a file that only has parts of it."""
    return frozenset(words[-1] for term in terms if (words := words_of(cut_qualified(term)[1])))


def file_hints(question: str) -> tuple[str, ...]:
    """What the question writes like a path, or like the name of a file in a known language."""
    found = [text.removeprefix("./").rstrip(".-") for text in _PATH_LIKE.findall(question)]
    return tuple(dict.fromkeys(text for text in found if "/" in text or ("." in text and language_of(text) is not None)))
