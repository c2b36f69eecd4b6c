"""Standard input and output, claimed for a protocol before anything can print there."""

from __future__ import annotations

import contextlib
import fcntl
import os
import sys
from collections.abc import Generator
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Wire:
    """The two descriptors that carry the protocol."""

    source: int
    sink: int


@contextlib.contextmanager
def claim_standard_streams() -> Generator[Wire]:
    """Keep standard input and output for the protocol alone while inside.

    Everybody else in this process, C libraries and child processes too, reads end of file and writes to standard error.
    Enter it before anything that might print.
    """
    sys.stdout.flush()
    wire = Wire(fcntl.fcntl(0, fcntl.F_DUPFD_CLOEXEC, 3), fcntl.fcntl(1, fcntl.F_DUPFD_CLOEXEC, 3))
    nothing = os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC)
    try:
        os.dup2(nothing, 0)
        try:
            os.dup2(2, 1)
        except OSError:  # started with standard error closed
            os.dup2(nothing, 1)
        with contextlib.redirect_stdout(sys.stderr):
            yield wire
        sys.stdout.flush()
    finally:
        os.dup2(wire.source, 0)
        os.dup2(wire.sink, 1)
        for descriptor in (wire.source, wire.sink, nothing):
            os.close(descriptor)
