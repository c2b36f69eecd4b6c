"""How far the labels can be trusted: a slice judged a second time without seeing them, and Cohen's kappa of the two judgements.

audit.jsonl has lines {query, project, path, symbol?, second}: `second` is the grade, 0 to 3, that the second judgement gave to that place
for that question; the first is in qrels.tsv, 0 where it is not listed. kappa = (po - pe) / (1 - pe) (Cohen 1960); the weighted one counts
a difference by its square (Cohen 1968). Both judgements may be by one kind of annotator; the file says so, and kappa then is about
consistency, not truth.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from search_router.benchmark.fixture_suite import read_labels
from search_router.benchmark.questions import UnusableData

AUDIT: Final = "audit.jsonl"
GRADES: Final = (0, 1, 2, 3)


class Judgement(BaseModel):
    """One place for one question, judged without its label; `why` is what the second judge saw."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    query: str
    project: str
    path: str
    second: int = Field(ge=0, le=3)
    why: str = ""


def read_audit(folder: Path) -> list[Judgement]:
    """Raises UnusableData for a line that is none."""
    path = folder / AUDIT
    try:
        lines = path.read_text("utf-8").splitlines()
        return [Judgement.model_validate_json(line) for line in lines if line.strip()]
    except (OSError, ValidationError) as error:
        raise UnusableData(f"{path}: {error}.", remedy="See docs/benchmarks.md for the shape.") from error


def agreement(folder: Path) -> dict[str, object]:
    """Counts and kappas over the audited places. Raises UnusableData when there is nothing to compare."""
    audited = read_audit(folder)
    first: dict[tuple[str, str, str], int] = {}
    for label in read_labels(folder / "qrels.tsv"):
        key = (label.query, label.project, label.path)
        first[key] = max(label.grade, first.get(key, 0))
    pairs = [(first.get((j.query, j.project, j.path), 0), j.second) for j in audited]
    if not pairs:
        raise UnusableData(f"{folder / AUDIT} is empty.", remedy="Judge some places a second time.")
    return {
        "places": len(pairs),
        "questions": len({j.query for j in audited}),
        "same_grade": sum(a == b for a, b in pairs),
        "same_relevance": sum((a > 0) == (b > 0) for a, b in pairs),
        "kappa_grades": round(cohens_kappa(pairs), 3),
        "kappa_grades_weighted": round(cohens_kappa(pairs, weighted=True), 3),
        "kappa_relevance": round(cohens_kappa([(int(a > 0), int(b > 0)) for a, b in pairs]), 3),
        "annotators": "one model, twice; the second time without the labels",
        "first_by_grade": {str(g): sum(a == g for a, _ in pairs) for g in GRADES},
        "second_by_grade": {str(g): sum(b == g for _, b in pairs) for g in GRADES},
    }


def cohens_kappa(pairs: Sequence[tuple[int, int]], *, weighted: bool = False) -> float:
    """Agreement beyond chance, 1.0 when both always gave one and the same grade; quadratic weights when `weighted`."""
    total = len(pairs)
    first, second = Counter(a for a, _ in pairs), Counter(b for _, b in pairs)
    width = max(1, max((*first, *second)) - min((*first, *second)))

    def apart(a: int, b: int) -> float:
        return ((a - b) / width) ** 2 if weighted else float(a != b)

    seen = sum(apart(a, b) for a, b in pairs) / total
    chance = sum(first[a] * second[b] * apart(a, b) for a, b in itertools.product(first, second)) / total**2
    return 1.0 if chance == 0 else 1 - seen / chance
