"""What a question about history is after: words to find in messages, code to find in changes, and which end of its life.

Pure functions over the sub-query; the lists are short on purpose, and none was fitted to a set of questions.
"""

from __future__ import annotations

import re
from enum import StrEnum
from functools import lru_cache

from search_router.schema import QueryForm, SubQuery

MAX_CODE_TERMS = 3
MAX_TOKENS = 64

_PIECE = re.compile(
    r"[぀-ヿ㐀-鿿가-힯]+"  # scripts without spaces between words
    r"|[A-Z]+(?=[A-Z][a-z])|[A-Z]?[a-z]+|[A-Z]+|\d+|[^\W\d_A-Za-z]+"
    r"|[\u2190-\u2bff\U0001f000-\U0001faff]"  # pictures are words in many commit messages
)
_WORD = re.compile(r"\w+|[\u2190-\u2bff\U0001f000-\U0001faff]")
_SPACELESS = re.compile(r"[぀-ヿ㐀-鿿가-힯]")
_STOP = re.compile(
    "a|an|and|are|as|at|be|been|by|can|commits?|did|do|does|for|from|get|got|had|has|have|how|i|in|into|is|it|its|made|make|of|on|or|our"
    "|please|since|so|that|the|their|them|then|there|these|this|to|was|we|were|what|when|where|which|who|whom|whose|why|will|with|you"
)
_ASKS = re.compile(r"\b(?:when|who|why|which|what|how|since|commit|history|introduction|origin)\b|\?", re.IGNORECASE)


class Aspect(StrEnum):
    """Which change of a piece of code is asked for."""

    INTRODUCED = "introduced"
    REMOVED = "removed"
    CHANGED = "changed"


_VERBS = {
    Aspect.INTRODUCED: r"introduc\w*|add(?:ed|s)?|land(?:ed|s)?|appear\w*|creat\w+|implement\w*|originat\w*|first|came",
    Aspect.REMOVED: r"remov\w*|delet\w*|drop(?:ped|s)?|disappear\w*|vanish\w*|gone",
    Aspect.CHANGED: r"chang\w*|fix\w*|renam\w*|refactor\w*|modif\w*|updat\w*|deprecat\w*|break\w*|broke\w*|mov(?:ed?|es|ing)"
    r"|switch\w*|last|latest|recent\w*|touch\w*",
}
_VERB = re.compile("|".join(rf"\b(?P<{aspect}>{words})\b" for aspect, words in _VERBS.items()), re.IGNORECASE)

_QUOTED = re.compile(r"`([^`]+)`|\"([^\"]+)\"|(?<!\w)'([^']+)'(?!\w)")
_CHAIN = re.compile(r"[A-Za-z_$][\w$]*(?:(?:\.|::|->|#)[A-Za-z_][\w$]*)*")
_PATH = re.compile(r"[\w./+@-]+")
_LOOKS_LIKE_CODE = re.compile(
    r".*[A-Za-z0-9]_+[A-Za-z0-9]|_+[A-Za-z]"  # snake_case, _private
    r"|.*[a-z0-9][A-Z]|[A-Z]+[A-Z][a-z]"  # camelCase, HTTPServer
    r"|[A-Za-z]+\d+[A-Za-z]"
    r"|.*\w{2}(?:\.|::|->|#)\w{2}"
)


@lru_cache(maxsize=65536)
def subtokens(word: str) -> tuple[str, ...]:
    """Lower-case parts of one word as people write it in code, and the word itself when it has several.

    `HTTPServer_v2` gives http, server, v, 2, httpserverv2. Runs of scripts without spaces become pairs of characters; a picture
    becomes its code point.
    """
    if not word.isascii() and word.isalpha() and not _SPACELESS.search(word):
        return (word.casefold(),)  # humps are an ASCII habit; café is one word
    parts: list[str] = []
    for piece in _PIECE.findall(word):
        if _SPACELESS.match(piece):
            parts += [piece[i : i + 2] for i in range(max(1, len(piece) - 1))]
        elif not piece.isalnum():
            parts.append(f"u{ord(piece[0]):x}")
        else:
            parts.append(piece.lower())
    if len(parts) > 1 and not _SPACELESS.search(word):
        parts.append(word.lower().replace("_", ""))
    return tuple(parts)


def tokens_of(text: str) -> list[str]:
    """All subtokens of a text, in order, with repeats."""
    return [token for word in _WORD.findall(text) for token in subtokens(word)]


def message_tokens(text: str) -> tuple[str, ...]:
    """The words of a question that are worth looking for in messages, without repeats.

    Words that only ask (`when`, `was`, `introduced`) go, unless nothing else is left.
    """
    every = list(dict.fromkeys(tokens_of(text)))
    asks = _ASKS.search(text) is not None
    kept = [t for t in every if not _STOP.fullmatch(t) and not (len(t) == 1 and t.isascii()) and not (asks and _VERB.fullmatch(t))]
    return tuple((kept or every)[:MAX_TOKENS])


def asks_for_commit(text: str) -> bool:
    """Whether the text asks for a commit, rather than being the text of one or of a change log's entry."""
    return _ASKS.search(text) is not None


def aspect_of(text: str, code: tuple[str, ...] = ()) -> Aspect:
    """Which change is asked for: the first verb outside the code decides, then `when`; otherwise any change."""
    for term in code:
        text = text.replace(term, " ")
    if verb := _VERB.search(text):
        return Aspect(str(verb.lastgroup))
    return Aspect.INTRODUCED if re.search(r"\bwhen\b", text, re.IGNORECASE) else Aspect.CHANGED


def looks_like_code(term: str) -> bool:
    """Whether a single word is an identifier by its shape: an underscore, a hump, an inner digit or a member access."""
    return _LOOKS_LIKE_CODE.match(term) is not None


def code_terms(sub_query: SubQuery) -> tuple[str, ...]:
    """The literal strings or the pattern to look for in changes: at most three, most important first.

    A literal, symbol or regex sub-query says so itself; in other forms what is quoted counts, then what looks like code.
    """
    if sub_query.form is QueryForm.REGEX:
        found = list(sub_query.terms)
    elif sub_query.form in (QueryForm.LITERAL, QueryForm.SYMBOL):
        found = [_bare(term) for term in sub_query.terms]
    else:
        quoted = [_bare(next(group for group in match.groups() if group)) for match in _QUOTED.finditer(sub_query.text)]
        shaped = [_bare(term) for term in sub_query.terms if " " not in term and looks_like_code(_bare(term))]
        chains = [chain for chain in _CHAIN.findall(_QUOTED.sub(" ", sub_query.text)) if looks_like_code(chain)]
        found = [*quoted, *shaped, *chains]
    return tuple(dict.fromkeys(term for term in found if _can_be_argument(term)))[:MAX_CODE_TERMS]


def file_terms(sub_query: SubQuery) -> tuple[str, ...]:
    """Words that may be the name of a file: the sub-query's terms, and what has a dot or a slash in the question."""
    words = [word.strip(".,:;") for word in _PATH.findall(sub_query.text)]
    shaped = [word for word in words if "/" in word.strip("/") or "." in word]
    return tuple(dict.fromkeys(term for term in [*sub_query.terms, *shaped] if " " not in term and _can_be_argument(term)))


def _bare(term: str) -> str:
    """A call as people write it, `name()`, without its empty parentheses."""
    return term.strip().removesuffix("()")


def _can_be_argument(term: str) -> bool:
    return bool(term.strip()) and "\0" not in term and not any("\ud800" <= c <= "\udfff" for c in term)
