"""Receipts read back, from every log of a directory, while their writers go on writing. Needs no key and takes no lock."""

from __future__ import annotations

import contextlib
import json
import re
import sqlite3
from collections.abc import AsyncGenerator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aiosqlite

from search_router.errors import ReceiptNotFound
from search_router.receipts.envelope import parse_envelope
from search_router.receipts.log import (
    LOCK_WAIT_SECONDS,
    SELECT_FORMAT,
    SELECT_ROWS,
    Row,
    check_format,
    legible_errors,
    log_ids,
    log_path,
    log_uri,
    store_failure,
)

MAX_LISTED = 1000

_RECEIPT_ID = re.compile(r"([0-9a-f]{12}):([1-9][0-9]{0,17})")


@dataclass(frozen=True, slots=True)
class Receipt:
    """One stored receipt as it was written. Reading it proves nothing: `verify` does."""

    id: str
    log: str
    seq: int
    prev: str
    hash: str
    time_us: int
    status: str
    intent: str | None
    question_digest: str | None
    keyid: str
    envelope: bytes

    @classmethod
    def of(cls, log: str, row: Row) -> Receipt:
        return cls(
            id=f"{log}:{row.seq}",
            log=log,
            seq=row.seq,
            prev=row.prev,
            hash=row.hash,
            time_us=row.time_us,
            status=row.status,
            intent=row.intent,
            question_digest=row.question_digest,
            keyid=row.keyid,
            envelope=row.envelope,
        )

    def statement(self) -> dict[str, Any]:
        """The statement inside the envelope. Raises ReceiptError when the envelope is malformed."""
        return json.loads(parse_envelope(self.envelope).payload)


class ReceiptReader:
    """Looks receipts up in a directory of logs."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory

    async def get(self, receipt_id: str) -> Receipt:
        """The receipt with this id (`<log>:<seq>`).

        Raises:
            ReceiptNotFound: no log has it.
            StoreUnavailable: the log cannot be read.
        """
        parts = _RECEIPT_ID.fullmatch(receipt_id)
        if parts is None or not log_path(self._directory, parts[1]).exists():
            raise self._not_found(receipt_id)
        rows = await self._rows(parts[1], f"{SELECT_ROWS} WHERE seq = ?", (int(parts[2]),))
        if not rows:
            raise self._not_found(receipt_id)
        return rows[0]

    async def newest(self) -> Receipt:
        """The newest receipt of all logs. Raises ReceiptNotFound when there is none, and StoreUnavailable."""
        found = await self.list(1)
        if not found:
            raise ReceiptNotFound(f"There is no receipt in {self._directory}.", remedy="Ask a question first.")
        return found[0]

    async def list(self, limit: int, before: str | None = None, since_us: int = 0) -> tuple[Receipt, ...]:
        """At most `limit` (1 to 1000) receipts of all logs, newest first; with `before`, those that come after that one in this order.

        None that is older than `since_us`, microseconds since 1970.

        Raises:
            ReceiptNotFound: there is no receipt `before`.
            StoreUnavailable: a log cannot be read; the list would be silently short.
        """
        if not 1 <= limit <= MAX_LISTED:
            raise ValueError(f"limit must be 1 to {MAX_LISTED}, not {limit}")
        place = _order(await self.get(before)) if before is not None else None
        found: list[Receipt] = []
        for log in log_ids(self._directory):
            # Order of the whole list: time, then log, then number. Within one log that is (time, number) below the place.
            where, parameters = "WHERE time_us >= ?", (since_us,)
            if place is not None:
                time_us, place_log, seq = place
                seq_bound = seq if log == place_log else (0 if log > place_log else 2**62)
                where, parameters = f"{where} AND (time_us, seq) < (?, ?)", (since_us, time_us, seq_bound)
            found += await self._rows(log, f"{SELECT_ROWS} {where} ORDER BY time_us DESC, seq DESC LIMIT ?", (*parameters, limit))
        return tuple(sorted(found, key=_order, reverse=True)[:limit])

    async def _rows(self, log: str, sql: str, parameters: tuple[int, ...]) -> list[Receipt]:
        path = log_path(self._directory, log)
        try:
            async with _open(path) as database:
                for facts in await database.execute_fetchall(SELECT_FORMAT):
                    check_format(path, *facts)
                return [Receipt.of(log, Row(*values)) for values in await database.execute_fetchall(sql, parameters)]
        except sqlite3.Error as error:
            raise store_failure(path, error) from error

    def _not_found(self, receipt_id: str) -> ReceiptNotFound:
        return ReceiptNotFound(
            f"No receipt {receipt_id[:80]!r} in {self._directory}.",
            remedy="An id looks like 0123456789ab:42; `search-router receipts list` shows those that are there.",
        )


def _order(receipt: Receipt) -> tuple[int, str, int]:
    return receipt.time_us, receipt.log, receipt.seq


@contextlib.asynccontextmanager
async def _open(path: Path) -> AsyncGenerator[aiosqlite.Connection]:
    async with aiosqlite.connect(log_uri(path, "ro"), uri=True, isolation_level=None, timeout=LOCK_WAIT_SECONDS) as database:
        with legible_errors():
            yield database
