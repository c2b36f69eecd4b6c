"""From a sub-query to patterns that a grep engine can run: checked, distinct, in the spellings that files may have."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

from search_router.adapters.local.qualified_names import stem
from search_router.errors import ExpertError, FailureClass
from search_router.schema import QueryForm, SubQuery

MAX_TERMS = 32
_WORD = re.compile(r"\w+")


@dataclass(frozen=True, slots=True)
class Patterns:
    """What one search looks for. `needles` are the terms as they are looked for, most important first; `dropped` counts the rest.

    `spellings` are the engine's patterns: the needles, and those with accents also in decomposed form (NFD). `common` are indexes of
    needles that are on too many lines to be searched for; they only count where another needle is.
    """

    form: QueryForm
    needles: tuple[str, ...]
    spellings: tuple[str, ...]
    fixed: bool
    ignore_case: bool
    whole_words: bool
    dropped: int = 0

    @property
    def is_ascii(self) -> bool:
        """Whether the bytes to look for are the same in every encoding that is a superset of ASCII."""
        return all(needle.isascii() for needle in self.needles)

    @property
    def by_words(self) -> bool:
        """Whether files are ranked by the words they share with the question, rather than by exact matches."""
        return self.form in (QueryForm.KEYWORDS, QueryForm.TEXT)


def read_patterns(query: SubQuery) -> Patterns:
    """The patterns of a sub-query. Without terms, TEXT and KEYWORDS take the words of its text, the other forms the text itself.

    Raises:
        ExpertError: `rejected` when there is nothing to look for, or a term cannot be on one line of a text file.
    """
    by_words = query.form in (QueryForm.KEYWORDS, QueryForm.TEXT)
    terms = query.terms or (tuple(_WORD.findall(query.text)) if by_words else (query.text,))
    if by_words:
        terms = tuple(term.strip() for term in terms)
        longer = tuple(term for term in terms if len(term) > 1 or not term.isascii())
        terms = tuple(shared_part(term.casefold()) for term in longer or terms)
    distinct = tuple(dict.fromkeys(term for term in terms if term))
    if not distinct:
        raise ExpertError(FailureClass.REJECTED, "The sub-query has no term to search for.", remedy="Name at least one word.")
    for term in distinct:
        _check_term(term)
    needles = distinct[:MAX_TERMS]
    fixed = query.form is not QueryForm.REGEX
    return Patterns(
        form=query.form,
        needles=needles,
        spellings=_spellings(needles, fixed=fixed),
        fixed=fixed,
        ignore_case=by_words,
        whole_words=query.form is QueryForm.SYMBOL,
        dropped=len(distinct) - len(needles),
    )


def keep_needles(patterns: Patterns, kept: Collection[int]) -> Patterns:
    """Patterns that find only these needles, and know of all."""
    needles = [needle for index, needle in enumerate(patterns.needles) if index in kept]
    return replace(patterns, spellings=_spellings(needles, fixed=patterns.fixed))


def _spellings(needles: Sequence[str], *, fixed: bool) -> tuple[str, ...]:
    decomposed = tuple(unicodedata.normalize("NFD", needle) for needle in needles) if fixed else ()
    return tuple(dict.fromkeys((*needles, *decomposed)))


def shared_part(word: str) -> str:
    """The beginning that a word has in common with its relatives: of `handling` and `handler`, `handl`. Only plain English is cut."""
    return stem(word) if word.isascii() and word.isalpha() else word


def _check_term(term: str) -> None:
    if "\n" in term or "\r" in term or "\0" in term:
        raise ExpertError(
            FailureClass.REJECTED,
            "A term has a line break or a NUL character, and lines are searched one at a time.",
            remedy="Ask for one line of it.",
        )
    try:
        term.encode("utf-8")
    except UnicodeEncodeError as error:
        raise ExpertError(
            FailureClass.REJECTED, "A term has half a surrogate pair, which no text file can have.", remedy="Send valid Unicode."
        ) from error
