"""Which of several projects a question names: it is about them, and what others have stands behind. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from search_router.schema import Project

ELSEWHERE: Final = 0.6
"""What a find in a project that the question does not name is worth, when it names another."""
_WORD: Final = re.compile(r"[\w-]+(?:\.[\w-]+)*")


def project_factors(question: str, projects: Sequence[Project]) -> list[float]:
    """For each project the factor of its finds: all 1.0 unless the question has the whole id of some of them, and not of all, as a word."""
    words = {word.lower() for word in _WORD.findall(question)}
    words |= {word.partition(".")[0] for word in words}
    named = [project.id.lower() in words for project in projects]
    return [1.0 if is_named or not any(named) else ELSEWHERE for is_named in named]
