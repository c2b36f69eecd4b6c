"""Which uses jedi confirms in a real work tree, and that its worker is bounded, reused, replaced and ended."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import AsyncGenerator
from pathlib import Path

import anyio
import pytest

from search_router.adapters.local.python_types import PythonTypesExpert
from search_router.adapters.local.python_types_child import FileJob, JediChild
from search_router.adapters.local.symbol_index import SymbolIndex
from search_router.adapters.local.symbol_store import DerivedStore
from search_router.config.experts import PythonTypesConfig
from search_router.errors import ExpertError, FailureClass
from search_router.schema import ExpertCall, ExpertResult, ExpertStatus, Intent, PrecisionClass, Project, QueryForm, SubQuery
from tests.repositories import make_repository

pytestmark = pytest.mark.anyio

CART = """class Cart:
    def total(self):
        return 1


class Basket:
    def total(self):
        return 2


def open_cart() -> Cart:
    return Cart()
"""
PAY = """from shop.cart import Basket, open_cart
from shop.cart import Cart as Trolley


def pay():
    return open_cart().total()


def weigh():
    return Basket().total()


def guess(thing):
    return thing.total()


class Till:
    cart = Trolley()

    def ring(self):
        return self.cart.total
"""
FILES = {"shop/__init__.py": "", "shop/cart.py": CART, "shop/pay.py": PAY, "web/app.ts": "export function total() { return 1 }\n"}


def config(**more: object) -> PythonTypesConfig:
    block = {
        "kind": "python-types",
        "precision_class": PrecisionClass.TYPED,
        "engine": "jedi",
        "languages": ("python",),
        "intents": (Intent.TYPED_SYMBOL,),
        "cap_ms": 2500,
        "max_places": 100,
        "max_worker_mb": 1024,
        "idle_seconds": 60,
    }
    return PythonTypesConfig.model_validate(block | more)


def make_expert(cache: Path, **more: object) -> PythonTypesExpert:
    return PythonTypesExpert("python-types", config(**more), cache, SymbolIndex(DerivedStore(cache), max_file_bytes=1 << 16, workers=1))


@pytest.fixture(scope="session")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One cache for all tests: what jedi parses of the standard library takes most of a cold child's time."""
    return tmp_path_factory.mktemp("cache")


@pytest.fixture
async def expert(cache: Path) -> AsyncGenerator[PythonTypesExpert]:
    made = make_expert(cache)
    yield made
    await made.aclose()


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project("shop", make_repository(tmp_path / "shop", FILES), "git")


def ask(
    *projects: Project,
    names: tuple[str, ...] = ("Cart.total",),
    text: str = "what uses Cart.total",
    intent: Intent = Intent.CROSS_REPO_IMPACT,
    path: str | None = None,
    budget_ms: int = 60_000,
) -> ExpertCall:
    return ExpertCall("python-types", SubQuery(QueryForm.SYMBOL, names, text), projects, path, None, 50, budget_ms, 1000, "a test", intent)


def places(result: ExpertResult) -> list[tuple[str | None, int | None, str | None, str | None]]:
    return [(hit.path, hit.start_line, hit.symbol, hit.kind) for hit in result.hits]


async def test_only_uses_that_lead_to_the_definition_are_given_with_their_callers(expert: PythonTypesExpert, project: Project) -> None:
    result = await expert.search(ask(project))
    assert places(result) == [
        ("shop/pay.py", 6, "pay", "call"),
        ("shop/pay.py", 21, "Till.ring", "use"),
        ("shop/cart.py", 2, "Cart.total", "method"),
    ]
    assert all(hit.is_exact and hit.content_hash for hit in result.hits)
    assert (result.server_name, result.partial) == ("jedi", None)


async def test_the_same_method_of_another_class_is_another_thing(expert: PythonTypesExpert, project: Project) -> None:
    result = await expert.search(ask(project, names=("Basket.total",)))
    assert [hit.symbol for hit in result.hits] == ["weigh", "Basket.total"]


async def test_imports_answer_what_uses_and_not_who_calls(expert: PythonTypesExpert, project: Project) -> None:
    uses = await expert.search(ask(project, names=("open_cart",), text="what uses open_cart"))
    calls = await expert.search(ask(project, names=("open_cart",), text="who calls open_cart"))
    assert [hit.kind for hit in uses.hits] == ["call", "import", "function"]
    assert [hit.kind for hit in calls.hits] == ["call", "function"]


async def test_a_question_for_a_symbol_lists_its_definition_first(expert: PythonTypesExpert, project: Project) -> None:
    result = await expert.search(ask(project, intent=Intent.TYPED_SYMBOL))
    assert (result.hits[0].symbol, result.hits[0].is_definition) == ("Cart.total", True)


async def test_uses_in_a_project_beside_it_are_confirmed(expert: PythonTypesExpert, project: Project, tmp_path: Path) -> None:
    text = "from shop.cart import open_cart\n\n\ndef check_out():\n    return open_cart()\n"
    site = Project("site", make_repository(tmp_path / "site", {"site.py": text, "shopping.py": CART}), "git")
    result = await expert.search(ask(project, site, names=("open_cart",), text="who calls open_cart"))
    assert [(hit.project, hit.symbol) for hit in result.hits if hit.kind == "call"] == [("shop", "pay")]
    own = await expert.search(ask(site, project, names=("check_out",)))
    assert own.hits == ()


@pytest.mark.parametrize("names", [("nowhere",), ("total_nowhere",), ("Other.total",)])
async def test_no_child_starts_for_a_name_that_no_python_file_defines(
    expert: PythonTypesExpert, project: Project, names: tuple[str, ...]
) -> None:
    assert (await expert.search(ask(project, names=names))).hits == ()
    assert expert.children_started == 0


async def test_health_starts_nothing_and_says_when_there_is_no_python(expert: PythonTypesExpert, project: Project, tmp_path: Path) -> None:
    assert (await expert.health((project,))).available
    site = Project("site", make_repository(tmp_path / "site", {"web/app.ts": FILES["web/app.ts"]}), "git")
    await expert.search(ask(site))
    told = await expert.health((site,))
    assert (told.available, told.failure, expert.children_started) == (False, ExpertStatus.UNAVAILABLE, 0)


async def test_without_jedi_it_is_unconfigured_and_says_what_to_install(tmp_path: Path, project: Project) -> None:
    index = SymbolIndex(DerivedStore(tmp_path / "cache"), max_file_bytes=1 << 16, workers=1)
    expert = PythonTypesExpert("python-types", config(), tmp_path / "cache", index, find_jedi=lambda: None)
    told = await expert.health((project,))
    assert (told.available, told.failure) == (False, ExpertStatus.UNCONFIGURED)
    assert "pip install 'search-router[typed]'" in told.reason
    with pytest.raises(ExpertError) as caught:
        await expert.search(ask(project))
    assert caught.value.failure is FailureClass.UNCONFIGURED
    await expert.aclose()


async def test_one_child_answers_many_questions(expert: PythonTypesExpert, project: Project) -> None:
    first = await expert.search(ask(project))
    again = await expert.search(ask(project))
    assert (first, expert.children_started) == (again, 1)


async def test_an_edit_between_two_questions_is_seen(expert: PythonTypesExpert, project: Project) -> None:
    await expert.search(ask(project))
    (project.root / "shop/pay.py").write_text(PAY.replace("Basket().total()", "open_cart().total()"))
    assert [hit.symbol for hit in (await expert.search(ask(project))).hits][:2] == ["pay", "weigh"]


async def test_a_limit_of_places_is_said(cache: Path, project: Project) -> None:
    expert = make_expert(cache, max_places=1)
    result = await expert.search(ask(project))
    assert result.partial == "jedi looked at 1 of 4 places (the limit of 1)"
    await expert.aclose()


async def test_time_that_is_over_before_anything_was_resolved_is_no_empty_answer(cache: Path, project: Project) -> None:
    expert = make_expert(cache)
    await expert.search(ask(project, names=("nowhere",)))  # indexed, and no child yet
    with pytest.raises(ExpertError) as caught:
        await expert.search(ask(project, budget_ms=60))
    assert caught.value.failure is FailureClass.TIMEOUT
    assert (await expert.search(ask(project))).hits
    assert expert.children_started == 1
    await expert.aclose()


async def test_a_scope_that_leaves_the_project_is_refused(expert: PythonTypesExpert, project: Project) -> None:
    with pytest.raises(ExpertError) as caught:
        await expert.search(ask(project, path="/etc"))
    assert caught.value.failure is FailureClass.REJECTED


# ------------------------------------------------------------------ the child


def job(project: Project, path: str = "shop/pay.py") -> FileJob:
    root = os.path.realpath(project.root)
    return FileJob(root, (), path, "total", (6, 10, 14), ((f"{root}/shop/cart.py", 2, 3),))


def worker_of(project: Project) -> int:
    """The process that runs the worker for this test: a child of ours with its program in its command line."""
    mine = os.getpid()
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                command = (entry / "cmdline").read_bytes()
                parent = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
            except (OSError, ValueError):
                continue
            if b"python_types_worker" in command and parent == mine:
                return int(entry.name)
    raise AssertionError("no worker runs")


@pytest.fixture
async def child(cache: Path) -> AsyncGenerator[JediChild]:
    made = JediChild(cache / "jedi", max_mb=1024, idle_seconds=60)
    yield made
    await made.aclose()


async def test_a_child_that_dies_costs_one_job_and_is_started_anew(child: JediChild, project: Project) -> None:
    assert (await child.resolve(job(project))).places == ((6, 0),)
    os.kill(worker_of(project), signal.SIGKILL)
    with pytest.raises(ExpertError) as caught:
        await child.resolve(job(project))
    assert caught.value.failure is FailureClass.CRASHED
    assert "signal 9" in caught.value.message and "shop/pay.py" in caught.value.message
    assert (await child.resolve(job(project))).places == ((6, 0),)
    assert child.started == 2


async def test_a_cache_that_a_killed_process_left_half_written_costs_nothing_but_time(tmp_path: Path, project: Project) -> None:
    cache = tmp_path / "jedi"
    for _ in range(2):
        child = JediChild(cache, max_mb=1024, idle_seconds=60)
        assert (await child.resolve(job(project))).places == ((6, 0),)
        assert child.started == 1
        await child.aclose()
        for file in cache.rglob("*.pkl"):
            file.write_bytes(file.read_bytes()[:200])


async def test_a_caller_that_leaves_does_not_mix_up_the_answers(child: JediChild, project: Project) -> None:
    await child.resolve(job(project))
    with anyio.move_on_after(0):
        await child.resolve(job(project))
    leaving = asyncio.create_task(child.resolve(job(project)))
    await asyncio.sleep(0)
    leaving.cancel()
    answers = await asyncio.gather(*(child.resolve(job(project, path)) for path in ("shop/cart.py", "shop/pay.py")))
    assert ([a.places for a in answers], child.started) == ([(), ((6, 0),)], 1)


async def test_a_child_without_work_is_ended_and_the_next_job_starts_another(cache: Path, project: Project) -> None:
    child = JediChild(cache / "jedi", max_mb=1024, idle_seconds=0.05)
    await child.resolve(job(project))
    with anyio.fail_after(20):
        while child.is_running:
            await anyio.sleep(0.01)
    with pytest.raises(AssertionError, match="no worker"):
        worker_of(project)
    await child.resolve(job(project))
    assert child.started == 2
    await child.aclose()


async def test_a_child_that_has_grown_large_is_replaced(cache: Path, project: Project) -> None:
    child = JediChild(cache / "jedi", max_mb=1, idle_seconds=60)
    await child.resolve(job(project))
    await child.resolve(job(project))
    assert child.started == 2
    await child.aclose()


async def test_closing_ends_the_child_and_answers_who_waits(cache: Path, project: Project) -> None:
    child = JediChild(cache / "jedi", max_mb=1024, idle_seconds=60)
    await child.resolve(job(project))
    waiting = [asyncio.create_task(child.resolve(job(project))) for _ in range(3)]
    await asyncio.sleep(0)
    await child.aclose()
    await child.aclose()
    outcomes = await asyncio.gather(*waiting, return_exceptions=True)
    assert all(isinstance(o, ExpertError) and o.failure is FailureClass.UNAVAILABLE for o in outcomes)
    with pytest.raises(AssertionError, match="no worker"):
        worker_of(project)
    with pytest.raises(ExpertError):
        await child.resolve(job(project))


async def test_files_that_cannot_be_read_and_hostile_ones_cost_their_places_only(child: JediChild, project: Project) -> None:
    (project.root / "shop/odd.py").write_text("total(" * 3000)
    (project.root / "shop/binary.py").write_bytes(b"total\0" * 9)
    for path in ("shop/gone.py", "../outside.py", "shop/binary.py", "shop/odd.py"):
        assert (await child.resolve(job(project, path))).places == ()
    assert ((await child.resolve(job(project))).places, child.started) == (((6, 0),), 1)
