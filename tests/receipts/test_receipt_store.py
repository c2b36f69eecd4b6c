"""Receipts get consecutive places in one log, on disk before anyone is told, and are found again."""

from __future__ import annotations

import contextlib
import json
import sqlite3
from collections.abc import AsyncGenerator
from pathlib import Path

import anyio
import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from search_router.canonical import canonical_bytes, sha256_hex
from search_router.errors import ReceiptNotFound, StoreUnavailable
from search_router.receipts.keys import SigningKey
from search_router.receipts.log import log_path
from search_router.receipts.reading import ReceiptReader
from search_router.receipts.statement import Position, first_prev, read_statement
from search_router.receipts.store import QUEUE, ReceiptStore, Stored, open_store
from search_router.receipts.trust import Trust
from search_router.receipts.verify import VerdictKind
from search_router.receipts.whole_log import verify_log
from tests.receipts.samples import Ticks, make_answer, make_payload, nonces, sqlite_files

pytestmark = pytest.mark.anyio
KEY = SigningKey.of(Ed25519PrivateKey.generate())
PAYLOAD = make_payload(KEY)


@contextlib.asynccontextmanager
async def opened(
    directory: Path, prefix: str = "", *, key: SigningKey = KEY, start: int = 1, wait: int = 5000
) -> AsyncGenerator[ReceiptStore]:
    async with open_store(directory, key, clock=Ticks(start), nonce=nonces(prefix), max_wait_ms=wait) as store:
        yield store


async def append_together(store: ReceiptStore, count: int) -> list[Stored]:
    stored: list[Stored] = []

    async def append() -> None:
        stored.append(await store.append(PAYLOAD))

    async with anyio.create_task_group() as tasks:
        for _ in range(count):
            tasks.start_soon(append)
    return stored


def assert_sound(directory: Path, log: str, rows: int) -> None:
    verdict = verify_log(log_path(directory, log), Trust.pinning(KEY.public))
    assert (verdict.kind, verdict.rows, verdict.reasons) == (VerdictKind.VALID, rows, ())


async def test_the_first_receipts_of_a_log_form_a_chain_from_its_id(tmp_path: Path) -> None:
    async with opened(tmp_path / "receipts") as store:
        first, second = await store.append(PAYLOAD), await store.append(PAYLOAD)
        assert (await store.get(first.id)).prev == first_prev(store.log)
        assert (await store.get(second.id)).prev == (await store.get(first.id)).hash

    assert (first.id, second.id) == (f"{store.log}:1", f"{store.log}:2")
    assert first.keyid == KEY.keyid
    assert (tmp_path / "receipts").stat().st_mode & 0o777 == 0o700


async def test_what_the_caller_gets_are_the_very_bytes_that_are_stored(tmp_path: Path) -> None:
    async with opened(tmp_path) as store:
        stored = await store.append(make_payload(KEY, make_answer(10)))
        receipt = await store.get(stored.id)

    assert receipt.envelope == stored.envelope
    assert json.loads(receipt.envelope) == stored.envelope_dict()
    assert receipt.hash == sha256_hex(canonical_bytes(receipt.statement()))
    assert (receipt.status, receipt.intent, receipt.time_us) == ("answered", "typed-symbol", stored.time_us)
    assert receipt.question_digest == receipt.statement()["predicate"]["question"]["digest"]


async def test_many_at_once_have_consecutive_numbers_in_one_sound_chain(tmp_path: Path) -> None:
    async with opened(tmp_path) as store:
        stored = await append_together(store, 350)

    assert sorted(one.seq for one in stored) == list(range(1, 351))
    assert_sound(tmp_path, store.log, 350)


async def test_more_callers_than_the_queue_holds_wait_their_turn(tmp_path: Path) -> None:
    async with opened(tmp_path, wait=30_000) as store:
        stored = await append_together(store, QUEUE + 50)

    assert len({one.seq for one in stored}) == QUEUE + 50


async def test_a_payload_that_cannot_be_built_fails_alone(tmp_path: Path) -> None:
    good: list[Stored] = []

    async with opened(tmp_path) as store, anyio.create_task_group() as tasks:

        async def append() -> None:
            good.append(await store.append(PAYLOAD))

        async def append_broken() -> None:
            with pytest.raises(ZeroDivisionError):
                await store.append(lambda position: bytes(1 // (position.seq * 0)))

        for run in (append, append_broken, append, append_broken, append):
            tasks.start_soon(run)

    assert sorted(one.seq for one in good) == [1, 2, 3]
    assert_sound(tmp_path, store.log, 3)


@pytest.mark.parametrize("payload", [b"", b"[]", b"{}", b"\xff", b'{"_type":1}'])
async def test_a_payload_that_is_no_receipt_is_refused(tmp_path: Path, payload: bytes) -> None:
    async with opened(tmp_path) as store:
        with pytest.raises(ValueError):
            await store.append(lambda _: payload)
        assert (await store.append(PAYLOAD)).seq == 1


async def test_a_payload_whose_words_are_no_unicode_fails_alone(tmp_path: Path) -> None:
    def surrogate(position: Position) -> bytes:
        return PAYLOAD(position).replace(b'"status":"answered"', b'"status":"\\ud800"')

    async with opened(tmp_path) as store, anyio.create_task_group() as tasks:

        async def refused() -> None:
            with pytest.raises(UnicodeEncodeError):
                await store.append(surrogate)

        for _ in range(3):
            tasks.start_soon(refused)
            tasks.start_soon(store.append, PAYLOAD)

    assert_sound(tmp_path, store.log, 3)


async def test_a_payload_that_states_another_place_is_refused(tmp_path: Path) -> None:
    async with opened(tmp_path) as store:
        with pytest.raises(ValueError, match="position"):
            await store.append(lambda place: PAYLOAD(Position(place.log, place.seq + 1, place.prev, place.time_us, place.nonce)))
        assert (await store.append(PAYLOAD)).seq == 1


async def test_a_caller_that_is_cancelled_while_its_receipt_is_written_leaves_a_receipt_and_no_gap(tmp_path: Path) -> None:
    async with opened(tmp_path) as store:
        with anyio.CancelScope() as scope:

            def cancel_while_building(position: Position) -> bytes:
                scope.cancel()
                return PAYLOAD(position)

            await store.append(cancel_while_building)
        assert scope.cancelled_caught
        assert (await store.append(PAYLOAD)).seq == 2

    assert_sound(tmp_path, store.log, 2)


async def test_what_stands_in_line_is_written_before_the_store_closes(tmp_path: Path) -> None:
    stored: list[Stored] = []
    building = anyio.Event()

    def build(position: Position) -> bytes:
        building.set()
        return PAYLOAD(position)

    async with anyio.create_task_group() as tasks, opened(tmp_path) as store:

        async def append() -> None:
            stored.append(await store.append(build))

        for _ in range(50):
            tasks.start_soon(append)
        await building.wait()
        assert stored == []

    assert len(stored) == 50
    assert_sound(tmp_path, store.log, 50)


async def test_a_closed_store_takes_nothing_and_closes_twice(tmp_path: Path) -> None:
    async with opened(tmp_path) as store:
        await store.append(PAYLOAD)
        await store.aclose()
        await store.aclose()
        with pytest.raises(StoreUnavailable, match="closed"):
            await store.append(PAYLOAD)


async def test_an_error_of_the_caller_leaves_as_it_is(tmp_path: Path) -> None:
    with pytest.raises(LookupError):
        async with opened(tmp_path):
            raise LookupError


async def test_a_restart_goes_on_in_the_same_log(tmp_path: Path) -> None:
    async with opened(tmp_path) as store:
        await append_together(store, 20)
    async with opened(tmp_path, "a") as again:
        assert (await again.append(PAYLOAD)).id == f"{store.log}:21"

    assert again.log == store.log
    assert_sound(tmp_path, store.log, 21)


async def test_two_open_stores_never_share_a_log(tmp_path: Path) -> None:
    async with opened(tmp_path, "a") as one, opened(tmp_path, "b") as other:
        assert one.log != other.log
        await append_together(one, 5)
        await append_together(other, 3)
    async with opened(tmp_path, "c") as later:
        assert later.log in (one.log, other.log)

    assert_sound(tmp_path, one.log, 5)
    assert_sound(tmp_path, other.log, 3)


async def test_another_key_gets_a_log_of_its_own(tmp_path: Path) -> None:
    async with opened(tmp_path, "a") as store:
        await store.append(PAYLOAD)
    async with opened(tmp_path, "b", key=SigningKey.of(Ed25519PrivateKey.generate())) as other:
        assert other.log != store.log


async def test_an_append_that_takes_too_long_is_an_error_and_the_next_one_works(tmp_path: Path) -> None:
    async with opened(tmp_path, wait=150) as store:
        await store.append(PAYLOAD)
        with contextlib.closing(sqlite3.connect(log_path(tmp_path, store.log), isolation_level=None)) as someone:
            someone.execute("BEGIN IMMEDIATE")
            with pytest.raises(StoreUnavailable, match="150 ms"):
                await store.append(PAYLOAD)
            someone.execute("ROLLBACK")
    async with opened(tmp_path, "a") as store:
        assert (await store.append(PAYLOAD)).seq == 3

    assert_sound(tmp_path, store.log, 3)


# ------------------------------------------------------------------ reading


async def test_lists_show_all_logs_newest_first_and_go_on_where_they_stopped(tmp_path: Path) -> None:
    async with opened(tmp_path, "a", start=0) as one, opened(tmp_path, "b", start=2) as other:
        for store in (one, one, one, one, other, other, other):
            await store.append(PAYLOAD)
        everything = await one.list(100)
        pages: list[str] = []
        before: str | None = None
        while page := [receipt.id for receipt in await one.list(2, before)]:
            assert len(page) <= 2
            pages += page
            before = page[-1]
        middle = everything[3].time_us
        assert [r.id for r in await one.list(100, since_us=middle)] == [r.id for r in everything if r.time_us >= middle]
        later = await one.list(100, before=everything[0].id, since_us=middle)
        assert [r.id for r in later] == [r.id for r in everything[1:] if r.time_us >= middle]

    assert [(receipt.time_us, receipt.log) for receipt in everything] == sorted(((r.time_us, r.log) for r in everything), reverse=True)
    assert len({receipt.time_us for receipt in everything}) < 7  # some share a time, so the pages had to tell them apart
    assert pages == [receipt.id for receipt in everything]
    assert len(pages) == 7


async def test_a_reader_needs_no_key_and_reads_while_the_writer_writes(tmp_path: Path) -> None:
    reader = ReceiptReader(tmp_path)
    assert await reader.list(10) == ()

    async with opened(tmp_path) as store, anyio.create_task_group() as tasks:
        tasks.start_soon(append_together, store, 200)
        seen = 0
        while seen < 200:
            seen = len(await reader.list(1000))
        stored = await reader.get(f"{store.log}:200")
        assert read_statement(canonical_bytes(stored.statement())).position.seq == 200


@pytest.mark.parametrize("receipt_id", ["", "x", "0123456789ab", "0123456789ab:1", "../../etc/passwd:1", "0123456789ab:0", "A" * 5000])
async def test_an_unknown_id_is_not_found_and_the_remedy_shows_an_id(tmp_path: Path, receipt_id: str) -> None:
    with pytest.raises(ReceiptNotFound) as caught:
        await ReceiptReader(tmp_path).get(receipt_id)

    assert "0123456789ab:42" in caught.value.remedy
    assert len(str(caught.value)) < 500


async def test_a_number_beyond_the_head_is_not_found(tmp_path: Path) -> None:
    async with opened(tmp_path) as store:
        await store.append(PAYLOAD)
        for number in ("2", "9" * 18):
            with pytest.raises(ReceiptNotFound):
                await store.get(f"{store.log}:{number}")
        with pytest.raises(ReceiptNotFound):
            await store.list(5, before=f"{store.log}:2")
        for limit in (0, 1001):
            with pytest.raises(ValueError, match="limit"):
                await store.list(limit)
    assert len(sqlite_files(tmp_path)) == 1
