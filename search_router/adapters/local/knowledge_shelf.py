"""The documents of one project with their postings: a large segment, and small ones for what changed since. Never changed once made,
so that it is read while its successor is built.

Small segments are merged as they become many (log-structured, O'Neil et al., Acta Informatica 1996): an edit costs the words of a few
documents, whatever the project has.
"""

from __future__ import annotations

import datetime
from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np
import numpy.typing as npt

from search_router.adapters.local.code_segment import Postings, Segment, SegmentFile
from search_router.adapters.local.knowledge_document import Document
from search_router.adapters.local.knowledge_time import DocumentStatus, find_successors, status_on

DELTA_DOCUMENTS: Final = 200
"""More documents than this, and more than a quarter of all, to be indexed at once, and everything is built anew."""
GROWTH: Final = 8
"""The newest small segment is built again with what changed unless it has more than so many times as many documents."""
MOST_COUNT: Final = 65_535

Mask = npt.NDArray[np.bool_]


class Shelf:
    """`segments[i]` holds the documents `rows[i]`, in its own order, with their numbers by path in `numbers[i]`, and in `wholes[i]` the
    postings of their whole texts; a document that changed or went is dead in its segment."""

    def __init__(self) -> None:
        self.documents: Mapping[str, Document] = {}
        self.segments: tuple[Segment, ...] = ()
        self.wholes: tuple[Postings, ...] = ()
        self.rows: tuple[tuple[Document, ...], ...] = ()
        self.numbers: tuple[Mapping[str, int], ...] = ()
        self.successors: Mapping[str, str] = {}
        self.generation = -1
        self._at: dict[str, tuple[int, int]] = {}
        self._statuses: tuple[datetime.date, Mapping[str, DocumentStatus]] | None = None
        self._hidden: tuple[datetime.date, tuple[Mask, ...], tuple[Mask, ...]] | None = None

    def successor(self, documents: Mapping[str, Document], generation: int) -> Shelf:
        """The shelf that holds exactly these documents. Blocks; meant for a thread."""
        new = Shelf()
        new.documents, new.generation = dict(documents), generation
        changed = [d for path, d in documents.items() if self.documents.get(path) is not d]
        gone = [path for path in self.documents if path not in documents]
        new.segments, new.wholes = tuple(s.snapshot() for s in self.segments), self.wholes
        new.rows, new.numbers, new._at = self.rows, self.numbers, dict(self._at)
        for path in [*gone, *(d.path for d in changed)]:
            if path in new._at:
                segment, number = new._at.pop(path)
                new.segments[segment].alive[number] = False
        if changed:
            new._take_in(changed)
        new.successors = self._successors_of(new.documents, changed, gone)
        if self._statuses is not None and new.successors is self.successors:
            day, before = self._statuses
            kept = {path: status for path, status in before.items() if path in documents}
            new._statuses = day, kept | _statuses({d.path: d for d in changed}, new.successors, day)
        return new

    def statuses(self, today: datetime.date) -> Mapping[str, DocumentStatus]:
        """What each document is worth today, by path."""
        if self._statuses is None or self._statuses[0] != today:
            self._statuses = today, _statuses(self.documents, self.successors, today)
        return self._statuses[1]

    def hidden(self, today: datetime.date) -> tuple[tuple[Mask, ...], tuple[Mask, ...]]:
        """(expired, pending) documents by segment."""
        if self._hidden is None or self._hidden[0] != today:
            found = {status: [np.zeros(len(rows), np.bool_) for rows in self.rows] for status in _HIDING}
            for path, status in self.statuses(today).items():
                if status in found:
                    segment, number = self._at[path]
                    found[status][segment][number] = True
            expired, pending = (tuple(found[status]) for status in _HIDING)
            self._hidden = today, expired, pending
        return self._hidden[1:]

    def _take_in(self, changed: Sequence[Document]) -> None:
        """Build a segment of these, and of what lives in the newest ones as long as those are small beside it."""
        pool = list(changed)
        kept = len(self.segments)
        while kept > 1 and self.segments[kept - 1].living <= GROWTH * len(pool):
            kept -= 1
            pool += [d for d, alive in zip(self.rows[kept], self.segments[kept].alive, strict=True) if alive]
        if not self.segments or len(pool) > max(DELTA_DOCUMENTS, len(self.documents) // 4):
            kept, pool = 0, list(self.documents.values())
        pool.sort(key=lambda d: d.path)
        segment = Segment([SegmentFile(d.path, d.terms) for d in pool])
        self.segments = (*self.segments[:kept], segment)
        self.wholes = (*self.wholes[:kept], whole_texts(segment))
        self.rows = (*self.rows[:kept], tuple(pool))
        self.numbers = (*self.numbers[:kept], {d.path: number for number, d in enumerate(pool)})
        self._at.update({d.path: (kept, number) for number, d in enumerate(pool)})

    def _successors_of(self, documents: Mapping[str, Document], changed: Sequence[Document], gone: Sequence[str]) -> Mapping[str, str]:
        """What replaces what; the very mapping of before where nothing that decides it has changed."""
        if not gone and all((old := self.documents.get(d.path)) and (old.title, old.validity) == (d.title, d.validity) for d in changed):
            return self.successors
        if not any(d.validity.supersedes or d.validity.superseded_by for d in documents.values()):
            return self.successors if not self.successors else {}
        found = find_successors({path: (d.title, d.validity) for path, d in documents.items()})
        return self.successors if found == self.successors else found


_HIDING: Final = (DocumentStatus.EXPIRED, DocumentStatus.PENDING)


def whole_texts(segment: Segment) -> Postings:
    """Which documents hold a word, how often in all of their chunks: the postings of chunks with those of a document made one."""
    body = segment.body
    owners = segment.owner[body.docs]
    begins = np.ones(len(owners), np.bool_)
    begins[1:] = owners[1:] != owners[:-1]
    begins[body.starts[:-1][body.starts[:-1] < len(owners)]] = True
    first = np.flatnonzero(begins)
    counts = np.add.reduceat(body.counts, first, dtype=np.int64) if len(first) else np.zeros(0, np.int64)
    return Postings(np.searchsorted(first, body.starts).astype(np.int32), owners[first], np.minimum(counts, MOST_COUNT).astype(np.uint16))


def _statuses(documents: Mapping[str, Document], successors: Mapping[str, str], today: datetime.date) -> dict[str, DocumentStatus]:
    return {path: status_on(d.validity, today, is_replaced=path in successors) for path, d in documents.items()}
