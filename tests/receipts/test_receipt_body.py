"""A receipt says what ran, in integers, and nothing that it must not say."""

from __future__ import annotations

import json
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from hypothesis import given
from hypothesis import strategies as st

from search_router.canonical import canonical_bytes, digest, tolerant_digest
from search_router.errors import ReceiptError
from search_router.receipts.body import ExpertFacts, ReceiptContext, build_statement, digest_answer, prepare_statement
from search_router.receipts.keys import SigningKey, question_digest
from search_router.receipts.statement import Digest, Position, parse_own_statement, read_statement
from search_router.schema import Answer, BudgetReport, ConfigRef, ErrorReport, ExpertReport, ExpertStatus, ReceiptRef, Status
from tests.receipts.samples import QUESTION, SNIPPET, make_answer, make_context, make_payload, request_digest

KEY = SigningKey.of(Ed25519PrivateKey.generate())
PLACE = Position(log="0123456789ab", seq=7, prev="a" * 64, time_us=1_700_000_000_000_001, nonce="b" * 32)


def build(answer: Answer, context: ReceiptContext | None = None) -> dict[str, Any]:
    return build_statement(answer, digest_answer(answer), request_digest(), context or make_context(), KEY, PLACE)


def payload(answer: Answer, context: ReceiptContext | None = None) -> str:
    return make_payload(KEY, answer, context)(PLACE).decode()


def bare(status: Status, **members: Any) -> Answer:
    budget = BudgetReport(latency_ms=3000, used_ms=0.0, max_experts=6, asked=0)
    return Answer(status=status, budget=budget, config=ConfigRef(version="search-router@1.0.0", hash="d" * 64), **members)


def with_expert_report(**members: Any) -> Answer:
    return bare(Status.FAILED, experts=(ExpertReport(id="grep", **members),))


def test_the_whole_statement_of_an_answered_request() -> None:
    answer = make_answer(1)
    item = answer.evidence[0].model_dump(mode="json", by_alias=True)

    assert build(answer) == {
        "_type": "https://in-toto.io/Statement/v1",
        "subject": [
            {"name": "response", "digest": {"sha256": digest(answer.model_dump(mode="json", by_alias=True, exclude={"receipt"}))}},
            {"name": "request", "digest": {"sha256": request_digest().sha256}},
        ],
        "predicateType": "https://search-router.dev/search-receipt/v1",
        "predicate": {
            "log": "0123456789ab",
            "seq": 7,
            "prev": "a" * 64,
            "time_us": 1_700_000_000_000_001,
            "nonce": "b" * 32,
            "operation": "search",
            "fetched": [],
            "outcomes": [],
            "request": {"method": "jcs"},
            "response": {"method": "jcs"},
            "started_us": 1_700_000_000_000_000,
            "code": {"version": "0.1.0", "commit": "0" * 40, "dirty": False},
            "config": {"version": "search-router@1.0.0", "hash": "d" * 64},
            "session": "s-1",
            "principal": None,
            "status": "answered",
            "empty_reason": None,
            "error": None,
            "question": {"digest": question_digest(QUESTION, KEY)},
            "question_classes": [],
            "classification": {
                "intent": "typed-symbol",
                "runner_up": "conceptual",
                "confidence_pm": 618,
                "abstained": False,
                "by": "rules",
                "rules": [{"rule": "snake-case", "intent": "typed-symbol", "weight_pm": 700}],
            },
            "plan": {
                "chosen": [
                    {"expert": "symbols", "sub_query": {"form": "symbol", "digest": KEY.keyed_digest("handle_request")}},
                    {"expert": "grep", "sub_query": {"form": "literal", "digest": KEY.keyed_digest("handle_request")}},
                ],
                "left_out": [{"expert": "history", "reason": "prior 0.1 is below the gate's 0.2"}],
            },
            "experts": [
                {
                    "expert": "symbols",
                    "status": "ok",
                    "reason": "prior 1.0",
                    "latency_us": 41_000,
                    "results": 1,
                    "bytes_cut": 0,
                    "server": {"name": None, "version": None},
                    "index_commit": None,
                    "error": None,
                },
                {
                    "expert": "grep",
                    "status": "ok",
                    "reason": "prior 0.6",
                    "latency_us": 12_345,
                    "results": 1,
                    "bytes_cut": 7,
                    "server": {"name": "ripgrep", "version": "15.2.0"},
                    "index_commit": None,
                    "error": None,
                },
            ],
            "stages": [
                {"stage": name, "active": True, "reason": "ran", "in": 3, "out": 2, "time_us": 123}
                for name in ("classify", "plan", "fan-out", "identify", "score", "fuse", "tier")
            ],
            "fusion": {"k": 60, "weights_pm": {"symbols": 1000, "grep": 600}, "bonuses_pm": {"corroboration": 250}},
            "items": [
                {
                    "id": "shop:src/handlers_0.py:10-42",
                    "method": "jcs",
                    "sha256": digest(item),
                    "tier": "symbol-confirmed",
                    "sources": [{"expert": "symbols", "rank": 1}, {"expert": "grep", "rank": 2}],
                }
            ],
            "budget": {"latency_us": 3_000_000, "used_us": 53_770, "max_experts": 6, "asked": 2},
            "cut": {"items": 0, "characters": 0},
            "notes": [],
            "cache": None,
            "hints": [],
            "bandit": None,
            "benchmark_events": [],
        },
    }


@pytest.mark.parametrize("items", [0, 1, 10])
def test_the_prepared_bytes_are_the_canonical_bytes_of_the_statement(items: int) -> None:
    answer = make_answer(items)

    assert make_payload(KEY, answer)(PLACE) == canonical_bytes(build(answer))


@pytest.mark.parametrize("status", list(Status))
def test_a_request_that_never_ran_has_a_receipt_as_well(status: Status) -> None:
    answer = bare(status, error=ErrorReport(code="invalid-request", message="limit: too big", fields=("limit",)))

    facts = read_statement(payload(answer, make_context(question=None, fusion=None, experts={})).encode())

    assert (facts.status, facts.intent, facts.question_digest, facts.position) == (status.value, None, None, PLACE)


def test_the_receipt_of_an_answer_is_no_part_of_what_it_is_about() -> None:
    answer = make_answer(2)
    sent = answer.model_copy(update={"receipt": ReceiptRef(id="0123456789ab:7", seq=7, log="0123456789ab", keyid="e" * 64)})

    assert digest_answer(sent) == digest_answer(answer)


def test_an_answer_that_has_no_canonical_form_is_bound_by_another_method() -> None:
    answer = make_answer(2)
    odd = answer.evidence[0].model_copy(update={"path": "src/\udcff.py", "id": "shop:src/\udcff.py:1-2"})
    answer = answer.model_copy(update={"evidence": (odd, answer.evidence[1])})

    predicate = build(answer)["predicate"]

    assert predicate["response"] == {"method": "ascii-json"}
    assert [item["method"] for item in predicate["items"]] == ["ascii-json", "jcs"]
    assert predicate["items"][0]["id"] == "shop:src/\\udcff.py:1-2"
    read_statement(payload(answer).encode())


def test_neither_the_question_nor_a_term_of_it_nor_source_text_is_written() -> None:
    answer = make_answer(3).model_copy(
        update={
            "notes": (f"No rule matched {QUESTION!r}.",),
            "error": ErrorReport(code="x", message="handle_request( is no regular expression"),
        }
    )

    text = payload(answer, make_context(experts={"grep": ExpertFacts(error=f"rg: {QUESTION}: handle_request")}))

    assert "handle_request" not in text
    assert "session token" not in text
    assert SNIPPET[:20] not in text
    assert "VERY_PRIVATE" not in text


def test_the_question_is_written_as_text_only_where_that_is_configured() -> None:
    predicate = build(make_answer(1), make_context(keep_question=True))["predicate"]

    assert predicate["question"] == {"digest": question_digest(QUESTION, KEY), "text": QUESTION}
    assert predicate["plan"]["chosen"][0]["sub_query"] == {"form": "symbol", "text": "handle_request"}


def test_secrets_in_free_texts_are_removed_and_the_texts_are_bounded() -> None:
    secret = "sk-abcdefghijklmnop0123"
    answer = with_expert_report(status=ExpertStatus.UNAVAILABLE, reason=f"401 Authorization: Bearer {secret}")
    answer = answer.model_copy(
        update={"notes": (secret,), "error": ErrorReport(code="x", message=f"password={secret}", remedy="x" * 5000, fields=(secret,))}
    )
    context = make_context(
        session=secret,
        principal=f"https://u:{secret}@h/",
        question=f"why is {secret} refused",
        keep_question=True,
        experts={"grep": ExpertFacts(error="x" * 280 + f" token={secret}", server_name=secret, server_version=secret)},
    )

    text = payload(answer, context)

    assert secret not in text
    assert "abcdefghijkl" not in text
    assert "x" * 301 not in text


def test_text_that_is_not_unicode_can_be_signed() -> None:
    read_statement(payload(with_expert_report(status=ExpertStatus.CRASHED, reason="broke at \ud800")).encode())


@pytest.mark.parametrize("text", [b"1.0", b'[0,{"a":[1.5]}]', b'{"a":NaN}', b"1e3"])
def test_a_float_at_any_depth_is_refused_before_anything_is_signed(text: bytes) -> None:
    with pytest.raises(ReceiptError, match="float") as caught:
        parse_own_statement(text)

    assert caught.value.code == "receipt-with-float"


def test_an_integer_that_two_readers_may_read_in_two_ways_is_refused_before_anything_is_signed() -> None:
    with pytest.raises(ReceiptError) as caught:
        parse_own_statement(b'{"a":9007199254740993}')

    assert caught.value.code == "receipt-with-huge-integer"


@given(st.lists(st.floats() | st.none(), min_size=4, max_size=4), st.floats() | st.none())
def test_whatever_the_scores_an_item_is_bound_by_its_canonical_bytes(scores: list[float | None], native: float | None) -> None:
    answer = make_answer(1)
    item = answer.evidence[0]
    given_scores: dict[str, float | None] = dict(
        zip(("rrf", "precision", "freshness", "scope"), (scores[0] or 0.0, *scores[1:]), strict=True)
    )
    item = item.model_copy(
        update={
            "scores": item.scores.model_copy(update=given_scores),
            "sources": (item.sources[0].model_copy(update={"native_score": native}),),
        }
    )
    answer = answer.model_copy(update={"evidence": (item,)})
    dumped = answer.model_dump(mode="json", by_alias=True, exclude={"receipt"})

    digests = digest_answer(answer)

    assert (digests.response.method, digests.response.sha256) == tolerant_digest(dumped)
    assert (digests.items[0].method, digests.items[0].sha256) == tolerant_digest(dumped["evidence"][0])


def test_a_time_that_is_not_finite_is_refused() -> None:
    answer = make_answer(1)
    endless = answer.model_copy(update={"budget": answer.budget.model_copy(update={"used_ms": float("inf")})})

    with pytest.raises(ReceiptError, match="finite"):
        build(endless)


@given(st.text(), st.text(), st.integers(0, 2**53 - 1), st.text())
def test_whatever_the_texts_the_payload_is_canonical_and_reads_back(reason: str, session: str, latency: int, question: str) -> None:
    answer = with_expert_report(status=ExpertStatus.OK, reason=reason, latency_us=latency, sub_query=question)
    place = prepare_statement(answer, digest_answer(answer), Digest("jcs", "c" * 64), make_context(session=session, question=question), KEY)

    written = place(PLACE)

    assert read_statement(written).position == PLACE
    assert b'"log":"0123456789ab"' in written
    assert json.loads(written)["predicate"]["experts"][0]["latency_us"] == latency
