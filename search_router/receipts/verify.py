"""Judges receipts and logs for people who do not trust whoever made them. Imports nothing of the router or the experts.

A verdict is one of four. `invalid`: something is wrong. `unchecked`: nothing wrong was found, and something could not be checked.
`unpinned`: all is consistent, under a key that nobody vouched for. `valid`: all is consistent, under a pinned key. A key that was only
found with the receipts is never trusted.

What signatures and the chain cannot show: a tail that was cut off, and a log that the key's owner rebuilt or forked. That takes a
checkpoint kept elsewhere, or a caller's own copy of an envelope.
"""

from __future__ import annotations

import math
import sqlite3
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any

from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from cryptography.hazmat.primitives.serialization import load_pem_public_key

from search_router.canonical import Json, tolerant_digest
from search_router.errors import KeyUnusable, ReceiptError, StoreUnavailable
from search_router.receipts.envelope import Envelope, keyid_of, parse_envelope, pre_authentication_encoding
from search_router.receipts.log import SELECT_ROWS, Head, Row, log_owner, open_for_reading, read_rows
from search_router.receipts.statement import Digest, StatementFacts, first_prev, read_statement

BATCH = 500
MAX_REASONS = 20
MAX_PUBLIC_KEY_BYTES = 16_384


class VerdictKind(StrEnum):
    """The four verdicts, worst first."""

    INVALID = "invalid"
    UNCHECKED = "unchecked"
    UNPINNED = "unpinned"
    VALID = "valid"


EXIT_CODES: Mapping[VerdictKind, int] = {
    VerdictKind.VALID: 0,
    VerdictKind.INVALID: 1,
    VerdictKind.UNCHECKED: 3,
    VerdictKind.UNPINNED: 3,
}
"""For a command line; 2 is wrong usage."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """What was found about one envelope. `reasons` says why it is not `valid`; it is empty when it is."""

    kind: VerdictKind
    reasons: tuple[str, ...] = ()
    facts: StatementFacts | None = None


@dataclass(frozen=True, slots=True)
class LogVerdict:
    """What was found about one log.

    `reasons` holds at most 20 sentences and `problems` counts all. `notes` are facts that prove nothing but should be seen, such as a clock
    that went back. `rows` were read; `head` is the last of them, to compare with a copy kept elsewhere.
    """

    kind: VerdictKind
    log: str
    rows: int
    head: Head | None
    problems: int = 0
    reasons: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Trust:
    """Whose signatures count: `pinned` are key ids that the verifying person vouches for, `keys` the public keys at hand, pinned or not."""

    pinned: frozenset[str] = frozenset()
    keys: Mapping[str, Ed25519PublicKey] = field(default_factory=dict[str, Ed25519PublicKey])

    @classmethod
    def pinning(cls, *keys: Ed25519PublicKey) -> Trust:
        """Trust exactly these keys."""
        at_hand = {keyid_of(key): key for key in keys}
        return cls(frozenset(at_hand), at_hand)

    @classmethod
    def pinning_ids(cls, keyids: Iterable[str], offered: Iterable[Ed25519PublicKey] = ()) -> Trust:
        """Trust the keys with these ids. The keys may come from anywhere, as the ids are their hashes."""
        return cls(frozenset(keyids), {keyid_of(key): key for key in offered})

    @classmethod
    def unpinned(cls, *offered: Ed25519PublicKey) -> Trust:
        """Trust nobody; check against keys that came with the receipts, for consistency only."""
        return cls(frozenset(), {keyid_of(key): key for key in offered})


def load_public_key(path: Path) -> Ed25519PublicKey:
    """An Ed25519 public key from a PEM file (SubjectPublicKeyInfo).

    Raises:
        KeyUnusable: the file cannot be read or is something else.
    """
    remedy = "Name the .pub file that lies beside the signing key."
    try:
        with path.open("rb") as file:
            pem = file.read(MAX_PUBLIC_KEY_BYTES)
        key = load_pem_public_key(pem)
    except OSError as error:
        raise KeyUnusable(f"The public key {path} cannot be read: {error.strerror or error}.", remedy=remedy) from error
    except (ValueError, UnsupportedAlgorithm) as error:
        raise KeyUnusable(f"{path} is not a public key in PEM.", remedy=remedy) from error
    if not isinstance(key, Ed25519PublicKey):
        raise KeyUnusable(f"{path} is not an Ed25519 public key.", remedy=remedy)
    return key


def verify_envelope(
    envelope: bytes | Mapping[str, Any], trust: Trust, *, request: Json | None = None, response: Json | None = None
) -> Verdict:
    """Judge one envelope: form, signature, canonical payload; and, where given, the decoded request and response against their digests.

    The response is the answer's JSON without its `receipt`. Nothing is raised for a bad envelope: that is a verdict.
    """
    try:
        parsed = parse_envelope(envelope)
    except ReceiptError as error:
        return Verdict(VerdictKind.INVALID, (error.message,))
    kind, reasons = _judge_signature(parsed, trust)
    facts: StatementFacts | None = None
    try:
        facts = read_statement(parsed.payload)
    except ValueError as error:
        kind, reasons = VerdictKind.INVALID, [*reasons, f"Payload: {error}."]
    else:
        wrong = [*_judge_digest("request", request, facts.request), *_judge_digest("response", response, facts.response)]
        if wrong:
            kind, reasons = VerdictKind.INVALID, [*reasons, *wrong]
    return Verdict(kind, tuple(reasons), facts)


def verify_log(path: Path, trust: Trust) -> LogVerdict:
    """Judge a whole log file: every envelope, one unbroken chain from the first receipt, and columns that say what the envelopes say.

    Reads a bounded number of rows at a time, also while another process appends.
    """
    audit = _LogAudit(path.name.removesuffix(".sqlite"), trust)
    try:
        audit.expect_owner(log_owner(path))
        with open_for_reading(path) as database:
            last = -math.inf
            while rows := read_rows(database, f"{SELECT_ROWS} WHERE seq > ? ORDER BY seq LIMIT ?", (last, BATCH)):
                for row in rows:
                    audit.add(row)
                last = rows[-1].seq
    except StoreUnavailable as error:
        audit.cannot_check(error.message)
    except (sqlite3.Error, TypeError) as error:
        audit.cannot_check(f"The file cannot be read after receipt {audit.head.seq}: {error}.")
    return audit.verdict()


class _LogAudit:
    """Goes through the rows of one log in order and collects what is wrong."""

    def __init__(self, log: str, trust: Trust) -> None:
        self._log = log
        self._trust = trust
        self._kinds: set[VerdictKind] = set()
        self._reasons: list[str] = []
        self._problems = 0
        self._notes: list[str] = []
        self._rows = 0
        self._owner: str | None = None
        self._time_us = 0
        self.head = Head(0, first_prev(log))

    def expect_owner(self, keyid: str) -> None:
        self._owner = keyid
        if self._trust.pinned and keyid not in self._trust.pinned:
            self._find(VerdictKind.INVALID, f"The log was made for key {keyid}, which is not pinned.")

    def add(self, row: Row) -> None:
        self._rows += 1
        where = f"Receipt {row.seq}"
        verdict = verify_envelope(row.envelope, self._trust)
        if verdict.kind is VerdictKind.INVALID:
            self._find(verdict.kind, f"{where}: {' '.join(verdict.reasons)}")
        else:
            self._say_once(verdict.kind, verdict.reasons)
        if row.seq != self.head.seq + 1:
            self._find(VerdictKind.INVALID, f"{where} stands after receipt {self.head.seq}: the numbers have a gap.")
        if row.prev != self.head.hash:
            self._find(VerdictKind.INVALID, f"{where} does not follow from receipt {self.head.seq}: the chain is broken.")
        if row.keyid != self._owner:
            self._find(VerdictKind.INVALID, f"{where} is signed with key {row.keyid}, and the log was made for {self._owner}.")
        if verdict.facts is not None:
            self._compare(row, verdict.facts)
        self.head = Head(row.seq, row.hash)

    def _compare(self, row: Row, facts: StatementFacts) -> None:
        if facts.position.log != self._log:
            self._find(VerdictKind.INVALID, f"Receipt {row.seq} says that it belongs to log {facts.position.log}.")
        if Row.of(facts, parse_envelope(row.envelope)) != row:
            self._find(VerdictKind.INVALID, f"Receipt {row.seq}: the columns of the log differ from its envelope.")
        if facts.position.time_us < self._time_us:
            back = self._time_us - facts.position.time_us
            if len(self._notes) < MAX_REASONS:
                self._notes.append(f"Between receipts {row.seq - 1} and {row.seq} the clock went back by {back} us.")
        self._time_us = facts.position.time_us

    def _say_once(self, kind: VerdictKind, reasons: tuple[str, ...]) -> None:
        self._kinds.add(kind)
        self._reasons += [reason for reason in reasons if reason not in self._reasons and len(self._reasons) < MAX_REASONS]

    def cannot_check(self, why: str) -> None:
        self._find(VerdictKind.UNCHECKED, why)

    def _find(self, kind: VerdictKind, reason: str) -> None:
        self._kinds.add(kind)
        self._problems += 1
        if len(self._reasons) < MAX_REASONS:
            self._reasons.append(reason)

    def verdict(self) -> LogVerdict:
        kind = next(
            (kind for kind in VerdictKind if kind in self._kinds), VerdictKind.VALID if self._trust.pinned else VerdictKind.UNPINNED
        )
        head = self.head if self._rows else None
        return LogVerdict(kind, self._log, self._rows, head, self._problems, tuple(self._reasons), tuple(self._notes))


def _judge_signature(envelope: Envelope, trust: Trust) -> tuple[VerdictKind, list[str]]:
    """The verdict on the signature alone. With pins given, another key's signature is wrong, not merely unpinned."""
    key = trust.keys.get(envelope.keyid)
    if key is None:
        if any(_signed_by(other, envelope) for other in trust.keys.values()):
            return VerdictKind.INVALID, [f"The signature is sound, but keyid {envelope.keyid} does not name the key that made it."]
        if trust.pinned and envelope.keyid not in trust.pinned:
            return VerdictKind.INVALID, [f"Signed with key {envelope.keyid}, which is not pinned."]
        return VerdictKind.UNCHECKED, [f"The public key {envelope.keyid} is not at hand, so the signature was not checked."]
    if not _signed_by(key, envelope):
        return VerdictKind.INVALID, [f"The signature is not key {envelope.keyid}'s over this payload."]
    if envelope.keyid in trust.pinned:
        return VerdictKind.VALID, []
    if trust.pinned:
        return VerdictKind.INVALID, [f"Signed with key {envelope.keyid}, which is not pinned."]
    return VerdictKind.UNPINNED, [f"Consistent under key {envelope.keyid}, but nobody vouched for that key: pin it to know who signed."]


def _signed_by(key: Ed25519PublicKey, envelope: Envelope) -> bool:
    try:
        key.verify(envelope.signature, pre_authentication_encoding(envelope.payload))
    except InvalidSignature:
        return False
    return True


def _judge_digest(what: str, value: Json | None, expected: Digest) -> list[str]:
    if value is None:
        return []
    method, sha256 = tolerant_digest(value)
    if (method, sha256) == (expected.method, expected.sha256):
        return []
    return [f"The {what} is not the one in the receipt: its digest is {sha256} ({method}), not {expected.sha256} ({expected.method})."]
