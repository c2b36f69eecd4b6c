"""Receipts of every log as one list, newest first: filtered, in pages, and for one principal only its own.

Synchronous; for a worker thread. A page reads a bounded number of receipts. Where a caller may see only its own, other receipts must
not show in how far a page reaches: the own ones are found in advance, a bounded number of receipts at a time, and remembered.
"""

from __future__ import annotations

import base64
import binascii
import contextlib
import heapq
import json
import sqlite3
import threading
from collections.abc import Generator, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple

from search_router.canonical import canonical_bytes
from search_router.console.records import ReceiptPage, ReceiptRow
from search_router.console.shown import listed, members, number, text
from search_router.errors import ReceiptError, ReceiptNotFound
from search_router.receipts.envelope import parse_envelope
from search_router.receipts.log import SELECT_FORMAT, check_format, log_ids, log_path, open_for_reading, store_failure

LOOKED_AT: Final = 5_000
"""Receipts whose status and class one page compares at most."""
READ: Final = 500
"""Receipts that one page reads whole at most."""
SEARCHED: Final = 1_000
"""Receipts that one page looks through at most to find a principal's own."""
AT_ONCE: Final = 100
UNREADABLE: Final = "unreadable"


class Place(NamedTuple):
    """Where a receipt stands in the whole list: by time, then log, then number."""

    time_us: int
    log: str
    seq: int

    @property
    def id(self) -> str:
        return f"{self.log}:{self.seq}"


class Light(NamedTuple):
    """A receipt without its envelope."""

    place: Place
    status: str
    intent: str | None


class ReceiptFilter(NamedTuple):
    """Which receipts a list shows; None is any."""

    status: str | None = None
    intent: str | None = None
    operation: str | None = None
    expert: str | None = None

    def may_admit(self, light: Light) -> bool:
        """What can be said without reading the envelope."""
        return self.status in (None, light.status) and self.intent in (None, light.intent)

    def admits(self, predicate: Mapping[str, Any]) -> bool:
        """The rest."""
        if self.operation not in (None, predicate.get("operation")):
            return False
        return self.expert is None or any(members(e).get("expert") == self.expert for e in listed(predicate.get("experts")))


def not_found(receipt_id: str) -> ReceiptNotFound:
    """The same error for what is not there and for what may not be seen."""
    return ReceiptNotFound(f"There is no receipt {receipt_id[:80]!r} here.", remedy="The list of receipts shows those that are.")


class OpenLogs:
    """Every log of a directory, open for one page. Made by `open_logs`."""

    def __init__(self, directory: Path, databases: Mapping[str, sqlite3.Connection]) -> None:
        self._directory = directory
        self._databases = databases

    @property
    def ids(self) -> tuple[str, ...]:
        """The logs."""
        return tuple(self._databases)

    def newest_of(self, log: str) -> list[Light]:
        """The last receipt of a log, if it has one."""
        return self._select(log, "ORDER BY seq DESC LIMIT 1", ())

    def range_of(self, log: str, seq: int, count: int) -> list[Light]:
        """At most `count` receipts of one log that come next after `seq`, or with a negative count before it."""
        if count < 0:
            return self._select(log, "WHERE seq < ? ORDER BY seq DESC LIMIT ?", (seq, -count))
        return self._select(log, "WHERE seq > ? ORDER BY seq LIMIT ?", (seq, count))

    def walk(self, before: Place | None = None) -> Iterator[Light]:
        """All receipts, or those after `before` in the list."""
        return heapq.merge(*(self._walk_one(log, before) for log in self._databases), key=lambda light: light.place, reverse=True)

    def find(self, receipt_id: str) -> Place | None:
        """The place of this receipt; None when there is none."""
        log, _, seq = receipt_id.partition(":")
        if log not in self._databases or not seq.isdecimal():
            return None
        with _translated(log_path(self._directory, log)):
            row = self._databases[log].execute("SELECT time_us FROM receipts WHERE seq = ?", (int(seq),)).fetchone()
        return Place(row[0], log, int(seq)) if row is not None else None

    def envelope(self, place: Place) -> bytes:
        """The stored envelope; empty when the receipt has gone in the meantime."""
        with _translated(log_path(self._directory, place.log)):
            row = self._databases[place.log].execute("SELECT CAST(envelope AS BLOB) FROM receipts WHERE seq = ?", (place.seq,)).fetchone()
        return row[0] if row is not None else b""

    def _select(self, log: str, rest: str, parameters: tuple[int, ...]) -> list[Light]:
        with _translated(log_path(self._directory, log)):
            rows = self._databases[log].execute(f"SELECT time_us, seq, status, intent FROM receipts {rest}", parameters)  # noqa: S608 - constants
            return [_light(log, row) for row in rows]

    def _walk_one(self, log: str, before: Place | None) -> Generator[Light]:
        where, bounds = "", ()
        if before is not None:
            seq = before.seq if log == before.log else (0 if log > before.log else 2**62)
            where, bounds = "WHERE (time_us, seq) < (?, ?)", (before.time_us, seq)
        sql = f"SELECT time_us, seq, status, intent FROM receipts {where} ORDER BY time_us DESC, seq DESC"  # noqa: S608 - constants
        with _translated(log_path(self._directory, log)):
            for row in self._databases[log].execute(sql, bounds):
                yield _light(log, row)


def _light(log: str, row: tuple[int, int, object, object]) -> Light:
    time_us, seq, status, intent = row
    return Light(Place(time_us, log, seq), str(status), None if intent is None else str(intent))


@contextlib.contextmanager
def open_logs(directory: Path) -> Generator[OpenLogs]:
    """The logs as they are now. Raises StoreUnavailable: a list without one of them would be silently short."""
    with contextlib.ExitStack() as stack:
        databases: dict[str, sqlite3.Connection] = {}
        for log in log_ids(directory):
            path = log_path(directory, log)
            with _translated(path):
                databases[log] = stack.enter_context(open_for_reading(path))
                check_format(path, *databases[log].execute(SELECT_FORMAT).fetchone())
        yield OpenLogs(directory, databases)


@contextlib.contextmanager
def _translated(path: Path) -> Generator[None]:
    try:
        yield
    except sqlite3.Error as error:
        raise store_failure(path, error) from error


class ReceiptList:
    """The receipts that one principal may see; with None, all. Safe to use from several threads: each page opens the logs anew."""

    def __init__(self, directory: Path, principal: str | None, *, read: int = READ, searched: int = SEARCHED) -> None:
        self._directory = directory
        self._principal = principal
        self._read = read
        self._own = _Own(principal, searched) if principal is not None else None

    def page(self, only: ReceiptFilter, limit: int, before: str | None) -> ReceiptPage:
        """At most `limit` receipts that the filter admits. Raises ReceiptNotFound and StoreUnavailable."""
        with open_logs(self._directory) as logs:
            place = None
            if before is not None:
                place = logs.find(before)
                if place is None or not self.may_see(logs.envelope(place)):
                    raise not_found(before)
            if self._own is None:
                return self._collect(logs, logs.walk(place), only, limit, still_searching=False)
            whole = self._own.search_on(logs)
            return self._collect(logs, self._own.after(place), only, limit, still_searching=not whole)

    def may_see(self, envelope: bytes) -> bool:
        """Whether this principal may."""
        if self._principal is None:
            return True
        return text(predicate_of(envelope).get("principal")) == self._principal

    def _collect(self, logs: OpenLogs, lights: Iterator[Light], only: ReceiptFilter, limit: int, *, still_searching: bool) -> ReceiptPage:
        rows: list[ReceiptRow] = []
        looked_at: int = 0
        read: int = 0
        last: Place | None = None
        before: str | None = None
        for light in lights:
            if len(rows) == limit or looked_at >= LOOKED_AT or read >= self._read:
                before = last.id if last is not None else None
                break
            looked_at, last = looked_at + 1, light.place
            if not only.may_admit(light):
                continue
            read += 1
            envelope = logs.envelope(light.place)
            predicate = predicate_of(envelope)
            if only.admits(predicate) and self.may_see(envelope):
                rows.append(_row(light, predicate))
        return ReceiptPage(rows=tuple(rows), before=before, looked_at=looked_at, still_searching=still_searching)


class _Own:
    """The places of one principal's receipts, found from the newest to the oldest, a part with each call, and remembered.

    Each log is searched by its numbers, which grow whatever the clock does. What is older than the oldest receipt that was looked at in
    a log that is not searched through is not shown, so that no page leaves out what is found later.
    """

    def __init__(self, principal: str, at_most: int) -> None:
        self._at_most = at_most
        self._mark = b'"principal":' + canonical_bytes(principal)
        self._found: dict[Place, Light] = {}
        self._searched: dict[str, tuple[Place, int]] = {}
        """By log: the oldest that was looked at, and the newest number."""
        self._lock = threading.Lock()

    def search_on(self, logs: OpenLogs) -> bool:
        """Look through so many more receipts at most; whether that was all of them."""
        with self._lock:
            left = self._at_most
            for log in logs.ids:
                left -= self._search_newer(logs, log, left)
            while left and (unfinished := self._unfinished()):
                oldest = max(unfinished)  # the one that keeps most from being shown
                left -= self._search_older(logs, oldest, min(left, AT_ONCE))
            return left > 0

    def after(self, place: Place | None) -> Iterator[Light]:
        """Its receipts after this place, as far as the search came."""
        with self._lock:
            horizon = max(self._unfinished(), default=None)
            found = [p for p in self._found if (place is None or p < place) and (horizon is None or p >= horizon)]
        return (self._found[p] for p in sorted(found, reverse=True))

    def _unfinished(self) -> list[Place]:
        return [oldest for oldest, _ in self._searched.values() if oldest.seq > 1]

    def _search_newer(self, logs: OpenLogs, log: str, limit: int) -> int:
        """What came since the last time, oldest first; of a new log its newest receipt. How many were looked at."""
        searched = self._searched.get(log)
        lights = logs.newest_of(log) if searched is None else logs.range_of(log, searched[1], limit)
        for light in lights:
            self._look(logs, light)
            oldest = searched[0] if searched is not None else light.place
            self._searched[log] = oldest, light.place.seq
        return min(limit, len(lights))

    def _search_older(self, logs: OpenLogs, oldest: Place, limit: int) -> int:
        """What came before; how many were looked at."""
        newest = self._searched[oldest.log][1]
        lights = logs.range_of(oldest.log, oldest.seq, -limit)
        for light in lights:
            self._look(logs, light)
            self._searched[oldest.log] = light.place, newest
        if not lights:  # rows are missing, which verification tells
            self._searched[oldest.log] = oldest._replace(seq=1), newest
        return max(1, len(lights))

    def _look(self, logs: OpenLogs, light: Light) -> None:
        if self._mark in raw_payload(logs.envelope(light.place)):
            self._found[light.place] = light


def raw_payload(envelope: bytes) -> bytes:
    """The payload's bytes, read without checking anything else; empty when it is not where we put it."""
    head, mark, rest = envelope.partition(b'"payload":"')
    try:
        return base64.b64decode(rest[: rest.index(b'"')]) if mark and len(head) <= 1 else b""
    except (ValueError, binascii.Error):
        return b""


def predicate_of(envelope: bytes) -> Mapping[str, Any]:
    """The predicate of a stored envelope; empty when it cannot be read, which verification then says."""
    return members(statement_of(envelope).get("predicate"))


def statement_of(envelope: bytes) -> Mapping[str, Any]:
    """The statement of a stored envelope; empty when it cannot be read."""
    try:
        return members(json.loads(parse_envelope(envelope).payload))
    except (ReceiptError, ValueError, RecursionError):
        return {}


def _row(light: Light, predicate: Mapping[str, Any]) -> ReceiptRow:
    used = number(members(predicate.get("budget")).get("used_us"))
    return ReceiptRow(
        id=light.place.id,
        seq=light.place.seq,
        log=light.place.log,
        time_us=light.place.time_us,
        status=light.status,
        intent=light.intent,
        operation=text(predicate.get("operation")) or (light.status if predicate else UNREADABLE),
        principal=text(predicate.get("principal")) or None,
        used_ms=used / 1000 if used is not None else None,
        items=len(listed(predicate.get("items")) or listed(predicate.get("fetched"))),
    )


def count_all(directory: Path, known: dict[str, tuple[tuple[int, ...], int]]) -> int:
    """How many receipts the logs hold. `known` remembers a log's count for as long as its files do not change."""
    whole = 0
    for log in log_ids(directory):
        path = log_path(directory, log)
        sign = _sign(path)
        if log not in known or known[log][0] != sign:
            with _translated(path), open_for_reading(path) as database:
                known[log] = sign, database.execute("SELECT coalesce(max(seq), 0) FROM receipts").fetchone()[0]
        whole += known[log][1]
    return whole


def count_there(directory: Path, receipt_ids: Iterable[str]) -> int:
    """How many of these receipts are in the logs."""
    wanted: dict[str, set[int]] = {}
    for receipt_id in receipt_ids:
        log, _, seq = receipt_id.partition(":")
        if seq.isdecimal():
            wanted.setdefault(log, set()).add(int(seq))
    there = 0
    for log in log_ids(directory):
        if numbers := wanted.get(log):
            path = log_path(directory, log)
            with _translated(path), open_for_reading(path) as database:
                there += database.execute(
                    "SELECT count(*) FROM json_each(?) AS w JOIN receipts AS r ON r.seq = w.value", (json.dumps(sorted(numbers)),)
                ).fetchone()[0]
    return there


def _sign(path: Path) -> tuple[int, ...]:
    found: list[int] = []
    for name in (path.name, f"{path.name}-wal"):
        with contextlib.suppress(FileNotFoundError):
            state = path.with_name(name).stat()
            found += [state.st_size, state.st_mtime_ns]
    return tuple(found)
