"""One document as it is kept: what it says of itself, its chunks with their lines, its words, and its text, compressed."""

from __future__ import annotations

import json
import re
import zlib
from array import array
from collections import Counter
from dataclasses import asdict, dataclass, fields
from typing import Any, Final

from search_router.adapters.local.code_chunks import Chunk
from search_router.adapters.local.code_terms import FileTerms, pack_terms, unpack_terms
from search_router.adapters.local.code_words import count_words
from search_router.adapters.local.knowledge_chunks import Piece, cut_pieces
from search_router.adapters.local.knowledge_entities import find_entities
from search_router.adapters.local.knowledge_front import Front, read_front
from search_router.adapters.local.knowledge_sections import Section, html_outline, plain_heading, read_sections
from search_router.adapters.local.knowledge_time import DocumentStatus, Validity, read_validity, unreadable_dates
from search_router.adapters.local.symbol_packing import DamagedPayload, join_payload, split_payload

DOCUMENT_VERSION: Final = "2"
MAX_SUMMARY: Final = 400
MAX_PIECES: Final = 60_000
TITLE_FIELD: Final = 0
FIRST_CHUNK_FIELD: Final = 2
"""Field numbers of FileTerms: what stands in `comments` there is here the title, the summary, the tags and the path."""


@dataclass(frozen=True, slots=True)
class Document:
    """A document. `chunked` is true where headings alone did not make its chunks; `damaged` says what of it could not be read."""

    path: str
    format: str
    title: str
    summary: str
    tags: tuple[str, ...]
    entities: tuple[str, ...]
    type: str | None
    validity: Validity
    headings: tuple[tuple[str | None, tuple[str, ...]], ...]
    chunked: bool
    damaged: str | None
    terms: FileTerms
    texts: bytes

    def text_of(self, number: int) -> str:
        """The text of one chunk."""
        return self.all_texts()[number]

    def all_texts(self) -> list[str]:
        """The text of every chunk, in order."""
        texts: list[str] = json.loads(zlib.decompress(self.texts))
        return texts


def derive_document(path: str, kind: str, text: str) -> Document:
    """Read a document. Pure, and the same for the same bytes at the same path.

    Raises:
        ValueError: it is not of this kind; it says why.
    """
    front = read_front(text, kind) if kind not in ("notebook", "html") else None
    values: Front = front.values if front else {}
    sections = read_sections(text, kind, front.first_line if front else 1)
    title = _title(values.get("title", ()), sections, kind, text, path)
    pieces, cut = cut_pieces(sections)
    pieces = pieces[:MAX_PIECES]
    tags = tuple(dict.fromkeys(t.lower() for key in ("tags", "keywords", "labels", "categories") for t in values.get(key, ())))
    summary = next((values[k][0] for k in ("summary", "description", "abstract") if values.get(k)), "") or _first_words(sections)
    types = values.get("type", values.get("doc_type", values.get("kind", ())))
    return Document(
        path=path,
        format=kind,
        title=title,
        summary=summary[:MAX_SUMMARY],
        tags=tags,
        entities=find_entities(values, (p.text for p in pieces)),
        type=types[0].lower() if types else None,
        validity=read_validity(values, path, title),
        headings=tuple((p.heading, p.trail) for p in pieces),
        chunked=cut or not any(s.heading for s in sections),
        damaged=(front.damaged if front else None) or unreadable_dates(values),
        terms=_terms(path, title, summary, tags, pieces, text),
        texts=zlib.compress(json.dumps([p.text for p in pieces]).encode(), 1),
    )


def pack_document(document: Document) -> bytes:
    """Bytes for the derived store."""
    facts: dict[str, Any] = {field.name: getattr(document, field.name) for field in fields(document)}
    for key in ("terms", "texts"):
        del facts[key]
    facts["validity"] = asdict(document.validity)
    facts["checksum"] = zlib.crc32(document.texts)
    head = json.dumps(facts, separators=(",", ":")).encode()
    return join_payload(zlib.compress(head, 1), pack_terms(document.terms), document.texts)


def unpack_document(payload: bytes) -> Document:
    """What was packed. Raises DamagedPayload."""
    try:
        head, terms, texts = split_payload(payload)
        facts: dict[str, Any] = json.loads(zlib.decompress(head))
        if facts.pop("checksum") != zlib.crc32(texts):
            raise DamagedPayload("a packed document is damaged: its text is not what was written")
        said: dict[str, Any] = facts.pop("validity")
        status = said.pop("said")
        old, new = tuple(said.pop("supersedes")), tuple(said.pop("superseded_by"))
        validity = Validity(**said, supersedes=old, superseded_by=new, said=DocumentStatus(status) if status else None)
        headings = tuple((heading, tuple(trail)) for heading, trail in facts.pop("headings"))
        tags, entities = tuple(facts.pop("tags")), tuple(facts.pop("entities"))
        return Document(**facts, tags=tags, entities=entities, validity=validity, headings=headings, terms=unpack_terms(terms), texts=texts)
    except (zlib.error, ValueError, TypeError, KeyError) as error:
        raise DamagedPayload(f"a packed document is damaged: {error}") from error


def _title(said: tuple[str, ...], sections: list[Section], kind: str, text: str, path: str) -> str:
    if said:
        return plain_heading(said[0])
    if kind == "html" and (name := " ".join(html_outline(text).title.split())):
        return name[:200]
    first = next((s.heading for s in sections if s.heading), None)
    return first or re.sub(r"[-_]+", " ", path.rpartition("/")[2].rpartition(".")[0] or path)


def _first_words(sections: list[Section]) -> str:
    """The first paragraph that is prose."""
    for section in sections:
        for paragraph in re.split(r"\n\s*\n", section.text):
            words = " ".join(paragraph.split())
            if len(words) > 40 and words[:1] not in "|<![{:-*":
                return words[:MAX_SUMMARY]
    return ""


def _terms(path: str, title: str, summary: str, tags: tuple[str, ...], pieces: list[Piece], text: str) -> FileTerms:
    about = count_words(" ".join([title, title, summary, *tags, *tags, path.rpartition(".")[0]]))
    counted: list[Counter[str]] = [about, Counter(), *(_piece_words(title, piece) for piece in pieces)]
    number: dict[str, int] = {}
    numbers, places, counts = array("H"), array("I"), array("H")
    for field, words in enumerate(counted):
        for word, count in words.items():
            numbers.append(field)
            places.append(number.setdefault(word, len(number)))
            counts.append(min(count, 65_535))
    chunks = tuple(Chunk(p.start, p.end) for p in pieces)
    return FileTerms(text.count("\n") + 1, chunks, tuple(number), numbers, places, counts)


def _piece_words(title: str, piece: Piece) -> Counter[str]:
    """A section is about its heading, and about what it stands under: "Retries" below "Payments" answers for payment retries."""
    return count_words(" ".join([title, *piece.trail, piece.heading or "", piece.heading or ""])) + count_words(piece.text)
