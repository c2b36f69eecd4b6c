"""What whole, verified logs say of answers: their items, who found them where, and what was used. For the tuner.

Everything comes from signed receipts; the flywheel's own file is not asked, since nobody signs it. A log that is not valid as a whole is
refused, and the rows that are read are those that were verified: their tree has the same root.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

from search_router.config.state import StatePaths
from search_router.errors import SearchRouterError, StoreUnavailable
from search_router.receipts.envelope import parse_envelope
from search_router.receipts.log import SELECT_ROWS, Row, log_path, open_for_reading, read_rows, store_failure
from search_router.receipts.merkle import Tree
from search_router.receipts.verify import EXIT_CODES, VerdictKind, worst
from search_router.receipts.whole_log import LogVerdict
from search_router.router.checking import find_anchors, judge_whole_logs
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


def read_verified_logs(paths: StatePaths) -> Logged:
    """Verify every log of the store, then read it.

    Raises:
        LogsRefused: a log is invalid (exit code 1) or cannot be checked (3).
        ReceiptNotFound: there is no log.
        KeyUnusable: nobody's key is at hand to verify with.
    """
    anchors = find_anchors(paths)
    verdicts, gone = judge_whole_logs(paths, anchors)
    faults = [(f"log {v.log}", v.kind, v.reasons) for v in verdicts if v.kind is not VerdictKind.VALID]
    faults += [(each.what, each.verdict, each.reasons) for each in gone]
    if faults:
        said = "; ".join(f"{what} is {kind.value}: {' '.join(reasons[:2])}" for what, kind, reasons in faults[:5])
        raise LogsRefused(
            f"Nothing is learned from receipts that do not verify: {said}",
            remedy="`search-router receipts verify --all` tells more; `receipts repair LOG` sets a log aside.",
            exit_code=EXIT_CODES[worst({kind for _, kind, _ in faults}, VerdictKind.INVALID)],
        )
    answers: dict[str, Used] = {}
    told: dict[str, _Told] = {}
    for verdict in verdicts:
        for receipt_id, predicate in _predicates(paths.receipts, verdict):
            _take(receipt_id, predicate, answers, told)
    ranges = tuple(LogRange(v.log, v.rows, v.tree.root().hex()) for v in verdicts if v.tree is not None)
    return Logged(ranges, tuple(_with_rewards(answers, told)), anchors.notes)


def add_qrels(logged: Logged, answers: Mapping[str, Used], path: Path) -> Logged:
    """With judgements in place of outcomes for the receipts that the file names. Raises QrelsUnusable, naming the line."""
    judged = read_qrels(path)
    strangers = [receipt for receipt in judged if receipt not in answers]
    if strangers:
        raise QrelsUnusable(
            f"{path} judges receipt {strangers[0][:80]!r}, which is no answer with evidence in a verified log.",
            remedy="Name such receipts.",
        )
    top = max((grade for grades in judged.values() for grade in grades.values()), default=0) or 1
    added = [
        replace(
            answers[receipt],
            session=f"qrels {receipt}",
            rewards=tuple(grades.get(each, 0) / top for each in answers[receipt].ids),
            judged=True,
        )
        for receipt, grades in judged.items()
    ]
    kept = tuple(each for each in logged.used if each.receipt_id not in judged)
    return replace(logged, used=(*kept, *(each for each in added if any(each.rewards))))


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


def read_answers(paths: StatePaths, ranges: Sequence[LogRange]) -> dict[str, Used]:
    """Every answer with evidence of the given ranges, without rewards, by receipt id. Raises LogsRefused when a log has changed since."""
    answers: dict[str, Used] = {}
    for each in ranges:
        for receipt_id, predicate in _read_range(paths.receipts, each):
            _take(receipt_id, predicate, answers, {})
    return answers


def _predicates(directory: Path, verdict: LogVerdict) -> Iterator[tuple[str, dict[str, Any]]]:
    if verdict.tree is not None:
        yield from _read_range(directory, LogRange(verdict.log, verdict.rows, verdict.tree.root().hex()))


def _read_range(directory: Path, wanted: LogRange) -> Iterator[tuple[str, dict[str, Any]]]:
    """(receipt id, predicate) of exactly the receipts of a range; the last one comes only when their tree has its root."""
    path, tree, last = log_path(directory, wanted.log), Tree(), 0
    found: list[tuple[str, dict[str, Any]]] = []
    try:
        with open_for_reading(path) as database:
            while last < wanted.size:
                rows = read_rows(database, f"{SELECT_ROWS} WHERE seq > ? AND seq <= ? ORDER BY seq LIMIT ?", (last, wanted.size, BATCH))
                if not rows:
                    break
                for row in rows:
                    envelope = parse_envelope(row.envelope)
                    tree, _ = tree.append(bytes.fromhex(Row.payload_hash(envelope)))
                    found.append((f"{wanted.log}:{row.seq}", json.loads(envelope.payload)["predicate"]))
                last = rows[-1].seq
    except sqlite3.Error as error:
        raise store_failure(path, error) from error
    except (ValueError, KeyError) as error:
        raise StoreUnavailable(f"{path} cannot be read any more: {error}.", remedy="Verify it again.") from error
    if (tree.size, tree.root().hex()) != (wanted.size, wanted.root):
        raise LogsRefused(
            f"Log {wanted.log} was changed after it had been verified.", remedy="Find out who did it, and verify again.", exit_code=1
        )
    return iter(found)


def _take(receipt_id: str, predicate: Mapping[str, Any], answers: dict[str, Used], told: dict[str, _Told]) -> None:
    """One receipt: an answer with evidence, or outcomes that were taken."""
    if predicate.get("operation") == "search" and predicate.get("status") in ANSWERED and predicate.get("items"):
        items: list[Mapping[str, Any]] = predicate["items"]
        classification: Mapping[str, Any] = predicate.get("classification") or {}
        answers[receipt_id] = Used(
            receipt_id=receipt_id,
            session=f"{predicate.get('principal')}/{predicate.get('session')}",
            task_class=classification.get("intent", ""),
            sources=tuple(tuple((s["expert"], s["rank"]) for s in item["sources"]) for item in items),
            ids=tuple(item["id"] for item in items),
            rewards=(0.0,) * len(items),
        )
    if predicate.get("status") != ACCEPTED:
        return
    for fact in predicate.get("outcomes") or ():
        if fact["refused"] is None:
            about = told.setdefault(fact["of"], _Told())
            worth = about.reported if fact["source"] == "reported" else about.fetched
            worth.update(dict.fromkeys(fact["evidence"], REWARD_PM[fact["outcome"]]))


def _with_rewards(answers: Mapping[str, Used], told: Mapping[str, _Told]) -> Iterator[Used]:
    """The answers of which something was used, in the order of the logs."""
    for receipt_id, answer in answers.items():
        about = told.get(receipt_id)
        if about is None:
            continue
        worth = about.fetched | about.reported
        rewards = tuple(worth.get(each, 0) / 1000 for each in answer.ids)
        if any(rewards):
            yield replace(answer, rewards=rewards)
