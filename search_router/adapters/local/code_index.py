"""Segments of one project, in step with the symbol table: files that changed are dead in the old segment and stand in a small new one."""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Mapping
from typing import Final

from search_router.adapters.local.code_rank import centrality
from search_router.adapters.local.code_segment import Floats, Segment
from search_router.adapters.local.code_terms import FileTerms, unpack_terms
from search_router.adapters.local.symbol_packing import DamagedPayload
from search_router.adapters.local.symbol_table import IndexedFile, SymbolTable

BESIDE: Final = 5
"""So many files beside a lone version folder make it the old one."""
DELTA_FILES: Final = 1000
"""More changed files than this, and more than a quarter of all, and everything is built anew."""


class ProjectCode:
    """The segments of one table. `sync` may run in a thread; nothing else may use it meanwhile."""

    def __init__(self) -> None:
        self.segments: tuple[Segment, ...] = ()
        self.central: tuple[Floats, ...] = ()
        self.legacy: Mapping[str, bool] = {}
        self.damaged = 0
        self._generation = -1
        self._at: dict[str, tuple[str, int, int]] = {}

    def is_current(self, table: SymbolTable) -> bool:
        return self._generation == table.generation

    def sync(self, files: Mapping[str, IndexedFile], generation: int) -> None:
        """Hold exactly these files."""
        changed = [f for path, f in files.items() if self._at.get(path, ("",))[0] != f.blob]
        gone = [path for path in self._at if path not in files]
        many = len(changed) > max(DELTA_FILES, len(files) // 4) or not self.segments
        for path in (*gone, *(f.path for f in changed)):
            if path in self._at:
                _, segment, number = self._at.pop(path)
                self.segments[segment].alive[number] = False
        if many:
            self._build([files[path] for path in sorted(files)])
        elif changed:
            recent = [files[path] for path, (_, segment, _) in self._at.items() if segment == 1]
            self._build_delta(sorted([*recent, *changed], key=lambda f: f.path))
        if changed or gone or many:
            self.central = tuple(centrality(self.segments))
            self.legacy = find_legacy(files)
        self._generation = generation

    def _build(self, files: list[IndexedFile]) -> None:
        self.segments = (self._segment(files),)
        self._at = {f.path: (f.blob, 0, number) for number, f in enumerate(files)}

    def _build_delta(self, files: list[IndexedFile]) -> None:
        self.segments = (self.segments[0], self._segment(files))
        self._at.update({f.path: (f.blob, 1, number) for number, f in enumerate(files)})

    def _segment(self, files: list[IndexedFile]) -> Segment:
        return Segment([(f.path, self._terms(f)) for f in files])

    def _terms(self, file: IndexedFile) -> FileTerms:
        try:
            return unpack_terms(file.terms)
        except DamagedPayload:
            self.damaged += 1
            return FileTerms(0, (), (), array("H"), array("I"), array("H"))


def find_legacy(paths: Mapping[str, object]) -> dict[str, bool]:
    """Version folders (`…/v1`) that are kept for old callers: a higher sibling stands beside them, or plain files of the project do.

    Gives every folder named like a version, with whether it is legacy.
    """
    versions: dict[str, set[int]] = {}
    files: Counter[str] = Counter()
    for path in paths:
        folders = path.split("/")[:-1]
        files["/".join(folders)] += 1
        for depth, name in enumerate(folders):
            if name[:1] in "vV" and name[1:].isdigit() and len(name) < 4:
                versions.setdefault("/".join(folders[:depth]), set()).add(int(name[1:]))
    legacy: dict[str, bool] = {}
    for parent, found in versions.items():
        for version in found:
            older = version < max(found) or (len(found) == 1 and files[parent] >= BESIDE)
            legacy[f"{parent}/v{version}" if parent else f"v{version}"] = older
    return legacy
