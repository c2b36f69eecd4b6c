"""Makes hits of records: the right project, the line base, the separator of names. Pure but for looking at files' times."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from search_router.adapters.remote.records import Record, number, whole_number
from search_router.config.remote import AnswerConfig
from search_router.schema import DocumentRecord, Hit, Project

MAX_TEXT = 100_000
"""Characters of one document."""
STALE = "stale-index"
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


# ------------------------------------------------------------------ freshness of an index that is files


def index_time(root: Path, globs: Sequence[str]) -> float | None:
    """Modification time of the newest file that any of the globs finds below a root; None when there is none. Blocks."""
    return max((seen for glob in globs for path in root.glob(glob) if (seen := _modified(path)) is not None), default=None)


def flag_stale(hits: Sequence[Hit], projects: Sequence[Project], times: dict[str, float]) -> Iterator[Hit]:
    """The hits; those in files that are newer than their project's index carry the flag `stale-index`. Blocks for one stat a file."""
    roots = {p.id: p.root for p in projects}
    seen: dict[tuple[str, str], bool] = {}
    for hit in hits:
        indexed = times.get(hit.project)
        if indexed is None or hit.path is None or hit.project not in roots:
            yield hit
            continue
        key = hit.project, hit.path
        if key not in seen:
            changed = _modified(roots[hit.project] / hit.path)
            seen[key] = changed is not None and changed > indexed
        yield _flagged(hit) if seen[key] else hit


def _flagged(hit: Hit) -> Hit:
    return replace(hit, flags=(*hit.flags, STALE))


def _modified(path: Path) -> float | None:
    try:
        return os.stat(path).st_mtime  # noqa: PTH116 - one call, whatever the path is
    except (OSError, ValueError):
        return None
