"""What a receipt says: one request's facts as an in-toto statement without floats, file text, secrets or, by default, question text.

Times are integer microseconds (`_us`), shares and weights integer per-mille (`_pm`). Everything but the position in the log is settled
before the receipt waits for its turn.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from search_router.canonical import (
    Json,
    NotPlain,
    canonical_bytes,
    canonical_plain,
    plain_number,
    sha256_hex,
    tolerant_digest,
)
from search_router.errors import ReceiptError
from search_router.receipts.keys import SigningKey
from search_router.receipts.prepared import PreparedStatement
from search_router.receipts.statement import PREDICATE_TYPE, REQUEST, RESPONSE, STATEMENT_TYPE, Digest, Position
from search_router.receipts.words import Words, encodable
from search_router.schema import Answer, Classification, Evidence, ExpertReport, ExpertStatus, StageReport

MAX_ID = 4096


@dataclass(frozen=True, slots=True)
class Build:
    """Which source the running code was built from; None where nobody can tell."""

    commit: str | None = None
    dirty: bool | None = None


@dataclass(frozen=True, slots=True)
class ExpertFacts:
    """What the answer does not say about one expert's call. `error` is free text: it is scrubbed and bounded here."""

    server_name: str | None = None
    server_version: str | None = None
    index_commit: str | None = None
    bytes_cut: int = 0
    error: str | None = None


@dataclass(frozen=True, slots=True)
class FusionFacts:
    """How the lists were fused: RRF's k, each expert's weight and each bonus, in per-mille."""

    k: int
    weights_pm: Mapping[str, int]
    bonuses_pm: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class FetchedFact:
    """One fetched text: its evidence id, the SHA-256 of its JSON in the answer, and whether the file still was what the search saw."""

    id: str
    sha256: str
    fresh: bool | None


@dataclass(frozen=True, slots=True)
class OutcomeFact:
    """An outcome of an earlier receipt, reported or told by a fetch, and whom it credits: (evidence id, expert, reward, share), per mille.

    `of` is what the caller named, whether or not there is such a receipt; `refused` the class of the refusal.
    """

    source: Literal["reported", "fetched"]
    of: str
    outcome: str
    evidence: tuple[str, ...]
    credited: tuple[tuple[str, str, int, int], ...] = ()
    refused: str | None = None


@dataclass(frozen=True, slots=True)
class BanditFact:
    """How a session's outcomes moved the weights: the draw's seed, the class, how many outcomes; priors and drawn weights per mille."""

    seed: str
    task_class: str
    outcomes: int
    priors_pm: Mapping[str, int]
    weights_pm: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class ReceiptContext:
    """The facts of a request that its answer does not carry.

    `question` is the caller's question, None where the request had none; it is written as text only with `keep_question`, otherwise as
    a keyed digest. `principal` is a name, never a token.
    """

    build: Build
    code_version: str
    started_unix_us: int
    session: str | None = None
    principal: str | None = None
    question: str | None = None
    keep_question: bool = False
    operation: Literal["search", "fetch", "outcome"] = "search"
    fetched: tuple[FetchedFact, ...] = ()
    outcomes: tuple[OutcomeFact, ...] = ()
    experts: Mapping[str, ExpertFacts] = field(default_factory=dict[str, ExpertFacts])
    fusion: FusionFacts | None = None
    cache: str | None = None
    hints: tuple[str, ...] = ()
    bandit: BanditFact | None = None
    benchmark_events: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class AnswerDigests:
    """Digests of an answer as JSON (all members, by alias): of the whole without its `receipt`, and of each item of its evidence."""

    response: Digest
    items: tuple[Digest, ...]


def digest_answer(answer: Answer) -> AnswerDigests:
    """The digests that bind an answer to its receipt. The answer's `receipt` is left out: it is about the answer and comes after it."""
    members = answer.model_dump(mode="json", by_alias=True, exclude={"receipt"})
    items: list[Json] = members["evidence"]
    try:
        encoded = [_canonical_item(item) for item in items]
        around = canonical_bytes(members | {"evidence": []})
        # No string has these bytes: inside one, a quotation mark is escaped.
        response = around.replace(b'"evidence":[]', b'"evidence":[%b]' % b",".join(encoded), 1)
    except ValueError:
        # Such as a path that is not UTF-8: JCS cannot say it, and the receipt must be bound to the answer all the same.
        whole = tolerant_digest(members)
        return AnswerDigests(Digest(*whole), tuple(Digest(*tolerant_digest(item)) for item in items))
    return AnswerDigests(Digest("jcs", sha256_hex(response)), tuple(Digest("jcs", sha256_hex(item)) for item in encoded))


def _canonical_item(item: dict[str, Json]) -> bytes:
    """RFC 8785 bytes of one item of evidence. Its floats stand in `scores` and `sources` alone, so nothing else is looked through."""
    try:
        plain = item | {
            "scores": {name: plain_number(score) for name, score in item["scores"].items()},
            "sources": [source | {"native_score": plain_number(source["native_score"])} for source in item["sources"]],
        }
    except NotPlain:
        return canonical_bytes(item)
    return canonical_plain(plain)


def prepare_statement(
    answer: Answer, digests: AnswerDigests, request: Digest, context: ReceiptContext, key: SigningKey
) -> PreparedStatement:
    """Settle the statement and write it out now; what is returned adds the position in the log, and is quick.

    Raises:
        ReceiptError: there is a float in it, or an integer beyond 2**53 - 1.
    """
    return PreparedStatement(_statement(request, digests.response), _fixed_predicate(answer, digests, request, context, key))


def build_statement(
    answer: Answer, digests: AnswerDigests, request: Digest, context: ReceiptContext, key: SigningKey, position: Position
) -> dict[str, Json]:
    """The whole statement as a JSON object; `prepare_statement` gives its canonical bytes."""
    predicate = _fixed_predicate(answer, digests, request, context, key) | _place(position)
    return _statement(request, digests.response) | {"predicate": predicate}


def _statement(request: Digest, response: Digest) -> dict[str, Json]:
    """All of the statement but its predicate."""
    return {
        "_type": STATEMENT_TYPE,
        "subject": [
            {"name": RESPONSE, "digest": {"sha256": response.sha256}},
            {"name": REQUEST, "digest": {"sha256": request.sha256}},
        ],
        "predicateType": PREDICATE_TYPE,
    }


def _place(position: Position) -> dict[str, Json]:
    return {"log": position.log, "seq": position.seq, "prev": position.prev, "time_us": position.time_us, "nonce": position.nonce}


def _fixed_predicate(answer: Answer, digests: AnswerDigests, request: Digest, context: ReceiptContext, key: SigningKey) -> dict[str, Json]:
    """All of the predicate but its place in the log."""
    words = Words(answer, context.question, key, keep=context.keep_question)
    return _request_facts(answer, digests, request, context, words) | _search_facts(answer, digests, context, words)


def _request_facts(answer: Answer, digests: AnswerDigests, request: Digest, context: ReceiptContext, words: Words) -> dict[str, Json]:
    """Who asked what of which program, and how it ended."""
    return {
        "operation": context.operation,
        "request": {"method": request.method},
        "response": {"method": digests.response.method},
        "started_us": context.started_unix_us,
        "code": {"version": context.code_version, "commit": context.build.commit, "dirty": context.build.dirty},
        "config": {"version": answer.config.version, "hash": answer.config.hash},
        "session": words.free(context.session),
        "principal": words.free(context.principal),
        "status": answer.status.value,
        "empty_reason": answer.empty_reason.value if answer.empty_reason else None,
        "error": _error(answer, words),
        "question": words.question(),
        "question_classes": list(answer.question_classes),
        "classification": _classification(answer.classification),
        "fetched": [{"id": encodable(f.id[:MAX_ID]), "sha256": f.sha256, "fresh": f.fresh} for f in context.fetched],
        "outcomes": [_outcome(fact, words) for fact in context.outcomes],
        "budget": {
            "latency_us": answer.budget.latency_ms * 1000,
            "used_us": _micros(answer.budget.used_ms),
            "max_experts": answer.budget.max_experts,
            "asked": answer.budget.asked,
        },
    }


def _search_facts(answer: Answer, digests: AnswerDigests, context: ReceiptContext, words: Words) -> dict[str, Json]:
    """What ran, what it gave, and how the answer was made of it."""
    return {
        "plan": _plan(answer, words),
        "experts": [_expert(report, context.experts.get(report.id), words) for report in _asked(answer)],
        "stages": [_stage(report, words) for report in answer.stages],
        "fusion": _fusion(context.fusion),
        "items": [_item(evidence, digest) for evidence, digest in zip(answer.evidence, digests.items, strict=True)],
        "cut": {"items": answer.cut.items, "characters": answer.cut.characters},
        "notes": [words.free(note) for note in answer.notes],
        "cache": context.cache,
        "hints": list(context.hints),
        "bandit": _bandit(context.bandit),
        "benchmark_events": list(context.benchmark_events),
    }


def _asked(answer: Answer) -> list[ExpertReport]:
    return [report for report in answer.experts if report.status is not ExpertStatus.SKIPPED]


def _plan(answer: Answer, words: Words) -> dict[str, Json]:
    return {
        "chosen": [{"expert": report.id, "sub_query": words.sub_query(report.sub_query)} for report in _asked(answer)],
        "left_out": [
            {"expert": report.id, "reason": words.free(report.reason)} for report in answer.experts if report.status is ExpertStatus.SKIPPED
        ],
    }


def _expert(report: ExpertReport, facts: ExpertFacts | None, words: Words) -> dict[str, Json]:
    known = facts or ExpertFacts()
    return {
        "expert": report.id,
        "status": report.status.value,
        "reason": words.free(report.reason),
        "latency_us": report.latency_us,
        "results": report.results,
        "bytes_cut": known.bytes_cut,
        "server": {"name": words.free(known.server_name), "version": words.free(known.server_version)},
        "index_commit": words.free(known.index_commit),
        "error": words.free(known.error),
    }


def _stage(report: StageReport, words: Words) -> dict[str, Json]:
    return {
        "stage": report.stage,
        "active": report.active,
        "reason": words.free(report.reason),
        "in": report.in_,
        "out": report.out,
        "time_us": _micros(report.ms),
    }


def _outcome(fact: OutcomeFact, words: Words) -> dict[str, Json]:
    return {
        "source": fact.source,
        "of": words.free(fact.of),
        "outcome": fact.outcome,
        "evidence": [encodable(each[:MAX_ID]) for each in fact.evidence],
        "credited": [
            {"evidence": encodable(evidence[:MAX_ID]), "expert": expert, "reward_pm": reward, "share_pm": share}
            for evidence, expert, reward, share in fact.credited
        ],
        "refused": fact.refused,
    }


def _item(evidence: Evidence, digest: Digest) -> dict[str, Json]:
    """One item as the digest of its JSON in the answer, with who found it: no text of it."""
    return {
        "id": encodable(evidence.id[:MAX_ID]),
        "method": digest.method,
        "sha256": digest.sha256,
        "tier": evidence.tier.value,
        "sources": [{"expert": source.expert, "rank": source.rank} for source in evidence.sources],
    }


def _classification(classification: Classification | None) -> dict[str, Json] | None:
    if classification is None:
        return None
    return {
        "intent": classification.intent.value,
        "runner_up": classification.runner_up.value if classification.runner_up else None,
        "confidence_pm": round(classification.confidence * 1000),
        "abstained": classification.abstained,
        "by": classification.by,
        "rules": [{"rule": fired.rule, "intent": fired.intent.value, "weight_pm": fired.weight} for fired in classification.rules],
    }


def _fusion(fusion: FusionFacts | None) -> dict[str, Json] | None:
    if fusion is None:
        return None
    return {"k": fusion.k, "weights_pm": dict(fusion.weights_pm), "bonuses_pm": dict(fusion.bonuses_pm)}


def _bandit(fact: BanditFact | None) -> dict[str, Json] | None:
    if fact is None:
        return None
    weights: dict[str, Json] = {"priors_pm": dict(fact.priors_pm), "weights_pm": dict(fact.weights_pm)}
    return {"seed": fact.seed, "task_class": fact.task_class, "outcomes": fact.outcomes} | weights


def _error(answer: Answer, words: Words) -> dict[str, Any] | None:
    if answer.error is None:
        return None
    error = answer.error
    return {
        "code": error.code,
        "message": words.free(error.message),
        "remedy": words.free(error.remedy),
        "fields": [words.free(name) for name in error.fields],
    }


def _micros(milliseconds: float) -> int:
    if not math.isfinite(milliseconds):
        raise ReceiptError("A time in the answer is not finite.", remedy="Give milliseconds as a finite number.", code="receipt-with-float")
    return round(milliseconds * 1000)
