"""Real collections of milvus-lite, in a file and behind a server: what an expert finds there, and what each failure is called."""

from __future__ import annotations

import hashlib
import importlib.util
import json
import os
import socket
import subprocess
import sys
from collections.abc import AsyncGenerator, Generator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st

from search_router.adapters.remote.expert import RemoteExpert
from search_router.adapters.remote.kinds import make_remote_experts
from search_router.adapters.remote.milvus import literal, row_filter
from search_router.config.remote import MilvusConfig
from search_router.config.vectors import VectorsConfig
from search_router.errors import ExpertError, FailureClass
from search_router.schema import Project
from tests.adapters.local.embedding_server import DIMENSIONS, EmbeddingServer, embedding_server, vector_of
from tests.adapters.remote.desk import call_for, project_at
from tests.adapters.remote.test_remote_router import QUESTION, router_of, statement
from tests.scripted_router import write_files

MISSING = [name for name in ("pymilvus", "milvus_lite") if importlib.util.find_spec(name) is None]
needs_milvus = pytest.mark.skipif(bool(MISSING), reason=f"the extra `milvus` is not installed: no {', '.join(MISSING)}")
pytestmark = [pytest.mark.heavy, pytest.mark.anyio, pytest.mark.network]
FILLER = Path(__file__).with_name("milvus_filler.py")
FIELDS = {"start_line": "first", "end_line": "last", "project": "repo", "language": "language", "content_hash": "hash", "text": "text"}
CODE = {
    "work": {
        "src/app.py": "open the database file\n",
        "src/window.py": "close the window\n",
        "web/app.ts": "open the database in a page\n",
    },
    "other": {"src/app.py": "open the database elsewhere\n"},
}


@pytest.fixture(scope="module")
def database(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A database of the code of two projects, whose files lie beside it."""
    folder = tmp_path_factory.mktemp("milvus")
    rows: list[dict[str, Any]] = []
    for repo, files in CODE.items():
        for path, text in files.items():
            (folder / repo / path).parent.mkdir(parents=True, exist_ok=True)
            (folder / repo / path).write_text(text)
            language = "python" if path.endswith(".py") else "typescript"
            about = {"path": path, "repo": repo, "language": language, "first": 1, "last": 1, "text": text}
            rows.append({**about, "vector": vector_of(text), "hash": hashlib.sha256(text.encode()).hexdigest()})
    with filling(folder / "code.db", rows):
        pass
    return folder / "code.db"


@contextmanager
def filling(place: Path, rows: list[dict[str, Any]], *, hold: bool = False) -> Generator[None]:
    """A process that fills a database, and with `hold` has it open while inside."""
    with subprocess.Popen([sys.executable, str(FILLER), str(place)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdin is not None and process.stdout is not None
        process.stdin.write(json.dumps({"dimensions": DIMENSIONS, "rows": rows, "hold": hold}) + "\n")
        process.stdin.flush()
        if hold:
            assert process.stdout.readline() == "held\n"
        yield
        process.stdin.close()
        assert process.wait(60) == 0


@pytest.fixture(scope="module")
def embedder() -> Iterator[EmbeddingServer]:
    with embedding_server() as server:
        yield server


def config(uri: object, server: EmbeddingServer | None = None, **more: Any) -> MilvusConfig:
    common = {"kind": "milvus", "precision_class": "semantic", "engine": "milvus", "intents": ["conceptual"], "cap_ms": 20_000}
    block = {**common, "uri": str(uri), "collection": "code", "vector_field": "vector", "fields": FIELDS, **more}
    if server is not None:
        block["vectors"] = {"embedder": "tei", "url": server.url, "dimensions": server.dimensions, "allow_remote": True}
    return MilvusConfig.model_validate(block)


@asynccontextmanager
async def expert_of(made: MilvusConfig, vectors: VectorsConfig | None = None) -> AsyncGenerator[RemoteExpert]:
    expert = make_remote_experts({"collection": made}, vectors)["collection"]
    try:
        yield expert
    finally:
        await expert.aclose()


async def failures_of(root: Path, *made: MilvusConfig) -> list[ExpertError]:
    """What each of these experts fails with, one after another; they share one process."""
    experts = make_remote_experts({str(number): each for number, each in enumerate(made)})
    failures: list[ExpertError] = []
    try:
        for expert in experts.values():
            with pytest.raises(ExpertError) as caught:
                await expert.search(call_for(root, "open the database", budget_ms=60_000))
            failures.append(caught.value)
    finally:
        for expert in experts.values():
            await expert.aclose()
    return failures


def both(database: Path) -> tuple[Project, ...]:
    return tuple(project_at(database.parent / name, name) for name in CODE)


@needs_milvus
async def test_the_nearest_rows_of_the_asked_projects_are_hits_with_the_hash_of_what_was_indexed(
    database: Path, embedder: EmbeddingServer
) -> None:
    async with expert_of(config(database, embedder)) as expert:
        projects = both(database)
        result = await expert.search(call_for(database.parent, "open the database", projects=projects, budget_ms=60_000))
        assert {(h.project, h.path) for h in result.hits[:3]} == {("work", "src/app.py"), ("work", "web/app.ts"), ("other", "src/app.py")}
        scores = [h.native_score or 0.0 for h in result.hits]
        assert scores == sorted(scores, reverse=True) and 0 < scores[0] <= 1.001
        for hit in result.hits:
            assert hit.content_hash == hashlib.sha256(CODE[hit.project][hit.path or ""].encode()).hexdigest()
        assert (result.hits[0].start_line, result.hits[0].end_line) == (1, 1)
        assert (result.server_name, (result.server_version or "").startswith("milvus_lite")) == ("milvus", True)
        one = await expert.search(call_for(database.parent, "open the database", projects=projects[1:], budget_ms=60_000))
        assert [(h.project, h.path) for h in one.hits] == [("other", "src/app.py")]
        scoped = call_for(database.parent, "open the database", projects=projects, path="src/", language="python", budget_ms=60_000)
        assert {h.path for h in (await expert.search(scoped)).hits} == {"src/app.py", "src/window.py"}
        health = await expert.health(projects)
        assert health.available and embedder.url in health.details["embedder"]


@needs_milvus
async def test_a_field_that_milvus_makes_itself_is_asked_with_words(database: Path) -> None:
    made = config(database, asks="text", vector_field="sparse", metric="BM25", filter='language != "typescript"')
    async with expert_of(made) as expert:
        found = await expert.search(call_for(database.parent, "window", projects=both(database), budget_ms=60_000))
        assert [h.path for h in found.hits] == ["src/window.py"]
        nothing = await expert.search(call_for(database.parent, "page", projects=both(database), budget_ms=60_000))
        assert nothing.hits == ()


@needs_milvus
async def test_the_uri_may_come_from_the_variable_that_pymilvus_reads_as_well(database: Path) -> None:
    """Its import fails where MILVUS_URI holds the path of a database."""
    assert "MILVUS_URI" not in os.environ
    os.environ["MILVUS_URI"] = str(database)
    try:
        async with expert_of(config("{env:MILVUS_URI}", asks="text", vector_field="sparse")) as expert:
            found = await expert.search(call_for(database.parent, "window", projects=both(database), budget_ms=60_000))
            assert [h.path for h in found.hits] == ["src/window.py"]
    finally:
        del os.environ["MILVUS_URI"]


@needs_milvus
async def test_the_same_expert_asks_a_server(database: Path, embedder: EmbeddingServer) -> None:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    argv = ["-m", "milvus_lite", "server", "--data-dir", str(database), "--host", "127.0.0.1", "--port", str(port)]
    with subprocess.Popen([sys.executable, *argv], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        try:
            with anyio.fail_after(60):
                while True:
                    try:
                        await (await anyio.connect_tcp("127.0.0.1", port)).aclose()
                        break
                    except OSError:
                        await anyio.sleep(0.05)
            async with expert_of(config(f"http://127.0.0.1:{port}", embedder)) as expert:
                asked = call_for(database.parent, "close the window", projects=both(database), budget_ms=60_000)
                assert (await expert.search(asked)).hits[0].path == "src/window.py"
        finally:
            process.terminate()


@needs_milvus
async def test_what_is_configured_and_does_not_fit_is_said(database: Path, embedder: EmbeddingServer) -> None:
    root = database.parent / "work"
    cases: list[tuple[dict[str, Any], FailureClass, str]] = [
        ({"collection": "cdoe"}, FailureClass.INDEX_MISSING, "no collection cdoe"),
        ({"vector_field": ""}, FailureClass.UNCONFIGURED, "not exactly one vector field; it has vector, sparse"),
        ({"vector_field": "vectr"}, FailureClass.UNCONFIGURED, "no vector field 'vectr'"),
        ({"metric": "L2"}, FailureClass.UNCONFIGURED, "indexed with COSINE, and L2 is configured"),
        ({"fields": {"path": "file"}}, FailureClass.UNCONFIGURED, "no field file, start_line, end_line; it has first"),
        ({"filter": "repo ==== 7"}, FailureClass.REJECTED, "It says"),
    ]
    errors = await failures_of(root, *(config(database, embedder, **more) for more, _, _ in cases))
    for (more, expected, words), error in zip(cases, errors, strict=True):
        assert (error.failure, words in str(error)) == (expected, True), (more, str(error))
    with embedding_server() as other:
        other.dimensions = 4
        (error,) = await failures_of(root, config(database, other))
        assert error.failure is FailureClass.UNCONFIGURED and "4 dimensions, and vector has 16" in str(error)


@needs_milvus
async def test_a_place_that_is_not_there_is_told_from_one_that_is_taken(database: Path, embedder: EmbeddingServer, tmp_path: Path) -> None:
    with filling(database, [], hold=True):
        absent, taken, down, odd = await failures_of(
            tmp_path,
            config(tmp_path / "absent.db", embedder),
            config(database, embedder),
            config("http://127.0.0.1:1", embedder),
            config("gopher://nowhere", embedder),
        )
    assert absent.failure is FailureClass.INDEX_MISSING and not (tmp_path / "absent.db").exists()
    assert taken.failure is FailureClass.BUSY
    assert down.failure is FailureClass.UNAVAILABLE
    assert odd.failure is FailureClass.UNCONFIGURED


@needs_milvus
async def test_fifty_first_questions_start_one_process(database: Path, embedder: EmbeddingServer) -> None:
    async with expert_of(config(database, embedder, max_parallel=50)) as expert:
        counts: list[int] = []

        async def ask() -> None:
            asked = call_for(database.parent, "open the database", projects=both(database), budget_ms=60_000)
            counts.append(len((await expert.search(asked)).hits))

        async with anyio.create_task_group() as tasks:
            for _ in range(50):
                tasks.start_soon(ask)
        assert counts == [4] * 50
        assert (await expert.health(())).details["starts"] == "1"


@needs_milvus
async def test_through_the_router_a_hit_in_a_file_that_changed_is_stale_and_the_version_is_in_the_receipt(
    embedder: EmbeddingServer, tmp_path: Path
) -> None:
    """The rows are of the files that the router's project has, one of them with another hash."""
    root = tmp_path / "work"
    write_files(root)
    rows: list[dict[str, Any]] = []
    for path, text in (("src/app.py", "before it changed"), ("notes.txt", (root / "notes.txt").read_text())):
        about = {"path": path, "repo": "work", "language": "python", "first": 1, "last": 1, "text": text or " "}
        rows.append({**about, "vector": vector_of(text), "hash": hashlib.sha256(text.encode()).hexdigest()})
    with filling(tmp_path / "code.db", rows):
        pass
    block = config(tmp_path / "code.db", embedder).model_dump(mode="json", exclude_unset=True)
    async with router_of(tmp_path, {"collection": {**block, "answer": None}}) as router:
        answer = await router.search(QUESTION)
        assert {item.path: "stale-index" in item.flags for item in answer.evidence} == {"src/app.py": True, "notes.txt": False}
        body = (await statement(router, answer))["predicate"]
        (server,) = [e["server"] for e in body["experts"] if e["expert"] == "collection"]
        assert server["name"] == "milvus" and server["version"].startswith("milvus_lite")


@pytest.mark.slow
@needs_milvus
async def test_an_idle_database_is_let_go_of_so_that_it_can_be_filled(database: Path, embedder: EmbeddingServer) -> None:
    async with expert_of(config(database, embedder, idle_ms=100)) as expert:
        asked = call_for(database.parent, "close the window", projects=both(database), budget_ms=60_000)
        assert (await expert.search(asked)).hits
        with anyio.fail_after(30):
            while True:
                probe = await anyio.run_process(
                    [sys.executable, str(FILLER), str(database)], input=b'{"rows": [], "hold": false}\n', check=False
                )
                if probe.returncode == 0:
                    break
        assert (await expert.search(asked)).hits  # and it opens it again


@needs_milvus
async def test_a_server_that_accepts_and_never_answers_costs_the_time_of_one_call(embedder: EmbeddingServer, tmp_path: Path) -> None:
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen(8)
        made = config(f"http://127.0.0.1:{silent.getsockname()[1]}", embedder)
        async with expert_of(made) as expert:
            begun = anyio.current_time()
            with pytest.raises(ExpertError) as caught:
                await expert.search(call_for(tmp_path, budget_ms=3000))
            assert caught.value.failure in (FailureClass.TIMEOUT, FailureClass.UNAVAILABLE)
            assert anyio.current_time() - begun < 3.0


async def test_without_an_embedder_or_a_variable_nothing_is_started(tmp_path: Path) -> None:
    for vectors in (None, VectorsConfig(embedder="lsa")):
        async with expert_of(config(tmp_path / "x.db"), vectors) as expert:
            with pytest.raises(ExpertError, match="embedder that made the collection") as caught:
                await expert.search(call_for(tmp_path))
            assert caught.value.failure is FailureClass.UNCONFIGURED
            assert (await expert.health(())).reason == "is started by the first question"
    (error,) = await failures_of(tmp_path, config("{env:MILVUS_TEST_ABSENT}", asks="text"))
    assert error.failure is FailureClass.UNCONFIGURED and "MILVUS_TEST_ABSENT" in str(error)


async def test_a_token_that_is_named_and_not_set_is_unconfigured(tmp_path: Path) -> None:
    (error,) = await failures_of(tmp_path, config("http://127.0.0.1:1", asks="text", token_env="MILVUS_TEST_ABSENT"))
    assert error.failure is FailureClass.UNCONFIGURED


FILTERED = config("x.db", filter="first > 0")


@given(st.text(max_size=60), st.text(max_size=60))
def test_nothing_in_a_request_becomes_syntax_of_a_filter(path: str, project: str) -> None:
    values = {"projects": [project], "path": path, "language": "py"}
    text = row_filter(FILTERED, values)
    rest = text.removeprefix(f"(first > 0) and repo in [{literal(project)}] and ")
    wanted = path.strip("/")
    assert rest == (f"path like {literal(wanted + '%')} and " if wanted else "") + 'language == "py"'
    assert json.loads(literal(project)) == project
