"""When two requests provably ask the same: the part of a cache key that comes from the request and its plan. Pure.

Experts are given the whole question, so two wordings may share a key only where no step and no expert of this house tells them apart:
white space (the normal form), one sentence mark at the end of a prose question, and the capital of a first word that is a function word.
Names, quotes, paths, and anything else keep their case and their punctuation. The tests hold this against the real experts.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any, Final

from search_router.adapters.local.code_words import STOP_WORDS as INDEX_STOP_WORDS
from search_router.canonical import normal_question
from search_router.router.lexicon import STOP_WORDS
from search_router.router.plan import Plan
from search_router.router.scan import Kind, scan_question
from search_router.router.tokens import QuestionTokens
from search_router.schema import Classification, SearchRequest

FEWEST_WORDS: Final = 4
"""A shorter question may be a name with a mark, or a title."""
_PLAIN: Final = re.compile(r"[a-z]{2,}\Z")
_CAPITAL: Final = re.compile(r"[A-Z][a-z]+\Z")
_ENDS: Final = "?."


def same_wording(question: str) -> str:
    """The form that all wordings share which provably mean the same; a question that is not plainly prose keeps its own."""
    text = normal_question(question)
    tokens = scan_question(text)
    kinds = [token.kind for token in tokens if token.kind is not Kind.PUNCTUATION]
    if len(kinds) < FEWEST_WORDS or kinds[0] is not Kind.WORD or kinds[-1] is not Kind.WORD:
        return text
    words = text.split(" ")
    if words[-1] in _ENDS and len(words) > FEWEST_WORDS:
        last = words[-2]
        if _PLAIN.fullmatch(last):
            words.pop()
    elif words[-1][-1] in _ENDS and _PLAIN.fullmatch(words[-1][:-1]):
        words[-1] = words[-1][:-1]
    first = words[0].lower()
    if _CAPITAL.fullmatch(words[0]) and first in STOP_WORDS and first in INDEX_STOP_WORDS:
        words[0] = first
    return " ".join(words)


def request_key(
    request: SearchRequest,
    tokens: QuestionTokens,
    classification: Classification,
    classes: Sequence[str],
    plan: Plan,
    start: int,
    *,
    exact: bool,
) -> str:
    """Everything of a request that the answer depends on, as one JSON text.

    `exact` keeps the question to the letter, and `start` is where its page begins. Limits of time are not part of it: a whole answer is
    whole whatever time was allowed. Whom they leave out is part of it, by the plan.
    """
    asked: dict[str, Any] = {
        "question": tokens.text if exact else same_wording(request.question),
        "classes": list(classes),
        "classification": classification.model_dump(mode="json"),
        "scope": request.scope.model_dump(mode="json"),
        "filters": request.filters.model_dump(mode="json"),
        "shape": request.expected_shape.value,
        "limit": request.limit,
        "start": start,
        "detail": request.detail,
        "options": [request.budget.rerank, request.budget.allow_llm],
        "calls": [[call.expert, call.sub_query.form.value, call.sub_query.terms, call.limit, call.prior] for call in plan.calls],
        "reserve": [[call.expert, call.sub_query.form.value, call.sub_query.terms, call.limit, call.prior] for call in plan.reserve],
        "skipped": [[report.id, report.status.value] for report in plan.skipped],
        "weights": sorted(plan.weights.items()),
    }
    return json.dumps(asked, ensure_ascii=True, separators=(",", ":"))
