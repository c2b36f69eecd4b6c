"""The workspace of the labelled questions: archives fetched by version with the registries' own clients, verified, unpacked, and for a
history made into a git repository with one commit a release.

The clients are pip and npm with whatever index they are configured for. pip prepares an archive's metadata, which runs the project's own
build code: a measurement is run by a person who decides that. Nothing of the archives is ever imported or run by us.
"""

from __future__ import annotations

import datetime
import hashlib
import os
import shutil
import subprocess
import sys
import tarfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from search_router.benchmark.knowledge_questions import Release, Source
from search_router.benchmark.questions import UnusableData

FETCH_SECONDS: Final = 180.0
MAX_ARCHIVE: Final = 32 * 2**20
MAX_UNPACKED: Final = 256 * 2**20
MAX_MEMBERS: Final = 20_000
CHANGELOG: Final = "CHANGELOG.md"
FIRST_DAY: Final = datetime.date(2015, 1, 1)
"""Releases are dated a month apart from here, because archives do not say when they were made."""
SAID: Final = 2000


def build_workspace(sources: Sequence[Source], archives: Path, work: Path) -> dict[str, dict[str, str]]:
    """Make a folder for each source below `work`; gives, by source with a history, the commit of each version.

    Archives are taken from the folder `archives`, and fetched into it where they are missing.

    Raises:
        UnusableData: an archive cannot be fetched, is not the one that was labelled, or cannot be unpacked.
    """
    archives.mkdir(parents=True, exist_ok=True)
    commits: dict[str, dict[str, str]] = {}
    for source in sources:
        verified = [(release, _verified(source, release, archives)) for release in source.releases]
        if source.history:
            commits[source.name] = _make_history(verified, work / source.name)
        else:
            unpack(verified[0][1], work / source.name)
    return commits


def _verified(source: Source, release: Release, archives: Path) -> Path:
    path = archives / release.file
    if not path.is_file():
        _fetch(source, release, archives)
    if not path.is_file() or path.stat().st_size > MAX_ARCHIVE:
        raise UnusableData(f"{source.name} {release.version} came as no file {release.file} of bounded size.", remedy="Look into it.")
    if hashlib.sha256(path.read_bytes()).hexdigest() != release.sha256:
        raise UnusableData(f"{path} is not the archive that was labelled.", remedy="Delete it; if it comes again, label that one anew.")
    return path


def _fetch(source: Source, release: Release, into: Path) -> None:
    if source.registry == "npm":
        argv = ["npm", "pack", f"{source.name}@{release.version}", "--pack-destination", str(into), "--ignore-scripts"]
    else:
        wanted = ("--no-deps", "--no-binary", source.name, f"{source.name}=={release.version}")
        argv = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--dest", str(into), *wanted]
    _run(argv, into)


def _run(argv: Sequence[str], cwd: Path, environment: Mapping[str, str] | None = None) -> str:
    try:
        done = subprocess.run(
            argv, cwd=cwd, env=environment, capture_output=True, timeout=FETCH_SECONDS, check=False, stdin=subprocess.DEVNULL
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise UnusableData(f"{argv[0]} could not be run to its end: {error}", remedy="Install it, or ask again later.") from error
    if done.returncode != 0:
        said = done.stderr.decode("utf-8", "replace")[-SAID:]
        raise UnusableData(f"{' '.join(argv[:4])} … ended with exit code {done.returncode}: {said}", remedy="Mend that first.")
    return done.stdout.decode("utf-8", "replace")


def unpack(archive: Path, folder: Path) -> None:
    """The files of an archive without its first folder. Links, and anything that would lie outside, are left out.

    Raises:
        UnusableData: it is no archive, or too large.
    """
    size = 0
    try:
        with tarfile.open(archive) as packed:
            for count, member in enumerate(packed):
                size += member.size
                if size > MAX_UNPACKED or count > MAX_MEMBERS:
                    raise UnusableData(f"{archive} unpacks to more than is allowed.", remedy="Choose another one.")
                inner = member.name.partition("/")[2]
                if not member.isfile() or not inner or ".." in inner.split("/") or (taken := packed.extractfile(member)) is None:
                    continue
                path = folder / inner
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(taken.read())
    except (tarfile.TarError, EOFError, OSError) as error:
        raise UnusableData(f"{archive} cannot be unpacked: {error}", remedy="Delete it, so that it is fetched again.") from error


def _make_history(releases: Sequence[tuple[Release, Path]], folder: Path) -> dict[str, str]:
    """One commit a release: the subject names the version, the body is what its change log adds. Equal archives give equal commits."""
    folder.mkdir(parents=True)
    _git(folder, "init", "--quiet", "--initial-branch=main")
    commits: dict[str, str] = {}
    before: set[str] = set()
    for number, (release, archive) in enumerate(releases):
        for path in folder.iterdir():
            if path.name != ".git":
                shutil.rmtree(path) if path.is_dir() else path.unlink()
        unpack(archive, folder)
        log = folder / CHANGELOG
        lines = log.read_text("utf-8").splitlines() if log.is_file() else []
        body = "\n".join(line for line in lines if line.strip() and line not in before) if before else ""
        before = set(lines)
        year, month = divmod(number, 12)
        day = FIRST_DAY.replace(year=FIRST_DAY.year + year, month=month + 1).isoformat()
        _git(folder, "add", "--all", "--force")
        _git(folder, "commit", "--quiet", "--no-verify", "-m", f"Release {release.version}", *(("-m", body) if body else ()), day=day)
        commits[release.version] = _git(folder, "rev-parse", "HEAD").strip()
    return commits


def _git(folder: Path, *arguments: str, day: str = "2015-01-01") -> str:
    environment = {
        "PATH": os.environ.get("PATH", os.defpath),
        "HOME": str(folder),
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_CONFIG_GLOBAL": os.devnull,
        **{f"GIT_{who}_{what}": value for who in ("AUTHOR", "COMMITTER") for what, value in (("NAME", "Release"), ("EMAIL", "r@invalid"))},
        **{f"GIT_{who}_DATE": f"{day}T12:00:00+00:00" for who in ("AUTHOR", "COMMITTER")},
    }
    return _run(["git", "-c", "core.autocrlf=false", "-c", "commit.gpgsign=false", *arguments], folder, environment)
