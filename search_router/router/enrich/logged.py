"""What whole, verified logs say of answers: their items, who found them where, and what was used. For the tuner.

Everything comes from signed receipts; the flywheel's own file is not asked, since nobody signs it. A log that is not valid as a whole is
refused, and the rows that are read are those that were verified: their tree has the same root.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

from search_router.config.state import StatePaths
from search_router.errors import SearchRouterError, StoreUnavailable
from search_router.receipts.envelope import parse_envelope
from search_router.receipts.log import SELECT_ROWS, Row, log_path, open_for_reading, read_rows, store_failure
from search_router.receipts.merkle import Tree
from search_router.receipts.verify import EXIT_CODES, VerdictKind, worst
from search_router.router.checking import Anchors, find_anchors, judge_whole_logs
from search_router.router.enrich.outcomes import ANSWERED, REWARD_PM

BATCH: Final = 500
ACCEPTED: Final = "answered"
"""The status of a receipt whose outcomes were taken."""


class LogsRefused(SearchRouterError):
    """A log is not valid as a whole, so nothing is learned from any."""

    code = "receipts-not-valid"

    def __init__(self, message: str, *, remedy: str, exit_code: int) -> None:
        super().__init__(message, remedy=remedy)
        self.exit_code = exit_code


class QrelsUnusable(SearchRouterError):
    """A file of judgements cannot be read."""

    code = "qrels-unusable"


@dataclass(frozen=True, slots=True)
class LogRange:
    """Which receipts of a log were read: 1 to `size`, and the root (hex) of the tree over them (RFC 9162)."""

    log: str
    size: int
    root: str

    def __str__(self) -> str:
        return f"log {self.log}, receipts 1 to {self.size}, root {self.root}"


@dataclass(frozen=True, slots=True)
class Used:
    """One answer with what became of it. `rewards` has 0 to 1 for each item, in the order of the page; `sources` are (expert, rank).

    `judged`: the rewards are judgements of every item and no traces of what a caller happened to read.
    """

    receipt_id: str
    session: str
    task_class: str
    sources: tuple[tuple[tuple[str, int], ...], ...]
    ids: tuple[str, ...]
    rewards: tuple[float, ...]
    judged: bool = False


@dataclass(frozen=True, slots=True)
class Logged:
    """Everything that is learned from: the ranges of the verified logs, and answers of which something was used."""

    ranges: tuple[LogRange, ...]
    used: tuple[Used, ...]
    notes: tuple[str, ...] = ()


@dataclass(slots=True)
class _Told:
    """What was told of one answer's items: the worth of each. A report says more than a fetch."""

    reported: dict[str, int] = field(default_factory=dict[str, int])
    fetched: dict[str, int] = field(default_factory=dict[str, int])


def read_verified_logs(paths: StatePaths, qrels: Path | None = None) -> Logged:
    """Verify every log of the store, then read it twice: what was told, and the answers of which it was told. `qrels` replace outcomes.

    Raises:
        LogsRefused: a log is invalid (exit code 1) or cannot be checked (3).
        QrelsUnusable: the file of judgements cannot be read, or judges what is no answer with evidence.
        ReceiptNotFound: there is no log.
        KeyUnusable: nobody's key is at hand to verify with.
    """
    judged = {} if qrels is None else read_qrels(qrels)
    anchors = find_anchors(paths)
    ranges = _verified(paths, anchors)
    told: dict[str, _Told] = {}
    for each in ranges:
        for _, predicate in _read_range(paths.receipts, each):
            _hear(predicate, told)
    used: list[Used] = []
    for each in ranges:
        for receipt_id, predicate in _read_range(paths.receipts, each):
            answer = _answer_of(receipt_id, predicate) if receipt_id in told or receipt_id in judged else None
            if answer is not None:
                grades = judged.pop(receipt_id, None)
                used.append(_judged(answer, grades) if grades is not None else _with_rewards(answer, told[receipt_id]))
    if judged:
        stranger = next(iter(judged))
        raise QrelsUnusable(
            f"{qrels} judges receipt {stranger[:80]!r}, which is no answer with evidence in a verified log.", remedy="Name such receipts."
        )
    return Logged(ranges, tuple(each for each in used if any(each.rewards)), anchors.notes)


def _verified(paths: StatePaths, anchors: Anchors) -> tuple[LogRange, ...]:
    """The ranges of all logs, every one of them valid. Raises LogsRefused."""
    verdicts, gone = judge_whole_logs(paths, anchors)
    faults = [(f"log {v.log}", v.kind, v.reasons) for v in verdicts if v.kind is not VerdictKind.VALID or v.tree is None]
    faults += [(each.what, each.verdict, each.reasons) for each in gone]
    if faults:
        said = "; ".join(f"{what} is {kind.value}: {' '.join(reasons[:2])}" for what, kind, reasons in faults[:5])
        raise LogsRefused(
            f"Nothing is learned from receipts that do not verify: {said}",
            remedy="`search-router receipts verify --all` tells more; `receipts repair LOG` sets a log aside.",
            exit_code=EXIT_CODES[worst({kind for _, kind, _ in faults}, VerdictKind.INVALID)],
        )
    return tuple(LogRange(v.log, v.rows, v.tree.root().hex()) for v in verdicts if v.tree is not None)


def read_qrels(path: Path) -> dict[str, dict[str, int]]:
    """TREC qrels, `RECEIPT 0 EVIDENCE GRADE` a line: receipt id to evidence id to grade. Raises QrelsUnusable, naming the line."""
    try:
        lines = path.read_text("utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise QrelsUnusable(f"{path} cannot be read: {error}.", remedy="Name a file of qrels.") from error
    judged: dict[str, dict[str, int]] = {}
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        parts = line.split(None, 2)
        evidence, _, grade = parts[2].rstrip().rpartition(" ") if len(parts) == 3 else ("", "", "")
        if not evidence or not grade.isdecimal():
            raise QrelsUnusable(f"{path}:{number}: not `RECEIPT 0 EVIDENCE GRADE`: {line[:80]!r}.", remedy="Write TREC qrels.")
        judged.setdefault(parts[0], {})[evidence.strip()] = int(grade)
    return judged


def _read_range(directory: Path, wanted: LogRange) -> Iterator[tuple[str, dict[str, Any]]]:
    """(receipt id, predicate) of exactly the receipts of a range. Raises LogsRefused at its end when their tree has another root."""
    path, tree, last = log_path(directory, wanted.log), Tree(), 0
    try:
        with open_for_reading(path) as database:
            while last < wanted.size:
                rows = read_rows(database, f"{SELECT_ROWS} WHERE seq > ? AND seq <= ? ORDER BY seq LIMIT ?", (last, wanted.size, BATCH))
                if not rows:
                    break
                for row in rows:
                    envelope = parse_envelope(row.envelope)
                    tree, _ = tree.append(bytes.fromhex(Row.payload_hash(envelope)))
                    yield f"{wanted.log}:{row.seq}", json.loads(envelope.payload)["predicate"]
                last = rows[-1].seq
    except sqlite3.Error as error:
        raise store_failure(path, error) from error
    except (ValueError, KeyError) as error:
        raise StoreUnavailable(f"{path} cannot be read any more: {error}.", remedy="Verify it again.") from error
    if (tree.size, tree.root().hex()) != (wanted.size, wanted.root):
        raise LogsRefused(
            f"Log {wanted.log} was changed after it had been verified.", remedy="Find out who did it, and verify again.", exit_code=1
        )


def _hear(predicate: Mapping[str, Any], told: dict[str, _Told]) -> None:
    """What a receipt says of earlier answers, if it was taken."""
    if predicate.get("status") != ACCEPTED:
        return
    for fact in predicate.get("outcomes") or ():
        if fact["refused"] is None:
            about = told.setdefault(fact["of"], _Told())
            worth = about.reported if fact["source"] == "reported" else about.fetched
            worth.update(dict.fromkeys(fact["evidence"], REWARD_PM[fact["outcome"]]))


def _answer_of(receipt_id: str, predicate: Mapping[str, Any]) -> Used | None:
    """An answer with evidence, without rewards yet; None for any other receipt."""
    if predicate.get("operation") != "search" or predicate.get("status") not in ANSWERED or not predicate.get("items"):
        return None
    items: list[Mapping[str, Any]] = predicate["items"]
    classification: Mapping[str, Any] = predicate.get("classification") or {}
    return Used(
        receipt_id=receipt_id,
        session=f"{predicate.get('principal')}/{predicate.get('session')}",
        task_class=classification.get("intent", ""),
        sources=tuple(tuple((s["expert"], s["rank"]) for s in item["sources"]) for item in items),
        ids=tuple(item["id"] for item in items),
        rewards=(0.0,) * len(items),
    )


def _with_rewards(answer: Used, told: _Told) -> Used:
    """A report says more than a fetch."""
    worth = told.fetched | told.reported
    return replace(answer, rewards=tuple(worth.get(each, 0) / 1000 for each in answer.ids))


def _judged(answer: Used, grades: Mapping[str, int]) -> Used:
    """The best grade of a receipt is worth 1; each judged receipt is a session of its own."""
    top = max(grades.values(), default=0) or 1
    rewards = tuple(grades.get(each, 0) / top for each in answer.ids)
    return replace(answer, session=f"qrels {answer.receipt_id}", rewards=rewards, judged=True)
