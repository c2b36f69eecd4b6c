"""Lexical analysis of a question: what is quoted, what is code, what is prose.

Pure and linear in the length of the question: every pattern has a bounded repetition or a delimiter that it cannot run over.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache
from typing import NamedTuple

from search_router.canonical import normal_question
from search_router.router.lexicon import (
    AMBIGUOUS_LANGUAGES,
    CODE_SUFFIXES,
    FILE_EXTENSIONS,
    KIND_NOUNS,
    LANGUAGES,
    PROSE_NAMES,
    SOURCE_FOLDERS,
    STOP_WORDS,
)


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


@dataclass(frozen=True, slots=True)
class QuestionTokens:
    """What a question is made of. Every tuple is in order of appearance and without repetitions.

    `quoted` holds every text to be taken literally: quoted texts, URLs, header names, endpoints, open calls such as `eval(`.
    `identifiers` are bare names (no parentheses, generics or sigils) and command-line flags with their dashes.
    `content_words` is the prose in lower case without stop words, `original_words` the same words as they were written.
    `skeleton` is the question in lower case with every literal replaced by its kind (`where is _id_ defined .`); it is what rules
    about wording read, so that the text inside quotes never counts as wording. `heads` are the first parts of dotted names.
    """

    text: str
    skeleton: str
    quoted: tuple[str, ...]
    regexes: tuple[str, ...]
    identifiers: tuple[str, ...]
    paths: tuple[str, ...]
    content_words: tuple[str, ...]
    original_words: tuple[str, ...]
    languages: tuple[str, ...]
    versions: tuple[str, ...]
    dates: tuple[str, ...]
    heads: tuple[str, ...]

    @property
    def searchable(self) -> bool:
        """Whether anything is left to search for once function words are gone."""
        return bool(self.quoted or self.regexes or self.identifiers or self.paths or self.content_words or self.versions or self.dates)


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
_CONTRACTIONS = {"n't": " not", "'s": "", "'re": " are", "'ve": " have", "'ll": " will", "'m": " am", "'d": " would"}
_ASKING = frozenset({"what", "where", "who", "how", "when", "why", "which", "that", "there", "it", "here", "let"})
_END = "?!.…;"


@lru_cache(maxsize=256)
def analyse_question(question: str) -> QuestionTokens:
    """The tokens of a question in normal form; never raises, linear time, no length limit of its own."""
    text = normal_question(question)
    tokens = _name_neighbours(list(_scan(text)))
    return _collect(text, tokens)


# ------------------------------------------------------------------ text to tokens


def _scan(text: str) -> Iterator[Token]:
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
        core = _strip_brackets(core)
        if core:
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
        return (Kind.IDENTIFIER, name) if closed or arguments else (Kind.LITERAL, core)
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
    for i, token in enumerate(tokens):
        if token.kind is Kind.NUMBER and i and _YEAR.match(token.text) and tokens[i - 1].text.lower() in _BEFORE_YEAR:
            tokens[i] = Token(token.text, Kind.DATE)
        if token.kind is not Kind.WORD or token.text in STOP_WORDS:
            continue
        before = _word_at(tokens, i - 1)
        if not (token.text[0].isupper() or before in ("called", "named")) or not _NAME.match(token.text):
            continue
        after = _word_at(tokens, i + 1)
        if before in ("called", "named") and _word_at(tokens, i - 2) in KIND_NOUNS:
            tokens[i] = Token(token.text, Kind.IDENTIFIER)
        elif token.text[0].isupper() and token.text[1:].islower() and token.text.lower() not in PROSE_NAMES:
            starts = i == 0 or tokens[i - 1].text == "."
            beside = (before in KIND_NOUNS or after in KIND_NOUNS) and token.text.lower() not in LANGUAGES
            if (not starts and (beside or token.text.endswith(CODE_SUFFIXES))) or (len(tokens) == 1 and token.text.endswith(CODE_SUFFIXES)):
                tokens[i] = Token(token.text, Kind.IDENTIFIER)
    return tokens


def _word_at(tokens: list[Token], i: int) -> str:
    return tokens[i].text.lower() if 0 <= i < len(tokens) and tokens[i].kind is Kind.WORD else ""


# ------------------------------------------------------------------ tokens to the answer


def _collect(text: str, tokens: list[Token]) -> QuestionTokens:
    found: dict[Kind, dict[str, None]] = {kind: {} for kind in Kind}
    words: dict[str, str] = {}
    languages: dict[str, None] = {}
    skeleton: list[str] = []
    for i, token in enumerate(tokens):
        if token.kind is Kind.WORD:
            skeleton.append(_plain(token.text))
            language = _language_at(tokens, i)
            if language:
                languages[language] = None
            word = skeleton[-1].partition(" ")[0]
            if word not in STOP_WORDS and word and not (language and _word_at(tokens, i - 1) == "in"):
                words.setdefault(word, token.text)
        elif token.kind is Kind.PUNCTUATION:
            skeleton.append(token.text)
        else:
            skeleton.append(token.kind.value)
            found[token.kind][token.text] = None
            if token.kind is Kind.NUMBER:
                words.setdefault(token.text, token.text)
    names = _in_order(tokens, (Kind.IDENTIFIER, Kind.CONSTANT, Kind.FLAG))
    return QuestionTokens(
        text=text,
        skeleton=" ".join(skeleton),
        quoted=_in_order(tokens, (Kind.QUOTED, Kind.URL, Kind.LITERAL)),
        regexes=tuple(found[Kind.REGEX]),
        identifiers=names,
        paths=tuple(found[Kind.PATH]),
        content_words=tuple(words),
        original_words=tuple(words.values()),
        languages=tuple(languages),
        versions=tuple(found[Kind.VERSION]),
        dates=tuple(found[Kind.DATE]),
        heads=tuple(dict.fromkeys(re.split(r"\.|::|#|->|/", name.lower(), maxsplit=1)[0] for name in names if not name.startswith("-"))),
    )


def _in_order(tokens: list[Token], kinds: tuple[Kind, ...]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(token.text for token in tokens if token.kind in kinds))


def _plain(word: str) -> str:
    """A word in lower case with its contraction spelled out: `what's` is `what is`, `don't` is `do not`, `parser's` is `parser`."""
    lower = word.lower().replace("’", "'")
    if "'" not in lower:
        return lower
    for ending, full in _CONTRACTIONS.items():
        if lower.endswith(ending) and len(lower) > len(ending):
            stem = lower.removesuffix(ending)
            return f"{stem} is" if ending == "'s" and stem in _ASKING else stem + full
    return lower


def _language_at(tokens: list[Token], i: int) -> str | None:
    word = tokens[i].text.lower()
    if word in LANGUAGES:
        return LANGUAGES[word]
    if word in AMBIGUOUS_LANGUAGES and (
        _word_at(tokens, i - 1) == "in" or _word_at(tokens, i + 1) in ("code", "files", "source", "sources")
    ):
        return AMBIGUOUS_LANGUAGES[word]
    return None
