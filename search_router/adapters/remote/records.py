"""Reads items out of an answer, as the expert's configuration says: JSON at dotted paths, or a regular expression over text. Pure.

An item is a record: field name to string, number or nothing. `record_hits` makes hits of records.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache
from typing import Any, cast

from pydantic_core import from_json

from search_router.config.remote import AnswerConfig

Record = Mapping[str, Any]
MAX_RECORDS = 1000
MAX_LINE = 2000
"""Characters of a line that patterns look at: a search may take the square of a line's length, and nothing can stop it on its way."""
_FENCE = re.compile(r"\s*\n(?P<fence>`{3,}|~{3,})[^\n]*\n")
_HEADING = re.compile(r"^#{1,6} +(.+)$", re.MULTILINE)


class Unreadable(ValueError):
    """The text does not have the form that the configuration names."""


_LONG_LINE = re.compile(rf"([^\n]{{{MAX_LINE}}})[^\n]+")


def short_lines(config: AnswerConfig, text: str) -> tuple[str, int]:
    """The text as patterns may look at it, and how many of its lines were cut."""
    if config.form != "pattern" or len(text) <= MAX_LINE:
        return text, 0
    return _LONG_LINE.subn(r"\1", text)


@lru_cache(maxsize=512)
def compiled(pattern: str) -> re.Pattern[str]:
    """A pattern of the configuration; `^` and `$` are the ends of lines."""
    return re.compile(pattern, re.MULTILINE)


def read_records(config: AnswerConfig, text: str, structured: Any = None, *, cut: bool = False) -> list[Record]:
    """The items of an answer, in its order, at most MAX_RECORDS. `cut` says that the text ends before its end.

    Raises:
        Unreadable: the text is no JSON, the dotted path is not there, or a pattern matches nothing.
    """
    match config.form:
        case "json":
            document = structured if config.content == "structured" else _decode(text, cut)
            found = list(_json_records(config, document))
        case "pattern":
            found = list(_headed_records(config, text) if config.header else _pattern_records(config, text))
            if not found:
                raise Unreadable("nothing in it looks like an item")
        case "document":
            parts = compiled(config.split).split(text) if config.split else [text]
            found = [_document(part) for part in parts if part.strip()]
    least = config.min_score
    kept = (found[:-1] if cut and len(found) > 1 else found)[:MAX_RECORDS]  # the last one of a cut text may be half an item
    if least is None:
        return kept
    return [record for record in kept if (score := number(record.get("score"))) is None or score >= least]


def _decode(text: str, cut: bool) -> Any:
    try:
        return from_json(text, allow_inf_nan=False, allow_partial=cut)
    except ValueError as error:
        raise Unreadable(f"it is not JSON ({error})") from error


# ------------------------------------------------------------------ JSON


def _json_records(config: AnswerConfig, document: Any) -> Iterator[Record]:
    readers = {field: field_reader(spec) for field, spec in config.fields.items()}
    steps = config.items.split(".") if config.items else []
    for item, keys in _walk(document, steps, ()):
        record = {field: read(item, keys) for field, read in readers.items()}
        if any(value is not None for value in record.values()):
            yield record


def _walk(value: Any, steps: list[str], keys: tuple[str, ...]) -> Iterator[tuple[Any, tuple[str, ...]]]:
    """Every item at the end of a dotted path; the last step of a path to an array goes through its members."""
    if not steps:
        if isinstance(value, list):
            yield from ((member, keys) for member in cast("list[Any]", value))
        elif value is not None:
            yield value, keys
        return
    step, rest = steps[0], steps[1:]
    if step == "*":
        if isinstance(value, dict):
            for key, below in cast("dict[str, Any]", value).items():
                yield from _walk(below, rest, (*keys, key))
        elif isinstance(value, list):
            for below in cast("list[Any]", value):
                yield from _walk(below, rest, keys)
        else:
            raise Unreadable(f"`*` of the path stands for {type(value).__name__}")
        return
    if not isinstance(value, dict) or step not in value:
        raise Unreadable(f"it has no `{step}`")
    yield from _walk(cast("dict[str, Any]", value)[step], rest, keys)


def field_reader(spec: str) -> Callable[[Any, tuple[str, ...]], Any]:
    """What reads one field of an item: `a.b.0`, `@1` for a key on the way, and ` ~ REGEX` behind either."""
    path, tilde, pattern = spec.partition("~")
    path = path.strip()
    regex = compiled(pattern.strip()) if tilde else None

    def read(item: Any, keys: tuple[str, ...]) -> Any:
        value: Any = item
        if path.startswith("@"):
            at = int(path[1:]) - 1
            value = keys[at] if at < len(keys) else None
        else:
            for step in path.split(".") if path else ():
                value = _below(value, step)
        if regex is None:
            return value if isinstance(value, str | int | float) and not isinstance(value, bool) else None
        found = regex.search(value) if isinstance(value, str) else None
        return found[1] if found is not None else None

    return read


def _below(value: Any, step: str) -> Any:
    if isinstance(value, dict):
        return cast("dict[str, Any]", value).get(step)
    if isinstance(value, list) and step.isdigit():
        array = cast("list[Any]", value)
        return array[int(step)] if int(step) < len(array) else None
    return None


# ------------------------------------------------------------------ text


def _pattern_records(config: AnswerConfig, text: str) -> Iterator[Record]:
    pattern = compiled(config.pattern)
    at, count = 0, 0
    while (found := pattern.search(text, at)) is not None:
        at = max(found.end(), at + 1)
        record = found.groupdict()
        ordinal = record.pop("ordinal", None)
        if ordinal is not None and int(ordinal) != count + 1:
            continue
        count += 1
        if config.fenced:
            at = _behind_fence(text, found.end())
        yield {_FIELDS.get(name, name): value for name, value in record.items()}


def _behind_fence(text: str, at: int) -> int:
    """Where the code block that follows ends: its fence is closed by one at least as long (CommonMark 0.31, 4.5)."""
    opened = _FENCE.match(text, at)
    if opened is None:
        return at
    fence = opened["fence"]
    closed = re.compile(rf"^{re.escape(fence[0])}{{{len(fence)},}}\s*$", re.MULTILINE).search(text, opened.end())
    return closed.end() if closed is not None else len(text)


def _headed_records(config: AnswerConfig, text: str) -> Iterator[Record]:
    header, pattern = compiled(config.header), compiled(config.pattern)
    above: dict[str, Any] | None = None
    for line in text.split("\n"):
        line = line.removesuffix("\r")
        if (found := header.match(line)) is not None:
            above = found.groupdict()
        elif above is not None and (found := pattern.match(line)) is not None:
            yield {_FIELDS.get(name, name): value for name, value in (above | found.groupdict()).items()}


def _document(text: str) -> Record:
    title = _HEADING.search(text)
    return {"title": title[1].strip() if title else None, "text": text.strip()}


_FIELDS = {"start": "start_line", "end": "end_line"}


# ------------------------------------------------------------------ values


def number(value: Any) -> float | None:
    """A finite number of a field, however it is written."""
    try:
        found = float(value) if value is not None and not isinstance(value, bool) else None
    except (TypeError, ValueError, OverflowError):
        return None
    return found if found is not None and math.isfinite(found) else None


def whole_number(value: Any) -> int | None:
    """A line number of a field; None for anything that is none."""
    found = number(value)
    return int(found) if found is not None and found == int(found) and 0 <= found < 2**31 else None
