"""Published source archives onto this machine, through the registries' own clients, and out of their packing without surprises."""

from __future__ import annotations

import hashlib
import sys
import tarfile
import tempfile
import time
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from pathlib import Path, PurePosixPath
from typing import Final

import anyio

from search_router.adapters.process import run_command
from search_router.benchmark.fixture_manifest import Archive
from search_router.benchmark.questions import UnusableData
from search_router.errors import ExpertError

Clients = Mapping[str, Sequence[str]]
CLIENTS: Final[Clients] = {"pypi": (sys.executable,), "npm": ("npm",)}
"""What is run for each registry."""
FETCH_SECONDS: Final = 180.0
"""For one archive, pip's isolated build environment included."""
ALL_SECONDS: Final = 1800.0
SOCKET_SECONDS: Final = 20
OUTPUT_KEPT: Final = 1 << 20
MAX_ARCHIVE_BYTES: Final = 32 << 20
MAX_FILE_BYTES: Final = 4 << 20
MAX_MEMBERS: Final = 20_000
MAX_UNPACKED_BYTES: Final = 256 << 20
ERROR_KEPT: Final = 800


def fetch_archives(archives: Sequence[Archive], into: Path, clients: Clients = CLIENTS, seconds: float = ALL_SECONDS) -> None:
    """Every archive into one folder, one after the other, within `seconds` in all; what is there already is only checked.

    Raises:
        UnusableData: naming every archive that could not be had, and why.
    """
    deadline = time.monotonic() + seconds
    faults: list[str] = []
    for archive in archives:
        left = deadline - time.monotonic()
        try:
            fetch_archive(archive, into, clients, min(FETCH_SECONDS, max(left, 0.0)))
        except UnusableData as error:
            faults.append(str(error))
    if faults:
        raise UnusableData(
            f"{len(faults)} of {len(archives)} archives could not be had: {' '.join(faults)}",
            remedy="It needs pip, npm and their registries; what was fetched is kept, so run it again.",
        )


def fetch_archive(archive: Archive, into: Path, clients: Clients = CLIENTS, seconds: float = FETCH_SECONDS) -> Path:
    """The archive's file in a folder, fetched when it is not there yet, and of the manifest's hash.

    It comes into the folder only when it is whole and the right one. pip checks the hash too, before it runs a source archive's build back
    end to learn its metadata: that is code of the package. Nothing else of it is run.

    Raises:
        UnusableData: the client failed or was not done in time, or the file is another one than the manifest's.
    """
    path = into / archive.file
    if path.is_file():
        _check(archive, path)
        return path
    into.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=into, prefix=".fetching-") as name:
        fetched = Path(name) / archive.file
        anyio.run(_run_client, archive, Path(name), clients, seconds)
        if not fetched.is_file():
            raise UnusableData(
                f"{archive.name} {archive.version} came as another file than {archive.file}.", remedy="See the suite's manifest."
            )
        _check(archive, fetched)
        fetched.replace(path)
    return path


def _check(archive: Archive, path: Path) -> None:
    if path.stat().st_size > MAX_ARCHIVE_BYTES or hashlib.sha256(path.read_bytes()).hexdigest() != archive.sha256:
        raise UnusableData(
            f"{path} is not the file that the labels were made from: its SHA-256 is not the manifest's.",
            remedy="Remove the file and try again; if it comes back, the registry has another file under this name.",
        )


async def _run_client(archive: Archive, into: Path, clients: Clients, seconds: float) -> None:
    """One registry's client, which is dead with everything that it started when this returns."""
    spec = f"{archive.name}=={archive.version}" if archive.registry == "pypi" else f"{archive.name}@{archive.version}"
    command = [*clients[archive.registry], *_arguments(archive, spec, into)]
    try:
        with anyio.fail_after(seconds):
            done = await run_command(command, cwd=into, max_bytes=OUTPUT_KEPT)
    except TimeoutError as error:
        raise UnusableData(f"{spec} was not fetched within {seconds:.0f} s.", remedy="Run it again, or look at the network.") from error
    except ExpertError as error:
        raise UnusableData(f"{spec} was not fetched: {error}", remedy="It needs pip, npm and their registries.") from error
    if done.returncode != 0:
        said = (done.stderr or done.stdout.decode("utf-8", "replace")).strip()[-ERROR_KEPT:]
        raise UnusableData(f"{spec} could not be fetched: {said}", remedy="Check the registries' configuration, then run it again.")


def _arguments(archive: Archive, spec: str, into: Path) -> list[str]:
    """A wheel, or the source archive of this package alone: what its build back end needs may come as wheels."""
    if archive.registry == "npm":
        return ["pack", "--silent", "--ignore-scripts", f"--fetch-timeout={SOCKET_SECONDS * 1000}", "--fetch-retries=2", spec]
    wanted = into / "wanted.txt"
    wanted.write_text(f"{spec} --hash=sha256:{archive.sha256}\n", "utf-8")
    kind = "--only-binary" if archive.file.endswith(".whl") else "--no-binary"
    bounds = [f"--timeout={SOCKET_SECONDS}", "--retries=2", "--no-input"]
    quiet = ["-q", "--disable-pip-version-check", "--no-deps"]
    return ["-m", "pip", "download", *quiet, *bounds, kind, archive.name, "-d", ".", "-r", wanted.name]


def files_of(path: Path, left_out: tuple[str, ...]) -> Iterator[tuple[str, bytes]]:
    """(POSIX path below the archive's top folder, bytes) of its plain files in order of path; a wheel has no top folder.

    Links, devices, files over 4 MiB and globs of `left_out` are not there. Raises UnusableData for an archive without bounds or with a path
    that leaves it.
    """
    members = _wheel(path) if path.suffix == ".whl" else _tar(path)
    total = 0
    for count, (name, size, read) in enumerate(sorted(members, key=lambda member: member[0])):
        total += size
        if count >= MAX_MEMBERS or total > MAX_UNPACKED_BYTES:
            raise UnusableData(f"{path} unpacks to too much.", remedy="Leave it out of the suite.")
        pure = PurePosixPath(name)
        if pure.is_absolute() or ".." in pure.parts:
            raise UnusableData(f"{path} has a member that leaves it: {name!r}.", remedy="Leave it out of the suite.")
        if size <= MAX_FILE_BYTES and not any(fnmatchcase(name, glob) for glob in left_out):
            yield name, read


def _tar(path: Path) -> Iterator[tuple[str, int, bytes]]:
    with tarfile.open(path, "r:gz") as archive:
        for member in archive:
            inner = member.name.partition("/")[2]
            if member.isfile() and inner and member.size <= MAX_FILE_BYTES:
                stream = archive.extractfile(member)
                if stream is not None:
                    yield inner, member.size, stream.read()


def _wheel(path: Path) -> Iterator[tuple[str, int, bytes]]:
    with zipfile.ZipFile(path) as archive:
        for member in archive.infolist():
            if not member.is_dir() and ".dist-info/" not in member.filename and member.file_size <= MAX_FILE_BYTES:
                yield member.filename, member.file_size, archive.read(member)
