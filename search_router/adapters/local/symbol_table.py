"""One project's symbols in memory: what is defined where, what is used where, and which words the names are made of.

Pure: files go in and out, look-ups read. A place in it is one number, `file << 20 | position in the file`; posting lists only grow, and
what was removed is skipped when read and swept out when it outweighs what is left.
"""

from __future__ import annotations

import bisect
import operator
from array import array
from collections import OrderedDict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final, NamedTuple

from search_router.adapters.local.languages import is_generated_path, is_test_path, is_vendored_path
from search_router.adapters.local.qualified_names import folded, stem, subtokens
from search_router.adapters.local.symbol_packing import FileSyntax, split_payload, unpack_syntax
from search_router.adapters.local.symbol_store import Derived
from search_router.schema import Definition

_SHIFT = 20
_MASK = (1 << _SHIFT) - 1
_SWEEP_FROM = 256
BURIED: Final = 600
"""So many removed files are ready to come back as they were: a branch is left and entered again."""
_STANDS_FOR_FOLDER = frozenset({"__init__", "index", "mod", "package", "__main__"})
_NOWHERE: Final = array("Q")
_OUTLINE_KINDS = frozenset({"class", "interface", "struct", "enum", "trait", "function", "type", "module"})


@dataclass(frozen=True, slots=True, weakref_slot=True)
class IndexedFile:
    """A file as it was indexed. `content_hash` is the SHA-256 of the bytes that were read."""

    path: str
    language: str
    blob: str
    content_hash: str
    syntax: FileSyntax
    terms: bytes = b""
    """Packed terms for ranking; unpacked when a segment is built."""
    edges: bytes = b""
    """Packed calls, imports and what else `edges` holds; unpacked when the file's edges are asked for."""

    @classmethod
    def of(cls, path: str, language: str, blob: str, row: Derived) -> IndexedFile:
        """The file that a row of the store describes. Raises DamagedPayload."""
        syntax, terms, edges = split_payload(row.payload)
        return cls(path, language, blob, row.content_hash, unpack_syntax(syntax), terms, edges)

    def enclosing(self, line: int) -> Definition | None:
        """The innermost definition around a 1-based line."""
        definitions = self.syntax.definitions
        for at in range(bisect.bisect_right(definitions, line, key=_start_of) - 1, -1, -1):
            definition = definitions[at]
            if definition.end_line >= line:
                return definition
            if not definition.container:
                return None  # it is at the top, and so are those before it or what is in them
        return None


_start_of = operator.attrgetter("start_line")


@dataclass(frozen=True, slots=True)
class PathFacts:
    """What a path alone says: whether it is a test, or not written here, and the words of its file and its folders."""

    test: bool
    foreign: bool
    words: frozenset[str]
    parts: tuple[str, ...]

    @classmethod
    def of(cls, path: str) -> PathFacts:
        folders, _, name = path.rpartition("/")
        plain = name.partition(".")[0] or name
        parts = tuple(part for part in (*folders.split("/"), plain) if part)
        if len(parts) > 1 and plain in _STANDS_FOR_FOLDER:
            parts = parts[:-1]
        words = frozenset(stem(word) for part in parts[-2:] for word in subtokens(part))
        return cls(is_test_path(path), is_vendored_path(path) or is_generated_path(path), words, parts)


class FoundDefinition(NamedTuple):
    """A definition with the file it stands in."""

    file: IndexedFile
    facts: PathFacts
    definition: Definition


class FoundUses(NamedTuple):
    """A file that uses a name, with the (1-based line, kind) of each use, by line."""

    file: IndexedFile
    facts: PathFacts
    uses: list[tuple[int, str]]


def file_number(place: int) -> int:
    """Which of a table's files a place is in."""
    return place >> _SHIFT


class SymbolTable:
    """The index of one project. Not thread-safe: one event loop owns it."""

    def __init__(self) -> None:
        self._files: list[tuple[IndexedFile, PathFacts] | None] = []
        self._number: dict[str, int] = {}
        self._dead = 0
        self._buried: OrderedDict[tuple[str, str], tuple[int, tuple[IndexedFile, PathFacts]]] = OrderedDict()
        self._defined: dict[str, array[int]] = {}
        self._folded: dict[str, tuple[str, ...]] = {}
        self._used: dict[str, array[int]] = {}
        self._by_stem: dict[str, array[int]] = {}
        self._outline: dict[str, array[int]] = {}
        self.definition_count = 0
        self.generation = 0
        """Grows with every change, so that what is made from the table knows when to look again."""

    def __len__(self) -> int:
        return len(self._number)

    def __contains__(self, path: str) -> bool:
        return path in self._number

    def get(self, path: str) -> IndexedFile | None:
        """The file at this path, if it is indexed."""
        number = self._number.get(path)
        entry = None if number is None else self._files[number]
        return entry[0] if entry else None

    def files(self) -> Iterator[IndexedFile]:
        """Every file, in no order that means anything."""
        return (entry[0] for entry in self._files if entry)

    def put(self, file: IndexedFile) -> None:
        """Add a file, in place of what was at its path."""
        self.remove(file.path)
        self.generation += 1
        if (grave := self._buried.pop((file.path, file.blob), None)) is not None:
            number, entry = grave
            self._files[number], self._number[file.path] = entry, number
            self._dead -= 1
            self.definition_count += len(entry[0].syntax.definitions)
            return
        number = len(self._files)
        facts = PathFacts.of(file.path)
        self._files.append((file, facts))
        self._number[file.path] = number
        self._enter(number, file, facts)

    def remove(self, path: str) -> None:
        """Forget the file at this path; nothing happens when there is none."""
        number = self._number.pop(path, None)
        if number is None:
            return
        entry = self._files[number]
        self.generation += 1
        self._files[number] = None
        self._dead += 1
        if entry:
            self.definition_count -= len(entry[0].syntax.definitions)
            self._buried[path, entry[0].blob] = number, entry
            if len(self._buried) > BURIED:
                self._buried.popitem(last=False)
        if self._dead > max(_SWEEP_FROM, len(self._number)):
            self._sweep()

    def definitions_named(self, name: str) -> list[FoundDefinition]:
        """Definitions with exactly this name."""
        return list(self._read(self._defined.get(name, ())))

    def names_like(self, name: str) -> list[str]:
        """Defined names that differ from this one only in case and underscores, sorted; some may have been removed since."""
        return sorted({*self._folded.get(folded(name), ())} - {name})

    def places_with_stem(self, word_stem: str) -> array[int]:
        """Places of definitions with a word of this stem in their name; of files that are gone as well. `at` reads one."""
        return self._by_stem.get(word_stem, _NOWHERE)

    def outlines_with_stem(self, word_stem: str) -> array[int]:
        """Places of the outermost types and functions of files that have a word of this stem in their own name, as `places_with_stem`."""
        return self._outline.get(word_stem, _NOWHERE)

    def definitions_in(self, path: str, stems: Iterable[str]) -> list[Definition]:
        """Definitions of the file at this path with a word of any of these stems in their name, in their order."""
        number = self._number.get(path)
        entry = None if number is None else self._files[number]
        if number is None or entry is None:
            return []
        first, last = number << _SHIFT, number << _SHIFT | _MASK
        found: set[int] = set()
        for word in stems:
            places = self._by_stem.get(word, _NOWHERE)  # in ascending order: a file's number is higher than all before it
            found.update(places[bisect.bisect_left(places, first) : bisect.bisect_right(places, last)])
        return [entry[0].syntax.definitions[place & _MASK] for place in sorted(found)]

    @property
    def is_whole(self) -> bool:
        """Whether every place is one of a file that is there."""
        return not self._dead

    def files_of(self, places: Iterable[int]) -> dict[int, IndexedFile]:
        """The files that are there and have any of these places, each by the `file_number` of those."""
        entries = ((number, self._files[number]) for number in {place >> _SHIFT for place in places})
        return {number: entry[0] for number, entry in entries if entry}

    def at(self, place: int) -> FoundDefinition:
        """The definition at a place of a file that is there."""
        entry = self._files[place >> _SHIFT]
        assert entry is not None
        return FoundDefinition(*entry, entry[0].syntax.definitions[place & _MASK])

    def uses_of(self, name: str) -> list[FoundUses]:
        """Files that use exactly this name, with the places."""
        found: list[FoundUses] = []
        for place in self._used.get(name, ()):
            entry = self._files[place >> _SHIFT]
            if entry:
                found.append(FoundUses(*entry, entry[0].syntax.uses_at(place & _MASK)))
        return found

    def mentions(self, file: IndexedFile, name: str) -> bool:
        """Whether the file uses this name anywhere."""
        names = file.syntax.names
        at = bisect.bisect_left(names, name)
        return at < len(names) and names[at] == name

    def defined_names(self) -> list[str]:
        """Every defined name once, sorted."""
        return sorted(name for name, places in self._defined.items() if any(self._files[place >> _SHIFT] for place in places))

    def _read(self, places: Iterable[int]) -> Iterator[FoundDefinition]:
        for place in places:
            entry = self._files[place >> _SHIFT]
            if entry:
                yield FoundDefinition(*entry, entry[0].syntax.definitions[place & _MASK])

    def _enter(self, number: int, file: IndexedFile, facts: PathFacts) -> None:
        base = number << _SHIFT
        for position, definition in enumerate(file.syntax.definitions):
            place = base | position
            _add(self._defined, definition.name, place)
            known = self._folded.get(key := folded(definition.name), ())
            if definition.name not in known:
                self._folded[key] = (*known, definition.name)
            for word in {stem(word) for word in subtokens(definition.name)}:
                _add(self._by_stem, word, place)
        for position, name in enumerate(file.syntax.names):
            _add(self._used, name, base | position)
        outer = [base | at for at, d in enumerate(file.syntax.definitions) if not d.container and d.kind in _OUTLINE_KINDS]
        for word in {stem(word) for word in subtokens(facts.parts[-1])} if outer else ():
            for place in outer:
                _add(self._outline, word, place)
        self.definition_count += len(file.syntax.definitions)

    def _sweep(self) -> None:
        """Build everything anew from the files that are left, in order of path."""
        kept, generation = sorted(self.files(), key=lambda file: file.path), self.generation
        self.__init__()
        self.generation = generation
        for file in kept:
            self.put(file)


def _add(postings: dict[str, array[int]], key: str, place: int) -> None:
    found = postings.get(key)
    if found is None:
        postings[key] = array("Q", (place,))
    else:
        found.append(place)
