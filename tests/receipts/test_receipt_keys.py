"""The signing key is whole, private and the only one, or it is refused with what to do."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric import ec, ed25519
from cryptography.hazmat.primitives.serialization import BestAvailableEncryption, Encoding, NoEncryption, PrivateFormat

from search_router.canonical import sha256_hex
from search_router.errors import KeyUnusable
from search_router.receipts.keys import SigningKey, load_or_create_key, public_key_path, question_digest
from search_router.receipts.trust import load_public_key


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_a_first_start_makes_a_private_key_and_its_public_half(tmp_path: Path) -> None:
    path = tmp_path / "state" / "keys" / "k.pem"

    key = load_or_create_key(path)

    assert (mode(path.parent), mode(path), mode(public_key_path(path))) == (0o700, 0o600, 0o644)
    assert key.keyid == sha256_hex(key.public.public_bytes_raw())
    assert load_public_key(public_key_path(path)).public_bytes_raw() == key.public.public_bytes_raw()
    assert sorted(entry.name for entry in path.parent.iterdir()) == ["k.pem", "k.pem.pub"]


def test_a_loose_umask_does_not_loosen_the_key(tmp_path: Path) -> None:
    path = tmp_path / "keys" / "k.pem"
    before = os.umask(0)
    try:
        load_or_create_key(path)
    finally:
        os.umask(before)

    assert mode(path) == 0o600


def test_a_later_start_loads_the_same_key(tmp_path: Path) -> None:
    first = load_or_create_key(tmp_path / "k.pem")

    assert load_or_create_key(tmp_path / "k.pem") == first


def test_a_key_made_by_openssl_is_welcome(tmp_path: Path) -> None:
    path = tmp_path / "k.pem"
    subprocess.run(["openssl", "genpkey", "-algorithm", "ed25519", "-out", str(path)], check=True)
    path.chmod(0o600)

    key = load_or_create_key(path)

    shown = subprocess.run(["openssl", "pkey", "-in", str(path), "-pubout"], check=True, capture_output=True).stdout
    assert public_key_path(path).read_bytes() == shown
    assert len(key.sign(b"x")) == 64


def test_of_many_processes_that_start_at_once_all_have_one_key(tmp_path: Path) -> None:
    path = tmp_path / "keys" / "k.pem"
    code = (
        "import sys; from pathlib import Path; from search_router.receipts.keys import load_or_create_key\n"
        "print('ready', flush=True); sys.stdin.readline(); print(load_or_create_key(Path(sys.argv[1])).keyid)"
    )
    children = [
        subprocess.Popen([sys.executable, "-c", code, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        for _ in range(6)
    ]
    for child in children:
        assert child.stdout is not None and child.stdout.readline() == "ready\n"
    for child in children:
        assert child.stdin is not None
        child.stdin.write("go\n")
        child.stdin.flush()
    keyids = {child.communicate(timeout=30)[0].strip() for child in children}

    assert keyids == {load_or_create_key(path).keyid}
    assert sorted(entry.name for entry in path.parent.iterdir()) == ["k.pem", "k.pem.pub"]


@pytest.mark.parametrize("loose", [0o644, 0o640, 0o660, 0o602, 0o700])
def test_a_loose_mode_is_refused_with_the_command_that_mends_it(tmp_path: Path, loose: int) -> None:
    path = tmp_path / "k.pem"
    load_or_create_key(path)
    path.chmod(loose)

    with pytest.raises(KeyUnusable, match=f"{loose:04o}") as caught:
        load_or_create_key(path)

    assert f"chmod 600 {path}" in caught.value.remedy


def test_a_symbolic_link_is_refused_whether_or_not_it_leads_somewhere(tmp_path: Path) -> None:
    load_or_create_key(tmp_path / "real.pem")
    (tmp_path / "k.pem").symlink_to(tmp_path / "real.pem")
    (tmp_path / "dangling.pem").symlink_to(tmp_path / "nowhere.pem")

    for name in ("k.pem", "dangling.pem"):
        with pytest.raises(KeyUnusable, match="symbolic link"):
            load_or_create_key(tmp_path / name)
    assert not (tmp_path / "nowhere.pem").exists()


@pytest.mark.skipif(os.geteuid() != 0, reason="needs to give a file away")
def test_a_key_of_another_user_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "k.pem"
    load_or_create_key(path)
    os.chown(path, 65534, 65534)

    with pytest.raises(KeyUnusable, match="belongs to user 65534"):
        load_or_create_key(path)


def test_a_directory_that_everyone_can_write_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "open" / "k.pem"
    load_or_create_key(path)
    path.parent.chmod(0o777)

    with pytest.raises(KeyUnusable, match="written by everyone"):
        load_or_create_key(path)


ED25519 = ed25519.Ed25519PrivateKey.generate()


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "PKCS#8"),
        (b"not a key", "PKCS#8"),
        (b"-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n", "not readable"),
        (b"-----BEGIN PRIVATE KEY-----\n" + b"A" * 20_000, "PKCS#8"),
        (ec.generate_private_key(ec.SECP256R1()).private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()), "not an Ed25519"),
        (ED25519.private_bytes(Encoding.PEM, PrivateFormat.OpenSSH, NoEncryption()), "PKCS#8"),
        (ED25519.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, BestAvailableEncryption(b"x")), "PKCS#8"),
        (ED25519.private_bytes_raw(), "PKCS#8"),
    ],
    ids=["empty", "text", "broken", "huge", "other-curve", "openssh", "encrypted", "raw"],
)
def test_another_format_is_refused_and_kept(tmp_path: Path, content: bytes, reason: str) -> None:
    path = tmp_path / "k.pem"
    path.write_bytes(content)
    path.chmod(0o600)

    with pytest.raises(KeyUnusable, match=reason) as caught:
        load_or_create_key(path)

    assert "Move it away" in caught.value.remedy
    assert path.read_bytes() == content


def test_a_directory_or_a_pipe_in_place_of_the_key_is_refused(tmp_path: Path) -> None:
    (tmp_path / "directory").mkdir()
    os.mkfifo(tmp_path / "pipe", 0o600)

    for name in ("directory", "pipe"):
        with pytest.raises(KeyUnusable, match="not a regular file"):
            load_or_create_key(tmp_path / name)


def test_a_place_that_cannot_be_made_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")

    with pytest.raises(KeyUnusable, match="cannot be read or made"):
        load_or_create_key(tmp_path / "file" / "k.pem")


def test_a_public_key_of_another_private_key_is_refused(tmp_path: Path) -> None:
    load_or_create_key(tmp_path / "a.pem")
    load_or_create_key(tmp_path / "b.pem")
    public_key_path(tmp_path / "b.pem").replace(public_key_path(tmp_path / "a.pem"))

    with pytest.raises(KeyUnusable, match="does not belong"):
        load_or_create_key(tmp_path / "a.pem")


def test_neither_the_repr_nor_an_error_shows_secret_bytes(tmp_path: Path) -> None:
    key = SigningKey.of(ED25519)

    assert repr(key) == f"SigningKey(keyid='{key.keyid}')"


def test_equal_questions_have_equal_digests_under_one_key_only() -> None:
    one, other = SigningKey.of(ED25519), SigningKey.of(ed25519.Ed25519PrivateKey.generate())

    assert question_digest("who calls  f?\n", one) == question_digest("who calls f?", one)
    assert question_digest("who calls f?", one) != question_digest("who calls g?", one)
    assert question_digest("who calls f?", one) != question_digest("who calls f?", other)
    assert question_digest("who calls f?", one) != sha256_hex(b"who calls f?")
    assert len(question_digest("\ud800", one)) == 64
