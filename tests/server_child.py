"""Servers as child processes: started, asked where they listen, and always ended by their process id."""

from __future__ import annotations

import contextlib
import os
import queue
import subprocess
import sys
import threading
from collections.abc import Generator, Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
START_SECONDS = 30
STOP_SECONDS = 10
COMMAND = [sys.executable, "-m", "tests.fake_server"]
PRODUCT = [sys.executable, "-m", "search_router"]


def child_env(**more: str) -> dict[str, str]:
    return os.environ | {"PYTHONPATH": str(ROOT)} | more


class Child:
    """A running server. Its standard error is read all the time, line by line."""

    def __init__(
        self,
        *arguments: str,
        command: Sequence[str] = COMMAND,
        stdin: int = subprocess.DEVNULL,
        stdout: int = subprocess.DEVNULL,
        **env: str,
    ) -> None:
        self.process = subprocess.Popen(
            [*command, *arguments], cwd=ROOT, env=child_env(**env), stdin=stdin, stdout=stdout, stderr=subprocess.PIPE
        )
        self.lines: queue.Queue[str] = queue.Queue()
        self.errors: list[str] = []
        self._reader = threading.Thread(target=self._follow, daemon=True)
        self._reader.start()

    def _follow(self) -> None:
        assert self.process.stderr is not None
        for line in self.process.stderr:
            text = line.decode("utf-8", "backslashreplace").rstrip("\n")
            self.errors.append(text)
            self.lines.put(text)

    def url(self) -> str:
        """The address from its first line on standard error."""
        line = self.lines.get(timeout=START_SECONDS)
        assert line.startswith("search-router: listening on http://"), line
        return line.rsplit(" ", 1)[1]

    def wait(self, seconds: float = STOP_SECONDS) -> int:
        code = self.process.wait(seconds)
        self._reader.join(seconds)
        return code

    def stop(self) -> None:
        self.process.terminate()
        try:
            self.wait()
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.wait()
        for stream in (self.process.stdin, self.process.stdout, self.process.stderr):
            if stream is not None:
                with contextlib.suppress(BrokenPipeError):
                    stream.close()


@contextlib.contextmanager
def running(
    *arguments: str,
    command: Sequence[str] = COMMAND,
    stdin: int = subprocess.DEVNULL,
    stdout: int = subprocess.DEVNULL,
    **env: str,
) -> Generator[Child]:
    child = Child(*arguments, command=command, stdin=stdin, stdout=stdout, **env)
    try:
        yield child
    finally:
        child.stop()
