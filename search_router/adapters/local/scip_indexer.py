"""Make a SCIP index of a project's Python files with ty-scip, in our cache, never in the project.

ty-scip gives up on a whole project for one file whose path no `import` could name (`.github/x.py`, `sync-deps.py`), or that an installed
package hides. So it is given a copy of the files that git lists and an import could name, and an environment without packages. The
hashes of the files, taken while copying, go into the side-car, so that every later question knows exactly which have changed since.
"""

from __future__ import annotations

import contextlib
import hashlib
import keyword
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Generator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path, PurePosixPath
from typing import Final

import anyio
import anyio.to_thread

from search_router.adapters.local.disk_space import DEFAULT_RESERVE, Reserve
from search_router.adapters.local.git import run_git
from search_router.adapters.local.gitfiles import head_now
from search_router.adapters.local.manifest import read_manifest
from search_router.adapters.local.scip_files import SideCar, cached_index, sidecar_of
from search_router.adapters.local.scip_reader import ScipTable, read_table
from search_router.adapters.local.textfile import read_text_file
from search_router.adapters.process import run_command
from search_router.errors import EvidenceError, ExpertError, FailureClass
from search_router.schema import Project

PROGRAM: Final = "ty-scip"
MAX_FILE: Final = 2 << 20
MAX_INDEX: Final = 2 << 30
_PYTHON: Final = frozenset({".py", ".pyi"})
_REMEDY: Final = "pip install 'search-router[typed]'"


@dataclass(frozen=True, slots=True)
class IndexMade:
    """What was written where. `left_out` counts Python files that no import could name, or that could not be read."""

    file: Path
    documents: int
    files: int
    left_out: int
    seconds: float


def find_program() -> Path | None:
    """ty-scip beside this interpreter, else on PATH."""
    beside = Path(sys.executable).with_name(PROGRAM)
    if beside.is_file():
        return beside
    found = shutil.which(PROGRAM)
    return Path(found) if found else None


async def index_python(
    project: Project,
    cache_dir: Path,
    *,
    seconds: float,
    nested: Sequence[Path] = (),
    program: Path | None = None,
    reserve: Reserve = DEFAULT_RESERVE,
) -> IndexMade | None:
    """Index the project's Python files as they are now with `program` or the ty-scip that is there; None where it has none.

    Raises:
        ExpertError: `unconfigured` without ty-scip; `unavailable` where the disk has no room; `timeout`; `crashed` when it failed;
            `index-missing` when it wrote no document; what git raises.
    """
    began = time.monotonic()
    program = program or find_program()
    if program is None:
        raise ExpertError(FailureClass.UNCONFIGURED, f"{PROGRAM} is not installed.", remedy=_REMEDY)
    manifest = await read_manifest(project, nested=tuple(nested))
    python = [entry.path for entry in manifest.entries if PurePosixPath(entry.path).suffix in _PYTHON]
    if not python:
        return None
    commit, dirty = await _commit_of(project)
    target = cached_index(cache_dir, project.root)
    if lack := reserve.lack(target):
        raise ExpertError(FailureClass.UNAVAILABLE, f"No index is written to {target.parent}: {lack}.")
    target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    with _scratch(target.parent) as scratch:
        started_ns = time.time_ns()
        hashes = await anyio.to_thread.run_sync(copy_importable, project, python, scratch / "tree")
        if not hashes:
            return None
        table = await _run(program, project, scratch, commit or "0", seconds)
        sidecar = SideCar(
            tool=PROGRAM, engine="ty", commit=commit or "", dirty=dirty, time=datetime.now(UTC).isoformat(timespec="seconds"), files=hashes
        )
        await anyio.to_thread.run_sync(_put, table.file, sidecar, target, started_ns)
    return IndexMade(target, len(table.documents), len(hashes), len(python) - len(hashes), time.monotonic() - began)


def is_importable(path: str) -> bool:
    """Whether an import could name this file: every folder and the file's own stem are identifiers, and no keywords."""
    pure = PurePosixPath(path)
    return all(part.isidentifier() and not keyword.iskeyword(part) for part in (*pure.parts[:-1], pure.stem))


def copy_importable(project: Project, paths: Sequence[str], tree: Path) -> dict[str, str]:
    """Copy the files that an import could name; SHA-256 by path. What cannot be read is left out. Blocks."""
    hashes: dict[str, str] = {}
    for path in filter(is_importable, paths):
        try:
            source = read_text_file(project.root, path, max_bytes=MAX_FILE)
        except EvidenceError:
            continue
        if "truncated" in source.flags or "binary" in source.flags:
            continue
        copy = tree / path
        copy.parent.mkdir(parents=True, exist_ok=True)
        copy.write_text(source.text, encoding="utf-8", errors="surrogatepass", newline="\n")
        hashes[path] = source.content_hash
    return hashes


async def _run(program: Path, project: Project, scratch: Path, version: str, seconds: float) -> ScipTable:
    out = scratch / "index.scip"
    argv = [os.fspath(program), "index", os.fspath(scratch / "tree"), os.fspath(out), "--quiet"]
    argv += ["--project-name", hashlib.sha256(project.id.encode()).hexdigest()[:12], "--project-version", version]
    environment = await anyio.to_thread.run_sync(_empty_environment, scratch / "environment")
    try:
        with anyio.fail_after(seconds):
            finished = await run_command(argv, cwd=scratch, env={"VIRTUAL_ENV": os.fspath(environment), "PYTHONPATH": ""})
    except TimeoutError:
        raise ExpertError(
            FailureClass.TIMEOUT, f"{PROGRAM} did not finish {project.id} in {seconds:g} s.", remedy="Give it more with --timeout."
        ) from None
    if finished.returncode != 0:
        last = finished.stderr.splitlines()[-1] if finished.stderr else "no word"
        raise ExpertError(
            FailureClass.CRASHED,
            f"{PROGRAM} ended with exit code {finished.returncode} at {project.id}: {last[:300]}",
            detail=finished.stderr,
        )
    return await anyio.to_thread.run_sync(lambda: read_table(out, max_bytes=MAX_INDEX))


def _empty_environment(root: Path) -> Path:
    """A virtual environment (PEP 405) with nothing in it; only its layout is looked at."""
    version = f"{sys.version_info.major}.{sys.version_info.minor}"
    (root / "lib" / f"python{version}" / "site-packages").mkdir(parents=True)
    (root / "bin").mkdir()
    (root / "bin" / "python").symlink_to(sys.executable)
    (root / "pyvenv.cfg").write_text(f"home = {Path(sys.executable).parent}\nversion = {version}.0\n", encoding="utf-8")
    return root


async def _commit_of(project: Project) -> tuple[str | None, bool]:
    """(commit, whether the work tree differs from it)."""
    commit = await head_now(project)
    if commit is None:
        return None, False
    finished = await run_git(project.root, "status", "--porcelain", "--untracked-files=normal", "-z")
    return commit, finished.returncode != 0 or bool(finished.stdout)


@contextlib.contextmanager
def _scratch(below: Path) -> Generator[Path]:
    """A directory of its own, removed afterwards; what an earlier run left when it was killed goes too."""
    for old in below.glob("making-*"):
        with contextlib.suppress(OSError):
            if time.time() - old.stat().st_mtime > 86_400:
                shutil.rmtree(old)
    path = Path(tempfile.mkdtemp(prefix="making-", dir=below))
    try:
        yield path
    finally:
        shutil.rmtree(path, ignore_errors=True)


def _put(made: Path, sidecar: SideCar, target: Path, started_ns: int) -> None:
    """Put index and side-car in their place. Between the two the index stands alone, dated when copying began: no edit looks indexed."""
    os.utime(made, ns=(started_ns, started_ns))
    beside = made.with_name("sidecar")
    beside.write_text(sidecar.model_dump_json(), encoding="utf-8")
    sidecar_of(target).unlink(missing_ok=True)
    made.replace(target)
    beside.replace(sidecar_of(target))
