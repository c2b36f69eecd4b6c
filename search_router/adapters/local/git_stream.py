"""One long git call, read while it runs: nothing is held back until the end, and nothing can fill up and stall.

`run_git` is for short answers. A whole history is megabytes that are useful from the first line on, and a reader that stops early
must still have what was printed before.
"""

from __future__ import annotations

import contextlib
from collections.abc import Awaitable, Callable
from pathlib import Path

import anyio
from anyio.abc import ByteReceiveStream, ByteSendStream

from search_router.adapters.local.git import ENVIRONMENT, git_argv
from search_router.adapters.process import STDERR_KEPT, Finished, open_child

CHUNK_BYTES = 64 * 1024


async def stream_git(root: Path, *arguments: str, on_chunk: Callable[[bytes], Awaitable[None]], stdin: bytes | None = None) -> Finished:
    """Run git in `root` and give its output to `on_chunk` piece by piece, in order; `stdout` of the result is empty.

    Cancellation kills git at once; what `on_chunk` raises comes out as it is. The caller sets the deadline and judges the code.

    Raises:
        ExpertError: `spawn-failed` when git is missing.
    """
    errors = bytearray()
    async with open_child(git_argv(*arguments), cwd=root, env=ENVIRONMENT, stdin=stdin is not None) as process:
        assert process.stdout is not None and process.stderr is not None
        try:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(_drain, process.stderr, errors)
                if stdin is not None and process.stdin is not None:
                    tasks.start_soon(_write, process.stdin, stdin)
                with contextlib.suppress(anyio.EndOfStream):
                    while True:
                        await on_chunk(await process.stdout.receive(CHUNK_BYTES))
        except ExceptionGroup as group:  # a task group wraps; the caller handles its own error, not our plumbing
            raise group.exceptions[0] from None
        code = await process.wait()
    return Finished(code, b"", bytes(errors).decode("utf-8", "replace").strip())


async def _drain(stream: ByteReceiveStream, kept: bytearray) -> None:
    async for chunk in stream:
        kept.extend(chunk)
        del kept[:-STDERR_KEPT]


async def _write(stream: ByteSendStream, data: bytes) -> None:
    with contextlib.suppress(anyio.BrokenResourceError):
        await stream.send(data)
    await stream.aclose()
