"""The signing key: made on first start, mode 0600 from its first byte, and refused when anyone else could have touched it.

Private key: PKCS#8 PEM, unencrypted. Beside it `<name>.pub`, SubjectPublicKeyInfo PEM, is for people who verify without us.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import hmac
import os
import secrets
import stat
from dataclasses import dataclass, field
from pathlib import Path

from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
    load_pem_private_key,
)

from search_router.canonical import normal_question
from search_router.errors import KeyUnusable
from search_router.plain_files import read_plain
from search_router.receipts.envelope import keyid_of
from search_router.schema import MAX_QUESTION_BYTES

MAX_KEY_BYTES = 16_384
QUESTION_LABEL = b"search-router question digest v1"


@dataclass(frozen=True, slots=True)
class SigningKey:
    """An Ed25519 private key with its id. Neither repr nor comparison shows or uses the secret parts."""

    keyid: str
    _private: Ed25519PrivateKey = field(repr=False, compare=False)
    _question_secret: bytes = field(repr=False, compare=False)

    @classmethod
    def of(cls, private: Ed25519PrivateKey) -> SigningKey:
        """The key with what is derived from it: its id, and the secret for question digests (HKDF-SHA-256, RFC 5869)."""
        secret = HKDF(hashes.SHA256(), length=32, salt=None, info=QUESTION_LABEL).derive(private.private_bytes_raw())
        return cls(keyid_of(private.public_key()), private, secret)

    @property
    def public(self) -> Ed25519PublicKey:
        return self._private.public_key()

    def public_pem(self) -> bytes:
        """The public half for people who verify without us: SubjectPublicKeyInfo in PEM."""
        return self.public.public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)

    def sign(self, data: bytes) -> bytes:
        """64 bytes, RFC 8032."""
        return self._private.sign(data)

    def keyed_digest(self, text: str) -> str:
        """HMAC-SHA-256 (hex) of a text; without the private key it cannot be confirmed by guessing the text."""
        return hmac.new(self._question_secret, text.encode("utf-8", "surrogatepass"), hashlib.sha256).hexdigest()


def question_digest(question: str, key: SigningKey) -> str:
    """The keyed digest of a question in its normal form (NFC, white space folded): equal questions have equal digests under one key.

    A question that is too long to be searched (more than 4096 characters) is taken as it is: normalising megabytes takes seconds.
    """
    return key.keyed_digest(normal_question(question) if len(question) <= MAX_QUESTION_BYTES else question)


def public_key_path(path: Path) -> Path:
    """Where the public half of the private key at `path` lies."""
    return path.with_name(path.name + ".pub")


def next_key_path(path: Path) -> Path:
    """Where a rotation keeps the new key until every log has gone over to it."""
    return path.with_name(path.name + ".next")


def retired_directory(path: Path) -> Path:
    """Where the public halves of retired keys lie, each with the record that ended it: `<keyid>.pub` and `<keyid>.rotation.json`."""
    return path.parent / "retired"


def load_or_create_key(path: Path) -> SigningKey:
    """The private key at `path`, made first if there is none. Neither amid a rotation nor after its own retirement.

    Raises:
        KeyUnusable: as `read_or_make_key` says it; a rotation was interrupted; the key was retired.
    """
    if next_key_path(path).exists():
        raise KeyUnusable(
            f"A rotation of the signing key {path} is going on, or was interrupted.",
            remedy="Run `search-router receipts rotate` to finish it, then start again.",
        )
    key = read_or_make_key(path)
    if (retired_directory(path) / f"{key.keyid}.rotation.json").exists():
        raise retired(key.keyid)
    return key


def retired(keyid: str) -> KeyUnusable:
    """The error for a key that must sign nothing more."""
    return KeyUnusable(
        f"The signing key {keyid} was retired by a rotation; what it signs from now on counts for nothing.",
        remedy="Put the key back that the rotation made, or move this one away and a new one is made, which verifiers must then pin.",
    )


def read_or_make_key(path: Path) -> SigningKey:
    """The private key at `path`, made first if there is none.

    Of several processes that start at once, one makes the key and all load the same one: it is written to a temporary file and
    linked into place whole. A missing public key file is written again, unless the directory is read-only.

    Raises:
        KeyUnusable: loose mode, another owner, a symbolic link, not an Ed25519 key in PKCS#8 PEM, or a place that cannot be written.
    """
    key = read_key(path)
    if key is None:
        _create_key(path)
        key = read_key(path)
        if key is None:
            raise KeyUnusable(f"The signing key {path} vanished while it was being made.", remedy="Start again.")
    _publish(path, key)
    return key


def read_key(path: Path) -> SigningKey | None:
    """The private key at `path`, or None when there is no such file. Raises KeyUnusable."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK)
    except FileNotFoundError:
        return None
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise KeyUnusable(
                f"The signing key {path} is a symbolic link.", remedy="Name the key file itself, in SEARCH_ROUTER_KEY or `receipts.key`."
            ) from error
        raise _inaccessible(path, error) from error
    try:
        _check_directory(path.parent)
        _check_owner_and_mode(path, os.fstat(descriptor))
        pem = os.read(descriptor, MAX_KEY_BYTES + 1)
    finally:
        os.close(descriptor)
    return SigningKey.of(_parse_private_key(path, pem))


def _check_directory(directory: Path) -> None:
    mode = directory.stat().st_mode
    if mode & stat.S_IWOTH and not mode & stat.S_ISVTX:
        raise KeyUnusable(
            f"The directory {directory} of the signing key can be written by everyone, so the key could be swapped.",
            remedy=f"Run `chmod o-w {directory}`.",
        )


def _check_owner_and_mode(path: Path, facts: os.stat_result) -> None:
    if not stat.S_ISREG(facts.st_mode):
        raise KeyUnusable(f"The signing key {path} is not a regular file.", remedy="Name a key file.")
    if facts.st_uid != os.geteuid():
        raise KeyUnusable(
            f"The signing key {path} belongs to user {facts.st_uid}, and this process runs as {os.geteuid()}.",
            remedy=f"Run `chown {os.geteuid()} {path}`, or name another key in SEARCH_ROUTER_KEY.",
        )
    mode = stat.S_IMODE(facts.st_mode)
    if mode & 0o177:
        raise KeyUnusable(
            f"The signing key {path} has mode {mode:04o}; others could have read or replaced it.",
            remedy=f"If nobody has, run `chmod 600 {path}`; otherwise move it away and a new key is made.",
        )


def _parse_private_key(path: Path, pem: bytes) -> Ed25519PrivateKey:
    remedy = f"Move it away and a new key is made, or make one with `openssl genpkey -algorithm ed25519 -out {path}`."
    if len(pem) > MAX_KEY_BYTES or not pem.lstrip().startswith(b"-----BEGIN PRIVATE KEY-----"):
        raise KeyUnusable(f"The signing key {path} is not an unencrypted PKCS#8 PEM file.", remedy=remedy)
    try:
        private = load_pem_private_key(pem, password=None)
    except (ValueError, TypeError, UnsupportedAlgorithm) as error:
        # The parser's own words may quote the file: they are left out.
        raise KeyUnusable(f"The signing key {path} is not readable as a private key.", remedy=remedy) from error
    if not isinstance(private, Ed25519PrivateKey):
        raise KeyUnusable(f"The signing key {path} is not an Ed25519 key.", remedy=remedy)
    return private


def _create_key(path: Path) -> None:
    """Write a new key to a temporary file and link it to `path`; if someone was faster, theirs stays."""
    pem = Ed25519PrivateKey.generate().private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        temporary = write_temporary(path, pem, 0o600)
        try:
            with contextlib.suppress(FileExistsError):
                os.link(temporary, path)
        finally:
            temporary.unlink()
        sync_directory(path.parent)
    except OSError as error:
        raise _inaccessible(path, error) from error


def _publish(path: Path, key: SigningKey) -> None:
    """Keep the public key file in step with the private one. A different file there is refused: strangers would pin it."""
    target = public_key_path(path)
    pem = key.public_pem()
    try:
        found = read_plain(target)
    except FileNotFoundError:
        try:
            write_temporary(path, pem, 0o644).replace(target)
        except OSError as error:
            # A key mounted read-only can sign all the same; its public half is then the owner's to hand out.
            if error.errno not in (errno.EROFS, errno.EACCES, errno.EPERM):
                raise _inaccessible(target, error) from error
        return
    except OSError as error:
        raise _inaccessible(target, error) from error
    if found.split() != pem.split():
        raise KeyUnusable(
            f"The public key {target} does not belong to the signing key {path}.", remedy="Move it away and it is written again."
        )


def write_whole(path: Path, content: bytes, mode: int) -> None:
    """Put a file there whole and durable, over another one if there is one."""
    write_temporary(path, content, mode).replace(path)
    sync_directory(path.parent)


def write_temporary(path: Path, content: bytes, mode: int) -> Path:
    """A synced new file beside `path`, with exactly `mode` before the first byte is in it."""
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(8)}.tmp")
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        with os.fdopen(descriptor, "wb") as file:
            os.fchmod(descriptor, mode)
            file.write(content)
            file.flush()
            os.fsync(descriptor)
    except OSError:
        temporary.unlink(missing_ok=True)
        raise
    return temporary


def sync_directory(directory: Path) -> None:
    """Make names that were made, changed or removed in a directory durable."""
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _inaccessible(path: Path, error: OSError) -> KeyUnusable:
    return KeyUnusable(
        f"The signing key {path} cannot be read or made: {error.strerror or error}.",
        remedy="Make its directory readable and writable for this user, or name another key in SEARCH_ROUTER_KEY.",
    )
