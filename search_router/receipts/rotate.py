"""Retires the signing key of a store: every log of it gets a record, signed by the old and the new key, after which the new one signs.

The old private key is deleted: a key that is gone cannot be stolen and cannot sign backdated receipts. Its public half is kept beside the
key in `retired/`, with the record, for verification. (Digests of questions are keyed with the old key's secret: those of before can no
longer be recomputed from a question afterwards.)

Every step is durable and can be repeated, so an interrupted rotation is finished by running it again; until then no start uses the key. One
that fails before any log went over, such as on a full disk, is taken back: the old key signs on.
"""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from search_router.errors import KeyUnusable, SearchRouterError, StoreUnavailable
from search_router.receipts.claim import ClaimedLog, claim_all
from search_router.receipts.envelope import Envelope, cosign_envelope
from search_router.receipts.keys import (
    SigningKey,
    next_key_path,
    public_key_path,
    read_key,
    read_or_make_key,
    retired_directory,
    write_whole,
)
from search_router.receipts.log import COLUMNS, LOCK_WAIT_SECONDS, Row, log_ids, log_path, log_uri, store_failure
from search_router.receipts.pins import pin_if_none
from search_router.receipts.statement import KeyRotation, Position, parse_own_statement, rotation_statement, statement_facts
from search_router.receipts.tip import log_ownership


@dataclass(frozen=True, slots=True)
class Rotated:
    """What a rotation did: key ids, the ids of its records, and whether the old key had to be pinned first."""

    old: str
    new: str
    records: tuple[str, ...]
    pinned_now: bool


def rotate_key(directory: Path, key_path: Path, pins: Path, *, clock: Callable[[], int], nonce: Callable[[], str]) -> Rotated:
    """Make a new key, have every log of the old one go over to it, and put it in the old one's place.

    Raises:
        StoreUnavailable: a process writes one of the logs, or one is damaged: nothing was changed.
        KeyUnusable: there is no key, or it or its directory cannot be used.
    """
    old = read_key(key_path)
    if old is None:
        raise KeyUnusable(f"There is no signing key {key_path} to rotate.", remedy="It is made by the first start of search-router.")
    with claim_all(directory, old.keyid, created_us=clock(), new_id=lambda: nonce()[:12]) as logs:
        _refuse_if_rotated(key_path, old)
        pinned_now = pin_if_none(pins, old.keyid, f"{key_path}, when it was rotated")
        try:
            new = read_or_make_key(next_key_path(key_path))
            records = _record_in_every_log(logs, key_path, old, new, clock, nonce)
        except SearchRouterError:
            _take_back_unless_begun(directory, key_path, old)
            raise
        _swap(key_path, new)
    return Rotated(old.keyid, new.keyid, records, pinned_now)


def _refuse_if_rotated(key_path: Path, old: SigningKey) -> None:
    """Another rotation may have ended between reading the key and keeping all others out; its key must not be thrown away."""
    now = read_key(key_path)
    if now is None or now.keyid != old.keyid:
        raise StoreUnavailable(
            f"The signing key {key_path} was rotated by another process just now. Nothing was changed.",
            remedy="Run the command again if it is to be rotated once more.",
        )


def _record_in_every_log(
    logs: Sequence[ClaimedLog], key_path: Path, old: SigningKey, new: SigningKey, clock: Callable[[], int], nonce: Callable[[], str]
) -> tuple[str, ...]:
    """The ids of the records, each on disk and with a copy beside the keys."""
    rotation = KeyRotation(old.keyid, new.keyid, new.public.public_bytes_raw())
    _keep(key_path, f"{old.keyid}.pub", old.public_pem())
    records: list[str] = []
    for log in logs:
        envelope = _append_record(log, old, new, rotation, clock(), nonce())
        records.append(f"{log.id}:{log.tip.head.seq + 1}")
        _keep(key_path, f"{old.keyid}.rotation.json", envelope.to_bytes())
    return tuple(records)


def _take_back_unless_begun(directory: Path, key_path: Path, old: SigningKey) -> None:
    """Remove the new key if no log went over to it; where one did, or cannot be read, the rotation stays to be finished."""
    following = next_key_path(key_path)
    with contextlib.suppress(SearchRouterError, OSError):
        new = read_key(following)
        if new is None or (retired_directory(key_path) / f"{old.keyid}.rotation.json").exists():
            return  # the record of a log that has since been set aside counts, too
        if all(log_ownership(log_path(directory, log)).current != new.keyid for log in log_ids(directory)):
            public_key_path(following).unlink(missing_ok=True)
            following.unlink(missing_ok=True)


def _append_record(log: ClaimedLog, old: SigningKey, new: SigningKey, rotation: KeyRotation, now_us: int, nonce: str) -> Envelope:
    """The record as the next receipt of a log, on disk."""
    head, tree = log.tip.head, log.tip.tree
    payload = rotation_statement(rotation, Position(log.id, head.seq + 1, head.hash, now_us, nonce))
    envelope = cosign_envelope(payload, old, new)
    row = Row.of(statement_facts(parse_own_statement(payload)), envelope)
    _, completed = tree.append(bytes.fromhex(row.hash))
    insert = f"INSERT INTO receipts ({', '.join(COLUMNS)}) VALUES ({', '.join('?' * len(COLUMNS))})"  # noqa: S608 - constants only
    try:
        with contextlib.closing(
            sqlite3.connect(log_uri(log.path, "rw"), uri=True, isolation_level=None, timeout=LOCK_WAIT_SECONDS)
        ) as database:
            database.execute("PRAGMA synchronous = FULL")
            database.execute(insert, row.values(completed))
    except sqlite3.Error as error:
        raise store_failure(log.path, error) from error
    return envelope


def _keep(key_path: Path, name: str, content: bytes) -> None:
    directory = retired_directory(key_path)
    try:
        directory.mkdir(mode=0o700, exist_ok=True)
        write_whole(directory / name, content, 0o644)
    except OSError as error:
        raise _unmovable(key_path, error) from error


def _swap(key_path: Path, new: SigningKey) -> None:
    """The new key in the old one's place. Public halves go first: a missing one is written again, a wrong one stops every start."""
    following = next_key_path(key_path)
    try:
        for path in (key_path, following):
            public_key_path(path).unlink(missing_ok=True)
        following.replace(key_path)
        write_whole(public_key_path(key_path), new.public_pem(), 0o644)
    except OSError as error:
        raise _unmovable(key_path, error) from error


def _unmovable(key_path: Path, error: OSError) -> KeyUnusable:
    return KeyUnusable(
        f"The signing key {key_path} cannot be replaced: {error.strerror or error}.",
        remedy="Make its directory writable for this user and run `search-router receipts rotate` again to finish.",
    )
