"""Where one search looks: the tables of the call's projects, narrowed to a path and a language; and how what is found becomes a hit."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from search_router.adapters.local.symbol_table import FoundDefinition, FoundUses, IndexedFile, SymbolTable
from search_router.schema import Hit

KIND_ORDER: Final = {
    kind: order
    for order, kinds in enumerate(
        (
            ("class", "interface", "struct", "enum", "trait", "function"),
            ("method", "type", "macro"),
            ("constant", "module"),
            ("variable", "field"),
        )
    )
    for kind in kinds
}
"""Kinds of definitions by how often they are what is asked for, 0 first."""


@dataclass(frozen=True, slots=True)
class SearchSpace:
    """Projects in the call's order with their tables; `path` is a folder or a file, empty for all; no languages means all."""

    tables: tuple[tuple[str, SymbolTable], ...]
    path: str = ""
    languages: frozenset[str] = frozenset()

    @property
    def is_open(self) -> bool:
        """Whether the scope lets every file be found."""
        return not self.path and not self.languages

    def admits(self, file: IndexedFile) -> bool:
        """Whether the scope lets this file be found."""
        if self.path and file.path != self.path and not file.path.startswith(f"{self.path}/"):
            return False
        if not self.languages or file.language in self.languages:
            return True
        return "cpp" in self.languages and file.path.endswith(".h")

    def definitions(self, found: Iterable[FoundDefinition]) -> list[FoundDefinition]:
        """Those that the scope admits."""
        return [each for each in found if self.admits(each.file)]

    def uses(self, found: Iterable[FoundUses]) -> list[FoundUses]:
        """Those that the scope admits."""
        return [each for each in found if self.admits(each.file)]


def definition_hit(project: str, found: FoundDefinition, *, exact: bool, score: float) -> Hit:
    """A definition as a hit; its score is this expert's own."""
    return Hit(
        project=project,
        path=found.file.path,
        start_line=found.definition.start_line,
        end_line=found.definition.end_line,
        symbol=found.definition.qualified,
        kind=found.definition.kind,
        is_definition=True,
        is_exact=exact,
        native_score=round(score, 4),
        content_hash=found.file.content_hash,
    )
