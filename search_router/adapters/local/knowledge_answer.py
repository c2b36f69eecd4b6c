"""One question to the documents: which may be seen, what the retrievers find among them, in what order, as hits."""

from __future__ import annotations

import datetime
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from search_router.adapters.local.knowledge_document import Document
from search_router.adapters.local.knowledge_entities import entity_key, names_entity
from search_router.adapters.local.knowledge_rank import Found, Judged, find_yields, fuse_documents, move_before, time_factor
from search_router.adapters.local.knowledge_retrieve import (
    DocumentWords,
    Part,
    Query,
    Retriever,
    SectionWords,
    Space,
    coverage,
    information_of,
)
from search_router.adapters.local.knowledge_shelf import Mask, Shelf
from search_router.adapters.local.knowledge_snippet import mark_snippet
from search_router.adapters.local.knowledge_time import DocumentStatus
from search_router.config.experts import KnowledgeConfig
from search_router.schema import DocumentFacts, DocumentFilters, ExpertCall, ExpertResult, Hit, Project, StageFacts, Yielding

CERTAIN: Final = 0.7
"""A section with so much of the question's information is called an exact match: confidence is similarity, never a boosted score."""
SNIPPETS: Final = 12
"""So many first hits have a snippet, and those whose lines say too little: the rest is read from disk when it is shown."""
RERANKED_LATER: Final = "off here: the router's reranker orders the fused list, these documents among it, where budget.rerank asks for it"


@dataclass(frozen=True, slots=True)
class Visible:
    """What a call may find: the space, statuses and successors by project, and the documents that are hidden for their time."""

    space: Space
    projects: Mapping[str, Project]
    statuses: Mapping[str, Mapping[str, DocumentStatus]]
    successors: Mapping[str, Mapping[str, str]]
    hidden: tuple[tuple[str, str], ...]


def find_space(shelves: Sequence[tuple[Project, Shelf]], call: ExpertCall, today: datetime.date) -> Visible:
    """Everything of these projects that scope and filters let in. Whatever is not among `shelves` cannot be found."""
    parts: list[Part] = []
    hidden: list[tuple[str, str]] = []
    for project, shelf in shelves:
        expired, pending = shelf.hidden(today)
        for at, (segment, whole, rows, numbers) in enumerate(zip(shelf.segments, shelf.wholes, shelf.rows, shelf.numbers, strict=True)):
            mask = np.ones(len(rows), np.bool_)
            for wanted, masks in ((call.filters.include_expired, expired), (call.filters.include_pending, pending)):
                if not wanted:
                    mask &= ~masks[at]
            hidden += [(project.id, rows[n].path) for n in np.nonzero(~mask)[0]]
            mask &= _admitted(rows, call)
            parts.append(Part(project.id, segment, whole, rows, numbers, mask))
    return Visible(
        Space(tuple(parts)),
        {project.id: project for project, _ in shelves},
        {project.id: shelf.statuses(today) for project, shelf in shelves},
        {project.id: shelf.successors for project, shelf in shelves},
        tuple(hidden),
    )


def _admitted(rows: Sequence[Document], call: ExpertCall) -> Mask:
    prefix, filters = (call.path or "").strip("/"), call.filters
    if not prefix and not _any(filters):
        return np.ones(len(rows), np.bool_)
    folder = (filters.folder or "").strip("/")
    tags = {tag.lower() for tag in filters.tags or ()}
    kind = filters.type.lower() if filters.type else None
    entities = [entity_key(name) for name in filters.entities or ()]

    def admits(d: Document) -> bool:
        date = d.validity.content_date
        return (
            _below(d.path, prefix)
            and _below(d.path, folder)
            and tags.issubset(d.tags)
            and (kind is None or kind in (d.type, d.format))
            and all(names_entity(d.entities, wanted) for wanted in entities)
            and (filters.date_from is None or (date is not None and date >= filters.date_from))
            and (filters.date_to is None or (date is not None and date <= filters.date_to))
        )

    return np.array([admits(d) for d in rows], np.bool_)


def _any(filters: DocumentFilters) -> bool:
    return bool(filters.tags or filters.folder or filters.type or filters.entities or filters.date_from or filters.date_to)


def _below(path: str, prefix: str) -> bool:
    return not prefix or path == prefix or path.startswith(f"{prefix}/")


def answer_question(
    call: ExpertCall,
    words: Mapping[str, float],
    visible: Visible,
    config: KnowledgeConfig,
    *,
    today: datetime.date,
    asks_for_a_day: bool,
    hash_of: Callable[[Project, str], str | None],
    meaning: Retriever,
) -> ExpertResult:
    """Hits, best first. Blocks; pure but for the time that stages take. `meaning` is the retriever by vectors."""
    space = visible.space
    query = Query(call.sub_query.text, words, information_of(words, space))
    retrievers: tuple[Retriever, ...] = (SectionWords(), meaning, DocumentWords())
    retrieved = [retriever.retrieve(query, space) for retriever in retrievers]
    stages = [r.stage for r in retrieved]

    def factor_of(part: Part, document: Document) -> float:
        status = visible.statuses[part.project][document.path]
        return time_factor(document.validity, status, today, config.weights, config.half_life_days)

    found = fuse_documents(space.parts, retrieved, config.weights, factor_of)
    stages.append(StageFacts(stage="rerank", active=False, reason=RERANKED_LATER, in_=len(found), out=len(found), ms=0))
    judged = _judge(found, visible, query.information)
    pairs = find_yields(judged, visible.successors, asks_for_a_day=asks_for_a_day)
    order = move_before(len(judged), pairs)
    stages.append(StageFacts(stage="succession", active=bool(pairs), reason=f"{len(pairs)} yield", in_=len(judged), out=len(judged), ms=0))
    snippets = 0 if call.is_quiet else SNIPPETS  # hardly any will be shown
    hits = tuple(
        _hit(judged[p], visible, query.information, hash_of, with_snippet=rank < snippets) for rank, p in enumerate(order[: call.limit])
    )
    said = {j.found.document.damaged: j.found.document.path for j in judged[: call.limit] if j.found.document.damaged}
    notes = [f"{path}: {damage}" for damage, path in sorted(said.items())]
    if visible.hidden:
        notes.append(
            f"{len(visible.hidden)} document(s) expired or not valid yet are hidden (filters.include_expired, filters.include_pending)"
        )
    if (indexed := sum(part.segment.living for part in space.parts)) and not space.document_count:
        notes.append(f"the path, the filters and today's date let in none of {indexed} document(s)")
    yields = tuple(
        Yielding(judged[later].found.part.project, judged[later].found.document.path, judged[earlier].found.document.path)
        for later, earlier in pairs
    )
    return ExpertResult(hits=hits, notes=tuple(notes), stages=tuple(stages), yields=yields)


def _judge(found: Sequence[Found], visible: Visible, information: Mapping[str, float]) -> list[Judged]:
    covered: dict[int, float] = {}
    for part in visible.space.parts:
        mine = [at for at, f in enumerate(found) if f.part is part]
        if mine:
            covered.update(zip(mine, coverage(information, part, [(found[at].number, found[at].chunk) for at in mine]), strict=True))
    return [Judged(f, visible.statuses[f.part.project][f.document.path], covered[at]) for at, f in enumerate(found)]


def _hit(
    judged: Judged,
    visible: Visible,
    information: Mapping[str, float],
    hash_of: Callable[[Project, str], str | None],
    *,
    with_snippet: bool,
) -> Hit:
    found, document = judged.found, judged.found.document
    shown = found.chunk if found.chunk is not None else 0
    has_text = bool(document.terms.chunks)
    chunk = document.terms.chunks[shown] if has_text and document.format != "pdf" else None
    heading, trail = document.headings[shown] if has_text else (None, ())
    in_a_wall = chunk is None or (document.chunked and chunk.start == chunk.end)  # its line may hold many chunks, a page has no lines
    validity = document.validity
    return Hit(
        project=found.part.project,
        path=document.path,
        start_line=chunk.start if chunk else None,
        end_line=chunk.end if chunk else None,
        kind="document",
        is_exact=judged.coverage >= CERTAIN,
        native_score=round(found.score, 6),
        content_hash=hash_of(visible.projects[found.part.project], document.path) or None,
        flags=(judged.status.value,) if judged.status is not DocumentStatus.CURRENT else (),
        about=DocumentFacts(
            title=document.title,
            heading=" › ".join([*(t for t in trail if t != document.title), heading]) if heading else None,
            status=judged.status.value,
            valid_from=validity.valid_from,
            valid_until=validity.valid_until,
            snippet=mark_snippet(document.text_of(shown), information) if has_text and (with_snippet or in_a_wall) else "",
            signals=(*map(str, found.ranks), f"coverage {judged.coverage:.2f}", *(["chunked"] if document.chunked else [])),
        ),
    )
