"""A key is retired in every log at once or in none, by a record that both keys sign, and its store stays verifiable from the first key."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from search_router.errors import KeyUnusable, StoreUnavailable
from search_router.receipts.envelope import parse_envelope
from search_router.receipts.keys import load_or_create_key, next_key_path, public_key_path, read_key, read_or_make_key, retired_directory
from search_router.receipts.pins import read_pins
from search_router.receipts.statement import read_statement
from search_router.receipts.tip import log_ownership
from search_router.receipts.trust import Trust
from search_router.receipts.verify import VerdictKind
from search_router.receipts.whole_log import rotations_of, verify_log
from tests.receipts.samples import make_payload, sqlite_files
from tests.receipts.stores import StateDirectory


@pytest.fixture
def state(tmp_path: Path) -> StateDirectory:
    return StateDirectory(tmp_path / "home")


@pytest.mark.behaviour("keys-hand-over")
def test_old_and_new_receipts_verify_from_the_first_key(state: StateDirectory) -> None:
    first = state.key
    state.append(3)
    assert "trust on first use" in state.run("verify", "--all").errors

    done = state.rotate()
    stored = state.append(2)
    again = state.rotate()
    state.append(1)

    assert (done.old, done.new, again.old) == (first.keyid, stored[0].keyid, done.new)
    assert state.key.keyid == again.new
    assert read_pins(state.pins) == {first.keyid}
    ended = state.run("verify", "--all", "--json")
    assert ended.code == 0 and ended.errors == ""
    assert ended.verdicts[0]["what"].endswith("8 receipts")
    trust = Trust.pinning(first.public)
    assert verify_log(state.log(), trust.following(rotations_of(state.log()))).kind is VerdictKind.VALID
    assert verify_log(state.log(), trust).kind is VerdictKind.INVALID  # who does not follow rotations trusts the first key alone
    statuses = [line.split()[2] for line in state.run("list").output.splitlines()[1:]]
    assert statuses.count("rotated") == 2


def test_the_record_is_signed_by_both_keys_over_the_same_bytes(state: StateDirectory) -> None:
    first = state.key
    state.append(1)
    done = state.rotate()

    envelope = parse_envelope(rotations_of(state.log())[0])
    facts = read_statement(envelope.payload)

    assert envelope.second is not None
    assert (envelope.keyid, envelope.second.keyid) == (done.old, done.new) == (first.keyid, state.key.keyid)
    assert facts.rotation is not None and facts.rotation.public == state.key.public.public_bytes_raw()
    shown = json.loads(state.run("show", done.records[0]).output)
    assert shown["predicate"]["operation"] == "rotate"


def test_the_old_private_key_is_gone_and_its_public_half_is_kept(state: StateDirectory) -> None:
    old = state.key
    state.append(1)
    before = state.key_path.read_bytes()

    state.rotate()

    assert before not in [path.read_bytes() for path in state.home.rglob("*") if path.is_file()]
    assert (retired_directory(state.key_path) / f"{old.keyid}.pub").read_bytes() == old.public_pem()
    assert public_key_path(state.key_path).read_bytes() == state.key.public_pem()
    assert not next_key_path(state.key_path).exists() and not public_key_path(next_key_path(state.key_path)).exists()
    assert state.key_path.stat().st_mode & 0o777 == 0o600


def test_every_log_of_the_key_goes_over(state: StateDirectory) -> None:
    logs = [state.append(1)[0].log]
    other = StateDirectory(state.home.parent / "other")
    shutil.copytree(state.home / "keys", other.home / "keys")
    logs.append(other.append(2)[0].log)
    shutil.copy(other.log(), state.receipts)

    done = state.rotate()

    assert sorted(record.split(":")[0] for record in done.records) == sorted(logs)
    assert {log_ownership(path).current for path in sqlite_files(state.receipts)} == {done.new}
    assert state.run("verify", "--all").code == 0


def test_a_log_that_is_made_after_a_rotation_verifies_from_the_first_key(state: StateDirectory) -> None:
    state.append(1)
    state.rotate()
    state.run("verify", "--all")
    state.log().rename(state.home / "first.sqlite")
    state.append(1)

    ended = state.run("verify", "--all", "--json")

    assert [found["verdict"] for found in ended.verdicts] == ["valid", "unchecked"]  # the record is kept beside the keys, too


def test_a_store_without_any_log_gets_one_with_the_record(state: StateDirectory) -> None:
    load_or_create_key(state.key_path)

    assert len(state.rotate().records) == 1
    assert state.run("verify", "--all").code == 0


@pytest.mark.anyio
async def test_while_a_process_writes_nothing_is_changed_and_the_log_is_named(state: StateDirectory) -> None:
    async with state.opened() as store:
        await store.append(make_payload(state.key))
        before = state.key_path.read_bytes()
        with pytest.raises(StoreUnavailable, match=f"log {store.log} is being written"):
            state.rotate()
        await store.append(make_payload(state.key))

    assert state.key_path.read_bytes() == before
    assert not next_key_path(state.key_path).exists()
    assert rotations_of(state.log()) == []


def test_an_interrupted_rotation_stops_every_start_until_it_is_finished(state: StateDirectory) -> None:
    old = state.key
    state.append(1)
    following = read_or_make_key(next_key_path(state.key_path))  # as far as a crash at the beginning gets

    with pytest.raises(KeyUnusable, match="is going on, or was interrupted") as caught:
        load_or_create_key(state.key_path)
    done = state.rotate()

    assert "receipts rotate" in caught.value.remedy
    assert (done.old, done.new) == (old.keyid, following.keyid)
    state.append(1)
    assert state.run("verify", "--all").code == 0


def test_a_rotation_that_was_interrupted_after_its_records_makes_no_second_one(state: StateDirectory, tmp_path: Path) -> None:
    state.append(1)
    shutil.copytree(state.home / "keys", tmp_path / "keys")
    done = state.rotate()
    shutil.copy(state.key_path, next_key_path(state.key_path))
    shutil.copy(tmp_path / "keys" / state.key_path.name, state.key_path)
    shutil.copy(public_key_path(tmp_path / "keys" / state.key_path.name), public_key_path(state.key_path))

    again = state.rotate()

    assert (again.old, again.new, again.records) == (done.old, done.new, ())
    state.append(1)
    assert state.run("verify", "--all").code == 0


def test_a_retired_key_that_is_put_back_signs_nothing(state: StateDirectory, tmp_path: Path) -> None:
    state.append(1)
    shutil.copytree(state.home / "keys", tmp_path / "keys")
    state.rotate()
    state.append(1)
    for name in (state.key_path.name, public_key_path(state.key_path).name):
        shutil.copy(tmp_path / "keys" / name, state.key_path.with_name(name))

    with pytest.raises(KeyUnusable, match="was retired by a rotation"):
        state.append(1)
    shutil.rmtree(retired_directory(state.key_path))
    with pytest.raises(KeyUnusable, match="was retired by a rotation"):
        state.append(1)  # the log itself remembers


def test_there_must_be_a_key_to_rotate(state: StateDirectory) -> None:
    with pytest.raises(KeyUnusable, match="no signing key"):
        state.rotate()
    assert read_key(state.key_path) is None


def test_pins_are_key_ids_with_comments_and_anything_else_is_refused(tmp_path: Path, state: StateDirectory) -> None:
    path = tmp_path / "pins"
    path.write_text(f"# first\n\n{'a' * 64}  # of the office\n{'b' * 64}\n")
    assert read_pins(path) == {"a" * 64, "b" * 64}
    path.write_text("a" * 63)

    with pytest.raises(KeyUnusable, match="no key id"):
        read_pins(path)
    state.append(1)
    ended = state.run("verify", "--all", "--pins", path)
    assert ended.code == 3 and "no key id" in ended.errors
