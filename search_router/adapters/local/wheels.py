"""Which version of a distribution is installed, looked up once: what a process has loaded changes with the next process only."""

from __future__ import annotations

import importlib.metadata
from functools import cache


@cache
def installed_version(distribution: str) -> str | None:
    """The installed version, None where there is none."""
    try:
        return importlib.metadata.version(distribution)
    except importlib.metadata.PackageNotFoundError:
        return None
