"""The statement inside an envelope: its constant names, its place in a log, and the strict reading of what a verifier needs.

An in-toto Statement v1 (https://in-toto.io/Statement/v1) with our own predicate. Building it is `body.py`'s; this file is shared by
signing, storing and verifying.
"""

from __future__ import annotations

import base64
import binascii
import json
from dataclasses import dataclass
from typing import Any, cast

from search_router.canonical import MAX_INTEGER, Json, NotPlain, canonical_bytes, canonical_plain, sha256_hex
from search_router.errors import ReceiptError
from search_router.receipts.envelope import has_huge_integer, parse_likely_plain, parse_plain_json, parse_strict_json

STATEMENT_TYPE = "https://in-toto.io/Statement/v1"
PREDICATE_TYPE = "https://search-router.dev/search-receipt/v1"
ROTATION_TYPE = "https://search-router.dev/key-rotation/v1"
ROTATED = "rotated"
"""What the status column says of a key rotation; no search has this status."""
RESPONSE = "response"
REQUEST = "request"


@dataclass(frozen=True, slots=True)
class Position:
    """Where in which log a receipt stands. The store gives it: `prev` is the SHA-256 of the previous payload in the log."""

    log: str
    seq: int
    prev: str
    time_us: int
    nonce: str


@dataclass(frozen=True, slots=True)
class Digest:
    """How a JSON value was turned into bytes (`jcs` or `ascii-json`, see `canonical.tolerant_digest`) and their SHA-256.

    `opaque` stands for a rejected request that cannot be encoded at all; it binds nothing.
    """

    method: str
    sha256: str


@dataclass(frozen=True, slots=True)
class KeyRotation:
    """From which key (its id) to which (its id and its 32 raw bytes) a log's signatures go over."""

    old: str
    new: str
    public: bytes


@dataclass(frozen=True, slots=True)
class StatementFacts:
    """What a statement says of itself, as far as the log's columns and its checks need it. A key rotation has no request and response."""

    position: Position
    status: str
    intent: str | None
    question_digest: str | None
    request: Digest | None
    response: Digest | None
    rotation: KeyRotation | None = None


def first_prev(log: str) -> str:
    """The `prev` of a log's first receipt: SHA-256 of the log id."""
    return sha256_hex(log.encode("ascii"))


def parse_own_statement(payload: bytes) -> Json:
    """Decode a payload that this process made, and refuse the numbers that two readers may print in two ways.

    Raises:
        ReceiptError: `receipt-with-float` or `receipt-with-huge-integer`: a defect of ours, found before anything is signed.
    """
    decoder = _OWN_DECODER if has_huge_integer(payload) else _OWN_DECODER_OF_SMALL_INTEGERS
    return decoder.decode(payload.decode("utf-8"))


def _refuse_float(text: str) -> float:
    raise ReceiptError(f"The receipt has a float: {text}.", remedy="Give integer microseconds or per-mille.", code="receipt-with-float")


def _bounded_integer(text: str) -> int:
    number = int(text)
    if abs(number) > MAX_INTEGER:
        raise ReceiptError(f"The receipt has an integer beyond 2**53 - 1: {text}.", code="receipt-with-huge-integer")
    return number


_OWN_DECODER_OF_SMALL_INTEGERS = json.JSONDecoder(parse_float=_refuse_float, parse_constant=_refuse_float)
_OWN_DECODER = json.JSONDecoder(parse_float=_refuse_float, parse_int=_bounded_integer, parse_constant=_refuse_float)


def read_statement(payload: bytes) -> StatementFacts:
    """Read a payload that is a search receipt in canonical form.

    Raises:
        ValueError: not JSON, not the RFC 8785 bytes of itself (so also floats such as 1.0, unsafe integers, lone surrogates), or not a
            search receipt.
    """
    likely = parse_likely_plain(payload)
    if likely is not None and canonical_plain(likely) == payload:
        return statement_facts(likely)
    try:
        # What this house writes is plain, and to see that while reading is faster than to walk through it again.
        statement = parse_plain_json(payload)
        written = canonical_plain(statement)
    except NotPlain:
        statement = parse_strict_json(payload)
        written = canonical_bytes(statement)
    if written != payload:
        raise ValueError("the payload is not in canonical form (RFC 8785)")
    return statement_facts(statement)


def statement_facts(statement: Json) -> StatementFacts:
    """The facts of a decoded statement; ValueError names the member that is missing or of the wrong type."""
    top = _object(statement, "the statement")
    if top.get("_type") == STATEMENT_TYPE and top.get("predicateType") == ROTATION_TYPE:
        return _rotation_facts(top)
    if top.get("_type") != STATEMENT_TYPE or top.get("predicateType") != PREDICATE_TYPE:
        raise ValueError(f"not an in-toto statement with predicate {PREDICATE_TYPE}")
    predicate = _object(top.get("predicate"), "predicate")
    subjects = _subjects(top.get("subject"))
    classification = predicate.get("classification")
    question = predicate.get("question")
    return StatementFacts(
        position=_position(predicate),
        status=_text(predicate, "status"),
        intent=None if classification is None else _text(_object(classification, "classification"), "intent"),
        question_digest=None if question is None else _text(_object(question, "question"), "digest"),
        request=Digest(_text(_object(predicate.get("request"), "request"), "method"), subjects[REQUEST]),
        response=Digest(_text(_object(predicate.get("response"), "response"), "method"), subjects[RESPONSE]),
    )


def rotation_statement(rotation: KeyRotation, position: Position) -> bytes:
    """The canonical bytes of a key rotation, which the old and the new key both sign."""
    place = {"log": position.log, "seq": position.seq, "prev": position.prev, "time_us": position.time_us, "nonce": position.nonce}
    key = {"keyid": rotation.new, "public": base64.b64encode(rotation.public).decode("ascii")}
    return canonical_bytes(
        {
            "_type": STATEMENT_TYPE,
            "subject": [{"name": "key", "digest": {"sha256": rotation.new}}],
            "predicateType": ROTATION_TYPE,
            "predicate": place | {"operation": "rotate", "old_keyid": rotation.old, "new_key": key},
        }
    )


def _rotation_facts(top: dict[str, Any]) -> StatementFacts:
    predicate = _object(top.get("predicate"), "predicate")
    key = _object(predicate.get("new_key"), "new_key")
    try:
        public = base64.b64decode(_text(key, "public"), validate=True)
    except (binascii.Error, UnicodeEncodeError) as error:
        raise ValueError("public is not base64") from error
    rotation = KeyRotation(old=_text(predicate, "old_keyid"), new=_text(key, "keyid"), public=public)
    # Written again and compared, so that nothing in it can be said in two ways, and its id is that of its key.
    if len(public) != 32 or sha256_hex(public) != rotation.new or rotation.new == rotation.old:
        raise ValueError("the new key of the rotation is not the key that its id names")
    position = _position(predicate)
    if canonical_bytes(top) != rotation_statement(rotation, position):
        raise ValueError("not exactly the members of a key rotation")
    return StatementFacts(position, ROTATED, None, None, None, None, rotation)


def _position(predicate: dict[str, Any]) -> Position:
    return Position(
        log=_text(predicate, "log"),
        seq=_integer(predicate, "seq"),
        prev=_text(predicate, "prev"),
        time_us=_integer(predicate, "time_us"),
        nonce=_text(predicate, "nonce"),
    )


def _subjects(value: object) -> dict[str, str]:
    if not isinstance(value, list):
        raise ValueError("subject is not a list")
    found: dict[str, str] = {}
    for entry in cast("list[object]", value):
        subject = _object(entry, "a subject")
        found[_text(subject, "name")] = _text(_object(subject.get("digest"), "a subject's digest"), "sha256")
    if found.keys() != {RESPONSE, REQUEST} or len(cast("list[object]", value)) != len(found):
        raise ValueError("the subjects are not exactly one response and one request")
    return found


def _object(value: object, what: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise ValueError(f"{what} is not a JSON object")
    return cast("dict[str, Any]", value)


def _text(members: dict[str, Any], name: str) -> str:
    value = members.get(name)
    if not isinstance(value, str):
        raise ValueError(f"{name} is not a string")
    return value


def _integer(members: dict[str, Any], name: str) -> int:
    value = members.get(name)
    if type(value) is not int or value < 0:
        raise ValueError(f"{name} is not a non-negative integer")
    return value
