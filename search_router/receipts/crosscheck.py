"""Clients' own logs against the store: has every answer a receipt, is it still the one that the client got, and is it about this answer?

What a client got is the cheapest outside witness: it catches a cut tail, a rebuilt log and a fork as far as its answers reach.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

from search_router.canonical import Json
from search_router.errors import ReceiptError, StoreUnavailable
from search_router.receipts.envelope import parse_envelope, parse_strict_json
from search_router.receipts.log import LOG_ID, check_schema, log_path, open_for_reading
from search_router.receipts.trust import Trust
from search_router.receipts.verify import VerdictKind, judge_digest, verify_envelope, worst

MAX_REASONS = 20
ABOUT_THE_ANSWER = ("receipt", "id")
"""Members of a printed answer that are not part of the response: its receipt, and its number in a session of many."""


@dataclass(slots=True)
class CrossCheck:
    """How many answers the client logged, and what became of their receipts.

    `found`: in the store, as the client got it. `without`: the answer names no receipt. `missing`: the store has none of that id.
    `altered`: the store's is another one. `mismatched`: the receipt is about another answer. `faulty`: the client's envelope is wrong in
    itself or could not be checked. `unreadable`: lines that are no answers. `reasons` holds at most 20 sentences, each with its line.
    """

    answers: int = 0
    found: int = 0
    without: int = 0
    missing: int = 0
    altered: int = 0
    mismatched: int = 0
    faulty: int = 0
    unreadable: int = 0
    kinds: set[VerdictKind] = field(default_factory=set[VerdictKind])
    reasons: list[str] = field(default_factory=list[str])

    @property
    def emission_pm(self) -> int:
        """Answers with a receipt in the store, per mille of all answers, rounded down; 1000 is all."""
        return self.found * 1000 // self.answers if self.answers else 0

    @property
    def kind(self) -> VerdictKind:
        """No answers at all could not be checked."""
        return worst(self.kinds, VerdictKind.VALID if self.answers else VerdictKind.UNCHECKED)

    def say(self, kind: VerdictKind, line: int, reason: str) -> None:
        self.kinds.add(kind)
        if len(self.reasons) < MAX_REASONS:
            self.reasons.append(f"Line {line}: {reason}")


def cross_check(directory: Path, lines: Iterable[bytes], trust: Trust) -> CrossCheck:
    """Join a client's log, a JSON object a line, with the logs of a directory.

    A line is an answer as `search --json` prints it; or `{"response": …, "receipt": …}`. A receipt is its id, or an object with `id` and,
    to compare, `envelope`. A line without a receipt is an answer that was not logged.
    """
    result = CrossCheck()
    with _Store(directory) as store:
        for number, line in enumerate(lines, 1):
            if line.strip():
                _check_line(result, store, number, line, trust)
    return result


def _check_line(result: CrossCheck, store: _Store, number: int, line: bytes, trust: Trust) -> None:
    try:
        receipt_id, envelope, response = _read_line(line)
    except ValueError as error:
        result.unreadable += 1
        result.say(VerdictKind.UNCHECKED, number, f"not an answer: {error}.")
        return
    result.answers += 1
    if receipt_id is None:
        result.without += 1
        result.say(VerdictKind.INVALID, number, "an answer without a receipt.")
        return
    try:
        stored = store.envelope(receipt_id)
    except (sqlite3.Error, StoreUnavailable) as error:
        result.say(VerdictKind.UNCHECKED, number, f"the log of receipt {receipt_id} cannot be read: {error}.")
        return
    if stored is None:
        result.missing += 1
        result.say(VerdictKind.INVALID, number, f"the store has no receipt {receipt_id}: cut off, deleted, or another store's.")
    elif envelope is not None and not _is_same(envelope, stored):
        result.altered += 1
        result.say(VerdictKind.INVALID, number, f"receipt {receipt_id} in the store is not the one that the client got: rebuilt or forked.")
    else:
        result.found += 1
    _judge(result, number, receipt_id, envelope if envelope is not None else stored, response, trust)


def _judge(
    result: CrossCheck, number: int, receipt_id: str, envelope: bytes | Mapping[str, Any] | None, response: Json | None, trust: Trust
) -> None:
    if envelope is None:
        return
    verdict = verify_envelope(envelope, trust)
    if verdict.kind is not VerdictKind.VALID:
        result.faulty += 1
        result.say(verdict.kind, number, f"receipt {receipt_id}: {' '.join(verdict.reasons)}")
    elif verdict.facts is not None and receipt_id != f"{verdict.facts.position.log}:{verdict.facts.position.seq}":
        result.faulty += 1
        result.say(VerdictKind.INVALID, number, f"the envelope is not receipt {receipt_id}'s.")
    elif verdict.facts is not None and judge_digest("response", response, verdict.facts.response):
        result.mismatched += 1
        result.say(VerdictKind.INVALID, number, f"the answer is not the one that receipt {receipt_id} is about.")


def _read_line(line: bytes) -> tuple[str | None, Mapping[str, Any] | None, Json | None]:
    """Receipt id, envelope and response, as far as the line has them."""
    members = _mapping(parse_strict_json(line), "the line")
    receipt = members.get("receipt")
    response = members.get("response")
    if response is None:
        response = {name: value for name, value in members.items() if name not in ABOUT_THE_ANSWER} or None
    if receipt is None or isinstance(receipt, str):
        return receipt, None, response
    named = _mapping(receipt, "its receipt")
    receipt_id, envelope = named.get("id"), named.get("envelope")
    if not isinstance(receipt_id, str):
        raise ValueError("its receipt has no id")
    return receipt_id, None if envelope is None else _mapping(envelope, "its envelope"), response


def _mapping(value: object, what: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise ValueError(f"{what} is not a JSON object")
    return cast("dict[str, Any]", value)


def _is_same(envelope: Mapping[str, Any], stored: bytes) -> bool:
    try:
        return parse_envelope(envelope) == parse_envelope(stored)
    except ReceiptError:
        return json.dumps(envelope, sort_keys=True).encode() == stored


class _Store:
    """Looks envelopes up in the logs of a directory; each log is opened once."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._open = ExitStack()
        self._logs: dict[str, sqlite3.Connection] = {}

    def __enter__(self) -> _Store:
        return self

    def __exit__(self, *_: object) -> None:
        self._open.close()

    def envelope(self, receipt_id: str) -> bytes | None:
        log, _, number = receipt_id.partition(":")
        if not LOG_ID.fullmatch(log) or not (number.isascii() and number.isdigit() and len(number) < 19):
            return None
        database = self._logs.get(log)
        if database is None:
            if not log_path(self._directory, log).exists():
                return None
            path = log_path(self._directory, log)
            database = self._open.enter_context(open_for_reading(path))
            check_schema(path, database)
            self._logs[log] = database
        found = database.execute("SELECT CAST(envelope AS BLOB) FROM receipts WHERE seq = ?", (int(number),)).fetchone()
        return found[0] if found else None
