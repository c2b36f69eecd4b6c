"""Receipts as files that other people's tools check: DSSE envelopes, public keys, checkpoints.

envelopes/<log>.jsonl     the stored envelopes of a log, one a line, in order
checkpoints/<log>.txt     the log's signed notes
keys/<keyid>.pem          public keys that sign or signed receipts, `first` names the pinned ones; keys/checkpoint.pem signs the notes
receipts/<log>-<seq>.*    a single receipt: .json envelope, .pae the bytes that were signed, .sig the raw signature
"""

from __future__ import annotations

import contextlib
import secrets
import shutil
import sqlite3
from collections.abc import Generator, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from search_router.errors import ReceiptError, ReceiptNotFound, StoreUnavailable
from search_router.plain_files import open_plain
from search_router.receipts.checkpoint import checkpoint_path
from search_router.receipts.envelope import parse_envelope, pre_authentication_encoding
from search_router.receipts.log import LOG_ID, check_schema, log_path, open_for_reading, store_failure
from search_router.receipts.trust import Trust


@dataclass(frozen=True, slots=True)
class Exported:
    """What was written: how many envelopes of how many logs, and the names of the single receipts."""

    logs: int
    envelopes: int
    singles: tuple[str, ...]


def export_receipts(
    directory: Path,
    logs: Sequence[str],
    target: Path,
    trust: Trust,
    *,
    checkpoints: Path,
    checkpoint_key: Ed25519PublicKey | None,
    single: Sequence[str] = (),
) -> Exported:
    """Write these logs below `target`, and each receipt of `single` (ids; default: the newest of every log) as files of its own.

    Nothing is judged: what is exported may be wrong, which is for the reader to find. All is written before anything takes its place: a
    failure leaves what was there before.

    Raises:
        ReceiptNotFound: no log has one of the single receipts.
        StoreUnavailable: a log cannot be read, or the target cannot be written.
    """
    try:
        with _staged(target) as draft:
            for name in ("envelopes", "checkpoints", "keys", "receipts"):
                (draft / name).mkdir()
            _write_keys(draft / "keys", trust, checkpoint_key)
            count, newest = 0, list[str]()
            for log in logs:
                written, last = _write_log(log_path(directory, log), draft / "envelopes" / f"{log}.jsonl")
                count += written
                newest += [f"{log}:{last}"] if last > 0 else []
                if checkpoint_path(checkpoints, log).exists():
                    with open_plain(checkpoint_path(checkpoints, log)) as notes, (draft / "checkpoints" / f"{log}.txt").open("wb") as copy:
                        shutil.copyfileobj(notes, copy)
            names = tuple(_write_single(directory, receipt_id, draft / "receipts") for receipt_id in single or newest)
    except OSError as error:
        raise _unwritable(target, error) from error
    return Exported(len(logs), count, names)


@contextlib.contextmanager
def _staged(target: Path) -> Generator[Path]:
    """A directory inside of `target` whose files take their places in it at the end, or vanish with what was made for them."""
    made = [folder for folder in (target, *target.parents) if not folder.exists()]
    target.mkdir(parents=True, exist_ok=True)
    draft = target / f".{secrets.token_hex(8)}.tmp"
    try:
        draft.mkdir(mode=0o700)
        yield draft
        for folder in draft.iterdir():
            (target / folder.name).mkdir(exist_ok=True)
        for file in draft.glob("*/*"):
            file.replace(target / file.parent.name / file.name)
        made = []
    finally:
        shutil.rmtree(draft, ignore_errors=True)
        with contextlib.suppress(OSError):
            for folder in made:
                folder.rmdir()


def _unwritable(target: Path, error: OSError) -> StoreUnavailable:
    return StoreUnavailable(
        f"The receipts cannot be exported to {target}: {f'{error.filename}: ' if error.filename else ''}{error.strerror or error}.",
        remedy="Name a directory that this user may write, on a disk with room. What was there before was not changed.",
    )


def _write_keys(target: Path, trust: Trust, checkpoint_key: Ed25519PublicKey | None) -> None:
    for keyid, key in trust.keys.items():
        (target / f"{keyid}.pem").write_bytes(_pem(key))
    (target / "first").write_text("".join(f"{keyid}\n" for keyid in sorted(trust.pinned)), "ascii")
    if checkpoint_key is not None:
        (target / "checkpoint.pem").write_bytes(_pem(checkpoint_key))


def _pem(key: Ed25519PublicKey) -> bytes:
    return key.public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)


def _write_log(path: Path, target: Path) -> tuple[int, int]:
    """How many envelopes were written, and the number of the last one."""
    count, last = 0, 0
    try:
        with open_for_reading(path) as database, target.open("wb") as file:
            check_schema(path, database)
            rows: Iterable[tuple[int, bytes]] = database.execute("SELECT seq, CAST(envelope AS BLOB) FROM receipts ORDER BY seq")
            for seq, envelope in rows:
                file.write(envelope + b"\n")
                count, last = count + 1, seq
    except sqlite3.Error as error:
        raise store_failure(path, error) from error
    return count, last


def _write_single(directory: Path, receipt_id: str, target: Path) -> str:
    log, _, number = receipt_id.partition(":")
    path = log_path(directory, log)
    stored: bytes | None = None
    if LOG_ID.fullmatch(log) and number.isascii() and number.isdigit() and len(number) < 19 and path.exists():
        try:
            with open_for_reading(path) as database:
                check_schema(path, database)
                found = database.execute("SELECT CAST(envelope AS BLOB) FROM receipts WHERE seq = ?", (int(number),)).fetchone()
        except sqlite3.Error as error:
            raise store_failure(path, error) from error
        stored = found[0] if found else None
    if stored is None:
        raise ReceiptNotFound(f"No receipt {receipt_id[:80]!r} in {directory}.", remedy="`search-router receipts list` shows them.")
    name = f"{log}-{number}"
    (target / f"{name}.json").write_bytes(stored)
    try:
        envelope = parse_envelope(stored)
    except ReceiptError:
        return name  # there are no bytes to check a signature over; the .json shows why
    (target / f"{name}.pae").write_bytes(pre_authentication_encoding(envelope.payload))
    (target / f"{name}.sig").write_bytes(envelope.signature)
    return name
