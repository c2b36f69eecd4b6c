"""Judges whole logs: every envelope, the chain, the columns, the tree, key rotations, and the log's checkpoints. See `verify`.

Rows are read a bounded number at a time, so memory does not grow with the log, also while another process appends.
"""

from __future__ import annotations

import math
import sqlite3
from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

from search_router.errors import StoreUnavailable
from search_router.receipts.checkpoint import Checkpoint, is_checkpoint_signed, read_checkpoint
from search_router.receipts.crew import Crew, members_for
from search_router.receipts.log import (
    SCHEMA_VERSION,
    SELECT_ROWS_AND_NODES,
    Head,
    Row,
    check_identity,
    node_reader,
    open_for_reading,
    read_rotations,
    read_rows,
)
from search_router.receipts.merkle import Tree, prove_consistency, tree_at, verify_consistency
from search_router.receipts.note import Note
from search_router.receipts.statement import first_prev
from search_router.receipts.trust import Trust
from search_router.receipts.verify import Verdict, VerdictKind, worst

BATCH = 100
MAX_REASONS = 20


@dataclass(frozen=True, slots=True)
class LogVerdict:
    """What was found about one log.

    `reasons` holds at most 20 sentences and `problems` counts all. `notes` are facts that prove nothing but should be seen, such as a clock
    that went back. `rows` were read; `head` is the last of them and `tree` the tree up to it (None when it cannot be known), to compare
    with a copy kept elsewhere. `checkpoints` is how many the log was held against.
    """

    kind: VerdictKind
    log: str
    rows: int
    head: Head | None
    problems: int = 0
    reasons: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    checkpoints: int = 0
    tree: Tree | None = None


@dataclass(frozen=True, slots=True)
class Witness:
    """What a log is held against: its checkpoints in order, and the public key that should have signed them (None: not at hand)."""

    notes: Iterable[Note] = ()
    key: Ed25519PublicKey | None = None


def rotations_of(path: Path) -> list[bytes]:
    """The envelopes of a log's key rotations, for `Trust.following`; none where the log cannot be read, as judging it will say."""
    try:
        with open_for_reading(path) as database:
            return read_rotations(database)
    except sqlite3.Error:
        return []


def verify_log(
    path: Path, trust: Trust, witness: Witness | None = None, *, since: Checkpoint | None = None, members: int | None = None
) -> LogVerdict:
    """Judge a whole log file: every envelope, one unbroken chain from the first receipt, columns and stored subtrees that say what the
    envelopes say, and each of the witness's checkpoints.

    With `since`, a checkpoint of this log that the caller trusts, only later receipts are read; that the log still begins as it did then is
    shown by a consistency proof over its stored subtrees. `members` is how many processes judge; None: as many as pay off.
    """
    log = path.name.removesuffix(".sqlite")
    audit = _LogAudit(log, trust, witness or Witness())
    try:
        with open_for_reading(path) as database:
            version, owner = check_identity(path, database)
            if version < SCHEMA_VERSION:
                audit.cannot_check(f"It has schema version {version}, without a tree: the next start of search-router upgrades it.")
                return audit.verdict()
            audit.expect_owner(owner)
            if since is not None:
                _begin_after(since, path, database, audit)
            (size,) = database.execute("SELECT count(*) FROM receipts WHERE seq > ?", (audit.head.seq,)).fetchone()
            with Crew(trust, members_for(size) if members is None else members) as crew:
                _read_through(database, audit, crew)
    except StoreUnavailable as error:
        audit.cannot_check(error.message)
    except (sqlite3.Error, TypeError, ValueError, OSError) as error:
        audit.cannot_check(f"The file cannot be read after receipt {audit.head.seq}: {error}.")
    return audit.verdict()


def _read_through(database: sqlite3.Connection, audit: _LogAudit, crew: Crew) -> None:
    looked_again_for: Checkpoint | None = None
    while True:
        rows = audit.rows
        _read_once(database, audit, crew)
        if audit.awaited is None or (audit.awaited == looked_again_for and audit.rows == rows):
            break
        # The checkpoint may be newer than the rows that were read; what it counts was on disk before it.
        looked_again_for = audit.awaited
    audit.end()


def _read_once(database: sqlite3.Connection, audit: _LogAudit, crew: Crew) -> None:
    """All rows after the audit's last one."""
    on_the_way: deque[list[Row]] = deque()

    def read() -> Iterator[list[bytes]]:
        last = float(audit.head.seq) if audit.rows or audit.head.seq else -math.inf
        while rows := read_rows(database, f"{SELECT_ROWS_AND_NODES} WHERE seq > ? ORDER BY seq LIMIT ?", (last, BATCH)):
            on_the_way.append(rows)
            last = rows[-1].seq
            yield [row.envelope for row in rows]

    for verdicts in crew.judge(read()):
        for row, verdict in zip(on_the_way.popleft(), verdicts, strict=True):
            audit.add(row, verdict)


def _begin_after(since: Checkpoint, path: Path, database: sqlite3.Connection, audit: _LogAudit) -> None:
    """Stand where the checkpoint was made, if the log still begins as it did then; else say so and begin at the beginning."""
    (size,) = database.execute("SELECT coalesce(max(seq), 0) FROM receipts").fetchone()
    if since.size > size:
        audit.find(f"It has {size} receipts, and had {since.size} at the given checkpoint: its end was cut off.")
        return
    read = node_reader(path, database)
    then, now = tree_at(read, since.size), tree_at(read, size)
    proof = prove_consistency(read, since.size, size)
    if then.root() != since.root or not verify_consistency(since.size, size, since.root, now.root(), proof):
        audit.find(f"Its first {since.size} receipts are not those of the given checkpoint: it was rebuilt, forked or restored.")
        return
    found = database.execute("SELECT hash FROM receipts WHERE seq = ?", (since.size,)).fetchone()
    audit.begin(then, found[0] if found else first_prev(audit.log), now)


class _LogAudit:
    """Goes through the rows of one log in order and collects what is wrong."""

    def __init__(self, log: str, trust: Trust, witness: Witness) -> None:
        self.log = log
        self._trust = trust
        self._witness_key = witness.key
        self._coming = self._readable(witness.notes)
        self._kinds: set[VerdictKind] = set()
        self._reasons: list[str] = []
        self._problems = 0
        self._notes: list[str] = []
        self.rows = 0
        self._checkpoints = 0
        self._keyid: str | None = None
        self._retired_at: dict[str, int] = {}
        self._time_us = 0
        self._tree: Tree | None = Tree()
        self._stored_now: Tree | None = None
        self.head = Head(0, first_prev(log))
        self.awaited: Checkpoint | None = None
        """The next checkpoint to come, with more receipts than were read so far."""
        self._next_checkpoint()

    def expect_owner(self, keyid: str) -> None:
        self._keyid = keyid
        if self._trust.pinned and not self._trust.vouches(keyid):
            self.find(f"The log was made for key {keyid}, which is not pinned and was not handed over to.")
        for doubt in self._trust.doubts:
            self.find(doubt)

    def begin(self, tree: Tree, last_hash: str, now: Tree) -> None:
        """Begin after `tree`, which is known to be right; `now` is what the log stores of the tree up to its end."""
        self._tree, self.head, self._stored_now = tree, Head(tree.size, last_hash), now
        while (ending := self._trust.endings.get(self._keyid or "")) and ending.seqs.get(self.log, tree.size + 1) <= tree.size:
            self._retired_at[self._keyid or ""] = ending.seqs[self.log]
            self._keyid = ending.successor
        while self.awaited is not None and self.awaited.size < tree.size:
            self._next_checkpoint()  # the given checkpoint vouches for what was before it
        self._hold_against_checkpoints()

    def add(self, row: Row, verdict: Verdict) -> None:
        self.rows += 1
        where = f"Receipt {row.seq}"
        if verdict.kind is VerdictKind.INVALID:
            self.find(f"{where}: {' '.join(verdict.reasons)}")
        else:
            self._say_once(verdict.kind, verdict.reasons)
        if row.seq != self.head.seq + 1:
            self.find(f"{where} stands after receipt {self.head.seq}: the numbers have a gap.")
        if row.prev != self.head.hash:
            self.find(f"{where} does not follow from receipt {self.head.seq}: the chain is broken.")
        self._judge_key(where, row, verdict)
        self._compare(row, verdict)
        self.head = Head(row.seq, row.hash)
        self._grow(row, verdict)

    def _judge_key(self, where: str, row: Row, verdict: Verdict) -> None:
        if row.keyid in self._retired_at:
            self.find(f"{where} is signed with key {row.keyid}, which was retired at receipt {self._retired_at[row.keyid]}.")
        elif row.keyid != self._keyid:
            self.find(f"{where} is signed with key {row.keyid}, and key {self._keyid} signs at this place of the log.")
        rotation = verdict.facts.rotation if verdict.facts is not None else None
        if rotation is not None and verdict.kind is not VerdictKind.INVALID and rotation.old == self._keyid:
            self._retired_at[rotation.old] = row.seq
            self._keyid = rotation.new

    def _compare(self, row: Row, verdict: Verdict) -> None:
        facts = verdict.facts
        if facts is None or verdict.envelope is None:
            return
        if facts.position.log != self.log:
            self.find(f"Receipt {row.seq} says that it belongs to log {facts.position.log}.")
        if Row.of(facts, verdict.envelope) != row:
            self.find(f"Receipt {row.seq}: the columns of the log differ from its envelope.")
        if facts.position.time_us < self._time_us:
            back = self._time_us - facts.position.time_us
            if len(self._notes) < MAX_REASONS:
                self._notes.append(f"Between receipts {row.seq - 1} and {row.seq} the clock went back by {back} us.")
        self._time_us = facts.position.time_us

    def _grow(self, row: Row, verdict: Verdict) -> None:
        """The tree is made of the payloads themselves, and then compared with what the log stores of it."""
        if self._tree is None or verdict.envelope is None or row.seq != self._tree.size + 1:
            self._tree = None  # nothing can be said of the tree any more; why has been said
            return
        self._tree, completed = self._tree.append(bytes.fromhex(Row.payload_hash(verdict.envelope)))
        if row.nodes != b"".join(completed):
            self.find(f"Receipt {row.seq}: the part of the tree that is stored with it is not that of the receipts.")
        if self._stored_now is not None and self._tree.size == self._stored_now.size and self._tree != self._stored_now:
            self.find(f"The receipts up to {row.seq} do not give the root that the log's stored tree has.")
        self._hold_against_checkpoints()

    def _hold_against_checkpoints(self) -> None:
        while self._tree is not None and self.awaited is not None and self.awaited.size == self._tree.size:
            self._checkpoints += 1
            if self.awaited.root != self._tree.root():
                self.find(
                    f"The first {self.awaited.size} receipts are not those of a checkpoint: the log was rebuilt, forked, or restored and "
                    "written on."
                )
            self._next_checkpoint()

    def _next_checkpoint(self) -> None:
        before = self.awaited.size if self.awaited is not None else 0
        self.awaited = None
        for note in self._coming:
            try:
                checkpoint = read_checkpoint(note)
            except ValueError as error:
                self.find(f"Among its checkpoints stands a note that is {error}.")
                continue
            if checkpoint.log != self.log:
                self.find(f"Among its checkpoints stands one of log {checkpoint.log}.")
            elif self._witness_key is None:
                self.cannot_check("The public key of its checkpoints is not at hand.")
            elif not is_checkpoint_signed(note, checkpoint, self._witness_key):
                self.find(f"A checkpoint at {checkpoint.size} receipts is not signed by the checkpoint key.")
            elif checkpoint.size < before:
                self.find(f"Its checkpoints go back from {before} to {checkpoint.size} receipts.")
            else:
                self.awaited = checkpoint
                return

    def _readable(self, notes: Iterable[Note]) -> Iterator[Note]:
        try:
            yield from notes
        except OSError as error:
            self.cannot_check(f"Its checkpoints cannot be read: {error.filename or ''}: {error.strerror or error}.")

    def end(self) -> None:
        """All rows were read."""
        if self.awaited is not None and self._tree is not None:
            self.find(f"It has {self._tree.size} receipts, and had {self.awaited.size} at a checkpoint: its end was cut off.")

    def _say_once(self, kind: VerdictKind, reasons: tuple[str, ...]) -> None:
        self._kinds.add(kind)
        self._reasons += [reason for reason in reasons if reason not in self._reasons and len(self._reasons) < MAX_REASONS]

    def cannot_check(self, why: str) -> None:
        self._find(VerdictKind.UNCHECKED, why)

    def find(self, reason: str) -> None:
        self._find(VerdictKind.INVALID, reason)

    def _find(self, kind: VerdictKind, reason: str) -> None:
        self._kinds.add(kind)
        self._problems += 1
        if len(self._reasons) < MAX_REASONS:
            self._reasons.append(reason)

    def verdict(self) -> LogVerdict:
        kind = worst(self._kinds, VerdictKind.VALID if self._trust.pinned else VerdictKind.UNPINNED)
        head = self.head if self.rows else None
        told = (tuple(self._reasons), tuple(self._notes))
        return LogVerdict(kind, self.log, self.rows, head, self._problems, *told, self._checkpoints, self._tree)
