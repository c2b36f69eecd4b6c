"""The last room on a disk belongs to receipts: caches stop growing before it is full, say so, and every request still gets its receipt."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from search_router.adapters.local.disk_space import Reserve, measure_disk
from search_router.receipts.trust import Trust, load_public_key
from search_router.receipts.verify import VerdictKind
from search_router.receipts.whole_log import verify_log
from search_router.router.opening import open_router
from search_router.schema import Status
from tests.receipts.disks import mounted_disk, needs_mount
from tests.repositories import make_repository

DISK_MIB, TAKEN_MIB = 64, 56
"""So of the 8 MiB that are free, 1.6 are left to caches."""
QUESTIONS = 5


def make_words(count: int) -> dict[str, str]:
    body = "".join(f"    value_{line} = compute_{line}(value_{line})\n" for line in range(60))
    return {f"m{number}.py": f"def zebra_{number}():\n{body}" for number in range(count)}


@needs_mount
@pytest.mark.anyio
async def test_the_index_stops_growing_before_the_disk_is_full_and_receipts_are_written_on(tmp_path: Path) -> None:
    root = make_repository(tmp_path / "work", make_words(600))
    with mounted_disk(DISK_MIB) as disk:
        home = disk / "home"
        (disk / "filler").write_bytes(bytes(TAKEN_MIB * 2**20))
        async with open_router(roots=[root], environ={"SEARCH_ROUTER_HOME": str(home), "PATH": os.environ["PATH"]}) as router:
            answers = [await router.search({"question": f"zebra_{number}"}) for number in range(QUESTIONS)]
            space = measure_disk(disk)
        caches = sum(path.stat().st_size for path in home.rglob("*") if path.is_file() and "receipts" not in path.parts)

        assert [answer.status for answer in answers if answer.receipt] == [Status.ANSWERED] * QUESTIONS, answers[0]
        assert space is not None and space.free > space.total // 16  # what receipts and a last batch took of the tenth
        assert caches > 2**20, "the caches did not come near the reserve: the test shows nothing"
        said = [note for answer in answers for note in answer.notes if "index.reserve_mib leaves the last" in note]
        assert said, answers[-1].notes
        (log,) = (home / "receipts").glob("*.sqlite")
        verdict = verify_log(log, Trust.pinning(load_public_key(home / "keys" / "receipt-ed25519.pem.pub")))
        assert (verdict.kind, verdict.rows) == (VerdictKind.VALID, QUESTIONS)


@needs_mount
def test_the_reserve_is_measured_on_the_disk_that_would_be_written_and_counts_a_small_disk_by_its_tenth() -> None:
    with mounted_disk(100) as disk:
        (disk / "filler").write_bytes(b"x" * (88 * 2**20))
        assert Reserve(200 * 2**20).lack(disk / "not" / "yet" / "there") is None
        (disk / "filler").write_bytes(b"x" * (91 * 2**20))
        why = Reserve(200 * 2**20).lack(disk / "not" / "yet" / "there")
        assert why is not None and "index.reserve_mib leaves the last 10 MiB to receipts" in why
        assert Reserve(2**18).lack(disk) is None
        assert Reserve(0).lack(disk) is None
    with mounted_disk(8) as disk:
        (disk / "filler").write_bytes(b"x" * (5 * 2**20))
        why = Reserve(200 * 2**20).lack(disk)
        assert why is not None and "leaves the last 4 MiB to receipts" in why, "a tenth of so small a disk is less than one write"
