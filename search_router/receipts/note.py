"""Signed notes: a text with Ed25519 signatures below it, as transparency logs and their witnesses exchange them.

Source: https://c2sp.org/signed-note. Writing and strict reading; other signature types than Ed25519 (0x01) are kept and not judged.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import re
from dataclasses import dataclass
from typing import Protocol

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

ED25519 = b"\x01"
MAX_NOTE_BYTES = 65_536
MAX_SIGNATURES = 100
_SIGNATURE = re.compile(r"— ([^\s+]+) ([A-Za-z0-9+/]+={0,2})")
_CONTROL = re.compile(r"[\x00-\x09\x0b-\x1f]")


class NoteKey(Protocol):
    """What a note needs of a key."""

    @property
    def public(self) -> Ed25519PublicKey: ...

    def sign(self, data: bytes) -> bytes: ...


@dataclass(frozen=True, slots=True)
class NoteSignature:
    """One signature line: who is said to have signed, the first bytes of the key's id, and the signature."""

    name: str
    key_id: bytes
    signature: bytes


@dataclass(frozen=True, slots=True)
class Note:
    """A text that ends in a newline, and what is said to be signatures of it."""

    text: str
    signatures: tuple[NoteSignature, ...]


def key_id_of(name: str, public: Ed25519PublicKey) -> bytes:
    """The first 4 bytes of SHA-256(name || 0x0A || 0x01 || public key)."""
    return hashlib.sha256(name.encode("utf-8") + b"\n" + ED25519 + public.public_bytes_raw()).digest()[:4]


def verifier_key(name: str, public: Ed25519PublicKey) -> str:
    """The text form of a verifier's key: `<name>+<hex key id>+<base64(0x01 || public key)>`."""
    return f"{name}+{key_id_of(name, public).hex()}+{base64.b64encode(ED25519 + public.public_bytes_raw()).decode('ascii')}"


def sign_note(text: str, name: str, key: NoteKey) -> bytes:
    """The note with one signature under `name`. The text must end in a newline and hold no other control character."""
    if not text.endswith("\n") or _CONTROL.search(text):
        raise ValueError("a note's text ends in a newline and has no other control characters")
    blob = key_id_of(name, key.public) + key.sign(text.encode("utf-8"))
    return f"{text}\n— {name} {base64.b64encode(blob).decode('ascii')}\n".encode()


def note_text(note: Note) -> str:
    """The note as it is written down."""
    lines = (f"— {s.name} {base64.b64encode(s.key_id + s.signature).decode('ascii')}\n" for s in note.signatures)
    return f"{note.text}\n{''.join(lines)}"


def parse_note(data: bytes) -> Note:
    """Read a note; ValueError says what is not as the specification has it."""
    if len(data) > MAX_NOTE_BYTES:
        raise ValueError(f"longer than {MAX_NOTE_BYTES} bytes")
    try:
        decoded = data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise ValueError(f"not UTF-8 at byte {error.start}") from error
    if _CONTROL.search(decoded):
        raise ValueError("it has a control character")
    text, blank, below = decoded.rpartition("\n\n")
    if not blank or not below.endswith("\n"):
        raise ValueError("it has no signature lines below a blank line")
    lines = below[:-1].split("\n")
    if len(lines) > MAX_SIGNATURES:
        raise ValueError(f"it has more than {MAX_SIGNATURES} signatures")
    return Note(f"{text}\n", tuple(_parse_signature(line) for line in lines))


def is_signed_by(note: Note, name: str, public: Ed25519PublicKey) -> bool:
    """Whether the note has a signature of this key under this name, and no wrong one that claims to be it."""
    own = [s for s in note.signatures if s.name == name and s.key_id == key_id_of(name, public)]
    for signature in own:
        try:
            public.verify(signature.signature, note.text.encode("utf-8"))
        except InvalidSignature:
            return False
    return bool(own)


def _parse_signature(line: str) -> NoteSignature:
    parts = _SIGNATURE.fullmatch(line)
    if parts is None:
        raise ValueError("a signature line is malformed")
    try:
        blob = base64.b64decode(parts[2], validate=True)
    except binascii.Error as error:
        raise ValueError("a signature is not base64") from error
    if len(blob) < 5 or base64.b64encode(blob).decode("ascii") != parts[2]:
        raise ValueError("a signature is not canonical base64 of a key id and a signature")
    return NoteSignature(parts[1], blob[:4], blob[4:])
