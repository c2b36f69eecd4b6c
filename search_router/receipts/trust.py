"""Whose signatures count: keys that the verifying person pinned, and those that a pinned key handed over to.

Pins are the ids of first keys. A rotation that the old and the new key both signed extends the trust to the new one; a key that was only
found with the receipts never gets any.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from cryptography.hazmat.primitives.serialization import load_pem_public_key

from search_router.errors import KeyUnusable, ReceiptError
from search_router.plain_files import read_plain
from search_router.receipts.envelope import Envelope, keyid_of, parse_envelope, pre_authentication_encoding
from search_router.receipts.statement import KeyRotation, Position, read_statement

MAX_PUBLIC_KEY_BYTES = 16_384


@dataclass(frozen=True, slots=True)
class Ending:
    """Where a key's time ended: `seqs` is the number of the record in each log that went over, `time_us` the latest record's time."""

    successor: str
    seqs: Mapping[str, int]
    time_us: int


@dataclass(frozen=True, slots=True)
class Trust:
    """Whose signatures count: `pinned` are key ids that the verifying person vouches for, `keys` the public keys at hand, pinned or not.

    `reached` are keys that pinned ones handed over to, `endings` when keys were retired; `following` fills both. `doubts` are sentences
    that make every verdict invalid: a key that handed over to two keys.
    """

    pinned: frozenset[str] = frozenset()
    keys: Mapping[str, Ed25519PublicKey] = field(default_factory=dict[str, Ed25519PublicKey])
    reached: frozenset[str] = frozenset()
    endings: Mapping[str, Ending] = field(default_factory=dict[str, Ending])
    doubts: tuple[str, ...] = ()

    @classmethod
    def pinning(cls, *keys: Ed25519PublicKey) -> Trust:
        """Trust exactly these keys."""
        at_hand = {keyid_of(key): key for key in keys}
        return cls(frozenset(at_hand), at_hand)

    @classmethod
    def pinning_ids(cls, keyids: Iterable[str], offered: Iterable[Ed25519PublicKey] = ()) -> Trust:
        """Trust the keys with these ids. The keys may come from anywhere, as the ids are their hashes."""
        return cls(frozenset(keyids), {keyid_of(key): key for key in offered})

    @classmethod
    def unpinned(cls, *offered: Ed25519PublicKey) -> Trust:
        """Trust nobody; check against keys that came with the receipts, for consistency only."""
        return cls(frozenset(), {keyid_of(key): key for key in offered})

    def packed(self) -> tuple[object, ...]:
        """This trust as values that can be sent to another process; `unpacked` makes it again."""
        raw = {keyid: key.public_bytes_raw() for keyid, key in self.keys.items()}
        return self.pinned, raw, self.reached, dict(self.endings), self.doubts

    @classmethod
    def unpacked(cls, packed: tuple[Any, ...]) -> Trust:
        pinned, raw, reached, endings, doubts = packed
        return cls(pinned, {keyid: Ed25519PublicKey.from_public_bytes(key) for keyid, key in raw.items()}, reached, endings, doubts)

    def vouches(self, keyid: str) -> bool:
        """Whether the key is pinned, or was handed over to from a pinned one."""
        return keyid in self.pinned or keyid in self.reached

    def following(self, envelopes: Iterable[bytes]) -> Trust:
        """This trust, extended by the key rotations in these envelopes, as far as keys at hand signed them.

        A rotation that is not sound is passed over: it is judged in the log that it stands in.
        """
        waiting = [one for one in map(_read_rotation, envelopes) if one is not None]
        trust, progress = self, True
        while progress:
            sound = [one for one in waiting if is_rotation_sound(one.envelope, one.rotation, trust.keys.get(one.rotation.old))]
            waiting = [one for one in waiting if one not in sound]
            for one in sound:
                trust = trust._hand_over(one.rotation, one.position)
            progress = bool(sound)
        return trust

    def _hand_over(self, rotation: KeyRotation, position: Position) -> Trust:
        before = self.endings.get(rotation.old)
        doubts = self.doubts
        if before is not None and before.successor != rotation.new:
            doubts = (*doubts, f"Key {rotation.old} handed over to two keys, {before.successor} and {rotation.new}: someone copied it.")
        seqs = {**(before.seqs if before else {}), position.log: position.seq}
        ending = Ending(before.successor if before else rotation.new, seqs, max(position.time_us, before.time_us if before else 0))
        return replace(
            self,
            keys={**self.keys, rotation.new: Ed25519PublicKey.from_public_bytes(rotation.public)},
            reached=self.reached | {rotation.new} if self.vouches(rotation.old) else self.reached,
            endings={**self.endings, rotation.old: ending},
            doubts=doubts,
        )


@dataclass(frozen=True, slots=True)
class _Rotation:
    envelope: Envelope
    rotation: KeyRotation
    position: Position


def _read_rotation(written: bytes) -> _Rotation | None:
    try:
        envelope = parse_envelope(written)
        facts = read_statement(envelope.payload)
    except (ReceiptError, ValueError):
        return None
    return None if facts.rotation is None else _Rotation(envelope, facts.rotation, facts.position)


def is_rotation_sound(envelope: Envelope, rotation: KeyRotation, old: Ed25519PublicKey | None) -> bool:
    """Whether both keys that the rotation names signed it, the old one first."""
    second = envelope.second
    if old is None or second is None or (envelope.keyid, second.keyid) != (rotation.old, rotation.new):
        return False
    new = Ed25519PublicKey.from_public_bytes(rotation.public)
    return is_signature(old, envelope.signature, envelope.payload) and is_signature(new, second.signature, envelope.payload)


def is_signature(key: Ed25519PublicKey, signature: bytes, payload: bytes) -> bool:
    """Whether `signature` is this key's over a DSSE envelope with this payload."""
    try:
        key.verify(signature, pre_authentication_encoding(payload))
    except InvalidSignature:
        return False
    return True


def load_public_key(path: Path) -> Ed25519PublicKey:
    """An Ed25519 public key from a PEM file (SubjectPublicKeyInfo).

    Raises:
        KeyUnusable: the file cannot be read or is something else.
    """
    remedy = "Name the .pub file that lies beside the signing key."
    try:
        key = load_pem_public_key(read_plain(path, MAX_PUBLIC_KEY_BYTES))
    except OSError as error:
        raise KeyUnusable(f"The public key {path} cannot be read: {error.strerror or error}.", remedy=remedy) from error
    except (ValueError, UnsupportedAlgorithm) as error:
        raise KeyUnusable(f"{path} is not a public key in PEM.", remedy=remedy) from error
    if not isinstance(key, Ed25519PublicKey):
        raise KeyUnusable(f"{path} is not an Ed25519 public key.", remedy=remedy)
    return key
