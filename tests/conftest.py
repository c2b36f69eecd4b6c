"""Fixtures for every test."""

from __future__ import annotations

import pytest
from hypothesis import settings

settings.register_profile("router", deadline=None)  # a busy machine is no fault
settings.load_profile("router")


@pytest.fixture
def anyio_backend() -> str:
    """Async tests run on asyncio: the product does, because aiosqlite is bound to it."""
    return "asyncio"
