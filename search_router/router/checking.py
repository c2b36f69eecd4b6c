"""Receipts of this machine's store, verified with `receipts.verify` and `receipts.whole_log`.

Whom it trusts is named by the caller, else by the file of pinned keys; where there is none, the key of this machine is pinned, and that is
said.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

from search_router.config.state import StatePaths
from search_router.errors import KeyUnusable, ReceiptNotFound
from search_router.plain_files import read_plain
from search_router.receipts.checkpoint import (
    ORIGIN,
    Checkpoint,
    checkpoint_path,
    is_checkpoint_signed,
    newest_notes,
    read_checkpoint,
    read_notes,
)
from search_router.receipts.checkpointer import CheckpointPlan, checkpoint_idle
from search_router.receipts.crosscheck import ABOUT_THE_ANSWER
from search_router.receipts.keys import load_or_create_key, public_key_path, retired_directory
from search_router.receipts.log import LOG_ID, log_ids, log_path
from search_router.receipts.log_audit import LogVerdict, Witness
from search_router.receipts.note import note_text, verifier_key
from search_router.receipts.pins import pin_if_none, read_pins
from search_router.receipts.reading import Receipt, ReceiptReader
from search_router.receipts.trust import Trust, load_public_key
from search_router.receipts.verify import EXIT_CODES, VerdictKind, verify_envelope
from search_router.receipts.whole_log import rotations_of, verify_log

NO_WITNESS = "No checkpoint of it is at hand: a tail that was cut off, a rebuilt log or a fork would not be seen."


@dataclass(frozen=True, slots=True)
class Checked:
    """The verdict on one receipt or one log."""

    what: str
    verdict: VerdictKind
    reasons: tuple[str, ...]
    notes: tuple[str, ...] = ()

    @property
    def exit_code(self) -> int:
        return EXIT_CODES[self.verdict]


@dataclass(frozen=True, slots=True)
class Anchors:
    """What verification starts from: trusted keys, the key of checkpoints, and what has to be said about both."""

    trust: Trust
    checkpoint_key: Ed25519PublicKey | None
    notes: tuple[str, ...] = ()


def find_anchors(paths: StatePaths, keys: Sequence[Path] = (), checkpoint_key: Path | None = None, pins: Path | None = None) -> Anchors:
    """The named public keys, else the pinned ones, else the first key of this machine's store, pinned now; and whom they handed over to.

    Raises:
        KeyUnusable: a key or the file of pins cannot be read, or no key is at hand.
    """
    notes: tuple[str, ...] = ()
    rotations = [*_kept_rotations(paths), *(r for log in log_ids(paths.receipts) for r in rotations_of(log_path(paths.receipts, log)))]
    if keys:
        trust = Trust.pinning(*(load_public_key(path) for path in keys))
    else:
        own = _own_keys(paths)
        pinned = read_pins(pins or paths.pins)
        if not pinned and pins is None:
            pinned, notes = _trust_on_first_use(paths, own, rotations)
        trust = Trust.pinning_ids(pinned, own)
    own_checkpoint_key = public_key_path(paths.checkpoint_key)
    named = checkpoint_key or (own_checkpoint_key if own_checkpoint_key.exists() else None)
    return Anchors(trust.following(rotations), load_public_key(named) if named is not None else None, notes)


def verify_whole_logs(paths: StatePaths, anchors: Anchors, only: Sequence[str] = ()) -> list[Checked]:
    """The named logs, else every log of the store, each held against its checkpoints. Raises ReceiptNotFound when there is none."""
    verdicts, gone = judge_whole_logs(paths, anchors, only)
    return [*(_checked(v) for v in verdicts), *gone]


def judge_whole_logs(paths: StatePaths, anchors: Anchors, only: Sequence[str] = ()) -> tuple[list[LogVerdict], list[Checked]]:
    """As `verify_whole_logs`: the verdicts with what was read, and what is to be said of logs that only have checkpoints."""
    there = log_ids(paths.receipts)
    gone = [log for log in _checkpointed(paths.checkpoints) if log not in there and (not only or log in only)]
    logs = [log for log in only or there if log not in gone]
    if not (logs or gone) or not set(logs) <= set(there):
        raise ReceiptNotFound(f"There is no such receipt log in {paths.receipts}.", remedy="`search-router receipts list` shows the logs.")
    verdicts = [verify_log(log_path(paths.receipts, log), anchors.trust, _witness(paths, log, anchors)) for log in logs]
    missing = f"It has checkpoints in {paths.checkpoints} and is not in {paths.receipts}: put it back, or name the right directory."
    return verdicts, [Checked(f"log {log}", VerdictKind.UNCHECKED, (missing,)) for log in gone]


def verify_since(paths: StatePaths, anchors: Anchors, kept: Path) -> list[Checked]:
    """Each log of which the file `kept` has a checkpoint, from the newest one on: it still begins as it did, and what came later is sound.

    Raises:
        ReceiptNotFound: the file has no checkpoint, or the store no such log.
        KeyUnusable: the key that signs checkpoints is not at hand.
    """
    if anchors.checkpoint_key is None:
        raise KeyUnusable("The public key of the checkpoints is not at hand.", remedy="Name it with --checkpoint-key.")
    newest: dict[str, Checkpoint] = {}
    wrong: list[Checked] = []
    for note in read_notes(kept):
        try:
            checkpoint = read_checkpoint(note)
        except ValueError as error:
            wrong.append(Checked(f"a note in {kept}", VerdictKind.UNCHECKED, (f"It is {error}.",)))
            continue
        if not is_checkpoint_signed(note, checkpoint, anchors.checkpoint_key):
            wrong.append(Checked(f"checkpoint of log {checkpoint.log}", VerdictKind.INVALID, ("It is not signed by the checkpoint key.",)))
        elif checkpoint.size >= newest.get(checkpoint.log, checkpoint).size:
            newest[checkpoint.log] = checkpoint
    if not newest and not wrong:
        raise ReceiptNotFound(f"There is no checkpoint in {kept}.", remedy="`search-router receipts checkpoint` prints them.")
    checked: list[Checked] = []
    for log, checkpoint in newest.items():
        if log in log_ids(paths.receipts):
            verdict = verify_log(log_path(paths.receipts, log), anchors.trust, _witness(paths, log, anchors), since=checkpoint)
            checked.append(_checked(verdict, since=checkpoint.size))
        else:
            reason = f"The store has no such log, and it had {checkpoint.size} receipts at the given checkpoint."
            checked.append(Checked(f"log {log}", VerdictKind.INVALID, (reason,)))
    return wrong + checked


async def verify_some(paths: StatePaths, anchors: Anchors, receipt_ids: Sequence[str], last: bool, answer: Any) -> list[Checked]:
    """The named receipts, or the newest; with `answer` (a whole JSON answer) also that the receipt is about this very answer."""
    reader = ReceiptReader(paths.receipts)
    found: list[Receipt] = [await reader.get(receipt_id) for receipt_id in receipt_ids]
    if last:
        found.append(await reader.newest())
    response = None if answer is None else {k: v for k, v in dict[str, Any](answer).items() if k not in ABOUT_THE_ANSWER}
    checked: list[Checked] = []
    for receipt in found:
        verdict = verify_envelope(receipt.envelope, anchors.trust, response=response)
        checked.append(Checked(receipt.id, verdict.kind, verdict.reasons))
    return checked


@dataclass(frozen=True, slots=True)
class MadeCheckpoint:
    """A log's newest checkpoint as a signed note, and the key that verifies it. Not `fresh`: a process writes the log and makes them."""

    note: str
    verifier_key: str
    fresh: bool


def make_checkpoints(paths: StatePaths) -> list[MadeCheckpoint]:
    """The newest checkpoint of every log, made now where no process writes it. Raises StoreUnavailable and KeyUnusable."""
    plan = CheckpointPlan(paths.checkpoints, load_or_create_key(paths.checkpoint_key))
    made: list[MadeCheckpoint] = []
    for log in log_ids(paths.receipts):
        fresh = checkpoint_idle(paths.receipts, log, plan)
        notes = newest_notes(checkpoint_path(paths.checkpoints, log))
        if notes:
            made.append(MadeCheckpoint(note_text(notes[-1]), verifier_key(f"{ORIGIN}{log}", plan.key.public), fresh))
    return made


def _checked(verdict: LogVerdict, since: int | None = None) -> Checked:
    notes = list(verdict.notes)
    if verdict.checkpoints:
        notes.append(f"Held against {verdict.checkpoints} checkpoint(s).")
    elif since is None and verdict.rows:
        notes.append(NO_WITNESS)
    if verdict.kind in (VerdictKind.INVALID, VerdictKind.UNCHECKED):
        notes.append(f"`search-router receipts repair {verdict.log}` sets it aside unchanged, and the next start makes a new log.")
    what = f"log {verdict.log}, {verdict.rows} receipts" + (f" after the first {since}" if since is not None else "")
    return Checked(what, verdict.kind, verdict.reasons, tuple(notes))


def _witness(paths: StatePaths, log: str, anchors: Anchors) -> Witness:
    path = checkpoint_path(paths.checkpoints, log)
    return Witness(read_notes(path) if path.exists() else (), anchors.checkpoint_key)


def _checkpointed(directory: Path) -> list[str]:
    return sorted(path.stem for path in directory.glob("*.txt") if LOG_ID.fullmatch(path.stem)) if directory.is_dir() else []


def _own_keys(paths: StatePaths) -> list[Ed25519PublicKey]:
    retired = retired_directory(paths.key)
    files = [public_key_path(paths.key), *(sorted(retired.glob("*.pub")) if retired.is_dir() else ())]
    return [load_public_key(path) for path in files]


def _kept_rotations(paths: StatePaths) -> Iterator[bytes]:
    retired = retired_directory(paths.key)
    for path in sorted(retired.glob("*.rotation.json")) if retired.is_dir() else ():
        yield read_plain(path)


def _trust_on_first_use(
    paths: StatePaths, own: Sequence[Ed25519PublicKey], rotations: Sequence[bytes]
) -> tuple[frozenset[str], tuple[str, ...]]:
    """The key from which all of this machine's own keys come, pinned now, and what to say about it."""
    offered = Trust.unpinned(*own).following(rotations)
    first = next(iter(offered.keys))
    before = {ending.successor: keyid for keyid, ending in offered.endings.items()}
    for _ in before:
        first = before.get(first, first)
    said = f"Nobody had pinned a key, so key {first}, found beside this machine's store, is trusted from now on (trust on first use)."
    try:
        pin_if_none(paths.pins, first, "found beside the store at the first verification")
    except KeyUnusable as error:
        return frozenset({first}), (said, f"It could not be kept: {error}")
    return frozenset({first}), (said, f"It was written to {paths.pins}; compare it with what the store's owner says.")
