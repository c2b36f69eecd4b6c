"""A suite's code, made from its archives the same way everywhere: a git repository a project, byte for byte, commit id for commit id.

Modes, authors, dates and the order of commits are fixed, so that a label can name a commit. A project with earlier releases gets one commit
a release: its files are that version's, its message is that version's section of the changelog.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import platformdirs

from search_router.benchmark.corpus import run_git
from search_router.benchmark.fixture_archives import fetch_archive, fetch_archives, files_of
from search_router.benchmark.fixture_manifest import Archive, Manifest, Release, read_manifest
from search_router.benchmark.questions import UnusableData

STAMP: Final = "built.json"
LAST_DAY: Final = "2026-11-30"
"""Of the commit that is a project's newest archive: later than every release."""
GIT_SECONDS: Final = 60.0
_HEADING: Final = re.compile(r"^(?:pluggy )?v?(\d+(?:\.\d+)+)\b.*\n[=\-~]{4,}\n", re.MULTILINE)
_ISSUE_LINK: Final = re.compile(r"`(#\d+) <[^>]*>`__?:? ?")


def default_place(folder: Path) -> Path:
    """Where a suite is built unless somebody says otherwise: below the user's cache, by the manifest's hash."""
    _, digest = read_manifest(folder)
    return platformdirs.user_cache_path("search-router") / "fixtures" / digest


def build_suite(folder: Path, into: Path, archives: Path | None = None) -> Path:
    """The folder with a work tree a project, built when it is not there yet. `archives` keeps what was fetched.

    Raises:
        UnusableData: an archive cannot be had or is another one, or git cannot be run.
    """
    manifest, digest = read_manifest(folder)
    projects = into / "projects"
    if _stamp(into).get("manifest") == digest:
        return projects
    shutil.rmtree(projects, ignore_errors=True)
    fetched = archives or into / "archives"
    fetch_archives((*manifest.archives, *manifest.releases), fetched)
    for archive in manifest.archives:
        _build_project(manifest, archive, projects / archive.project, fetched)
    (into / STAMP).write_text(json.dumps({"manifest": digest, "corpus": corpus_hash(projects)}), "utf-8")
    return projects


def check_corpus(into: Path) -> str:
    """The hash of the built code, if it is still what was built. Raises UnusableData when somebody changed it."""
    built = _stamp(into).get("corpus", "")
    now = corpus_hash(into / "projects")
    if built != now:
        raise UnusableData(f"The code in {into / 'projects'} is not what was built.", remedy=f"Remove {into} and build it again.")
    return now


def corpus_hash(projects: Path) -> str:
    """One hash over the path and bytes of every file of every work tree, and every project's HEAD."""
    digest = hashlib.sha256()
    for root in sorted(projects.iterdir()):
        digest.update(f"{root.name}@{head_of(root)}\n".encode())
        for path in sorted(p for p in root.rglob("*") if p.is_file() and ".git" not in p.relative_to(root).parts):
            name = path.relative_to(root).as_posix()
            digest.update(f"{name} {hashlib.sha256(path.read_bytes()).hexdigest()}\n".encode())
    return digest.hexdigest()


def head_of(root: Path, revision: str = "HEAD") -> str:
    """A commit id. Raises UnusableData when git knows no such revision."""
    environ = {k: v for k, v in os.environ.items() if not k.startswith("GIT_")}
    command = ["git", "rev-parse", "--verify", "-q", f"{revision}^{{commit}}"]
    try:
        done = subprocess.run(command, cwd=root, env=environ, capture_output=True, timeout=GIT_SECONDS, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise UnusableData(f"git could not be asked about {root}: {error}.", remedy="Install git; build the suite again.") from error
    if done.returncode != 0:
        raise UnusableData(f"{root} has no revision {revision}.", remedy="Remove the built suite and build it again.")
    return done.stdout.decode("ascii").strip()


def _stamp(into: Path) -> Mapping[str, Any]:
    try:
        return json.loads((into / STAMP).read_text("utf-8"))
    except (OSError, ValueError):
        return {}


def _build_project(manifest: Manifest, archive: Archive, root: Path, fetched: Path) -> None:
    root.mkdir(parents=True)
    run_git(root, "init", "-q", "-b", "main", "--object-format=sha1")
    newest = fetch_archive(archive, fetched)
    changelog = manifest.changelog_of.get(archive.project)
    if changelog is None:
        _commit(root, newest, manifest.left_out, archive, LAST_DAY, f"{archive.name} {archive.version}")
        return
    messages = changelog_sections(next(text for name, text in files_of(newest, ()) if name == changelog).decode("utf-8"))
    left_out = (*manifest.left_out, changelog)
    for release in _releases(manifest, archive.project):
        message = f"{release.name} {release.version}\n\n{messages.get(release.version, '')}"
        _commit(root, fetch_archive(release, fetched), left_out, release, release.date, message)
    _commit(root, newest, left_out, archive, LAST_DAY, f"{archive.name} {archive.version}\n\n{messages.get(archive.version, '')}")


def _releases(manifest: Manifest, project: str) -> Iterator[Release]:
    return iter([release for release in manifest.releases if release.project == project])


def changelog_sections(text: str) -> dict[str, str]:
    """Version to what its section says, links to issues reduced to their numbers."""
    headings = list(_HEADING.finditer(text))
    ends = [heading.start() for heading in headings[1:]] + [len(text)]
    return {h[1]: _ISSUE_LINK.sub(r"\1: ", text[h.end() : end]).strip() for h, end in zip(headings, ends, strict=True)}


def _commit(root: Path, archive: Path, left_out: tuple[str, ...], release: Archive, day: str, message: str) -> None:
    """Replace the whole tree by the archive's files, commit, and tag with the version."""
    for old in root.iterdir():
        if old.name != ".git":
            shutil.rmtree(old) if old.is_dir() else old.unlink()
    for name, text in files_of(archive, left_out):
        path = root / ("src/" + name if archive.suffix == ".whl" else name)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text)
        path.chmod(0o644)
    when = f"{day}T12:00:00+00:00"
    run_git(root, "add", "-A", "--force")
    author = {"GIT_AUTHOR_DATE": when, "GIT_COMMITTER_DATE": when}
    run_git(root, "-c", "core.autocrlf=false", "commit", "-q", "--allow-empty", "--cleanup=whitespace", "-m", message, environ=author)
    run_git(root, "tag", release.version)
