"""Fixtures for every test."""

from __future__ import annotations

import pytest


@pytest.fixture
def anyio_backend() -> str:
    """Async tests run on asyncio: the product does, because aiosqlite is bound to it."""
    return "asyncio"
