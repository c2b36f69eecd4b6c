"""Published source archives onto this machine, through the registries' own clients, and out of their packing without surprises."""

from __future__ import annotations

import hashlib
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Iterator
from fnmatch import fnmatchcase
from pathlib import Path, PurePosixPath
from typing import Final

from search_router.benchmark.fixture_manifest import Archive
from search_router.benchmark.questions import UnusableData

FETCH_SECONDS: Final = 300.0
MAX_ARCHIVE_BYTES: Final = 32 << 20
MAX_FILE_BYTES: Final = 4 << 20
MAX_MEMBERS: Final = 20_000
MAX_UNPACKED_BYTES: Final = 256 << 20
ERROR_KEPT: Final = 800


def fetch_archive(archive: Archive, into: Path) -> Path:
    """The archive's file in a folder, fetched when it is not there yet, and of the manifest's hash.

    pip has to run a source archive's build back end to learn its metadata: that is code of the package. Nothing else of it is run.

    Raises:
        UnusableData: the client failed, or the file is another one than the manifest's.
    """
    path = into / archive.file
    if not path.is_file():
        into.mkdir(parents=True, exist_ok=True)
        _run_client(archive, into)
    if not path.is_file():
        raise UnusableData(
            f"{archive.name} {archive.version} came as another file than {archive.file}.", remedy="See the suite's manifest."
        )
    if path.stat().st_size > MAX_ARCHIVE_BYTES or hashlib.sha256(path.read_bytes()).hexdigest() != archive.sha256:
        raise UnusableData(
            f"{path} is not the file that the labels were made from: its SHA-256 is not the manifest's.",
            remedy="Remove the file and try again; if it comes back, the registry has another file under this name.",
        )
    return path


def _run_client(archive: Archive, into: Path) -> None:
    spec = f"{archive.name}=={archive.version}" if archive.registry == "pypi" else f"{archive.name}@{archive.version}"
    kind = "--only-binary" if archive.file.endswith(".whl") else "--no-binary"
    commands = {
        "pypi": [sys.executable, "-m", "pip", "download", "-q", "--no-deps", "--disable-pip-version-check", kind, ":all:", "-d", ".", spec],
        "npm": ["npm", "pack", "--silent", "--ignore-scripts", spec],
    }
    command = commands[archive.registry]
    try:
        done = subprocess.run(command, cwd=into, capture_output=True, timeout=FETCH_SECONDS, check=False, stdin=subprocess.DEVNULL)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise UnusableData(f"{command[0]} did not fetch {spec}: {error}.", remedy="It needs pip, npm and their registries.") from error
    if done.returncode != 0:
        said = done.stderr.decode("utf-8", "replace").strip()[-ERROR_KEPT:]
        raise UnusableData(f"{spec} could not be fetched: {said}", remedy="Check the registries' configuration, then run it again.")


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
