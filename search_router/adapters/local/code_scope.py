"""What the scope and the paths say of files before they are ranked: who may be found, and who is damped."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np
import numpy.typing as npt

from search_router.adapters.local.code_index import ProjectCode
from search_router.adapters.local.code_rank import Admitted
from search_router.adapters.local.code_segment import Floats, Segment
from search_router.adapters.local.code_words import words_of
from search_router.adapters.local.languages import is_generated_path, is_test_path, is_vendored_path, language_of, languages_named
from search_router.adapters.local.qualified_names import cut_qualified
from search_router.config.schema import CodeSearchWeights
from search_router.schema import ExpertCall, QueryForm

PROSE: Final = frozenset({"markdown", "rst", "text", "json", "yaml", "toml", "html", "css", "xml", "makefile", "dockerfile", "ini"})
_TESTS = re.compile(r"\b(?:tests?|testing|examples?|benchmarks?|mocks?|fixtures?|specs?)\b", re.IGNORECASE)
_PROSE_ASKED = re.compile(r"\b(?:docs?|documentation|readme|guide|config\w*|changelog|tutorial)\b", re.IGNORECASE)
_LEGACY_ASKED = re.compile(r"legacy|deprecat|compat|\bv\d+\b|\bold(?:er)?\b", re.IGNORECASE)
_FOREIGN_ASKED = re.compile(r"\b(?:vendor\w*|third[ -]party|generated|node_modules)\b", re.IGNORECASE)
_LEGACY = re.compile(r"(?:^|/)(?:legacy|deprecat\w*|compat|obsolete)(?:/|\.|_)", re.IGNORECASE)
_INTERNAL = re.compile(r"(?:^|/)(?:_|internals?/)")


def admit_files(code: ProjectCode, call: ExpertCall, languages: frozenset[str], weights: CodeSearchWeights) -> Admitted:
    """Which files the scope lets in, and the factor each earns by its path, unless the question asks for its kind.

    `languages` are the expert's own, where the call names none.
    """
    prefix = (call.path or "").strip("/")
    languages = languages_named(call.language) or languages
    question = call.sub_query.text
    factors = {
        "test": 1 - (0 if _TESTS.search(question) else weights.test_damping),
        "prose": 1 - (0 if _PROSE_ASKED.search(question) else weights.prose_damping),
        "foreign": 1 - (0 if _FOREIGN_ASKED.search(question) else weights.foreign_damping),
        "legacy": 1 - (0 if _LEGACY_ASKED.search(question) else weights.legacy_damping),
        "internal": 1 - weights.internal_damping,
    }
    names = exact_words(call.sub_query.terms) if call.sub_query.form is QueryForm.SYMBOL else frozenset[str]()
    masks: list[npt.NDArray[np.bool_]] = []
    damping: list[Floats] = []
    for segment in code.segments:
        factor = np.ones(len(segment), np.float32)
        for name, flags in _roles_of(segment, code.legacy).items():
            factor *= np.where(flags, factors[name], 1.0).astype(np.float32)
        damping.append(factor)
        mask = _holding(segment, names) if names else np.ones(len(segment), np.bool_)
        if prefix or languages:
            inside = [_inside(path, prefix) and (not languages or language_of(path) in languages) for path in segment.paths]
            mask &= np.array(inside, np.bool_)
        masks.append(mask)
    return Admitted(masks, damping)


def exact_words(terms: Sequence[str]) -> frozenset[str]:
    """The index word of each whole name: a question for a name is not answered by a file that only has parts of it."""
    return frozenset(words[-1] for term in terms if (words := words_of(cut_qualified(term)[1])))


def _holding(segment: Segment, words: frozenset[str]) -> npt.NDArray[np.bool_]:
    mask = np.zeros(len(segment), np.bool_)
    for word in words:
        chunks, _ = segment.body.of(segment.number.get(word))
        mask[segment.owner[chunks]] = True
    return mask


def _inside(path: str, prefix: str) -> bool:
    return not prefix or path == prefix or path.startswith(f"{prefix}/")


def _roles_of(segment: Segment, legacy: Mapping[str, bool]) -> dict[str, npt.NDArray[np.bool_]]:
    """What each file's path says of its role, by segment; computed once a segment."""
    if segment.roles is None:
        paths = segment.paths
        old = tuple(f"{folder}/" for folder, is_old in legacy.items() if is_old)
        segment.roles = {
            "test": np.array([is_test_path(p) for p in paths], np.bool_),
            "prose": np.array([(language_of(p) or "text") in PROSE for p in paths], np.bool_),
            "foreign": np.array([is_vendored_path(p) or is_generated_path(p) for p in paths], np.bool_),
            "legacy": np.array([bool(_LEGACY.search(p)) or p.startswith(old) for p in paths], np.bool_),
            "internal": np.array([bool(_INTERNAL.search(p)) for p in paths], np.bool_),
        }
    return segment.roles
