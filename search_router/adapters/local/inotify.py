"""The three calls of Linux's inotify that a watch without a thread needs (man 7 inotify).

The kernel queues an event before the system call that made it returns, so who reads the queue knows of every change until then. The
libraries that wrap it read from a thread of their own, which hears of a change only later, or start programs to find the C library.
"""

from __future__ import annotations

import ctypes
import os
import struct
import sys
from collections.abc import Iterator
from typing import Final, NamedTuple

MODIFY: Final = 0x2
ATTRIB: Final = 0x4
CLOSE_WRITE: Final = 0x8
MOVED: Final = 0x40 | 0x80
CREATE: Final = 0x100
DELETE: Final = 0x200
GONE: Final = 0x400 | 0x800 | 0x2000
"""The directory itself was deleted, moved or unmounted."""
OVERFLOW: Final = 0x4000
DIRECTORY: Final = 0x40000000
"""What it happened to is a directory."""
CHANGES: Final = MODIFY | ATTRIB | CLOSE_WRITE | MOVED | CREATE | DELETE | 0x400 | 0x800
_ONLY_DIRECTORY: Final = 0x01000000
_NO_FOLLOW: Final = 0x02000000
_HEAD = struct.Struct("iIII")
_READ_BYTES: Final = 65_536


class Event(NamedTuple):
    """What happened to `name` (empty: to the directory itself) in the watched directory `watch`."""

    watch: int
    mask: int
    name: bytes


class Inotify:
    """One queue of events. Raises OSError where the system has none to give."""

    def __init__(self) -> None:
        if not sys.platform.startswith("linux"):
            raise OSError("inotify is Linux's")
        self._libc = ctypes.CDLL(None, use_errno=True)
        self._descriptor = self._check(self._libc.inotify_init1(os.O_CLOEXEC | os.O_NONBLOCK))

    def watch(self, directory: bytes) -> int:
        """Report changes in a directory (not below it) from now on; gives the number that its events bear."""
        return self._check(self._libc.inotify_add_watch(self._descriptor, directory, CHANGES | _ONLY_DIRECTORY | _NO_FOLLOW))

    def unwatch(self, watch: int) -> None:
        """Stop it; nothing happens when the directory is gone already."""
        self._libc.inotify_rm_watch(self._descriptor, watch)

    def events(self) -> Iterator[Event]:
        """What has happened and was not read yet. Does not wait."""
        while True:
            try:
                data = os.read(self._descriptor, _READ_BYTES)
            except BlockingIOError:
                return
            at = 0
            while at < len(data):
                watch, mask, _, length = _HEAD.unpack_from(data, at)
                at += _HEAD.size
                yield Event(watch, mask, data[at : at + length].rstrip(b"\0"))
                at += length

    def close(self) -> None:
        """Give it back; safe to call twice."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1

    @staticmethod
    def _check(result: int) -> int:
        if result < 0:
            number = ctypes.get_errno()
            raise OSError(number, os.strerror(number))
        return result
