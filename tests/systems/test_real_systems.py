"""Real systems behind the router: `pytest -m systems`, or scripts/run-systems for a table. Minutes, and a package registry."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.systems.real_systems import ask
from tests.systems.recipes import SYMBOL, SYSTEMS

pytestmark = [pytest.mark.anyio, pytest.mark.systems, pytest.mark.timeout(1800)]


@pytest.mark.parametrize("system", SYSTEMS, ids=lambda s: s.name)
async def test_a_real_system_returns_hits_through_the_router_and_its_version_is_in_the_receipt(tmp_path: Path, system: object) -> None:
    chosen = next(s for s in SYSTEMS if s is system)
    outcome = await ask(chosen, tmp_path)
    assert outcome.ok, outcome.said
    assert outcome.server
    assert all(count > 0 for count in outcome.hits.values())
    if chosen.confirmed:  # ty here, jedi in python-types: two engines
        assert "typed-graph-confirmed" in outcome.tiers
    assert any(place.startswith("config/") for place in outcome.places), (SYMBOL, outcome.places)
