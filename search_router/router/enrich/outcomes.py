"""Outcomes: what became of an answer, told by its caller or by a fetch, and the credit that experts get for the evidence that was used.

The receipt of the answer is the witness: it says which items there were, who found each at what rank and with what weight. What it does not
say is refused, and so are receipts of other callers, repetitions, and more outcomes than a session may tell in a minute.
"""

from __future__ import annotations

import sqlite3
from collections import OrderedDict, deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

from search_router.answers import Credit, OutcomeRequest
from search_router.errors import ReceiptError, ReceiptNotFound, RequestDeclined
from search_router.receipts.body import OutcomeFact
from search_router.receipts.store import ReceiptStore
from search_router.receipts.words import encodable
from search_router.router.enrich.bandit import Draw
from search_router.router.enrich.owner import Owner
from search_router.router.seal import Caller
from search_router.schema import Answer

REWARD_PM: Final = {"success": 1000, "partial": 500, "failure": 0}
FETCHED: Final = "partial"
"""What a fetch says of its evidence: it was worth reading; no more is known."""
MINUTE_US: Final = 60_000_000
MAX_SESSIONS: Final = 1000
MAX_SHOWN: Final = 10_000
ANSWERED: Final = frozenset({"answered", "cached"})
NO_EVIDENCE: Final = ""

Source = Literal["reported", "fetched"]


@dataclass(frozen=True, slots=True)
class Answered:
    """What the receipt of an answer says that an outcome needs: for each item who found it at which rank, and how ranks became scores."""

    receipt_id: str
    session: str | None
    principal: str | None
    task_class: str | None
    items: Mapping[str, tuple[tuple[str, int], ...]]
    k: int
    weights_pm: Mapping[str, int]
    draw: Draw | None = None
    """How the weights were drawn, if they were."""

    @property
    def priors_pm(self) -> Mapping[str, int]:
        """The configured weights of the experts that were asked."""
        return self.draw.priors_pm if self.draw is not None else self.weights_pm


@dataclass(frozen=True, slots=True)
class Outcome:
    """An outcome that was taken: what goes into its own receipt, and from there into the file."""

    answered: Answered
    source: Source
    outcome: str
    evidence: tuple[str, ...]
    credited: tuple[Credit, ...]
    reporter: Caller

    @property
    def fact(self) -> OutcomeFact:
        """For the receipt."""
        credited = tuple((c.evidence, c.expert, c.reward_pm, c.share_pm) for c in self.credited)
        return OutcomeFact(self.source, self.answered.receipt_id, self.outcome, self.evidence, credited)


def read_answered(receipt_id: str, statement: Mapping[str, Any]) -> Answered:
    """The facts of a stored receipt. Raises RequestDeclined `not-an-answer` when it is not that of an answer with evidence."""
    predicate = statement.get("predicate", {})
    if predicate.get("operation") != "search" or predicate.get("status") not in ANSWERED or not predicate.get("items"):
        raise RequestDeclined(
            f"Receipt {receipt_id} is not that of an answer with evidence.", remedy="Name the receipt of the search.", code="not-an-answer"
        )
    fusion: dict[str, Any] = predicate.get("fusion") or {}
    classification: dict[str, Any] = predicate.get("classification") or {}
    return Answered(
        receipt_id=receipt_id,
        session=predicate.get("session"),
        principal=predicate.get("principal"),
        task_class=classification.get("intent"),
        items={item["id"]: tuple((source["expert"], source["rank"]) for source in item["sources"]) for item in predicate["items"]},
        k=fusion.get("k", 60),
        weights_pm=fusion.get("weights_pm", {}),
        draw=Draw.read(predicate),
    )


def credit_experts(answered: Answered, evidence: Sequence[str], outcome: str) -> tuple[Credit, ...]:
    """Each expert's share in each used item is its part of the item's RRF score, weight / (k + rank), in whole per mille. Pure."""
    credited: list[Credit] = []
    for each in evidence:
        sources = answered.items[each]
        parts = [answered.weights_pm.get(expert, 0) / (answered.k + rank) for expert, rank in sources]
        total = sum(parts)
        shares = [part / total for part in parts] if total > 0 else [1 / len(sources)] * len(sources)
        credited += [
            Credit(evidence=each, expert=expert, rank=rank, reward_pm=REWARD_PM[outcome], share_pm=round(share * 1000))
            for (expert, rank), share in zip(sources, shares, strict=True)
        ]
    return tuple(credited)


class OutcomeDesk:
    """Takes outcomes for one router and refuses what is not to be believed. Belongs to its event loop."""

    def __init__(self, store: ReceiptStore, owner: Owner, per_minute: int, k: int) -> None:
        self._store = store
        self._owner = owner
        self._per_minute = per_minute
        self._k = k
        self._told: OrderedDict[str, deque[int]] = OrderedDict()
        self._taken: OrderedDict[tuple[str, str, str], None] = OrderedDict()
        self._shown: OrderedDict[tuple[str | None, str], Answered] = OrderedDict()

    async def judge(self, request: OutcomeRequest, reporter: Caller, *, owns: bool) -> Outcome:
        """The outcome, if it is to be believed. The owner of the state directory (`owns`) speaks for every session of his principal.

        Raises:
            RequestDeclined: `too-many-outcomes`, `unknown-receipt`, `foreign-receipt`, `not-an-answer`, `no-evidence-named`,
                `unknown-evidence`, `repeated-outcome`, or `enrichment-unavailable` when nothing could be remembered.
        """
        self._count(reporter, owns=owns)
        if self._owner.fault is not None:
            raise RequestDeclined(self._owner.fault.message, remedy=self._owner.fault.remedy, code=self._owner.fault.code)
        answered = await self._witness(request.receipt, reporter, owns=owns)
        evidence = tuple(dict.fromkeys(encodable(each) for each in request.evidence))
        unknown = [each for each in evidence if each not in answered.items]
        if unknown:
            raise RequestDeclined(
                f"Receipt {request.receipt} has no evidence {unknown[0][:200]!r}.",
                remedy="Name ids of that very answer.",
                code="unknown-evidence",
            )
        if not evidence and request.outcome != "failure":
            raise RequestDeclined(
                "No evidence is named, so there is nobody to credit.", remedy="Name the evidence that was used.", code="no-evidence-named"
            )
        again = [each for each in evidence or (NO_EVIDENCE,) if self._is_taken(answered.receipt_id, "reported", each)]
        if again:
            raise RequestDeclined(
                f"An outcome of {again[0] or 'this answer'} was already told for receipt {request.receipt}.",
                remedy="Each item counts once; nothing is lost.",
                code="repeated-outcome",
            )
        return Outcome(answered, "reported", request.outcome, evidence, credit_experts(answered, evidence, request.outcome), reporter)

    def show(self, answer: Answer, reporter: Caller, weights_pm: Mapping[str, int], draw: Draw | None = None) -> None:
        """An answer went to this caller: a fetch of its evidence will tell something of it."""
        if answer.receipt is None or not answer.evidence:
            return
        answered = Answered(
            receipt_id=answer.receipt.id,
            session=reporter.session,
            principal=reporter.principal,
            task_class=answer.classification.intent.value if answer.classification else None,
            items={encodable(item.id): tuple((source.expert, source.rank) for source in item.sources) for item in answer.evidence},
            k=self._k,
            weights_pm=weights_pm,
            draw=draw,
        )
        for each in answered.items:
            self._shown[reporter.session, each] = answered
            self._shown.move_to_end((reporter.session, each))
        while len(self._shown) > MAX_SHOWN:
            self._shown.popitem(last=False)

    def fetched(self, evidence: Sequence[str], reporter: Caller) -> tuple[Outcome, ...]:
        """What a fetch says of the answers that its caller was shown: each item counts once, and never more in a minute than is allowed."""
        by_answer: dict[str, list[str]] = {}
        answers: dict[str, Answered] = {}
        for each in dict.fromkeys(map(encodable, evidence)):
            answered = self._shown.get((reporter.session, each))
            if answered is None or answered.principal != reporter.principal or self._is_taken(answered.receipt_id, "fetched", each):
                continue
            answers[answered.receipt_id] = answered
            by_answer.setdefault(answered.receipt_id, []).append(each)
        outcomes: list[Outcome] = []
        for receipt_id, used in by_answer.items():
            try:
                self._count(reporter, owns=False)
            except RequestDeclined:
                break
            answered = answers[receipt_id]
            outcomes.append(Outcome(answered, "fetched", FETCHED, tuple(used), credit_experts(answered, used, FETCHED), reporter))
        return tuple(outcomes)

    def keep(self, outcome: Outcome, receipt_id: str) -> None:
        """Remember an outcome that has its own receipt. Returns at once; a repetition counts once, whichever process it came to."""
        answered, now = outcome.answered, self._owner.clock()
        credited = outcome.credited or (Credit(evidence=NO_EVIDENCE, expert="", rank=0, reward_pm=REWARD_PM[outcome.outcome], share_pm=0),)
        for credit in credited:
            self._taken[answered.receipt_id, outcome.source, credit.evidence] = None
        while len(self._taken) > MAX_SHOWN:
            self._taken.popitem(last=False)
        rows = [
            (
                now,
                answered.receipt_id,
                receipt_id,
                outcome.source,
                outcome.outcome,
                credit.evidence,
                credit.expert,
                credit.rank,
                credit.reward_pm,
                credit.share_pm,
                answered.task_class,
                outcome.reporter.session,
                outcome.reporter.principal,
            )
            for credit in credited
        ]
        self._owner.submit(
            lambda database: database.executemany(
                "INSERT OR IGNORE INTO outcomes (time_us, receipt_id, outcome_receipt_id, source, outcome, evidence_id, expert, "
                "expert_rank, reward_pm, share_pm, task_class, session, principal) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                rows,
            )
        )

    async def _witness(self, receipt_id: str, reporter: Caller, *, owns: bool) -> Answered:
        try:
            found = await self._store.get(receipt_id)
            answered = read_answered(found.id, found.statement())
        except ReceiptNotFound as error:
            raise RequestDeclined(error.message, remedy=error.remedy, code="unknown-receipt") from error
        except (ReceiptError, KeyError, TypeError, ValueError) as error:
            raise RequestDeclined(
                f"Receipt {receipt_id[:80]} cannot be read.", remedy="Run `search-router receipts verify`.", code="unknown-receipt"
            ) from error
        own = found.log == self._store.log and answered.session == reporter.session
        if answered.principal != reporter.principal or not (own or owns):
            raise RequestDeclined(
                f"Receipt {receipt_id} was given to another caller.",
                remedy="Report what you were answered yourself.",
                code="foreign-receipt",
            )
        return answered

    def _count(self, reporter: Caller, *, owns: bool) -> None:
        """Every attempt counts, refused or not."""
        now = self._owner.clock()
        session = reporter.session or ""
        told = self._told.setdefault(session, deque())
        self._told.move_to_end(session)
        while len(self._told) > MAX_SESSIONS:
            self._told.popitem(last=False)
        while told and now - told[0] > MINUTE_US:
            told.popleft()
        if len(told) >= self._per_minute or (owns and self._written_since(session, now - MINUTE_US) >= self._per_minute):
            raise RequestDeclined(
                f"More than {self._per_minute} outcomes in a minute.",
                remedy="Wait, and report several ids at once.",
                code="too-many-outcomes",
            )
        told.append(now)

    def _written_since(self, session: str, since_us: int) -> int:
        """How many outcomes of one who comes with a new process each time were written."""
        sql = "SELECT count(DISTINCT outcome_receipt_id) FROM outcomes WHERE session = ? AND time_us > ?"
        return self._number(sql, (session, since_us))

    def _is_taken(self, receipt_id: str, source: Source, evidence: str) -> bool:
        if (receipt_id, source, evidence) in self._taken:
            return True
        sql = "SELECT count(*) FROM outcomes WHERE receipt_id = ? AND source = ? AND evidence_id = ?"
        return self._number(sql, (receipt_id, source, evidence)) > 0

    def _number(self, sql: str, parameters: tuple[object, ...]) -> int:
        database = self._owner.reader()
        if database is None:
            return 0
        try:
            return int(database.execute(sql, parameters).fetchone()[0])
        except sqlite3.Error as error:
            self._owner.read_failed(error)
            return 0
