from __future__ import annotations

from pathlib import Path

import pytest

from search_router.adapters.local.named_projects import ELSEWHERE, project_factors
from search_router.schema import Project

PROJECTS = [Project(name, Path("/") / name, "directory") for name in ("tide", "Ferry.js", "lock-gate")]


@pytest.mark.parametrize(
    ("question", "factors"),
    [
        ("how are waves counted", [1.0, 1.0, 1.0]),
        ("how does tide count waves", [1.0, ELSEWHERE, ELSEWHERE]),
        ("in which release of tide.waves did it land", [1.0, ELSEWHERE, ELSEWHERE]),
        ("does ferry.js use lock-gate?", [ELSEWHERE, 1.0, 1.0]),
        ("tides and lock gates", [1.0, 1.0, 1.0]),
        ("tide, ferry.js and lock-gate", [1.0, 1.0, 1.0]),
    ],
)
def test_a_question_that_names_projects_by_their_whole_id_is_about_them(question: str, factors: list[float]) -> None:
    assert project_factors(question, PROJECTS) == factors
