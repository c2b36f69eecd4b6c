"""Cut a question into tokens and tell what each one is: quoted text, a regular expression, code, a path, a word.

Linear in the length of the question: every pattern has a bounded repetition or a delimiter that it cannot run over.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from enum import StrEnum
from typing import NamedTuple

from search_router.router.lexicon import CODE_SUFFIXES, FILE_EXTENSIONS, KIND_NOUNS, LANGUAGES, PROSE_NAMES, SOURCE_FOLDERS, STOP_WORDS


class Kind(StrEnum):
    """What one token is; the value is its placeholder in the skeleton."""

    QUOTED = "_q_"
    REGEX = "_r_"
    URL = "_url_"
    LITERAL = "_lit_"
    IDENTIFIER = "_id_"
    CONSTANT = "_const_"
    FLAG = "_flag_"
    PATH = "_path_"
    VERSION = "_ver_"
    DATE = "_date_"
    NUMBER = "_num_"
    WORD = ""
    PUNCTUATION = "."


class Token(NamedTuple):
    """One token: its text without delimiters, and its kind."""

    text: str
    kind: Kind


_DELIMITED = re.compile(
    r"""
      `{1,3}(?P<tick>[^`]+)`{1,3}
    | (?<![\w\\*+)\]])"(?P<double>[^"]+)"
    | [“„«](?P<curly>[^“”«»]+)[”“»]
    | (?<![\w'’])'(?P<single>[^']+)'(?!\w)
    | (?<!\w)(?P<url>[a-z][a-z0-9+.-]{1,15}://[^\s"'`<>]+)
    | (?<!\S)/(?P<slash>(?:[^/\\]|\\.){1,120})/[a-z]{0,6}(?=[\s?.,!;]|$)
    """,
    re.VERBOSE,
)
_REGEX = re.compile(
    r"""\\[sSdDwWbB.()\[\]{}/+*?|^$] | \.[*+] | \[\^ | \[[^\]\s]{1,80}\][+*?{] | \(\?[:=!<P] | \)[+*?] | [\w\]]\{\d+,?\d*\}
      | \(\w+(?:\|\w+)+\) | ^\^\w | \w\$$ | ^\w+(?:\|\w+)+$""",
    re.VERBOSE,
)
_REGEX_IN_SLASHES = re.compile(r"[\\^$*+?()\[\]{}|]|\.[*+]")
_NAME = re.compile(r"[A-Za-z_$][\w$]*\Z")
_DECLARED = re.compile(rf"(?:(?:{'|'.join(sorted(KIND_NOUNS))}|def|fn|func|var|let|const) )?([A-Za-z_$][\w$]*)\Z")
_JOINED = re.compile(r"[A-Za-z_~][\w$]*(?:(?:\.|::|\#|->)[A-Za-z_~][\w$]*)+\Z")
_CASED = re.compile(r"[a-z]+[A-Z]\w*\Z | [A-Z][a-z0-9]+[A-Z]\w*\Z | [A-Z]{2,}[a-z]{2,}\w*\Z", re.VERBOSE)
_SNAKED = re.compile(r"_+[A-Za-z0-9]\w*\Z | [A-Za-z0-9]+(?:_[A-Za-z0-9]+)+_*\Z | [A-Za-z][A-Za-z0-9]*_+\Z", re.VERBOSE)
_SCREAMED = re.compile(r"_*[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+_*\Z | [A-Z]{2,}_\Z", re.VERBOSE)
_RAW_NUMBER = re.compile(r"0[xX][0-9A-Fa-f_]{2,}\Z | \d{1,3}(?:\.\d{1,3}){3}(?::\d+)?\Z", re.VERBOSE)
_ERROR_CODE = re.compile(r"E[A-Z]{5,}\Z|(?!ES\d|UTF|SHA|ISO|RFC|MD\d|X\d|IE\d|H\d)[A-Z]{1,4}-?\d{3,6}\Z")
_FLAG = re.compile(r"--[A-Za-z][\w-]*(?:=\S*)?\Z | -[A-Za-z]\Z", re.VERBOSE)
_GENERIC = re.compile(r"([A-Za-z_]\w*(?:(?:\.|::)\w+)*)(?:<[\w\[]|\[[A-Za-z])")
_CALL = re.compile(r"([A-Za-z_$][\w$]*(?:(?:\.|::|\#|->)[A-Za-z_$][\w$]*)*)\(([^()]*)(\)?)\Z")
_HEADER = re.compile(
    r"(?:X|Content|User|Accept|Cache|Set|If|Last|Transfer|Retry|Strict|Access|Sec|WWW|Proxy|Keep)(?:-[A-Z][A-Za-z0-9]*)+\Z"
)
_SELECTOR = re.compile(r"\#[a-z]+\Z | [.#][A-Za-z]\w*(?:-+\w+)+\Z | [a-z]\w*(?:-\w+)*--\w[\w-]*\Z", re.VERBOSE)
_VERSION = re.compile(r"v?\d+(?:\.(?:\d+|x))+(?:[-.]?(?:rc|alpha|beta|a|b|dev|post)\.?\d*)?\Z | v\d+\Z", re.VERBOSE)
_DATE = re.compile(r"\d{4}-\d{2}(?:-\d{2})?\Z")
_YEAR = re.compile(r"(?:19|20)\d\d\Z")
_PATH = re.compile(r"(?:\.{0,2}/|~/)?[\w.@*+\[\]-]+(?:/[\w.@*+\[\]-]+)*/?\Z")
_DOTFILE = re.compile(r"\.[a-z][\w-]*(?:\.\w+)*\Z")
_BEFORE_YEAR = frozenset({"in", "since", "before", "after", "during", "of", "from", "until", "by", "and", "between"})
_END = "?!.…;"


def scan_question(text: str) -> list[Token]:
    """The tokens of a question in normal form, in order of appearance."""
    return _name_neighbours(list(_scan_prose(text)))


def word_at(tokens: list[Token], i: int) -> str:
    """The plain word at a place, in lower case; empty when there is none or it is no plain word."""
    return tokens[i].text.lower() if 0 <= i < len(tokens) and tokens[i].kind is Kind.WORD else ""


def _scan_prose(text: str) -> Iterator[Token]:
    position = 0
    for match in _DELIMITED.finditer(text):
        group = match.lastgroup or ""
        content = match[group]
        if not content.strip() or (group == "slash" and not _REGEX_IN_SLASHES.search(content)):
            continue  # not a literal after all: it stays part of the prose before the next one
        yield from _words(text[position : match.start()])
        position = match.end()
        yield from _delimited(group, content)
    yield from _words(text[position:])


def _delimited(group: str, content: str) -> Iterator[Token]:
    """Quoted text keeps its kind when it is code in back-ticks or a flag in any quotes; otherwise it is a text to find."""
    if group == "slash":
        yield Token(content, Kind.REGEX)
        return
    if group == "url":
        yield Token(content.rstrip("?!.,;:)]}"), Kind.URL)
        return
    kind, name = _kind_of(content.strip())
    if kind is Kind.FLAG or (group == "tick" and kind in (Kind.IDENTIFIER, Kind.CONSTANT, Kind.PATH, Kind.REGEX)):
        yield Token(name, kind)
    elif group == "tick" and (named := _DECLARED.match(content)):
        yield Token(named[1], Kind.IDENTIFIER)
    else:
        yield Token(content, Kind.QUOTED)


def _words(prose: str) -> Iterator[Token]:
    for raw in prose.split():
        if raw.isalpha() and raw.islower():
            yield Token(raw, Kind.WORD)
            continue
        core = raw.rstrip("?!,;:….")
        ending = raw[len(core) :]
        if not core.isalnum():
            core = _strip_brackets(core)
        if core.isalpha() and core[1:].islower():
            yield Token(core, Kind.WORD)  # most words with a capital or with punctuation behind them end here
        elif core:
            kind, name = _kind_of(core)
            yield Token(name, kind)
        if ending or not core:
            yield Token("." if any(c in _END for c in ending) else ",", Kind.PUNCTUATION)


def _strip_brackets(core: str) -> str:
    """Without the brackets and quotes around a word; `foo()`, `List[int]` and a regular expression keep theirs."""
    if _REGEX.search(core):
        return core
    core = core.lstrip("([{<\"'“‘,;:").rstrip("\"'”’")
    surplus = {closing: core.count(closing) - core.count(opening) for opening, closing in ("()", "[]", "{}", "<>")}
    end = len(core)
    while end and (surplus.get(core[end - 1], 0) > 0 or (end < len(core) and core[end - 1] in "?!,;:.")):
        if core[end - 1] in surplus:
            surplus[core[end - 1]] -= 1
        end -= 1
    return core[:end]


def _kind_of(core: str) -> tuple[Kind, str]:
    """The kind of one word without surrounding punctuation, and the name or text that it stands for."""
    if not any(c.isalnum() for c in core):
        symbols = not core.isascii() and any(unicodedata.category(c)[0] in "SM" for c in core)
        return (Kind.WORD, core) if symbols else (Kind.PUNCTUATION, ",")
    lower = core.lower()
    if core.isalpha() and core[1:].islower():
        return Kind.WORD, core
    if lower in PROSE_NAMES or lower in LANGUAGES:
        return Kind.WORD, core
    if core.isdigit():
        return Kind.NUMBER, core
    if _RAW_NUMBER.match(core):
        return Kind.LITERAL, core
    if _DATE.match(core):
        return Kind.DATE, core
    if _VERSION.match(core):
        return Kind.VERSION, core
    if _FLAG.match(core):
        return Kind.FLAG, core.partition("=")[0]
    if (path := _path_of(core)) is not None:
        return path
    if _REGEX.search(core):
        return Kind.REGEX, core
    return _code_of(core)


def _path_of(core: str) -> tuple[Kind, str] | None:
    if "(" in core or not _PATH.match(core):
        return None
    first, slash, _ = core.partition("/")
    last = core.rstrip("/").rpartition("/")[2]
    stem, dot, extension = last.rpartition(".")
    named = bool(dot) and extension.lower() in FILE_EXTENSIONS and stem not in ("self", "this", "cls") and not extension.isupper()
    if named and not last.endswith(".*") and (stem or _DOTFILE.match(last)):
        return Kind.PATH, core
    if not slash:
        return (Kind.PATH, core) if _DOTFILE.match(core) and "--" not in core and "-" not in core else None
    if first == "" and len(core) > 1:
        return Kind.LITERAL, core  # an endpoint or an absolute path: a text to find, not a place in the project
    if first in (".", "..", "~") or first in SOURCE_FOLDERS or (core.endswith("/") and len(core) > 2):
        return Kind.PATH, core
    return (Kind.IDENTIFIER, core) if core.startswith("@") else None


def _code_of(core: str) -> tuple[Kind, str]:
    call = _CALL.match(core)
    if call is not None:
        name, arguments, closed = call.groups()
        is_named = any(c.isalnum() for c in name)  # `$(id)` is a call of nothing
        return (Kind.IDENTIFIER, name) if is_named and (closed or arguments) else (Kind.LITERAL, core)
    bare = core.lstrip("@$*&{").rstrip("}*")
    if not bare:
        return Kind.WORD, core
    if _HEADER.match(bare) or _SELECTOR.match(core):
        return Kind.LITERAL, core
    if _SCREAMED.match(bare) or _ERROR_CODE.match(bare):
        return Kind.CONSTANT, bare
    if _JOINED.match(bare) or _SNAKED.match(bare) or _CASED.match(bare):
        return Kind.IDENTIFIER, bare
    generic = _GENERIC.match(bare)
    if generic is not None:
        return Kind.IDENTIFIER, generic[1]
    if core[0] in "@$" and _NAME.match(bare):
        return (Kind.CONSTANT if bare.isupper() else Kind.IDENTIFIER), bare
    return Kind.WORD, core


def _name_neighbours(tokens: list[Token]) -> list[Token]:
    """Turn words that only their place gives away into names: `the Router struct`, `function called slugify`, `in 2023`."""
    for i, (text, kind) in enumerate(tokens):
        if kind is Kind.NUMBER and i and _YEAR.match(text) and tokens[i - 1].text.lower() in _BEFORE_YEAR:
            tokens[i] = Token(text, Kind.DATE)
        if kind is not Kind.WORD or text in STOP_WORDS:
            continue
        before = word_at(tokens, i - 1) if i else ""
        if not (text[0].isupper() or before in ("called", "named")) or not _NAME.match(text):
            continue
        after = word_at(tokens, i + 1)
        if before in ("called", "named") and word_at(tokens, i - 2) in KIND_NOUNS:
            tokens[i] = Token(text, Kind.IDENTIFIER)
        elif text[0].isupper() and text[1:].islower() and text.lower() not in PROSE_NAMES:
            starts = i == 0 or tokens[i - 1].text == "."
            beside = (before in KIND_NOUNS or after in KIND_NOUNS) and text.lower() not in LANGUAGES
            if (not starts and (beside or text.endswith(CODE_SUFFIXES))) or (len(tokens) == 1 and text.endswith(CODE_SUFFIXES)):
                tokens[i] = Token(text, Kind.IDENTIFIER)
    return tokens
