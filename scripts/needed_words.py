"""Derive the literals that a pattern needs, and write them down: `python scripts/needed_words.py` rewrites the table in the package."""

from __future__ import annotations

import zlib
from collections.abc import Iterable
from importlib import import_module
from pathlib import Path
from typing import Any

parser: Any = import_module("re._parser")  # the standard library's own: what it says is what `re` runs
sre: Any = import_module("re._constants")

TABLE = Path(__file__).parent.parent / "search_router" / "router" / "rules" / "needs.py"
HEAD = '''"""Literals of which every match of a pattern contains one, by the CRC-32 of the pattern. Written by `scripts/needed_words.py`.

A pattern that is not here, such as one that was changed since, is looked for in every text.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

# fmt: off
NEEDS: Final[Mapping[int, tuple[str, ...]]] = {
'''
MOST = 80
"""More literals than this are slower to look for than the pattern."""


def needed(pattern: str) -> tuple[str, ...]:
    """Literals of which every match contains at least one; empty when none is sure."""
    parsed: Any = parser.parse(pattern)
    if parsed.state.flags & sre.SRE_FLAG_IGNORECASE:
        return ()
    found = _of_sequence(list(parsed))
    fewest = [literal for literal in found or () if not any(other != literal and other in literal for other in found or ())]
    return tuple(sorted(fewest)) if len(fewest) <= MOST else ()


def _of_sequence(items: list[Any]) -> frozenset[str] | None:
    """The best of what the items of a sequence need: the one whose shortest literal is longest, then the fewest."""
    options: list[frozenset[str]] = []
    run = ""
    for op, value in items:
        if op is sre.LITERAL:
            run += chr(value)
            continue
        if run:
            options.append(frozenset({run}))
        run = ""
        inner = _of_item(op, value)
        if inner:
            options.append(inner)
    if run:
        options.append(frozenset({run}))
    return max(options, key=lambda o: (min(map(len, o)), -len(o)), default=None)


def _of_item(op: Any, value: Any) -> frozenset[str] | None:
    if op is sre.SUBPATTERN:
        return _of_sequence(list(value[3]))
    if op in (sre.MAX_REPEAT, sre.MIN_REPEAT):
        return _of_sequence(list(value[2])) if value[0] >= 1 else None
    if op is sre.BRANCH:
        return _union(_of_sequence(list(branch)) for branch in value[1])
    return None


def _union(parts: Iterable[frozenset[str] | None]) -> frozenset[str] | None:
    found: frozenset[str] = frozenset()
    for part in parts:
        if not part:
            return None
        found |= part
    return found


def table() -> str:
    """The text of the table for the patterns as they are."""
    from search_router.router.injection import PATTERNS
    from search_router.router.rules.table import RULES

    patterns = {p.source for rule in RULES for p in (rule.pattern, rule.also, rule.unless) if p} | {p.source for p in PATTERNS}
    rows = {zlib.crc32(p.encode()): literals for p in patterns if (literals := needed(p))}
    return HEAD + "".join(f"    {key}: {rows[key]!r},\n" for key in sorted(rows)) + "}\n"


if __name__ == "__main__":
    TABLE.write_text(table())
