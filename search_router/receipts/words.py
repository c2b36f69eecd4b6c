"""How words enter a receipt: without secrets, bounded, and by default without the question's own."""

from __future__ import annotations

from search_router.canonical import Json
from search_router.receipts.keys import SigningKey, question_digest
from search_router.redact import scrub
from search_router.schema import Answer

MAX_TEXT = 300
SHORTEST_VEILED = 3
VEIL = "[question]"
_VEILED_FORMS = frozenset({"literal", "regex", "symbol"})


class Words:
    """How words enter this receipt: free text scrubbed and cut, the question and its terms as keyed digests or, where kept, as text."""

    def __init__(self, answer: Answer, question: str | None, key: SigningKey, *, keep: bool) -> None:
        self._question = question
        self._keep = keep
        self._key = key
        self._whole, self._terms = ((), ()) if keep else _veiled_texts(answer, question)

    def free(self, text: str | None) -> str | None:
        if text is None:
            return None
        # Whole quotations go first, because scrubbing could change them; single terms last, because they could break a secret's shape.
        clean = _veil(scrub(_veil(encodable(text), self._whole)), self._terms)
        return clean if len(clean) <= MAX_TEXT else clean[: MAX_TEXT - 1] + "…"

    def question(self) -> dict[str, Json] | None:
        if self._question is None:
            return None
        text = {"text": scrub(encodable(self._question))} if self._keep else {}
        return {"digest": question_digest(self._question, self._key)} | text

    def sub_query(self, text: str | None) -> dict[str, Json] | None:
        """A sub-query is `form: terms` and its terms are the question's words, so they are treated as the question is."""
        if text is None:
            return None
        form, terms = _split_sub_query(text)
        if self._keep:
            return {"form": form, "text": self.free(terms)}
        return {"form": form, "digest": self._key.keyed_digest(terms)}


def _veiled_texts(answer: Answer, question: str | None) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """What a reason or an error may quote of the question: it or a sub-query as a whole; and single terms that are no plain words."""
    whole = {question, question.strip()} if question else set[str]()
    terms = set[str]()
    for report in answer.experts:
        if report.sub_query:
            form, text = _split_sub_query(report.sub_query)
            whole.add(text)
            if form in _VEILED_FORMS:
                terms.update(text.split())
    return _longest_first(whole), _longest_first(terms)


def _longest_first(texts: set[str]) -> tuple[str, ...]:
    return tuple(sorted((encodable(text) for text in texts if len(text) >= SHORTEST_VEILED), key=lambda text: (-len(text), text)))


def _veil(text: str, veiled: tuple[str, ...]) -> str:
    for quoted in veiled:
        if quoted in text:
            text = text.replace(quoted, VEIL)
    return text


def _split_sub_query(text: str) -> tuple[str, str]:
    form, separator, terms = text.partition(": ")
    return (form, terms) if separator and form.isalpha() else ("", text)


def encodable(text: str) -> str:
    """The text with lone surrogates, which JSON in UTF-8 cannot carry, written out as escapes."""
    return text if text.isascii() else text.encode("utf-8", "backslashreplace").decode("utf-8")
