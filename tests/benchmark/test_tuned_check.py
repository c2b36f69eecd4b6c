"""The tuner's check on labelled fixtures: a real suite asked with the former and the tuned configuration."""

from __future__ import annotations

from pathlib import Path

import pytest

from search_router.benchmark.tuned_check import check_on_fixtures
from tests.benchmark.small_suite import make_suite

pytestmark = [pytest.mark.heavy, pytest.mark.timeout(300)]
FEW = "".join(f"[experts.{name}]\nenabled = false\n" for name in ("python-types", "docs", "callgraph", "semantic", "history", "knowledge"))


def test_a_worse_configuration_scores_less_and_the_same_one_the_same(tmp_path: Path) -> None:
    suite, built = make_suite(tmp_path)
    user, worse = tmp_path / "user.toml", tmp_path / "worse.toml"
    user.write_text(FEW)
    worse.write_text(f"{FEW}[priors.typed-symbol]\ncodesearch = 0.001\nsymbols = 0.001\ngrep = 0.001\nscip = 0.001\n")

    scores = check_on_fixtures(user, worse, ("typed-symbol",), suite=str(suite), built=built)
    assert scores is not None and scores.before == 1.0 and scores.after == 0.0 and scores.questions == 2

    same = check_on_fixtures(user, user, ("typed-symbol",), suite=str(suite), built=built)
    assert same is not None and same.before == same.after == 1.0


def test_fixtures_that_are_not_built_are_not_downloaded(tmp_path: Path) -> None:
    suite, _ = make_suite(tmp_path)
    assert check_on_fixtures(None, tmp_path / "tuned.toml", ("docs",), suite=str(suite), built=tmp_path / "nowhere") is None
