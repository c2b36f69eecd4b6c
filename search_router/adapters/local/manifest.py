"""Which files of one project can be searched at this moment, and which were left out and why.

The list is git's own: tracked files and untracked ones that are not ignored, with the repository's, the user's and the work tree's
ignore rules. A plain directory is listed with the same rules through an empty repository that lies elsewhere.
"""

from __future__ import annotations

import atexit
import bisect
import os
import re
import shutil
import stat
import tempfile
from collections.abc import Collection, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

import anyio.to_thread

from search_router.adapters.local.git import ENVIRONMENT, git_argv, git_failure, is_git_missing, run_git
from search_router.adapters.local.grep_engine import choose_engine
from search_router.adapters.local.left_out import LeftOut
from search_router.adapters.local.ripgrep import ripgrep_listing
from search_router.adapters.local.textfile import decode_path, encode_path
from search_router.adapters.local.withheld import withholds
from search_router.adapters.process import Finished, run_command
from search_router.errors import ExpertError, FailureClass
from search_router.schema import Project

MAX_LISTING = 256 * 2**20
MAX_PATH = 4096
MOST_TOUCHED = 200
"""Of more that changed, a whole list is as fast."""

_UNREADABLE = re.compile(r"^(?:warning: could not open directory '(.*?)/?'|rg: (?:\./)?(.*?)): [^:]*$", re.MULTILINE)


class FileEntry(NamedTuple):
    """One regular file: path relative to the root (see `textfile` for its bytes), size in bytes, and what tells that it changed."""

    path: str
    size: int
    mtime_ns: int
    inode: int


@dataclass(frozen=True, slots=True)
class Manifest:
    """The files of one project, and what was left out of them, each sorted by path."""

    project_id: str
    entries: tuple[FileEntry, ...]
    left_out: tuple[LeftOut, ...]


async def read_manifest(project: Project, *, nested: tuple[Path, ...] = ()) -> Manifest:
    """List the project now; tracked files that are deleted are not in it. The caller sets the deadline.

    `nested` are the roots of other projects below this one: their files are theirs alone.

    Raises:
        ExpertError: git refuses the directory or fails, or there is neither git nor ripgrep.
    """
    listing = await _list_paths(project)
    return await anyio.to_thread.run_sync(build_manifest, project, listing, nested)


async def patch_manifest(project: Project, last: Manifest, touched: Collection[str], nested: tuple[Path, ...]) -> Manifest | None:
    """The list `last` as it is after something happened to these paths, and to nothing else that it depends on.

    None where that is not enough to tell it, and the project has to be listed as a whole. Raises as `read_manifest`.
    """
    left_out = {left.path for left in last.left_out}
    if len(touched) > MOST_TOUCHED or "" in left_out or not left_out.isdisjoint(touched):
        return None
    root = os.fsencode(project.root).rstrip(b"/") + b"/"
    entries, gone, unknown = list(last.entries), list[int](), list[str]()
    for path in touched:
        at = bisect.bisect_left(entries, path, key=_path_of)
        is_listed = at < len(entries) and entries[at].path == path
        try:
            found = os.lstat(root + encode_path(path))
        except (FileNotFoundError, NotADirectoryError):
            if is_listed:
                gone.append(at)
            continue
        except OSError:
            return None
        if not is_listed:
            unknown.append(path)
        elif stat.S_ISREG(found.st_mode):
            entries[at] = _entry_of(path, found)
        else:
            return None
    for at in sorted(gone, reverse=True):
        del entries[at]
    if unknown:  # whether a rule ignores them is git's to say
        listing = await _list_paths(project, *(os.fsdecode(encode_path(path)) for path in unknown))
        added = await anyio.to_thread.run_sync(build_manifest, project, listing, nested)
        if added.left_out:
            return None
        for entry in added.entries:
            bisect.insort(entries, entry, key=_path_of)
    return replace(last, entries=tuple(entries))


async def is_visible(project: Project, path: str) -> bool:
    """Whether the manifest lists `path`: not ignored, not in `.git`, not a link, not in a nested repository.

    True also where nothing is at the path, unless such a file would be withheld: reading it will say that it is gone.

    Raises:
        ExpertError: git refuses the directory or fails, or there is neither git nor ripgrep.
    """
    try:
        name = encode_path(path)
    except UnicodeEncodeError:
        return False
    parts = name.split(b"/")
    if b"\0" in name or len(name) > MAX_PATH or any(part in (b"", b".", b"..") or part.lower() == b".git" for part in parts):
        return False
    if withholds(project, path):
        return False
    if not await anyio.to_thread.run_sync(os.path.lexists, os.fsencode(project.root) + b"/" + name):
        return True
    listing = await _list_paths(project, os.fsdecode(name))
    manifest = await anyio.to_thread.run_sync(build_manifest, project, listing, ())
    return any(entry.path == path for entry in manifest.entries)


async def is_ignored(project: Project, path: str) -> bool:
    """Whether an ignore rule matches `path` or a folder above it, whatever git tracks there.

    Raises:
        ExpertError: git is missing.
    """
    # check-ignore refuses literal pathspecs; behind `./` nothing is magic.
    environment = ENVIRONMENT | {"GIT_LITERAL_PATHSPECS": "0"}
    argv = git_argv(*_repository_of(project), "check-ignore", "--quiet", "--no-index", "--", f"./{path}")
    return (await run_command(argv, cwd=project.root, env=environment)).returncode == 0


async def list_ignored_folders(project: Project) -> frozenset[str]:
    """Folders, relative to the root, that an ignore rule matches as a whole; those below them are not named.

    Raises:
        ExpertError: git is missing, or fails.
    """
    what = ("ls-files", "-z", "--others", "--ignored", "--exclude-standard", "--directory")
    finished = await run_git(project.root, *_repository_of(project), *what, max_bytes=MAX_LISTING)
    if finished.returncode != 0 or finished.cut:
        raise git_failure(project.root, finished)
    # Those whose every file happens to be ignored are among them: a new file there may not be.
    folders = b"\0".join(path for path in finished.stdout.split(b"\0") if path.endswith(b"/"))
    if not folders:
        return frozenset()
    argv = git_argv(*_repository_of(project), "check-ignore", "-z", "--stdin", "--no-index")
    matched = await run_command(
        argv, cwd=project.root, env=ENVIRONMENT | {"GIT_LITERAL_PATHSPECS": "0"}, stdin=folders, max_bytes=MAX_LISTING
    )
    if matched.returncode not in (0, 1) or matched.cut:
        raise git_failure(project.root, matched)
    return frozenset(decode_path(path.rstrip(b"/")) for path in matched.stdout.split(b"\0") if path)


async def _list_paths(project: Project, *paths: str) -> Finished:
    """git's list of the project, or of these paths in it (taken literally), relative to the root."""
    what = ("ls-files", "-z", "--cached", "--others", "--exclude-standard", "--deduplicate", "--", *paths)
    try:
        finished = await run_git(project.root, *_repository_of(project), *what, max_bytes=MAX_LISTING)
    except ExpertError as error:
        if not is_git_missing(error):
            raise
        return await _list_by_ripgrep(project, paths)
    if finished.returncode != 0:
        raise git_failure(project.root, finished)
    return finished


async def _list_by_ripgrep(project: Project, paths: tuple[str, ...]) -> Finished:
    """The same list where there is no git. ripgrep knows the ignore rules, but not which files are tracked in spite of them."""
    engine = await choose_engine("", "ripgrep")
    listing = ripgrep_listing(engine.program, threads=2, max_file_bytes=None, is_git=False, nested=(), globs=())
    argv = [*listing, "--no-ignore-parent", "--null", "--files"]
    finished = await run_command(argv, cwd=project.root, max_bytes=MAX_LISTING)
    if finished.returncode not in (0, 1, 2):
        raise ExpertError(FailureClass.CRASHED, f"ripgrep could not list {project.root}.", detail=finished.stderr)
    if not paths:
        return finished
    wanted = {os.fsencode(path) for path in paths}
    kept = b"".join(name + b"\0" for name in finished.stdout.split(b"\0") if name in wanted)
    return replace(finished, stdout=kept)


class _EmptyRepository:
    """A bare repository with nothing in it, one a process, removed at exit; made again if someone cleans the temporary directory."""

    def __init__(self) -> None:
        self._path: Path | None = None

    def ensure(self) -> Path:
        if self._path is None or not (self._path / "HEAD").exists():
            try:
                self._path = self._make()
            except OSError as error:
                raise ExpertError(
                    FailureClass.UNAVAILABLE,
                    f"Could not write to the temporary directory: {error.strerror}.",
                    remedy="Set TMPDIR to a directory that can be written.",
                ) from error
        return self._path

    @staticmethod
    def _make() -> Path:
        path, owner = Path(tempfile.mkdtemp(prefix="search-router-")), os.getpid()
        for folder in ("objects", "refs"):
            (path / folder).mkdir()
        (path / "HEAD").write_text("ref: refs/heads/none\n", encoding="ascii")

        def remove() -> None:
            if os.getpid() == owner:  # a forked child must not take it away from its parent
                shutil.rmtree(path, ignore_errors=True)

        atexit.register(remove)
        return path


_elsewhere = _EmptyRepository()


def _repository_of(project: Project) -> tuple[str, ...]:
    """git's options for a plain directory, none for a work tree."""
    return (f"--git-dir={_elsewhere.ensure()}", "--work-tree=.") if project.kind == "directory" else ()


def build_manifest(project: Project, listing: Finished, nested: tuple[Path, ...]) -> Manifest:
    """Look at every listed path once (lstat, so a link is never followed)."""
    root = os.fsencode(project.root).rstrip(b"/") + b"/"
    others = tuple(_below(root, nested))
    directories = _Directories(root)
    entries: list[FileEntry] = []
    left_out: list[LeftOut] = []
    names = listing.stdout.split(b"\0")
    names.pop()  # empty after the last NUL, or the stump of a list that was cut
    for listed in names:
        name = listed.rstrip(b"/") if listed.endswith(b"/") else listed
        if others and (name + b"/").startswith(others):
            continue
        if project.withheld and withholds(project, decode_path(name)):
            continue  # not even among what was left out: nobody is told its name
        if not directories.is_real(name.rpartition(b"/")[0]):
            continue  # git still tracks what lay in a directory that is now a link; the link itself is listed too
        try:
            found = os.lstat(root + name)
        except (FileNotFoundError, NotADirectoryError):
            continue
        except OSError:
            left_out.append(LeftOut(decode_path(name), "unreadable"))
            continue
        if stat.S_ISREG(found.st_mode):
            entries.append(_entry_of(decode_path(name), found))
        else:
            left_out.append(LeftOut(decode_path(name), _why_left_out(root + name, found.st_mode)))
    unreadable = (match[1] or match[2] for match in _UNREADABLE.finditer(listing.stderr))
    left_out.extend(LeftOut(path, "unreadable") for path in unreadable if not withholds(project, path))
    if listing.cut:
        left_out.append(LeftOut("", "listing-cut"))
    entries.sort(key=_path_of)
    left_out.sort(key=lambda left: left.path)
    return Manifest(project.id, tuple(entries), tuple(left_out))


def _entry_of(path: str, found: os.stat_result) -> FileEntry:
    return FileEntry(path, found.st_size, max(found.st_mtime_ns, found.st_ctime_ns), found.st_ino)


def _path_of(entry: FileEntry) -> str:
    return entry.path


def _below(root: bytes, nested: tuple[Path, ...]) -> Iterator[bytes]:
    """Each nested root that lies below `root`, relative to it, with a slash at its end."""
    for path in nested:
        other = os.fsencode(path).rstrip(b"/") + b"/"
        if other.startswith(root) and other != root:
            yield other[len(root) :]


def _why_left_out(path: bytes, mode: int) -> str:
    if stat.S_ISLNK(mode):
        return "symlink"
    if not stat.S_ISDIR(mode):
        return "not-a-file"
    try:
        with os.scandir(path) as inside:
            first = next(inside, None)
    except OSError:
        return "unreadable"
    return "submodule-not-checked-out" if first is None else "nested-repository"


class _Directories:
    """Which directories below the root are reached without a link. Each is looked at once."""

    def __init__(self, root: bytes) -> None:
        self._root = root
        self._known = {b"": True}

    def is_real(self, name: bytes) -> bool:
        unknown: list[bytes] = []  # a loop, not recursion: a path can be deeper than Python's stack
        while (real := self._known.get(name)) is None:
            unknown.append(name)
            name = name.rpartition(b"/")[0]
        for name in reversed(unknown):
            real = real and self._is_directory(name)
            self._known[name] = real
        return real

    def _is_directory(self, name: bytes) -> bool:
        try:
            return stat.S_ISDIR(os.lstat(self._root + name).st_mode)
        except OSError:
            return False
