"""A gate in front of a pattern never keeps a match away, and the table of gates is that of the patterns as they are."""

from __future__ import annotations

import importlib.util
import json
import re
from pathlib import Path
from types import ModuleType

import pytest

from search_router.router.injection import PATTERNS
from search_router.router.rules.table import RULES
from search_router.router.tokens import analyse_question
from search_router.router.wording import read_surfaces

ROOT = Path(__file__).parent.parent.parent.parent
EVERY = [p for rule in RULES for p in (rule.pattern, rule.also, rule.unless) if p] + list(PATTERNS)


def deriving() -> ModuleType:
    spec = importlib.util.spec_from_file_location("needed_words", ROOT / "scripts" / "needed_words.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_table_is_that_of_the_patterns() -> None:
    script = deriving()
    assert script.TABLE.read_text() == script.table(), "run: python scripts/needed_words.py"


@pytest.mark.parametrize(
    ("pattern", "literals"),
    [
        ("ab(?:cd|ef)", ("ab",)),
        ("(?:cd|ef)g*", ("cd", "ef")),
        ("x?(?:long|longer)", ("long",)),
        ("a*b?", ()),
        ("(?:a|b*)", ()),
        ("(?i)word", ()),
        ("(?!no)(?=yes)", ()),
        ("(?:who ){2,3}", ("who ",)),
        ("[ab]cd", ("cd",)),
    ],
)
def test_what_a_pattern_needs(pattern: str, literals: tuple[str, ...]) -> None:
    assert deriving().needed(pattern) == literals


def test_a_gated_pattern_finds_what_the_pattern_finds() -> None:
    plain = [(p, re.compile(p.source)) for p in EVERY]
    questions = [json.loads(line)["question"] for line in (ROOT / "tests/router/questions.jsonl").read_text().splitlines() if line]
    differing: list[tuple[str, str]] = []
    for question in questions:
        surfaces = read_surfaces(analyse_question(question), frozenset({"numpy"}))
        for text in (surfaces.wording, surfaces.naming, surfaces.text, question.casefold()):
            differing += [(p.source, text) for p, full in plain if (p.search(text) is None) != (full.search(text) is None)]
    assert differing == []
