"""Every way a receipt or a log can be wrong is a verdict with its reason, and `wrong` is never mixed up with `could not be checked`."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import anyio
import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from hypothesis import given
from hypothesis import strategies as st

from search_router.canonical import sha256_hex
from search_router.errors import KeyUnusable
from search_router.receipts.body import digest_answer, prepare_statement
from search_router.receipts.envelope import Envelope, sign_envelope
from search_router.receipts.keys import SigningKey
from search_router.receipts.log import log_path
from search_router.receipts.statement import Digest, Position, first_prev
from search_router.receipts.store import open_store
from search_router.receipts.trust import Trust, load_public_key
from search_router.receipts.verify import EXIT_CODES, VerdictKind, verify_envelope
from search_router.receipts.whole_log import verify_log
from tests.receipts.attacks import SWAP, Attack, attack, edit_envelope, edit_payload, edit_signature, rebuild, replay, sql
from tests.receipts.samples import REQUEST, Ticks, make_answer, make_context, make_payload, nonces, request_digest, sqlite_files

KEY = SigningKey.of(Ed25519PrivateKey.generate())
OTHER = SigningKey.of(Ed25519PrivateKey.generate())
PLACE = Position(log="0123456789ab", seq=1, prev=first_prev("0123456789ab"), time_us=1, nonce="b" * 32)
PAYLOAD = make_payload(KEY, make_answer(2))(PLACE)
SIGNED = sign_envelope(PAYLOAD, KEY)
PINNED = Trust.pinning(KEY.public)


def signed_text(payload: bytes) -> bytes:
    return sign_envelope(payload, KEY).to_bytes()


def flip(data: bytes, place: int = 10) -> bytes:
    return data[:place] + bytes([data[place] ^ 1]) + data[place + 1 :]


# ------------------------------------------------------------------ one envelope


def test_a_sound_receipt_under_a_pinned_key_is_valid() -> None:
    verdict = verify_envelope(SIGNED.to_bytes(), PINNED)

    assert (verdict.kind, verdict.reasons) == (VerdictKind.VALID, ())
    assert verdict.facts is not None and verdict.facts.position == PLACE
    assert verify_envelope(SIGNED.to_dict(), Trust.pinning_ids([KEY.keyid], [OTHER.public, KEY.public])).kind is VerdictKind.VALID


def test_a_key_that_came_with_the_receipt_is_not_trusted() -> None:
    verdict = verify_envelope(SIGNED.to_bytes(), Trust.unpinned(KEY.public))

    assert verdict.kind is VerdictKind.UNPINNED
    assert "nobody vouched" in verdict.reasons[0]


@pytest.mark.parametrize("trust", [Trust(), Trust.unpinned(OTHER.public), Trust.pinning_ids([KEY.keyid])])
def test_without_the_public_key_a_receipt_is_unchecked_and_not_wrong(trust: Trust) -> None:
    assert verify_envelope(SIGNED.to_bytes(), trust).kind is VerdictKind.UNCHECKED


def test_without_the_public_key_what_can_be_seen_to_be_wrong_is_wrong() -> None:
    assert verify_envelope(Envelope(PAYLOAD + b" ", KEY.keyid, SIGNED.signature).to_bytes(), Trust()).kind is VerdictKind.INVALID


def text(edit: Callable[[dict[str, Any]], object]) -> bytes:
    statement = json.loads(PAYLOAD)
    edit(statement)
    return json.dumps(statement, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()


BAD: dict[str, tuple[bytes, str]] = {
    "edited payload": (Envelope(PAYLOAD.replace(b'"answered"', b'"rejected"'), KEY.keyid, SIGNED.signature).to_bytes(), "signature"),
    "edited signature": (Envelope(PAYLOAD, KEY.keyid, flip(SIGNED.signature)).to_bytes(), "signature"),
    "edited keyid": (Envelope(PAYLOAD, "0" * 64, SIGNED.signature).to_bytes(), "does not name the key"),
    "edited payload type": (SIGNED.to_bytes().replace(b"vnd.in-toto", b"vnd.in-tota"), "payloadType"),
    "member twice in the envelope": (SIGNED.to_bytes().replace(b'{"payload":', b'{"payload":"e30=","payload":'), "twice"),
    "another key's": (sign_envelope(PAYLOAD, OTHER).to_bytes(), "not pinned"),
    "another key's under our key id": (Envelope(PAYLOAD, KEY.keyid, sign_envelope(PAYLOAD, OTHER).signature).to_bytes(), "signature"),
    "signed but a member twice": (signed_text(PAYLOAD.replace(b'"seq":1', b'"seq":1,"seq":1')), "twice"),
    "signed but 1.0": (signed_text(PAYLOAD.replace(b'"seq":1', b'"seq":1.0')), "canonical"),
    "signed but white space": (signed_text(PAYLOAD + b"\n"), "canonical"),
    "signed but members in another order": (signed_text(json.dumps(dict(reversed(json.loads(PAYLOAD).items()))).encode()), "canonical"),
    "signed but lone surrogate": (signed_text(PAYLOAD.replace(b'"s-1"', b'"\\ud800"')), "surrogate"),
    "signed but 2^53+1": (signed_text(PAYLOAD.replace(b'"seq":1', b'"seq":9007199254740993')), "exceeds"),
    "signed but escaped otherwise": (signed_text(PAYLOAD.replace(b'"s-1"', b'"\\u0073-1"')), "canonical"),
    "signed but no JSON": (signed_text(b"hello"), "Payload"),
    "signed but another predicate": (signed_text(text(lambda s: s.update(predicateType="https://example.org/x"))), "predicate"),
    "signed but a third subject": (signed_text(text(lambda s: s["subject"].append(s["subject"][0]))), "subjects"),
    "signed but no place": (signed_text(text(lambda s: s["predicate"].pop("seq"))), "seq"),
    "signed but place of another type": (signed_text(text(lambda s: s["predicate"].update(seq=True))), "seq"),
    "signed but a list": (signed_text(b"[]"), "not a JSON object"),
}


@pytest.mark.parametrize(("envelope", "reason"), BAD.values(), ids=BAD.keys())
def test_a_wrong_envelope_is_invalid_with_its_reason(envelope: bytes, reason: str) -> None:
    verdict = verify_envelope(envelope, PINNED)

    assert verdict.kind is VerdictKind.INVALID
    assert reason in " ".join(verdict.reasons)


def test_composed_and_decomposed_text_are_different_payloads() -> None:
    composed = text(lambda s: s["predicate"].update(session="é"))
    decomposed = text(lambda s: s["predicate"].update(session="e\u0301"))
    envelope = sign_envelope(composed, KEY)

    assert verify_envelope(envelope.to_bytes(), PINNED).kind is VerdictKind.VALID
    assert verify_envelope(Envelope(decomposed, KEY.keyid, envelope.signature).to_bytes(), PINNED).kind is VerdictKind.INVALID


@given(st.data())
def test_no_single_changed_byte_of_an_envelope_stays_valid(data: st.DataObject) -> None:
    written = SIGNED.to_bytes()
    place = data.draw(st.integers(0, len(written) - 1))
    byte = data.draw(st.integers(0, 255).filter(lambda byte: byte != written[place]))

    assert verify_envelope(written[:place] + bytes([byte]) + written[place + 1 :], PINNED).kind is VerdictKind.INVALID


def test_request_and_response_are_compared_with_their_digests() -> None:
    response = make_answer(2).model_dump(mode="json", by_alias=True, exclude={"receipt"})
    altered = json.loads(json.dumps(response))
    altered["evidence"][1]["path"] = "elsewhere.py"

    def kind(**values: object) -> VerdictKind:
        return verify_envelope(SIGNED.to_bytes(), PINNED, **values).kind

    assert kind(request=REQUEST, response=json.loads(json.dumps(response))) is VerdictKind.VALID
    assert kind(request=REQUEST | {"limit": 5}) is VerdictKind.INVALID
    assert kind(response=altered) is VerdictKind.INVALID
    assert "response" in verify_envelope(SIGNED.to_bytes(), PINNED, response=altered).reasons[0]
    assert verify_envelope(SIGNED.to_bytes(), Trust(), response=altered).kind is VerdictKind.INVALID


def test_a_request_without_canonical_form_is_compared_by_its_other_method() -> None:
    answer, request = make_answer(0), {"question": "\ud800"}
    bound = Digest("ascii-json", sha256_hex(b'{"question":"\\ud800"}'))
    payload = prepare_statement(answer, digest_answer(answer), bound, make_context(question=request["question"]), KEY)(PLACE)

    assert verify_envelope(signed_text(payload), PINNED, request=request).kind is VerdictKind.VALID
    assert verify_envelope(signed_text(payload), PINNED, request={"question": "\ud801"}).kind is VerdictKind.INVALID


def test_the_exit_codes_tell_wrong_from_not_checked() -> None:
    assert {kind.value: code for kind, code in EXIT_CODES.items()} == {"valid": 0, "invalid": 1, "unchecked": 3, "unpinned": 3}


# ------------------------------------------------------------------ a log


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A closed log of eight receipts."""
    directory = tmp_path_factory.mktemp("receipts")

    async def write() -> None:
        async with open_store(directory, KEY, clock=Ticks(), nonce=nonces()) as store:
            for _ in range(8):
                await store.append(make_payload(KEY))

    anyio.run(write)
    return sqlite_files(directory)[0]


@pytest.fixture
def copy(log: Path, tmp_path: Path) -> Path:
    return Path(shutil.copy(log, tmp_path))


ATTACKS: dict[str, tuple[Attack, str]] = {
    "edited payload": (edit_envelope(4, edit_payload()), "Receipt 4: The signature"),
    "edited signature": (edit_envelope(4, edit_signature), "Receipt 4: The signature"),
    "edited keyid": (edit_envelope(4, lambda e: e["signatures"][0].update(keyid="0" * 64)), "does not name the key"),
    "edited payload type": (edit_envelope(4, lambda e: e.update(payloadType="text/plain")), "payloadType"),
    "another envelope in its place": (sql("UPDATE receipts SET envelope = x'00ff' WHERE seq = 4"), "Receipt 4: Not a DSSE envelope"),
    "a number for an envelope": (sql("UPDATE receipts SET envelope = 1.5 WHERE seq = 4"), "Receipt 4: Not a DSSE envelope"),
    "deleted in the middle": (sql("DELETE FROM receipts WHERE seq = 4"), "gap"),
    "deleted in the middle and renumbered": (
        sql("DELETE FROM receipts WHERE seq = 4", *(f"UPDATE receipts SET seq = {n - 1} WHERE seq = {n}" for n in (5, 6, 7, 8))),
        "Receipt 4: the columns",
    ),
    "first deleted": (sql("DELETE FROM receipts WHERE seq = 1"), "Receipt 2 stands after receipt 0"),
    "swapped": (SWAP, "columns"),
    "replayed at the end": (replay(9, "(SELECT hash FROM receipts WHERE seq = 8)"), "Receipt 9: the columns"),
    "inserted before the first": (replay(-5, "'x'"), "Receipt -5 stands after"),
    "hash column": (sql("UPDATE receipts SET hash = 'x' WHERE seq = 4"), "Receipt 4: the columns"),
    "time column": (sql("UPDATE receipts SET time_us = 1 WHERE seq = 4"), "Receipt 4: the columns"),
    "status column": (sql("UPDATE receipts SET status = 'empty' WHERE seq = 4"), "Receipt 4: the columns"),
    "digest column gone": (sql("UPDATE receipts SET question_digest = NULL WHERE seq = 4"), "Receipt 4: the columns"),
    "column that is not text": (sql("UPDATE receipts SET status = CAST(x'ff' AS TEXT) WHERE seq = 4"), "Receipt 4: the columns"),
    "re-signed from the middle, chain broken": (rebuild(KEY, from_seq=4, rechain=False), "chain is broken"),
    "re-signed from the middle with another key": (rebuild(OTHER, from_seq=4, rechain=True), "not pinned"),
    "wholly re-signed with another key": (rebuild(OTHER, from_seq=1, rechain=True), "The log was made for key"),
}


def test_a_sound_log_is_valid_and_shows_its_head(log: Path) -> None:
    verdict = verify_log(log, PINNED)

    assert (verdict.kind, verdict.rows, verdict.problems, verdict.reasons, verdict.notes) == (VerdictKind.VALID, 8, 0, (), ())
    assert verdict.head is not None and verdict.head.seq == 8


@pytest.mark.parametrize(("done", "reason"), ATTACKS.values(), ids=ATTACKS.keys())
def test_an_attacked_log_is_invalid_with_its_reason(copy: Path, done: Attack, reason: str) -> None:
    verdict = verify_log(attack(copy, done), PINNED)

    assert verdict.kind is VerdictKind.INVALID
    assert reason in "\n".join(verdict.reasons)


def test_a_log_re_signed_with_another_key_is_at_best_unpinned_without_a_pin(copy: Path) -> None:
    verdict = verify_log(attack(copy, rebuild(OTHER, from_seq=1, rechain=True)), Trust.unpinned(OTHER.public))

    assert verdict.kind is VerdictKind.UNPINNED
    assert len(verdict.reasons) == 1


def test_a_key_that_changes_within_a_log_is_wrong_even_without_a_pin(copy: Path) -> None:
    verdict = verify_log(attack(copy, rebuild(OTHER, from_seq=4, rechain=True)), Trust.unpinned(KEY.public, OTHER.public))

    assert verdict.kind is VerdictKind.INVALID
    assert "Receipt 4 is signed with key" in "\n".join(verdict.reasons)


def test_what_the_chain_alone_cannot_show_is_only_seen_against_a_kept_head(copy: Path, log: Path) -> None:
    kept = verify_log(log, PINNED).head

    cut = verify_log(attack(copy, sql("DELETE FROM receipts WHERE seq > 6")), PINNED)
    assert (cut.kind, cut.head != kept) == (VerdictKind.VALID, True)
    rebuilt = verify_log(attack(copy, rebuild(KEY, from_seq=1, rechain=True)), PINNED)
    assert (rebuilt.kind, rebuilt.head != kept) == (VerdictKind.VALID, True)


def test_many_problems_are_counted_and_few_are_told(copy: Path) -> None:
    verdict = verify_log(attack(copy, sql("UPDATE receipts SET hash = 'x', status = 'y', keyid = 'z'")), PINNED)

    assert len(verdict.reasons) == 20
    assert verdict.problems > 20


def test_a_copy_under_another_name_is_wrong_or_not_checked_but_not_valid(copy: Path) -> None:
    renamed = copy.rename(copy.with_name("ffffffffffff.sqlite"))

    assert verify_log(renamed, PINNED).kind is VerdictKind.UNCHECKED


@pytest.mark.parametrize("content", [b"", b"hello", b"SQLite format 3\0" + b"x" * 5000])
def test_a_file_that_is_no_log_is_unchecked(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "0123456789ab.sqlite"
    path.write_bytes(content)

    verdict = verify_log(path, PINNED)

    assert (verdict.kind, verdict.rows) == (VerdictKind.UNCHECKED, 0)
    assert verdict.reasons


def test_a_file_that_is_not_there_is_unchecked_and_not_made(tmp_path: Path) -> None:
    path = log_path(tmp_path, "0123456789ab")

    assert verify_log(path, PINNED).kind is VerdictKind.UNCHECKED
    assert not path.exists()


def test_pages_that_cannot_be_read_leave_the_rest_unchecked(copy: Path) -> None:
    size = copy.stat().st_size
    with copy.open("r+b") as file:
        file.seek(size // 2)
        file.write(os.urandom(size // 2))

    verdict = verify_log(copy, PINNED)

    assert verdict.kind in (VerdictKind.UNCHECKED, VerdictKind.INVALID)
    assert verdict.reasons


def test_a_clock_that_went_back_is_noted(tmp_path: Path) -> None:
    clock = Ticks()

    async def write() -> None:
        async with open_store(tmp_path, KEY, clock=clock, nonce=nonces()) as store:
            for start in (5_000_000, 1_000_000, 2_000_000):
                clock.now = start
                await store.append(make_payload(KEY))

    anyio.run(write)
    verdict = verify_log(sqlite_files(tmp_path)[0], PINNED)

    assert verdict.kind is VerdictKind.VALID
    assert verdict.notes == ("Between receipts 1 and 2 the clock went back by 4000000 us.",)


def test_an_empty_log_has_nothing_wrong_and_nothing_to_show(tmp_path: Path) -> None:
    async def write() -> None:
        async with open_store(tmp_path, KEY, clock=Ticks(), nonce=nonces()):
            pass

    anyio.run(write)
    path = sqlite_files(tmp_path)[0]

    assert (verify_log(path, PINNED).kind, verify_log(path, PINNED).head) == (VerdictKind.VALID, None)
    assert verify_log(path, Trust()).kind is VerdictKind.UNPINNED


def test_a_public_key_file_is_an_ed25519_public_key_or_refused(tmp_path: Path) -> None:
    for name, content in {"text": b"x", "private": b"-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n"}.items():
        (tmp_path / name).write_bytes(content)
        with pytest.raises(KeyUnusable, match="not a public key"):
            load_public_key(tmp_path / name)
    with pytest.raises(KeyUnusable, match="cannot be read"):
        load_public_key(tmp_path / "nothing")


def test_verification_imports_nothing_of_the_router_or_the_experts_and_nothing_that_signs() -> None:
    code = "import sys, search_router.receipts.whole_log; print(*(m for m in sys.modules if m.startswith('search_router')))"

    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout

    rooms = (
        *("checkpoint", "crew", "envelope", "log", "log_audit", "merkle", "note", "row_check"),
        *("statement", "tip", "trust", "verify", "whole_log"),
    )
    expected = {"search_router", *(f"search_router.{name}" for name in ("canonical", "errors", "plain_files", "receipts"))}
    assert set(loaded.split()) == expected | {f"search_router.receipts.{name}" for name in rooms}


def test_the_request_digest_of_the_samples_is_the_one_in_the_receipt() -> None:
    verdict = verify_envelope(SIGNED.to_bytes(), PINNED)

    assert verdict.facts is not None and verdict.facts.request == request_digest()
