"""Judges receipts for people who do not trust whoever made them. Imports nothing of the router or the experts.

A verdict is one of four. `invalid`: something is wrong. `unchecked`: nothing wrong was found, and something could not be checked.
`unpinned`: all is consistent, under a key that nobody vouched for. `valid`: all is consistent, under a pinned key or one that a pinned key
handed over to. A key that was only found with the receipts is never trusted. `whole_log` judges logs.

What signatures and the chain cannot show: a tail that was cut off, and a log that the key's owner rebuilt or forked. That takes a
checkpoint kept elsewhere, or a caller's own copy of an envelope.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from search_router.canonical import Json, tolerant_digest
from search_router.errors import ReceiptError
from search_router.receipts.envelope import Envelope, parse_envelope
from search_router.receipts.statement import Digest, Position, StatementFacts, read_statement
from search_router.receipts.trust import Trust, is_rotation_sound, is_signature


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
    envelope: Envelope | None = None


def worst(kinds: set[VerdictKind], otherwise: VerdictKind) -> VerdictKind:
    """The worst of several verdicts."""
    return next((kind for kind in VerdictKind if kind in kinds), otherwise)


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
    wrong = list(trust.doubts)
    if facts is not None:
        wrong += _judge_second_signature(parsed, facts, trust)
        wrong += _judge_ending(parsed.keyid, facts.position, trust)
        wrong += judge_digest("request", request, facts.request) + judge_digest("response", response, facts.response)
    if wrong:
        kind, reasons = VerdictKind.INVALID, reasons + wrong
    return Verdict(kind, tuple(reasons), facts, parsed)


def _judge_signature(envelope: Envelope, trust: Trust) -> tuple[VerdictKind, list[str]]:
    """The verdict on the first signature alone. With pins given, another key's signature is wrong, not merely unpinned."""
    key = trust.keys.get(envelope.keyid)
    if key is None:
        if any(is_signature(other, envelope.signature, envelope.payload) for other in trust.keys.values()):
            return VerdictKind.INVALID, [f"The signature is sound, but keyid {envelope.keyid} does not name the key that made it."]
        if trust.pinned and envelope.keyid not in trust.pinned:
            return VerdictKind.INVALID, [f"Signed with key {envelope.keyid}, which is not pinned."]
        return VerdictKind.UNCHECKED, [f"The public key {envelope.keyid} is not at hand, so the signature was not checked."]
    if not is_signature(key, envelope.signature, envelope.payload):
        return VerdictKind.INVALID, [f"The signature is not key {envelope.keyid}'s over this payload."]
    if trust.vouches(envelope.keyid):
        return VerdictKind.VALID, []
    if trust.pinned:
        return VerdictKind.INVALID, [f"Signed with key {envelope.keyid}, which is not pinned and was not handed over to."]
    return VerdictKind.UNPINNED, [f"Consistent under key {envelope.keyid}, but nobody vouched for that key: pin it to know who signed."]


def _judge_second_signature(envelope: Envelope, facts: StatementFacts, trust: Trust) -> list[str]:
    """A key rotation has the new key's signature too, and nothing else has a second one."""
    if facts.rotation is None:
        return [] if envelope.second is None else ["It has two signatures and is no key rotation."]
    old = trust.keys.get(facts.rotation.old)
    if old is None and envelope.keyid == facts.rotation.old:
        return []  # said already: the key is not at hand
    if is_rotation_sound(envelope, facts.rotation, old):
        return []
    return [f"The rotation from key {facts.rotation.old} to {facts.rotation.new} is not signed by both."]


def _judge_ending(keyid: str, place: Position, trust: Trust) -> list[str]:
    """A retired key signs nothing after the record that ended it; in a log without such a record, nothing after its time."""
    ending = trust.endings.get(keyid)
    if ending is None:
        return []
    last = ending.seqs.get(place.log)
    if place.seq > last if last is not None else place.time_us > ending.time_us:
        return [f"Signed with key {keyid} after it was retired in favour of {ending.successor}."]
    return []


def judge_digest(what: str, value: Json | None, expected: Digest | None) -> list[str]:
    """What is wrong with a decoded JSON value that should have this digest: nothing when there is no value."""
    if value is None:
        return []
    if expected is None:
        return [f"It is a key rotation and is about no {what}."]
    method, sha256 = tolerant_digest(value)
    if (method, sha256) == (expected.method, expected.sha256):
        return []
    return [f"The {what} is not the one in the receipt: its digest is {sha256} ({method}), not {expected.sha256} ({expected.method})."]
