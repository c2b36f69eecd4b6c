"""What a commit changed, in words: the identifiers of its added and removed lines and of the functions around them, out of git's patches.

Deterministic: no model writes anything. Change logs are left out, because their text says what a release has and not what a commit does,
and so are vendored and generated files. Much of a large commit is left out too: it is about none of its words in particular.
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple

from search_router.adapters.local.commit_stream import text_of
from search_router.adapters.local.history_question import subtokens
from search_router.adapters.local.languages import is_generated_path, is_vendored_path

MAX_WORDS: Final = 600
MAX_LINES: Final = 3000
MAX_LINE: Final = 500
ARGUMENTS: Final = ("diff-tree", "--stdin", "--always", "-r", "--root", "-M", "-p", "-U0", "--relative", "--no-prefix", "--format=%x00%H")
_WORD = re.compile(r"\w{2,64}")
_CHANGELOG = re.compile(r"(?:^|/)(?:change[-_]?logs?|changes|history|news|releases?|release[-_]notes)(?:\.\w+)?$", re.IGNORECASE)
_SHA = re.compile(rb"\0([0-9a-f]{40}(?:[0-9a-f]{24})?)")


class Summary(NamedTuple):
    """A commit's name and the distinct subtokens of its changes, in order."""

    sha: str
    words: tuple[str, ...]


class SummaryParser:
    """Summaries out of chunks that may be cut anywhere; memory is bounded by the longest line."""

    def __init__(self) -> None:
        self._rest = b""
        self._sha: str | None = None
        self._words: dict[str, None] = {}
        self._lines = 0
        self._skipped = False

    def feed(self, chunk: bytes) -> list[Summary]:
        """The summaries that this chunk completes."""
        lines = (self._rest + chunk).split(b"\n")
        self._rest = lines.pop()
        if len(self._rest) > 2**20:  # a line that is data
            self._rest = self._rest[: MAX_LINE + 1]
        return [summary for line in lines if (summary := self._take(line)) is not None]

    def close(self) -> list[Summary]:
        """The last one."""
        found = self.feed(b"\n")
        return [*found, *([self._done()] if self._sha is not None else [])]

    def _take(self, line: bytes) -> Summary | None:
        if (found := _SHA.fullmatch(line)) is not None:
            done = self._done() if self._sha is not None else None
            self._sha, self._words, self._lines, self._skipped = found[1].decode("ascii"), {}, 0, False
            return done
        if line.startswith((b"+++ ", b"--- ")):
            path = text_of(line[4:]).strip('"')
            if path != "/dev/null":
                self._skipped = bool(_CHANGELOG.search(path)) or is_vendored_path(path) or is_generated_path(path)
        elif self._skipped or self._lines >= MAX_LINES or len(self._words) >= MAX_WORDS:
            return None
        elif line.startswith(b"@@"):
            self._count(line.split(b"@@", 2)[-1])
        elif line[:1] in b"+-" and line:
            self._lines += 1
            self._count(line[1:])
        return None

    def _count(self, line: bytes) -> None:
        if len(line) <= MAX_LINE:
            for word in _WORD.findall(text_of(line)):
                for token in subtokens(word):
                    if len(token) > 1:
                        self._words[token] = None

    def _done(self) -> Summary:
        assert self._sha is not None
        return Summary(self._sha, tuple(self._words)[:MAX_WORDS])
