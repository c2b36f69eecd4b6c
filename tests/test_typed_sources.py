"""Two typed experts in one answer: what they agree on is typed-graph-confirmed, when their engines differ."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import pytest

from search_router.router.opening import open_router
from search_router.router.service import Router
from search_router.schema import Answer, Confidence, ExpertStatus, Tier
from tests.adapters.local.scip_writer import Document, python, write_index
from tests.command_line import run_cli
from tests.repositories import make_repository
from tests.scripted_router import environ

pytestmark = pytest.mark.anyio

CART = "class Cart:\n    def total(self) -> int:\n        return 1\n"
PAY = """from shop.cart import Cart


def pay(cart: Cart) -> int:
    return cart.total()


def guess(thing):
    return thing.total()
"""
FILES = {"shop/__init__.py": "", "shop/cart.py": CART, "shop/pay.py": PAY, ".gitignore": "index.scip*\n"}
TOTAL = python("shop.cart/Cart#total().")
FLAGS = ("budget.latency_ms=60000", "experts.scip.cap_ms=60000", "experts.python-types.cap_ms=60000", "experts.symbols.cap_ms=60000")


def workspace(folder: Path, engine: str) -> Path:
    root = make_repository(folder / "shop", FILES)
    cart = Document("shop/cart.py").occurrence(TOTAL, (1, 8, 13), 1)
    pay = Document("shop/pay.py").occurrence(TOTAL, (4, 16, 21))
    seen = {path: hashlib.sha256(text.encode()).hexdigest() for path, text in FILES.items()}
    write_index(root / "index.scip", cart, pay, sidecar={"engine": engine, "files": seen})
    return root


async def ask(router: Router, question: str = "who calls Cart.total") -> Answer:
    return await router.search({"question": question, "intent": "cross-repo-impact"})


def tiers(answer: Answer) -> dict[str | None, Tier]:
    return {e.symbol: e.tier for e in answer.evidence}


async def test_a_caller_that_two_engines_resolve_is_typed_graph_confirmed(tmp_path: Path) -> None:
    async with open_router(roots=[workspace(tmp_path, "ty")], flags=FLAGS, environ=environ(tmp_path)) as router:
        answer = await ask(router)
    assert {e.id: e.status for e in answer.experts if e.id in ("scip", "python-types")} == dict.fromkeys(
        ("scip", "python-types"), ExpertStatus.OK
    )
    pay = next(e for e in answer.evidence if e.symbol == "pay")
    assert (pay.tier, pay.confidence, "stale-index" in pay.flags) == (Tier.TYPED_GRAPH_CONFIRMED, Confidence.HIGH, False)
    assert {"scip", "python-types"} <= {s.expert for s in pay.sources}
    assert pay.nuance.startswith("Typed engines agree")
    assert tiers(answer)["Cart.total"] is Tier.TYPED_GRAPH_CONFIRMED
    assert tiers(answer)["guess"] is not Tier.TYPED_GRAPH_CONFIRMED
    symbols = [e.symbol for e in answer.evidence]
    assert symbols.index("pay") < symbols.index("guess")


async def test_two_experts_on_one_engine_are_one_source(tmp_path: Path) -> None:
    async with open_router(roots=[workspace(tmp_path, "jedi")], flags=FLAGS, environ=environ(tmp_path)) as router:
        answer = await ask(router)
    assert Tier.TYPED_GRAPH_CONFIRMED not in tiers(answer).values()
    assert tiers(answer)["pay"] is Tier.HYBRID_CONFIRMED


async def test_an_edit_after_indexing_flags_what_the_index_said(tmp_path: Path) -> None:
    root = workspace(tmp_path, "ty")
    (root / "shop/pay.py").write_text("\n" + PAY)
    async with open_router(roots=[root], flags=FLAGS, environ=environ(tmp_path)) as router:
        answer = await ask(router)
    pay = next(e for e in answer.evidence if e.symbol == "pay")
    assert (pay.confidence, "stale-index" in pay.flags) == (Confidence.LOW, True)


async def test_without_an_index_the_expert_is_left_out_with_its_remedy_and_the_others_answer(tmp_path: Path) -> None:
    root = make_repository(tmp_path / "shop", FILES)
    async with open_router(roots=[root], flags=FLAGS, environ=environ(tmp_path)) as router:
        answer = await ask(router)
    scip = next(e for e in answer.experts if e.id == "scip")
    assert (scip.status, scip.results, "search-router index scip" in scip.reason) == (ExpertStatus.SKIPPED, 0, True)
    assert answer.evidence


async def test_a_missing_optional_source_is_no_fault_of_the_installation(tmp_path: Path) -> None:
    root = make_repository(tmp_path / "shop", FILES)
    found = run_cli(tmp_path, "doctor", "--json", "--root", str(root))
    rows = {row["what"]: row["ok"] for row in found.json}
    assert (found.code, rows["expert scip"], rows["expert python-types"]) == (0, True, True)


async def test_the_measurement_counts_callers_against_an_index_of_another_engine(tmp_path: Path) -> None:
    root = workspace(tmp_path, "ty")
    calls = Document("shop/pay.py").occurrence(TOTAL, (4, 16, 21)).occurrence(python("shop.pay/pay()."), (3, 4, 7), 1, around=(3, 0, 4, 24))
    calls.occurrence(TOTAL, (8, 17, 22)).occurrence(python("shop.pay/guess()."), (7, 4, 9), 1, around=(7, 0, 8, 25))
    oracle = write_index(tmp_path / "oracle.scip", Document("shop/cart.py").occurrence(TOTAL, (1, 8, 13), 1, around=(1, 4, 2, 16)), calls)
    ended = run_cli(tmp_path, "bench", "impact", "--index", str(oracle), "--root", str(root), "--json")
    result = json.loads(ended.stdout)
    assert (result["oracle"], result["indexes"], result["circular"]) == ("pyright", ["ty"], False)
    assert (result["asked"], result["callers"]) == (1, 2)
    assert result["with_typed_typed_items"] | {"items": 0} == {
        "recall": 0.5,
        "precision_calls": 1.0,
        "precision_uses": 1.0,
        "r_precision": 0.5,
        "items": 0,
        "questions": 1,
        "without_items": 0,
    }
    assert result["without_typed"]["recall"] == 1.0
