"""Whether a source file was squeezed for machines: nearly all of it stands in very long lines, and its names say nothing."""

from __future__ import annotations

from typing import Final

from search_router.adapters.local.grammars import SYNTAX_LANGUAGES

LONG_LINE: Final = 500
"""Characters. Hand-written code keeps below 200; the tools that squeeze code break lines at 500, at 32,000 or never."""
LONG_SHARE: Final = 0.8
SMALLEST: Final = 5_000
"""Characters. A shorter file cannot crowd out anything."""

_LANGUAGES: Final = SYNTAX_LANGUAGES | {"css", "scss", "less"}


def is_minified(text: str, language: str | None) -> bool:
    """Whether at least LONG_SHARE of the characters stand in lines longer than LONG_LINE. Prose and data are never called so."""
    if len(text) < SMALLEST or language not in _LANGUAGES or len(text) < (text.count("\n") + 1) * 50:
        return False
    return sum(len(line) for line in text.split("\n") if len(line) > LONG_LINE) >= LONG_SHARE * len(text)
