"""Makes hits of records: the right project, the line base, the separator of names. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from search_router.adapters.remote.records import Record, number, whole_number
from search_router.config.remote import AnswerConfig
from search_router.schema import DocumentRecord, Hit, Project

MAX_TEXT = 100_000
"""Characters of one document."""
_SHA256 = re.compile(r"[0-9a-f]{64}")
DEFINITION_KINDS = frozenset({"definition", "def"})


def record_hits(config: AnswerConfig, records: Sequence[Record], project: Project, projects: Sequence[Project]) -> tuple[list[Hit], int]:
    """(hits in the records' order, how many records had no path or belong to a project that was not asked about)."""
    hits: list[Hit] = []
    lost = 0
    for record in records:
        path = _text(record.get("path"))
        owner = _owner(record, project, projects)
        if (document := _document(record)) is not None and owner is not None and (config.form == "document" or path is None):
            hits.append(Hit(owner.id, document=document, native_score=number(record.get("score"))))
            continue
        if path is None or owner is None:
            lost += 1
            continue
        start, end = whole_number(record.get("start_line")), whole_number(record.get("end_line"))
        kind = _text(record.get("kind"))
        hits.append(
            Hit(
                project=owner.id,
                path=path,
                start_line=start,
                end_line=end,
                line_base=config.line_base,
                end_exclusive=config.end_exclusive and end is not None,
                symbol=_symbol(config, record.get("symbol")),
                kind=kind.lower() if kind else None,
                is_definition=config.is_definition or _text(record.get("role")) in DEFINITION_KINDS,
                is_exact=config.is_exact,
                native_score=number(record.get("score")),
                content_hash=_hash(record.get("content_hash")),
            )
        )
    return hits, lost


def _owner(record: Record, project: Project, projects: Sequence[Project]) -> Project | None:
    """The project that a record names, such as `github.com/org/name`; the asked one where it names none; None for a stranger."""
    named = _text(record.get("project"))
    if named is None:
        return project
    last = named.rstrip("/").removesuffix(".git").rpartition("/")[2]
    return next((p for p in projects if named in (p.id, str(p.root))), None) or next(
        (p for p in projects if last in (p.id, p.root.name)), None
    )


def _document(record: Record) -> DocumentRecord | None:
    text = _text(record.get("text"))
    return DocumentRecord(text[:MAX_TEXT], _text(record.get("title")), _text(record.get("url"))) if text is not None else None


def _text(value: Any) -> str | None:
    return value.strip() or None if isinstance(value, str) else None


def _hash(value: Any) -> str | None:
    """A SHA-256 in the form that the router compares; None for anything else, which would make every hit stale."""
    text = (_text(value) or "").removeprefix("sha256:").lower()
    return text if _SHA256.fullmatch(text) else None


def _symbol(config: AnswerConfig, value: Any) -> str | None:
    name = _text(value)
    return name.replace(config.separator, ".") if name is not None and config.separator else name
