"""The words of code and of questions, made alike so that they meet: subtokens, stemmed, and whole identifiers.

`getCookieJar` gives get, cook, jar (stems) and getcookiejar. Letters of scripts without case are words as they stand.
"""

from __future__ import annotations

import functools
import itertools
import re
from collections import Counter
from collections.abc import Sequence
from typing import Final

from search_router.adapters.local.qualified_names import stem, subtokens

IDENTIFIER = re.compile(r"\w+")
MAX_IDENTIFIER: Final = 128
"""A longer run of letters and digits is data (a hash, a base64 line), not a name."""

STOP_WORDS: Final = frozenset(
    """a an the of to in on for and or is are was were be been by with from as at it its this that these those how what where when why
    which who does do did can could should would into onto via using used use uses between within about than then there their them they
    we you our your i if not no""".split()
)
GENERIC_WORDS: Final = frozenset(
    """work works working handle handles handled handling implement implements implemented implementation implementations internals
    internal logic system code support supports supported supporting manage manages managed management perform performed process
    processed define defined defines definition make made get gets provide provides provided feature features mechanism
    functionality""".split()
)
"""Words that say little about which code is meant, because they could be said of any."""
GENERIC_WEIGHT: Final = 0.4

DOCUMENT_WORDS: Final = frozenset(stem(word) for word in ("doc", "docs", "document", "documents", "documentation", "documented"))


@functools.lru_cache(maxsize=262_144)
def words_of(identifier: str) -> tuple[str, ...]:
    """The index words of one identifier: its stemmed subtokens of two letters or more, and the whole where it has several."""
    if len(identifier) > MAX_IDENTIFIER:
        return ()
    parts = subtokens(identifier)
    words = [stem(part) for part in parts if len(part) > 1 and not part.isdigit()]
    if len(parts) > 1:
        words.append("".join(parts))
    elif parts and len(parts[0]) == 1 and not parts[0].isascii():
        words.append(parts[0])
    return tuple(words)


@functools.lru_cache(maxsize=262_144)
def parts_of(name: str) -> tuple[str, ...]:
    """The stemmed subtokens of a name, without the whole."""
    return tuple(stem(part) for part in subtokens(name)) if len(name) <= MAX_IDENTIFIER else ()


@functools.lru_cache(maxsize=65_536)
def told_words(name: str) -> frozenset[str]:
    """The words that the name of a definition tells: its index words, and two neighbours as one. `WebSocketReader` tells websocket."""
    parts: Sequence[str] = subtokens(name) if len(name) <= MAX_IDENTIFIER else ()
    return frozenset(words_of(name)).union(stem(first + second) for first, second in itertools.pairwise(parts))


def count_words(text: str) -> Counter[str]:
    """How often each index word stands in a text."""
    counts: Counter[str] = Counter()
    for identifier, count in Counter(IDENTIFIER.findall(text)).items():
        for word in words_of(identifier):
            counts[word] += count
    return counts


def question_words(question: str) -> dict[str, float]:
    """Index words of a question with their weights, in order, without stop words."""
    weights: dict[str, float] = {}
    for identifier in IDENTIFIER.findall(question):
        if identifier.lower() in STOP_WORDS or len(identifier) > MAX_IDENTIFIER:
            continue
        parts = subtokens(identifier)
        if len(parts) > 1:
            weights.setdefault("".join(parts), 1.0)
        for part in parts:
            if part not in STOP_WORDS and (len(part) > 1 or not part.isascii()):
                weights.setdefault(stem(part), GENERIC_WEIGHT if part in GENERIC_WORDS else 1.0)
    return weights


def topic_words(question: str) -> dict[str, float]:
    """`question_words` without those that only say that a document is wanted, unless nothing else is left: every document is one."""
    weights = question_words(question)
    topic = {word: weight for word, weight in weights.items() if word not in DOCUMENT_WORDS}
    return topic or weights


def names_in(question: str) -> tuple[str, ...]:
    """Words of the question that are written like names of definitions: camelCase, snake_case, or a capital in a question of two words."""
    words = [w for w in IDENTIFIER.findall(question) if w.lower() not in STOP_WORDS and len(w) > 2]
    return tuple(w for w in words if re.search(r"[a-z][A-Z]|_", w) or (w[0].isupper() and len(words) <= 2))
