"""One question to the documents: which may be seen, what the retrievers find among them, in what order, as hits."""

from __future__ import annotations

import datetime
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, Protocol

import numpy as np

from search_router.adapters.local.knowledge_document import Document
from search_router.adapters.local.knowledge_entities import entity_key, names_entity
from search_router.adapters.local.knowledge_rank import Found, Judged, damp_history, find_yields, fuse_documents, move_before, weigh_time
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
from search_router.config.schema import KnowledgeConfig
from search_router.errors import ExpertError, FailureClass
from search_router.schema import DocumentFacts, DocumentFilters, ExpertCall, ExpertResult, Hit, Project, StageFacts, Yielding

CERTAIN: Final = 0.7
"""A section with so much of the question's information is called an exact match: confidence is similarity, never a boosted score."""
SNIPPETS: Final = 12
"""So many first hits have a snippet: the rest is read from disk when it is shown."""
POOL: Final = 50
"""So many candidates a reranker is given."""


class Reranker(Protocol):
    """Scores how well texts answer a question. Blocks."""

    name: str

    def score(self, question: str, texts: Sequence[str], seconds: float) -> Sequence[float]:
        """One score a text, more is better. Raises ExpertError when it cannot within `seconds`."""
        ...


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
        for at, (segment, rows, numbers) in enumerate(zip(shelf.segments, shelf.rows, shelf.numbers, strict=True)):
            mask = np.ones(len(rows), np.bool_)
            for wanted, masks in ((call.filters.include_expired, expired), (call.filters.include_pending, pending)):
                if not wanted:
                    mask &= ~masks[at]
            hidden += [(project.id, rows[n].path) for n in np.nonzero(~mask)[0]]
            mask &= _admitted(rows, call)
            parts.append(Part(project.id, segment, rows, numbers, mask))
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
    reranker: Reranker | None = None,
    until: float,
    meaning: Retriever,
) -> ExpertResult:
    """Hits, best first. Blocks; pure but for a reranker and the time that stages take. `meaning` is the retriever by vectors."""
    space, query = visible.space, Query(call.sub_query.text, words)
    retrievers: tuple[Retriever, ...] = (SectionWords(), meaning, DocumentWords())
    retrieved = [retriever.retrieve(query, space) for retriever in retrievers]
    stages = [r.stage for r in retrieved]
    found = fuse_documents(space.parts, retrieved, config.weights)
    found = weigh_time(found, today, config.weights, config.half_life_days)
    found = damp_history(found, lambda f: visible.statuses[f.part.project][f.document.path], config.weights)
    found, stage, notes = _rerank(query, found, reranker, until)
    stages.append(stage)
    information = information_of(query, space)
    judged = _judge(found, visible, information)
    pairs = find_yields(judged, visible.successors, asks_for_a_day=asks_for_a_day)
    order = move_before(len(judged), pairs)
    stages.append(StageFacts(stage="succession", active=bool(pairs), reason=f"{len(pairs)} yield", in_=len(judged), out=len(judged), ms=0))
    hits = tuple(_hit(judged[p], visible, information, hash_of, with_snippet=rank < SNIPPETS) for rank, p in enumerate(order[: call.limit]))
    said = {j.found.document.damaged: j.found.document.path for j in judged[: call.limit] if j.found.document.damaged}
    notes += [f"{path}: {damage}" for damage, path in sorted(said.items())]
    if visible.hidden:
        notes.append(
            f"{len(visible.hidden)} document(s) expired or not valid yet are hidden (filters.include_expired, filters.include_pending)"
        )
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


def _rerank(query: Query, found: list[Found], reranker: Reranker | None, until: float) -> tuple[list[Found], StageFacts, list[str]]:
    """The best POOL in the reranker's order; in the order they had where it fails, and then the answer says so."""
    if reranker is None or not found:
        reason = "no reranker is configured" if reranker is None else "nothing to rank"
        return found, StageFacts(stage="rerank", active=False, reason=reason, in_=len(found), out=len(found), ms=0), []
    pool, rest = found[:POOL], found[POOL:]
    texts = [f.document.text_of(f.chunk) if f.chunk is not None else f.document.summary for f in pool]
    started = time.perf_counter()
    try:
        scores = reranker.score(query.text, texts, max(0.0, until - time.monotonic()))
        if len(scores) != len(pool):
            raise ExpertError(FailureClass.PROTOCOL_ERROR, f"{len(scores)} scores for {len(pool)} texts.")
    except ExpertError as error:
        why = f"{reranker.name} failed, the fused order stands: {error.message}"
        ms = round((time.perf_counter() - started) * 1000, 3)
        return found, StageFacts(stage="rerank", active=False, reason=why, in_=len(pool), out=len(pool), ms=ms), [why]
    order = sorted(range(len(pool)), key=lambda n: (-scores[n], n))
    signed = [replace(pool[n], signals=(*pool[n].signals, f"{reranker.name} #{r}: {scores[n]:.4g}")) for r, n in enumerate(order, 1)]
    ms = round((time.perf_counter() - started) * 1000, 3)
    return [*signed, *rest], StageFacts(stage="rerank", active=True, reason=reranker.name, in_=len(pool), out=len(pool), ms=ms), []


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
            snippet=mark_snippet(document.text_of(shown), information) if with_snippet and has_text else "",
            signals=(*found.signals, f"coverage {judged.coverage:.2f}", *(["chunked"] if document.chunked else [])),
        ),
    )
