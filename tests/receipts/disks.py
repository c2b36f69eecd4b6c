"""A real disk of its own that can be full or read-only. Mounting one takes root; elsewhere these tests are skipped."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

needs_mount = pytest.mark.skipif(os.geteuid() != 0, reason="needs to mount a file system")


@contextmanager
def mounted_disk(mebibytes: int) -> Iterator[Path]:
    """A file system in memory of this size; skips the test where none can be mounted."""
    mountpoint = Path(tempfile.mkdtemp())
    command = ["mount", "-t", "tmpfs", "-o", f"size={mebibytes}m", "tmpfs", str(mountpoint)]
    if subprocess.run(command, capture_output=True, check=False).returncode:
        mountpoint.rmdir()
        pytest.skip("cannot mount a small file system")
    try:
        yield mountpoint
    finally:
        subprocess.run(["umount", str(mountpoint)], check=True)
        mountpoint.rmdir()


def remount(disk: Path, mode: str) -> None:
    """Make it read-only (`ro`) or writable (`rw`)."""
    subprocess.run(["mount", "-o", f"remount,{mode}", str(disk)], check=True)


@contextmanager
def filled(disk: Path, but: int = 0) -> Iterator[None]:
    """Not a byte more than `but` can be written."""
    filler = disk / "filler"
    filler.write_bytes(b"x" * (shutil.disk_usage(disk).free - but))
    try:
        yield
    finally:
        filler.unlink()


@contextmanager
def read_only(disk: Path) -> Iterator[None]:
    remount(disk, "ro")
    try:
        yield
    finally:
        remount(disk, "rw")
