"""What a reader outside of the router is given of a fused item: a bounded piece of text. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from search_router.router.fuse import Fused
from search_router.router.identity import FileKey
from search_router.schema import DocumentFacts, FileFacts

LEAST_LINES = 10
"""A place of fewer lines is read with those that follow it: one matching line says little."""


def excerpt_of(fused: Fused, facts: Mapping[FileKey, FileFacts], characters: int) -> str:
    """Its path and name, then its text; of a document the path, title and headings, then the section that was found in it, as far as it
    goes; of a commit the subject and paths; at most so many characters.

    Of a line that is longer than that, such as a wall of text without an end, the snippet comes first: it is what was found in it.
    """
    candidate = fused.candidate
    hits = [vote.hit for vote in candidate.votes]
    document = next((hit for hit in hits if hit.about is not None), None)
    file = facts.get((candidate.project, candidate.path)) if candidate.path is not None else None
    if file is not None and candidate.path is not None:
        if document is not None and document.about is not None and document.start_line is not None:
            lines = file.lines(document.start_line, min(file.line_count, document.end_line or document.start_line))
            told = [_plain(document.about.snippet)] if max(map(len, lines), default=0) > characters else []
            return _join([candidate.path, _headings(document.about), *told, *lines], characters)
        name = candidate.definition.qualified if candidate.definition is not None else ""
        head = f"{candidate.path} {name}".rstrip()
        start = candidate.start_line or 1
        lines = file.lines(start, min(file.line_count, max(candidate.end_line or 1, start + LEAST_LINES - 1)))
        return _join([head, *lines], characters)
    for hit in hits:
        if hit.commit is not None:
            return _join([hit.commit.subject, *hit.commit.paths], characters)
        if hit.document is not None:
            return _join([hit.document.title or "", hit.document.text], characters)
        if hit.about is not None:
            return _join([_headings(hit.about), _plain(hit.about.snippet)], characters)
    return _join([candidate.path or "", hits[0].symbol or ""], characters)


def _headings(about: DocumentFacts) -> str:
    return " › ".join(dict.fromkeys(part for part in (about.title, about.heading) if part))


def _plain(snippet: str) -> str:
    """A snippet without the marks of what matched, which are not the document's."""
    return snippet.replace("«", "").replace("»", "")


def _join(parts: Sequence[str], characters: int) -> str:
    kept: list[str] = []
    room = characters
    for part in parts:
        if room <= 0:
            break
        kept.append(part[:room])
        room -= len(part) + 1
    return "\n".join(kept)
