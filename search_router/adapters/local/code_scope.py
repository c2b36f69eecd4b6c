"""What the scope and the paths say of files before they are ranked: who may be found, and who is damped."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Final

import numpy as np
import numpy.typing as npt

from search_router.adapters.local.code_index import ProjectCode
from search_router.adapters.local.code_plan import SearchPlan, Stage
from search_router.adapters.local.code_rank import Admitted
from search_router.adapters.local.code_segment import Floats, Segment
from search_router.adapters.local.code_stages import OFF, StageTally
from search_router.adapters.local.languages import is_generated_path, is_test_path, is_vendored_path, language_of

PROSE: Final = frozenset({"markdown", "rst", "text", "json", "yaml", "toml", "html", "css", "xml", "makefile", "dockerfile", "ini"})
_LEGACY = re.compile(r"(?:^|/)(?:legacy|deprecat\w*|compat|obsolete)(?:/|\.|_)", re.IGNORECASE)
_INTERNAL = re.compile(r"(?:^|/)(?:_|internals?/)")


def admit_files(code: ProjectCode, plan: SearchPlan, tally: StageTally) -> Admitted:
    """Which files the scope and the names let in, and the factor each earns by its path, unless the question asks for its kind."""
    masks = [np.ones(len(segment), np.bool_) for segment in code.segments]
    if plan.prefix or plan.languages:
        masks = [_inside_scope(segment, plan) for segment in code.segments]
    admitted = sum(int(np.count_nonzero(mask)) for mask in masks)
    if plan.runs(Stage.ENTITY_FILTER) and plan.required:
        with tally.run(Stage.ENTITY_FILTER, admitted) as stage:
            masks = [mask & _holding(segment, plan.required) for mask, segment in zip(masks, code.segments, strict=True)]
            stage.out += sum(int(np.count_nonzero(mask)) for mask in masks)
    else:
        tally.idle(Stage.ENTITY_FILTER, "the question asks for no name", admitted)
    return Admitted(masks, _damping(code, plan, tally))


def _damping(code: ProjectCode, plan: SearchPlan, tally: StageTally) -> list[Floats]:
    factors = [np.ones(len(segment), np.float32) for segment in code.segments]
    count = sum(len(factor) for factor in factors)
    if not plan.runs(Stage.DAMPING):
        tally.idle(Stage.DAMPING, OFF, count)
        return factors
    with tally.run(Stage.DAMPING, count) as stage:
        for factor, segment in zip(factors, code.segments, strict=True):
            for name, flags in _roles_of(segment, code.legacy).items():
                factor *= np.where(flags, plan.factors[name], 1.0).astype(np.float32)
            stage.out += int(np.count_nonzero(factor < 1))
    return factors


def _inside_scope(segment: Segment, plan: SearchPlan) -> npt.NDArray[np.bool_]:
    inside = [_inside(path, plan.prefix) and (not plan.languages or language_of(path) in plan.languages) for path in segment.paths]
    return np.array(inside, np.bool_)


def _holding(segment: Segment, words: Iterable[str]) -> npt.NDArray[np.bool_]:
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
