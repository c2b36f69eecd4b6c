"""What the scip expert says about names of a real work tree, and what it says of the age of what it says."""

from __future__ import annotations

import hashlib
import os
from collections.abc import AsyncGenerator
from pathlib import Path

import pytest

from search_router.adapters.local.scip import ScipExpert
from search_router.adapters.local.scip_lookup import stands_there
from search_router.adapters.local.scip_reader import Occurrence
from search_router.adapters.local.symbol_index import SymbolIndex
from search_router.adapters.local.symbol_store import DerivedStore
from search_router.config.experts import ScipConfig
from search_router.errors import ExpertError, FailureClass
from search_router.schema import ExpertCall, ExpertResult, ExpertStatus, Hit, Intent, PrecisionClass, Project, QueryForm, SubQuery
from tests.adapters.local.scip_writer import Document, python, write_index
from tests.repositories import commit_all, make_repository, write_files

pytestmark = pytest.mark.anyio

CART = "class Cart:\n    def total(self):\n        return 1\n\n\nclass Basket:\n    def total(self):\n        return 2\n"
PAY = """from shop.cart import Cart


def pay(cart):
    return cart.total()


def hand_on(cart):
    return map(cart.total, [])


print(Cart().total())
"""
FILES = {"shop/cart.py": CART, "shop/pay.py": PAY, "tests/test_pay.py": "def test_pay():\n    assert Cart().total() == 1\n"}
CART_CLASS, TOTAL, BASKET_TOTAL = python("shop.cart/Cart#"), python("shop.cart/Cart#total()."), python("shop.cart/Basket#total().")


def documents() -> tuple[Document, ...]:
    cart = Document("shop/cart.py").occurrence(CART_CLASS, (0, 6, 10), 1).occurrence(TOTAL, (1, 8, 13), 1)
    cart.occurrence(BASKET_TOTAL, (6, 8, 13), 1).implements(BASKET_TOTAL, TOTAL)
    pay = Document("shop/pay.py").occurrence(CART_CLASS, (0, 22, 26), 2).occurrence(TOTAL, (4, 16, 21)).occurrence(TOTAL, (8, 20, 25))
    pay.occurrence(CART_CLASS, (11, 6, 10)).occurrence(TOTAL, (11, 13, 18))
    test = Document("tests/test_pay.py").occurrence(CART_CLASS, (1, 11, 15)).occurrence(TOTAL, (1, 18, 23))
    return cart, pay, test


def config(**more: object) -> ScipConfig:
    block = {
        "kind": "scip",
        "precision_class": PrecisionClass.TYPED,
        "engine": "scip",
        "intents": (Intent.TYPED_SYMBOL,),
        "cap_ms": 2500,
        "files": ("index.scip", "*/index.scip"),
        "max_index_bytes": 1 << 30,
    }
    return ScipConfig.model_validate(block | more)


@pytest.fixture
async def expert(tmp_path: Path) -> AsyncGenerator[ScipExpert]:
    index = SymbolIndex(DerivedStore(tmp_path / "cache"), max_file_bytes=1 << 16, workers=1)
    made = ScipExpert("scip", config(), tmp_path / "cache", index)
    yield made
    await made.aclose()


@pytest.fixture
def project(tmp_path: Path) -> Project:
    root = make_repository(tmp_path / "shop", FILES)
    (root / ".git" / "info" / "exclude").write_text("index.scip*\n")
    write_index(root / "index.scip", *documents())
    return Project("shop", root, "git")


def ask(
    *projects: Project,
    names: tuple[str, ...] = ("Cart.total",),
    text: str = "what uses Cart.total",
    intent: Intent = Intent.CROSS_REPO_IMPACT,
    path: str | None = None,
    limit: int = 50,
) -> ExpertCall:
    sub_query = SubQuery(QueryForm.SYMBOL, names, text)
    return ExpertCall("scip", sub_query, projects, path, None, limit, 20_000, 1000, "a test", intent)


def places(result: ExpertResult) -> list[tuple[str | None, int | None, str | None, str | None]]:
    return [(hit.path, hit.start_line, hit.symbol, hit.kind) for hit in result.hits]


def only(result: ExpertResult, path: str) -> Hit:
    (hit,) = [hit for hit in result.hits if hit.path == path and not hit.is_definition]
    return hit


async def test_impact_lists_callers_first_then_the_definition_and_what_implements_it(expert: ScipExpert, project: Project) -> None:
    result = await expert.search(ask(project))
    assert places(result) == [
        ("shop/pay.py", 5, "pay", "call"),
        ("shop/pay.py", 12, None, "call"),
        ("shop/pay.py", 9, "hand_on", "use"),
        ("tests/test_pay.py", 2, "test_pay", "call"),
        ("shop/cart.py", 2, "Cart.total", "method"),
        ("shop/cart.py", 7, "Basket.total", "implementation"),
    ]
    assert {hit.engine for hit in result.hits} == {"pyright"}
    assert [hit.is_exact for hit in result.hits] == [True] * 5 + [False]
    assert (result.server_name, result.partial, result.notes) == ("scip-python", None, ())


async def test_a_question_for_a_symbol_lists_the_definition_first(expert: ScipExpert, project: Project) -> None:
    result = await expert.search(ask(project, intent=Intent.TYPED_SYMBOL))
    assert [(hit.symbol, hit.is_definition) for hit in result.hits][:2] == [("Cart.total", True), ("Basket.total", True)]


async def test_another_class_with_the_same_method_is_another_thing(expert: ScipExpert, project: Project) -> None:
    result = await expert.search(ask(project, names=("Basket.total",)))
    assert places(result) == [("shop/cart.py", 7, "Basket.total", "method")]


async def test_case_and_underscores_are_overlooked_where_nothing_is_spelled_so(expert: ScipExpert, project: Project) -> None:
    assert (await expert.search(ask(project, names=("Other.TO_TAL",)))).hits == ()
    loose = await expert.search(ask(project, names=("TO_TAL",)))
    assert len(loose.hits) == 6
    assert not any(hit.is_exact for hit in loose.hits)


async def test_an_import_is_an_answer_to_what_uses_but_not_to_who_calls(expert: ScipExpert, project: Project) -> None:
    uses = await expert.search(ask(project, names=("Cart",), text="what uses Cart"))
    calls = await expert.search(ask(project, names=("Cart",), text="who calls Cart"))
    assert ("shop/pay.py", 1, None, "import") in places(uses)
    assert [p for p in places(uses) if p not in places(calls)] == [("shop/pay.py", 1, None, "import")]


async def test_a_constructor_stands_for_its_class(expert: ScipExpert, project: Project) -> None:
    made = Document("shop/pay.py").occurrence(python("shop.cart/Cart#__init__()."), (11, 6, 10))
    write_index(project.root / "index.scip", *documents()[:1], made)
    result = await expert.search(ask(project, names=("Cart",)))
    assert ("shop/pay.py", 12, None, "call") in places(result)


async def test_the_scope_narrows_uses_and_definitions(expert: ScipExpert, project: Project) -> None:
    assert {hit.path for hit in (await expert.search(ask(project, path="tests"))).hits} == {"tests/test_pay.py"}
    with pytest.raises(ExpertError) as caught:
        await expert.search(ask(project, path="../other"))
    assert caught.value.failure is FailureClass.REJECTED


async def test_what_an_index_says_of_files_outside_or_ignored_is_left_out_and_counted(expert: ScipExpert, project: Project) -> None:
    outside = [Document(path).occurrence(TOTAL, (0, 0, 5)) for path in ("../secret.py", "/etc/passwd", ".git/config", "gone.py")]
    write_files(project.root, {"ignored.py": PAY, ".gitignore": "ignored.py\n"})
    write_index(project.root / "index.scip", *documents(), *outside, Document("ignored.py").occurrence(TOTAL, (4, 16, 21)))
    result = await expert.search(ask(project))
    assert {hit.path for hit in result.hits} == {"shop/pay.py", "shop/cart.py", "tests/test_pay.py"}
    assert [note for note in result.notes if note.startswith("5 places")] == list(result.notes)


async def test_nothing_found_is_an_answer_and_no_index_is_a_failure(expert: ScipExpert, project: Project, tmp_path: Path) -> None:
    assert (await expert.search(ask(project, names=("nowhere",)))).hits == ()
    bare = Project("bare", make_repository(tmp_path / "bare", FILES), "git")
    with pytest.raises(ExpertError) as caught:
        await expert.search(ask(bare))
    assert caught.value.failure is FailureClass.INDEX_MISSING
    assert "index scip" in caught.value.remedy


async def test_health_is_about_files_only(expert: ScipExpert, project: Project, tmp_path: Path) -> None:
    bare = Project("bare", make_repository(tmp_path / "bare", FILES), "git")
    there, missing = await expert.health((project, bare)), await expert.health((bare,))
    assert (there.available, there.reason) == (True, "1 indexes")
    assert (missing.available, missing.failure) == (False, ExpertStatus.INDEX_MISSING)


async def test_a_broken_index_is_a_failure_alone_and_a_gap_beside_a_sound_one(expert: ScipExpert, project: Project) -> None:
    whole = (project.root / "index.scip").read_bytes()
    (project.root / "index.scip").write_bytes(whole[:-2])
    with pytest.raises(ExpertError) as caught:
        await expert.search(ask(project))
    assert caught.value.failure is FailureClass.PROTOCOL_ERROR
    (project.root / "web").mkdir()
    write_index(project.root / "web" / "index.scip", *documents(), root=project.root.as_uri())
    result = await expert.search(ask(project))
    assert len(result.hits) == 6
    assert result.partial is not None and "no SCIP index, or a cut one" in result.partial


async def test_an_index_in_a_folder_counts_from_there(expert: ScipExpert, project: Project) -> None:
    (project.root / "index.scip").unlink()
    write_index(project.root / "shop" / "index.scip", Document("pay.py").occurrence(TOTAL, (4, 16, 21)), root="file:///elsewhere")
    assert [hit.path for hit in (await expert.search(ask(project))).hits] == ["shop/pay.py"]


# ------------------------------------------------------------------ freshness


async def test_a_file_older_than_the_index_is_what_the_index_saw(expert: ScipExpert, project: Project) -> None:
    hit = only(await expert.search(ask(project)), "tests/test_pay.py")
    assert hit.content_hash == hashlib.sha256((project.root / "tests/test_pay.py").read_bytes()).hexdigest()
    assert hit.flags == ()


async def test_a_newer_file_has_no_known_age_and_is_stale_where_the_name_is_gone(expert: ScipExpert, project: Project) -> None:
    later = (project.root / "index.scip").stat().st_mtime_ns + 10**9
    for name, text in (("tests/test_pay.py", FILES["tests/test_pay.py"] + "\n# more\n"), ("shop/pay.py", "\n\n" + PAY)):
        (project.root / name).write_text(text)
        os.utime(project.root / name, ns=(later, later))
    result = await expert.search(ask(project))
    kept = only(result, "tests/test_pay.py")
    assert (kept.content_hash, kept.flags, kept.is_exact) == (None, (), True)
    moved = [hit for hit in result.hits if hit.path == "shop/pay.py"]
    assert moved and all(hit.flags == ("stale-index",) and not hit.is_exact for hit in moved)


async def test_hashes_in_the_side_car_tell_exactly(expert: ScipExpert, project: Project) -> None:
    seen = {path: hashlib.sha256(text.encode()).hexdigest() for path, text in FILES.items()}
    write_index(project.root / "index.scip", *documents(), sidecar={"engine": "ty", "commit": "abc", "files": seen})
    (project.root / "shop/pay.py").write_text(PAY.replace("def pay", "def payed"))
    result = await expert.search(ask(project))
    assert {hit.engine for hit in result.hits} == {"ty"}
    changed = [hit for hit in result.hits if hit.path == "shop/pay.py"]
    assert {hit.content_hash for hit in changed} == {seen["shop/pay.py"]}
    assert only(result, "tests/test_pay.py").content_hash == seen["tests/test_pay.py"]
    assert result.index_commit == "abc"


async def test_a_clean_commit_in_the_side_car_is_compared_with_the_work_tree(expert: ScipExpert, project: Project) -> None:
    commit = commit_all(project.root, "second") if (project.root / "x").write_text("x") else ""
    write_index(project.root / "index.scip", *documents(), sidecar={"tool": "scip-python", "commit": commit})
    later = (project.root / "index.scip").stat().st_mtime_ns + 10**9
    os.utime(project.root / "tests/test_pay.py", ns=(later, later))  # touched, and still the same
    (project.root / "shop/pay.py").write_text(PAY + "\n")
    result = await expert.search(ask(project))
    assert only(result, "tests/test_pay.py").flags == ()
    assert only(result, "tests/test_pay.py").content_hash is not None
    assert all(hit.flags == ("stale-index",) for hit in result.hits if hit.path == "shop/pay.py")


async def test_a_commit_that_git_does_not_know_is_said(expert: ScipExpert, project: Project) -> None:
    write_index(project.root / "index.scip", *documents(), sidecar={"commit": "f" * 40})
    result = await expert.search(ask(project))
    assert len(result.hits) == 6
    assert [note for note in result.notes if "cannot be compared" in note]


async def test_an_index_that_is_replaced_is_read_anew(expert: ScipExpert, project: Project) -> None:
    before = await expert.search(ask(project))
    write_index(project.root / "index.scip", documents()[0])
    after = await expert.search(ask(project))
    assert (len(before.hits), [hit.path for hit in after.hits]) == (6, ["shop/cart.py", "shop/cart.py"])


# ------------------------------------------------------------------ position encodings


@pytest.mark.parametrize(("encoding", "character"), [(1, 12), (2, 10), (3, 9), (0, 9), (0, 10), (0, 12)])
async def test_characters_count_in_the_units_of_the_index(encoding: int, character: int) -> None:
    lines = ['s = "\U0001f680"; add()']
    assert stands_there(lines, encoding, Occurrence("x", (0, character), (0, character + 3)), "add")
    assert encoding == 0 or not stands_there(lines, encoding, Occurrence("x", (0, character + 1), (0, character + 4)), "add")


@pytest.mark.parametrize("place", [(7, 0), (0, 99), (0, 2**30)], ids=repr)
async def test_a_place_beyond_the_file_holds_nothing(place: tuple[int, int]) -> None:
    for lines in (["é add"], ["add"], None):
        assert not stands_there(lines, 0, Occurrence("x", place, place), "add")
