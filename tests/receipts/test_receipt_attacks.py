"""Every attack that an audit must catch, carried out on a real store, with its verdict and exit code on the command line."""

from __future__ import annotations

import json
import shutil
import sqlite3
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import anyio
import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from search_router.errors import StoreUnavailable
from search_router.receipts.envelope import cosign_envelope, parse_envelope, sign_envelope
from search_router.receipts.keys import SigningKey, read_key
from search_router.receipts.log import COLUMNS, Row
from search_router.receipts.statement import KeyRotation, Position, rotation_statement, statement_facts
from search_router.receipts.store import open_store
from tests.receipts.attacks import (
    SWAP,
    Attack,
    attack,
    edit_envelope,
    edit_payload,
    edit_signature,
    rebuild,
    replay,
    restore_tree,
    sql,
)
from tests.receipts.samples import Ticks, make_answer, make_payload, nonces
from tests.receipts.stores import Ended, StateDirectory, client_line, write_client_log

OTHER = SigningKey.of(Ed25519PrivateKey.generate())
RECEIPTS = 8


@dataclass(frozen=True)
class Served:
    """A store of eight receipts with a checkpoint at four and at eight, its first key pinned, and what its client got."""

    state: StateDirectory
    lines: list[dict[str, Any]]
    outside: Path
    """A copy of the checkpoints that is kept elsewhere."""


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Served:
    folder = tmp_path_factory.mktemp("served")
    state = StateDirectory(folder / "home")
    stored = state.append(RECEIPTS // 2)
    shutil.copytree(state.home, folder / "backup")
    stored += state.append(RECEIPTS // 2)
    outside = Path(shutil.copy(state.checkpoint_file(), folder / "kept-checkpoints.txt"))
    ended = state.run("verify", "--all", "--json")
    assert ended.code == 0 and "trust on first use" in ended.errors, ended
    return Served(state, [client_line(one) for one in stored], outside)


@pytest.fixture
def served(sound: Served, tmp_path: Path) -> Served:
    """A copy to attack."""
    return Served(sound.state.copy(tmp_path / "home"), sound.lines, sound.outside)


def audit(served: Served, lines: list[dict[str, Any]] | None = None) -> Ended:
    log = write_client_log(served.state.home.parent / "client.jsonl", served.lines if lines is None else lines)
    return served.state.run("audit", "--against", log, "--json")


def assert_verdict(ended: Ended, verdict: str, reason: str, code: int) -> None:
    (found,) = ended.verdicts
    assert (found["verdict"], ended.code) == (verdict, code), ended
    assert reason in "\n".join((*found["reasons"], *found["notes"]))


def append_row(envelope_of: Callable[[Position], Any]) -> Attack:
    """Append a further receipt with a right place, hash and tree."""

    def run(database: sqlite3.Connection, log: str) -> None:
        seq, last_hash, time_us = database.execute("SELECT seq, hash, time_us FROM receipts ORDER BY seq DESC LIMIT 1").fetchone()
        envelope = envelope_of(Position(log, seq + 1, last_hash, time_us + 1, "e" * 32))
        row = Row.of(statement_facts(json.loads(envelope.payload)), envelope)
        database.execute(f"INSERT INTO receipts VALUES ({', '.join('?' * len(COLUMNS))})", row.values(()))
        restore_tree(database, log)

    return run


def forge_last(key: SigningKey, *edits: tuple[bytes, bytes]) -> Attack:
    """Replace the last receipt by one that the owner of the key signed over edited bytes, with hash and tree to fit."""

    def run(database: sqlite3.Connection, log: str) -> None:
        (blob,) = database.execute("SELECT envelope FROM receipts ORDER BY seq DESC LIMIT 1").fetchone()
        payload = parse_envelope(blob).payload
        for old, new in edits:
            assert old in payload
            payload = payload.replace(old, new)
        envelope = sign_envelope(payload, key)
        database.execute(
            "UPDATE receipts SET envelope = ?, hash = ? WHERE seq = (SELECT max(seq) FROM receipts)",
            (envelope.to_bytes(), Row.payload_hash(envelope)),
        )
        restore_tree(database, log)

    return run


def test_a_sound_store_is_valid_held_against_its_checkpoints_and_each_answer_has_its_receipt(served: Served) -> None:
    assert_verdict(served.state.run("verify", "--all", "--json"), "valid", "Held against 2 checkpoint(s)", 0)
    assert_verdict(served.state.run("verify", "--since", served.outside, "--json"), "valid", "", 0)
    found = json.loads(audit(served).output)
    assert (found["verdict"], found["emission_pm"], found["answers"], found["found"]) == ("valid", 1000, RECEIPTS, RECEIPTS)
    served.state.append(1)


# ------------------------------------------------------------------ what signatures, chain and columns show

WRONG: dict[str, tuple[Attack, str]] = {
    "payload byte": (edit_envelope(4, edit_payload()), "Receipt 4: The signature"),
    "signature byte": (edit_envelope(4, edit_signature), "Receipt 4: The signature"),
    "keyid byte": (edit_envelope(4, lambda e: e["signatures"][0].update(keyid="0" * 64)), "does not name the key"),
    "payloadType byte": (edit_envelope(4, lambda e: e.update(payloadType="application/vnd.in-tota+json")), "payloadType"),
    "self-declared key": (edit_envelope(4, lambda e: e.update(publicKey="AAAA")), "exactly the members"),
    "deleted in the middle": (sql("DELETE FROM receipts WHERE seq = 4"), "gap"),
    "two swapped": (SWAP, "Receipt 4: the columns"),
    "replayed at the end": (replay(9, "(SELECT hash FROM receipts WHERE seq = 8)"), "Receipt 9: the columns"),
    "inserted twice": (replay(-5, "'x'"), "Receipt -5 stands after"),
    "stored subtree": (sql("UPDATE receipts SET nodes = zeroblob(64) WHERE seq = 4"), "part of the tree"),
}


@pytest.mark.behaviour("attacks-have-a-verdict")
@pytest.mark.parametrize(("done", "reason"), WRONG.values(), ids=WRONG.keys())
def test_an_edit_of_the_database_is_invalid(served: Served, done: Attack, reason: str) -> None:
    attack(served.state.log(), done)

    assert_verdict(served.state.run("verify", "--all", "--json"), "invalid", reason, 1)


def test_a_swapped_key_is_invalid_for_who_pinned_and_unpinned_for_who_did_not(served: Served) -> None:
    attack(served.state.log(), rebuild(OTHER, from_seq=1))
    served.state.key_path.with_name("receipt-ed25519.pem.pub").write_bytes(OTHER.public_pem())
    served.state.checkpoint_file().unlink()

    assert_verdict(served.state.run("verify", "--all", "--json"), "invalid", "not pinned", 1)
    nobody = served.state.home / "nobody.txt"
    nobody.write_text("# nobody\n")
    assert_verdict(served.state.run("verify", "--all", "--pins", nobody, "--json"), "unpinned", "nobody vouched", 3)


# ------------------------------------------------------------------ what takes an outside witness


@pytest.mark.behaviour("attacks-have-a-verdict", "log-is-what-it-was")
def test_a_cut_tail_is_caught_by_a_checkpoint_by_the_start_and_by_a_client(served: Served) -> None:
    attack(served.state.log(), sql("DELETE FROM receipts WHERE seq > 6"))

    assert_verdict(served.state.run("verify", "--all", "--json"), "invalid", "its end was cut off", 1)
    with pytest.raises(StoreUnavailable, match="rolled back or rebuilt: it has 6 receipts, and had 8"):
        served.state.append(1)
    assert_verdict(served.state.run("verify", "--since", served.outside, "--json"), "invalid", "cut off", 1)
    found = audit(served)
    counted = json.loads(found.output)
    assert (found.code, counted["missing"], counted["emission_pm"]) == (1, 2, 750)


def test_a_cut_tail_with_no_witness_at_all_is_seen_by_nobody_and_that_is_said(served: Served) -> None:
    served.state.checkpoint_file().unlink()
    attack(served.state.log(), sql("DELETE FROM receipts WHERE seq > 6"))

    assert_verdict(served.state.run("verify", "--all", "--json"), "valid", "No checkpoint of it is at hand", 0)


@pytest.mark.behaviour("log-is-what-it-was")
def test_a_log_rebuilt_with_the_same_key_is_caught_by_a_checkpoint_by_the_start_and_by_a_client(served: Served) -> None:
    attack(served.state.log(), rebuild(served.state.key, from_seq=1))

    assert_verdict(served.state.run("verify", "--all", "--json"), "invalid", "not those of a checkpoint", 1)
    with pytest.raises(StoreUnavailable, match="are not those of its newest checkpoint") as caught:
        served.state.append(1)
    assert f"receipts repair {served.state.log().stem}" in caught.value.remedy
    served.state.checkpoint_file().unlink()  # its owner can do that, too
    assert_verdict(served.state.run("verify", "--since", served.outside, "--json"), "invalid", "rebuilt, forked or restored", 1)
    assert json.loads(audit(served).output)["altered"] == RECEIPTS


def test_two_logs_forked_from_one_store_are_caught_by_each_others_checkpoints(served: Served, tmp_path: Path) -> None:
    fork = served.state.copy(tmp_path / "fork")
    ours, theirs = served.state.append(3), fork.append(2)

    for state in (served.state, fork):
        assert_verdict(state.run("verify", "--all", "--json"), "valid", "", 0)
    assert_verdict(served.state.run("verify", "--since", fork.checkpoint_file(), "--json"), "invalid", "forked", 1)
    lines = [*served.lines, *map(client_line, (*ours, *theirs))]
    assert json.loads(audit(served, lines).output)["altered"] == 2


def test_a_restored_backup_is_refused_at_the_start_and_caught_when_it_went_on_all_the_same(served: Served, sound: Served) -> None:
    backup = StateDirectory(sound.state.home.parent / "backup")
    shutil.copy(backup.log(), served.state.log())
    with pytest.raises(StoreUnavailable, match="it has 4 receipts, and had 8"):
        served.state.append(1)
    served.state.append(6, checkpoints=False)

    assert_verdict(served.state.run("verify", "--all", "--json"), "invalid", "restored and written on", 1)
    with pytest.raises(StoreUnavailable, match="rolled back or rebuilt"):
        served.state.append(1)


def test_a_deleted_log_is_missed(served: Served) -> None:
    served.state.log().unlink()

    assert_verdict(served.state.run("verify", "--all", "--json"), "unchecked", "is not in", 3)
    assert json.loads(audit(served).output)["missing"] == RECEIPTS


def test_a_log_set_aside_lets_the_next_start_make_a_new_one(served: Served) -> None:
    attack(served.state.log(), sql("DELETE FROM receipts WHERE seq > 6"))
    old = served.state.log().stem

    assert served.state.run("repair", old).code == 0

    (stored,) = served.state.append(1)
    assert stored.log != old
    assert (served.state.checkpoints / "set-aside" / f"{old}.txt").exists()
    assert_verdict(served.state.run("verify", "--all", "--json"), "valid", "", 0)


@pytest.mark.parametrize(
    ("old", "new", "why"), [("\n8\n", "\n7\n", "is not signed by the checkpoint key"), ("receipts/", "receipts/0", "not a checkpoint of")]
)
def test_an_edited_checkpoint_is_invalid_and_stops_the_start(served: Served, old: str, new: str, why: str) -> None:
    file = served.state.checkpoint_file()
    file.write_text(file.read_text("utf-8").replace(old, new), "utf-8")

    assert_verdict(served.state.run("verify", "--all", "--json"), "invalid", why, 1)
    with pytest.raises(StoreUnavailable, match=why):
        served.state.append(1)


def test_an_old_checkpoint_put_behind_the_newest_hides_nothing(served: Served) -> None:
    file = served.state.checkpoint_file()
    notes = file.read_text("utf-8")
    file.write_text(notes + notes[: notes.index("\n\n— ") + 2] + notes[notes.index("— ") : notes.index("\n\n", notes.index("— "))] + "\n\n")
    assert_verdict(served.state.run("verify", "--all", "--json"), "invalid", "checkpoints go back from 8 to 4", 1)

    attack(served.state.log(), sql("DELETE FROM receipts WHERE seq > 6"))

    with pytest.raises(StoreUnavailable, match="it has 6 receipts, and had 8"):
        served.state.append(1)


# ------------------------------------------------------------------ rotation


def test_a_rotation_without_the_old_key_is_invalid(served: Served) -> None:
    new = SigningKey.of(Ed25519PrivateKey.generate())
    rotation = KeyRotation(served.state.key.keyid, new.keyid, new.public.public_bytes_raw())

    def forged(place: Position) -> Any:
        envelope = cosign_envelope(rotation_statement(rotation, place), OTHER, new)
        return type(envelope)(envelope.payload, served.state.key.keyid, envelope.signature, envelope.second)

    attack(served.state.log(), append_row(forged), append_row(lambda place: sign_envelope(make_payload(new)(place), new)))

    assert_verdict(served.state.run("verify", "--all", "--json"), "invalid", "Receipt 10: Signed with key", 1)


def test_a_rotation_that_the_new_key_did_not_sign_is_invalid(served: Served) -> None:
    rotation = KeyRotation(served.state.key.keyid, OTHER.keyid, OTHER.public.public_bytes_raw())
    attack(served.state.log(), append_row(lambda place: sign_envelope(rotation_statement(rotation, place), served.state.key)))

    assert_verdict(served.state.run("verify", "--all", "--json"), "invalid", "not signed by both", 1)


def test_a_retired_key_that_signs_again_is_invalid_in_its_log_and_in_a_new_one(served: Served, tmp_path: Path) -> None:
    old = served.state.key
    served.state.rotate()
    served.state.append(1)
    assert_verdict(served.state.run("verify", "--all", "--json"), "valid", "", 0)

    late = served.state.copy(tmp_path / "late")
    attack(late.log(), append_row(lambda place: sign_envelope(make_payload(old)(place), old)))
    assert_verdict(late.run("verify", "--all", "--json"), "invalid", "after it was retired", 1)
    assert_verdict(late.run("verify", f"{late.log().stem}:11", "--json"), "invalid", "after it was retired", 1)

    elsewhere = StateDirectory(tmp_path / "elsewhere")
    elsewhere.key_path.parent.mkdir(parents=True)
    _write_private(elsewhere.key_path, old)
    elsewhere.append(1)
    shutil.copy(elsewhere.log(), served.state.receipts)
    ended = served.state.run("verify", "--log", elsewhere.log().stem, "--json")
    assert_verdict(ended, "invalid", "after it was retired", 1)


def _write_private(path: Path, key: SigningKey) -> None:
    path.write_bytes(key._private.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
    path.chmod(0o600)


def test_a_key_that_handed_over_to_two_keys_makes_nothing_valid(served: Served, tmp_path: Path) -> None:
    fork = served.state.copy(tmp_path / "fork")
    served.state.rotate()
    fork.rotate()
    shutil.copy(fork.log(), served.state.receipts / "ffffffffffff.sqlite")
    attack(served.state.receipts / "ffffffffffff.sqlite", sql("UPDATE log SET id = 'ffffffffffff'"))

    ended = served.state.run("verify", "--all", "--json")

    assert ended.code == 1
    assert all("handed over to two keys" in "\n".join(found["reasons"]) for found in ended.verdicts)


# ------------------------------------------------------------------ what two readers could read in two ways

AMBIGUOUS: dict[str, tuple[tuple[bytes, bytes], str]] = {
    "duplicate member": ((b'"seq":8', b'"seq":8,"seq":8'), "twice"),
    "1.0": ((b'"seq":8', b'"seq":8.0'), "canonical"),
    "lone surrogate": ((b'"s-1"', b'"\\ud800"'), "surrogate"),
    "2^53+1": ((b'"results":1,', b'"results":9007199254740993,'), "exceeds"),
}


@pytest.mark.parametrize(("edit", "reason"), AMBIGUOUS.values(), ids=AMBIGUOUS.keys())
def test_ambiguous_json_is_invalid_even_when_the_key_s_owner_signed_it(served: Served, edit: tuple[bytes, bytes], reason: str) -> None:
    attack(served.state.log(), forge_last(served.state.key, edit))

    assert_verdict(served.state.run("verify", "--log", served.state.log().stem, "--json"), "invalid", reason, 1)


def test_decomposed_letters_are_another_payload(served: Served) -> None:
    attack(served.state.log(), forge_last(served.state.key, (b'"s-1"', '"é"'.encode())))
    served.state.checkpoint_file().unlink()
    assert served.state.run("verify", "--all").code == 0

    attack(served.state.log(), edit_envelope(8, edit_payload('"é"'.encode(), '"e\u0301"'.encode())))

    assert_verdict(served.state.run("verify", "--all", "--json"), "invalid", "Receipt 8: The signature", 1)


# ------------------------------------------------------------------ between store and client


def test_an_answer_altered_on_the_way_is_not_the_one_of_its_receipt(served: Served, tmp_path: Path) -> None:
    lines = json.loads(json.dumps(served.lines))
    lines[2]["evidence"][0]["path"] = "src/innocent.py"

    found = audit(served, lines)

    assert (found.code, json.loads(found.output)["mismatched"]) == (1, 1)
    altered = tmp_path / "altered.json"
    altered.write_text(json.dumps(lines[2]))
    receipt_id = lines[2]["receipt"]["id"]
    assert_verdict(served.state.run("verify", receipt_id, "--response", altered, "--json"), "invalid", "response is not", 1)


def test_an_answer_without_a_receipt_is_counted(served: Served) -> None:
    lines = [*served.lines, {name: value for name, value in served.lines[0].items() if name != "receipt"}]

    found = json.loads(audit(served, lines).output)

    assert (found["verdict"], found["without"], found["emission_pm"]) == ("invalid", 1, 888)


def test_lines_that_are_no_answers_are_not_checked_and_ids_alone_are_looked_up(served: Served) -> None:
    log = served.state.home.parent / "log"
    log.write_text(json.dumps({"receipt": served.lines[0]["receipt"]["id"]}) + "\nnonsense\n[]\n")

    ended = served.state.run("audit", "--against", log, "--json")

    found = json.loads(ended.output)
    assert (ended.code, found["verdict"], found["unreadable"], found["found"]) == (3, "unchecked", 2, 1)


def test_a_clock_that_was_set_back_is_said_and_is_not_wrong(tmp_path: Path) -> None:
    state = StateDirectory(tmp_path / "home")
    clock = Ticks()

    async def write() -> None:
        async with open_store(state.receipts, state.key, clock=clock, nonce=nonces()) as store:
            for start in (5_000_000, 1_000_000):
                clock.now = start
                await store.append(make_payload(state.key))

    anyio.run(write)

    assert_verdict(state.run("verify", "--all", "--json"), "valid", "the clock went back by 4000000 us", 0)


def test_neither_secrets_nor_source_text_reach_the_disk(tmp_path: Path) -> None:
    state = StateDirectory(tmp_path / "home")
    secret = "ghp_" + "a1B2" * 9
    answer = make_answer(3).model_copy(update={"notes": (f"refused with token {secret}",)})

    state.append(2, answer=answer)

    private = read_key(state.key_path)
    assert private is not None
    for path in (*state.receipts.iterdir(), *state.checkpoints.iterdir()):
        content = path.read_bytes()
        for word in (secret, "VERY_PRIVATE_SOURCE_TEXT", "validate the session token"):
            assert word.encode() not in content
    assert state.run("export", tmp_path / "out").code == 0
    for path in (tmp_path / "out").rglob("*.json*"):
        for line in path.read_bytes().splitlines():
            for word in (secret, "VERY_PRIVATE_SOURCE_TEXT", "validate the session token"):
                assert word.encode() not in parse_envelope(line).payload
