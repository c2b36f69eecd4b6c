"""Which module a file is, and which file a module is: the names that imports may use for a file, and what an import's text may mean.

Modules are compared as paths without extension, joined by slashes. A relative import means one place; an absolute one means every file
that could carry that name, because search paths and source roots are not known. Names of packages come from their manifests.
"""

from __future__ import annotations

import posixpath
from collections.abc import Collection, Iterator
from typing import Final, NamedTuple

from search_router.adapters.local.import_statements import Import

JAVASCRIPT: Final = frozenset({"javascript", "typescript", "tsx"})
C_LIKE: Final = frozenset({"c", "cpp"})
JVM: Final = frozenset({"java", "kotlin", "scala"})
_FAMILIES = (JAVASCRIPT, C_LIKE, JVM)
_FOLDER_FILES = {"python": {"__init__"}, "rust": {"mod", "lib", "main"}, "lua": {"init"}} | {name: {"index"} for name in JAVASCRIPT}
_FOLDER_IS_PACKAGE = JVM | {"go", "csharp", "php"}
_JS_ENDINGS = (".js", ".jsx", ".ts", ".tsx", ".mjs", ".cjs", ".mts", ".cts", ".d")
_BUILD_FOLDERS = ("src/", "lib/", "dist/", "source/")
_ENTRY_PLACES = frozenset({"", "src", "lib", "dist", "source"})
_JS_EXTENSIONS = ("ts", "tsx", "js", "jsx", "mjs", "cjs", "mts")
_ENTRIES = {
    "node": tuple(f"{folder}index.{extension}" for folder in ("", *_BUILD_FOLDERS) for extension in _JS_EXTENSIONS),
    "rust": ("src/lib.rs", "lib.rs", "src/main.rs"),
}
_PLACE_MARK = "\0"


class Package(NamedTuple):
    """A folder with a manifest that names it; the folder of the root is empty."""

    folder: str
    name: str
    kind: str


def same_family(one: str, other: str) -> bool:
    """Whether files of these languages can call each other by name."""
    return one == other or any(one in family and other in family for family in _FAMILIES)


def place_of(path: str, language: str) -> str:
    """The path without extension; a file that stands for its folder is the folder."""
    folder, _, name = path.rpartition("/")
    stem = name.partition(".")[0] if language not in JAVASCRIPT else _cut_js(name)
    if stem in _FOLDER_FILES.get(language, ()):
        return folder
    return f"{folder}/{stem}" if folder else stem


def file_keys(project: str, path: str, language: str, paths: Collection[str], packages: Collection[Package]) -> frozenset[str]:
    """Every key by which an import can mean this file. `paths` are the project's files, `packages` its named packages."""
    place = place_of(path, language)
    folder = path.rpartition("/")[0]
    keys = {f"{project}{_PLACE_MARK}{place}"}
    parts = place.split("/") if place else []
    if language == "python":
        keys.update("/".join(parts[at:]) for at in range(_python_root(path, paths) + 1))
    elif language in JAVASCRIPT:
        keys.update("/".join(parts[at:]) for at in range(max(len(parts) - 1, 0)))
        keys.update(_package_keys(place, paths, packages, "node"))
    elif language == "go":
        named = [p for p in packages if p.kind == "go" and _below(folder, p.folder)]
        keys.add(f"{project}{_PLACE_MARK}{folder}")
        if named:
            owner = max(named, key=lambda p: len(p.folder))
            keys.add(_join(owner.name, _rest(folder, owner.folder)))
        else:
            keys.update(_suffixes(folder))
    elif language == "rust":
        keys.update(_package_keys(place, paths, packages, "rust"))
    else:
        keys.update(_suffixes(place))
        if language in _FOLDER_IS_PACKAGE:
            keys.update(_suffixes(folder))
        if language == "swift":
            keys.update(folder.split("/"))
    keys.discard("")
    return frozenset(keys)


def import_keys(project: str, path: str, language: str, found: Import) -> Iterator[str]:
    """The keys that an import's module may mean, the likeliest first."""
    module, folder = found.module, path.rpartition("/")[0]
    if language == "python":
        level = len(module) - len(module.lstrip("."))
        rest = module[level:].replace(".", "/")
        yield _place(project, _up(folder, level - 1), rest) if level else rest
    elif language in JAVASCRIPT:
        plain = _cut_js(module).removesuffix("/index")
        if module.startswith("."):
            yield _place(project, folder, plain)
        else:
            yield plain
            first, _, rest = plain.partition("/")
            if rest and first[:1] in "@~#":
                yield rest
    elif language == "rust":
        yield from _rust_keys(project, path, module)
    elif language == "go":
        yield module
        yield from _suffixes(module)
    elif language in C_LIKE or language in ("ruby", "bash") or (language == "php" and "/" in module):
        plain = module.rpartition(".")[0] if "." in module.rpartition("/")[2] else module
        yield _place(project, folder, plain)
        if not plain.startswith("."):
            yield plain
        else:
            yield plain.lstrip("./")
    else:
        key = module.replace(".", "/")
        yield key
        if language == "php":  # PSR-4 gives the front of a namespace to any folder
            yield from _suffixes(key)


def _rust_keys(project: str, path: str, module: str) -> Iterator[str]:
    head, _, rest = module.partition(".")
    rest, place = rest.replace(".", "/"), place_of(path, "rust")
    if head not in ("crate", "self", "super"):
        key = module.replace(".", "/").replace("-", "_")
        yield key
        yield _place(project, place, key)  # a sibling module, in the first edition's way or below a `mod` in this file
        yield key.partition("/")[0]
        return
    base = place
    if head == "crate":
        folders = path.split("/")[:-1]
        base = "/".join(folders[: len(folders) - folders[::-1].index("src")]) if "src" in folders else ""
    else:
        while head == "super":
            base, (head, _, rest) = _up(base, 1), rest.partition("/") if rest.startswith("super") else ("", "", rest)
    yield _place(project, base, rest)
    if "/" in rest or rest:
        yield _place(project, base, _up(rest, 1))


def _package_keys(place: str, paths: Collection[str], packages: Collection[Package], kind: str) -> Iterator[str]:
    """A package's name with the path behind it; the name alone means its entry, or everything in it where there is no entry to be seen."""
    owners = [p for p in packages if p.kind == kind and _below(place, p.folder)]
    if not owners:
        return
    owner = max(owners, key=lambda p: len(p.folder))
    rest = _rest(place, owner.folder)
    entries = [_join(owner.folder, entry) for entry in _ENTRIES[kind]]
    if rest in _ENTRY_PLACES or not any(entry in paths for entry in entries):
        yield owner.name
    yield _join(owner.name, rest)
    for folder in _BUILD_FOLDERS:
        if rest.startswith(folder):
            yield _join(owner.name, rest.removeprefix(folder))


def _python_root(path: str, paths: Collection[str]) -> int:
    """How many leading folders are outside the outermost package around the file."""
    folders = path.split("/")[:-1]
    at = len(folders)
    while at > 0 and "/".join((*folders[:at], "__init__.py")) in paths:
        at -= 1
    return at


def _suffixes(path: str) -> Iterator[str]:
    parts = path.split("/")
    for at in range(len(parts)):
        yield "/".join(parts[at:])


def _place(project: str, folder: str, rest: str) -> str:
    path = posixpath.normpath(_join(folder, rest)) if rest or folder else ""
    return f"{project}{_PLACE_MARK}{'' if path == '.' else path}"


def _up(folder: str, levels: int) -> str:
    for _ in range(max(levels, 0)):
        folder = folder.rpartition("/")[0]
    return folder


def _join(front: str, rest: str) -> str:
    return f"{front}/{rest}" if front and rest else front or rest


def _below(path: str, folder: str) -> bool:
    return not folder or path == folder or path.startswith(f"{folder}/")


def _rest(path: str, folder: str) -> str:
    return path[len(folder) :].lstrip("/")


def _cut_js(name: str) -> str:
    for _ in range(2):
        for ending in _JS_ENDINGS:
            name = name.removesuffix(ending)
    return name
