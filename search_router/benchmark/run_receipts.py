"""The receipts of a run: every answer that the client got against the store that the run kept. Fewer than all, and the run has failed."""

from __future__ import annotations

import gzip
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from search_router.benchmark.ask import environment
from search_router.config.loader import load_config
from search_router.receipts.crosscheck import cross_check
from search_router.router.checking import find_anchors

HOME = "home"
ANSWERS = "answers"


def check_emission(folder: Path) -> dict[str, Any]:
    """Join the client's own log of a run with its store, again: what was deleted since is missed.

    `share` is 1.0 when every answer has its receipt and each is about its answer; 0 answers are no proof of anything.
    """
    paths = load_config(roots=[folder], environ=environment(folder / HOME)).paths
    found = cross_check(paths.receipts, _answers(folder / ANSWERS), find_anchors(paths).trust)
    return {
        "answers": found.answers,
        "found": found.found,
        "share": found.found / found.answers if found.answers else 0.0,
        "verdict": found.kind.value,
        "without": found.without,
        "missing": found.missing,
        "altered": found.altered,
        "mismatched": found.mismatched,
        "faulty": found.faulty,
        "reasons": found.reasons[:5],
    }


def _answers(folder: Path) -> Iterator[bytes]:
    for path in sorted(folder.glob("*.jsonl.gz")):
        with gzip.open(path, "rb") as lines:
            yield from lines
