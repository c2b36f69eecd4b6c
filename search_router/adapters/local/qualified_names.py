"""Names as they stand in code: cutting qualified ones, and splitting plain ones into the words a person would use."""

from __future__ import annotations

import functools
import re
from typing import Final

_SEPARATORS = re.compile(r"::|->|[.:#\\/]")
_ARGUMENTS = re.compile(r"<[^<>]*>|\[[^\[\]]*\]")
# On a name whose letters stand for their classes: U upper, l lower, d digit, o letters that have no case.
_WORDS = re.compile("U+(?!l)|U?l+|U|d+|o+")
_ASCII_WORDS = re.compile("[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[A-Z]|[0-9]+")
"""The same on the letters themselves, five times as fast."""
_SELF = frozenset({"this", "self", "prototype", "cls"})
_SUFFIXES: Final = ("ations", "ation", "ings", "ing", "ions", "ion", "ers", "er", "ies", "ie", "es", "ed", "s", "y", "e")
_SHORTEST_STEM = 3


def plain_name(text: str) -> str:
    """A name without what the language writes around it: `:id`, `#items`, and the last part of a dotted alias."""
    text = text.lstrip(":#$@")
    return text.rpartition(".")[2] if "." in text else text


def cut_qualified(text: str) -> tuple[str, str]:
    """(container joined by dots, name) of `geo::Box<int>::get`, `M:push`, `Queue.prototype.peek`, `App\\Orders`."""
    while (shorter := _ARGUMENTS.sub("", text)) != text and "operator" not in text:
        text = shorter
    parts = [part.strip() for part in _SEPARATORS.split(text)]
    parts = [part for part in parts if part and part not in _SELF]
    return (".".join(parts[:-1]), plain_name(parts[-1])) if parts else ("", "")


def folded(name: str) -> str:
    """The same for names that differ only in case and underscores: `getCookie`, `get_cookie`, `GET_COOKIE`."""
    return name.replace("_", "").lower() or name


@functools.lru_cache(maxsize=65536)
def subtokens(name: str) -> tuple[str, ...]:
    """The words of a camelCase, PascalCase, snake_case or kebab-case name, in lower case and in order; digits stand alone."""
    if name.isascii():
        return tuple([word.lower() for word in _ASCII_WORDS.findall(name)])
    classes = "".join(map(_letter_class, name))
    return tuple(name[match.start() : match.end()].lower() for match in _WORDS.finditer(classes))


def _letter_class(letter: str) -> str:
    if letter.islower():
        return "l"
    if letter.isupper():
        return "U"
    if letter.isdigit():
        return "d"
    return "o" if letter.isalnum() else "_"


@functools.lru_cache(maxsize=65536)
def stem(word: str) -> str:
    """A lower-case English word without its most common ending, so that parse, parser, parsing and parsed meet.

    A light stemmer of our own: the longest of a short list of endings is cut while three letters stay. Words it joins wrongly only
    cost rank, because an exact word always counts more than a stem.
    """
    for suffix in _SUFFIXES:
        if word.endswith(suffix) and len(word) - len(suffix) >= _SHORTEST_STEM:
            word = word[: -len(suffix)]
            return word[:-1] if len(word) > _SHORTEST_STEM and word[-1] == word[-2] else word
    return word
