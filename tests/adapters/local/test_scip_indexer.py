"""Indexing Python with the real ty-scip, and what becomes of an indexer that fails, hangs or writes nothing."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from search_router.adapters.local.scip import ScipExpert
from search_router.adapters.local.scip_files import cached_index, read_sidecar
from search_router.adapters.local.scip_indexer import find_program, index_python, is_importable
from search_router.adapters.local.symbol_index import SymbolIndex
from search_router.adapters.local.symbol_store import DerivedStore
from search_router.errors import ExpertError, FailureClass
from search_router.schema import ExpertCall, Intent, Project, QueryForm, SubQuery
from tests.adapters.local.test_scip import config
from tests.command_line import run_cli
from tests.repositories import git, make_repository

pytestmark = pytest.mark.anyio
needs_ty = pytest.mark.skipif(find_program() is None, reason="ty-scip is not installed")

FILES = {
    "shop/__init__.py": "",
    "shop/cart.py": "class Cart:\n    def total(self) -> int:\n        return 1\n",
    "shop/pay.py": "from shop.cart import Cart\n\n\ndef pay(cart: Cart) -> int:\n    return cart.total()\n",
    "tools/sync-deps.py": "from shop.cart import Cart\n\nCart().total()\n",
    ".github/check.py": "print(1)\n",
    "ignored.py": "x = 1\n",
    ".gitignore": "ignored.py\n",
}


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project("shop", make_repository(tmp_path / "shop", FILES), "git")


def program(folder: Path, script: str) -> Path:
    file = folder / "indexer"
    file.write_text(f"#!/bin/sh\n{script}\n")
    file.chmod(0o755)
    return file


@needs_ty
async def test_files_that_no_import_could_name_do_not_stop_the_others(tmp_path: Path, project: Project) -> None:
    made = await index_python(project, tmp_path / "cache", seconds=60)
    assert made is not None
    assert (made.documents, made.files, made.left_out) == (3, 3, 2)
    sidecar, wrong = read_sidecar(made.file)
    assert sidecar is not None and wrong is None
    assert (sidecar.tool, sidecar.engine, sidecar.dirty) == ("ty-scip", "ty", False)
    assert sidecar.commit == git(project.root, "rev-parse", "HEAD")
    assert sidecar.files["shop/pay.py"] == hashlib.sha256(FILES["shop/pay.py"].encode()).hexdigest()
    assert git(project.root, "status", "--porcelain", "--ignored") == "!! ignored.py"
    assert sorted(p.name for p in made.file.parent.iterdir()) == ["index.scip", "index.scip.json"]


@needs_ty
async def test_the_expert_reads_what_was_made_and_sees_later_edits(tmp_path: Path, project: Project) -> None:
    await index_python(project, tmp_path / "cache", seconds=60)
    index = SymbolIndex(DerivedStore(tmp_path / "cache"), max_file_bytes=1 << 16, workers=1)
    expert = ScipExpert("scip", config(), tmp_path / "cache", index)
    sub_query = SubQuery(QueryForm.SYMBOL, ("Cart.total",), "who calls Cart.total")
    call = ExpertCall("scip", sub_query, (project,), None, None, 50, 20_000, 1000, "a test", Intent.CROSS_REPO_IMPACT)
    fresh = await expert.search(call)
    assert [(h.path, h.symbol, h.engine) for h in fresh.hits] == [("shop/pay.py", "pay", "ty"), ("shop/cart.py", "Cart.total", "ty")]
    (project.root / "shop/pay.py").write_text(FILES["shop/pay.py"] + "\n\nx = 1\n")
    edited = await expert.search(call)
    (pay,) = [hit for hit in edited.hits if hit.path == "shop/pay.py"]
    assert pay.content_hash == hashlib.sha256(FILES["shop/pay.py"].encode()).hexdigest()
    await expert.aclose()


async def test_a_project_without_python_has_nothing_to_index(tmp_path: Path) -> None:
    project = Project("web", make_repository(tmp_path / "web", {"app.ts": "let x = 1\n", "a-b.py": ""}), "git")
    assert await index_python(project, tmp_path / "cache", seconds=5, program=program(tmp_path, "exit 9")) is None


@pytest.mark.parametrize(
    ("script", "seconds", "failure", "said"),
    [
        ("echo first >&2; echo 'no such thing' >&2; exit 3", 20, FailureClass.CRASHED, "exit code 3 at shop: no such thing"),
        ("sleep 60", 0.3, FailureClass.TIMEOUT, "did not finish shop in 0.3 s"),
        (": > $3", 20, FailureClass.INDEX_MISSING, "an index without a document"),
        ("printf 'no index' > $3", 20, FailureClass.PROTOCOL_ERROR, "no SCIP index"),
        (":", 20, FailureClass.INDEX_MISSING, "is gone"),
    ],
    ids=["fails", "hangs", "empty", "garbage", "writes nothing"],
)
async def test_an_indexer_that_does_not_deliver_is_said_and_leaves_the_old_index(
    tmp_path: Path, project: Project, script: str, seconds: float, failure: FailureClass, said: str
) -> None:
    old = cached_index(tmp_path / "cache", project.root)
    old.parent.mkdir(parents=True)
    old.write_bytes(b"old")
    with pytest.raises(ExpertError) as caught:
        await index_python(project, tmp_path / "cache", seconds=seconds, program=program(tmp_path, script))
    assert (caught.value.failure, said in caught.value.message) == (failure, True)
    assert [(p.name, p.read_bytes()) for p in old.parent.iterdir()] == [("index.scip", b"old")]


async def test_an_indexer_that_is_not_there_is_a_failure_to_start(tmp_path: Path, project: Project) -> None:
    with pytest.raises(ExpertError) as caught:
        await index_python(project, tmp_path / "cache", seconds=5, program=tmp_path / "nowhere")
    assert caught.value.failure is FailureClass.SPAWN_FAILED


@pytest.mark.parametrize(
    ("path", "importable"),
    [("a.py", True), ("pkg/__init__.pyi", True), ("a-b.py", False), (".github/x.py", False), ("class/x.py", False), ("1.0/x.py", False)],
)
async def test_importable_is_what_an_import_could_name(path: str, importable: bool) -> None:
    assert is_importable(path) is importable


@given(st.lists(st.from_regex(r"[a-z_]\w*", fullmatch=True).filter(lambda s: s.isidentifier()), min_size=1, max_size=4))
def test_importable_agrees_with_the_compiler(parts: list[str]) -> None:
    try:
        compile(f"import {'.'.join(parts)}", "x", "exec")
    except SyntaxError:
        assert not is_importable("/".join(parts) + ".py")
    else:
        assert is_importable("/".join(parts) + ".py")


@needs_ty
async def test_the_command_indexes_every_project_and_says_so(tmp_path: Path, project: Project) -> None:
    finished = run_cli(tmp_path, "index", "scip", "--json", "--root", str(project.root))
    assert finished.code == 0
    (row,) = finished.json
    assert (row["project"], row["ok"], row["documents"], row["left_out"]) == ("shop", True, 3, 2)
    assert Path(row["file"]).is_relative_to(tmp_path / "home")
