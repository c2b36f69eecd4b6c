"""Mishaps and malice around the store: rotations at once, foreign checkpoints, a cut write-ahead log, odd databases, odd places."""

from __future__ import annotations

import json
import os
import secrets
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from search_router.errors import StoreUnavailable
from search_router.receipts.checkpoint import read_checkpoint, read_notes
from search_router.receipts.keys import next_key_path
from search_router.receipts.rotate import rotate_key
from tests.command_line import child_environ
from tests.receipts.attacks import Attack, attack, sql
from tests.receipts.samples import make_answer, now_us
from tests.receipts.stores import StateDirectory, client_line, write_client_log


@pytest.fixture
def state(tmp_path: Path) -> StateDirectory:
    return StateDirectory(tmp_path / "home")


# ------------------------------------------------------------------ rotations


def test_a_rotation_that_another_one_overtook_changes_nothing(state: StateDirectory) -> None:
    state.append(2)
    overtaken = False

    def clock() -> int:
        nonlocal overtaken
        if not overtaken:  # after the key was read, and before all others are kept out
            overtaken = True
            state.rotate()
        return now_us()

    with pytest.raises(StoreUnavailable, match="was rotated by another process just now"):
        rotate_key(state.receipts, state.key_path, state.pins, clock=clock, nonce=lambda: secrets.token_hex(16))

    assert not next_key_path(state.key_path).exists()
    (stored,) = state.append(1)
    assert stored.seq == 4
    assert state.run("verify", "--all").code == 0


def test_of_rotations_that_start_at_once_each_is_whole_or_changes_nothing(state: StateDirectory, tmp_path: Path) -> None:
    state.append(1)
    command = [sys.executable, "-m", "search_router", "receipts", "rotate"]
    environ = child_environ(tmp_path, {"SEARCH_ROUTER_KEY": None})
    both = [
        subprocess.Popen(command, env=environ, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) for _ in range(3)
    ]
    ended = [(*process.communicate(timeout=60), process.returncode) for process in both]

    done = [printed.split()[3] for printed, _, code in ended if code == 0]
    assert done and all(code == 0 or (code == 4 and said.count("\n") == 1) for _, said, code in ended), ended
    assert state.key.keyid in done
    state.append(1)
    verified = state.run("verify", "--all", "--json")
    assert verified.code == 0, verified
    assert verified.verdicts[0]["what"].endswith(f" {2 + len(done)} receipts")


def test_a_rotation_amid_a_clock_that_goes_back_verifies(state: StateDirectory) -> None:
    state.append(2)
    hour_ago = now_us() - 3600 * 10**6

    rotate_key(state.receipts, state.key_path, state.pins, clock=lambda: hour_ago, nonce=lambda: secrets.token_hex(16))
    state.append(1)

    ended = state.run("verify", "--all", "--json")
    assert ended.code == 0, ended
    assert "Between receipts 2 and 3 the clock went back by" in "\n".join(ended.verdicts[0]["notes"])


# ------------------------------------------------------------------ checkpoints


@pytest.mark.parametrize("same_store", [True, False], ids=["of the same key", "of another key"])
def test_a_checkpoint_file_of_another_log_stops_the_start_and_is_invalid(state: StateDirectory, tmp_path: Path, same_store: bool) -> None:
    state.append(3)
    other = StateDirectory(tmp_path / "other")
    if same_store:
        shutil.copytree(state.home / "keys", other.home / "keys")
    other.append(2)
    shutil.copy(other.checkpoint_file(), state.checkpoint_file())

    ended = state.run("verify", "--all", "--json")

    assert (ended.code, ended.verdicts[0]["verdict"]) == (1, "invalid"), ended
    assert f"stands one of log {other.log().stem}" in "\n".join(ended.verdicts[0]["reasons"])
    with pytest.raises(StoreUnavailable, match="rolled back or rebuilt") as caught:
        state.append(1)
    assert f"receipts repair {state.log().stem}" in caught.value.remedy


@pytest.mark.parametrize("kept", [0, 5], ids=["emptied", "cut"])
def test_a_write_ahead_log_that_lost_its_end_is_seen_by_the_newest_checkpoint(state: StateDirectory, kept: int) -> None:
    command = [sys.executable, "-m", "tests.receipts.child", "for_ever", str(state.receipts), str(state.key_path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
        assert child.stdout is not None
        until = time.monotonic() + 30
        while not (state.checkpoints.is_dir() and list(state.checkpoints.iterdir())):
            assert child.stdout.readline() and time.monotonic() < until
        child.send_signal(signal.SIGKILL)
        child.stdout.read()
    ahead = state.log().with_name(f"{state.log().name}-wal")
    size = max(read_checkpoint(note).size for note in read_notes(state.checkpoint_file()))
    os.truncate(ahead, ahead.stat().st_size * kept // 100)

    ended = state.run("verify", "--all", "--json")

    assert ended.code in (1, 3) and ended.verdicts[0]["verdict"] in ("invalid", "unchecked"), ended
    with pytest.raises(StoreUnavailable, match=rf"had {size} at its newest checkpoint|damaged") as caught:
        state.append(1)
    assert f"receipts repair {state.log().stem}" in caught.value.remedy


# ------------------------------------------------------------------ databases made to harm who reads them

ENDLESS = """CREATE VIEW receipts AS WITH RECURSIVE more(seq) AS (SELECT 1 UNION ALL SELECT seq + 1 FROM more)
SELECT seq, '' prev, '' hash, x'' envelope, 0 time_us, '' status, '' intent, '' question_digest, '' keyid, x'' nodes FROM more"""
ODD: dict[str, Attack] = {
    "rows without end": sql("DROP TABLE receipts", ENDLESS),
    "no envelope": sql(
        "PRAGMA writable_schema = ON",
        "UPDATE sqlite_master SET sql = replace(sql, 'envelope BLOB NOT NULL', 'envelope BLOB') WHERE name = 'receipts'",
        "PRAGMA writable_schema = RESET",
        "UPDATE receipts SET envelope = NULL WHERE seq = 2",
    ),
    "an envelope that is a number": sql("UPDATE receipts SET envelope = 7 WHERE seq = 2"),
    "columns of other kinds": sql("UPDATE receipts SET hash = 7, nodes = 'x', keyid = x'ff', time_us = 'soon' WHERE seq = 2"),
    "twenty megabytes in an envelope": sql("UPDATE receipts SET envelope = zeroblob(20000000) WHERE seq = 2"),
}


@pytest.mark.parametrize("done", ODD.values(), ids=ODD.keys())
def test_a_database_made_to_harm_its_reader_has_a_verdict(state: StateDirectory, done: Attack) -> None:
    state.append(3)
    attack(state.log(), done)

    ended = state.run("verify", "--all", "--json")

    assert ended.code in (1, 3) and ended.verdicts[0]["verdict"] in ("invalid", "unchecked"), ended
    assert ended.verdicts[0]["reasons"]


@pytest.mark.parametrize("arguments", [("verify", "--last"), ("list",), ("export", "out"), ("audit", "--against", "client.jsonl")])
def test_rows_without_end_keep_no_command_for_ever(state: StateDirectory, arguments: tuple[str, ...]) -> None:
    (stored,) = state.append(1)
    attack(state.log(), ODD["rows without end"])
    (state.home / "client.jsonl").write_text(f'{{"receipt":"{stored.id}"}}\n')

    ended = state.run(*arguments)

    assert ended.code in (3, 4), ended
    assert "its tables are not there as plain tables" in ended.output + ended.errors


def test_a_receipt_of_megabytes_is_stored_verified_audited_and_exported(state: StateDirectory, tmp_path: Path) -> None:
    answer = make_answer(4000)
    (stored,) = state.append(1, answer=answer)
    assert len(stored.envelope) > 2**20

    log = write_client_log(tmp_path / "client.jsonl", [client_line(stored, answer)])
    assert state.run("verify", "--all").code == 0
    assert state.run("export", tmp_path / "out").code == 0
    assert (tmp_path / "out" / "envelopes" / f"{stored.log}.jsonl").read_bytes() == stored.envelope + b"\n"
    ended = state.run("audit", "--against", log, "--json")
    assert json.loads(ended.output)["found"] == 1


# ------------------------------------------------------------------ where exports go


def a_pipe_at(place: Path) -> None:
    place.parent.mkdir(parents=True, exist_ok=True)
    os.mkfifo(place)


def a_file_at(place: Path) -> None:
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_bytes(b"kept")


@pytest.mark.parametrize("make", [a_pipe_at, a_file_at], ids=["a pipe", "a file"])
@pytest.mark.parametrize("where", ["out", "out/envelopes"])
def test_an_export_to_what_is_no_directory_is_refused_and_leaves_it(
    state: StateDirectory, tmp_path: Path, make: Callable[[Path], None], where: str
) -> None:
    state.append(2)
    make(tmp_path / where)
    kind = (tmp_path / where).stat().st_mode

    ended = state.run("export", tmp_path / "out")

    assert (ended.code, ended.output) in ((4, ""), (2, "")), ended
    assert (tmp_path / where).stat().st_mode == kind
    assert [path.name for path in tmp_path.rglob("*.tmp")] == []


def test_an_export_takes_the_place_of_a_pipe_and_does_not_wait_for_it(state: StateDirectory, tmp_path: Path) -> None:
    state.append(2)
    place = tmp_path / "out" / "envelopes" / f"{state.log().stem}.jsonl"
    a_pipe_at(place)

    assert state.run("export", tmp_path / "out").code == 0
    assert len(place.read_bytes().splitlines()) == 2


def test_a_log_with_a_gap_is_exported_as_it_is(state: StateDirectory, tmp_path: Path) -> None:
    state.append(4)
    attack(state.log(), sql("DELETE FROM receipts WHERE seq = 2"))

    ended = state.run("export", tmp_path / "out")

    assert (ended.code, ended.output.splitlines()[0]) == (0, f"3 envelopes of 1 logs in {tmp_path / 'out'}")
    assert (tmp_path / "out" / "receipts" / f"{state.log().stem}-4.json").exists()


@pytest.mark.parametrize("what", ["pipe", "directory"])
def test_a_checkpoint_file_that_is_none_is_said_by_each_command_and_nobody_waits(state: StateDirectory, tmp_path: Path, what: str) -> None:
    state.append(2)
    state.checkpoint_file().unlink()
    (os.mkfifo if what == "pipe" else os.mkdir)(state.checkpoint_file())

    for arguments, code in ((("verify", "--all"), 3), (("checkpoint",), 4), (("export", str(tmp_path / "out")), 4)):
        ended = state.run(*arguments)
        assert ended.code == code, (arguments, ended)
        assert "not a plain file" in ended.output + ended.errors
    with pytest.raises(StoreUnavailable, match="not a plain file"):
        state.append(1)
