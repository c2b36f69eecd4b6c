"""A full or read-only disk under each command: one clear error, nothing half-written, and all goes on once there is room."""

from __future__ import annotations

import resource
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path

import pytest

from search_router.errors import KeyUnusable, StoreUnavailable
from search_router.receipts.checkpoint import append_checkpoint, read_checkpoint, read_notes
from search_router.receipts.keys import next_key_path
from search_router.receipts.whole_log import rotations_of
from tests.command_line import Ended, run_cli
from tests.receipts.disks import filled, mounted_disk, needs_mount, read_only
from tests.receipts.samples import make_payload
from tests.receipts.stores import StateDirectory

Trouble = Callable[[Path], AbstractContextManager[None]]
TROUBLES = pytest.mark.parametrize("trouble", [filled, read_only], ids=["full", "read-only"])


@pytest.fixture
def disk() -> Iterator[Path]:
    with mounted_disk(2) as mounted:
        yield mounted


def contents(folder: Path) -> dict[str, bytes]:
    """Every file but what SQLite keeps beside a database for its readers, and fills in anew."""
    files = {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}
    return {name: content for name, content in files.items() if not name.endswith(("-shm", "filler")) and (content or "-wal" not in name)}


def assert_goes_on(state: StateDirectory, receipts: int) -> None:
    """The store is valid with this many receipts, and takes a further one."""
    ended = state.run("verify", "--all", "--json")
    assert ended.code == 0, ended
    assert ended.verdicts[0]["what"].endswith(f" {receipts} receipts")
    state.append(1)
    assert state.run("verify", "--all").code == 0


@needs_mount
@TROUBLES
def test_a_checkpoint_by_command(disk: Path, trouble: Trouble) -> None:
    state = StateDirectory(disk / "home")
    state.append(3, checkpoints=False)
    state.plan()  # makes the key
    before = contents(disk)

    with trouble(disk):
        ended = state.run("checkpoint")
        assert (ended.code, ended.output) == (4, "")
        assert ended.errors.startswith("search-router: receipt-store-unavailable: The ")
        assert contents(disk) == before

    assert state.run("checkpoint").code == 0
    assert_goes_on(state, 3)


@needs_mount
def test_a_disk_that_takes_half_a_note_gets_none_of_it(small_disk: Path) -> None:
    state = StateDirectory(small_disk / "home")
    (stored,) = state.append(1)
    path, note = state.checkpoint_file(), state.checkpoint_file().read_bytes().rstrip(b"\n") + b"\n"
    while path.stat().st_size % 4096 < 4096 - len(note):
        append_checkpoint(path, note)  # up to the end of a block: the next note begins in it, and needs another
    append_checkpoint(path, note)
    before = path.read_bytes()

    with filled(small_disk), pytest.raises(StoreUnavailable, match="No space left"):
        for _ in range(40):
            before = path.read_bytes()
            append_checkpoint(path, note)
    assert path.read_bytes() == before

    append_checkpoint(path, note)
    assert {read_checkpoint(each).size for each in read_notes(path)} == {stored.seq}


@needs_mount
@pytest.mark.anyio
async def test_a_checkpoint_beside_the_writer_is_caught_up_when_there_is_room(tmp_path: Path, small_disk: Path) -> None:
    state = StateDirectory(tmp_path / "home")
    state.home.mkdir()
    state.checkpoints.symlink_to(small_disk / "checkpoints")
    (small_disk / "checkpoints").mkdir()
    async with state.opened(every_receipts=1) as store:
        await store.append(make_payload(state.key))
        with filled(small_disk):
            for _ in range(3):
                await store.append(make_payload(state.key))  # a receipt needs no room on that disk
        await store.append(make_payload(state.key))

    assert [read_checkpoint(note).size for note in read_notes(state.checkpoint_file())][-1] == 5
    assert state.run("verify", "--all").code == 0


@needs_mount
@TROUBLES
def test_a_rotation(disk: Path, trouble: Trouble) -> None:
    state = StateDirectory(disk / "home")
    state.append(3)
    state.run("verify", "--all")
    before, key = contents(disk), state.key.keyid

    with trouble(disk):
        ended = state.run("rotate")
        assert ended.code == 4
        assert ended.errors.startswith(("search-router: receipt-key-unusable: The ", "search-router: receipt-store-unavailable: The "))
        assert contents(disk) == before

    state.append(1)  # with the old key, and no rotation to finish first
    assert state.run("rotate").code == 0
    assert state.key.keyid != key
    assert_goes_on(state, 5)


@needs_mount
@pytest.mark.parametrize("room", range(4096, 15 * 4096, 4096))
def test_a_rotation_that_runs_out_of_room_is_taken_back_or_can_be_finished(disk: Path, room: int) -> None:
    state = StateDirectory(disk / "home")
    state.append(3)
    old = state.key.keyid

    with filled(disk, but=room):
        try:
            state.rotate()
        except (KeyUnusable, StoreUnavailable) as error:
            assert error.remedy
    begun = bool(rotations_of(state.log()))
    if next_key_path(state.key_path).exists():
        assert begun
    else:
        assert begun == (state.key.keyid != old)
        state.append(1)
    assert state.rotate().new == state.key.keyid
    state.append(1)

    ended = state.run("verify", "--all", "--json")
    assert ended.code == 0, ended
    assert not list(disk.rglob("*.tmp"))


@needs_mount
@TROUBLES
@pytest.mark.parametrize("there", [False, True], ids=["new", "again"])
def test_an_export(tmp_path: Path, disk: Path, trouble: Trouble, there: bool) -> None:
    state = StateDirectory(tmp_path / "home")
    state.append(3)
    target = disk / "deep" / "out"
    if there:
        assert state.run("export", target).code == 0
        state.append(3)
    before = contents(disk)

    with trouble(disk):
        ended = state.run("export", target)
        assert (ended.code, ended.output) == (4, "")
        assert "receipt-store-unavailable: The receipts cannot be exported to" in ended.errors
        assert contents(disk) == before
    assert (disk / "deep").exists() == there

    assert state.run("export", target).code == 0
    assert len((target / "envelopes" / f"{state.log().stem}.jsonl").read_bytes().splitlines()) == (6 if there else 3)
    assert not list(target.glob(".*"))


@needs_mount
@TROUBLES
def test_verify_and_audit_need_to_write_nothing(disk: Path, trouble: Trouble) -> None:
    state = StateDirectory(disk / "home")
    (stored,) = state.append(1)
    (disk / "client.jsonl").write_text(f'{{"receipt":"{stored.id}"}}\n')
    before = contents(disk)

    with trouble(disk):
        for arguments in (("verify", "--all"), ("verify", "--last"), ("audit", "--against", str(disk / "client.jsonl"))):
            ended = state.run(*arguments)
            assert ended.code == 0, (arguments, ended)
            assert "It could not be kept: " in ended.errors  # the key that was trusted on first use
        assert contents(disk) == before


@needs_mount
@TROUBLES
def test_a_store_whose_writer_was_killed_is_verified_where_nothing_can_be_written(disk: Path, trouble: Trouble) -> None:
    state = StateDirectory(disk / "home")
    command = [sys.executable, "-m", "tests.receipts.child", "when_told", str(state.receipts), str(state.key_path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as child:
        assert child.stdin is not None and child.stdout is not None
        child.stdin.write("3\n")
        child.stdin.flush()
        assert len([child.stdout.readline() for _ in range(4)]) == 4
        child.send_signal(signal.SIGKILL)

    with trouble(disk):
        ended = state.run("verify", "--all", "--json")
        assert ended.code == 0, ended
        assert ended.verdicts[0]["what"].endswith(" 3 receipts")

    assert_goes_on(state, 3)


def test_verify_and_audit_write_nothing_even_where_they_could(tmp_path: Path) -> None:
    state = StateDirectory(tmp_path / "home")
    (stored,) = state.append(1)
    (tmp_path / "client.jsonl").write_text(f'{{"receipt":"{stored.id}"}}\n')
    assert state.run("verify", "--all").code == 0  # pins the key
    before = contents(tmp_path)

    for arguments in (("verify", "--all"), ("verify", "--last"), ("audit", "--against", str(tmp_path / "client.jsonl"))):
        assert state.run(*arguments).code == 0
        assert contents(tmp_path) == before


# ------------------------------------------------------------------ the same for who cannot mount: no file may grow


def without_growth() -> None:
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))


@pytest.mark.parametrize("arguments", [("checkpoint",), ("rotate",), ("export", "out")], ids=lambda given: given[0])
def test_a_process_that_may_write_nothing_says_so_and_changes_nothing(tmp_path: Path, arguments: tuple[str, ...]) -> None:
    state = StateDirectory(tmp_path / "home")
    state.append(2)
    state.append(1, checkpoints=False)
    assert state.run("verify", "--all").code == 0
    before = contents(state.home)

    ended: Ended = run_cli(tmp_path, "receipts", *arguments, preexec=without_growth)

    assert (ended.code, ended.stdout) == (4, b"")
    (line,) = ended.stderr.splitlines()
    assert line.startswith(("search-router: receipt-store-unavailable: ", "search-router: receipt-key-unusable: "))
    assert contents(state.home) == before
    assert not (tmp_path / "out").exists()
    assert run_cli(tmp_path, "receipts", *arguments).code == 0
    assert_goes_on(state, 3 + (arguments[0] == "rotate"))
