"""What is written as TOML is read back as it was."""

from __future__ import annotations

import tomllib
from datetime import date
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from search_router.config.rendering import to_toml

texts = st.text(st.characters(exclude_categories=("Cs",)), max_size=12)
leaves = st.one_of(st.booleans(), st.integers(-(2**53), 2**53), st.floats(allow_nan=False, allow_infinity=False), texts, st.dates())
values = st.recursive(
    leaves, lambda below: st.lists(below, max_size=3) | st.dictionaries(texts.filter(bool), below, max_size=3), max_leaves=12
)


@given(st.dictionaries(texts.filter(bool), values, max_size=5))
def test_a_tree_survives(tree: dict[str, Any]) -> None:
    assert tomllib.loads(to_toml(tree)) == tree


def test_values_stand_before_tables() -> None:
    tree = {"priors": {"docs": {"grep": 0.2}}, "version": "x", "since": date(2026, 1, 2)}
    assert to_toml(tree) == 'version = "x"\nsince = 2026-01-02\n\n[priors.docs]\ngrep = 0.2\n'


def test_what_toml_cannot_say_is_refused() -> None:
    with pytest.raises(ValueError, match="no form"):
        to_toml({"a": None})
