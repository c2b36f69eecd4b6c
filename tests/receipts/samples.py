"""Real-looking answers and a store to put their receipts in."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from search_router.canonical import tolerant_digest
from search_router.receipts.body import Build, ExpertFacts, FusionFacts, ReceiptContext, digest_answer, prepare_statement
from search_router.receipts.keys import SigningKey
from search_router.receipts.prepared import PreparedStatement
from search_router.receipts.statement import Digest
from search_router.schema import (
    Answer,
    BudgetReport,
    Classification,
    Confidence,
    ConfigRef,
    Evidence,
    ExpertReport,
    ExpertStatus,
    Intent,
    RuleFired,
    Scores,
    Source,
    StageReport,
    Status,
    Tier,
)

OK = ExpertStatus.OK
QUESTION = "where does handle_request validate the session token?"
REQUEST = {"question": QUESTION, "intent": "unknown"}
SNIPPET = "def handle_request(session):\n    return VERY_PRIVATE_SOURCE_TEXT\n"


def make_answer(items: int = 10, *, status: Status = Status.ANSWERED) -> Answer:
    return Answer(
        status=status,
        classification=Classification(
            intent=Intent.TYPED_SYMBOL,
            confidence=0.6180339887,
            abstained=False,
            runner_up=Intent.CONCEPTUAL,
            rules=(RuleFired(rule="snake-case", intent=Intent.TYPED_SYMBOL, weight=700),),
        ),
        evidence=tuple(
            Evidence(
                id=f"shop:src/handlers_{n}.py:10-42",
                kind="function",
                project="shop",
                path=f"src/handlers_{n}.py",
                start_line=10,
                end_line=42,
                symbol="handle_request",
                language="python",
                snippet=SNIPPET,
                tier=Tier.SYMBOL_CONFIRMED,
                nuance="Defined here, and two experts agree.",
                confidence=Confidence.HIGH,
                sources=(Source(expert="symbols", rank=n + 1), Source(expert="grep", rank=n + 2, native_score=3.25)),
                scores=Scores(rrf=1 / (61 + n), precision=0.8, freshness=1.0),
                content_hash="c" * 64,
            )
            for n in range(items)
        ),
        experts=(
            ExpertReport(id="symbols", status=OK, latency_us=41_000, results=items, sub_query="symbol: handle_request", reason="prior 1.0"),
            ExpertReport(id="grep", status=OK, latency_us=12_345, results=items, sub_query="literal: handle_request", reason="prior 0.6"),
            ExpertReport(id="history", status=ExpertStatus.SKIPPED, reason="prior 0.1 is below the gate's 0.2"),
        ),
        stages=tuple(
            StageReport.model_validate({"stage": name, "active": True, "reason": "ran", "in": 3, "out": 2, "ms": 0.123456})
            for name in ("classify", "plan", "fan-out", "identify", "score", "fuse", "tier")
        ),
        budget=BudgetReport(latency_ms=3000, used_ms=53.77, max_experts=6, asked=2),
        config=ConfigRef(version="search-router@1.0.0", hash="d" * 64),
    )


def make_context(**changes: object) -> ReceiptContext:
    facts: dict[str, object] = {
        "build": Build(commit="0" * 40, dirty=False),
        "code_version": "0.1.0",
        "started_unix_us": 1_700_000_000_000_000,
        "session": "s-1",
        "question": QUESTION,
        "experts": {"grep": ExpertFacts(server_name="ripgrep", server_version="15.2.0", bytes_cut=7)},
        "fusion": FusionFacts(k=60, weights_pm={"symbols": 1000, "grep": 600}, bonuses_pm={"corroboration": 250}),
    }
    return ReceiptContext(**(facts | changes))  # type: ignore[arg-type] - keywords by name


def make_payload(key: SigningKey, answer: Answer | None = None, context: ReceiptContext | None = None) -> PreparedStatement:
    answer = answer or make_answer(1)
    return prepare_statement(answer, digest_answer(answer), request_digest(), context or make_context(), key)


def request_digest() -> Digest:
    return Digest(*tolerant_digest(REQUEST))


class Ticks:
    """A clock that goes one microsecond a reading, from a start that can be set."""

    def __init__(self, start: int = 1_700_000_000_000_000) -> None:
        self.now = start

    def __call__(self) -> int:
        self.now += 1
        return self.now


def nonces(prefix: str = "") -> Callable[[], str]:
    """Distinct nonces; two stores need distinct prefixes, of at most 4 hexadecimal digits."""
    counter: Iterator[int] = itertools.count(1)
    return lambda: f"{prefix:0<4}{next(counter):08x}".ljust(32, "0")


def now_us() -> int:
    return time.time_ns() // 1000


def sqlite_files(directory: Path) -> list[Path]:
    return sorted(directory.glob("*.sqlite"))
