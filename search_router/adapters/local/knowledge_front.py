"""What a document says of itself before its text: YAML or TOML front matter, attributes of AsciiDoc, Org and rst, lines such as
`Status: accepted`. Values become lists of short strings; anything else that they hold is left out.

YAML is read without its types, so that a date that is none, or a number of thousands of digits, costs nothing but itself.
"""

from __future__ import annotations

import datetime
import re
import tomllib
from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple

MAX_FRONT: Final = 16 * 1024
MAX_VALUES: Final = 64
MAX_VALUE: Final = 400
HEAD_LINES: Final = 60
"""Convention lines are looked for in so many first lines of the body."""

Front = Mapping[str, tuple[str, ...]]
_ATTRIBUTE: Final = {
    "asciidoc": re.compile(r"^:([A-Za-z][\w-]*):[ \t]+(\S.*)$"),
    "rst": re.compile(r"^:([A-Za-z][\w -]*):[ \t]+(\S.*)$"),
    "org": re.compile(r"^#\+([A-Za-z][\w-]*):[ \t]+(\S.*)$"),
}
CONVENTIONS: Final = (
    "status|date|created|updated|last updated|last modified|last reviewed|effective|effective date|effective from|valid from|valid until"
    "|valid to|expires|expiry|expiration|expires on|supersedes|replaces|superseded by|replaced by|component|entities|tags|owner|deciders"
    "|type"
)
_LINE = re.compile(
    rf"^[ \t]*(?:[-*][ \t]+)?(?:\*\*|__)?({CONVENTIONS})(?:\*\*|__)?[ \t]*:(?:\*\*|__)?[ \t]*(\S.*?)[ \t]*(?:\\|<br ?/?>)?$", re.IGNORECASE
)
_HEADING = re.compile(r"^#{1,4}[ \t]+(status|date|supersedes|superseded by)[ \t]*$", re.IGNORECASE)


class FrontMatter(NamedTuple):
    """`values` by lower-case name with `_` for blanks and dashes; the body begins at `first_line`; `damaged` says what was unreadable."""

    values: Front
    first_line: int
    damaged: str | None = None


def read_front(text: str, kind: str) -> FrontMatter:
    """All that a document says of itself. A front matter that cannot be read is said, and its text stays out of the body."""
    found: dict[str, tuple[str, ...]] = {}
    first_line, damaged = 1, None
    mark = text[:3]
    if mark in ("---", "+++") and (end := re.compile(rf"^{re.escape(mark)}[ \t]*$", re.MULTILINE).search(text, 4, MAX_FRONT)):
        block = text[text.find("\n") + 1 : end.start()]
        values, damaged = _parse(block, mark)
        if values is not None or damaged:
            found.update(_flatten(values or {}))
            first_line = text.count("\n", 0, end.end()) + 2
    lines = text.split("\n")
    first_line = min(first_line, len(lines))
    for name, value in _conventions(lines[first_line - 1 : first_line - 1 + HEAD_LINES], kind):
        found.setdefault(
            _key(name), _listed(value) if _key(name) in ("tags", "entities", "supersedes", "replaces") else (value[:MAX_VALUE],)
        )
    return FrontMatter(found, first_line, damaged)


def _parse(block: str, mark: str) -> tuple[Mapping[object, object] | None, str | None]:
    import yaml  # only who has such a front matter pays for it

    try:
        value: object = yaml.load(block, yaml.BaseLoader) if mark == "---" else tomllib.loads(block)  # noqa: S506 - it makes strings only
    except (yaml.YAMLError, tomllib.TOMLDecodeError, ValueError, RecursionError) as error:
        return None, f"front matter: {str(error).splitlines()[0][:120]}"
    if isinstance(value, dict):
        return {**value}, None
    return None, None


def _flatten(values: Mapping[object, object]) -> dict[str, tuple[str, ...]]:
    found: dict[str, tuple[str, ...]] = {}
    for name, value in list(values.items())[:MAX_VALUES]:
        if isinstance(value, dict):  # [extra] in TOML, params: in YAML
            inner: dict[object, object] = {**value}
            for key, each in list(inner.items())[:MAX_VALUES]:
                found.setdefault(_key(str(key)), tuple(_strings(each)))
        else:
            found[_key(str(name))] = tuple(_strings(value))
    return {name: value for name, value in found.items() if value}


_NOTHING: Final = frozenset({"", "~", "null", "none"})
_SHORT_DATE = re.compile(r"(\d{4})-(\d{1,2})-(\d{1,2})(?!\d)")


def _strings(value: object) -> Iterable[str]:
    if isinstance(value, list):
        several: list[object] = [*value]
        found = [_string(each) for each in several[:MAX_VALUES] if not isinstance(each, (dict, list))]
    else:
        found = [] if isinstance(value, dict) else [_string(value)]
    return [each for each in found if each.lower() not in _NOTHING]


def _string(value: object) -> str:
    if isinstance(value, datetime.date):
        return value.isoformat()[:10]
    text = str(value).strip()[:MAX_VALUE]
    if found := _SHORT_DATE.match(text):  # 2026-3-1 is a date of YAML
        return f"{found[1]}-{int(found[2]):02}-{int(found[3]):02}{text[found.end() :]}"
    return text


def _key(name: str) -> str:
    return re.sub(r"[ \t-]+", "_", name.strip().lower())


def _listed(value: str) -> tuple[str, ...]:
    return tuple(part.strip()[:MAX_VALUE] for part in re.split(r"[,;]", value.strip("[]")) if part.strip())[:MAX_VALUES]


def _conventions(lines: list[str], kind: str) -> Iterable[tuple[str, str]]:
    """(name, value) of attribute lines of the format, of `Name: value` lines, and of the paragraph under a `## Status` heading."""
    attribute = _ATTRIBUTE.get(kind)
    for number, line in enumerate(lines):
        if attribute is not None and (found := attribute.match(line)):
            yield found[1], found[2]
        elif found := _LINE.match(line):
            yield found[1], found[2].strip("*_ ")
        elif found := _HEADING.match(line):
            below = next((text.strip() for text in lines[number + 1 : number + 4] if text.strip()), "")
            if below and not below.startswith("#"):
                yield found[1], below
