"""ripgrep as a search engine, in the two ways that agents use it: the question as it stands, and its keywords, files ranked by counts."""

from __future__ import annotations

import re
import subprocess
import time
from collections import Counter, defaultdict
from pathlib import Path
from typing import Final, NamedTuple

from search_router.benchmark.gains import DEPTH, Result

SECONDS: Final = 60.0
COMMON: Final = frozenset(
    "a about all an and any are as at be by can do does each for from get has have how if in into is it its of on or out set that "
    "the their then this to up use used uses using via was what when where which who why with".split()
)


class Found(NamedTuple):
    results: list[Result]
    ms: float


def ask_literally(program: str, root: Path, question: str) -> Found:
    """Files with the question as a fixed string, whatever its case, most matching lines first."""
    began = time.perf_counter()
    out = _run([program, "--count", "--ignore-case", "--fixed-strings", "--", question, "."], root)
    counts = {path: int(number) for path, _, number in (line.rpartition(":") for line in out.splitlines())}
    return Found(_ranked({path: (1, n) for path, n in counts.items()}), (time.perf_counter() - began) * 1000)


def ask_keywords(program: str, root: Path, question: str) -> Found:
    """Files by the number of different keywords in them, then by the number of matches."""
    began = time.perf_counter()
    words = keywords(question)
    if not words:
        return Found([], 0.0)
    patterns = [option for word in words for option in ("-e", word)]
    out = _run(
        [program, "--only-matching", "--no-line-number", "--with-filename", "--ignore-case", "--fixed-strings", *patterns, "."], root
    )
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    for line in out.splitlines():
        path, _, match = line.rpartition(":")
        counts[path][match.lower()] += 1
    return Found(_ranked({path: (len(c), c.total()) for path, c in counts.items()}), (time.perf_counter() - began) * 1000)


def keywords(question: str) -> list[str]:
    """The words of a question without the commonest ones of English."""
    return [word for word in dict.fromkeys(re.findall(r"\w{2,}", question.lower())) if word not in COMMON]


def _run(argv: list[str], root: Path) -> str:
    """Standard output; found nothing (exit code 1) is empty. Raises subprocess.CalledProcessError."""
    done = subprocess.run(argv, cwd=root, capture_output=True, timeout=SECONDS, check=False, stdin=subprocess.DEVNULL)
    if done.returncode > 1:
        raise subprocess.CalledProcessError(done.returncode, argv, stderr=done.stderr)
    return done.stdout.decode("utf-8", "replace")


def _ranked(scores: dict[str, tuple[int, int]]) -> list[Result]:
    best = sorted(scores, key=lambda path: (-scores[path][0], -scores[path][1], path))[:DEPTH]
    return [Result(path.removeprefix("./")) for path in best]
