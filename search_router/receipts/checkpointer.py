"""When checkpoints are made: beside the writer of a log, after the answers have left, and once more on a clean stop."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from dataclasses import dataclass
from pathlib import Path

import anyio.to_thread

from search_router.errors import StoreUnavailable
from search_router.receipts.checkpoint import append_checkpoint, checkpoint_of, checkpoint_path, refuse_rollback
from search_router.receipts.claim import claim_idle
from search_router.receipts.keys import SigningKey
from search_router.receipts.merkle import Tree

_log = logging.getLogger(__name__)

STOP_SECONDS = 10.0


@dataclass(frozen=True, slots=True)
class CheckpointPlan:
    """Where checkpoints go, who signs them, and how often: after so many receipts, or so many seconds when there is something new."""

    directory: Path
    key: SigningKey
    every_receipts: int = 1000
    every_seconds: float = 60.0


def checkpoint_idle(directory: Path, log: str, plan: CheckpointPlan) -> bool:
    """Make a checkpoint of a log that no process writes, if it has grown since its newest one; False when a process writes it.

    Raises:
        StoreUnavailable: the log is damaged or is not what it was at its newest checkpoint, or the file cannot be written.
    """
    with claim_idle(directory, log) as claimed:
        if claimed is None:
            return False
        path = checkpoint_path(plan.directory, log)
        if refuse_rollback(path, plan.key.public, claimed.path, claimed.tip) < claimed.tip.tree.size:
            append_checkpoint(path, checkpoint_of(log, claimed.tip.tree).signed(plan.key))
        return True


class Checkpointer:
    """Signs the state of one log from time to time. A checkpoint that cannot be written harms no receipt: it is logged and tried again."""

    def __init__(self, plan: CheckpointPlan, log: str, tree: Tree, checkpointed: int) -> None:
        self._plan = plan
        self._name = log
        self._path = checkpoint_path(plan.directory, log)
        self._tree = tree
        self._done = checkpointed
        self._due = asyncio.Event()
        self._stopping = False
        self._task: asyncio.Task[None] | None = None
        self.failure: StoreUnavailable | None = None
        """Why the newest checkpoint could not be written; None when it could."""

    def start(self) -> None:
        self._task = asyncio.create_task(self._run(), name=f"checkpoints of receipt log {self._name}")

    def see(self, tree: Tree) -> None:
        """The log has grown to this tree, on disk. Costs nothing: the checkpoint is made elsewhere."""
        self._tree = tree
        if tree.size - self._done >= self._plan.every_receipts:
            self._due.set()

    async def aclose(self) -> None:
        """Make the last checkpoint and stop."""
        task, self._task = self._task, None
        if task is None:
            return
        self._stopping = True
        self._due.set()
        await asyncio.wait({task}, timeout=STOP_SECONDS)
        task.cancel()  # only what hangs is still there; a write that is cancelled could still happen, and so be made twice

    async def _run(self) -> None:
        while not self._stopping:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._due.wait(), self._plan.every_seconds)
            self._due.clear()
            await self._write()
        await self._write()

    async def _write(self) -> None:
        tree = self._tree
        if tree.size <= self._done:
            return
        try:
            note = checkpoint_of(self._name, tree).signed(self._plan.key)
            await anyio.to_thread.run_sync(append_checkpoint, self._path, note)
        except StoreUnavailable as error:
            self.failure = error
            _log.error("No checkpoint of receipt log %s at %d receipts: %s", self._name, tree.size, error)
        else:
            self.failure = None
            self._done = tree.size
