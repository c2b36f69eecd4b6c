"""A git repository of a wanted number of lines, put together from directories that the user names: copies, never links into them."""

from __future__ import annotations

import hashlib
import os
import re
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Final

from search_router.benchmark.questions import UnusableData

MAX_BYTES: Final = 2**20
"""Larger files are data."""
NAMES: Final = 2000
SECONDS: Final = 600.0
_DEFINES = re.compile(rb"\b(?:def|func|fun|function|fn|class|struct|interface|trait|module|defmodule)\s+(?:\w+\.)*([A-Za-z_]\w{4,40})")
_GIT = ("git", "-c", "user.name=bench", "-c", "user.email=bench@localhost", "-c", "commit.gpgsign=false", "-c", "core.hooksPath=/dev/null")


@dataclass(frozen=True, slots=True)
class Corpus:
    """What was put together; `code` are the files that define something, `names` what they define."""

    root: Path
    files: int
    lines: int
    source_bytes: int
    code: tuple[str, ...]
    names: tuple[str, ...]


def make_corpus(sources: Sequence[Path], lines: int, root: Path) -> Corpus:
    """A repository with one commit and at least so many lines, the directories' text files in turn.

    Raises:
        UnusableData: the directories do not hold so many lines, or git cannot be run.
    """
    root.mkdir(parents=True)
    files = total = size = 0
    code: list[str] = []
    names: dict[str, None] = {}
    for path, text in _in_turn(sources):
        if total >= lines:
            break
        to = root / path
        to.parent.mkdir(parents=True, exist_ok=True)
        to.write_bytes(text)
        files, total, size = files + 1, total + text.count(b"\n"), size + len(text)
        if found := _DEFINES.findall(text):
            code.append(path)
            names.update((name.decode("ascii"), None) for name in found[:3] if len(names) < NAMES)
    if total < lines:
        raise UnusableData(
            f"The directories hold {total} lines of text, not {lines}.", remedy="Name more with --root, or ask for fewer lines."
        )
    run_git(root, "init", "-q", "-b", "main")
    commit_all(root, "start")
    return Corpus(root, files, total, size, tuple(code), tuple(names))


def _in_turn(sources: Sequence[Path]) -> Iterator[tuple[str, bytes]]:
    """(path in the corpus, bytes): a file of each directory after the other, so that a small corpus has every language of the large one."""
    running = [iter(_texts(source, f"{number:02d}-{source.name}")) for number, source in enumerate(sources)]
    while running:
        for texts in list(running):
            item = next(texts, None)
            if item is None:
                running.remove(texts)
            else:
                yield item


def _texts(source: Path, name: str) -> Iterator[tuple[str, bytes]]:
    """The text files of a directory, in an order that has nothing to do with their names and is the same each time."""
    found: list[str] = []
    for folder, below, files in os.walk(source):
        below[:] = [each for each in below if each != ".git"]
        paths = (Path(folder) / file for file in files if not file.startswith(".git"))
        found += [p.relative_to(source).as_posix() for p in paths if p.is_file() and not p.is_symlink() and p.stat().st_size <= MAX_BYTES]
    for path in sorted(found, key=lambda each: hashlib.sha256(os.fsencode(each)).digest()):
        text = (source / path).read_bytes()
        if b"\0" not in text[:8192]:
            yield f"{name}/{path}", text


def commit_all(root: Path, message: str) -> None:
    run_git(root, "add", "-A", "--force")
    run_git(root, "commit", "-q", "-m", message)


def run_git(root: Path, *arguments: str, environ: Mapping[str, str] | None = None, stdin: IO[bytes] | None = None) -> None:
    """Run git without anybody's configuration; `environ` adds to the environment. Raises UnusableData with what git said."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith("GIT_")}
    environ = kept | {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_SYSTEM": os.devnull} | dict(environ or {})
    try:
        done = subprocess.run([*_GIT, *arguments], cwd=root, env=environ, stdin=stdin, capture_output=True, timeout=SECONDS, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise UnusableData(f"git {arguments[0]} did not run: {error}.", remedy="Install git.") from error
    if done.returncode != 0:
        raise UnusableData(f"git {arguments[0]} failed: {done.stderr.decode('utf-8', 'replace')[-500:]}", remedy="Mend that first.")
