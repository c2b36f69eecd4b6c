"""Envelopes are what other people's tools accept, and our reader accepts nothing else."""

from __future__ import annotations

import base64
import json
import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from hypothesis import given
from hypothesis import strategies as st
from securesystemslib.dsse import Envelope as OtherEnvelope
from securesystemslib.exceptions import VerificationError
from securesystemslib.signer import SSlibKey  # pyright: ignore[reportPrivateImportUsage] - where its documentation imports it from

from search_router.errors import ReceiptError
from search_router.receipts.envelope import (
    PAYLOAD_TYPE,
    Envelope,
    cosign_envelope,
    parse_envelope,
    pre_authentication_encoding,
    sign_envelope,
)
from search_router.receipts.keys import SigningKey, load_or_create_key, public_key_path

KEY = SigningKey.of(Ed25519PrivateKey.generate())
PAYLOAD = '{"_type":"https://in-toto.io/Statement/v1","note":"é"}'.encode()
SIGNED = sign_envelope(PAYLOAD, KEY)


def test_the_signed_bytes_are_those_of_the_specification() -> None:
    assert pre_authentication_encoding(b"hello world", "http://example.com/HelloWorld") == (
        b"DSSEv1 29 http://example.com/HelloWorld 11 hello world"
    )


@given(st.binary())
def test_what_is_written_is_read_back(payload: bytes) -> None:
    envelope = sign_envelope(payload, KEY)

    assert parse_envelope(envelope.to_bytes()) == envelope == parse_envelope(envelope.to_dict())
    assert json.loads(envelope.to_bytes()) == envelope.to_dict()


def read_or_refused(data: bytes | dict[str, Any]) -> Envelope | None:
    try:
        return parse_envelope(data)
    except ReceiptError:
        return None


@given(st.data(), st.binary(max_size=40), st.booleans())
def test_with_one_changed_byte_it_is_read_as_the_strict_reader_reads_it_or_refused(
    data: st.DataObject, payload: bytes, cosigned: bool
) -> None:
    written = (cosign_envelope(payload, KEY, KEY) if cosigned else sign_envelope(payload, KEY)).to_bytes()
    place = data.draw(st.integers(0, len(written) - 1))
    changed = written[:place] + bytes([data.draw(st.integers(0, 255))]) + written[place + 1 :]

    try:
        strictly = read_or_refused(json.loads(changed))
    except ValueError:
        strictly = None

    assert read_or_refused(changed) == strictly


@pytest.mark.parametrize("padding", [b"=", b"\n", b" ", b"=="])
def test_base64_with_something_more_in_it_is_refused(padding: bytes) -> None:
    written = SIGNED.to_bytes()
    end = written.index(b'","payloadType')

    for place in (12, 40, end):
        assert read_or_refused(written[:place] + padding + written[place:]) is None


def accepted_by_securesystemslib(envelope: dict[str, Any]) -> bool:
    key = SSlibKey(KEY.keyid, "ed25519", "ed25519", {"public": KEY.public.public_bytes_raw().hex()})
    try:
        OtherEnvelope.from_dict(json.loads(json.dumps(envelope))).verify([key], 1)
    except VerificationError:
        return False
    return True


def test_securesystemslib_accepts_an_envelope_and_refuses_an_edited_one() -> None:
    edited = SIGNED.to_dict() | {"payload": base64.b64encode(PAYLOAD + b" ").decode()}
    retyped = SIGNED.to_dict() | {"payloadType": "text/plain"}

    assert accepted_by_securesystemslib(SIGNED.to_dict())
    assert not accepted_by_securesystemslib(edited)
    assert not accepted_by_securesystemslib(retyped)


@pytest.mark.skipif(shutil.which("openssl") is None, reason="needs openssl")
def test_openssl_accepts_an_envelope_and_refuses_an_edited_one(tmp_path: Path) -> None:
    key = load_or_create_key(tmp_path / "k.pem")
    envelope = sign_envelope(PAYLOAD, key)
    (tmp_path / "sig").write_bytes(envelope.signature)

    def accepted(payload: bytes) -> bool:
        (tmp_path / "pae").write_bytes(pre_authentication_encoding(payload))
        public = str(public_key_path(tmp_path / "k.pem"))
        command = ["openssl", "pkeyutl", "-verify", "-rawin", "-pubin", "-inkey", public, "-sigfile", "sig", "-in", "pae"]
        return subprocess.run(command, cwd=tmp_path, capture_output=True, timeout=30).returncode == 0

    assert accepted(PAYLOAD)
    assert not accepted(PAYLOAD + b" ")


def edit(**changes: Any) -> bytes:
    return json.dumps(SIGNED.to_dict() | changes).encode()


def signature(**changes: Any) -> bytes:
    return edit(signatures=[SIGNED.to_dict()["signatures"][0] | changes])


BAD: dict[str, tuple[bytes, str]] = {
    "not json": (b"{", "Not a DSSE envelope"),
    "not utf-8": (b"\xff", "UTF-8"),
    "a list": (b"[]", "not a JSON object"),
    "a number": (b"1", "not a JSON object"),
    "too deep": (b"[" * 200_000, "deeply"),
    "too long": (b" " * (8 * 2**20 + 1), "longer than"),
    "a member twice": (SIGNED.to_bytes().replace(b'{"payload":', b'{"payload":"e30=","payload":'), "twice"),
    "an inner member twice": (SIGNED.to_bytes().replace(b'{"keyid":', b'{"keyid":"x","keyid":'), "twice"),
    "a further member": (edit(extra=1), "exactly the members"),
    "a missing member": (json.dumps({"payload": ""}).encode(), "exactly the members"),
    "a further signature member": (signature(cert="x"), "exactly the members"),
    "another payload type": (edit(payloadType="application/json"), PAYLOAD_TYPE),
    "payload type of another type": (edit(payloadType=None), PAYLOAD_TYPE),
    "no signature": (edit(signatures=[]), "exactly one signature"),
    "three signatures": (edit(signatures=SIGNED.to_dict()["signatures"] * 3), "exactly one signature"),
    "signatures not a list": (edit(signatures={}), "exactly one signature"),
    "signature not an object": (edit(signatures=["x"]), "not a JSON object"),
    "key id of another type": (signature(keyid=1), "keyid"),
    "key id in upper case": (signature(keyid="A" * 64), "keyid"),
    "short signature": (signature(sig="AAAA"), "3 bytes"),
    "payload of another type": (edit(payload=1), "not a string"),
    "url-safe base64": (edit(payload="-_-_"), "not base64"),
    "base64 with white space": (edit(payload="e3 0="), "not base64"),
    "base64 without padding": (edit(payload="e30"), "not base64"),
    "base64 with spare bits": (edit(payload="e31="), "not canonical base64"),
    "base64 not in ascii": (edit(payload="é"), "not base64"),
    "NaN": (edit(extra=float("nan")), "NaN is not JSON"),
    "a huge number": (b'{"payload":' + b"9" * 5000 + b"}", "Not a DSSE envelope"),
}


@pytest.mark.parametrize(("data", "reason"), BAD.values(), ids=BAD.keys())
def test_a_bad_envelope_is_refused_with_what_is_wrong(data: bytes, reason: str) -> None:
    with pytest.raises(ReceiptError, match=re.escape(reason)) as caught:
        parse_envelope(data)

    assert caught.value.code == "malformed-envelope"


@given(st.binary() | st.text().map(str.encode))
def test_any_bytes_give_an_envelope_or_the_one_error(data: bytes) -> None:
    with pytest.raises(ReceiptError):
        parse_envelope(data)


@pytest.mark.parametrize("change", [lambda e: e.payload[:-1], lambda e: e.payload + b"\n"], ids=["shorter", "longer"])
def test_the_signature_is_over_the_very_bytes(change: Callable[[Envelope], bytes]) -> None:
    assert KEY.sign(pre_authentication_encoding(change(SIGNED))) != SIGNED.signature
