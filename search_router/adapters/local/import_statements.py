"""Import statements of 19 languages in one form: which module, which name of it, and what it is called in this file.

The text of a statement comes from the tree, so it begins and ends where the grammar says; what is inside is simple enough for patterns.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Final, NamedTuple

EVERYTHING: Final = "*"
"""The name of an import that brings in all names of the module."""


class Import(NamedTuple):
    """One imported name on a 1-based line.

    `module` is written as in the language, separators aside: dots stand for `::` and `\\`; relative ones begin with `.`. `name` is empty
    when the module itself is imported. `local` is what it is called in this file, empty when nothing gets a name.
    """

    line: int
    module: str
    name: str
    local: str


_Parts = tuple[str, str, str]
_COMMENT = re.compile(r"(?<!:)//[^\n]*|/\*.*?\*/", re.DOTALL)
_LINE_COMMENT = re.compile(r"#[^\n]*")
_STRING = re.compile(r"""["'`]([^"'`\n]*)["'`]""")
_WORD = re.compile(r"[\w$]+")


def read_imports(text: str, language: str, line: int) -> Iterator[Import]:
    """The imports of one statement that begins on a 1-based line; none for what is not understood."""
    reader = _READERS.get(language)
    if reader is not None:
        for module, name, local in reader(text):
            if module:
                yield Import(line, module, name, local)


def _python(text: str) -> Iterator[_Parts]:
    text = " ".join(_LINE_COMMENT.sub("", text).replace("\\\n", " ").split())
    if text.startswith("from "):
        module, _, names = text.removeprefix("from ").partition(" import ")
        for part in names.strip("() ").split(","):
            name, _, local = part.strip().partition(" as ")
            if name:
                yield module.replace(" ", ""), name.strip(), "" if name == EVERYTHING else (local or name).strip()
        return
    for part in text.removeprefix("import ").split(","):
        module, _, local = part.strip().partition(" as ")
        yield module.strip(), "", (local or module).strip()


_JS_FROM = re.compile(r"(?:import|export)\s*(?:type\s+)?(.*?)\s*\bfrom\s*[\"'`]([^\"'`]+)[\"'`]")
_JS_REQUIRE = re.compile(r"(?:require|import)\s*\(\s*[\"'`]([^\"'`]+)[\"'`]")


def _javascript(text: str) -> Iterator[_Parts]:
    text = " ".join(_COMMENT.sub("", text).split())
    required = _JS_REQUIRE.search(text)
    if required:
        module, target = required[1], text[: required.start()].rpartition("=")[0].strip()
        target = re.sub(r"^(?:import|const|let|var)\s+", "", target)
        picked = re.match(r"\s*\)\s*\.\s*([\w$]+)", text[required.end() :])
        if target.startswith("{"):
            yield from ((module, *pair) for pair in _pairs(target, ":"))
        elif picked and target:
            yield module, picked[1], target
        else:
            yield module, "", target if _WORD.fullmatch(target) else ""
        return
    found = _JS_FROM.match(text)
    if not found:
        path = _STRING.search(text)
        if path:
            yield path[1], "", ""
        return
    head, module = found.groups()
    braces = re.search(r"\{(.*)\}", head)
    outside = head[: braces.start()] if braces else head
    if braces:
        yield from ((module, *pair) for pair in _pairs(braces[1], " as "))
    for part in outside.split(","):
        part = part.strip()
        if part.startswith("*"):
            local = part.partition(" as ")[2].strip()
            yield module, "" if local else EVERYTHING, local
        elif _WORD.fullmatch(part):
            yield module, "default", part


def _pairs(text: str, separator: str) -> Iterator[tuple[str, str]]:
    """(name, local name) of `a as b, c`."""
    for part in text.strip("{} ").split(","):
        name, _, local = part.strip().removeprefix("type ").partition(separator)
        name, local = name.strip(), local.partition("=")[0].strip()
        if _WORD.fullmatch(name):
            yield name, local if _WORD.fullmatch(local) else name


def _go(text: str) -> Iterator[_Parts]:
    path = _STRING.search(text)
    if not path:
        return
    module, alias = path[1], text[: path.start()].strip()
    parts = [part for part in module.split("/") if not re.fullmatch(r"v\d+", part)]
    local = re.sub(r"\.v\d+$", "", parts[-1]) if parts else module
    yield module, EVERYTHING if alias == "." else "", "" if alias in (".", "_") else alias or local


def _rust(text: str) -> Iterator[_Parts]:
    text = " ".join(_COMMENT.sub("", text).split()).rstrip("; ")
    text = re.sub(r"^(?:#\[[^\]]*\]\s*)*(?:pub(?:\([^)]*\))?\s+)?", "", text)
    if text.startswith("mod "):
        yield f"self.{text.removeprefix('mod ').strip()}", "", text.removeprefix("mod ").strip()
    elif text.startswith("extern crate "):
        name, _, local = text.removeprefix("extern crate ").partition(" as ")
        yield name.strip(), "", (local or name).strip()
    elif text.startswith("use "):
        yield from _rust_tree("", text.removeprefix("use ").strip(), 0)


def _rust_tree(front: str, tree: str, depth: int) -> Iterator[_Parts]:
    brace = tree.find("{")
    if brace >= 0 and depth < 8:
        inner = "::".join(part for part in (front, tree[:brace].rstrip(" :")) if part)
        for part in _split_outside_braces(tree[brace + 1 : tree.rfind("}")]):
            yield from _rust_tree(inner, part.strip(), depth + 1)
        return
    path, _, local = tree.partition(" as ")
    path = "::".join(part for part in (front, path.strip()) if part).removeprefix("::")
    module, _, name = path.rpartition("::")
    module = module.replace("::", ".")
    if name == "self":
        yield module, "", (local or module.rpartition(".")[2]).strip()
    elif name == EVERYTHING:
        yield module, EVERYTHING, ""
    elif name:
        yield (module, name, (local or name).strip()) if module else (name, "", (local or name).strip())


def _split_outside_braces(text: str) -> Iterator[str]:
    depth, start = 0, 0
    for at, letter in enumerate(text):
        depth += (letter == "{") - (letter == "}")
        if letter == "," and depth == 0:
            yield text[start:at]
            start = at + 1
    if text[start:].strip():
        yield text[start:]


def _java(text: str) -> Iterator[_Parts]:
    path = text.partition(";")[0].removeprefix("import").replace(" static ", " ").strip()
    path, _, alias = path.partition(" as ")
    module, _, name = "".join(path.split()).replace("`", "").rpartition(".")
    yield module, name, "" if name == EVERYTHING else alias.strip() or name


def _scala(text: str) -> Iterator[_Parts]:
    text = " ".join(text.split()).removeprefix("import ")
    for part in _split_outside_braces(text):
        path, brace, names = part.strip().partition("{")
        if brace:
            module = path.strip(" .")
            for each in names.strip("} ").split(","):
                name, _, local = each.replace("=>", " as ").partition(" as ")
                name, local = name.strip(), local.strip()
                yield module, EVERYTHING if name in ("_", "*", "given") else name, "" if name in ("_", "*", "given") else local or name
            continue
        path, _, alias = path.partition(" as ")
        module, _, name = path.strip().rpartition(".")
        yield module, EVERYTHING if name in ("_", "*") else name, "" if name in ("_", "*") else alias.strip() or name


_INCLUDE = re.compile(r"#\s*(?:include|import)\s*[<\"]([^>\"]+)[>\"]")


def _c(text: str) -> Iterator[_Parts]:
    found = _INCLUDE.search(text)
    if found:
        yield found[1], EVERYTHING, ""


def _csharp(text: str) -> Iterator[_Parts]:
    path = text.replace("global using", "using").removeprefix("using").strip("; \n").replace("static ", "").strip()
    alias, equals, target = path.partition("=")
    if equals:
        module, _, name = target.strip().rpartition(".")
        yield module or name, name, alias.strip()
    else:
        yield path, EVERYTHING, ""


def _ruby(text: str) -> Iterator[_Parts]:
    path = _STRING.search(text)
    if path:
        yield ("./" if text.startswith("require_relative") else "") + path[1], EVERYTHING, ""


def _php(text: str) -> Iterator[_Parts]:
    if not text.startswith("use"):
        path = _STRING.search(text)
        if path:
            yield ("." if path[1].startswith("/") else "./" if not path[1].startswith(".") else "") + path[1], EVERYTHING, ""
        return
    text = re.sub(r"^use\s+(?:function\s+|const\s+)?", "", " ".join(text.split())).strip("; ").lstrip("\\")
    front, brace, names = text.partition("{")
    for part in names.strip("} ").split(",") if brace else text.split(","):
        name, _, local = part.strip().removeprefix("function ").removeprefix("const ").partition(" as ")
        path = (front if brace else "") + name.strip().lstrip("\\")
        module, _, last = path.replace("\\", ".").rpartition(".")
        yield module or last, last if module else "", (local or last).strip()


def _swift(text: str) -> Iterator[_Parts]:
    words = re.sub(r"@\w+(?:\([^)]*\))?\s*", "", text).split()
    if "import" in words and len(words) > words.index("import") + 1:
        rest = words[words.index("import") + 1 :]
        module, _, name = rest[-1].partition(".")
        yield module, name or EVERYTHING, name


def _elixir(text: str) -> Iterator[_Parts]:
    found = re.match(r"(alias|import|use|require)\s*\(?\s*(__MODULE__|[A-Z][\w.]*?)\.?(?:\{([^}]*)\})?(?=[\s,)]|$)", text.strip())
    if not found:
        return
    kind, module, group = found[1], found[2], found[3]
    renamed = re.search(r"\bas:\s*([\w.]+)", text)
    for each in [f"{module}.{part.strip()}" for part in group.split(",")] if group else [module]:
        front, _, last = each.rpartition(".")
        if kind == "alias":
            yield front or last, last if front else "", renamed[1] if renamed else last
        else:
            yield each, EVERYTHING if kind != "require" else "", last


def _haskell(text: str) -> Iterator[_Parts]:
    text = " ".join(text.split())
    found = re.match(
        r"import\s+(?:safe\s+)?(?:qualified\s+)?([\w.]+)(?:\s+qualified)?(?:\s+as\s+([\w.]+))?\s*(hiding)?\s*(?:\((.*)\))?", text
    )
    if not found:
        return
    module, local, hiding, names = found.groups()
    yield module, "", local or module
    if names and not hiding:
        for part in re.sub(r"\([^()]*\)", "", names).split(","):
            name = part.strip()
            if _WORD.fullmatch(name):
                yield module, name, name
    elif "qualified" not in text:
        yield module, EVERYTHING, ""


_LUA_REQUIRE = re.compile(r"require\s*\(?\s*[\"'\[]+([^\"'\]]+)[\"'\]]+\s*\)?(?:\s*\.\s*([\w]+))?")


def _lua(text: str) -> Iterator[_Parts]:
    found = _LUA_REQUIRE.search(text)
    if found:
        local = re.match(r"local\s+(\w+)\s*=", text)
        yield found[1], found[2] or "", local[1] if local else ""


def _bash(text: str) -> Iterator[_Parts]:
    words = text.split()
    if len(words) > 1:
        path = re.sub(r"\$\{?[\w@:*\[\]]+\}?|\$\([^)]*\)", "", words[1].strip("\"'")).strip("\"'")
        yield path.lstrip("/") if path.startswith("/") and "$" in words[1] else path, EVERYTHING, ""


_READERS: dict[str, Callable[[str], Iterator[_Parts]]] = {
    "python": _python,
    "javascript": _javascript,
    "typescript": _javascript,
    "tsx": _javascript,
    "go": _go,
    "rust": _rust,
    "java": _java,
    "kotlin": _java,
    "scala": _scala,
    "c": _c,
    "cpp": _c,
    "csharp": _csharp,
    "ruby": _ruby,
    "php": _php,
    "swift": _swift,
    "elixir": _elixir,
    "haskell": _haskell,
    "lua": _lua,
    "bash": _bash,
}
