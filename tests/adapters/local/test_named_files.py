"""A name is looked for only in files that can have it, and what is found is what a search of the whole tree finds."""

from __future__ import annotations

import random
import sys
from collections.abc import AsyncGenerator, Iterable, Sequence
from pathlib import Path

import anyio
import pytest

from search_router.adapters.local.grep import GrepExpert
from search_router.adapters.local.grep_run import ProjectRun, RunReport
from search_router.adapters.local.named_files import MOST_FILES
from search_router.adapters.local.symbol_index import SymbolIndex
from search_router.errors import ExpertError, FailureClass
from search_router.schema import ExpertCall, ExpertResult, Project, QueryForm
from tests.adapters.local.grep_workspace import as_project, ask, expert, git, grep_config, make_repository, paths, write
from tests.adapters.local.test_codesearch import ask as ask_code
from tests.adapters.local.test_codesearch import make_expert

pytestmark = [pytest.mark.anyio, pytest.mark.skipif(not sys.platform.startswith("linux"), reason="silence is known on Linux only")]

LONG = "x" * 3000
FILES: dict[str, str | bytes] = {
    "src/jar.py": "class CookieJar:\n    def get_cookie(self): ...\n\n\ndef HTTPServer(): ...\n",
    "src/use.py": "jar = CookieJar()\njar.get_cookie()\n# see cookie_jar, cookieJar, Cookie.Jar\n",
    "src/other.py": "def cookiejar(): ...\n\n\ndef timeouts(): ...\n\n\ndef timeout(): ...\n",
    "src/wide.py": f"value = '{LONG}' + CookieJar_of_a_long_line\n",
    "src/marks.py": "timeout² = 1\n# ¼timeout, timeouté, étimeout, タイムtimeout, timeout\u0301\n",
    "src/latin.py": "# Zeit: größer\ndef get_cookie_too(): ...\n# é\xb2 timeout\n".encode("latin-1"),
    "src/wide16.py": "CookieJar = 16\n".encode("utf-16"),
    "docs/notes.unknown": "the CookieJar of notes\n",
    "docs/sixteen.unknown": "CookieJar in sixteen bits\n".encode("utf-16"),
    "image.png": b"\x89PNG\0\0CookieJar\0",
    "late.bin": b"CookieJar\n" * 1000 + b"\0\0",
    "app.min.js": "var CookieJar=1;" * 2000,
    "ignored/kept.py": "CookieJar = 'tracked in spite of a rule'\n",
    ".hidden.py": "CookieJar = 1\n",
    ".gitignore": "ignored/\nbuild/\n",
    "build/out.py": "CookieJar = 'ignored'\n",
}
NAMES = (
    "CookieJar", "get_cookie", "cookiejar", "timeout", "timeouts", "HTTPServer", "Cookie.Jar", "CookieJar_of_a_long_line",
    "get_cookie_too", "x", "jar", "Nowhere", "cookie_jar", "self",
)  # fmt: skip


class Watched:
    """A project, an index that watches it, and both ways to ask for a name."""

    def __init__(self, project: Project, index: SymbolIndex, narrow: GrepExpert) -> None:
        self.project, self.index, self.narrow = project, index, narrow
        self.told: list[tuple[str, ...] | None] = []
        asked = index.files_that_may_have

        async def listen(project: Project, nested: tuple[Path, ...], names: Iterable[str]) -> tuple[str, ...] | None:
            self.told.append(await asked(project, nested, names))
            return self.told[-1]

        index.files_that_may_have = listen

    async def both(
        self, *names: str, path: str | None = None, language: str | None = None
    ) -> tuple[ExpertResult | str, ExpertResult | str]:
        """The answers with and without the index; of a failure what it says."""
        call = ask(*names, projects=(self.project,), form=QueryForm.SYMBOL, path=path, language=language)
        return await _answer(self.narrow, call), await _answer(expert(), call)


async def _answer(who: GrepExpert, call: ExpertCall) -> ExpertResult | str:
    try:
        return await who.search(call)
    except ExpertError as error:
        return str(error)


@pytest.fixture(autouse=True)
def no_file_is_too_young(monkeypatch: pytest.MonkeyPatch) -> None:
    """A file of this moment is read again for two seconds; here none is written behind the index's back."""
    monkeypatch.setattr("search_router.adapters.local.changed_files.RACY_NS", 0)


async def watched(root: Path, cache: Path) -> AsyncGenerator[Watched]:
    project = as_project(root)
    code = make_expert(cache)
    await catch_up(code.index, project)
    await code.search(ask_code(project, "where is anything"))
    yield Watched(project, code.index, GrepExpert("grep", grep_config(), index=code.index))
    await code.aclose()


async def catch_up(index: SymbolIndex, project: Project) -> None:
    """List until nothing stirs: the first time nothing is watched yet."""
    for _ in range(200):
        await index.refresh(project, nested=(project.root,))
        if index.report_if_quiet(project, (project.root,)) is not None:
            return
        await anyio.sleep(0.05)
    pytest.fail("the tree was never quiet")


@pytest.fixture
async def tree(tmp_path: Path) -> AsyncGenerator[Watched]:
    root = make_repository(tmp_path / "work", FILES)
    git(root, "add", "--force", "ignored/kept.py")
    git(root, "commit", "-q", "-m", "kept")
    async for made in watched(root, tmp_path / "cache"):
        yield made


async def test_a_name_is_found_where_a_search_of_the_tree_finds_it(tree: Watched) -> None:
    for name in NAMES:
        narrow, whole = await tree.both(name)
        assert narrow == whole, name


async def test_the_index_says_where_to_look_and_which_files_it_does_not_know(tree: Watched) -> None:
    narrow, _ = await tree.both("get_cookie")
    assert isinstance(narrow, ExpertResult) and paths(narrow) == {"src/jar.py", "src/use.py"}
    (told,) = tree.told
    assert told == ("app.min.js", "late.bin", "src/jar.py", "src/use.py", "src/wide.py"), "neither others, nor what is binary at once"


async def test_scope_and_several_names_hold(tree: Watched) -> None:
    for path, language in (("src", None), (None, "python"), ("docs", None), ("build", None), ("src", "rust")):
        narrow, whole = await tree.both("CookieJar", "timeout", path=path, language=language)
        assert narrow == whole, (path, language)


async def test_random_trees(tmp_path: Path) -> None:
    rng = random.Random(7)
    words = ["get", "Cookie", "jar", "HTTP", "x", "2", "_", "é", "²", "timeouts", "queries", "running"]

    def name() -> str:
        return "".join(rng.choices(words, k=rng.randint(1, 4)))

    names = [name() for _ in range(60)]
    ends = [" ", "\n", ".", "(", "-", "·", "²", "é", "_", "\u0301", "　"]
    files = {
        f"d{at % 5}/f{at}.{rng.choice(['py', 'ts', 'md', 'unknown', 'rs'])}": "".join(
            rng.choice(names) + rng.choice(ends) for _ in range(rng.randint(1, 40))
        )
        for at in range(60)
    }
    root = make_repository(tmp_path / "work", files)
    async for tree in watched(root, tmp_path / "cache"):
        for each in names:
            narrow, whole = await tree.both(each)
            assert narrow == whole, each
        assert sum(told is not None for told in tree.told) >= 10, "most were looked for in few files"


async def test_after_edits_the_files_that_changed_are_read_as_well(tree: Watched) -> None:
    write(tree.project.root, {"src/new.py": "jar = CookieJar()\n", "docs/notes.unknown": "get_cookie is in the notes now\n"})
    (tree.project.root / "src/use.py").unlink()
    narrow, whole = await tree.both("get_cookie")
    assert narrow == whole and isinstance(narrow, ExpertResult) and paths(narrow) == {"docs/notes.unknown", "src/jar.py"}
    (told,) = tree.told
    assert told is not None and {"src/new.py", "docs/notes.unknown"} <= set(told), "their words are not in the segments yet"
    narrow, whole = await tree.both("CookieJar")
    assert narrow == whole and isinstance(narrow, ExpertResult) and "src/new.py" in paths(narrow)


async def test_an_index_that_is_not_ready_at_once_is_not_waited_for(tree: Watched, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("search_router.adapters.local.symbol_index.EDIT_SECONDS", 0)
    write(tree.project.root, {"src/new.py": "jar = get_cookie()\n"})
    narrow, whole = await tree.both("get_cookie")
    assert narrow == whole and tree.told == [None]


async def test_what_is_in_no_file_is_looked_for_everywhere(tree: Watched) -> None:
    narrow, whole = await tree.both("NotThereAtAll")
    assert narrow == whole and isinstance(narrow, ExpertResult) and not narrow.hits


async def test_too_many_files_are_searched_as_a_tree(tmp_path: Path) -> None:
    root = make_repository(tmp_path / "work", {f"f{at}.py": "def common(): ...\n" for at in range(MOST_FILES + 1)})
    async for tree in watched(root, tmp_path / "cache"):
        narrow, whole = await tree.both("common")
        assert narrow == whole and tree.told == [None]


async def test_where_files_are_hidden_from_the_list_the_tree_is_searched(tmp_path: Path) -> None:
    root = make_repository(tmp_path / "work", {"a.py": "def one(): ...\n"})
    make_repository(root / "inner", {"b.py": "def one(): ...\n"})
    async for tree in watched(root, tmp_path / "cache"):
        narrow, whole = await tree.both("one")
        assert narrow == whole and tree.told == [None]
        assert isinstance(narrow, ExpertResult) and any("repositories of their own" in note for note in narrow.notes)


async def test_a_run_over_named_files_that_fails_becomes_a_search_of_the_tree(tree: Watched, monkeypatch: pytest.MonkeyPatch) -> None:
    async def fail(self: ProjectRun, files: Sequence[str]) -> RunReport:
        raise ExpertError(FailureClass.SPAWN_FAILED, "Argument list too long.")

    monkeypatch.setattr(ProjectRun, "search_in", fail)
    narrow, whole = await tree.both("CookieJar")
    assert narrow == whole and tree.told[0] is not None


async def test_names_too_long_for_a_command_line_are_not_given_to_one(tree: Watched, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("search_router.adapters.local.named_files.MOST_CHARACTERS", 20)
    narrow, whole = await tree.both("CookieJar")
    assert narrow == whole and tree.told == [None]
