"""Markdown of the pages of docs/reference, and the words for types and docstrings in them."""

from __future__ import annotations

import ast
import inspect
import json
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from enum import StrEnum
from functools import cache
from typing import Any

from search_router.config.shape import words_for_type

MADE = "<!-- Made from the code by scripts/reference; edits here are overwritten. -->"
Node = Mapping[str, Any]
"""A node of a JSON Schema, or a table of the configuration."""


def page(title: str, intro: str, parts: Iterator[str]) -> str:
    text = "\n\n".join([f"# {title}", MADE, intro, *parts])
    return text.rstrip() + "\n"


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table, or nothing where there is no row."""
    lines = [f"| {' | '.join(row)} |" for row in (head, ["---"] * len(head), *([cell(c) for c in row] for row in rows))]
    return "\n".join(lines) if rows else ""


def cell(text: str) -> str:
    """One line without what ends a cell or begins a tag; text between backticks keeps its `<`."""
    pieces = " ".join(text.split()).replace("|", "\\|").split("`")
    return "`".join(piece if odd % 2 else piece.replace("<", "\\<") for odd, piece in enumerate(pieces))


def code(value: object) -> str:
    return f"`{value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)}`"


def first_paragraph(text: str | None) -> str:
    return inspect.cleandoc(text or "").split("\n\n")[0]


@cache
def notes_of(model: type) -> dict[str, str]:
    """Member to the docstring that follows it in the class, those of its base classes included."""
    found: dict[str, str] = {}
    for each in reversed(model.__mro__):
        if not each.__module__.startswith("search_router"):
            continue
        body = ast.parse(textwrap.dedent(inspect.getsource(each))).body[0]
        assert isinstance(body, ast.ClassDef)
        for member, after in zip(body.body, body.body[1:], strict=False):
            target = member.target if isinstance(member, ast.AnnAssign) else member.targets[0] if isinstance(member, ast.Assign) else None
            if isinstance(target, ast.Name) and isinstance(after, ast.Expr) and isinstance(after.value, ast.Constant):
                found[target.id] = str(after.value.value)
    return found


def type_words(node: Node, definitions: Node) -> str:
    """What kind of value belongs there, in the words of the configuration's own messages."""
    if "$ref" in node:
        name = node["$ref"].rpartition("/")[2]
        below = definitions[name]
        return " · ".join(code(choice) for choice in below["enum"]) if "enum" in below else f"[{name}](#{name.lower()})"
    if branches := [branch for branch in node.get("anyOf", ()) if branch != {"type": "null"}]:
        null = ", or null" if {"type": "null"} in node["anyOf"] else ""
        return " or ".join(type_words(branch, definitions) for branch in branches) + null
    if "enum" in node or "const" in node:
        return " · ".join(code(choice) for choice in node.get("enum", [node.get("const")]))
    if node.get("type") == "array":
        return f"an array of: {type_words(node.get('items', {}), definitions)}"
    if isinstance(below := node.get("additionalProperties"), dict) and below:
        return f"a table of: {type_words(below, definitions)}"
    words = "anything" if not node.get("type") else words_for_type(node)
    length = node.get("maxLength")
    return f"{words}, at most {length} characters" if length else words


def enum_parts(words: type[StrEnum]) -> Iterator[str]:
    notes = notes_of(words)
    yield inspect.cleandoc(words.__doc__ or "")
    if notes:
        yield table(("word", ""), [(code(word.value), notes.get(word.name, "")) for word in words])
    else:
        yield " · ".join(code(word.value) for word in words)
