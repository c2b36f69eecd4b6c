"""What several tests of receipts share."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.receipts.disks import mounted_disk


@pytest.fixture
def small_disk() -> Iterator[Path]:
    with mounted_disk(1) as disk:
        yield disk
