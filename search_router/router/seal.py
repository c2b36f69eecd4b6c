"""The last step of every request: its receipt, durable before the answer leaves. No receipt, no answer."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from search_router.answers import BuildRef, FetchAnswer, OutcomeAnswer, ReceiptAnswer
from search_router.canonical import digest, sha256_hex, tolerant_digest
from search_router.config.loader import LoadedConfig
from search_router.receipts.body import (
    AnswerDigests,
    BanditFact,
    Build,
    ExpertFacts,
    FetchedFact,
    FusionFacts,
    OutcomeFact,
    ReceiptContext,
    digest_answer,
    prepare_statement,
)
from search_router.receipts.keys import SigningKey
from search_router.receipts.statement import Digest
from search_router.receipts.store import ReceiptStore, Stored
from search_router.router.enrich.bandit import Draw
from search_router.router.fanout import Reply
from search_router.router.request import question_of
from search_router.schema import Answer, BudgetReport, ReceiptRef


@dataclass(frozen=True, slots=True)
class Caller:
    """Who asks: a session name and a principal's name, never a token."""

    session: str | None = None
    principal: str | None = None


@dataclass(frozen=True, slots=True)
class Used:
    """What of earlier requests this one used, and the ids of its benchmark events: for the receipt."""

    cache: str | None = None
    hints: tuple[str, ...] = ()
    events: tuple[str, ...] = ()
    weights_pm: Mapping[str, int] | None = None
    """Of the experts that earned a cached answer, and drawn ones; the others' are those of their calls."""
    draw: Draw | None = None


NOTHING = Used()


class Sealer:
    """Writes the receipts of one router."""

    def __init__(self, store: ReceiptStore, key: SigningKey, build: BuildRef, loaded: LoadedConfig, session: str) -> None:
        self._store = store
        self._key = key
        self._build = build
        self._loaded = loaded
        self._session = session

    async def seal_search(self, answer: Answer, raw: object, replies: Sequence[Reply], caller: Caller, used: Used = NOTHING) -> Answer:
        """The answer with its receipt. Raises ReceiptError when the receipt cannot be made durable."""
        context = self._context(
            caller,
            question=question_of(raw),
            started_us=time.time_ns() // 1000 - round(answer.budget.used_ms * 1000),
            experts={r.call.expert: _expert_facts(r) for r in replies},
            fusion=self._fusion_facts(replies, used),
            cache=used.cache,
            hints=used.hints,
            bandit=_bandit_fact(used.draw),
            benchmark_events=used.events,
        )
        stored = await self._append(answer, context, raw, digest_answer(answer))
        return answer.model_copy(update={"receipt": _reference(stored)})

    async def seal_fetch(
        self, answer: FetchAnswer, raw: object, caller: Caller, used_us: int, used: Used = NOTHING, outcomes: tuple[OutcomeFact, ...] = ()
    ) -> FetchAnswer:
        """The fetched text with its receipt, which holds digests of the texts and none of the text."""
        fetched = tuple(FetchedFact(i.id, digest(i.model_dump(mode="json")), i.fresh) for i in answer.items)
        context = self._context(
            caller,
            started_us=time.time_ns() // 1000 - used_us,
            operation="fetch",
            fetched=fetched,
            outcomes=outcomes,
            benchmark_events=used.events,
        )
        response = Digest(*tolerant_digest(answer.model_dump(mode="json", exclude={"receipt"})))
        budget = BudgetReport(latency_ms=self._loaded.config.budget.latency_ms, used_ms=used_us / 1000, max_experts=0, asked=0)
        body = Answer(status=answer.status, error=answer.error, budget=budget, config=answer.config)
        stored = await self._append(body, context, raw, AnswerDigests(response, ()))
        return answer.model_copy(update={"receipt": _reference(stored)})

    async def seal_outcome(self, answer: OutcomeAnswer, raw: object, fact: OutcomeFact | None, caller: Caller, used: Used) -> OutcomeAnswer:
        """A reported outcome, taken or refused, with its receipt."""
        context = self._context(
            caller,
            started_us=time.time_ns() // 1000,
            operation="outcome",
            outcomes=() if fact is None else (fact,),
            benchmark_events=used.events,
        )
        response = Digest(*tolerant_digest(answer.model_dump(mode="json", exclude={"receipt"})))
        budget = BudgetReport(latency_ms=self._loaded.config.budget.latency_ms, used_ms=0, max_experts=0, asked=0)
        body = Answer(status=answer.status, error=answer.error, budget=budget, config=answer.config)
        stored = await self._append(body, context, raw, AnswerDigests(response, ()))
        return answer.model_copy(update={"receipt": _reference(stored)})

    @property
    def session(self) -> str:
        """The name of all callers of this process that have none of their own."""
        return self._session

    async def read(self, receipt_id: str) -> ReceiptAnswer:
        """One receipt of this store, with its statement decoded. Raises ReceiptNotFound."""
        found = await self._store.get(receipt_id)
        return ReceiptAnswer(
            id=found.id, seq=found.seq, log=found.log, keyid=found.keyid, envelope=json.loads(found.envelope), statement=found.statement()
        )

    async def _append(self, answer: Answer, context: ReceiptContext, raw: object, digests: AnswerDigests) -> Stored:
        return await self._store.append(prepare_statement(answer, digests, _digest_request(raw), context, self._key))

    def _context(self, caller: Caller, *, started_us: int, **facts: Any) -> ReceiptContext:
        return ReceiptContext(
            build=Build(self._build.commit, self._build.dirty),
            code_version=self._build.version,
            started_unix_us=started_us,
            session=caller.session or self._session,
            principal=caller.principal,
            keep_question=self._loaded.config.receipts.question == "text",
            **facts,
        )

    def _fusion_facts(self, replies: Sequence[Reply], used: Used) -> FusionFacts:
        fusion = self._loaded.config.fusion
        return FusionFacts(
            k=fusion.k,
            weights_pm=used.weights_pm if used.weights_pm is not None else {r.call.expert: r.call.prior for r in replies},
            bonuses_pm={
                "corroboration": round(fusion.corroboration_bonus * 1000),
                "definition": round(fusion.definition_bonus * 1000),
                "test_penalty": round(fusion.test_penalty * 1000),
            },
        )


def _digest_request(raw: object) -> Digest:
    """The request's digest. What no encoder can write down (nested without end, names that are not text) was rejected: then of its type."""
    try:
        return Digest(*tolerant_digest(raw))
    except (ValueError, TypeError, RecursionError):
        return Digest("opaque", sha256_hex(type(raw).__name__.encode()))


def _bandit_fact(draw: Draw | None) -> BanditFact | None:
    return None if draw is None else BanditFact(draw.seed, draw.task_class, draw.outcomes, draw.priors_pm, draw.weights_pm)


def _expert_facts(reply: Reply) -> ExpertFacts:
    result = reply.result
    return ExpertFacts(
        server_name=result.server_name if result else None,
        server_version=result.server_version if result else None,
        index_commit=result.index_commit if result else None,
        bytes_cut=result.bytes_cut if result else 0,
        error=reply.error or None,
    )


def _reference(stored: Stored) -> ReceiptRef:
    return ReceiptRef(id=stored.id, seq=stored.seq, log=stored.log, keyid=stored.keyid, envelope=stored.envelope_dict())
