"""The semantic expert over real repositories: nearest files, nothing embedded twice, and what it says when it cannot."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from search_router.adapters.base import Expert
from search_router.adapters.local.codesearch import CodeSearchExpert
from search_router.adapters.local.semantic import SemanticExpert
from search_router.adapters.local.symbol_index import SymbolIndex
from search_router.adapters.local.symbol_store import DerivedStore
from search_router.adapters.local.vector_index import VectorIndex
from search_router.config.experts import CodeSearchConfig, SemanticConfig
from search_router.config.schema import VectorsConfig
from search_router.errors import ExpertError, FailureClass
from search_router.schema import ExpertCall, ExpertResult, Intent, PrecisionClass, Project, QueryForm, SubQuery
from tests.adapters.local.embedding_server import DIMENSIONS, EmbeddingServer, embedding_server
from tests.adapters.local.test_code_rank import WEIGHTS
from tests.repositories import commit_all, git, make_repository, write_files

pytestmark = pytest.mark.anyio
MAX_BYTES = 1 << 16
FILES = {
    "net/retry.py": "def retry_failed_request(request):\n    # send again after an error, with growing pauses\n    return request\n",
    "net/backoff.py": "def growing_pauses(error):\n    # pauses after an error before a request is sent again\n    return 1\n",
    "web/cart.ts": "export class CartStore {\n  getItem(id: string) { return id }\n}\n",
    "kitchen/soup.py": "def cook_soup(spoon):\n    # kitchen soup\n    return spoon\n",
    "kitchen/bread.py": "def bake_bread(oven):\n    # kitchen bread and soup\n    return oven\n",
}


@asynccontextmanager
async def experts(cache: Path, **vectors: object) -> AsyncGenerator[tuple[SemanticExpert, CodeSearchExpert]]:
    """Both experts over one index and one set of vectors."""
    index = SymbolIndex(DerivedStore(cache), max_file_bytes=MAX_BYTES, workers=1)
    settings = VectorsConfig.model_validate({"embedder": "lsa"} | vectors)
    shared = VectorIndex(index, settings, cache, max_file_bytes=MAX_BYTES)
    common = {"engine": "code-index", "intents": (Intent.CONCEPTUAL,), "cap_ms": 2500}
    semantic = SemanticConfig.model_validate({"kind": "semantic", "precision_class": PrecisionClass.SEMANTIC} | common)
    hybrid = CodeSearchConfig.model_validate({"kind": "codesearch", "precision_class": PrecisionClass.HYBRID, "weights": WEIGHTS} | common)
    made = SemanticExpert("semantic", semantic, index, shared), CodeSearchExpert("codesearch", hybrid, index, shared)
    try:
        yield made
    finally:
        for expert in made:
            await expert.aclose()


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project("shop", make_repository(tmp_path / "shop", FILES), "git")


@pytest.fixture
def server() -> Iterator[EmbeddingServer]:
    with embedding_server() as running:
        yield running


def remote(server: EmbeddingServer) -> dict[str, object]:
    return {"embedder": "tei", "url": server.url, "dimensions": DIMENSIONS, "allow_remote": True, "timeout_ms": 2000}


def ask(*projects: Project, text: str, path: str | None = None, language: str | None = None, budget_ms: int = 60_000) -> ExpertCall:
    return ExpertCall("semantic", SubQuery(QueryForm.TEXT, (), text), projects, path, language, 20, budget_ms, 100, "a test")


def paths(result: ExpertResult) -> list[str]:
    return [hit.path or "" for hit in result.hits]


async def test_the_nearest_files_come_first_each_once_at_a_place(tmp_path: Path, project: Project) -> None:
    async with experts(tmp_path / "cache") as (semantic, _):
        contract: Expert = semantic
        result = await contract.search(ask(project, text="pauses before a request is sent again"))
        assert set(paths(result)[:2]) == {"net/retry.py", "net/backoff.py"}
        assert len(paths(result)) == len(set(paths(result)))
        best = result.hits[0]
        assert (best.start_line, best.end_line, best.is_exact) == (1, 3, False)
        assert best.content_hash and 0 < (best.native_score or 0) <= 1
        assert result.partial is None and result.notes == ()
        assert result.server_version is not None and result.server_version.startswith("lsa ")
        assert await semantic.search(ask(project, text="pauses before a request is sent again")) == result
        assert (await semantic.health((project,))).details == {"embedder": result.server_version, "source text": "stays in this process"}
        assert semantic.card.precision_class is PrecisionClass.SEMANTIC


async def test_the_scope_is_kept(tmp_path: Path, project: Project) -> None:
    async with experts(tmp_path / "cache") as (semantic, _):
        everything = set(paths(await semantic.search(ask(project, text="kitchen soup request error item"))))
        assert everything == set(FILES)
        kitchen = await semantic.search(ask(project, text="kitchen soup request", path="kitchen"))
        assert set(paths(kitchen)) == {
            "kitchen/soup.py",
            "kitchen/bread.py",
        }
        assert paths(await semantic.search(ask(project, text="kitchen soup", path="kitch"))) == []
        assert paths(await semantic.search(ask(project, text="cart item", language="typescript"))) == ["web/cart.ts"]


async def test_words_that_no_file_has_find_nothing(tmp_path: Path, project: Project) -> None:
    async with experts(tmp_path / "cache") as (semantic, _):
        assert (await semantic.search(ask(project, text="zebra quantum"))).hits == ()


async def test_edits_are_followed(tmp_path: Path, project: Project) -> None:
    async with experts(tmp_path / "cache") as (semantic, _):
        await semantic.search(ask(project, text="soup"))
        write_files(project.root, {"web/cart.ts": "// kitchen soup with a spoon\nexport const soup = 1\n"})
        (project.root / "kitchen/soup.py").unlink()
        found = paths(await semantic.search(ask(project, text="kitchen soup spoon")))
        assert found[0] == "web/cart.ts" and "kitchen/soup.py" not in found


async def test_a_branch_switch_a_rename_a_second_work_tree_and_a_restart_embed_nothing_again(
    tmp_path: Path, project: Project, server: EmbeddingServer
) -> None:
    def embedded() -> list[str]:
        given, server.texts[:] = list(server.texts), []
        return given

    cache, question = tmp_path / "cache", "growing pauses"
    async with experts(cache, **remote(server)) as (semantic, _):
        first = await semantic.search(ask(project, text=question))
        assert len(embedded()) == 2 * len(FILES) + 1
        git(project.root, "checkout", "-q", "-b", "other")
        write_files(project.root, {"net/retry.py": "def changed():\n    return 2\n"})
        commit_all(project.root, "change")
        await semantic.search(ask(project, text=question))
        assert embedded() == ["def changed():\n    return 2"]
        git(project.root, "checkout", "-q", "main")
        assert paths(await semantic.search(ask(project, text=question))) == paths(first)
        git(project.root, "worktree", "add", "-q", str(tmp_path / "second"), "other")
        second = Project("second", tmp_path / "second", "worktree")
        await semantic.search(ask(second, text=question))
        assert embedded() == []
        (project.root / "net/backoff.py").rename(project.root / "net/delay.py")
        await semantic.search(ask(project, text=question))
        assert embedded() == ["net/delay"]
    async with experts(cache, **remote(server)) as (semantic, _):
        assert "net/delay.py" in paths(await semantic.search(ask(project, text=question)))
        assert embedded() == [question]


async def test_a_second_work_tree_and_a_restart_use_the_basis_that_is_there(tmp_path: Path, project: Project) -> None:
    git(project.root, "worktree", "add", "-q", str(tmp_path / "second"), "-b", "other")
    second = Project("second", tmp_path / "second", "worktree")
    write_files(second.root, {"kitchen/soup.py": "def changed():\n    return 2\n"})
    versions: list[str | None] = []
    for one in (project, second):
        async with experts(tmp_path / "cache") as (semantic, _):
            versions.append((await semantic.search(ask(one, text="bread"))).server_version)
    assert versions[0] == versions[1]
    write_files(second.root, {path: f"def entirely_other_{len(path)}():\n    return 'words'\n" for path in FILES})
    async with experts(tmp_path / "cache") as (semantic, _):
        assert (await semantic.search(ask(second, text="words"))).server_version != versions[0]


async def test_code_that_grew_to_twice_its_size_gets_a_new_basis(tmp_path: Path, project: Project) -> None:
    async with experts(tmp_path / "cache") as (semantic, _):
        before = (await semantic.search(ask(project, text="bread"))).server_version
        write_files(project.root, {f"new/part{at}.py": f"def zebra_{at}():\n    return 'zebra stripes'\n" for at in range(12)})
        result = await semantic.search(ask(project, text="zebra stripes"))
        assert result.server_version != before and "new/part7.py" in paths(result)


async def test_text_that_is_sent_away_is_said_in_notes_health_and_version(
    tmp_path: Path, project: Project, server: EmbeddingServer
) -> None:
    async with experts(tmp_path / "cache", **remote(server)) as (semantic, hybrid):
        for expert in (semantic, hybrid):
            result = await expert.search(ask(project, text="growing pauses"))
            assert f"source text and questions are sent to {server.url} (tei)" in result.notes
            assert result.server_version is not None and result.server_version.endswith(f" at {server.url}")
            assert (await expert.health((project,))).details["source text"] == f"sent to {server.url}"


async def test_a_server_that_fails_fails_this_expert_and_only_the_vectors_of_the_other(
    tmp_path: Path, project: Project, server: EmbeddingServer
) -> None:
    server.script = [500] * 3
    async with experts(tmp_path / "cache", **remote(server)) as (semantic, hybrid):
        for _ in range(2):  # the second time without asking the server: it has just failed
            with pytest.raises(ExpertError) as caught:
                await semantic.search(ask(project, text="growing pauses"))
            assert caught.value.failure is FailureClass.UNAVAILABLE
        assert len(server.requests) == 1
        result = await hybrid.search(ask(project, text="growing pauses"))
        assert paths(result)[0] == "net/backoff.py"
        assert any("ranked without vectors" in note for note in result.notes)


async def test_switched_off_and_not_allowed_are_unconfigured(tmp_path: Path, project: Project) -> None:
    for settings, said in (({"embedder": "none"}, "switched off"), ({"embedder": "voyage", "model": "m"}, "allow_remote")):
        async with experts(tmp_path / "cache", **settings) as (semantic, hybrid):
            with pytest.raises(ExpertError, match=said) as caught:
                await semantic.search(ask(project, text="growing pauses"))
            assert caught.value.failure is FailureClass.UNCONFIGURED
            assert paths(await hybrid.search(ask(project, text="growing pauses")))[0] == "net/backoff.py"
    async with experts(tmp_path / "cache", embedder="none") as (semantic, _):
        assert not (await semantic.health((project,))).available


async def test_codesearch_ranks_with_the_vectors(tmp_path: Path, project: Project) -> None:
    async with experts(tmp_path / "cache") as (_, hybrid):
        with_vectors = await hybrid.search(ask(project, text="growing pauses after an error"))
        assert with_vectors.server_version is not None and with_vectors.server_version.startswith("lsa ")
    async with experts(tmp_path / "cache", embedder="none") as (_, hybrid):
        without = await hybrid.search(ask(project, text="growing pauses after an error"))
    assert without.server_version is None
    assert paths(without)[0] == paths(with_vectors)[0]
    assert (with_vectors.hits[0].native_score or 0) == pytest.approx((without.hits[0].native_score or 0) + WEIGHTS.vector, abs=1e-3)


async def test_vectors_that_are_not_ready_in_time_are_said_and_go_on(tmp_path: Path, project: Project) -> None:
    async with experts(tmp_path / "cache") as (semantic, hybrid):
        await hybrid.search(ask(project, text="soup"))
        write_files(project.root, {"kitchen/stew.py": "def stew():\n    return 'soup'\n"})
        with pytest.raises(ExpertError) as caught:
            await semantic.search(ask(project, text="soup", budget_ms=1))
        assert caught.value.failure is FailureClass.TIMEOUT
        assert "kitchen/stew.py" in paths(await semantic.search(ask(project, text="soup")))


async def test_closing_in_the_middle_of_a_build_ends_it(tmp_path: Path, project: Project) -> None:
    write_files(project.root, {f"m{at}.py": f"def f{at}():\n    return {at}\n" * 40 for at in range(60)})
    async with experts(tmp_path / "cache") as (semantic, _):
        with pytest.raises(ExpertError):
            await semantic.search(ask(project, text="soup", budget_ms=1))
