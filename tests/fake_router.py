"""A router that answers at once and by rule, for tests of the front door. What the question says is what it does.

`slow …` takes 30 s unless it is cancelled, with progress; `fail`, `decline`, `empty`, `odd bytes` and `no receipt` do that. The count
of cancelled searches is in the registry, so that a client in another process can see it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import anyio

from search_router.answers import (
    BuildRef,
    ExperimentAnswer,
    FetchAnswer,
    FetchedItem,
    FetchProblem,
    OutcomeAnswer,
    ReceiptAnswer,
    RegisteredExpert,
    RegisteredProject,
    RegistryAnswer,
)
from search_router.errors import ReceiptNotFound, StoreUnavailable
from search_router.router_api import Progress
from search_router.schema import (
    Answer,
    BudgetReport,
    Classification,
    Confidence,
    ConfigRef,
    EmptyReason,
    ErrorReport,
    Evidence,
    ExpertReport,
    ExpertStatus,
    Intent,
    PrecisionClass,
    ReceiptRef,
    Scores,
    Source,
    StageReport,
    Status,
    Tier,
)

CONFIG = ConfigRef(version="search-router@1.0.0", hash="0" * 64)
KNOWN_RECEIPT = "r-1"
ENVELOPE = {"payloadType": "application/vnd.in-toto+json", "payload": "e30=", "signatures": [{"keyid": "k", "sig": "cw=="}]}
ODD_PATH = "caf\udce9/na\udcefve.py"


class FakeRouter:
    """Satisfies RouterApi without a workspace."""

    def __init__(self) -> None:
        self.cancelled = 0
        self.seen: list[dict[str, Any]] = []

    async def search(self, raw: Mapping[str, Any], *, session: str | None, principal: str | None, progress: Progress | None) -> Answer:
        self.seen.append({"raw": dict(raw), "session": session, "principal": principal})
        question = raw.get("question")
        if not isinstance(question, str) or set(raw) - {"question", "scope", "limit", "intent"}:
            return self._refuse(Status.REJECTED, "invalid-request", raw)
        if any("\ud800" <= c <= "\udfff" for c in question):
            return self._refuse(Status.REJECTED, "invalid-encoding", raw)
        match question.split()[0] if question.split() else "":
            case "slow":
                await self._take_long(progress)
            case "fail":
                return self._refuse(Status.FAILED, "all-experts-failed", raw)
            case "decline" | "":
                return self._refuse(Status.DECLINED, "empty-question", raw)
            case "no":
                raise StoreUnavailable("The receipt store is read-only.", remedy="Free some space and ask again.")
            case "crash":
                raise RuntimeError("internal detail")
            case "empty":
                return self._answer(raw, Status.EMPTY, empty_reason=EmptyReason.NO_MATCHES)
            case _:
                pass
        for step in (1, 2, 3):
            if progress is not None:
                await progress(f"expert {step} answered 🧭", step, 3)
        path = ODD_PATH if question.startswith("odd") else "src/搜索.py"
        return self._answer(raw, Status.ANSWERED, evidence=(_evidence(path, question),))

    async def _take_long(self, progress: Progress | None) -> None:
        try:
            if progress is not None:
                await progress("asked 3 experts", 1, 3)
            await anyio.sleep(30)
        except anyio.get_cancelled_exc_class():
            self.cancelled += 1
            raise

    async def fetch(self, raw: Mapping[str, Any], *, session: str | None, principal: str | None) -> FetchAnswer:
        self.seen.append({"raw": dict(raw), "session": session, "principal": principal})
        ids: Any = raw.get("ids")
        if not isinstance(ids, list) or not ids:
            problem = FetchProblem(id="", code="invalid-request", message="ids: give 1 to 20 strings.")
            return FetchAnswer(status=Status.REJECTED, problems=(problem,), config=CONFIG, receipt=_receipt())
        known = [i for i in ids if i == "e1"]
        unknown = [str(i) for i in ids if i != "e1"]
        item = FetchedItem(id="e1", project="p", path="src/a.py", start_line=3, end_line=3, text="def a(): ...\n", fresh=True)
        problems = tuple(FetchProblem(id=i, code="evidence-unavailable", message=f"{i} is gone.") for i in unknown)
        status = Status.ANSWERED if known else Status.FAILED
        return FetchAnswer(status=status, items=(item,) if known else (), problems=problems, config=CONFIG, receipt=_receipt())

    async def registry(self) -> RegistryAnswer:
        session, principal = (self.seen[-1]["session"], self.seen[-1]["principal"]) if self.seen else (None, None)
        expert = RegisteredExpert(
            id="grep",
            kind="grep",
            precision_class=PrecisionClass.LEXICAL,
            engine="ripgrep",
            intents=(Intent.IDENTIFIER,),
            transport="embedded",
            cap_ms=2000,
            freshness="live",
            enabled=True,
            available=True,
            reason=f"cancelled={self.cancelled} session={session} principal={principal}",
            priors={Intent.IDENTIFIER.value: 1.0},
        )
        project = RegisteredProject(id="p", root="/p", kind="directory")
        return RegistryAnswer(build=BuildRef(version="0"), experts=(expert,), projects=(project,), config=CONFIG)

    async def receipt(self, receipt_id: str) -> ReceiptAnswer:
        if receipt_id != KNOWN_RECEIPT:
            raise ReceiptNotFound(f"No receipt {receipt_id!r}.", remedy="Use the receipt id of an answer.")
        return ReceiptAnswer(id=receipt_id, seq=1, log="main", keyid="k", envelope=ENVELOPE, statement={"_type": "s", "path": ODD_PATH})

    async def report_outcome(self, raw: Mapping[str, Any], *, session: str | None, principal: str | None) -> OutcomeAnswer:
        known = raw.get("receipt") == KNOWN_RECEIPT
        error = None if known else ErrorReport(code="unknown-receipt", message="No such receipt.")
        return OutcomeAnswer(status=Status.ANSWERED if known else Status.DECLINED, error=error, config=CONFIG)

    def render_outcome(self, answer: OutcomeAnswer) -> str:
        return "taken" if answer.error is None else answer.error.message

    async def experiments(self, paper_slug: str | None = None) -> ExperimentAnswer:
        return ExperimentAnswer(paper_slug=paper_slug or "fake", retention="nothing")

    def render(self, answer: Answer) -> str:
        lines = [f"{answer.status.value}: {len(answer.evidence)} item(s) 🧭 שלום"]
        lines += [f"{item.project}/{item.path}:{item.start_line} [{item.tier.value}] {item.nuance}" for item in answer.evidence]
        return "\n".join(lines)

    def render_fetch(self, answer: FetchAnswer) -> str:
        items = [f"{item.path}\n{item.start_line}: {item.text}" for item in answer.items]
        return "\n".join([*items, *(f"{p.code}: {p.message} {p.remedy}" for p in answer.problems)])

    def render_registry(self, answer: RegistryAnswer) -> str:
        return "\n".join(f"{e.id}: {e.reason}" for e in answer.experts)

    def _refuse(self, status: Status, code: str, raw: Mapping[str, Any]) -> Answer:
        fields = tuple(sorted(str(k) for k in raw))
        error = ErrorReport(code=code, message=f"Refused {', '.join(fields)}.", remedy="Mend the request.", fields=fields)
        return self._answer(raw, status, error=error)

    def _answer(self, raw: Mapping[str, Any], status: Status, **more: Any) -> Answer:
        return Answer(
            status=status,
            classification=Classification(intent=Intent.IDENTIFIER, confidence=0.9, abstained=False, runner_up=None, rules=()),
            experts=(
                ExpertReport(id="grep", status=ExpertStatus.OK, latency_us=10, results=1, sub_query="literal: x", reason="prior 1.0"),
            ),
            stages=(StageReport.model_validate({"stage": "fuse", "active": True, "reason": "", "in": 1, "out": 1, "ms": 0.1}),),
            budget=BudgetReport(latency_ms=3000, used_ms=1.0, max_experts=6, asked=1),
            config=CONFIG,
            receipt=_receipt(),
            **more,
        )


def _receipt() -> ReceiptRef:
    return ReceiptRef(id=KNOWN_RECEIPT, seq=1, log="main", keyid="k", envelope=ENVELOPE)


def _evidence(path: str, snippet: str) -> Evidence:
    return Evidence(
        id="e1",
        kind="function",
        project="p",
        path=path,
        start_line=3,
        end_line=9,
        snippet=snippet,
        tier=Tier.LEXICAL_EXACT,
        nuance="One lexical source.",
        confidence=Confidence.MEDIUM,
        sources=(Source(expert="grep", rank=1),),
        scores=Scores(rrf=0.016),
    )
