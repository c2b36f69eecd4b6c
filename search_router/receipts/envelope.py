"""The DSSE v1 envelope: one payload, one Ed25519 signature (a key rotation has two), and the strict reading of it.

Source: https://github.com/secure-systems-lab/dsse/blob/v1.0.0/protocol.md and envelope.md. This file is the format that signing and
verifying share; it signs nothing and judges no signature.
"""

from __future__ import annotations

import base64
import binascii
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol, cast

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

from search_router.canonical import MAX_INTEGER, Json, NotPlain, sha256_hex
from search_router.errors import ReceiptError

PAYLOAD_TYPE = "application/vnd.in-toto+json"
MAX_ENVELOPE_BYTES = 8 * 2**20
SIGNATURE_BYTES = 64

_KEYID = re.compile(r"[0-9a-f]{64}")
_OWN_BEGINNING = b'{"payload":"'
_OWN_SIGNATURE = rb'\{"keyid":"([0-9a-f]{64})","sig":"([A-Za-z0-9+/]{86}==)"\}'
_OWN_END = re.compile(
    rb'","payloadType":"%b","signatures":\[%b(?:,%b)?\]\}' % (re.escape(PAYLOAD_TYPE.encode()), _OWN_SIGNATURE, _OWN_SIGNATURE)
)


class Signer(Protocol):
    """What an envelope needs of a key."""

    @property
    def keyid(self) -> str: ...

    def sign(self, data: bytes) -> bytes: ...


@dataclass(frozen=True, slots=True)
class Cosignature:
    """A second key's signature over the same bytes."""

    keyid: str
    signature: bytes


@dataclass(frozen=True, slots=True)
class Envelope:
    """A signed payload. `keyid` is a hint that nothing protects; only a signature that verifies says who signed.

    `second` is the new key's signature of a key rotation; no other payload may have one.
    """

    payload: bytes
    keyid: str
    signature: bytes
    second: Cosignature | None = None

    def to_dict(self) -> dict[str, Any]:
        """The JSON object of the DSSE specification, with standard base64."""
        return json.loads(self.to_bytes())

    def to_bytes(self) -> bytes:
        """The envelope as one line of ASCII JSON; the same envelope always gives the same bytes."""
        # Every value is base64, hex or a constant, so nothing needs escaping and the members already stand in canonical order.
        return b'{"payload":"%b","payloadType":"%b","signatures":[{"keyid":"%b","sig":"%b"}%b]}' % (
            base64.b64encode(self.payload),
            PAYLOAD_TYPE.encode("ascii"),
            self.keyid.encode("ascii"),
            base64.b64encode(self.signature),
            b"" if self.second is None else b',{"keyid":"%b","sig":"%b"}' % _encoded(self.second),
        )


def _encoded(second: Cosignature) -> tuple[bytes, bytes]:
    return second.keyid.encode("ascii"), base64.b64encode(second.signature)


def keyid_of(public: Ed25519PublicKey) -> str:
    """SHA-256 (hex) of the raw 32-byte public key."""
    return sha256_hex(public.public_bytes_raw())


def pre_authentication_encoding(payload: bytes, payload_type: str = PAYLOAD_TYPE) -> bytes:
    """The bytes that are signed: PAE(type, body) of DSSE v1."""
    kind = payload_type.encode("utf-8")
    return b"DSSEv1 %d %b %d %b" % (len(kind), kind, len(payload), payload)


def sign_envelope(payload: bytes, key: Signer) -> Envelope:
    """Sign the very bytes of `payload`."""
    return Envelope(payload=payload, keyid=key.keyid, signature=key.sign(pre_authentication_encoding(payload)))


def cosign_envelope(payload: bytes, key: Signer, second: Signer) -> Envelope:
    """Sign the very bytes of `payload` with both keys."""
    signed = pre_authentication_encoding(payload)
    return Envelope(payload, key.keyid, key.sign(signed), Cosignature(second.keyid, second.sign(signed)))


def parse_envelope(data: bytes | Mapping[str, Any]) -> Envelope:
    """Read an envelope and refuse everything that two readers could read differently.

    Refused: duplicate and unknown members, other payload types, no or more than two signatures, base64 that is not the one
    standard encoding of its bytes. A mapping was parsed by someone else, so duplicate members can no longer be seen in it.

    Raises:
        ReceiptError: `malformed-envelope`, with what is wrong.
    """
    if isinstance(data, Mapping):
        members: Json = dict(data)
    elif (own := _parse_own_form(data)) is not None:
        return own
    else:
        try:
            members = parse_strict_json(data)
        except ValueError as error:
            raise _malformed(str(error)) from error
    members = _exactly(members, {"payload", "payloadType", "signatures"}, "the envelope")
    if members["payloadType"] != PAYLOAD_TYPE:
        raise _malformed(f"payloadType is not {PAYLOAD_TYPE}")
    signatures = members["signatures"]
    if not isinstance(signatures, list) or not 1 <= len(cast("list[object]", signatures)) <= 2:
        raise _malformed("there must be exactly one signature, or two of a key rotation")
    first, *others = [_parse_signature(signature) for signature in cast("list[object]", signatures)]
    second = others[0] if others else None
    return Envelope(_strict_base64(members["payload"], "payload"), first.keyid, first.signature, second)


def _parse_own_form(data: bytes) -> Envelope | None:
    """An envelope in the very form that `to_bytes` writes, read in half the time; None for any other, which the strict reader judges."""
    end = data.find(b'"', len(_OWN_BEGINNING))
    signatures = _OWN_END.fullmatch(data, end) if end > 0 and len(data) <= MAX_ENVELOPE_BYTES else None
    if signatures is None:
        return None
    keyid, signature, second_keyid, second_signature = signatures.groups()
    try:
        payload = binascii.a2b_base64(data[len(_OWN_BEGINNING) : end])
        second = Cosignature(second_keyid.decode(), binascii.a2b_base64(second_signature)) if second_keyid else None
        envelope = Envelope(payload, keyid.decode(), binascii.a2b_base64(signature), second)
    except binascii.Error:
        return None
    # What was lenient above, and the beginning that was not looked at, is made good here.
    return envelope if envelope.to_bytes() == data else None


def _parse_signature(value: object) -> Cosignature:
    signature = _exactly(value, {"keyid", "sig"}, "the signature")
    keyid = signature["keyid"]
    if not isinstance(keyid, str) or not _KEYID.fullmatch(keyid):
        raise _malformed("keyid is not 64 lower-case hexadecimal digits")
    sig = _strict_base64(signature["sig"], "sig")
    if len(sig) != SIGNATURE_BYTES:
        raise _malformed(f"sig has {len(sig)} bytes, an Ed25519 signature has {SIGNATURE_BYTES}")
    return Cosignature(keyid, sig)


def parse_strict_json(data: bytes) -> Json:
    """Decode UTF-8 JSON; duplicate member names, NaN, infinities, oversized and too deeply nested input raise ValueError."""
    return _decode(data, _STRICT_DECODER)


def _decode(data: bytes, decoder: json.JSONDecoder) -> Json:
    if len(data) > MAX_ENVELOPE_BYTES:
        raise ValueError(f"longer than {MAX_ENVELOPE_BYTES} bytes")
    try:
        return decoder.decode(data.decode("utf-8"))
    except UnicodeDecodeError as error:
        raise ValueError(f"not UTF-8 at byte {error.start}") from error
    except RecursionError as error:
        raise ValueError("nested too deeply") from error


def parse_plain_json(data: bytes) -> Json:
    """As `parse_strict_json`, for JSON that `canonical_plain` may write: names in ASCII, and integers within +-(2**53 - 1) for numbers.

    Raises NotPlain for any other, and ValueError.
    """
    return _decode(data, _PLAIN_DECODER)


def parse_likely_plain(data: bytes) -> Json | None:
    """JSON of which `canonical_plain` gives these very bytes back only if it is their RFC 8785 form; None where that cannot be told so.

    No hook is called for objects and integers, which is most of the time that reading takes. ASCII bytes that come back the same have ASCII
    names and no name twice; floats are refused, and so is whatever looks like an integer beyond 2**53 - 1.
    """
    if not data.isascii() or has_huge_integer(data):
        return None
    try:
        return _decode(data, _LIKELY_PLAIN_DECODER)
    except (NotPlain, ValueError):
        return None  # why is for the strict readers to say


def has_huge_integer(data: bytes) -> bool:
    """Whether compact JSON may hold an integer beyond 2**53 - 1; what stands in its strings may be taken for one."""
    runs = data.translate(_DIGITS_AS_ZEROS)
    at = runs.find(_LONG_RUN)
    while at >= 0:
        before = data[at - 2 : at - 1] if data[at - 1 : at] == b"-" else data[at - 1 : at]
        if before in (b":", b",", b"[", b"") and (data[at] == _NINE or runs[at + 16 : at + 17] == b"0"):
            return True
        at = runs.find(_LONG_RUN, at + 16 if (end := runs.find(b" ", at)) < 0 else end)
    return False


def _unique_plain_members(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = _unique_members(pairs)
    if not "".join(members).isascii():
        raise NotPlain
    return members


def _refuse_float(text: str) -> float:
    raise NotPlain


def _plain_integer(text: str) -> int:
    number = int(text)
    if abs(number) > MAX_INTEGER:
        raise NotPlain
    return number


def _unique_members(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) != len(pairs):
        raise ValueError("a JSON object has the same member twice")
    return members


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is not JSON")


_STRICT_DECODER = json.JSONDecoder(object_pairs_hook=_unique_members, parse_constant=_refuse_constant)
_DIGITS_AS_ZEROS = bytes(0x30 if 0x30 <= byte <= 0x39 else 0x20 for byte in range(256))
_LONG_RUN = b"0" * 16
_NINE = ord("9")
_LIKELY_PLAIN_DECODER = json.JSONDecoder(parse_constant=_refuse_constant, parse_float=_refuse_float)
_PLAIN_DECODER = json.JSONDecoder(
    object_pairs_hook=_unique_plain_members, parse_constant=_refuse_constant, parse_float=_refuse_float, parse_int=_plain_integer
)


def _exactly(value: object, names: set[str], what: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise _malformed(f"{what} is not a JSON object")
    members = cast("dict[str, Any]", value)
    if members.keys() != names:
        raise _malformed(f"{what} must have exactly the members {', '.join(sorted(names))}")
    return members


def _strict_base64(value: object, name: str) -> bytes:
    if not isinstance(value, str):
        raise _malformed(f"{name} is not a string")
    try:
        decoded = base64.b64decode(value.encode("ascii"), validate=True)
    except (UnicodeEncodeError, binascii.Error) as error:
        raise _malformed(f"{name} is not base64") from error
    # Unused bits of the last character may be anything to a lenient decoder; only zeros are the one encoding.
    if base64.b64encode(decoded).decode("ascii") != value:
        raise _malformed(f"{name} is not canonical base64")
    return decoded


def _malformed(what: str) -> ReceiptError:
    return ReceiptError(
        f"Not a DSSE envelope of a search receipt: {what}.",
        remedy="Ask for the receipt again with `search-router receipts show ID`.",
        code="malformed-envelope",
    )
