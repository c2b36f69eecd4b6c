"""Kill -9 under load, again and again, and bytes of the database that flip: nothing acknowledged is lost, and no damage stays silent."""

from __future__ import annotations

import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from search_router.errors import StoreUnavailable
from search_router.receipts.checkpoint import read_notes
from search_router.receipts.log import open_for_reading
from search_router.receipts.log_audit import Witness
from search_router.receipts.trust import Trust
from search_router.receipts.verify import VerdictKind
from search_router.receipts.whole_log import verify_log
from tests.receipts.stores import StateDirectory


def writing_child(state: StateDirectory) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "tests.receipts.child", "for_ever", str(state.receipts), str(state.key_path)]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0)  # no buffer that keeps half a line


def kill_after(child: subprocess.Popen[bytes], receipts: int) -> list[str]:
    """The ids of all receipts that the child was told of before its end."""
    assert child.stdout is not None
    read = [child.stdout.readline().decode().strip() for _ in range(receipts)]
    assert all(read), "the child ended by itself"
    child.send_signal(signal.SIGKILL)
    rest, _ = child.communicate(timeout=30)
    *whole, _ = rest.decode().split("\n")  # the end cuts a line that was not yet told
    return read + whole


def held_against_checkpoints(state: StateDirectory) -> Witness:
    return Witness(read_notes(state.checkpoint_file()) if state.checkpoint_file().exists() else (), state.plan().key.public)


@pytest.mark.behaviour("no-acknowledged-receipt-is-lost")
@pytest.mark.parametrize("rounds", [5, pytest.param(100, marks=[pytest.mark.slow, pytest.mark.timeout(1800)])])
def test_after_every_kill_each_acknowledged_receipt_is_there_in_one_sound_log(tmp_path: Path, rounds: int) -> None:
    moments = random.Random(5)
    state = StateDirectory(tmp_path / "home")
    trust = Trust.pinning(state.key.public)
    acknowledged: set[str] = set()
    for _ in range(rounds):
        told = kill_after(writing_child(state), moments.randint(1, 120))
        assert acknowledged.isdisjoint(told)
        acknowledged.update(told)

        started = time.process_time()
        state.append(1)
        assert time.process_time() - started < 1

    found = verify_log(state.log(), trust, held_against_checkpoints(state))
    assert (found.kind, found.reasons) == (VerdictKind.VALID, ())
    assert found.checkpoints >= rounds
    with open_for_reading(state.log()) as database:
        there = {f"{state.log().stem}:{seq}" for (seq,) in database.execute("SELECT seq FROM receipts")}
    assert acknowledged <= there
    assert len(there) == found.rows


@pytest.mark.parametrize("seed", range(6))
def test_a_hundred_flipped_bytes_stop_the_start_or_the_verification_with_the_repair_command(tmp_path: Path, seed: int) -> None:
    state = StateDirectory(tmp_path / "home")
    state.append(40)
    log = state.log()
    places = random.Random(seed)
    content = bytearray(log.read_bytes())
    for _ in range(100):
        content[places.randrange(len(content))] ^= 1 << places.randrange(8)
    log.write_bytes(content)

    ended = state.run("verify", "--all")

    assert ended.code in (1, 3)
    assert f"search-router receipts repair {log.stem}" in ended.output
    try:
        state.append(1)
    except StoreUnavailable as error:
        assert f"search-router receipts repair {log.stem}" in error.remedy
        assert state.run("repair", log.stem).code == 0
        (stored,) = state.append(1)
        assert stored.log != log.stem


@pytest.mark.anyio
async def test_two_processes_on_one_store_never_fork_a_log(tmp_path: Path) -> None:
    state = StateDirectory(tmp_path / "home")
    children = [writing_child(state), writing_child(state)]
    told = [kill_after(child, 40) for child in children]

    logs = [{receipt_id.split(":")[0] for receipt_id in ids} for ids in told]
    assert len(logs[0]) == len(logs[1]) == 1 and logs[0] != logs[1]
    for log in logs[0] | logs[1]:
        assert verify_log(state.receipts / f"{log}.sqlite", Trust.pinning(state.key.public)).kind is VerdictKind.VALID
