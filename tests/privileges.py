"""Whether a test can give up root and still run: another user must be able to read this checkout and the interpreter."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

READ_AND_ENTER = 0o005


def others_can_read(path: Path) -> bool:
    return all(each.stat().st_mode & READ_AND_ENTER == READ_AND_ENTER for each in (path, *path.parents))


needs_readable_checkout = pytest.mark.skipif(
    os.getuid() == 0 and not all(others_can_read(p) for p in (Path(__file__).resolve().parent, Path(sys.prefix).resolve())),
    reason="the test gives up root, and no other user can read this checkout or interpreter",
)
