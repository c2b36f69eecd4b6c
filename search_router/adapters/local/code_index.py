"""Segments of one project, in step with the symbol table: files that changed are dead in the old segment and stand in a small new one."""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from search_router.adapters.local.code_fields import Fields, centrality
from search_router.adapters.local.code_segment import Floats, Segment, SegmentFile
from search_router.adapters.local.code_terms import FileTerms, unpack_terms
from search_router.adapters.local.code_words import IDENTIFIER, words_of
from search_router.adapters.local.edge_packing import unpack_front
from search_router.adapters.local.qualified_names import subtokens
from search_router.adapters.local.symbol_packing import DamagedPayload
from search_router.adapters.local.symbol_table import IndexedFile, SymbolTable
from search_router.collector import return_free_memory

BESIDE: Final = 5
"""So many files beside a lone version folder make it the old one."""
MERGED_UNDER: Final = 2
"""A new segment takes in the one before while that has fewer than so many times its files: few segments, each file built few times."""


LARGE: Final = 500
"""So many files' words, unpacked to build a segment, leave much free memory."""


class ProjectCode:
    """The segments of one table at one generation. Never changed after it was made, so that it is read while its successor is built."""

    def __init__(self) -> None:
        self.segments: tuple[Segment, ...] = ()
        self.central: tuple[Floats, ...] = ()
        self.legacy: Mapping[str, bool] = {}
        self.generation = -1
        self._at: dict[str, tuple[str, int, int]] = {}
        self._dead: dict[tuple[str, str], tuple[int, int]] = {}
        self._fields: Fields | None = None

    @property
    def fields(self) -> Fields:
        """The fields of its segments, with what no question changes."""
        if self._fields is None:
            self._fields = Fields(self.segments)
        return self._fields

    def is_current(self, table: SymbolTable) -> bool:
        return self.generation == table.generation

    def files_with(self, names: Iterable[str]) -> set[str] | None:
        """Files in whose text any of these names may stand as a word of its own, and every other file that it is not certain of.

        A name of several parts (`a.b`) is in a file that has each of them. None where a part is too short for the index to tell.
        """
        found: set[str] = set()
        for name in names:
            each: list[set[str]] = []
            for part in IDENTIFIER.findall(name):
                words = words_of(part)
                if not words:
                    return None
                like = _common_beginning(words[-1], "".join(subtokens(part)))
                each.append({segment.paths[at] for segment in self.segments for at in segment.holders(words[-1], like)})
            if not each:
                return None
            found |= set[str].intersection(*each)
        return found

    def differing(self, table: SymbolTable) -> list[str]:
        """Files of the table, as it is now, that are not in the segments as they are."""
        if self.is_current(table):
            return []
        at = self._at
        return [f.path for f in table.files() if (known := at.get(f.path)) is None or known[0] != f.blob]

    def successor(self, files: Mapping[str, IndexedFile], generation: int, imports_above: int | None = None) -> ProjectCode:
        """The segments that hold exactly these files. Blocks; meant for a thread.

        With more than `imports_above` chunks, what files import is read as well: a part of their summaries.
        """
        new = ProjectCode()
        new.generation = generation
        changed = [f for path, f in files.items() if self._at.get(path, ("",))[0] != f.blob]
        gone = [path for path in self._at if path not in files]
        new.segments, new._at, new._dead = tuple(s.snapshot() for s in self.segments), dict(self._at), dict(self._dead)
        for path in (*gone, *(f.path for f in changed)):
            if path in new._at:
                blob, segment, number = new._at.pop(path)
                new.segments[segment].alive[number] = False
                new._dead[path, blob] = segment, number
        added = [f for f in changed if not new._revive(f)]
        if added or not self.segments:
            new._add(added, files)
        if imports_above is not None and sum(len(s.owner) for s in new.segments) > imports_above:
            _read_imports(new.segments, files)
        unchanged = not changed and not gone and len(self.segments) > 0
        new.central = self.central if unchanged else tuple(centrality(new.segments))
        new.legacy = self.legacy if unchanged else find_legacy(files)
        if new.legacy != self.legacy:
            for segment in new.segments:
                segment.roles = None
        return new

    def _revive(self, file: IndexedFile) -> bool:
        """Bring back a file that is dead in a segment, as after a switch between branches; whether there was one."""
        place = self._dead.pop((file.path, file.blob), None)
        if place is None:
            return False
        segment, number = place
        self.segments[segment].alive[number] = True
        self._at[file.path] = file.blob, segment, number
        return True

    def _add(self, changed: list[IndexedFile], files: Mapping[str, IndexedFile]) -> None:
        """A segment for what changed, with the ones before it that are not much larger or are mostly dead."""
        kept, taken = list(self.segments), list(changed)
        while kept and (kept[-1].living < MERGED_UNDER * len(taken) or 2 * kept[-1].living < len(kept[-1])):
            last = kept.pop()
            taken += [files[path] for path, alive in zip(last.paths, last.alive, strict=True) if alive]
        self._dead = {key: place for key, place in self._dead.items() if place[0] < len(kept)}
        taken.sort(key=lambda f: f.path)
        self.segments = (*kept, _segment(taken))
        self._at.update({f.path: (f.blob, len(kept), number) for number, f in enumerate(taken)})
        if len(taken) > LARGE:
            return_free_memory()


def _common_beginning(one: str, other: str) -> str:
    """The letters that a word and its stem begin with."""
    return one[: next((at for at, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))]


def _segment(files: list[IndexedFile]) -> Segment:
    return Segment(SegmentFile(f.path, _terms(f), tuple(d.name for d in f.syntax.definitions)) for f in files)


def _terms(file: IndexedFile) -> FileTerms:
    """The file's terms; none for a row that is damaged, which the index makes anew when it is read next."""
    try:
        return unpack_terms(file.terms)
    except DamagedPayload:
        return FileTerms(0, (), (), array("H"), array("I"), array("H"))


def _read_imports(segments: Sequence[Segment], files: Mapping[str, IndexedFile]) -> None:
    for segment in segments:
        if segment.imports is None:
            segment.read_imports([_imported(files.get(path)) for path in segment.paths])


def _imported(file: IndexedFile | None) -> list[str]:
    """Modules and names that a file imports; none for a row that is damaged, or a file that is gone."""
    try:
        found = unpack_front(file.edges).imports if file is not None and file.edges else ()
    except DamagedPayload:
        return []
    return [text for each in found for text in (each.module, each.name)]


def find_legacy(paths: Mapping[str, object]) -> dict[str, bool]:
    """Version folders (`…/v1`) that are kept for old callers: a higher sibling stands beside them, or plain files of the project do.

    Gives every folder named like a version, with whether it is legacy.
    """
    versions: dict[str, dict[str, int]] = {}
    files: Counter[str] = Counter()
    for path in paths:
        folders = path.split("/")[:-1]
        files["/".join(folders)] += 1
        for depth, name in enumerate(folders):
            if name[:1] in "vV" and name[1:].isdecimal() and len(name) < 4:
                versions.setdefault("/".join(folders[:depth]), {})[name] = int(name[1:])
    legacy: dict[str, bool] = {}
    for parent, found in versions.items():
        for name, version in found.items():
            older = version < max(found.values()) or (len(found) == 1 and files[parent] >= BESIDE)
            legacy[f"{parent}/{name}" if parent else name] = older
    return legacy
