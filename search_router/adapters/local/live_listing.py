"""The list of one project's files, kept in step with the tree: listed as a whole the first time, and where the kernel says what has changed
since, only that is looked at again."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Final

from search_router.adapters.local.manifest import Manifest, patch_manifest, read_manifest
from search_router.adapters.local.quiet_tree import QuietTree
from search_router.errors import ExpertError
from search_router.schema import Project

TRUST_SECONDS: Final = 10.0
"""A whole list that is older is made again after the next question, for what the kernel does not tell."""
PAUSE_SECONDS: Final = 1.0
"""So long after that question: it should not pay for it."""


class LiveListing:
    """One reader's list of one project. Belongs to one event loop; one `read` at a time."""

    def __init__(self, project: Project) -> None:
        self._project = project
        self._tree = QuietTree(project)
        self._last: Manifest | None = None
        self._nested: tuple[Path, ...] = ()
        self._whole_at = -TRUST_SECONDS
        self._again: asyncio.Task[None] | None = None
        self._settling: asyncio.Task[None] | None = None

    async def read(self, project: Project, nested: tuple[Path, ...], *, whole: bool = False) -> Manifest:
        """The files as they are now; with `whole` every one of them is looked at. As `read_manifest`, also in what it raises."""
        last, self._last = self._last, None
        if self._project.kind != project.kind:  # it became a repository, or is none any more
            self._tree.close()
            self._tree = QuietTree(project)
        known = last if self._project == project and self._nested == nested and not whole else None
        touched = self._tree.begin_listing()
        manifest = await patch_manifest(project, known, touched, nested) if known is not None and touched is not None else None
        if manifest is None:
            began = time.monotonic()
            manifest = await read_manifest(project, nested=nested)
            self._whole_at = began
        self._last, self._project, self._nested = manifest, project, nested
        return manifest

    def settle_soon(self) -> None:
        """`settle` behind the answer, unless it is underway: what that does not see leads to the next one."""
        if self._settling is None or self._settling.done():
            self._settling = asyncio.create_task(self.settle(), name=f"watch the silence of {self._project.id}")

    async def settle(self) -> None:
        """To be called after `read`, and after what it gave was taken in: from here on the tree is watched, where it can be."""
        await self._tree.end_listing()

    def is_quiet(self) -> bool:
        """Whether nothing has changed since the last `read`, as far as the kernel tells."""
        return self._tree.is_quiet()

    def list_again_if_due(self, work: Callable[[], Awaitable[object]]) -> None:
        """Do `work`, which is to read the whole list, in a quiet moment, where the last whole one is TRUST_SECONDS old."""
        if time.monotonic() - self._whole_at > TRUST_SECONDS and (self._again is None or self._again.done()):
            self._again = asyncio.create_task(self._list_again(work), name=f"list {self._project.id} again")

    async def _list_again(self, work: Callable[[], Awaitable[object]]) -> None:
        await asyncio.sleep(PAUSE_SECONDS)
        with contextlib.suppress(ExpertError):  # the next question meets it
            await work()

    async def aclose(self) -> None:
        """List and watch no more; safe to call twice."""
        if underway := [task for task in (self._again, self._settling) if task is not None and not task.done()]:
            for task in underway:
                task.cancel()
            await asyncio.wait(underway)
        self._tree.close()
