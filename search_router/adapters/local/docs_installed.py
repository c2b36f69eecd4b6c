"""Libraries as they lie on this disk: where each ecosystem keeps them, in which version, and the entries of their documentation.

Offline, read only, bounded; nothing of a library is imported or run.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import importlib.metadata
import json
import os
import re
import sys
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from email.parser import HeaderParser
from pathlib import Path
from typing import Final

from search_router.adapters.local.docs_entries import (
    Entry,
    go_entries,
    public_name,
    python_entries,
    python_exports,
    readme_entries,
    rust_entries,
    typescript_entries,
)
from search_router.adapters.local.docs_locked import Locked, compare_name
from search_router.adapters.local.symbol_packing import DamagedPayload

ENTRIES_VERSION: Final = "1"
MAX_FILES: Final = 1500
MAX_FILE: Final = 1_500_000
MAX_ENTRIES: Final = 40_000
_RECORDED = re.compile(r'^"?([^/,"\n]+)(?:(?<=\.py)|/[^\n]*?\.py)"?,', re.MULTILINE)
"""The first part of every path of a Python file in a RECORD (PyPA specification "Recording installed projects")."""
_ASIDE = re.compile(r"(?:^|/)(?:tests?|testing|_vendor|vendor|examples?|benchmarks?|node_modules|internal)/|(?:^|/)test_|_test\.")


@dataclass(frozen=True, slots=True)
class Library:
    """One installed library. `spoken` are lower-case names that people use for it; `ours` says that it is only in this program's own
    environment, not in one of the project."""

    ecosystem: str
    name: str
    version: str
    location: Path
    spoken: frozenset[str]
    ours: bool = False

    @property
    def label(self) -> str:
        return f"{self.ecosystem}/{self.name}"

    @property
    def key(self) -> str:
        """Changes with the library, its version, its place and a new installation there."""
        try:
            stamp = self.location.stat().st_mtime_ns
        except OSError:
            stamp = 0
        return hashlib.sha1(f"{self.label}@{self.version}:{self.location}:{stamp}".encode(), usedforsecurity=False).hexdigest()


def find_libraries(root: Path, locked: Locked, environ: Mapping[str, str]) -> list[Library]:
    """Every library that the project can use, those of its own environment first. Blocks: lists directories and reads metadata."""
    found: dict[tuple[str, str], Library] = {}
    for library in (*_python(root, environ), *_node(root), *_go(locked, environ), *_cargo(locked, environ)):
        found.setdefault((library.ecosystem, compare_name(library.ecosystem, library.name)), library)
    return list(found.values())


def read_entries(library: Library) -> list[Entry]:
    """The documentation of one library. Files that cannot be read are not in it. Blocks, for up to seconds."""
    readers = {"pypi": _python_library, "npm": _node_library, "go": _go_library, "cargo": _cargo_library}
    entries: dict[str, Entry] = {}
    for entry in readers[library.ecosystem](library):
        known = entries.get(entry.name)
        if known is None or (not known.doc and entry.doc):
            entries[entry.name] = entry
        if len(entries) >= MAX_ENTRIES:
            break
    return list(entries.values())


def pack_entries(entries: list[Entry]) -> bytes:
    """Bytes for the derived store."""
    return zlib.compress(json.dumps(entries).encode(), 1)


def unpack_entries(payload: bytes) -> list[Entry]:
    """What was packed. Raises DamagedPayload."""
    try:
        return [Entry(*row) for row in json.loads(zlib.decompress(payload))]
    except (zlib.error, ValueError, TypeError) as error:
        raise DamagedPayload(f"packed documentation is damaged: {error}") from error


# ---------------------------------------------------------------- Python


def _python(root: Path, environ: Mapping[str, str]) -> Iterator[Library]:
    places = [root / name for name in (".venv", "venv", "env", ".env")]
    if environ.get("VIRTUAL_ENV"):
        places.append(Path(environ["VIRTUAL_ENV"]))
    own = [Path(p) for p in sys.path if p.endswith(("site-packages", "dist-packages"))]
    sites = [(site, False) for place in places for site in sorted(place.glob("lib/python3*/site-packages"))]
    for site, ours in [*sites, *((site, True) for site in own)]:
        with contextlib.suppress(OSError):
            yield from _site_libraries(site, site.stat().st_mtime_ns, ours)


@functools.lru_cache(maxsize=64)
def _site_libraries(site: Path, stamp: int, ours: bool) -> tuple[Library, ...]:
    """What is installed in one folder. `stamp` is its mtime: every installation and removal there makes or takes away an entry of it."""
    found: list[Library] = []
    for distribution in importlib.metadata.distributions(path=[str(site)]):
        text = distribution.read_text("METADATA") or distribution.read_text("PKG-INFO") or ""
        fields = HeaderParser().parsestr(text.partition("\n\n")[0])  # without the description, which is most of it
        name = fields["Name"]
        if name:
            spoken = frozenset({name.lower(), compare_name("pypi", name), *_top_levels(distribution)})
            found.append(Library("pypi", name, fields["Version"] or "", site, spoken, ours))
    return tuple(found)


def _top_levels(distribution: importlib.metadata.Distribution) -> set[str]:
    """Import names, in lower case."""
    text = distribution.read_text("top_level.txt")
    if text:
        return {line.strip().lower() for line in text.splitlines() if line.strip() and not line.startswith("_")}
    record = distribution.read_text("RECORD")
    if record is not None:
        tops = {top.removesuffix(".py") for top in _RECORDED.findall(record)}
    else:
        tops = {file.parts[0].removesuffix(".py") for file in distribution.files or () if file.suffix == ".py"}
    return {top.lower() for top in tops if top.isidentifier() and not top.startswith("_")}


def _python_library(library: Library) -> Iterator[Entry]:
    wanted = compare_name("pypi", library.name)
    distribution = next(
        (
            d
            for d in importlib.metadata.distributions(path=[str(library.location)])
            if compare_name("pypi", d.metadata["Name"] or "") == wanted
        ),
        None,
    )
    if distribution is None:
        return
    files = sorted(
        (str(f) for f in distribution.files or () if f.suffix in (".py", ".pyi") and ".." not in f.parts and not _ASIDE.search(str(f))),
        key=lambda f: (f.count("/"), f),
    )[:MAX_FILES]
    exports: dict[str, str] = {}
    parsed: list[Entry] = []
    for file in files:
        text = _read(library.location / file)
        module = re.sub(r"(?:/__init__)?\.pyi?$", "", file).replace("/", ".")
        if re.search(r"(?:^|/)__init__\.pyi?$", file):
            exports |= python_exports(text, module)
        parsed += python_entries(text, module, file)
    for entry in parsed:
        name = public_name(entry.name, exports)
        yield entry._replace(name=name.removesuffix(".__init__") + "()" if name.endswith(".__init__") else name)
    fields = distribution.metadata.json  # PEP 566: the description is a field there, wherever it stands in the file
    description = fields.get("description")
    if isinstance(description, str) and description.strip():
        kind = "README.rst" if "rst" in str(fields.get("description_content_type", "")) else "README.md"
        yield from readme_entries(description, library.name, kind)


# ---------------------------------------------------------------- node, Go, Cargo


def _node(root: Path) -> Iterator[Library]:
    modules = root / "node_modules"
    for folder in sorted([*modules.glob("[!.@]*"), *modules.glob("@*/*")]):
        try:
            data = json.loads(_read(folder / "package.json") or "{}")
        except (ValueError, RecursionError):
            continue
        if isinstance(data, dict) and data.get("version"):  # pyright: ignore[reportUnknownMemberType] - any JSON, looked at here
            name = folder.relative_to(modules).as_posix()
            yield Library("npm", name, str(data["version"]), folder, frozenset({name.lower(), name.rpartition("/")[2].lower()}))  # pyright: ignore[reportUnknownArgumentType] - any JSON, looked at here


def _node_library(library: Library) -> Iterator[Entry]:
    files = sorted(
        (p for p in library.location.rglob("*.d.ts") if not _ASIDE.search(p.relative_to(library.location).as_posix())),
        key=lambda p: (len(p.parts), p),
    )[:MAX_FILES]
    for path in files:
        yield from typescript_entries(_read(path), library.name, path.relative_to(library.location).as_posix())
    yield from _readmes(library)


def _go(locked: Locked, environ: Mapping[str, str]) -> Iterator[Library]:
    home = Path(environ.get("HOME", "/nonexistent"))
    cache = Path(environ.get("GOMODCACHE") or Path(environ.get("GOPATH") or home / "go") / "pkg/mod")
    for name, version in locked.versions.get("go", {}).items():
        escaped = re.sub(r"[A-Z]", lambda m: "!" + m[0].lower(), name)  # the module cache's own rule (go.dev/ref/mod#module-cache)
        folder = cache / f"{escaped}@{version}"
        if version and folder.is_dir():
            last = re.sub(r"/v\d+$", "", name).rpartition("/")[2].lower()
            yield Library("go", name, version, folder, frozenset({name.lower(), last}))


def _go_library(library: Library) -> Iterator[Entry]:
    for path in sorted(library.location.rglob("*.go"), key=lambda p: (len(p.parts), p))[:MAX_FILES]:
        relative = path.relative_to(library.location).as_posix()
        if not _ASIDE.search(relative):
            base = re.sub(r"/v\d+$", "", library.name).rpartition("/")[2]
            folder = relative.rpartition("/")[0].rpartition("/")[2]
            yield from go_entries(_read(path), folder or base, relative)
    yield from _readmes(library)


def _cargo(locked: Locked, environ: Mapping[str, str]) -> Iterator[Library]:
    home = Path(environ.get("CARGO_HOME") or Path(environ.get("HOME", "/nonexistent")) / ".cargo")
    for name, version in locked.versions.get("cargo", {}).items():
        for folder in [
            p for spelled in dict.fromkeys((name, name.replace("-", "_"))) for p in home.glob(f"registry/src/*/{spelled}-{version}")
        ]:
            yield Library("cargo", folder.name.removesuffix(f"-{version}"), str(version), folder, frozenset({name, name.replace("-", "_")}))


def _cargo_library(library: Library) -> Iterator[Entry]:
    crate = library.name.replace("-", "_")
    for path in sorted(library.location.glob("src/**/*.rs"), key=lambda p: (len(p.parts), p))[:MAX_FILES]:
        yield from rust_entries(_read(path), crate, path.relative_to(library.location).as_posix())
    yield from _readmes(library)


def _readmes(library: Library) -> Iterator[Entry]:
    for path in sorted(library.location.glob("[Rr][Ee][Aa][Dd][Mm][Ee]*"))[:2]:
        yield from readme_entries(_read(path), library.name, path.name)


def _read(path: Path) -> str:
    """The text of a plain file, nothing for what is none, or too large, or cannot be read."""
    try:
        info = os.lstat(path)
        return path.read_text("utf-8", "replace") if info.st_size <= MAX_FILE and path.is_file() else ""
    except OSError:
        return ""
