"""What a library's files say of its API: an entry for each public name, with signature and documentation. Pure, text in, entries out.

Python is parsed; TypeScript declarations, Go and Rust are read by the comment that stands before an exported name.
"""

from __future__ import annotations

import ast
import re
import threading
from collections.abc import Iterator, Mapping, Sequence
from typing import Final, NamedTuple

MAX_DOC: Final = 6000
MAX_SIGNATURE: Final = 600
_PARSING: Final = threading.Lock()


class Entry(NamedTuple):
    """`name` is qualified as one writes it, `kind` function, class, method, constant, module or section, `path` inside the library."""

    name: str
    kind: str
    signature: str
    doc: str
    path: str
    line: int


def _parse(text: str) -> ast.Module:
    """The syntax tree; one thread at a time, because CPython 3.11 counts the depth of all threads together (its issue 106905) and then
    raises SystemError for a healthy file."""
    with _PARSING:
        return ast.parse(text)


def python_entries(text: str, module: str, path: str) -> list[Entry]:
    """Public classes, functions, methods and constants of a module, and the module itself. Empty for what does not parse."""
    try:
        tree = _parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return []
    entries: list[Entry] = []
    if doc := ast.get_docstring(tree):
        entries.append(Entry(module, "module", "", doc[:MAX_DOC], path, 1))
    _python_body(tree.body, module, path, entries, "function")
    return entries


def _python_body(body: Sequence[ast.stmt], prefix: str, path: str, entries: list[Entry], kind: str) -> None:
    for node in body:
        match node:
            case ast.FunctionDef() | ast.AsyncFunctionDef() if _is_public(node.name) or node.name in ("__init__", "__call__"):
                doc = ast.get_docstring(node) or ""
                entries.append(Entry(f"{prefix}.{node.name}", kind, _signature(node), doc[:MAX_DOC], path, node.lineno))
            case ast.ClassDef() if _is_public(node.name):
                name = f"{prefix}.{node.name}"
                bases = ", ".join(ast.unparse(base) for base in node.bases)
                doc = ast.get_docstring(node) or ""
                entries.append(Entry(name, "class", f"class {node.name}({bases})"[:MAX_SIGNATURE], doc[:MAX_DOC], path, node.lineno))
                _python_body(node.body, name, path, entries, "method")
            case ast.If() | ast.Try():
                _python_body(node.body, prefix, path, entries, kind)
                _python_body(node.orelse, prefix, path, entries, kind)
            case _:
                pass


def _is_public(name: str) -> bool:
    return not name.startswith("_")


def _signature(node: ast.FunctionDef | ast.AsyncFunctionDef) -> str:
    kind = "async def" if isinstance(node, ast.AsyncFunctionDef) else "def"
    returns = f" -> {ast.unparse(node.returns)}" if node.returns is not None else ""
    return f"{kind} {node.name}({ast.unparse(node.args)}){returns}"[:MAX_SIGNATURE]


def python_exports(text: str, package: str) -> dict[str, str]:
    """Names that a package's `__init__` takes from its own modules: full name there to the name that one writes."""
    try:
        tree = _parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return {}
    exports: dict[str, str] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and (node.level == 1 or (node.module or "").split(".")[0] == package.split(".")[0]):
            base = f"{package}.{node.module}" if node.level == 1 and node.module else node.module or package
            for alias in node.names:
                if alias.name != "*":
                    exports[f"{base}.{alias.name}"] = f"{package}.{alias.asname or alias.name}"
                else:
                    exports[f"{base}.*"] = package
    return exports


def public_name(name: str, exports: Mapping[str, str]) -> str:
    """The shortest way to write a name, through what packages export."""
    parts = name.split(".")
    best = name
    for cut in range(len(parts), 1, -1):
        head, rest = ".".join(parts[:cut]), parts[cut:]
        found = exports.get(head)
        if found is None and (star := exports.get(".".join([*parts[: cut - 1], "*"]))) is not None and not parts[cut - 1].startswith("_"):
            found = f"{star}.{parts[cut - 1]}"
        if found is not None:
            other = ".".join([found, *rest])
            if (other.count("._"), other.count(".")) < (best.count("._"), best.count(".")):
                best = other
    return best


_TS = re.compile(
    r"(?:/\*\*(?P<doc>(?:[^*]|\*(?!/))*)\*/\s*)?^[ \t]*(?:export\s+)?(?:default\s+)?(?:declare\s+)?(?:abstract\s+)?"
    r"(?P<kind>function|class|interface|type|const|enum|namespace)\s+(?P<name>[A-Za-z_$][\w$]*)(?P<rest>[^\n{;]*)",
    re.MULTILINE,
)
_TS_MEMBER = re.compile(
    r"/\*\*(?P<doc>(?:[^*]|\*(?!/))*)\*/\s*^[ \t]+(?:readonly\s+|static\s+)?(?P<name>[A-Za-z_$][\w$]*)\??(?P<rest>[(:<][^\n;]*)",
    re.MULTILINE,
)


def typescript_entries(text: str, package: str, path: str) -> list[Entry]:
    """Exported declarations of a `.d.ts` file with their JSDoc, and documented members."""
    entries: list[Entry] = []
    outer = [(m.start(), m["name"]) for m in _TS.finditer(text)]
    for m in _TS.finditer(text):
        signature = f"{m['kind']} {m['name']}{m['rest']}".strip()[:MAX_SIGNATURE]
        entries.append(Entry(f"{package}.{m['name']}", m["kind"], signature, _block(m["doc"] or ""), path, _line(text, m.start("name"))))
    for m in _TS_MEMBER.finditer(text):
        around = next((name for at, name in reversed(outer) if at < m.start()), "")
        name = ".".join(part for part in (package, around, m["name"]) if part)
        entries.append(
            Entry(name, "method", f"{m['name']}{m['rest']}"[:MAX_SIGNATURE], _block(m["doc"]), path, _line(text, m.start("name")))
        )
    return entries


_GO = re.compile(
    r"(?P<doc>(?:^//[^\n]*\n)*)^(?P<sig>func\s+(?:\([^)]*?\*?(?P<recv>\w+)(?:\[[^\]]*\])?\)\s*)?(?P<func>[A-Z]\w*)[^\n{]*|type\s+(?P<type>[A-Z]\w*)[^\n{]*"
    r"|(?:const|var)\s+(?P<value>[A-Z]\w*)[^\n{]*)",
    re.MULTILINE,
)


def go_entries(text: str, package: str, path: str) -> list[Entry]:
    """Exported functions, methods, types and values of a Go file, with the comment before them."""
    entries: list[Entry] = []
    for m in _GO.finditer(text):
        own = m["func"] or m["type"] or m["value"]
        name = ".".join(part for part in (package, m["recv"], own) if part)
        kind = "type" if m["type"] else "constant" if m["value"] else "method" if m["recv"] else "function"
        doc = re.sub(r"^// ?", "", m["doc"], flags=re.MULTILINE).strip()
        entries.append(Entry(name, kind, m["sig"].strip()[:MAX_SIGNATURE], doc[:MAX_DOC], path, _line(text, m.start("sig"))))
    return entries


_RUST = re.compile(
    r"(?P<doc>(?:^[ \t]*///[^\n]*\n)*)(?:^[ \t]*#\[[^\n]*\n)*^[ \t]*(?P<sig>pub\s+(?:const\s+|async\s+|unsafe\s+)*"
    r"(?P<kind>fn|struct|enum|trait|type|const|mod|macro)\s+(?P<name>\w+)[^\n{;]*)",
    re.MULTILINE,
)


def rust_entries(text: str, crate: str, path: str) -> list[Entry]:
    """Public items of a Rust file, with their `///` comments."""
    return [
        Entry(
            f"{crate}::{m['name']}",
            {"fn": "function"}.get(m["kind"], m["kind"]),
            m["sig"].strip()[:MAX_SIGNATURE],
            re.sub(r"^[ \t]*/// ?", "", m["doc"], flags=re.MULTILINE).strip()[:MAX_DOC],
            path,
            _line(text, m.start("sig")),
        )
        for m in _RUST.finditer(text)
    ]


def readme_entries(text: str, library: str, path: str) -> Iterator[Entry]:
    """The sections of a library's README or description."""
    from search_router.adapters.local.knowledge_chunks import cut_pieces  # the readers of documents stay out of the start
    from search_router.adapters.local.knowledge_sections import document_format, read_sections

    pieces, _ = cut_pieces(read_sections(text, document_format(path) or "markdown"))
    for number, piece in enumerate(pieces):
        heading = piece.heading or library
        yield Entry(
            f"{library} README: {heading}" + (f" ({number})" if number else ""), "section", "", piece.text[:MAX_DOC], path, piece.start
        )


def _block(doc: str) -> str:
    return re.sub(r"^[ \t]*\*? ?", "", doc, flags=re.MULTILINE).strip()[:MAX_DOC]


def _line(text: str, at: int) -> int:
    return text.count("\n", 0, at) + 1
