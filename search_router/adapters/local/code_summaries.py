"""In large projects: which files are worth looking into, by what is known of them as a whole. Pure but for numpy.

The summary of a file is what the segments hold of it as a whole: its path, the names that it defines, its comments, what it imports, and
how near its vectors are. It is scored with the same signals and weights as the ranking, without those of chunks.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np

from search_router.adapters.local.code_fields import B, Fields, Mask
from search_router.adapters.local.code_plan import SearchPlan, Stage
from search_router.adapters.local.code_segment import Floats
from search_router.adapters.local.code_stages import StageTally

IMPORTS: Final = "imports"


def choose_files(
    fields: Fields, plan: SearchPlan, mask: Sequence[Mask], normal: Mapping[str, Sequence[Floats]], tally: StageTally
) -> Sequence[Mask]:
    """The admitted files that chunks are searched in: `mask` itself, unless the project is above the plan's threshold and has more files
    than are wanted; then the best of them by the weighted sum of `normal`, equal ones all or none."""
    if not plan.runs(Stage.SUMMARIES):
        return mask
    if fields.chunks <= plan.summaries_above:
        tally.idle(Stage.SUMMARIES, f"{fields.chunks} chunks are not above {plan.summaries_above}", fields.files)
        return mask
    with tally.run(Stage.SUMMARIES, fields.files) as stage:
        normal = {**normal, **_imports(fields, plan)}
        scores = [
            np.where(
                allowed & segment.alive, sum((_weight(plan, name) * values[at] for name, values in normal.items()), np.float32(0)), -1.0
            )
            for at, (segment, allowed) in enumerate(zip(fields.segments, mask, strict=True))
        ]
        together = np.concatenate(scores)
        if np.count_nonzero(together >= 0) <= plan.summary_files:
            stage.idle(f"no more than {plan.summary_files} files are in the scope")
            stage.out += fields.files
            return mask
        edge = np.partition(together, -plan.summary_files)[-plan.summary_files]
        chosen = [score >= edge for score in scores]
        count = sum(int(np.count_nonzero(each)) for each in chosen)
        stage.out += count
        stage.reasons.append(f"chunks are searched in the best {count} files")
    return chosen


def _imports(fields: Fields, plan: SearchPlan) -> dict[str, Sequence[Floats]]:
    """BM25 over what files import, scaled to 1 at the best; nothing where it was not read."""
    if not plan.runs(Stage.FILES) or any(segment.imports is None for segment in fields.segments):
        return {}
    scores = fields.bm25("imports", "import_words", plan.words, B)
    top = max((float(each.max(initial=0.0)) for each in scores), default=0.0)
    return {IMPORTS: [each / top for each in scores]} if top > 0 else {}


def _weight(plan: SearchPlan, name: str) -> float:
    """Names that are imported count as names that are defined."""
    return plan.weights["names" if name == IMPORTS else name]
