"""How the fused list is presented: the asked shape, one page of it, and the cursor to the next page. Pure."""

from __future__ import annotations

import base64
import binascii
import json
from collections import defaultdict
from collections.abc import Sequence

from search_router.canonical import digest
from search_router.errors import FieldProblem, RequestRejected
from search_router.router.fuse import Fused
from search_router.schema import SearchRequest, Shape


def shape_ranking(fused: Sequence[Fused], shape: Shape) -> tuple[list[Fused], str | None]:
    """(items in presentation order, a sentence on what the shape left out). The fan-out and the scores do not depend on it."""
    match shape:
        case Shape.SINGLE_FILE:
            return _best_file(fused)
        case Shape.SYMBOL_LIST:
            named = [f for f in fused if f.candidate.definition is not None]
            left = len(fused) - len(named)
            return named, f"{left} items without a symbol are not in a symbol list" if left else None
        case Shape.RANKED_EVIDENCE | Shape.ANSWER_WITH_CITATIONS:
            return list(fused), None


def _best_file(fused: Sequence[Fused]) -> tuple[list[Fused], str | None]:
    """The items of the file whose items score highest together."""
    totals: dict[tuple[str, str], float] = defaultdict(float)
    for item in fused:
        if item.candidate.path is not None:
            totals[item.candidate.project, item.candidate.path] += item.score
    if not totals:
        return [], f"{len(fused)} commits are not in a file" if fused else None
    best = min(totals, key=lambda key: (-totals[key], key))
    chosen = [f for f in fused if (f.candidate.project, f.candidate.path) == best]
    others = len(totals) - 1
    return chosen, f"{others} other files also matched" if others else None


def page_start(request: SearchRequest) -> int:
    """Where this page begins. Raises RequestRejected `bad-cursor` for a cursor of another question or of no question."""
    if request.cursor is None:
        return 0
    try:
        decoded = json.loads(base64.urlsafe_b64decode(request.cursor.encode("ascii")))
        start, asked = int(decoded["at"]), decoded["for"]
    except (ValueError, KeyError, TypeError, binascii.Error, UnicodeEncodeError):
        start, asked = -1, ""
    if start < 1 or asked != _fingerprint(request):
        problem = FieldProblem("cursor", "bad-cursor", "it belongs to no page of this question")
        raise RequestRejected((problem,), remedy="Repeat the question without a cursor, or with the `cut.cursor` of its own last answer.")
    return start


def next_cursor(request: SearchRequest, start: int) -> str:
    """The opaque cursor of the page that begins at `start` (0-based)."""
    text = json.dumps({"at": start, "for": _fingerprint(request)}, separators=(",", ":"))
    return base64.urlsafe_b64encode(text.encode()).decode()


def _fingerprint(request: SearchRequest) -> str:
    """What makes two pages belong to one list: everything but the cursor, the page size and the detail."""
    return digest(request.model_dump(mode="json", exclude={"cursor", "limit", "detail"}))[:16]
