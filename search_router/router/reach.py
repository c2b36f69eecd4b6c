"""Which hits can come to be seen: those of an expert that is asked to agree count only where somebody else points. Pure."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from search_router.router.identity import FileKey
from search_router.schema import Hit

ENOUGH_PAGES = 2
"""With so many pages of files from the experts that weigh, no other hit could come before the end of them."""


def within_reach(
    answers: Mapping[str, Sequence[Hit]], keys: Mapping[tuple[str, str], FileKey | None], quiet: Collection[str], limit: int
) -> tuple[dict[str, Sequence[Hit]], int]:
    """(the answers without hits that nobody will see, how many those are). Their files need not be read.

    Args:
        answers: expert id to its ranked hits.
        keys: (project id, path as the expert wrote it) to the normalised file key, None when outside the workspace.
        quiet: experts that were asked only to agree.
        limit: items of a page.
    """

    def place(hit: Hit) -> FileKey | None:
        return keys.get((hit.project, hit.path or "")) if hit.is_in_a_file else None

    named = {place(hit) for expert, hits in answers.items() if expert not in quiet for hit in hits} - {None}
    if len(named) < ENOUGH_PAGES * limit:
        return dict(answers), 0
    kept = {
        expert: [hit for hit in hits if not hit.is_in_a_file or place(hit) in named] if expert in quiet else hits
        for expert, hits in answers.items()
    }
    return kept, sum(len(hits) - len(kept[expert]) for expert, hits in answers.items())
