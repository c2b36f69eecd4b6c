"""A real server process for measurements, and what the system says of a process: memory, open files, threads."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections import deque
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

START_SECONDS = 60.0
STOP_SECONDS = 10.0
_LISTENING = "search-router: listening on http://"


@dataclass(frozen=True, slots=True)
class Resources:
    """Of one process: resident memory in MiB, open file descriptors, threads."""

    rss_mib: float
    files: int
    threads: int


def resources_of(pid: int) -> Resources:
    """From /proc, so on Linux alone. Raises OSError when there is no such process."""
    proc = Path("/proc") / str(pid)
    said = dict(line.split(":", 1) for line in (proc / "status").read_text("utf-8").splitlines() if ":" in line)
    return Resources(round(int(said["VmRSS"].split()[0]) / 1024, 1), len(os.listdir(proc / "fd")), int(said["Threads"]))  # noqa: PTH208 - a count of names, no paths


def peak_rss_mib(pid: int) -> float:
    """The most resident memory that the process ever had. From /proc; raises OSError when there is no such process."""
    said = (Path("/proc") / str(pid) / "status").read_text("utf-8")
    return round(int(said.partition("VmHWM:")[2].split()[0]) / 1024, 1)


def cpu_seconds_of(pid: int) -> float:
    """User and system time of a process and of its children that have ended. From /proc; raises OSError when there is no such process."""
    fields = (Path("/proc") / str(pid) / "stat").read_text("utf-8").rpartition(")")[2].split()
    return sum(int(field) for field in fields[11:15]) / os.sysconf("SC_CLK_TCK")


@contextmanager
def http_server(root: Path, flags: Sequence[str], environ: Mapping[str, str]) -> Generator[tuple[int, int]]:
    """(process id, port) of `search-router serve --transport http --port 0` over a directory; ended on leaving.

    Raises:
        RuntimeError: it did not say in time where it listens.
    """
    options = [option for flag in flags for option in ("--set", flag)]
    argv = [sys.executable, "-m", "search_router", "serve", "--transport", "http", "--port", "0", "--root", str(root), *options]
    process = subprocess.Popen(argv, env=dict(environ), stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    said: deque[str] = deque(maxlen=50)
    listening = threading.Event()

    def follow() -> None:
        assert process.stderr is not None
        for line in process.stderr:
            said.append(line.decode("utf-8", "replace").rstrip())
            if said[-1].startswith(_LISTENING):
                listening.set()
        listening.set()  # it has ended

    reader = threading.Thread(target=follow, daemon=True)
    reader.start()
    try:
        listening.wait(START_SECONDS)
        urls = [line for line in said if line.startswith(_LISTENING)]
        if not urls:
            raise RuntimeError(f"the server did not start: {list(said)}")
        yield process.pid, int(urls[0].removeprefix(_LISTENING).split("/")[0].rpartition(":")[2])
    finally:
        process.terminate()
        try:
            process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        reader.join(STOP_SECONDS)
        assert process.stderr is not None
        process.stderr.close()
