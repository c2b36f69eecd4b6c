"""From raw decoded JSON arguments to a request, inside the request path, so that a refused request leaves a receipt as well.

The order of the checks is: type, Unicode, size, emptiness, fields. Messages are our own and bounded: whatever a caller sends, no
message repeats more than 80 characters of it.
"""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import TypeVar, cast

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from search_router.answers import FetchRequest, OutcomeRequest
from search_router.canonical import normal_question
from search_router.errors import FieldProblem, RequestDeclined, RequestRejected
from search_router.router.injection import is_injection_shaped
from search_router.router.tokens import analyse_question
from search_router.schema import MAX_QUESTION_BYTES, Budget, Filters, Scope, SearchRequest

M = TypeVar("M", bound=BaseModel)
CLIP = 80
MAX_PROBLEMS = 16
MAX_DEPTH = 4
MAX_ITEMS = 256
_NESTED: dict[str, type[BaseModel]] = {"scope": Scope, "budget": Budget, "filters": Filters}
_SURROGATE = re.compile("[\ud800-\udfff]")
_BIDI = frozenset("\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")
_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]")
_TYPES = {
    "string_type": "a string",
    "int_type": "a whole number",
    "int_from_float": "a whole number",
    "bool_type": "true or false",
    "model_type": "an object",
    "tuple_type": "a list",
}


def parse_request(raw: object) -> SearchRequest:
    """The request in `raw`, the decoded JSON arguments of a call. Nothing is coerced: "5" is not a number, true is not 1.

    Raises:
        RequestRejected: wrong fields, types, ranges or Unicode; names every problem, at most 16 of them.
        RequestDeclined: well formed, but the question is huge (`huge-question`) or has nothing to search for (`empty-question`).
    """
    if not isinstance(raw, Mapping):
        raise RequestRejected((FieldProblem("", "wrong-type", f"must be an object with a question, not {_describe(raw)}"),))
    readable, problems = _readable_fields(cast("Mapping[object, object]", raw), SearchRequest.model_fields)
    question = readable.get("question")
    if isinstance(question, str):
        _decline_huge(question)
        _decline_empty(question)
    elif any(problem.field == "question" for problem in problems):
        readable["question"] = "stands in, so that the other fields are checked too"
    try:
        request = SearchRequest.model_validate_json(json.dumps(readable), strict=True)
    except ValidationError as error:
        problems.extend(_translate(details) for details in error.errors(include_url=False))
    else:
        problems.extend(_scope_problems(request.scope.path))
        if not problems:
            return request
    raise RequestRejected(_bounded(problems), remedy="Mend this and ask again.")


def _scope_problems(path: str | None) -> list[FieldProblem]:
    """A scope that no expert may search is no scope: every expert would have to refuse it, and none may read it as nothing found."""
    if path is None:
        return []
    parts = path.replace("\\", "/").split("/")
    if path.startswith("/") or ".." in parts or ".git" in parts or "\0" in path:
        return [FieldProblem("scope.path", "not-allowed", f"must lie below the project's root and outside .git, not {_clip(path)}")]
    return []


def question_of(raw: object) -> str | None:
    """The question in raw arguments, whatever else is wrong with them; None when there is no string."""
    question = cast("Mapping[object, object]", raw).get("question") if isinstance(raw, Mapping) else None
    return question if isinstance(question, str) else None


def parse_fetch(raw: object) -> FetchRequest:
    """The fetch request in `raw`, checked like a search request. Raises RequestRejected."""
    return _parse_plain(raw, FetchRequest, "ids", "Pass `ids` from search_knowledge, 1 to 20 of them.")


def parse_outcome(raw: object) -> OutcomeRequest:
    """The reported outcome in `raw`, checked like a search request. Raises RequestRejected."""
    remedy = "Pass `receipt`, `outcome` (success, partial or failure) and the `evidence` ids that were used."
    return _parse_plain(raw, OutcomeRequest, "a receipt", remedy)


def _parse_plain(raw: object, model: type[M], what: str, remedy: str) -> M:
    """A request without nested objects."""
    if not isinstance(raw, Mapping):
        raise RequestRejected((FieldProblem("", "wrong-type", f"must be an object with {what}, not {_describe(raw)}"),))
    readable, problems = _readable_fields(cast("Mapping[object, object]", raw), model.model_fields)
    try:
        request = model.model_validate_json(json.dumps(readable), strict=True)
    except ValidationError as error:
        found = [_translate(details) for details in error.errors(include_url=False)]
        told = {problem.field.partition(".")[0] for problem in problems}  # a field with a member at fault was left out above
        problems.extend(p for p in found if p.code != "missing-field" or p.field not in told)
    else:
        if not problems:
            return request
    raise RequestRejected(_bounded(problems), remedy=remedy)


def question_classes(question: str) -> tuple[str, ...]:
    """The classes of unusual text that a question belongs to, in a fixed order; () for an ordinary one. Never raises.

    empty, huge, injection-shaped, non-ascii, bidi, control-characters, regex. They are facts for the receipt and the reader: apart
    from empty and huge ones, a question is searched as it is.
    """
    text = question[:MAX_QUESTION_BYTES]  # a longer one is declined anyway, and its classes must not cost time
    tokens = analyse_question(text)
    found = {
        "empty": not tokens.searchable,
        "huge": len(question) > len(text) or len(text.encode("utf-8", "surrogatepass")) > MAX_QUESTION_BYTES,
        "injection-shaped": is_injection_shaped(text),
        "non-ascii": not text.isascii(),
        "bidi": not _BIDI.isdisjoint(text),
        "control-characters": _CONTROL.search(text) is not None,
        "regex": bool(tokens.regexes),
    }
    return tuple(name for name, holds in found.items() if holds)


# ------------------------------------------------------------------ what is declined


def _decline_huge(question: str) -> None:
    size = len(question.encode())
    if size > MAX_QUESTION_BYTES:
        raise RequestDeclined(
            f"The question has {size} bytes of UTF-8; at most {MAX_QUESTION_BYTES} are searched.",
            remedy="Ask one thing in a sentence, and name files by `scope.path` instead of pasting them.",
            code="huge-question",
        )


def _decline_empty(question: str) -> None:
    text = normal_question(question)
    if analyse_question(text).searchable:
        return
    if not text:
        message, remedy = "The question is empty: it has only white space or control characters.", "Ask with at least one word or name."
    elif any(c.isalnum() for c in text):
        message = f"The question {_clip(text)} has only function words, and those stand in every file."
        remedy = 'Add what it is about, a name or a topic word, or put the words in "quotes" to find them as they are.'
    else:
        message = f"The question {_clip(text)} has no word and no name in it."
        remedy = 'Add a word or a name, or put the characters in "quotes" to find them as they are.'
    raise RequestDeclined(message, remedy=remedy, code="empty-question")


# ------------------------------------------------------------------ what is rejected


def _readable_fields(raw: Mapping[object, object], fields: Collection[str]) -> tuple[dict[str, object], list[FieldProblem]]:
    """The known fields whose values are JSON that every reader agrees on, and a problem for each other field."""
    readable: dict[str, object] = {}
    problems: list[FieldProblem] = []
    for key, value in raw.items():
        if not isinstance(key, str) or key not in fields:
            problems.append(_unknown_key("", key, fields))
            continue
        found = _unreadable(key, value, depth=1)
        problems.extend(found)
        if not found:
            readable[key] = value
        elif key in _NESTED and isinstance(value, Mapping) and len(cast("Mapping[object, object]", value)) <= MAX_ITEMS:
            readable[key] = _readable_members(key, cast("Mapping[object, object]", value))
    return readable, problems


def _readable_members(field: str, value: Mapping[object, object]) -> dict[str, object]:
    """Without the members at fault, so that the others are checked too."""
    known = _NESTED[field].model_fields
    return {key: member for key, member in value.items() if isinstance(key, str) and key in known and not _unreadable(key, member, depth=2)}


def _unreadable(field: str, value: object, *, depth: int) -> list[FieldProblem]:
    """Lone surrogates, numbers beyond 64 bits, values that are not JSON, and nesting or length without end."""
    if isinstance(value, str):
        return (
            [FieldProblem(field, "invalid-unicode", "has a lone surrogate, so it is not valid Unicode text")]
            if _SURROGATE.search(value)
            else []
        )
    if isinstance(value, int):
        return [] if value.bit_length() < 64 else [FieldProblem(field, "out-of-range", "is a number beyond 64 bits")]
    if value is None or isinstance(value, float):
        return []
    if not isinstance(value, (Mapping, list, tuple)):
        return [FieldProblem(field, "wrong-type", f"must be a JSON value, not {_describe(value)}")]
    if depth > MAX_DEPTH:
        return [FieldProblem(field, "wrong-type", f"is nested deeper than {MAX_DEPTH} levels")]
    if len(cast("Sequence[object]", value)) > MAX_ITEMS:
        return [FieldProblem(field, "out-of-range", f"has more than {MAX_ITEMS} entries")]
    if isinstance(value, Mapping):
        return _unreadable_members(field, cast("Mapping[object, object]", value), depth=depth)
    members = enumerate(cast("Sequence[object]", value))
    return [problem for index, member in members for problem in _unreadable(f"{field}.{index}", member, depth=depth + 1)]


def _unreadable_members(field: str, value: Mapping[object, object], *, depth: int) -> list[FieldProblem]:
    model = _NESTED.get(field)
    known: Iterable[str] = model.model_fields if model else ()
    problems: list[FieldProblem] = []
    for key, member in value.items():
        if not isinstance(key, str) or (model and key not in known):
            problems.append(_unknown_key(f"{field}.", key, known))
        elif _SURROGATE.search(key):
            problems.append(FieldProblem(f"{field}.{_name(key)}", "invalid-unicode", "is a name with a lone surrogate"))
        else:
            problems.extend(_unreadable(f"{field}.{_name(key)}", member, depth=depth + 1))
    return problems


def _unknown_key(prefix: str, key: object, known: Iterable[str]) -> FieldProblem:
    allowed = list(known)
    close = difflib.get_close_matches(key[:CLIP].lower(), allowed, n=1) if isinstance(key, str) else []
    hint = f"did you mean {close[0]}?" if close else f"known are {', '.join(allowed)}"
    return FieldProblem(prefix + _name(key), "unknown-field", f"is no field of a request; {hint}" if allowed else "is no field name")


def _translate(details: ErrorDetails) -> FieldProblem:
    """pydantic's finding in our own words; every kind that the schema can raise is named, and the rest keeps pydantic's sentence."""
    field = ".".join(_name(part) if isinstance(part, str) else str(part) for part in details["loc"])
    kind, context = details["type"], details.get("ctx", {})
    shown = _describe(details["input"])
    if kind == "missing":
        return FieldProblem(field, "missing-field", "is required")
    if kind in _TYPES:
        return FieldProblem(field, "wrong-type", f"must be {_TYPES[kind]}, not {shown}")
    if kind in ("enum", "literal_error"):
        return FieldProblem(field, "not-allowed", f"must be one of {context['expected']}, not {shown}")
    if kind in ("greater_than_equal", "less_than_equal"):
        bound = f"at least {context['ge']}" if "ge" in context else f"at most {context['le']}"
        return FieldProblem(field, "out-of-range", f"must be {bound}, not {shown}")
    if kind in ("string_too_short", "string_too_long", "too_short", "too_long"):
        bound = f"at least {context['min_length']}" if "min_length" in context else f"at most {context['max_length']}"
        return FieldProblem(field, "out-of-range", f"must have {bound} {'characters' if kind.startswith('string') else 'entries'}")
    if kind == "string_pattern_mismatch":
        return FieldProblem(field, "wrong-format", f"must be a date such as 2026-01-31, not {shown}")
    return FieldProblem(field, "invalid-field", details["msg"][:CLIP])


def _bounded(problems: list[FieldProblem]) -> tuple[FieldProblem, ...]:
    if len(problems) <= MAX_PROBLEMS:
        return tuple(problems)
    rest = len(problems) - MAX_PROBLEMS + 1
    return (*problems[: MAX_PROBLEMS - 1], FieldProblem("", "too-many-problems", f"{rest} further problems are not listed"))


# ------------------------------------------------------------------ how hostile values are shown


def _clip(text: str) -> str:
    return repr(text) if len(text) <= CLIP else f"{text[:CLIP]!r}… ({len(text)} characters)"


def _name(key: object) -> str:
    if isinstance(key, str) and len(key) <= CLIP and key.isprintable():
        return key
    return _clip(key) if isinstance(key, str) else _describe(key)


def _describe(value: object) -> str:
    """A value in at most some 100 characters, whatever it is; containers are only named."""
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    if isinstance(value, str):
        return _clip(value)
    if isinstance(value, float) or (isinstance(value, int) and value.bit_length() < 64):
        return repr(value)
    if isinstance(value, int):
        return "a number beyond 64 bits"
    if isinstance(value, Mapping):
        return "an object"
    return "a list" if isinstance(value, (list, tuple)) else f"a value of type {type(value).__name__[:CLIP]}"
