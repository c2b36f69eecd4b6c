"""One row of a log judged by itself: its envelope, and whether its columns say what the envelope says.

What is found is small, so that the process that judges may be another one than the process that puts the rows together.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, cast

from search_router.receipts.log import Row
from search_router.receipts.statement import KeyRotation
from search_router.receipts.trust import Trust
from search_router.receipts.verify import VerdictKind, verify_envelope

StoredRow = tuple[Any, ...]
"""What `SELECT_ROWS_AND_NODES` gives for a row; in a damaged log any value may be of any type."""


class RowFindings(NamedTuple):
    """What was found about one row. `reasons` says why its envelope is not `valid`.

    `payload_hash` is None where the envelope cannot be read, and then the rest says nothing; `log` is None where its payload cannot be.
    """

    kind: VerdictKind
    reasons: tuple[str, ...] = ()
    payload_hash: str | None = None
    log: str | None = None
    time_us: int = 0
    columns_agree: bool = True
    rotation: KeyRotation | None = None


def judge_rows(rows: Sequence[StoredRow], trust: Trust) -> list[RowFindings]:
    return [judge_row(Row(*row), trust) for row in rows]


def judge_row(row: Row, trust: Trust) -> RowFindings:
    """Nothing is raised for a bad row: that is a finding."""
    stored = cast("object", row.envelope)
    if not isinstance(stored, bytes):
        return RowFindings(VerdictKind.INVALID, ("There is no envelope.",))
    verdict = verify_envelope(stored, trust)
    envelope, facts = verdict.envelope, verdict.facts
    if envelope is None:
        return RowFindings(verdict.kind, verdict.reasons)
    if facts is None:
        return RowFindings(verdict.kind, verdict.reasons, Row.payload_hash(envelope))
    said = Row.of(facts, envelope)
    place = facts.position
    return RowFindings(verdict.kind, verdict.reasons, said.hash, place.log, place.time_us, said == row, facts.rotation)
