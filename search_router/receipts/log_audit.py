"""What is known of a log while its rows are gone through in order: chain, numbers, keys, tree and checkpoints. See `whole_log`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

from search_router.receipts.checkpoint import Checkpoint, is_checkpoint_signed, read_checkpoint
from search_router.receipts.log import Head, Row
from search_router.receipts.merkle import Tree
from search_router.receipts.note import Note
from search_router.receipts.row_check import RowFindings
from search_router.receipts.statement import first_prev
from search_router.receipts.trust import Trust
from search_router.receipts.verify import VerdictKind, worst

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


class LogAudit:
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

    def add(self, row: Row, found: RowFindings) -> None:
        self.rows += 1
        where = f"Receipt {row.seq}"
        if found.kind is VerdictKind.INVALID:
            self.find(f"{where}: {' '.join(found.reasons)}")
        else:
            self._say_once(found.kind, found.reasons)
        if row.seq != self.head.seq + 1:
            self.find(f"{where} stands after receipt {self.head.seq}: the numbers have a gap.")
        if row.prev != self.head.hash:
            self.find(f"{where} does not follow from receipt {self.head.seq}: the chain is broken.")
        self._judge_key(where, row, found)
        self._compare(row, found)
        self.head = Head(row.seq, row.hash)
        self._grow(row, found)

    def _judge_key(self, where: str, row: Row, found: RowFindings) -> None:
        if row.keyid in self._retired_at:
            self.find(f"{where} is signed with key {row.keyid}, which was retired at receipt {self._retired_at[row.keyid]}.")
        elif row.keyid != self._keyid:
            self.find(f"{where} is signed with key {row.keyid}, and key {self._keyid} signs at this place of the log.")
        rotation = found.rotation
        if rotation is not None and found.kind is not VerdictKind.INVALID and rotation.old == self._keyid:
            self._retired_at[rotation.old] = row.seq
            self._keyid = rotation.new

    def _compare(self, row: Row, found: RowFindings) -> None:
        if found.log is None:
            return
        if found.log != self.log:
            self.find(f"Receipt {row.seq} says that it belongs to log {found.log}.")
        if not found.columns_agree:
            self.find(f"Receipt {row.seq}: the columns of the log differ from its envelope.")
        if found.time_us < self._time_us:
            back = self._time_us - found.time_us
            if len(self._notes) < MAX_REASONS:
                self._notes.append(f"Between receipts {row.seq - 1} and {row.seq} the clock went back by {back} us.")
        self._time_us = found.time_us

    def _grow(self, row: Row, found: RowFindings) -> None:
        """The tree is made of the payloads themselves, and then compared with what the log stores of it."""
        if self._tree is None or found.payload_hash is None or row.seq != self._tree.size + 1:
            self._tree = None  # nothing can be said of the tree any more; why has been said
            return
        self._tree, completed = self._tree.append(bytes.fromhex(found.payload_hash))
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
