"""Child processes that cannot outlive us.

Every child runs in its own session, so that cancelling a call kills the whole group. Against `kill -9` of ourselves a small
watcher process holds the read end of a pipe: when the pipe closes it kills every process whose environment carries our mark.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import secrets
import signal
import subprocess
import sys
from collections.abc import AsyncGenerator, Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import anyio
from anyio.abc import ByteReceiveStream, Process

from search_router.errors import ExpertError, FailureClass

MARK = "SEARCH_ROUTER_LIFELINE"
STDERR_KEPT = 4096
CLOSE_SECONDS = 2.0
LAST_WORDS_SECONDS = 0.2
"""So long after a child has ended its output may be silent before nobody listens any more."""
NOT_INHERITED = frozenset(
    {
        "GIT_DIR",
        "GIT_WORK_TREE",
        "GIT_COMMON_DIR",
        "GIT_INDEX_FILE",
        "GIT_OBJECT_DIRECTORY",
        "GIT_ALTERNATE_OBJECT_DIRECTORIES",
        "GIT_NAMESPACE",
        "GIT_PREFIX",
        "GIT_SHALLOW_FILE",
    }
)
"""Set inside a git hook, they point every git call at that one repository, wherever it is run."""

_WATCHER = """
import os, signal, sys
mark = sys.argv[1].encode()
while os.read(0, 4096):
    pass
if os.path.isdir('/proc/self'):
    found = []
    for entry in os.listdir('/proc'):
        if entry.isdigit() and int(entry) != os.getpid():
            try:
                with open('/proc/' + entry + '/environ', 'rb') as f:
                    if mark in f.read().split(b'\\0'):
                        found.append(int(entry))
            except OSError:
                pass
else:
    import subprocess
    out = subprocess.run(['ps', '-axEww', '-o', 'pid=,command='], capture_output=True).stdout
    found = [int(l.split()[0]) for l in out.splitlines() if b' ' + mark in l and int(l.split()[0]) != os.getpid()]
for pid in found:
    try:
        os.kill(pid, signal.SIGKILL)
    except OSError:
        pass
"""


class _Lifeline:
    """The watcher of this process, started with the first child. One a process, because its life is the process's."""

    def __init__(self) -> None:
        self.token = secrets.token_hex(12)
        self.pid: int | None = None
        self._pipe: int | None = None

    def ensure(self) -> str:
        if self.pid != os.getpid():
            read, write = os.pipe()
            code = _WATCHER
            watcher = subprocess.Popen(
                [sys.executable, "-I", "-S", "-c", code, f"{MARK}={self.token}"],
                stdin=read,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                start_new_session=True,
                env={},
            )
            os.close(read)
            watcher.returncode = 0  # it outlives us on purpose, and a Popen whose end nobody saw warns
            self._pipe, self.pid = write, os.getpid()
        return self.token


_lifeline = _Lifeline()


@dataclass(frozen=True, slots=True)
class Finished:
    """A finished command. `cut` counts bytes of standard output beyond the cap, which were not kept."""

    returncode: int
    stdout: bytes
    stderr: str
    cut: int = 0


def child_environment(extra: Mapping[str, str] | None = None, inherit: Collection[str] | None = None) -> dict[str, str]:
    """Our environment for a child, with the mark of the lifeline.

    Left out are our own settings and secrets (SEARCH_ROUTER_*) and a surrounding git hook's idea of which repository it is in. With
    `inherit`, only the variables of these names are passed on.
    """
    kept = {
        k: v
        for k, v in os.environ.items()
        if not k.startswith("SEARCH_ROUTER_") and k not in NOT_INHERITED and (inherit is None or k in inherit)
    }
    return kept | dict(extra or {}) | {MARK: _lifeline.ensure()}


@contextlib.asynccontextmanager
async def open_child(
    argv: Sequence[str],
    *,
    cwd: Path,
    env: Mapping[str, str] | None = None,
    inherit: Collection[str] | None = None,
    stdin: bool = False,
) -> AsyncGenerator[Process]:
    """A running child in its own session; on leaving, however that happens, its whole group is dead and reaped.

    Raises:
        ExpertError: `spawn-failed` when the program or the directory is missing or not executable.
    """
    try:
        process = await _start(argv, cwd, child_environment(env, inherit), subprocess.PIPE if stdin else subprocess.DEVNULL)
    except (OSError, ValueError) as error:
        raise ExpertError(
            FailureClass.SPAWN_FAILED,
            f"Could not start {argv[0]!r}: {error}.",
            remedy="Check that it is installed and on PATH, and that its directory exists.",
        ) from error
    try:
        yield process
    finally:
        await _end(process)


async def _start(argv: Sequence[str], cwd: Path, env: Mapping[str, str], stdin: int) -> Process:
    """The running child. A start takes milliseconds and is never left half-way: asyncio would then reap the child twice, and say so.

    A scope holds off the cancellation of a scope; against that of the task itself, the start has one of its own.
    """

    async def start() -> Process:
        return await anyio.open_process(
            [argument.encode("utf-8", "surrogateescape") for argument in argv],  # whatever the locale says
            cwd=cwd,
            env=env,
            stdin=stdin,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )

    starting = asyncio.create_task(start(), name="start a child")
    with anyio.CancelScope(shield=True):
        try:
            await asyncio.shield(starting)
        except asyncio.CancelledError:
            with contextlib.suppress(OSError, ValueError):
                await _end(await starting)
            raise
    return starting.result()


async def _end(process: Process) -> None:
    """Kill the child's whole group, and reap it."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    with anyio.CancelScope(shield=True), anyio.move_on_after(CLOSE_SECONDS):
        await process.wait()
        await process.aclose()
        await _take_note_of_its_stdin(process)


async def _take_note_of_its_stdin(process: Process) -> None:
    """Hear that its pipe broke, as it may. Nobody else does, and then some versions of Python (3.11.2) complain when all is over."""
    writer = getattr(process.stdin, "_stream", None)
    if isinstance(writer, asyncio.StreamWriter):
        with contextlib.suppress(OSError):
            await writer.wait_closed()


async def run_command(
    argv: Sequence[str],
    *,
    cwd: Path,
    env: Mapping[str, str] | None = None,
    inherit: Collection[str] | None = None,
    stdin: bytes | None = None,
    max_bytes: int = 64 * 2**20,
) -> Finished:
    """Run to the end and keep at most `max_bytes` of its output; cancellation kills it. The caller sets the deadline."""
    out = bytearray()
    err = bytearray()
    cut = 0

    async def read_stdout(stream: ByteReceiveStream) -> None:
        nonlocal cut
        async for chunk in stream:
            room = max_bytes - len(out)
            out.extend(chunk[:room])
            cut += max(0, len(chunk) - room)

    async def read_stderr(stream: ByteReceiveStream) -> None:
        async for chunk in stream:
            err.extend(chunk)
            del err[:-STDERR_KEPT]

    async def stop_listening(process: Process, readers: anyio.CancelScope) -> None:
        """A child that has ended is over, even when a process that it left behind holds its output open."""
        await process.wait()
        heard, before = len(out) + cut, -1
        while heard != before:
            await anyio.sleep(LAST_WORDS_SECONDS)
            heard, before = len(out) + cut, heard
        readers.cancel()

    async with open_child(argv, cwd=cwd, env=env, inherit=inherit, stdin=stdin is not None) as process:
        assert process.stdout is not None and process.stderr is not None
        async with anyio.create_task_group() as waiting:
            with anyio.CancelScope() as readers:
                waiting.start_soon(stop_listening, process, readers)
                async with anyio.create_task_group() as tasks:
                    tasks.start_soon(read_stdout, process.stdout)
                    tasks.start_soon(read_stderr, process.stderr)
                    if stdin is not None and process.stdin is not None:
                        with contextlib.suppress(anyio.BrokenResourceError):
                            await process.stdin.send(stdin)
                        await process.stdin.aclose()
            waiting.cancel_scope.cancel()
        code = await process.wait()
    return Finished(code, bytes(out), err.decode("utf-8", "replace").strip(), cut)
