"""The measurements of remote experts hold what they promise. They are slow: `pytest -m slow`."""

from __future__ import annotations

import pytest

from search_router.benchmark import adapter, chaos

pytestmark = [pytest.mark.slow, pytest.mark.network]


def test_every_fault_has_its_class_in_time_and_leaves_nothing() -> None:
    result = chaos.run(20, whole=True)
    assert result["ok"], {name: row for name, row in result.items() if isinstance(row, dict) and not row["ok"]}


def test_a_warm_call_costs_at_most_a_third_more_than_the_bare_client() -> None:
    result = adapter.run(200)
    assert result["stdio"]["ratio"] <= 1.3
    assert result["http"]["ratio"] <= 1.3
