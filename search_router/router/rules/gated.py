"""Patterns that are looked for only in a text that could hold them.

Compiling the table takes 60 ms, a tenth of a start, and most questions have the words of few rules. So each pattern comes with literals
of which every match contains at least one (`needs.py`, derived from the patterns); only where one stands is the pattern compiled.
"""

from __future__ import annotations

import re
import zlib

from search_router.router.rules.needs import NEEDS


class GatedPattern:
    """A pattern that is compiled when a text first has one of the literals that it needs. Without known literals: at the first text."""

    __slots__ = ("_compiled", "_needs", "source")

    def __init__(self, source: str) -> None:
        self.source = source
        self._needs = NEEDS.get(zlib.crc32(source.encode()), ())
        self._compiled: re.Pattern[str] | None = None

    def search(self, text: str) -> re.Match[str] | None:
        """As `re.Pattern.search`."""
        if self._needs:
            for literal in self._needs:
                if literal in text:
                    break
            else:
                return None
        if self._compiled is None:
            self._compiled = re.compile(self.source)
        return self._compiled.search(text)
