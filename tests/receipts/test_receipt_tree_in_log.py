"""The tree that a log stores: its upgrade from the first schema, proofs, verification since a checkpoint and by several processes."""

from __future__ import annotations

import contextlib
import os
import resource
import select
import signal
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from pymerkle import InmemoryTree

from search_router.receipts.checkpoint import checkpoint_of
from search_router.receipts.crew import Crew
from search_router.receipts.keys import SigningKey
from search_router.receipts.log import SCHEMA_VERSION, SELECT_ROWS_AND_NODES, node_reader, open_for_reading
from search_router.receipts.merkle import prove_inclusion, tree_at, verify_inclusion
from search_router.receipts.reading import ReceiptReader
from search_router.receipts.tip import check_log, log_ownership
from search_router.receipts.trust import Trust
from search_router.receipts.verify import VerdictKind
from search_router.receipts.whole_log import verify_log
from tests.receipts.attacks import attack, sql
from tests.receipts.bulk import write_log
from tests.receipts.stores import StateDirectory

KEY = SigningKey.of(Ed25519PrivateKey.generate())
PINNED = Trust.pinning(KEY.public)
RECEIPTS = 150


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_log(tmp_path_factory.mktemp("receipts"), KEY, RECEIPTS, items=1)


def hashes(path: Path) -> list[bytes]:
    with contextlib.closing(sqlite3.connect(path)) as database:
        return [bytes.fromhex(text) for (text,) in database.execute("SELECT hash FROM receipts ORDER BY seq")]


def test_the_stored_tree_has_the_root_of_an_independent_implementation_at_every_size(log: Path) -> None:
    independent = InmemoryTree(algorithm="sha256")
    for payload_hash in hashes(log):
        independent.append_entry(payload_hash)

    with open_for_reading(log) as database:
        read = node_reader(log, database)
        for size in range(RECEIPTS + 1):
            assert tree_at(read, size).root() == independent.get_root(size)
    assert check_log(log).tree.root() == independent.get_root()


def test_a_receipt_is_proved_to_be_in_a_log_with_few_reads(log: Path) -> None:
    with open_for_reading(log) as database:
        read = node_reader(log, database)
        proof = prove_inclusion(read, 41, RECEIPTS)
        assert verify_inclusion(hashes(log)[41], 41, RECEIPTS, tree_at(read, RECEIPTS).root(), proof)
    assert len(proof) == 8


def to_first_schema(path: Path) -> None:
    attack(path, sql("DROP INDEX rotations", "ALTER TABLE receipts DROP COLUMN nodes", "PRAGMA user_version = 1"))


def test_a_log_of_the_first_schema_is_upgraded_by_the_next_start(tmp_path: Path) -> None:
    state = StateDirectory(tmp_path / "home")
    state.append(20)
    path = state.log()
    before = check_log(path)
    to_first_schema(path)
    assert log_ownership(path).version == 1
    assert verify_log(path, Trust.pinning(state.key.public)).kind is VerdictKind.UNCHECKED

    state.append(1)

    assert log_ownership(path).version == SCHEMA_VERSION
    verdict = verify_log(path, Trust.pinning(state.key.public))
    assert (verdict.kind, verdict.rows) == (VerdictKind.VALID, 21)
    with open_for_reading(path) as database:
        assert tree_at(node_reader(path, database), 20) == before.tree


@pytest.mark.anyio
async def test_a_log_of_the_first_schema_can_be_read_before_its_upgrade(tmp_path: Path) -> None:
    path = write_log(tmp_path, KEY, 3, items=1)
    to_first_schema(path)

    assert [one.seq for one in await ReceiptReader(tmp_path).list(10)] == [3, 2, 1]


def test_since_a_checkpoint_only_later_receipts_are_read_and_an_edit_among_them_is_found(log: Path, tmp_path: Path) -> None:
    with open_for_reading(log) as database:
        then = checkpoint_of(log.stem, tree_at(node_reader(log, database), 100))

    assert (found := verify_log(log, PINNED, since=then)).kind is VerdictKind.VALID
    assert (found.rows, found.head) == (RECEIPTS - 100, verify_log(log, PINNED).head)
    copy = tmp_path / log.name
    copy.write_bytes(log.read_bytes())
    attack(copy, sql("UPDATE receipts SET status = 'empty' WHERE seq IN (50, 120)"))
    found = verify_log(copy, PINNED, since=then)
    assert (found.kind, found.problems) == (VerdictKind.INVALID, 1)
    assert "Receipt 120" in found.reasons[0]


def test_a_crew_of_processes_finds_what_one_process_finds(log: Path, tmp_path: Path) -> None:
    copy = tmp_path / log.name
    copy.write_bytes(log.read_bytes())
    attack(copy, sql("UPDATE receipts SET envelope = x'00' WHERE seq IN (7, 149)", "DELETE FROM receipts WHERE seq = 77"))

    for path in (log, copy):
        assert verify_log(path, PINNED, members=2) == verify_log(path, PINNED, members=0)


def test_a_member_that_is_killed_leaves_the_log_unchecked(log: Path) -> None:
    with open_for_reading(log) as database:
        rows = database.execute(SELECT_ROWS_AND_NODES).fetchall()
    with Crew(PINNED, 2) as crew, pytest.raises(OSError, match=r"ended unexpectedly|Broken pipe|reset"):
        for (found,) in crew.judge([row] for row in rows):
            assert found.kind is VerdictKind.VALID
            for process, _ in crew._members:
                process.kill()
                process.wait()


def test_no_member_outlives_a_verification_that_is_killed(log: Path) -> None:
    code = """
import sys
from pathlib import Path
from search_router.receipts.crew import Crew
from search_router.receipts.trust import Trust
with Crew(Trust(), 2) as crew:
    def batches():
        yield []
        yield []
        print(*(process.pid for process, _ in crew._members), flush=True)
        sys.stdin.read()
    list(crew.judge(batches()))
"""
    with subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as child:
        assert child.stdout is not None
        members = [int(pid) for pid in child.stdout.readline().split()]
        watched = [os.pidfd_open(pid) for pid in members]
        child.send_signal(signal.SIGKILL)

    for descriptor in watched:
        assert select.select([descriptor], [], [], 10)[0]
        os.close(descriptor)
    assert len(members) == 2


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_a_hundred_thousand_receipts_are_verified_in_time_and_in_little_memory(tmp_path: Path) -> None:
    path = write_log(tmp_path, KEY, 100_000)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss

    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    verdict = verify_log(path, PINNED)
    after = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]

    seconds = sum(a.ru_utime + a.ru_stime - b.ru_utime - b.ru_stime for a, b in zip(after, used, strict=True))
    assert (verdict.kind, verdict.rows) == (VerdictKind.VALID, 100_000)
    assert seconds < 2 * 40  # of two processors, whatever else runs on them
    assert after[0].ru_maxrss - before < 64 * 1024
