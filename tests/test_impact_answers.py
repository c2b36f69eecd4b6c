"""The fused answer to a question about edges: callers first, the definition and the imports behind them, each edge marked."""
# ruff: noqa: E501 - the sample files stand on one line each

from __future__ import annotations

from pathlib import Path

import pytest

from search_router.router.opening import open_router
from search_router.schema import Answer, ExpertStatus, Intent
from tests.repositories import make_repository
from tests.scripted_router import environ

pytestmark = pytest.mark.anyio

SHOP = {
    "shop/__init__.py": "from shop.core import load_cart\n",
    "shop/core.py": (
        'def load_cart(key):\n    """load_cart loads; load_cart is loaded."""\n    return key\n\n\ndef reload_all(load_cart_later):\n    return load_cart(1)\n'
    ),
    "shop/notes.md": "load_cart load_cart load_cart\n",
    "shop/imports_only.py": "from shop.core import load_cart\n",
    "shop/mail.py": "class Mail:\n    def load_cart(self):\n        pass\n\n    def send(self):\n        self.load_cart()\n",
}
WEB = {
    "web/page.py": "from shop.core import load_cart\n\n\ndef show():\n    return load_cart(2)\n\n\ndef again():\n    return [load_cart(3)]\n",
    "tests/test_page.py": "from shop.core import load_cart\n\n\ndef test_it():\n    load_cart(4)\n",
}


async def fused(folder: Path, question: str) -> Answer:
    roots = [make_repository(folder / "shop", SHOP), make_repository(folder / "web", WEB)]
    async with open_router(roots=roots, environ=environ(folder), flags=["budget.latency_ms=20000"]) as router:
        return await router.search({"question": question, "limit": 20})


async def test_callers_come_before_the_definition_and_the_imports(tmp_path: Path) -> None:
    answer = await fused(tmp_path, "who calls core.load_cart")
    assert answer.classification is not None and answer.classification.intent is Intent.CROSS_REPO_IMPACT
    found = [(e.path, e.symbol) for e in answer.evidence]
    callers = [
        ("shop/core.py", "reload_all"),
        ("web/page.py", "again"),
        ("web/page.py", "show"),
        ("tests/test_page.py", "test_it"),
    ]
    assert sorted(found[:4]) == sorted(callers)
    assert found[3] == callers[3]
    assert ("shop/core.py", "load_cart") in found[4:]
    first = answer.evidence[0]
    assert {"callgraph", "symbols"} <= {source.expert for source in first.sources}
    assert any(flag.startswith("edge-") for flag in first.flags)
    assert "test" in answer.evidence[3].flags
    report = next(e for e in answer.experts if e.id == "callgraph")
    assert (report.status, report.results) == (ExpertStatus.OK, 4)
    assert not any(e.path == "shop/mail.py" and "callgraph" in {s.expert for s in e.sources} for e in answer.evidence)


async def test_what_a_function_calls_leads_to_the_definitions(tmp_path: Path) -> None:
    answer = await fused(tmp_path, "what does reload_all call")
    assert answer.classification is not None and answer.classification.intent is Intent.CROSS_REPO_IMPACT
    assert (answer.evidence[0].path, answer.evidence[0].symbol) == ("shop/core.py", "load_cart")


async def test_other_questions_do_not_ask_it(tmp_path: Path) -> None:
    answer = await fused(tmp_path, "where is load_cart defined")
    report = next(e for e in answer.experts if e.id == "callgraph")
    assert report.status is ExpertStatus.SKIPPED
