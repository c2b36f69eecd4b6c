"""The search over bytes finds the exact best chunks of this project's own code."""

from __future__ import annotations

from pathlib import Path

import pytest

from search_router.benchmark.vectors import run
from search_router.errors import SearchRouterError
from tests.repositories import make_repository

pytestmark = pytest.mark.heavy

TOP = Path(__file__).resolve().parent.parent.parent


def test_the_best_ten_of_real_code_are_found() -> None:
    result = run(TOP / "search_router" / "adapters", 40, 3)
    assert isinstance(result["chunks"], int) and result["chunks"] > 3 * 100
    assert isinstance(result["recall_at_10"], float) and result["recall_at_10"] >= 0.999
    assert result["resident_bytes_a_chunk"] == 128 + 8


def test_code_without_a_chunk_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(SearchRouterError, match="nothing that vectors could be made of"):
        run(make_repository(tmp_path / "empty", {"a.bin": "x"}), 5, 1)
