"""Replay: ask again what a receipt answered, without cache and hints, and say what differs and why.

A receipt holds digests, not texts: the question comes from the caller, from the receipt where `receipts.question = "text"`, or from what
`enrich.keep_questions` kept. Whether it is the very question is told by its keyed digest, and whether the items are the same by theirs.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from search_router.answers import BuildRef, ReplayAnswer, ReplayedItem
from search_router.canonical import tolerant_digest
from search_router.errors import RequestDeclined
from search_router.receipts.words import encodable
from search_router.router.enrich.bandit import Draw
from search_router.router.enrich.database import EnrichUnavailable, open_for_reading
from search_router.schema import Answer, ConfigRef, ExpertStatus


@dataclass(frozen=True, slots=True)
class Recorded:
    """What the receipt says of the answer that is replayed."""

    receipt_id: str
    status: str
    items: tuple[Mapping[str, Any], ...]
    asked: frozenset[str]
    experts: Mapping[str, str]
    config: Mapping[str, Any]
    code: Mapping[str, Any]
    cache: str | None
    question_digest: str | None
    question_text: str | None
    request_digest: str
    request_method: str
    draw: Draw | None
    """The weights that were drawn for it; a replay uses them again."""


def read_recorded(receipt_id: str, statement: Mapping[str, Any]) -> Recorded:
    """The facts of a search's receipt. Raises RequestDeclined `not-a-search` for any other."""
    predicate: dict[str, Any] = statement.get("predicate", {})
    if predicate.get("operation") != "search":
        raise RequestDeclined(f"Receipt {receipt_id} is not that of a search.", remedy="Name the receipt of a search.", code="not-a-search")
    question: dict[str, Any] = predicate.get("question") or {}
    subjects: dict[str, str] = {s["name"]: s["digest"]["sha256"] for s in statement["subject"]}
    return Recorded(
        receipt_id=receipt_id,
        status=predicate["status"],
        items=tuple(predicate["items"]),
        asked=frozenset(chosen["expert"] for chosen in predicate["plan"]["chosen"]),
        experts={each["expert"]: each["status"] for each in predicate["experts"]},
        config=predicate["config"],
        code=predicate["code"],
        cache=predicate.get("cache"),
        question_digest=question.get("digest"),
        question_text=question.get("text"),
        request_digest=subjects["request"],
        request_method=predicate["request"]["method"],
        draw=Draw.read(predicate),
    )


def kept_request(path: Path, receipt_id: str) -> dict[str, Any] | None:
    """The request of a receipt, if it was kept. A file that cannot be read has none."""
    try:
        database = open_for_reading(path)
        if database is None:
            return None
        try:
            row = database.execute("SELECT request FROM questions WHERE receipt_id = ?", (receipt_id,)).fetchone()
        finally:
            database.close()
        return json.loads(row[0]) if row is not None else None
    except (EnrichUnavailable, sqlite3.Error, ValueError):
        return None


def compare(
    recorded: Recorded, raw: Mapping[str, Any], same_question: bool, now: Answer, build: BuildRef, config: ConfigRef
) -> ReplayAnswer:
    """What differs between a receipt and the answer now, and what may be the reason. Pure.

    Items are matched by id, which has the place and the content in it; the same place with other content counts as changed.
    """
    method, digest = tolerant_digest(dict(raw))
    same_request = (method, digest) == (recorded.request_method, recorded.request_digest)
    items = _compare_items(recorded.items, now)
    asked = frozenset(r.id for r in now.experts if r.status is not ExpertStatus.SKIPPED)
    then = recorded.asked or frozenset(source["expert"] for item in recorded.items for source in item["sources"])
    statuses = {r.id: r.status.value for r in now.experts}
    failed = {name: (status, statuses.get(name, "absent")) for name, status in recorded.experts.items() if statuses.get(name) != status}
    reasons = _reasons(recorded, same_question, same_request, items, failed, build, config)
    kept = [item.id for item in items if item.then is not None and item.now is not None]
    order_then = [item.id for item in sorted(items, key=lambda i: i.then or 0) if item.id in kept]
    order_now = [item.id for item in sorted(items, key=lambda i: i.now or 0) if item.id in kept]
    return ReplayAnswer(
        replayed=recorded.receipt_id,
        same_question=same_question,
        same_request=same_request,
        same=not any(item.change for item in items) and order_then == order_now and asked == then and not failed,
        status_then=recorded.status,
        status_now=now.status.value,
        only_then=tuple(sorted(then - asked)),
        only_now=tuple(sorted(asked - then)),
        changed_experts={name: f"{before} → {after}" for name, (before, after) in sorted(failed.items())},
        order_differs=order_then != order_now,
        items=tuple(items),
        reasons=tuple(reasons),
        receipt=now.receipt,
    )


def _compare_items(then: Sequence[Mapping[str, Any]], now: Answer) -> list[ReplayedItem]:
    """Items of either list, those of then first; ranks are 1-based."""
    ids_now = {encodable(item.id): rank for rank, item in enumerate(now.evidence, start=1)}
    tiers_now = {encodable(item.id): item.tier.value for item in now.evidence}
    places_now = {_place(each): each for each in ids_now}
    found: list[ReplayedItem] = []
    matched: set[str] = set()
    for rank, item in enumerate(then, start=1):
        name: str = item["id"]
        if name in ids_now:
            change = "" if tiers_now[name] == item["tier"] else f"tier {item['tier']} → {tiers_now[name]}"
            found.append(ReplayedItem(id=name, then=rank, now=ids_now[name], change=change))
            matched.add(name)
        elif (other := places_now.get(_place(name))) is not None:
            found.append(ReplayedItem(id=name, then=rank, now=ids_now[other], change=f"content changed: now {other}"))
            matched.add(other)
        else:
            found.append(ReplayedItem(id=name, then=rank, now=None, change="not found now"))
    found += [ReplayedItem(id=each, then=None, now=rank, change="not found then") for each, rank in ids_now.items() if each not in matched]
    return found


def _place(evidence_id: str) -> str:
    """An evidence id without the lines and the content that it was made from."""
    return evidence_id.rpartition("#")[0] or evidence_id


def _reasons(
    recorded: Recorded,
    same_question: bool,
    same_request: bool,
    items: Sequence[ReplayedItem],
    changed: Mapping[str, tuple[str, str]],
    build: BuildRef,
    config: ConfigRef,
) -> list[str]:
    """What is not as it was, most telling first; empty when everything that a receipt knows is the same."""
    reasons: list[str] = []
    if not same_question:
        reasons.append("another question: its digest is not the receipt's")
    elif not same_request:
        reasons.append("other scope, budget or options than the receipt's request, or the same written differently")
    if recorded.config.get("hash") != config.hash:
        then = f"{recorded.config.get('version')} {str(recorded.config.get('hash'))[:12]}"
        reasons.append(f"other configuration: {then} then, {config.version} {config.hash[:12]} now")
    code = recorded.code
    if (code.get("version"), code.get("commit"), code.get("dirty")) != (build.version, build.commit, build.dirty):
        reasons.append(
            f"other code: {code.get('version')} {str(code.get('commit'))[:12]} then, {build.version} {str(build.commit)[:12]} now"
        )
    elif build.dirty:
        reasons.append("the code has changes that no commit tells; they may differ from those of then")
    if recorded.cache is not None and recorded.cache.startswith(("hit ", "shared ")):
        reasons.append(f"the receipt is of a cached answer; receipt {recorded.cache.partition(' ')[2]} earned it")
    if any(item.change.startswith("content changed") for item in items):
        reasons.append("files of the evidence have other content now")
    elif any(item.now is None or item.then is None for item in items):
        reasons.append("the corpus has changed elsewhere, or an expert answered differently")
    reasons += [f"{name} was {before} and is {after}" for name, (before, after) in sorted(changed.items())]
    return reasons
