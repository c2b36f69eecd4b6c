"""Real `search-router serve` processes: started, talked to, killed, and looked for in the table of processes afterwards."""

from __future__ import annotations

import contextlib
import json
import os
import queue
import select
import subprocess
import sys
import threading
import time
import uuid
from collections.abc import Generator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from search_router.benchmark.mcp_client import Answer, BrokenAnswer, call_message, read_answer
from tests.adapters.local.git_repository import Repository

ROOT = Path(__file__).resolve().parent.parent
TAG = "CRASH_TEST_TAG"
START_SECONDS = 60
STOP_SECONDS = 10
GONE_SECONDS = 3.0
_LISTENING = "search-router: listening on http://"
READ_BACK = """
import anyio, json, sys
from pathlib import Path
from search_router.receipts.reading import ReceiptReader

async def read():
    reader = ReceiptReader(Path(sys.argv[1]))
    for line in sys.stdin:
        receipt = await reader.get(line.strip())
        print(json.dumps({"id": receipt.id, "envelope": json.loads(receipt.envelope)}))

anyio.run(read)
"""


def make_work(root: Path, *, files: int = 40, lines: int = 30, commits: int = 60) -> Path:
    """A repository with a history. `files` above 200 are indexed by worker processes."""
    repository = Repository(root)
    body = {
        f"pkg{n % 7}/module_{n}.py": "\n".join(f"def function_{n}_{i}(value):\n    return value + {i}\n" for i in range(lines))
        for n in range(files)
    }
    repository.commit("Start the project", body)
    repository.commit("Introduce needle_of_history", {"late.py": "needle_of_history = 1\n"})
    repository.commit("Take it out", {"late.py": None})
    repository.grow(commits)
    return root


@dataclass(eq=False)
class Home:
    """One state directory."""

    folder: Path
    environ: dict[str, str] = field(init=False)

    def __post_init__(self) -> None:
        config = self.folder / "user.toml"
        config.parent.mkdir(parents=True, exist_ok=True)
        config.touch()
        kept = {key: value for key, value in os.environ.items() if not key.startswith("SEARCH_ROUTER")}
        self.environ = {
            **kept,
            "PYTHONPATH": str(ROOT),
            "SEARCH_ROUTER_HOME": str(self.folder / "home"),
            "SEARCH_ROUTER_CONFIG": str(config),
        }

    def run(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        argv = [sys.executable, "-m", "search_router", *arguments]
        return subprocess.run(argv, env=self.environ, cwd=self.folder, capture_output=True, text=True, timeout=60, check=False)

    def read_back(self, ids: list[str]) -> dict[str, Any]:
        """The stored envelopes of these receipts, read by a new process."""
        argv = [sys.executable, "-c", READ_BACK, str(self.folder / "home" / "receipts")]
        done = subprocess.run(argv, input="\n".join(ids), env=self.environ, capture_output=True, text=True, timeout=60, check=False)
        assert done.returncode == 0, done.stderr[-2000:]
        return {row["id"]: row["envelope"] for row in map(json.loads, done.stdout.splitlines())}

    def check(self, answers: list[Answer]) -> None:
        """Every answer's receipt is in the store as it was handed out, and every log verifies."""
        assert self.read_back([a.receipt_id for a in answers]) == {a.receipt_id: a.envelope for a in answers}
        verified = self.run("receipts", "verify", "--all", "--json")
        assert verified.returncode == 0, verified.stdout + verified.stderr


class Server:
    """A running server. Its children carry a tag of its own in their environment."""

    def __init__(self, home: Home, work: Path, transport: str, *flags: str) -> None:
        self.tag = uuid.uuid4().hex
        options = [option for flag in flags for option in ("--set", flag)]
        where = ["--port", "0"] if transport == "http" else []
        pipe = subprocess.PIPE if transport == "stdio" else subprocess.DEVNULL
        argv = [sys.executable, "-m", "search_router", "serve", "--transport", transport, *where, "--root", str(work), *options]
        self.process = subprocess.Popen(
            argv, env={**home.environ, TAG: self.tag}, cwd=home.folder, stdin=pipe, stdout=pipe, stderr=subprocess.PIPE
        )
        self.pid = self.process.pid
        self.said: list[str] = []
        self._lines: queue.Queue[str] = queue.Queue()
        self._reader = threading.Thread(target=self._follow, daemon=True)
        self._reader.start()
        self._rest = b""

    def _follow(self) -> None:
        assert self.process.stderr is not None
        for line in self.process.stderr:
            self.said.append(line.decode("utf-8", "replace").rstrip())
            self._lines.put(self.said[-1])

    def port(self) -> int:
        while not (line := self._lines.get(timeout=START_SECONDS)).startswith(_LISTENING):
            pass
        return int(line.removeprefix(_LISTENING).split("/")[0].rpartition(":")[2])

    # ------------------------------------------------------------ stdio

    def send(self, number: int, question: dict[str, Any]) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps(call_message(number, question)).encode() + b"\n")
        self.process.stdin.flush()

    def hear(self, seconds: float = START_SECONDS) -> Answer | None:
        """The next answer; None when the server has closed its end."""
        assert self.process.stdout is not None
        descriptor, deadline = self.process.stdout.fileno(), time.monotonic() + seconds
        while True:
            line, found, rest = self._rest.partition(b"\n")
            if found:
                self._rest = rest
                message = json.loads(line)
                if "id" in message:
                    return read_answer(message)
                continue
            assert select.select([descriptor], [], [], max(0.0, deadline - time.monotonic()))[0], (
                f"no answer within {seconds} s: {self.said}"
            )
            chunk = os.read(descriptor, 2**20)
            if not chunk:
                return None
            self._rest += chunk

    def hear_rest(self) -> list[Answer]:
        """The answers until the server closes its end; a request that it could not finish has an error instead of one."""
        answers: list[Answer] = []
        while True:
            try:
                answer = self.hear()
            except BrokenAnswer:
                continue
            if answer is None:
                return answers
            answers.append(answer)

    # ------------------------------------------------------------ its family

    def children(self) -> dict[int, str]:
        """Process id to command line, of every process but the server itself that carries its tag, or descends from it."""
        table = _processes()
        descendants = {self.pid}
        while more := {pid for pid, (parent, _, _) in table.items() if parent in descendants} - descendants:
            descendants |= more
        tag = f"{TAG}={self.tag}".encode()
        return {pid: line for pid, (_, line, environ) in table.items() if pid != self.pid and (pid in descendants or tag in environ)}

    def left_over(self, before: dict[int, str]) -> dict[int, str]:
        """Those of its children, also of `before`, that are still there after GONE_SECONDS at most."""
        deadline = time.monotonic() + GONE_SECONDS
        while True:
            table = _processes()
            left = self.children() | {pid: line for pid, line in before.items() if pid in table and table[pid][1] == line}
            if not left or time.monotonic() > deadline:
                return left
            select.select([], [], [], 0.05)

    def wait(self) -> int:
        return self.process.wait(STOP_SECONDS)

    def stop(self) -> None:
        if self.process.poll() is None:
            self.process.terminate()
            try:
                self.wait()
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
        self._reader.join(STOP_SECONDS)
        for stream in (self.process.stdin, self.process.stdout, self.process.stderr):
            if stream is not None:
                with contextlib.suppress(BrokenPipeError):
                    stream.close()


def _processes() -> dict[int, tuple[int, str, bytes]]:
    """Living processes: parent, command line, environment. Those that end while we look are left out, and so are the dead and unreaped."""
    found: dict[int, tuple[int, str, bytes]] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with contextlib.suppress(OSError):
                state, parent = (entry / "stat").read_text().rsplit(")", 1)[1].split()[:2]
                line = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode("utf-8", "replace")
                if state not in "ZX":
                    found[int(entry.name)] = int(parent), line, (entry / "environ").read_bytes()
    return found


@contextlib.contextmanager
def serving(home: Home, work: Path, transport: str, *flags: str) -> Generator[Server]:
    server = Server(home, work, transport, *flags)
    try:
        yield server
    finally:
        server.stop()
