"""The retriever by meaning: sections whose vectors are near the question's, whatever words they use."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from search_router.adapters.local.knowledge_retrieve import DEPTH, Place, Query, Retrieved, Space
from search_router.adapters.local.knowledge_vectors import Meant
from search_router.schema import StageFacts

OWN: Final = 0.35
"""Documents of which no word is asked are found from this cosine on: unrelated sections of one project have less."""
_FIRST = 256
_MORE = 8


@dataclass(frozen=True, slots=True)
class SectionMeaning:
    """Cosine of chunk and question; a document stands at its nearest chunk. `reasons` say what is missing, where something is."""

    meant: Mapping[str, Meant]
    reasons: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        return "semantic"

    def retrieve(self, query: Query, space: Space) -> Retrieved:
        started = time.perf_counter()
        places: list[tuple[float, str, str, Place]] = []
        for project, meant in self.meant.items():
            places += _near(space, project, meant)
        places.sort(key=lambda p: p[:3])
        kept = tuple((place, -minus) for minus, _, _, place in places[:DEPTH] if minus < 0)
        ms = round((time.perf_counter() - started) * 1000, 3)
        made = ", ".join(sorted({meant.vectors.label for meant in self.meant.values()}))
        reason = "; ".join([*([made] if made else []), *self.reasons])
        stage = StageFacts(stage=self.name, active=bool(self.meant), reason=reason, in_=space.chunk_count, out=len(kept), ms=ms)
        return Retrieved(kept, stage, OWN)


def _near(space: Space, project: str, meant: Meant) -> list[tuple[float, str, str, Place]]:
    """The nearest DEPTH documents of one project that may be found, and whose vectors are of the text that is indexed."""
    parts = [(at, part) for at, part in enumerate(space.parts) if part.project == project]
    most = _FIRST
    while True:
        nearest = meant.vectors.matrix.nearest_files(meant.query, most)
        found: list[tuple[float, str, str, Place]] = []
        for path, (score, chunk) in nearest:
            document = meant.vectors.documents.get(path)
            for at, part in parts:
                number = part.numbers.get(path)
                if number is None or part.rows[number] is not document or not (part.mask[number] and part.segment.alive[number]):
                    continue
                found.append((-score, project, path, Place(at, number, chunk)))
        if len(found) >= DEPTH or len(nearest) < most or nearest[-1][1].score <= 0:
            return found[:DEPTH]
        most *= _MORE
