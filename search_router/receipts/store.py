"""The store that receipts go to: one writer task, one transaction for all that wait, and nobody is told before the commit.

One process writes one log; several processes write several. The chain is per log, so the writer alone decides each receipt's number and
predecessor and has it built and signed at that moment.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import sqlite3
from collections.abc import AsyncGenerator, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aiosqlite
import anyio
import anyio.to_thread
from anyio.streams.memory import MemoryObjectReceiveStream

from search_router.errors import StoreUnavailable
from search_router.receipts.checkpoint import checkpoint_path, refuse_rollback
from search_router.receipts.checkpointer import Checkpointer, CheckpointPlan
from search_router.receipts.claim import ClaimedLog, claim_log
from search_router.receipts.envelope import MAX_ENVELOPE_BYTES, sign_envelope
from search_router.receipts.keys import SigningKey
from search_router.receipts.log import COLUMNS, LOCK_WAIT_SECONDS, Head, Row, log_uri, store_failure
from search_router.receipts.prepared import PreparedStatement
from search_router.receipts.reading import Receipt, ReceiptReader
from search_router.receipts.statement import Position, parse_own_statement, statement_facts
from search_router.receipts.tip import Tip, check_log

QUEUE = 1024
"""Receipts that may wait for the writer; further callers wait in line, within their own time limit."""
MAX_BATCH = 256
"""Receipts in one transaction, as far as this SQLite takes the parameters: signing them keeps the event loop for some 20 ms."""
MAX_WAIT_MS = 5000
DRAIN_SECONDS = 10.0

MakePayload = Callable[[Position], bytes]
"""A `PreparedStatement`, or what else gives the canonical bytes of a search receipt: those are read back before they are signed."""


@dataclass(frozen=True, slots=True)
class Stored:
    """A receipt that is on disk. `envelope` holds the very bytes that were stored."""

    id: str
    seq: int
    log: str
    keyid: str
    time_us: int
    envelope: bytes

    def envelope_dict(self) -> dict[str, Any]:
        """The envelope as a JSON object, for an answer's `_meta`."""
        return json.loads(self.envelope)


@dataclass(slots=True, eq=False)
class _Waiting:
    """One append on its way, and what its caller waits for; a caller that has left is told nothing."""

    make_payload: MakePayload
    done: asyncio.Future[Stored]

    def succeed(self, stored: Stored) -> None:
        if not self.done.done():
            self.done.set_result(stored)

    def fail(self, failure: Exception) -> None:
        if not self.done.done():
            self.done.set_exception(failure)


_Built = tuple[_Waiting, Row, tuple[int | str | bytes | None, ...]]


class ReceiptStore:
    """Appends to this process's log and reads all logs of the directory. Made by `open_store`."""

    def __init__(
        self, directory: Path, log: ClaimedLog, key: SigningKey, *, clock: Callable[[], int], nonce: Callable[[], str], max_wait_ms: int
    ) -> None:
        self._log = log
        self._key = key
        self._clock = clock
        self._nonce = nonce
        self._max_wait_ms = max_wait_ms
        self._max_batch = min(MAX_BATCH, _parameters_of_a_statement() // len(COLUMNS))
        self._reader = ReceiptReader(directory)
        self._send, self._receive = anyio.create_memory_object_stream[_Waiting](QUEUE)
        self._database: aiosqlite.Connection | None = None
        self._tip: Tip | None = log.tip
        self._checkpointer: Checkpointer | None = None
        self._file = _file_identity(log.path)
        self._writer: asyncio.Task[None] | None = None

    @property
    def log(self) -> str:
        """The id of the log that this process writes."""
        return self._log.id

    async def start(self, checkpoints: CheckpointPlan | None = None) -> None:
        """Open the log and start the writer; `open_store` does it. Raises StoreUnavailable."""
        _, tip = await self._ready()
        if checkpoints is not None:
            path = checkpoint_path(checkpoints.directory, self.log)
            done = await anyio.to_thread.run_sync(refuse_rollback, path, checkpoints.key.public, self._log.path, tip)
            self._checkpointer = Checkpointer(checkpoints, self.log, tip.tree, done)
            self._checkpointer.start()
        # An asyncio task rather than a task group: aiosqlite is bound to asyncio, and a group would wrap the errors of its caller's block.
        self._writer = asyncio.create_task(self._write(self._receive), name=f"receipt log {self.log}")

    async def append(self, make_payload: MakePayload) -> Stored:
        """Have a receipt built for the next place in the log, sign it, and return once it is on disk.

        `make_payload` gets the position and returns the canonical bytes of a search receipt that states this very position. It runs in
        the writer and must be quick. What it raises is raised here and harms no other receipt. A caller that is cancelled or times out
        after it stood in line still gets its receipt written.

        Raises:
            StoreUnavailable: not on disk within the time limit, or the store is closed, damaged, full or read-only. No answer may leave.
            ValueError: the payload is not a search receipt of the given position.
        """
        # A future and a timer of the loop itself: every answer waits here, and an event in a cancel scope takes several times as long.
        loop = asyncio.get_running_loop()
        waiting = _Waiting(make_payload, loop.create_future())
        seconds = self._max_wait_ms / 1000
        timer = loop.call_later(seconds, self._give_up, waiting)
        try:
            try:
                self._send.send_nowait(waiting)
            except anyio.WouldBlock:
                with anyio.move_on_after(seconds):
                    await self._send.send(waiting)
            return await waiting.done
        except (anyio.ClosedResourceError, anyio.BrokenResourceError) as error:
            raise self._closed() from error
        finally:
            timer.cancel()
            waiting.done.cancel()  # so that nobody tells a caller that has left

    def _give_up(self, waiting: _Waiting) -> None:
        waiting.fail(
            StoreUnavailable(
                f"The receipt was not on disk within {self._max_wait_ms} ms (it may still be written).",
                remedy=f"Check the load of the disk that holds {self._log.path}, or raise `receipts.max_wait_ms`.",
            )
        )

    async def get(self, receipt_id: str) -> Receipt:
        """See `ReceiptReader.get`."""
        return await self._reader.get(receipt_id)

    async def list(self, limit: int, before: str | None = None, since_us: int = 0) -> tuple[Receipt, ...]:
        """See `ReceiptReader.list`."""
        return await self._reader.list(limit, before, since_us)

    async def aclose(self) -> None:
        """Take no more, write what stands in line, and stop. Safe to call twice, and from any task."""
        self._send.close()
        with anyio.CancelScope(shield=True):
            if self._writer is not None:
                await asyncio.wait({self._writer}, timeout=DRAIN_SECONDS)
                if not self._writer.done():
                    self._writer.cancel()
                    await asyncio.wait({self._writer}, timeout=DRAIN_SECONDS)
            self._receive.close()
            await self._disconnect()
            if self._checkpointer is not None:
                await self._checkpointer.aclose()
        if self._writer is not None and self._writer.done() and not self._writer.cancelled():
            self._writer.result()  # a writer that broke is a defect of ours: it must not end unseen

    # ------------------------------------------------------------------ the writer

    async def _write(self, queue: MemoryObjectReceiveStream[_Waiting]) -> None:
        try:
            async with queue:
                async for first in queue:
                    batch = [first]
                    with contextlib.suppress(anyio.WouldBlock, anyio.EndOfStream):
                        while len(batch) < self._max_batch:
                            batch.append(queue.receive_nowait())
                    await self._commit(batch)
        finally:
            self._send.close()

    async def _commit(self, batch: list[_Waiting]) -> None:
        """Write the batch in one transaction and wake everyone in it, with a place in the log or with the failure."""
        try:
            database, tip = await self._ready()
        except StoreUnavailable as error:
            for waiting in batch:
                waiting.fail(StoreUnavailable(error.message, remedy=error.remedy))
            return
        built, tip = self._build(batch, tip)
        if not built:
            return
        self._tip = None  # not known until the commit has returned, however it returns
        try:
            await database.execute_insert(_insert_rows(len(built)), [value for _, _, values in built for value in values])
        except (sqlite3.Error, ValueError) as error:
            cause = error if isinstance(error, sqlite3.Error) else sqlite3.OperationalError(str(error))
            for waiting, _, _ in built:
                waiting.fail(store_failure(self._log.path, cause))
            return
        self._tip = tip
        for waiting, row, _ in built:
            waiting.succeed(Stored(f"{self.log}:{row.seq}", row.seq, self.log, row.keyid, row.time_us, row.envelope))
        if self._checkpointer is not None:
            self._checkpointer.see(tip.tree)

    def _build(self, batch: list[_Waiting], tip: Tip) -> tuple[list[_Built], Tip]:
        """The signed rows after `tip` with their database values, and the tip after them; who cannot be built is told at once and takes no
        number."""
        built: list[_Built] = []
        head, tree = tip.head, tip.tree
        for waiting in batch:
            position = Position(self.log, head.seq + 1, head.hash, self._clock(), self._nonce())
            try:
                row = self._sign(waiting.make_payload, position)
            except Exception as error:  # noqa: BLE001 - not judged here: carried to the caller whose code raised it
                waiting.fail(error)
                continue
            tree, completed = tree.append(bytes.fromhex(row.hash))
            built.append((waiting, row, row.values(completed)))
            head = Head(row.seq, row.hash)
        return built, Tip(head, tree, tip.keyid)

    def _sign(self, make_payload: MakePayload, position: Position) -> Row:
        payload = make_payload(position)
        if isinstance(make_payload, PreparedStatement):
            facts = make_payload.facts(position)
        else:
            # The columns are read back from the payload, so that they cannot say anything else than what is signed.
            facts = statement_facts(parse_own_statement(payload))
        if facts.position != position:
            raise ValueError(f"the payload states the position {facts.position}, not {position}")
        row = Row.of(facts, sign_envelope(payload, self._key))
        if len(row.envelope) > MAX_ENVELOPE_BYTES:
            raise ValueError(f"the envelope has {len(row.envelope)} bytes, and readers refuse more than {MAX_ENVELOPE_BYTES}")
        f"{row.status}{row.intent}{row.question_digest}".encode()  # a lone surrogate must fail here, not the whole batch in the database
        return row

    async def _ready(self) -> tuple[aiosqlite.Connection, Tip]:
        """The connection and the tip; after a failure both are made anew, from what is on disk."""
        if _file_identity(self._log.path) != self._file:
            raise StoreUnavailable(
                f"The receipt log {self._log.path} was removed or replaced while it was in use.",
                remedy="Put the file back or restart: a start checks what is there.",
            )
        if self._tip is None:
            await self._disconnect()
            self._tip = await anyio.to_thread.run_sync(check_log, self._log.path)
        if self._database is None:
            try:
                self._database = await _connect(self._log.path)
            except sqlite3.Error as error:
                raise store_failure(self._log.path, error) from error
        return self._database, self._tip

    async def _disconnect(self) -> None:
        database, self._database = self._database, None
        if database is not None:
            # What was acknowledged is in the write-ahead log already; a close that fails takes nothing back.
            with anyio.move_on_after(DRAIN_SECONDS), contextlib.suppress(sqlite3.Error, ValueError):
                await database.close()

    def _closed(self) -> StoreUnavailable:
        return StoreUnavailable(f"The receipt store of log {self.log} is closed.", remedy="Start search-router again.")


@contextlib.asynccontextmanager
async def open_store(
    directory: Path,
    key: SigningKey,
    *,
    clock: Callable[[], int],
    nonce: Callable[[], str],
    max_wait_ms: int = MAX_WAIT_MS,
    checkpoints: CheckpointPlan | None = None,
) -> AsyncGenerator[ReceiptStore]:
    """The store of a directory, with a log that this process alone writes; on leaving, what stands in line is written first.

    `clock` gives integer microseconds since 1970, `nonce` at least 12 fresh random hexadecimal digits. Needs asyncio.

    Raises:
        StoreUnavailable: the directory cannot be written, or a log in it is damaged, from a newer version, or not what it was at its newest
            checkpoint.
        KeyUnusable: the key was retired.
    """
    claimed = await anyio.to_thread.run_sync(lambda: claim_log(directory, key.keyid, created_us=clock(), new_id=lambda: nonce()[:12]))
    try:
        store = ReceiptStore(directory, claimed, key, clock=clock, nonce=nonce, max_wait_ms=max_wait_ms)
        try:
            await store.start(checkpoints)
            yield store
        finally:
            await store.aclose()
    finally:
        claimed.release()


async def _connect(path: Path) -> aiosqlite.Connection:
    database = await aiosqlite.connect(log_uri(path, "rw"), uri=True, isolation_level=None, timeout=LOCK_WAIT_SECONDS)
    try:
        # FULL: in WAL mode each commit is then synced, so that it survives loss of power and not only of the process.
        for pragma in ("journal_mode = WAL", "synchronous = FULL"):
            await database.execute_fetchall(f"PRAGMA {pragma}")
    except BaseException:
        await database.close()
        raise
    return database


def _insert_rows(count: int) -> str:
    """One statement for the whole batch: it is its own transaction, and one trip to the connection's thread."""
    row = f"({', '.join('?' * len(COLUMNS))})"
    return f"INSERT INTO receipts ({', '.join(COLUMNS)}) VALUES {', '.join([row] * count)}"  # noqa: S608 - constants only


def _parameters_of_a_statement() -> int:
    """999 in builds of SQLite before 3.32, some tens of thousands since."""
    with contextlib.closing(sqlite3.connect(":memory:")) as database:
        return database.getlimit(sqlite3.SQLITE_LIMIT_VARIABLE_NUMBER)


def _file_identity(path: Path) -> tuple[int, int] | None:
    try:
        facts = path.stat()
    except OSError:
        return None
    return facts.st_dev, facts.st_ino
