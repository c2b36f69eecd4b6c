"""Checkpoints are C2SP notes, are made beside the writer, and survive crashes in their file."""

from __future__ import annotations

import base64
import hashlib
from pathlib import Path

import anyio
import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from hypothesis import given
from hypothesis import strategies as st

from search_router.errors import StoreUnavailable
from search_router.receipts.checkpoint import (
    NEWEST_BYTES,
    Checkpoint,
    append_checkpoint,
    is_checkpoint_signed,
    newest_notes,
    read_checkpoint,
    read_notes,
)
from search_router.receipts.keys import SigningKey
from search_router.receipts.note import is_signed_by, key_id_of, note_text, parse_note, sign_note, verifier_key
from tests.receipts.samples import make_payload
from tests.receipts.stores import StateDirectory

KEY = SigningKey.of(Ed25519PrivateKey.generate())
LOG = "0123456789ab"

# The example of https://c2sp.org/signed-note
VKEY = "example.com/foo+530d903a+AekyeRrm56hApGFkyQR4ZCbV54Id2LKaANYcrnKv3U2k"
EXAMPLE = """This is an example message.

— example.com/foo Uw2QOkn8srV1yJGh2VYRlL1Tnagv1YEq6TfXppzi2ONncAlTgK7Ztg1ERYNZXsYjOBH3mFXmRKuwHjG1Yu72IneyaQM=
""".encode()


def example_key() -> Ed25519PublicKey:
    return Ed25519PublicKey.from_public_bytes(base64.b64decode(VKEY.rpartition("+")[2])[1:])


def checkpoint(size: int) -> Checkpoint:
    return Checkpoint(LOG, size, hashlib.sha256(str(size).encode()).digest())


def test_the_specification_s_example_verifies_and_is_written_as_it_was() -> None:
    note = parse_note(EXAMPLE)

    assert is_signed_by(note, "example.com/foo", example_key())
    assert verifier_key("example.com/foo", example_key()) == VKEY
    assert note_text(note).encode() == EXAMPLE
    assert not is_signed_by(parse_note(EXAMPLE.replace(b"example m", b"eXample m")), "example.com/foo", example_key())
    assert not is_signed_by(note, "example.com/bar", example_key())
    assert not is_signed_by(note, "example.com/foo", KEY.public)


def test_a_signature_of_an_unknown_key_is_ignored_and_a_wrong_one_of_a_known_key_is_not() -> None:
    ours = sign_note("text\n", "us.example", KEY)
    witness = sign_note("text\n", "witness.example", SigningKey.of(Ed25519PrivateKey.generate())).splitlines(keepends=True)[-1]
    wrong = sign_note("other\n", "us.example", KEY).splitlines(keepends=True)[-1]

    assert is_signed_by(parse_note(ours + witness), "us.example", KEY.public)
    assert not is_signed_by(parse_note(ours + wrong), "us.example", KEY.public)


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"text\n",
        b"text\n\n",
        EXAMPLE[:-1],
        EXAMPLE.replace(b"\n\n", b"\n"),
        EXAMPLE.replace("—".encode(), b"-"),
        EXAMPLE.replace(b"aQM=", b"aQN="),
        EXAMPLE.replace(b"example m", b"exam\tple m"),
        b"\xff" + EXAMPLE,
        EXAMPLE + b"x" * 70_000,
    ],
)
def test_what_is_not_a_note_is_refused(data: bytes) -> None:
    with pytest.raises(ValueError):
        parse_note(data)


@pytest.mark.parametrize("text", ["no newline", "a\x01b\n", ""])
def test_what_cannot_be_a_note_s_text_is_not_signed(text: str) -> None:
    with pytest.raises(ValueError, match="a note's text"):
        sign_note(text, "us.example", KEY)


@given(st.integers(0, 10**17), st.binary(min_size=32, max_size=32))
def test_a_checkpoint_is_read_as_it_was_signed(size: int, root: bytes) -> None:
    made = Checkpoint(LOG, size, root)
    note = parse_note(made.signed(KEY))

    assert read_checkpoint(note) == made
    assert note.text.split("\n")[:2] == [f"search-router.dev/receipts/{LOG}", str(size)]
    assert is_checkpoint_signed(note, made, KEY.public)
    assert note.signatures[0].key_id == key_id_of(made.origin, KEY.public)


@pytest.mark.parametrize(
    ("old", "new"), [("/receipts/", "/other/"), ("\n7\n", "\n07\n"), ("\n7\n", "\n-7\n"), ("=\n", "\n"), ("\n7\n", "\n"), ("0123", "012g")]
)
def test_another_text_is_no_checkpoint(old: str, new: str) -> None:
    text = checkpoint(7).text()
    assert old in text

    with pytest.raises(ValueError, match="checkpoint"):
        read_checkpoint(parse_note(sign_note(text.replace(old, new), "us.example", KEY)))


def test_notes_are_read_in_order_and_half_written_ones_are_passed_over(tmp_path: Path) -> None:
    path = tmp_path / "deep" / f"{LOG}.txt"
    whole = checkpoint(5).signed(KEY)
    append_checkpoint(path, checkpoint(1).signed(KEY))
    for cut in (1, len(whole) // 3, whole.index(b"\n\n") + 1, whole.index(b"\n\n") + 2, len(whole) - 30, len(whole) - 1, len(whole)):
        with path.open("ab") as file:
            file.write(whole[:cut])  # as a crash leaves it
        append_checkpoint(path, checkpoint(9).signed(KEY))

    sizes = [read_checkpoint(note).size for note in read_notes(path)]

    assert sizes == [1, *[9] * 5, 5, 9, 5, 9] or sizes == [1, *[9] * 6, 5, 9]
    assert read_checkpoint(newest_notes(path)[-1]) == checkpoint(9)
    assert path.stat().st_mode & 0o777 == 0o600


def test_the_newest_notes_of_a_long_file_are_whole_ones(tmp_path: Path) -> None:
    path = tmp_path / f"{LOG}.txt"
    for size in range(1, 300, 7):
        append_checkpoint(path, checkpoint(size).signed(KEY))
        notes = [read_checkpoint(note) for note in newest_notes(path)]
        assert notes[-1] == checkpoint(size)
        assert all(note == checkpoint(note.size) for note in notes)
    assert 10 < len(newest_notes(path)) < 300 / 7 and path.stat().st_size > NEWEST_BYTES
    assert [read_checkpoint(note).size for note in read_notes(path)] == list(range(1, 300, 7))


def test_no_file_and_an_empty_one_have_no_newest_note(tmp_path: Path) -> None:
    assert newest_notes(tmp_path / "none") == []
    (tmp_path / "empty").touch()
    assert newest_notes(tmp_path / "empty") == []
    with pytest.raises(StoreUnavailable, match="cannot be used"):
        append_checkpoint(tmp_path / "empty" / "x.txt", b"")


# ------------------------------------------------------------------ when they are made


def sizes_of(state: StateDirectory) -> list[int]:
    return [read_checkpoint(note).size for note in read_notes(state.checkpoint_file())]


async def until(state: StateDirectory, size: int) -> None:
    with anyio.fail_after(20):
        while not state.checkpoint_file().exists() or max(sizes_of(state), default=0) < size:  # it is made before its first line
            await anyio.sleep(0.005)


@pytest.mark.anyio
async def test_after_so_many_receipts_and_on_a_clean_stop(tmp_path: Path) -> None:
    state = StateDirectory(tmp_path / "home")
    async with state.opened(every_receipts=3) as store:
        for _ in range(4):
            await store.append(make_payload(state.key))
        await until(state, 3)
        await store.append(make_payload(state.key))

    sizes = sizes_of(state)
    assert sizes[-1] == 5
    assert sizes == sorted(set(sizes))


@pytest.mark.anyio
async def test_after_so_long_when_something_is_new_and_never_twice(tmp_path: Path) -> None:
    state = StateDirectory(tmp_path / "home")
    async with state.opened(every_seconds=0.02) as store:
        await store.append(make_payload(state.key))
        await until(state, 1)
        await anyio.sleep(0.1)
        await store.append(make_payload(state.key))
        await until(state, 2)
    async with state.opened(every_seconds=0.02):
        pass

    assert sizes_of(state) == [1, 2]


@pytest.mark.anyio
async def test_a_checkpoint_that_cannot_be_written_harms_no_receipt_and_is_made_later(tmp_path: Path) -> None:
    state = StateDirectory(tmp_path / "home")
    state.home.mkdir()
    state.checkpoints.touch()  # a file where the directory should be
    with pytest.raises(StoreUnavailable, match="checkpoint file"):
        async with state.opened():
            pass
    state.checkpoints.unlink()

    async with state.opened(every_receipts=1) as store:
        state.checkpoints.touch()
        await store.append(make_payload(state.key))
        await store.append(make_payload(state.key))
        state.checkpoints.unlink()
        await store.append(make_payload(state.key))

    assert sizes_of(state)[-1] == 3


def test_the_command_prints_a_note_that_its_key_verifies(tmp_path: Path) -> None:
    state = StateDirectory(tmp_path / "home")
    state.append(3, checkpoints=False)

    ended = state.run("checkpoint")

    note = parse_note(ended.output[:-1].encode())
    assert (ended.code, read_checkpoint(note).size) == (0, 3)
    name, _, key = ended.errors.split("verifier key: ")[1].strip().split("+", 2)
    assert is_signed_by(note, name, Ed25519PublicKey.from_public_bytes(base64.b64decode(key)[1:]))
    assert state.run("verify", "--all").code == 0


@pytest.mark.anyio
async def test_the_command_makes_none_for_a_log_that_is_being_written(tmp_path: Path) -> None:
    state = StateDirectory(tmp_path / "home")
    async with state.opened() as store:
        await store.append(make_payload(state.key))
        ended = await anyio.to_thread.run_sync(state.run, "checkpoint")
        assert (ended.code, ended.output) == (0, "")
