"""Whether a file still is what an index saw: by recorded hashes, by the commit, else by the times of both files."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from search_router.adapters.local.git import SAFE_DIFF, run_git
from search_router.adapters.local.scip_files import SideCar
from search_router.adapters.local.textfile import decode_path, encode_path
from search_router.errors import ExpertError
from search_router.schema import Project

MAX_DIFF = 16 << 20


@dataclass(frozen=True, slots=True)
class Freshness:
    """What can be told of an index's files. Paths are relative to the project.

    `hashes` are SHA-256 at indexing; `changed` are the paths that differ from the indexed commit, None where no commit tells;
    `written_ns` is when the index was written.
    """

    root: Path
    written_ns: int
    hashes: dict[str, str]
    changed: frozenset[str] | None

    def seen_hash(self, path: str, hash_now: str) -> str | None:
        """The SHA-256 of the file as it was indexed, empty for another one than now, None where nobody can tell.

        Times tell only that a file is older than the index: a newer one may have been touched without a change.
        """
        if self.hashes:
            return self.hashes.get(path, "")
        if self.changed is not None:
            return "" if path in self.changed else hash_now
        try:
            written = os.stat(os.path.join(os.fsencode(self.root), encode_path(path))).st_mtime_ns  # noqa: PTH116, PTH118 - a path of bytes
        except (OSError, ValueError):
            return ""
        return hash_now if written <= self.written_ns else None


async def judge_index(project: Project, prefix: str, sidecar: SideCar | None, written_ns: int) -> tuple[Freshness, str | None]:
    """(what can be told of an index, a note when its commit cannot be compared). One call of git when the side-car names a clean commit.

    `prefix` as from `document_root`.
    """
    if sidecar is not None and sidecar.files:
        return Freshness(project.root, written_ns, {prefix + path: h for path, h in sidecar.files.items()}, None), None
    changed, note = None, None
    if sidecar is not None and sidecar.commit and not sidecar.dirty and project.kind != "directory":
        changed = await changed_since(project, sidecar.commit)
        note = (
            None if changed is not None else f"{project.id}: the index's commit {sidecar.commit[:12]} cannot be compared with the work tree"
        )
    return Freshness(project.root, written_ns, {}, changed), note


async def changed_since(project: Project, commit: str) -> frozenset[str] | None:
    """Paths below the project's root that differ between a commit and the work tree; None when git cannot tell."""
    if not commit.isalnum():
        return None
    try:
        finished = await run_git(
            project.root, "diff", *SAFE_DIFF, "--name-only", "--relative", "--no-renames", "-z", commit, "--", max_bytes=MAX_DIFF
        )
    except ExpertError:
        return None
    if finished.returncode != 0 or finished.cut:
        return None
    return frozenset(decode_path(name) for name in finished.stdout.split(b"\0") if name)
