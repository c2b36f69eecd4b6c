"""The edges of one project in memory: who imports which name, which type extends which, what functions return, what manifests declare.

Made from the symbol table at one generation and never changed afterwards, so that it can be read while its successor is built. Only the
front part of each file's edges is unpacked for all files; calls are unpacked for the files that a question touches, and remembered.
"""

from __future__ import annotations

import re
from collections import OrderedDict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from search_router.adapters.local.callgraph_modules import C_LIKE, Package, file_keys, import_keys
from search_router.adapters.local.dependency_manifests import manifest_reader, package_name
from search_router.adapters.local.edge_packing import unpack_edges, unpack_front
from search_router.adapters.local.edges import Binding, Call, FileEdges
from search_router.adapters.local.import_statements import EVERYTHING, Import
from search_router.adapters.local.languages import is_vendored_path
from search_router.adapters.local.symbol_packing import DamagedPayload
from search_router.adapters.local.symbol_table import IndexedFile, SymbolTable
from search_router.adapters.local.textfile import read_text_file
from search_router.errors import EvidenceError
from search_router.schema import Definition

MAX_MANIFESTS: Final = 300
MAX_MANIFEST_BYTES: Final = 2**20
_HEADER_ENDINGS = (".h", ".hh", ".hpp", ".hxx", ".H")
_WORD = re.compile(r"\w+")
REMEMBERED_FILES: Final = 4000
"""So many files' calls stay unpacked."""


class FileImport(NamedTuple):
    """An import with the path of the file that it stands in."""

    path: str
    found: Import


class Declared(NamedTuple):
    """What one manifest says: the package it describes, and the line of each dependency by its name in lower case."""

    blob: str
    content_hash: str
    package: Package | None
    dependencies: Mapping[str, int]


class ProjectEdges:
    """The edges of one table at one generation."""

    def __init__(self, project: str) -> None:
        self.project = project
        self.generation = -1
        self.files: Mapping[str, IndexedFile] = {}
        self.packages: tuple[Package, ...] = ()
        self.manifests: dict[str, Declared] = {}
        self.by_name: dict[str, list[FileImport]] = {}
        """Imports of single names, by the name as it is called where it comes from."""
        self.by_key: dict[str, list[FileImport]] = {}
        """All imports by the last part of each key that they may mean."""
        self.bases: dict[str, set[str]] = {}
        self.subtypes: dict[str, set[str]] = {}
        self.returns: dict[str, set[tuple[str, str]]] = {}
        """(Owner, type) that functions of a name are declared to return; the owner is the last part of the container."""
        self.headers: dict[str, list[str]] = {}
        """Paths of C and C++ headers by their name without extension."""
        self.problems: tuple[str, ...] = ()
        self._fronts: dict[str, tuple[str, FileEdges]] = {}
        self._whole: OrderedDict[str, FileEdges] = OrderedDict()
        self._calls: dict[str, dict[str, list[Call]]] = {}
        self._bindings: dict[str, dict[str, list[Binding]]] = {}
        self._around: dict[str, dict[int, tuple[Definition, ...]]] = {}
        self._keys: dict[str, frozenset[str]] = {}
        self._by_part: dict[str, list[FileImport]] | None = None

    def is_current(self, table: SymbolTable) -> bool:
        return self.generation == table.generation

    def successor(self, root: Path, files: Mapping[str, IndexedFile], generation: int) -> ProjectEdges:
        """The edges of exactly these files. Reads manifests; blocks, so meant for a thread."""
        new = ProjectEdges(self.project)
        new.generation, new.files = generation, files
        new._read_manifests(root, self.manifests)
        for path, file in files.items():
            if file.language in C_LIKE and path.endswith(_HEADER_ENDINGS):
                new.headers.setdefault(path.rpartition("/")[2].partition(".")[0], []).append(path)
            if not file.edges:
                continue
            blob, front = self._fronts.get(path, ("", FileEdges()))
            if blob != file.blob:
                try:
                    front = unpack_front(file.edges)
                except DamagedPayload:  # the index makes the row anew when it reads it next
                    continue
            new._fronts[path] = (file.blob, front)
            new._enter(path, file, front)
        return new

    def front(self, path: str) -> FileEdges:
        """Imports, bases and returns of a file."""
        return self._fronts[path][1] if path in self._fronts else FileEdges()

    def edges(self, file: IndexedFile) -> FileEdges:
        """All edges of a file."""
        known = self._whole.get(file.path)
        if known is None:
            try:
                known = unpack_edges(file.edges)
            except DamagedPayload:
                known = FileEdges()
            self._whole[file.path] = known
            if len(self._whole) > REMEMBERED_FILES:
                forgotten, _ = self._whole.popitem(last=False)
                for by_path in (self._calls, self._bindings, self._around):
                    by_path.pop(forgotten, None)
        return known

    def calls(self, file: IndexedFile, name: str) -> Sequence[Call]:
        """The calls of a name in a file, by line."""
        known = self._calls.get(file.path)
        if known is None:
            known = dict[str, list[Call]]()
            for call in self.edges(file).calls:
                known.setdefault(call.name, []).append(call)
            self._calls[file.path] = known
        return known.get(name, ())

    def bindings(self, file: IndexedFile, name: str) -> Sequence[Binding]:
        """What a name is bound to in a file, by line."""
        known = self._bindings.get(file.path)
        if known is None:
            known = dict[str, list[Binding]]()
            for binding in self.edges(file).bindings:
                known.setdefault(binding.name, []).append(binding)
            self._bindings[file.path] = known
        return known.get(name, ())

    def around(self, file: IndexedFile, line: int) -> tuple[Definition, ...]:
        """The definitions around a 1-based line, innermost first."""
        known = self._around.setdefault(file.path, {})
        found = known.get(line)
        if found is None:
            found = known[line] = tuple(definitions_around(file, line))
        return found

    def keys(self, path: str, language: str) -> frozenset[str]:
        """The keys by which an import can mean this file."""
        known = self._keys.get(path)
        if known is None:
            known = self._keys[path] = file_keys(self.project, path, language, self.files.keys(), self.packages)
        return known

    def imports_in(self, path: str) -> tuple[Import, ...]:
        return self.front(path).imports

    def importing(self, part: str) -> Sequence[FileImport]:
        """Imports with this word in their module or their name, whatever its case, with `-` and `_` as one."""
        if self._by_part is None:
            by_part: dict[str, list[FileImport]] = {}
            for path in sorted(self._fronts):
                for found in self.imports_in(path):
                    for word in {*_WORD.findall(found.module.lower().replace("-", "_")), found.name.lower()}:
                        by_part.setdefault(word, []).append(FileImport(path, found))
            self._by_part = by_part
        return self._by_part.get(part.lower().replace("-", "_").lstrip("@"), ())

    def _enter(self, path: str, file: IndexedFile, front: FileEdges) -> None:
        for found in front.imports:
            if found.name and found.name != EVERYTHING:
                self.by_name.setdefault(found.name, []).append(FileImport(path, found))
            for last in self._last_parts(path, file.language, found):
                self.by_key.setdefault(last, []).append(FileImport(path, found))
        for line, base in front.bases:
            around = file.enclosing(line)
            if around is not None and around.name != base:
                name = around.name
                self.bases.setdefault(name, set()).add(base)
                self.subtypes.setdefault(base, set()).add(name)
        for line, name, made in front.returns:
            around = next((d for d in definitions_at(file, line) if d.name == name), None)
            owner = around.container.rpartition(".")[2] if around is not None else ""
            self.returns.setdefault(name, set()).add((owner, made))

    def _last_parts(self, path: str, language: str, found: Import) -> Iterator[str]:
        seen: set[str] = set()
        for key in import_keys(self.project, path, language, found):
            last = key.rpartition("/")[2].rpartition("\0")[2]
            if last not in seen:
                seen.add(last)
                yield last

    def _read_manifests(self, root: Path, known: Mapping[str, Declared]) -> None:
        problems: list[str] = []
        wanted = sorted((p.count("/"), p) for p in self.files if manifest_reader(p.rpartition("/")[2]) and not is_vendored_path(p))
        for _, path in wanted[:MAX_MANIFESTS]:
            file = self.files[path]
            before = known.get(path)
            if before is not None and before.blob == file.blob:
                self.manifests[path] = before
                continue
            try:
                self.manifests[path] = _read_manifest(root, path, file.blob)
            except ValueError as error:
                problems.append(f"{self.project}/{path} is malformed: {str(error)[:120]}")
            except EvidenceError as error:
                problems.append(f"{self.project}/{path} could not be read: {error.code}")
        if len(wanted) > MAX_MANIFESTS:
            problems.append(f"{self.project}: {len(wanted) - MAX_MANIFESTS} manifests beyond the first {MAX_MANIFESTS} were not read")
        self.packages = tuple(d.package for d in self.manifests.values() if d.package is not None)
        self.problems = tuple(problems)


def definitions_at(file: IndexedFile, line: int) -> Iterator[Definition]:
    """The definitions around a line, in reading order."""
    for definition in file.syntax.definitions:
        if definition.start_line > line:
            return
        if definition.end_line >= line:
            yield definition


def definitions_around(file: IndexedFile, line: int) -> list[Definition]:
    """The definitions around a line, innermost first."""
    return sorted(definitions_at(file, line), key=lambda d: (d.end_line - d.start_line, -d.start_line, -len(d.container)))


def _read_manifest(root: Path, path: str, blob: str) -> Declared:
    folder, _, name = path.rpartition("/")
    source = read_text_file(root, path, max_bytes=MAX_MANIFEST_BYTES)
    data = source.text.encode("utf-8", "surrogatepass")
    named = package_name(name, data)
    package = Package(folder, named[0].replace("-", "_") if named[1] == "rust" else named[0], named[1]) if named else None
    reader = manifest_reader(name)
    lines = source.text.lower().split("\n")
    dependencies = {each.lower(): _line_of(lines, each.lower()) for each in (reader(data) if reader else ())}
    return Declared(blob, source.content_hash, package, dependencies)


def _line_of(lines: list[str], name: str) -> int:
    """The 1-based line where a dependency is declared: the last that begins with its name, quotes aside, else the last with it."""
    starts = [at for at, line in enumerate(lines, 1) if line.lstrip(" \t\"'-[{(").startswith(name)]
    holds = starts or [at for at, line in enumerate(lines, 1) if name in line]
    return holds[-1] if holds else 1
