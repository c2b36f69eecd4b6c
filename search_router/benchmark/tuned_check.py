"""Whether tuned priors are worse on the labelled fixtures: the suite asked with either configuration, where its code is built already."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

from search_router.benchmark.fixture_build import STAMP, default_place
from search_router.benchmark.fixture_manifest import suite_folder
from search_router.benchmark.fixture_run import RunOptions, run_suite
from search_router.benchmark.fixture_suite import CLASSES
from search_router.benchmark.questions import UnusableData
from search_router.benchmark.run_arms import FUSED
from search_router.router.enrich.tuner import FixtureScores

SUITE = "fixtures"


def check_on_fixtures(
    user_file: Path | None, tuned: Path, classes: tuple[str, ...], *, suite: str = SUITE, built: Path | None = None
) -> FixtureScores | None:
    """NDCG@10 of the questions of these classes, before and after; None where the suite is not built here, for it would be downloaded.

    Raises:
        UnusableData: the suite's code was changed, or a run did not end well.
    """
    place = built or default_place(suite_folder(suite))
    asked = tuple(f"{name}-" for name in (classes if set(classes) <= set(CLASSES) else CLASSES))
    if not (place / STAMP).is_file():
        return None
    with tempfile.TemporaryDirectory(prefix="search-router-tune-") as folder:
        former = user_file or Path(folder) / "none.toml"
        if user_file is None:
            former.touch()
        before, after = (_score(Path(folder) / name, file, asked, suite, place) for name, file in (("before", former), ("after", tuned)))
    return FixtureScores(before["ndcg10"], after["ndcg10"], after["questions"])


def _score(out: Path, config_file: Path, only: tuple[str, ...], suite: str, place: Path) -> dict[str, Any]:
    """Overall figures of one run, once over the questions."""
    options = RunOptions(
        suite=suite, out=out, config_file=config_file, arms=(FUSED,), rounds=1, cold=0, built=place, only=only, score_with_ranx=False
    )
    _, summary = run_suite(options)
    if summary["failed"]:
        raise UnusableData(f"The run over the fixtures is no good: {summary['failed'][0]}.", remedy="Mend that first.")
    found: dict[str, Any] = summary["arms"][FUSED]["retrieval"]["all"]
    return found
