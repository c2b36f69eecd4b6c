"""Lexical analysis of a question: what is quoted, what is code, what is prose. Pure."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

from search_router.canonical import normal_question
from search_router.router.asked_word import word_asked_for
from search_router.router.lexicon import AMBIGUOUS_LANGUAGES, LANGUAGES, STOP_WORDS
from search_router.router.scan import Kind, Token, scan_question, word_at

_CONTRACTIONS = {"n't": " not", "'s": "", "'re": " are", "'ve": " have", "'ll": " will", "'m": " am", "'d": " would"}
_ASKING = frozenset({"what", "where", "who", "how", "when", "why", "which", "that", "there", "it", "here", "let"})


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


@lru_cache(maxsize=256)
def analyse_question(question: str) -> QuestionTokens:
    """The tokens of a question in normal form; never raises, linear time, no length limit of its own."""
    text = normal_question(question)
    tokens = scan_question(text)
    asked = word_asked_for(text)
    if asked is not None:
        tokens = [t._replace(kind=Kind.IDENTIFIER) if t.kind is Kind.WORD and t.text == asked else t for t in tokens]
    return _collect(text, tokens)


def _collect(text: str, tokens: list[Token]) -> QuestionTokens:
    found: dict[Kind, dict[str, None]] = {kind: {} for kind in Kind}
    words: dict[str, str] = {}
    languages: dict[str, None] = {}
    skeleton: list[str] = []
    for i, token in enumerate(tokens):
        if token.kind is Kind.WORD:
            plain = _plain(token.text)
            skeleton.append(plain)
            word = plain.partition(" ")[0]
            if word in STOP_WORDS:
                continue
            language = _language_at(tokens, i, word)
            if language:
                languages[language] = None
            if word and not (language and word_at(tokens, i - 1) == "in"):
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
    lower = word.lower()
    if "'" not in lower and "’" not in lower:
        return lower
    lower = lower.replace("’", "'")
    for ending, full in _CONTRACTIONS.items():
        if lower.endswith(ending) and len(lower) > len(ending):
            stem = lower.removesuffix(ending)
            return f"{stem} is" if ending == "'s" and stem in _ASKING else stem + full
    return lower


def _language_at(tokens: list[Token], i: int, word: str) -> str | None:
    if word in LANGUAGES:
        return LANGUAGES[word]
    if word in AMBIGUOUS_LANGUAGES and (word_at(tokens, i - 1) == "in" or word_at(tokens, i + 1) in ("code", "files", "source", "sources")):
        return AMBIGUOUS_LANGUAGES[word]
    return None
