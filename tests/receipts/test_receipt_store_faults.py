"""What the world does to a store: kill -9, full and read-only disks, damage, removal, several processes."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import anyio
import pytest

from search_router.errors import StoreUnavailable
from search_router.receipts.claim import set_log_aside
from search_router.receipts.keys import load_or_create_key
from search_router.receipts.log import SCHEMA_VERSION, log_path
from search_router.receipts.reading import ReceiptReader
from search_router.receipts.store import open_store
from search_router.receipts.trust import Trust
from search_router.receipts.verify import VerdictKind
from search_router.receipts.whole_log import verify_log
from tests.privileges import needs_readable_checkout
from tests.receipts.disks import needs_mount, remount
from tests.receipts.samples import Ticks, make_payload, nonces, sqlite_files

pytestmark = pytest.mark.anyio


class Place:
    """A directory of receipts, its key, and what processes and tests do with them."""

    def __init__(self, base: Path) -> None:
        self.directory = base / "receipts"
        self.key_path = base / "keys" / "k.pem"
        self.key = load_or_create_key(self.key_path)

    def child(self, what: str) -> subprocess.Popen[str]:
        command = [sys.executable, "-m", "tests.receipts.child", what, str(self.directory), str(self.key_path)]
        return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    async def append(self, count: int = 1, prefix: str = "") -> list[str]:
        async with open_store(self.directory, self.key, clock=Ticks(), nonce=nonces(prefix)) as store:
            return [(await store.append(make_payload(self.key))).id for _ in range(count)]

    def assert_sound(self, path: Path) -> int:
        verdict = verify_log(path, Trust.pinning(self.key.public))
        assert (verdict.kind, verdict.reasons) == (VerdictKind.VALID, ())
        return verdict.rows


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


def ask(child: subprocess.Popen[str], text: str) -> None:
    assert child.stdin is not None
    child.stdin.write(text)
    child.stdin.flush()


def read_lines(child: subprocess.Popen[str], count: int) -> list[str]:
    assert child.stdout is not None
    return [child.stdout.readline().strip() for _ in range(count)]


async def test_after_kill_9_every_acknowledged_receipt_is_there_and_the_next_start_goes_on(place: Place) -> None:
    acknowledged: list[str] = []
    for _ in range(3):
        child = place.child("for_ever")
        acknowledged += read_lines(child, 150)
        child.send_signal(signal.SIGKILL)
        rest, _ = child.communicate(timeout=30)
        acknowledged += rest.splitlines()  # printed before the end, so acknowledged as well

    (path,) = sqlite_files(place.directory)
    reader = ReceiptReader(place.directory)
    for receipt_id in acknowledged:
        await reader.get(receipt_id)
    assert len(set(acknowledged)) == len(acknowledged) >= 450
    assert place.assert_sound(path) >= len(acknowledged)
    (following,) = await place.append()
    assert following.startswith(f"{path.stem}:")
    place.assert_sound(path)


async def test_two_processes_write_two_logs(place: Place) -> None:
    children = [place.child("when_told") for _ in range(2)]
    logs = [read_lines(child, 1)[0] for child in children]
    for child in children:
        ask(child, "30\n")
    ids = [read_lines(child, 30) for child in children]
    for child in children:
        assert child.communicate(timeout=30)[0] == "closed\n"

    assert len(set(logs)) == 2
    for log, written in zip(logs, ids, strict=True):
        assert sorted(written) == sorted(f"{log}:{seq}" for seq in range(1, 31))
        assert place.assert_sound(log_path(place.directory, log)) == 30
    assert len(await ReceiptReader(place.directory).list(1000)) == 60


async def test_a_disk_limit_is_an_error_for_all_that_wait_and_the_store_goes_on_when_it_is_lifted(place: Place) -> None:
    output, _ = place.child("limit").communicate(timeout=60)

    *ids, last, closed = [line for line in output.splitlines() if line != "unavailable"]
    assert "unavailable" in output
    assert closed == "closed"
    (path,) = sqlite_files(place.directory)
    assert last == f"{path.stem}:{len(ids) + 1}"
    assert place.assert_sound(path) == len(ids) + 1


@needs_mount
async def test_a_full_disk_is_an_error_until_there_is_room_again(tmp_path: Path, small_disk: Path) -> None:
    place = Place(tmp_path)
    place.directory = small_disk / "receipts"
    async with open_store(place.directory, place.key, clock=Ticks(), nonce=nonces()) as store:
        payload = make_payload(place.key)
        await store.append(payload)
        (small_disk / "filler").write_bytes(b"x" * (shutil.disk_usage(small_disk).free - 8192))
        written = 1
        with pytest.raises(StoreUnavailable, match=r"full|disk I/O") as caught:
            for _ in range(500):
                await store.append(payload)
                written += 1
        with pytest.raises(StoreUnavailable):
            await store.append(payload)
        (small_disk / "filler").unlink()
        assert (await store.append(payload)).seq == written + 1

    assert "room" in caught.value.remedy
    assert place.assert_sound(log_path(place.directory, store.log)) == written + 1


@needs_mount
async def test_a_log_on_a_read_only_disk_can_be_read_and_verified(tmp_path: Path, small_disk: Path) -> None:
    place = Place(tmp_path)
    place.directory = small_disk / "receipts"
    ids = await place.append(3)
    remount(small_disk, "ro")

    assert [receipt.id for receipt in await ReceiptReader(place.directory).list(10)] == ids[::-1]
    assert place.assert_sound(sqlite_files(place.directory)[0]) == 3
    with pytest.raises(StoreUnavailable, match="Read-only"):
        await place.append()


@needs_readable_checkout
async def test_a_read_only_directory_is_refused_at_the_start(place: Place) -> None:
    # Not in pytest's own directory, whose parents another user may not enter.
    base = Path(tempfile.mkdtemp())
    base.chmod(0o755)
    try:
        place.directory = base / "receipts"
        await place.append()
        place.directory.chmod(0o555)
        output, _ = place.child("as_nobody").communicate(timeout=30)
        place.directory.chmod(0o755)
        place.assert_sound(sqlite_files(place.directory)[0])
    finally:
        shutil.rmtree(base)

    assert output.startswith("refused: The receipt store")
    assert "Permission denied" in output


async def test_a_file_in_place_of_the_directory_is_refused(place: Place) -> None:
    place.directory.write_text("")

    with pytest.raises(StoreUnavailable, match="cannot be used"):
        await place.append()


async def test_a_log_that_is_removed_while_in_use_takes_no_more(place: Place) -> None:
    async with open_store(place.directory, place.key, clock=Ticks(), nonce=nonces()) as store:
        payload = make_payload(place.key)
        await store.append(payload)
        path = log_path(place.directory, store.log)
        path.rename(path.with_suffix(".away"))
        with pytest.raises(StoreUnavailable, match="removed or replaced"):
            await store.append(payload)
        path.with_suffix(".away").rename(path)
        assert (await store.append(payload)).seq == 2

    place.assert_sound(path)


async def test_a_second_writer_on_the_chain_is_noticed_and_the_chain_stays_whole(place: Place) -> None:
    async with open_store(place.directory, place.key, clock=Ticks(), nonce=nonces()) as store:
        payload = make_payload(place.key)
        await store.append(payload)
        path = log_path(place.directory, store.log)
        with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as someone:
            someone.execute(
                "INSERT INTO receipts SELECT 2, hash, 'x', envelope, time_us, status, intent, question_digest, keyid, nodes FROM receipts"
            )
        for _ in range(2):
            with pytest.raises(StoreUnavailable, match="damaged"):
                await store.append(payload)


# ------------------------------------------------------------------ damage


def edit(*statements: str) -> Callable[[Path], None]:
    def run(path: Path) -> None:
        with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as database:
            for statement in statements:
                database.execute(statement)

    return run


def overwrite(offset: int, data: bytes) -> Callable[[Path], None]:
    def run(path: Path) -> None:
        with path.open("r+b") as file:
            file.seek(offset, os.SEEK_SET if offset >= 0 else os.SEEK_END)
            file.write(data)

    return run


DAMAGE: dict[str, Callable[[Path], None]] = {
    "no database": overwrite(0, b"x" * 100),
    "empty file": lambda path: os.truncate(path, 0),
    "cut file": lambda path: os.truncate(path, path.stat().st_size - 4096 * 3),
    "broken pages": lambda path: overwrite(4096, os.urandom(path.stat().st_size - 4096))(path),
    "another application": edit("PRAGMA application_id = 1"),
    "no table": edit("DROP TABLE receipts"),
    "another log's file": edit("UPDATE log SET id = 'ffffffffffff'"),
    "no owner": edit("DELETE FROM log"),
    "head edited": edit("UPDATE receipts SET envelope = '{}' WHERE seq = 20"),
    "head hash edited": edit("UPDATE receipts SET hash = 'x' WHERE seq = 20"),
    "column edited": edit("UPDATE receipts SET status = 'empty' WHERE seq = 20"),
    "gap near the end": edit("DELETE FROM receipts WHERE seq = 15"),
    "beginning gone": edit("DELETE FROM receipts WHERE seq < 10"),
}


@pytest.mark.parametrize("damage", DAMAGE.values(), ids=DAMAGE.keys())
async def test_a_damaged_log_stops_the_start_with_the_command_and_is_never_replaced(place: Place, damage: Callable[[Path], None]) -> None:
    await place.append(20)
    (path,) = sqlite_files(place.directory)
    damage(path)
    before = path.read_bytes()

    for _ in range(2):
        with pytest.raises(StoreUnavailable, match="damaged") as caught:
            await place.append(prefix="b")
        assert f"search-router receipts repair {path.stem}" in caught.value.remedy

    assert sqlite_files(place.directory) == [path]
    assert path.read_bytes() == before


async def test_a_log_set_aside_keeps_its_bytes_and_the_next_start_makes_a_new_one(place: Place) -> None:
    await place.append(3)
    (path,) = sqlite_files(place.directory)
    DAMAGE["no database"](path)
    before = path.read_bytes()

    kept = set_log_aside(place.directory, path.stem)

    assert (kept / path.name).read_bytes() == before
    (receipt_id,) = await place.append(prefix="b")
    assert not receipt_id.startswith(path.stem)


async def test_a_log_in_use_or_an_unknown_one_is_not_set_aside(place: Place) -> None:
    async with open_store(place.directory, place.key, clock=Ticks(), nonce=nonces()) as store:
        with pytest.raises(StoreUnavailable, match="being written"):
            set_log_aside(place.directory, store.log)
    for log in ("ffffffffffff", "../x", ""):
        with pytest.raises(StoreUnavailable, match="no receipt log"):
            set_log_aside(place.directory, log)


async def test_a_log_of_a_newer_version_is_refused_and_untouched(place: Place) -> None:
    await place.append()
    (path,) = sqlite_files(place.directory)
    edit(f"PRAGMA user_version = {SCHEMA_VERSION + 1}")(path)

    with pytest.raises(StoreUnavailable, match=f"schema version {SCHEMA_VERSION + 1}") as caught:
        await place.append(prefix="b")

    assert "newer search-router" in caught.value.remedy
    with pytest.raises(StoreUnavailable, match="schema version"):
        await ReceiptReader(place.directory).list(1)
    assert verify_log(path, Trust.pinning(place.key.public)).kind is VerdictKind.UNCHECKED


async def test_a_start_that_died_while_making_its_log_leaves_nothing_in_the_way(place: Place) -> None:
    place.directory.mkdir()
    (place.directory / ".0000000000ab.draft").write_bytes(b"half")
    (place.directory / "0000000000ab.lock").touch()

    (receipt_id,) = await place.append()

    assert receipt_id.endswith(":1")
    assert len(sqlite_files(place.directory)) == 1


async def test_a_damaged_log_is_an_error_for_readers_too_and_not_an_empty_list(place: Place) -> None:
    await place.append()
    (path,) = sqlite_files(place.directory)
    DAMAGE["no database"](path)

    with pytest.raises(StoreUnavailable, match="damaged"):
        await ReceiptReader(place.directory).list(10)
    with pytest.raises(StoreUnavailable, match="damaged"):
        await ReceiptReader(place.directory).get(f"{path.stem}:1")


async def test_a_store_that_stalls_does_not_stall_its_callers(place: Place) -> None:
    async with open_store(place.directory, place.key, clock=Ticks(), nonce=nonces(), max_wait_ms=100) as store:
        payload = make_payload(place.key)
        with contextlib.closing(sqlite3.connect(log_path(place.directory, store.log), isolation_level=None)) as someone:
            someone.execute("BEGIN IMMEDIATE")
            failures = 0

            async def append() -> None:
                nonlocal failures
                with pytest.raises(StoreUnavailable):
                    await store.append(payload)
                failures += 1

            with anyio.fail_after(1):
                async with anyio.create_task_group() as tasks:
                    for _ in range(10):
                        tasks.start_soon(append)
            someone.execute("ROLLBACK")

    assert failures == 10
    assert place.assert_sound(log_path(place.directory, store.log)) == 10  # late, and honest about it
