"""What the codesearch expert finds in a real repository, and that it follows the work tree."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncGenerator
from dataclasses import replace
from pathlib import Path

import anyio
import pytest

from search_router.adapters.base import Expert
from search_router.adapters.local.codesearch import CodeSearchExpert
from search_router.adapters.local.symbol_index import SymbolIndex
from search_router.adapters.local.symbol_store import DerivedStore
from search_router.config.experts import CodeSearchConfig
from search_router.errors import ExpertError, FailureClass
from search_router.schema import ExpertCall, ExpertResult, Intent, PrecisionClass, Project, QueryForm, SubQuery
from tests.adapters.local.test_code_rank import WEIGHTS
from tests.repositories import commit_all, git, make_repository, write_files

pytestmark = pytest.mark.anyio

RETRY = '''"""Retries of failed requests."""


class Backoff:
    def wait(self):
        return 1


def retry_failed_request(request):
    """Send a request again after an error, with growing pauses."""
    return Backoff().wait()
'''
FILES = {
    "net/retry.py": RETRY,
    "net/cookies.py": "def get_cookie_jar(session):\n    # cookies of one session\n    return session.jar\n",
    "net/pool.py": "def open_connection(host):\n    return host\n\n\ndef close_connection(jar):\n    cookie = jar\n",
    "web/cart.ts": "export class CartStore {\n  getItem(id: string) { return id }\n}\n",
    "tests/test_retry.py": "def test_retry_failed_request():\n    assert retry_failed_request(1)\n",
    "vendor/retry/retry.py": RETRY,
    "README.md": "# Shop\n\nSends requests and keeps a cart.\n",
}


def config() -> CodeSearchConfig:
    return CodeSearchConfig(
        kind="codesearch",
        precision_class=PrecisionClass.HYBRID,
        engine="code-index",
        intents=(Intent.CONCEPTUAL,),
        cap_ms=2500,
        weights=WEIGHTS,
    )


def make_expert(cache: Path) -> CodeSearchExpert:
    return CodeSearchExpert("codesearch", config(), SymbolIndex(DerivedStore(cache), max_file_bytes=1 << 16, workers=1))


@pytest.fixture
async def expert(tmp_path: Path) -> AsyncGenerator[CodeSearchExpert]:
    made = make_expert(tmp_path / "cache")
    yield made
    await made.aclose()


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project("shop", make_repository(tmp_path / "shop", FILES), "git")


def ask(
    project: Project, text: str, *names: str, path: str | None = None, language: str | None = None, budget_ms: int = 20_000
) -> ExpertCall:
    form = QueryForm.SYMBOL if names else QueryForm.TEXT
    return ExpertCall("codesearch", SubQuery(form, names, text), (project,), path, language, 20, budget_ms, 900, "a test")


def paths(result: ExpertResult) -> list[str]:
    return [hit.path or "" for hit in result.hits]


async def test_a_question_in_words_finds_the_file_and_the_place(expert: CodeSearchExpert, project: Project) -> None:
    contract: Expert = expert
    result = await contract.search(ask(project, "how are failed requests sent again after an error"))
    best = result.hits[0]
    assert (best.path, best.symbol, best.start_line, best.end_line) == ("net/retry.py", "retry_failed_request", 9, 11)
    assert result.partial is None and best.content_hash and not best.is_exact
    assert (await expert.health((project,))).available
    again = await expert.search(ask(project, "how are failed requests sent again after an error"))
    assert (again.hits, again.notes) == (result.hits, result.notes)


async def test_a_name_is_answered_only_by_files_that_have_the_whole_name(expert: CodeSearchExpert, project: Project) -> None:
    result = await expert.search(ask(project, "get_cookie_jar", "get_cookie_jar"))
    assert paths(result) == ["net/cookies.py"] and result.hits[0].is_definition and result.hits[0].start_line == 1
    assert paths(await expert.search(ask(project, "getCookieJar", "getCookieJar"))) == ["net/cookies.py"]
    assert paths(await expert.search(ask(project, "set_cookie_jar", "set_cookie_jar"))) == []
    assert "net/pool.py" in paths(await expert.search(ask(project, "cookie jar")))


async def test_a_member_named_with_its_holder_is_the_place_and_not_the_holder(expert: CodeSearchExpert, project: Project) -> None:
    for asked in ("Backoff.wait", "net.retry.Backoff.wait", "what does Backoff::wait return"):
        best = (await expert.search(ask(project, asked))).hits[0]
        assert (best.path, best.symbol, best.is_definition) == ("net/retry.py", "Backoff.wait", True), asked
    assert (await expert.search(ask(project, "Backoff.stop"))).hits[0].symbol == "Backoff"


async def test_a_hit_points_at_the_definition_that_the_question_tells_of_wherever_it_is_in_its_file(
    expert: CodeSearchExpert, project: Project
) -> None:
    padding = "".join(f"    # the frame of a socket, the reader of its header, part {n}\n" for n in range(60))
    frames = f"READ_HEADER = 1\nREAD_PAYLOAD = 2\n{padding}\n\nclass SocketFrameReader:\n    def feed(self, data):\n        return data\n"
    write_files(project.root, {"net/frames.py": frames})
    best = (await expert.search(ask(project, "the class that reads frames from a socket"))).hits[0]
    assert (best.path, best.symbol) == ("net/frames.py", "SocketFrameReader")
    short = next(h for h in (await expert.search(ask(project, "header part numbers"))).hits if h.path == "net/frames.py")
    assert short.end_line and short.start_line and short.end_line - short.start_line > 3, (
        "one constant is not what a whole text is found for"
    )


async def test_the_scope_is_kept(expert: CodeSearchExpert, project: Project) -> None:
    assert set(paths(await expert.search(ask(project, "retry request", path="net")))) == {"net/retry.py"}
    assert paths(await expert.search(ask(project, "retry request", path="ne"))) == []
    assert paths(await expert.search(ask(project, "cookie jar", path="net/pool.py"))) == ["net/pool.py"]
    assert paths(await expert.search(ask(project, "cart", language="typescript"))) == ["web/cart.ts"]
    assert paths(await expert.search(ask(project, "cart", language="rust"))) == []


@pytest.mark.parametrize("path", ["tests/test_retry.py", "vendor/retry/retry.py", "README.md"])
async def test_tests_prose_and_vendored_code_come_later_unless_asked_for(expert: CodeSearchExpert, project: Project, path: str) -> None:
    async def score(text: str) -> float:
        found = (await expert.search(ask(project, text))).hits
        return next(hit.native_score or 0.0 for hit in found if hit.path == path)

    kind = {"tests/test_retry.py": "tests", "vendor/retry/retry.py": "vendored", "README.md": "documentation"}[path]
    assert paths(await expert.search(ask(project, "retry requests")))[0] == "net/retry.py"
    assert await score(f"requests retry {kind}") > 1.2 * await score("requests retry")


async def test_an_edit_a_deletion_a_rename_and_a_branch_are_seen_at_the_next_question(expert: CodeSearchExpert, project: Project) -> None:
    async def found(text: str) -> list[str]:
        return paths(await expert.search(ask(project, text)))

    assert await found("telescope") == []
    write_files(project.root, {"net/pool.py": "\n\ndef aim_telescope():\n    pass\n"})
    edited = await expert.search(ask(project, "telescope"))
    assert [(h.path, h.start_line) for h in edited.hits] == [("net/pool.py", 3)] and await found("host connection") == []
    git(project.root, "checkout", "--quiet", "-b", "other")
    commit_all(project.root, "telescope")
    git(project.root, "mv", "net/pool.py", "net/sky.py")
    assert await found("telescope") == ["net/sky.py"]
    (project.root / "net/sky.py").unlink()
    assert await found("telescope") == []
    git(project.root, "reset", "--quiet", "--hard")
    git(project.root, "checkout", "--quiet", "main")
    assert await found("telescope") == [] and (await found("host connection"))[0] == "net/pool.py"


async def test_a_directory_without_text_has_no_answer_and_no_failure(expert: CodeSearchExpert, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    result = await expert.search(ask(Project("empty", tmp_path / "empty", "directory"), "anything"))
    assert result.hits == () and result.partial is None


async def test_a_folder_with_a_raised_digit_is_no_version(expert: CodeSearchExpert, project: Project) -> None:
    write_files(project.root, {"v²/lens.py": "def polish_lens(): pass\n"})
    assert paths(await expert.search(ask(project, "polish a lens"))) == ["v²/lens.py"]


async def test_what_is_not_built_in_time_is_said_and_goes_on(expert: CodeSearchExpert, project: Project) -> None:
    write_files(project.root, {f"gen/m{n}.py": f"def cookie_{n}(jar):\n    return jar\n" * 20 for n in range(100)})
    late: list[FailureClass | str] = []
    with anyio.fail_after(50):
        while True:
            if late:
                await anyio.sleep(0.01)  # asking without a pause would keep the builder from the processor
            try:
                result = await expert.search(ask(project, "cookie jar", budget_ms=5))
            except ExpertError as error:
                late.append(error.failure)
                continue
            assert result.hits or result.partial
            if result.partial is None:
                break
            late.append(result.partial)
    assert late and set(late) - {FailureClass.TIMEOUT} <= {x for x in late if "ask again" in x}


def test_a_build_that_ended_between_two_questions_is_used(tmp_path: Path) -> None:
    files = {f"gen/m{n}.py": "\n".join(f"cookie_{n}_{i} = jar" for i in range(100)) for n in range(40)}
    project = Project("shop", make_repository(tmp_path / "shop", files), "git")

    async def run() -> list[int]:
        expert = make_expert(tmp_path / "cache")
        found: list[int] = []
        while len(found) < 20 and not any(found):  # no question waits long enough for a build, but each may begin one
            try:
                found.append(len((await expert.search(ask(project, "cookie jar", budget_ms=1))).hits))
            except ExpertError as error:
                assert error.failure is FailureClass.TIMEOUT
                found.append(0)
            if begun := asyncio.all_tasks() - {asyncio.current_task()}:
                await asyncio.wait(begun, timeout=20)
        await expert.aclose()
        return found

    found = asyncio.run(run())
    assert found[0] == 0 and found[-1] > 0


def test_closing_leaves_no_task_and_no_thread(tmp_path: Path) -> None:
    project = Project("shop", make_repository(tmp_path / "shop", FILES), "git")

    async def run() -> set[str]:
        expert = make_expert(tmp_path / "cache")
        await expert.search(ask(project, "retry"))
        write_files(project.root, {"new.py": "def retry(): pass\n"})
        try:
            await expert.search(ask(project, "retry", budget_ms=1))
        finally:
            await expert.aclose()
            await expert.aclose()
        return {task.get_name() for task in asyncio.all_tasks() - {asyncio.current_task()} if task}

    before = set(threading.enumerate())
    assert asyncio.run(run()) == set()
    assert set(threading.enumerate()) <= before


async def test_the_best_file_of_a_project_is_no_answer_by_being_its_best(
    expert: CodeSearchExpert, project: Project, tmp_path: Path
) -> None:
    ledger = {
        "ledger.py": "def balance(entries):\n    '''The sum after an error.'''\n    return sum(entries)\n",
        "main.py": "import ledger\n",
    }
    others = [Project(name, make_repository(tmp_path / name, ledger), "git") for name in ("bank", "abacus")]
    words = "how are failed requests sent again after an error"
    call = ask(project, words)
    result = await expert.search(replace(call, projects=(*others, project)))
    found = [(hit.project, hit.path, hit.native_score or 0.0) for hit in result.hits]
    assert found[0][:2] == ("shop", "net/retry.py")
    assert all(score < 0.5 * found[0][2] for name, _, score in found if name != "shop")
    named = await expert.search(replace(call, projects=(*others, project), sub_query=replace(call.sub_query, text=f"{words}, in bank")))
    scores = {hit.project: hit.native_score or 0.0 for hit in reversed(named.hits)}
    assert scores["bank"] > scores["abacus"]
