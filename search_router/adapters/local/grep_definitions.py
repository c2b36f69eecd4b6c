"""Whether a line looks like the place where a name is defined, in the common ways of some thirty languages. A guess from one line."""

from __future__ import annotations

import re

_DEFINITION = re.compile(
    r"\s*(?:(?:export|default|public|private|protected|internal|static|final|abstract|async|pub(?:\([^)]*\))?|unsafe|open|override|sealed"
    r"|partial|data|inline|virtual|extern|declare|local|case|suspend|fileprivate|readonly|companion|implicit|lazy|mutating)\s+)*"
    r"(?P<keyword>defp?|defmodule|defmacro|defprotocol|class|function|func|fun|fn|sub|interface|struct|type|typedef|const|enum|union|trait"
    r"|module|namespace|object|protocol|extension|actor|impl|record|instance|newtype|mod|val|var|let|static|macro_rules!|\#define)\s+"
    r"(?:\([^)]*\)\s*)?(?P<name>[\w$]+(?:(?:\.|::)[\w$]+)*)"
)
_ADDS_TO_OTHERS = frozenset({"extension", "impl", "instance"})
_ASSIGNED = re.compile(r"\s*(?::[^=]{0,200})?(?::=|=(?!=))")
_SEPARATOR = re.compile(r"\.|::|#")
_LONGEST = 1000


def defined_name(text: str) -> tuple[int, int] | None:
    """The span of the name that the line defines by a keyword (`def`, `class`, `fn`, ...), None when there is none."""
    found = _DEFINITION.match(text, 0, _LONGEST)
    return found.span("name") if found else None


def definition_weight(text: str, name: str) -> float:
    """How much the line looks like the definition of exactly this name.

    2 by a keyword, 1.5 as a C-like function head, 1 as an assignment or as an extension of what is defined elsewhere, else 0. Of a
    qualified name (`CookieJar.save`, `Vec::push`) the last part is the name that a line defines.
    """
    text = text[:_LONGEST]
    last = _SEPARATOR.split(name)[-1] or name
    found = _DEFINITION.match(text)
    if found is not None and last in (found["name"], _SEPARATOR.split(found["name"])[-1]):
        return 1.0 if found["keyword"] in _ADDS_TO_OTHERS else 2.0
    at = text.find(last)
    behind = text[at + len(last) :]
    if at > 0 and behind.lstrip().startswith("(") and _is_function_head(text[:at], text):
        return 1.5
    return 1.0 if at >= 0 and not text[:at].strip() and _ASSIGNED.match(behind) else 0.0


def _is_function_head(before: str, text: str) -> bool:
    """A type before the name, from the first column on, and no semicolon behind: `static int parse(char *s)`."""
    return bool(re.fullmatch(r"[A-Za-z_][\w\s*&:<>,~]*[\s*&:]", before)) and not before.startswith(("return ", "else ")) and ";" not in text
