"""The documents of one project with their postings: a large segment, and a small one for what changed since. Never changed once made,
so that it is read while its successor is built."""

from __future__ import annotations

import datetime
from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np
import numpy.typing as npt

from search_router.adapters.local.code_segment import Segment, SegmentFile
from search_router.adapters.local.knowledge_document import Document
from search_router.adapters.local.knowledge_time import DocumentStatus, find_successors, status_on

DELTA_DOCUMENTS: Final = 200
"""More changed documents than this, and more than a quarter of all, and everything is built anew."""

Mask = npt.NDArray[np.bool_]


class Shelf:
    """`segments[i]` holds the documents `rows[i]`, in its own order, with their numbers by path in `numbers[i]`; a document that changed or
    went is dead in its segment."""

    def __init__(self) -> None:
        self.documents: Mapping[str, Document] = {}
        self.segments: tuple[Segment, ...] = ()
        self.rows: tuple[tuple[Document, ...], ...] = ()
        self.numbers: tuple[Mapping[str, int], ...] = ()
        self.successors: Mapping[str, str] = {}
        self.generation = -1
        self._at: dict[str, tuple[int, int]] = {}
        self._statuses: tuple[datetime.date, Mapping[str, DocumentStatus], tuple[Mask, ...]] | None = None

    def successor(self, documents: Mapping[str, Document], generation: int) -> Shelf:
        """The shelf that holds exactly these documents. Blocks; meant for a thread."""
        new = Shelf()
        new.documents, new.generation = dict(documents), generation
        changed = [d for path, d in documents.items() if self.documents.get(path) is not d]
        gone = [path for path in self.documents if path not in documents]
        if not self.segments or len(changed) > max(DELTA_DOCUMENTS, len(documents) // 4):
            new._build([documents[path] for path in sorted(documents)])
        else:
            new.segments, new.rows, new.numbers = tuple(s.snapshot() for s in self.segments), self.rows, self.numbers
            new._at = dict(self._at)
            for path in [*gone, *(d.path for d in changed)]:
                if path in new._at:
                    segment, number = new._at.pop(path)
                    new.segments[segment].alive[number] = False
            if changed:
                recent = [documents[path] for path, (segment, _) in new._at.items() if segment == 1]
                new._build_delta(sorted([*recent, *changed], key=lambda d: d.path))
        if not changed and not gone:
            new.successors = self.successors
        else:
            new.successors = find_successors({path: (d.title, d.validity) for path, d in documents.items()})
        return new

    def statuses(self, today: datetime.date) -> Mapping[str, DocumentStatus]:
        """What each document is worth today, by path."""
        return self._on(today)[0]

    def hidden(self, today: datetime.date) -> tuple[tuple[Mask, ...], tuple[Mask, ...]]:
        """(expired, pending) documents by segment."""
        masks = self._on(today)[1]
        half = len(masks) // 2
        return masks[:half], masks[half:]

    def _on(self, today: datetime.date) -> tuple[Mapping[str, DocumentStatus], tuple[Mask, ...]]:
        if self._statuses is None or self._statuses[0] != today:
            statuses = {p: status_on(d.validity, today, is_replaced=p in self.successors) for p, d in self.documents.items()}
            masks = [
                np.array([statuses.get(d.path) is status and self.documents.get(d.path) is d for d in rows], np.bool_)
                for status in (DocumentStatus.EXPIRED, DocumentStatus.PENDING)
                for rows in self.rows
            ]
            self._statuses = today, statuses, tuple(masks)
        return self._statuses[1:]

    def _build(self, documents: Sequence[Document]) -> None:
        self.segments, self.rows, self.numbers = (_segment(documents),), (tuple(documents),), (_numbers(documents),)
        self._at = {d.path: (0, number) for number, d in enumerate(documents)}

    def _build_delta(self, documents: Sequence[Document]) -> None:
        self.segments, self.rows = (self.segments[0], _segment(documents)), (self.rows[0], tuple(documents))
        self.numbers = (self.numbers[0], _numbers(documents))
        self._at.update({d.path: (1, number) for number, d in enumerate(documents)})


def _segment(documents: Sequence[Document]) -> Segment:
    return Segment([SegmentFile(d.path, d.terms) for d in documents])


def _numbers(documents: Sequence[Document]) -> Mapping[str, int]:
    return {document.path: number for number, document in enumerate(documents)}
