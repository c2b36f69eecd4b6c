"""Rows judged on several processors: a crew of child processes that judge batches in turn, and hand back what they found in order.

    python -m search_router.receipts.crew FD      one member; FD is its end of a socket pair

Signatures and canonical form are nine tenths of a verification. A member reads until its socket ends, which it does when we end in whatever
way, so that none outlives us.
"""

from __future__ import annotations

import contextlib
import os
import socket
import subprocess
import sys
from collections.abc import Generator, Iterable, Iterator, Sequence
from multiprocessing.connection import Connection
from types import TracebackType

from search_router.receipts.row_check import RowFindings, StoredRow, judge_rows
from search_router.receipts.trust import Trust

MAX_MEMBERS = 4
END_SECONDS = 5.0

Batch = Sequence[StoredRow]


class Crew:
    """Some processes that judge rows under one trust; none, and the caller's own process does it. A context manager."""

    def __init__(self, trust: Trust, members: int) -> None:
        self._trust = trust
        self._count = min(members, MAX_MEMBERS)
        self._members: list[tuple[subprocess.Popen[bytes], Connection]] = []

    def __enter__(self) -> Crew:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        for _, connection in self._members:
            connection.close()
        for process, _ in self._members:
            try:
                process.wait(END_SECONDS)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        self._members = []

    def judge(self, batches: Iterable[Batch]) -> Iterator[list[RowFindings]]:
        """What was found about each batch, in order. OSError when a member ended.

        At most one batch a member is on its way, and its answer is taken before the next is sent: so neither side waits in vain.
        """
        if self._count < 2:
            for batch in batches:
                yield judge_rows(batch, self._trust)
            return
        self._begin()
        waiting: list[Connection] = []
        coming = iter(batches)
        for (_, connection), batch in zip(self._members, coming, strict=False):
            connection.send(batch)
            waiting.append(connection)
        while waiting:
            connection = waiting.pop(0)
            try:
                found: list[RowFindings] = connection.recv()
            except EOFError as error:
                raise OSError("a process that verified receipts ended unexpectedly") from error
            if (batch := next(coming, None)) is not None:
                connection.send(batch)
                waiting.append(connection)
            yield found

    def _begin(self) -> None:
        while len(self._members) < self._count:
            ours, theirs = socket.socketpair()
            with theirs:
                command = [sys.executable, "-m", __name__, str(theirs.fileno())]
                process = subprocess.Popen(command, pass_fds=[theirs.fileno()], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
            connection = Connection(ours.detach())
            self._members.append((process, connection))
            connection.send(self._trust.packed())


@contextlib.contextmanager
def _serving(descriptor: int) -> Generator[Connection]:
    with contextlib.suppress(EOFError, BrokenPipeError, ConnectionResetError, KeyboardInterrupt), Connection(descriptor) as connection:
        yield connection


def serve(descriptor: int) -> None:
    """What a member does: judge what comes, until nothing can come any more."""
    with _serving(descriptor) as connection:
        trust = Trust.unpacked(connection.recv())
        while True:
            batch: Batch = connection.recv()
            connection.send(judge_rows(batch, trust))


def members_for(receipts: int) -> int:
    """How many processes pay off for so many receipts: none for what one process judges in a second."""
    return (os.cpu_count() or 1) if receipts > 3000 else 0


if __name__ == "__main__":
    serve(int(sys.argv[1]))
