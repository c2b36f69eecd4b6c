"""The failure contract is complete both ways: every rule has a test, every marker names a rule."""

from __future__ import annotations

import ast
import tomllib
from pathlib import Path

TESTS = Path(__file__).parent


def rules() -> set[str]:
    manifest = tomllib.loads((TESTS / "behaviours.toml").read_text("utf-8"))
    return {rule for section in manifest.values() for rule in section}


def marked() -> dict[str, list[str]]:
    """Rule to the names of the tests whose marker names it."""
    found: dict[str, list[str]] = {}
    for file in TESTS.rglob("test_*.py"):
        for node in ast.walk(ast.parse(file.read_text("utf-8"))):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                for mark in node.decorator_list:
                    if isinstance(mark, ast.Call) and ast.unparse(mark.func) == "pytest.mark.behaviour":
                        for argument in mark.args:
                            found.setdefault(ast.literal_eval(argument), []).append(f"{file.name}::{node.name}")
    return found


def test_every_rule_of_the_contract_has_a_test() -> None:
    assert rules() - set(marked()) == set()


def test_every_marker_names_a_rule_of_the_contract() -> None:
    assert set(marked()) - rules() == set()
