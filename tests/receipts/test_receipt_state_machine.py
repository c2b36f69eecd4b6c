"""Whatever order of appends, restarts, rotations, checkpoints and attacks: a sound store is valid, and an attacked one never is."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

import anyio
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from search_router.errors import StoreUnavailable
from search_router.receipts.checkpoint import read_notes
from search_router.receipts.log_audit import LogVerdict, Witness
from search_router.receipts.trust import Trust
from search_router.receipts.verify import VerdictKind
from search_router.receipts.whole_log import rotations_of, verify_log
from tests.receipts.attacks import Attack, attack, edit_envelope, edit_signature, rebuild, sql
from tests.receipts.stores import StateDirectory

EDITS: dict[str, Attack] = {
    "signature": edit_envelope(1, edit_signature),
    "column": sql("UPDATE receipts SET time_us = time_us + 1 WHERE seq = (SELECT max(seq) FROM receipts)"),
    "subtree": sql("UPDATE receipts SET nodes = x'00' WHERE seq = 1"),
    "gap": sql("DELETE FROM receipts WHERE seq = 1"),
    "cut": sql("DELETE FROM receipts WHERE seq = (SELECT max(seq) FROM receipts)"),
}


class Receipts(RuleBasedStateMachine):
    """One state directory; `written` counts what the log must hold and `witnessed` what its newest checkpoint says."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = Path(tempfile.mkdtemp())
        self.state = StateDirectory(self.folder / "home")
        self.written = self.witnessed = 0

    def teardown(self) -> None:
        shutil.rmtree(self.folder)

    @initialize(count=st.integers(1, 3))
    def begin(self, count: int) -> None:
        self.first = self.state.key.public
        self.append_and_stop(count)

    @rule(count=st.integers(1, 5))
    def append_and_stop(self, count: int) -> None:
        """Ends cleanly, with a checkpoint."""
        stored = self.state.append(count)
        assert [one.seq for one in stored] == list(range(self.written + 1, self.written + count + 1))
        self.written = self.witnessed = self.written + count

    @rule(count=st.integers(1, 5))
    def append_without_checkpoint(self, count: int) -> None:
        """As far as a crash gets."""
        self.state.append(count, checkpoints=False)
        self.written += count

    @rule()
    def restart(self) -> None:
        """Makes the checkpoint that a crash left out."""

        async def run() -> None:
            async with self.state.opened():
                pass

        anyio.run(run)
        self.witnessed = self.written

    @rule()
    def rotate(self) -> None:
        assert len(self.state.rotate().records) == 1
        self.written += 1

    @rule()
    def checkpoint_by_command(self) -> None:
        assert self.state.run("checkpoint").code == 0
        self.witnessed = self.written

    @rule(edit=st.sampled_from(sorted(EDITS)))
    def attack_a_copy(self, edit: str) -> None:
        copy = self.copy()
        attack(copy.log(), EDITS[edit])
        found = self.verify(copy)
        unseen = edit == "cut" and self.written > self.witnessed  # cut behind the newest checkpoint: only a client would notice
        assert found.kind is (VerdictKind.VALID if unseen else VerdictKind.INVALID), (edit, found)

    @precondition(lambda self: self.witnessed > 0)
    @rule()
    def rebuild_a_copy_with_the_same_key(self) -> None:
        copy = self.copy()
        attack(copy.log(), rebuild(copy.key, from_seq=1))
        assert self.verify(copy).kind is VerdictKind.INVALID
        try:
            copy.append(1)
        except StoreUnavailable:
            return
        raise AssertionError("a rebuilt log was written on")

    @rule()
    def fork(self) -> None:
        """Two copies go on; each is sound by itself, and neither by the other's checkpoints."""
        ours, theirs = self.copy(), self.copy("other")
        for state in (ours, theirs):
            state.append(2)
        assert self.verify(ours).kind is self.verify(theirs).kind is VerdictKind.VALID
        assert self.verify(ours, theirs.checkpoint_file()).kind is VerdictKind.INVALID

    @invariant()
    def the_store_is_valid_from_its_first_key_and_whole(self) -> None:
        if not self.written:
            return
        found = self.verify(self.state)
        assert (found.kind, found.rows, found.reasons) == (VerdictKind.VALID, self.written, ())

    def copy(self, name: str = "copy") -> StateDirectory:
        shutil.rmtree(self.folder / name, ignore_errors=True)
        return self.state.copy(self.folder / name)

    def verify(self, state: StateDirectory, checkpoints: Path | None = None) -> LogVerdict:
        trust = Trust.pinning(self.first).following(rotations_of(state.log()))
        notes = read_notes(checkpoints or state.checkpoint_file())
        return verify_log(state.log(), trust, Witness(notes, state.plan().key.public), members=0)


TestReceipts = Receipts.TestCase
TestReceipts.settings = settings(
    max_examples=10, stateful_step_count=8, deadline=None, suppress_health_check=[HealthCheck.too_slow], derandomize=True
)
