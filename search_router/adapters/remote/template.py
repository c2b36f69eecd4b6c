"""Fills the placeholders of a remote expert's configuration with what one call asks. Pure.

A string that is one placeholder becomes the value itself, with its type; inside a longer string the value is put in as text. Values are
never parsed again, so that nothing in a question can become syntax.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, cast

from search_router.errors import ExpertError, FailureClass
from search_router.schema import ExpertCall, Project, QueryForm

PLACEHOLDER = re.compile(r"\{([a-z_]+(?:[.:][A-Za-z_][A-Za-z0-9_]*)?)\}")
CALL_NAMES = ("question", "sub_query", "terms", "symbol", "name_path", "regex", "path", "language", "limit", "root", "project", "projects")
PROJECT_NAMES = frozenset({"root", "project"})
OPTIONAL = frozenset({"path", "language"})
"""A key whose value is one of these alone is left out where the request names none."""
_NAME = re.compile(r"[A-Za-z_$][\w$]*(?:(?:\.|::|/|#)[A-Za-z_$][\w$]*)*")
_SEPARATORS = re.compile(r"\.|::|/|#")
_REGEX_SYNTAX = re.compile(r"([\\.^$*+?{}\[\]()|])")


def values_of(call: ExpertCall, project: Project) -> dict[str, Any]:
    """The values of a call's placeholders for one project; those that it has no value for are not there.

    `projects` are the ids and folders of all asked projects, `symbol` is the first term that is a name, `name_path` the same with slashes,
    `regex` all terms as alternatives (or the question's own regular expression).
    """
    asked = call.sub_query
    values: dict[str, Any] = {
        "question": asked.text,
        "sub_query": " ".join(asked.terms) or asked.text,
        "terms": list(asked.terms),
        "limit": call.limit,
        "root": str(project.root),
        "project": project.id,
        "projects": list(dict.fromkeys(name for p in call.projects for name in (p.id, p.root.name))),
    }
    if call.path is not None:
        values["path"] = call.path
    if call.language is not None:
        values["language"] = call.language
    names = asked.terms if asked.form in (QueryForm.SYMBOL, QueryForm.LITERAL) else ()
    symbol = next((term for term in names if _NAME.fullmatch(term)), None)
    if symbol is not None:
        parts = _SEPARATORS.split(symbol)
        values |= {"symbol": ".".join(parts), "name_path": "/".join(parts)}
    if asked.form is QueryForm.REGEX:
        values["regex"] = asked.terms[0]
    elif asked.terms:
        values["regex"] = "|".join(escape_regex(term) for term in asked.terms)
    return values


def escape_regex(text: str) -> str:
    """The text as a pattern that all common engines (RE2, Rust, PCRE) read as itself; only syntax is escaped."""
    return _REGEX_SYNTAX.sub(r"\\\1", text)


def placeholders_in(value: Any) -> frozenset[str]:
    """The names of all placeholders anywhere in a value."""
    if isinstance(value, str):
        return frozenset(PLACEHOLDER.findall(value))
    if isinstance(value, Mapping):
        return frozenset[str]().union(*(placeholders_in(below) for below in cast("Mapping[str, Any]", value).values()))
    if isinstance(value, list | tuple):
        return frozenset[str]().union(*(placeholders_in(below) for below in cast("list[Any]", value)))
    return frozenset()


def fill(value: Any, values: Mapping[str, Any]) -> Any:
    """The value with every placeholder filled in.

    Raises:
        ExpertError: `rejected`, when a placeholder that is needed has no value: this question cannot be put to this expert.
    """
    if isinstance(value, str):
        whole = PLACEHOLDER.fullmatch(value)
        if whole is not None:
            return _value(whole[1], values)
        return PLACEHOLDER.sub(lambda found: as_text(_value(found[1], values)), value)
    if isinstance(value, Mapping):
        table = cast("Mapping[str, Any]", value)
        return {key: fill(below, values) for key, below in table.items() if not _left_out(below, values)}
    if isinstance(value, list | tuple):
        return [fill(below, values) for below in cast("list[Any]", value) if not _left_out(below, values)]
    return value


def as_text(value: Any) -> str:
    """A placeholder's value inside a longer text."""
    return " ".join(map(str, cast("list[Any]", value))) if isinstance(value, list) else str(value)


def _left_out(value: Any, values: Mapping[str, Any]) -> bool:
    whole = PLACEHOLDER.fullmatch(value) if isinstance(value, str) else None
    return whole is not None and whole[1] in OPTIONAL and whole[1] not in values


def _value(name: str, values: Mapping[str, Any]) -> Any:
    if name in values:
        return values[name]
    if name in OPTIONAL:
        return ""
    if name.startswith("env:"):
        raise ExpertError(FailureClass.UNCONFIGURED, f"The environment variable {name[4:]} is not set.", remedy=f"Set {name[4:]}.")
    if name in ("symbol", "name_path"):
        raise ExpertError(FailureClass.REJECTED, "It looks up names, and the question has none.", remedy='Put the name in "quotes".')
    raise ExpertError(FailureClass.REJECTED, f"The question gives no value for {{{name}}}.")
