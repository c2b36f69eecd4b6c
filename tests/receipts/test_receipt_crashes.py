"""Kill -9 under load, again and again, and bytes of the database that flip: nothing acknowledged is lost, and no damage stays silent."""

from __future__ import annotations

import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import anyio
import anyio.to_thread
import pytest

from search_router.errors import StoreUnavailable
from search_router.receipts.checkpoint import read_checkpoint, read_notes
from search_router.receipts.log import open_for_reading
from search_router.receipts.log_audit import Witness
from search_router.receipts.trust import Trust
from search_router.receipts.verify import VerdictKind
from search_router.receipts.whole_log import verify_log
from tests.receipts.stores import StateDirectory


def writing_child(state: StateDirectory) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "tests.receipts.child", "for_ever", str(state.receipts), str(state.key_path)]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0)  # no buffer that keeps half a line


def told_first(child: subprocess.Popen[bytes], receipts: int) -> list[str]:
    """The ids of the first receipts that the child is told of."""
    assert child.stdout is not None
    read = [child.stdout.readline().decode().strip() for _ in range(receipts)]
    assert all(read), "the child ended by itself"
    return read


def kill_after(child: subprocess.Popen[bytes], receipts: int) -> list[str]:
    """The ids of all receipts that the child was told of before its end."""
    read = told_first(child, receipts)
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


def checkpointed(state: StateDirectory) -> list[int]:
    return [read_checkpoint(note).size for note in read_notes(state.checkpoint_file())]


@pytest.mark.behaviour("log-is-what-it-was")
@pytest.mark.parametrize("half", [False, True], ids=["before the checkpoint", "half-way through it"])
def test_killed_between_the_commit_of_a_receipt_and_its_checkpoint_it_goes_on_and_catches_up(tmp_path: Path, half: bool) -> None:
    state = StateDirectory(tmp_path / "home")
    state.append(2)
    command = [sys.executable, "-m", "tests.receipts.child", "witnessed_when_told", str(state.receipts), str(state.key_path)]
    child = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0)
    assert child.stdin is not None and child.stdout is not None
    assert child.stdout.readline() and child.stdin.write(b"3\n")
    told = [child.stdout.readline().decode().strip() for _ in range(3)]
    child.send_signal(signal.SIGKILL)  # told, so committed; and far from the next checkpoint, at a thousand
    child.communicate(timeout=30)
    assert told == [f"{state.log().stem}:{seq}" for seq in (3, 4, 5)]
    assert checkpointed(state) == [2]
    if half:
        note = state.checkpoint_file().read_bytes()
        with state.checkpoint_file().open("ab") as file:
            file.write(note.replace(b"\n2\n", b"\n5\n")[: len(note) // 2])

    behind = state.run("verify", "--all", "--json")
    assert (behind.code, behind.verdicts[0]["verdict"]) == (0, "valid"), behind
    (stored,) = state.append(1)

    assert stored.seq == 6
    assert checkpointed(state) == [2, 6]
    assert verify_log(state.log(), Trust.pinning(state.key.public), held_against_checkpoints(state)).reasons == ()


@pytest.mark.anyio
async def test_a_start_after_a_kill_makes_the_missing_checkpoint_though_nothing_new_comes(tmp_path: Path) -> None:
    state = StateDirectory(tmp_path / "home")
    await anyio.to_thread.run_sync(lambda: state.append(4, checkpoints=False))  # as far as a kill gets

    async with state.opened(every_seconds=0.02):
        with anyio.fail_after(20):
            while not state.checkpoint_file().exists():
                await anyio.sleep(0.005)

    assert checkpointed(state) == [4]


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
    begun = [told_first(child, 20) for child in children]  # of each, before either ends: who comes later takes a log that is free again
    told = [ids + kill_after(child, 20) for child, ids in zip(children, begun, strict=True)]

    logs = [{receipt_id.split(":")[0] for receipt_id in ids} for ids in told]
    assert len(logs[0]) == len(logs[1]) == 1 and logs[0] != logs[1]
    for log in logs[0] | logs[1]:
        assert verify_log(state.receipts / f"{log}.sqlite", Trust.pinning(state.key.public)).kind is VerdictKind.VALID
