"""When a document is valid, whether it still is, and which one replaces it. Pure: today is an argument."""

from __future__ import annotations

import datetime
import posixpath
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from search_router.adapters.local.knowledge_front import Front


class DocumentStatus(StrEnum):
    """What a document is worth today."""

    CURRENT = "current"
    SUPERSEDED = "superseded"
    HISTORICAL = "historical"
    PENDING = "pending"
    EXPIRED = "expired"


_WORDS: Final = {
    DocumentStatus.SUPERSEDED: "superseded|supersed|replaced|obsoleted",
    DocumentStatus.HISTORICAL: "historical|historic|deprecated|obsolete|retired|archived|rejected|withdrawn|abandoned|outdated|declined",
    DocumentStatus.PENDING: "pending|proposed|draft|planned|upcoming|scheduled|wip|in review|under review",
    DocumentStatus.EXPIRED: "expired|lapsed",
    DocumentStatus.CURRENT: "current|accepted|active|approved|published|final|adopted|implemented|living|in force|stable|done",
}
_WORD: Final = {status: re.compile(rf"\b(?:{words})\b", re.IGNORECASE) for status, words in _WORDS.items()}
_DATE = re.compile(r"(?<!\d)((?:19|2\d)\d{2}|9999)[-/._]?(0[1-9]|1[0-2])[-/._]?(0[1-9]|[12]\d|3[01])(?!\d)")
_REFERENCE = re.compile(r"\[([^\]]*)\]\(([^)\s]+)[^)]*\)")
_BY = re.compile(r"\b(?:superseded|replaced|obsoleted)\b(?:\s+(?:by|with))?\s*:?\s*(.+)", re.IGNORECASE)
_NUMBER = re.compile(r"^(?:adr|rfc|decision|dr|kep|pep)?[\s#_-]*0*(\d{1,5})\b", re.IGNORECASE)

FROM: Final = ("valid_from", "effective", "effective_date", "effective_from", "starts", "start_date", "not_before")
UNTIL: Final = (
    "valid_until",
    "valid_to",
    "expires",
    "expires_on",
    "expiry",
    "expiration",
    "expiry_date",
    "end_date",
    "not_after",
    "sunset",
)
WRITTEN: Final = (
    "content_date",
    "date",
    "updated",
    "last_updated",
    "last_modified",
    "modified",
    "lastmod",
    "last_reviewed",
    "created",
    "published",
)
LIVING: Final = ("living", "living_document", "evergreen")


@dataclass(frozen=True, slots=True)
class Validity:
    """What a document says of its time. Dates are ISO 8601, `said` its own word for its status, references as they are written.

    `dated` tells whether the date is part of its name or title: then it is a note of that day. `component` is what a living document
    is about.
    """

    valid_from: str | None = None
    valid_until: str | None = None
    said: DocumentStatus | None = None
    supersedes: tuple[str, ...] = ()
    superseded_by: tuple[str, ...] = ()
    content_date: str | None = None
    dated: bool = False
    component: str | None = None


def read_validity(front: Front, path: str, title: str) -> Validity:
    """The validity that front matter, conventions and names give."""
    status = " ".join(front.get("status", ())[:1])
    by = [*front.get("superseded_by", ()), *front.get("replaced_by", ())]
    if not by and (found := _BY.search(status)):
        by = [found[1]]
    in_name = date_in(path) or date_in(title)
    component = next((front[key][0] for key in ("component", "components", "living_for") if front.get(key)), None)
    if component is None and (any(_truthy(front.get(key, ())) for key in LIVING) or _is_living(front)):
        component = title
    return Validity(
        valid_from=_first_date(front, FROM),
        valid_until=_first_date(front, UNTIL),
        said=_status_said(status),
        supersedes=tuple(_references([*front.get("supersedes", ()), *front.get("replaces", ())])),
        superseded_by=tuple(_references(by)),
        content_date=_first_date(front, WRITTEN) or in_name,
        dated=in_name is not None,
        component=component.strip().lower() if component else None,
    )


def unreadable_dates(front: Front) -> str | None:
    """A sentence about the first limit of validity that is meant as a date and is none, such as 2026-02-30; it limits nothing."""
    for name in (*FROM, *UNTIL):
        values = front.get(name, ())
        if _first_date(front, (name,)) is None and any(character.isdigit() for value in values for character in value):
            return f"{name}: {values[0][:40]!r} is no date, and limits nothing"
    return None


def status_on(validity: Validity, today: datetime.date, *, is_replaced: bool) -> DocumentStatus:
    """What it is worth today; `is_replaced` says that another document of the project names it as superseded."""
    now = today.isoformat()
    if is_replaced or validity.superseded_by or validity.said is DocumentStatus.SUPERSEDED:
        return DocumentStatus.SUPERSEDED
    if validity.said is DocumentStatus.EXPIRED or validity.said is DocumentStatus.HISTORICAL:
        return validity.said
    if validity.valid_until is not None and validity.valid_until < now:
        return DocumentStatus.EXPIRED
    if validity.said is DocumentStatus.PENDING or (validity.valid_from is not None and validity.valid_from > now):
        return DocumentStatus.PENDING
    return DocumentStatus.CURRENT


def recency(content_date: str | None, today: datetime.date, half_life_days: int) -> float:
    """1 for today, one half after the half-life, 0 for a document without a date; one from the future counts as today's."""
    if content_date is None:
        return 0.0
    age = (today - datetime.date.fromisoformat(content_date)).days
    return 0.5 ** (max(0, age) / half_life_days)


def find_successors(documents: Mapping[str, tuple[str, Validity]]) -> dict[str, str]:
    """Path of each superseded document to the path of what replaces it, where that can be told.

    `documents` maps a path to (title, validity). References are read as paths (relative to the document, or the project), file names,
    names without extension, numbers of records in the same folder, and titles.
    """
    names = _Names(documents)
    successors: dict[str, str] = {}
    for path, (_, validity) in sorted(documents.items()):
        for reference in validity.supersedes:
            old = names.resolve(reference, path)
            if old is not None and old != path:
                successors[old] = path
    for path, (_, validity) in sorted(documents.items()):
        for reference in validity.superseded_by:
            new = names.resolve(reference, path)
            if new is not None and new != path:
                successors[path] = new
                break
    return successors


def last_successor(path: str, successors: Mapping[str, str]) -> str | None:
    """The end of a chain of replacements; None when it replaces itself in the end."""
    seen = {path}
    at = path
    while at in successors:
        at = successors[at]
        if at in seen:
            return None
        seen.add(at)
    return at if at != path else None


class _Names:
    """Documents by everything that they may be called."""

    def __init__(self, documents: Mapping[str, tuple[str, Validity]]) -> None:
        self._paths = documents
        self._called: dict[str, list[str]] = {}
        for path, (title, _) in sorted(documents.items()):
            base = path.rpartition("/")[2].lower()
            for name in dict.fromkeys([base, base.rpartition(".")[0], title.strip().lower()]):
                self._called.setdefault(name, []).append(path)
            if number := _NUMBER.match(base):
                self._called.setdefault(f"#{int(number[1])}", []).append(path)

    def resolve(self, reference: str, path: str) -> str | None:
        folder = path.rpartition("/")[0]
        bare = reference.split("#", 1)[0].strip().strip("`\"'<>. ")
        for candidate in (posixpath.normpath(posixpath.join(folder, bare)), posixpath.normpath(bare).lstrip("/")):
            if candidate in self._paths:
                return candidate
        keys = [bare.rpartition("/")[2].lower(), bare.lower()]
        if number := _NUMBER.match(bare):
            keys.append(f"#{int(number[1])}")
        for key in keys:
            called = self._called.get(key, [])
            beside = [p for p in called if p.rpartition("/")[0] == folder and p != path] or [p for p in called if p != path]
            if len(beside) == 1:
                return beside[0]
        return None


def date_in(text: str) -> str | None:
    """The first calendar date in a text, in ISO 8601."""
    for found in _DATE.finditer(text):
        try:
            return datetime.date(int(found[1]), int(found[2]), int(found[3])).isoformat()
        except ValueError:
            continue
    return None


def _first_date(front: Front, names: Sequence[str]) -> str | None:
    return next((date for name in names for value in front.get(name, ()) if (date := date_in(value))), None)


def _status_said(status: str) -> DocumentStatus | None:
    places = [(found.start(), each) for each, words in _WORD.items() if (found := words.search(status))]
    return min(places)[1] if places else None


def _is_living(front: Front) -> bool:
    said = [*front.get("tags", ()), *front.get("type", ()), *front.get("status", ())]
    return any(value.lower() in ("living", "evergreen", "living-document", "living document") for value in said)


def _truthy(value: tuple[str, ...]) -> bool:
    return bool(value) and value[0].lower() in ("true", "yes", "1", "on")


def _references(values: Sequence[str]) -> list[str]:
    """The things that are named: link targets where there are links, else what stands between commas."""
    found: list[str] = []
    for value in values:
        links = [m[2] for m in _REFERENCE.finditer(value)]
        found += links or [part.strip() for part in re.split(r",|;|\band\b", value) if part.strip()]
    return list(dict.fromkeys(found))
