"""The grep expert over real repositories, with both engines."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Literal

import pytest

from search_router.errors import ExpertError, FailureClass
from search_router.schema import ExpertStatus, Project, QueryForm
from tests.adapters.local.grep_workspace import as_project, ask, expert, git, make_repository, paths, places, write

pytestmark = pytest.mark.anyio

Engine = Literal["ripgrep", "git"]


@pytest.fixture(params=["ripgrep", "git"])
def engine(request: pytest.FixtureRequest) -> Engine:
    return request.param


ODD_NAMES = (
    "with space.txt",
    "quo\"te's.txt",
    "line\nbreak.txt",
    "emoji 😀.txt",
    "-rf",
    "-",
    "$(id).txt",
    "日本語/検索.txt",
    "[a]{b}*?!.txt",
)


async def test_finds_every_odd_file_name_exactly(tmp_path: Path, engine: Engine) -> None:
    root = make_repository(tmp_path / "r", dict.fromkeys(ODD_NAMES, "first\nneedle\n"))
    result = await expert(engine).search(ask("needle", projects=(as_project(root),)))
    assert sorted(places(result)) == sorted((name, 2, 2) for name in ODD_NAMES)
    assert all(hit.is_exact and not hit.flags for hit in result.hits)


async def test_a_name_that_is_not_utf8_keeps_its_bytes_and_is_flagged(tmp_path: Path, engine: Engine) -> None:
    root = make_repository(tmp_path / "r", {os.fsdecode(b"bad\xff.txt"): "needle\n"})
    (hit,) = (await expert(engine).search(ask("needle", projects=(as_project(root),)))).hits
    assert hit.path is not None and os.fsencode(hit.path) == b"bad\xff.txt"
    assert hit.flags == ("path-not-utf8",)


async def test_line_numbers_are_right_in_crlf_latin1_and_mac_files(tmp_path: Path, engine: Engine) -> None:
    files = {"crlf.txt": "a\r\nb needle\r\nc\r\n", "latin.txt": b"caf\xe9\nneedle \xe9\n", "formfeed.txt": "a\x0cb\nneedle\n"}
    root = make_repository(tmp_path / "r", files)
    result = await expert(engine).search(ask("needle", projects=(as_project(root),)))
    assert sorted(places(result)) == [("crlf.txt", 2, 2), ("formfeed.txt", 2, 2), ("latin.txt", 2, 2)]


@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be"])
async def test_utf16_with_a_mark_is_searched_by_ripgrep_and_git_says_that_it_is_not(tmp_path: Path, encoding: str) -> None:
    root = make_repository(tmp_path / "r", {"u16.txt": "\ufefffirst\r\nnéedle\r\n".encode(encoding)})
    call = ask("néedle", projects=(as_project(root),))
    assert places(await expert("ripgrep").search(call)) == [("u16.txt", 2, 2)]
    by_git = await expert("git").search(call)
    assert by_git.hits == () and any("UTF-16" in note for note in by_git.notes)


async def test_ten_megabytes_in_one_line_are_one_flagged_hit(tmp_path: Path, engine: Engine) -> None:
    line = "a" * 5_000_000 + " needle " + "b" * 5_000_000
    root = make_repository(tmp_path / "r", {"big.txt": line, "small.txt": "needle\n"})
    result = await expert(engine).search(ask("needle", projects=(as_project(root),)))
    assert sorted((hit.path, hit.start_line, hit.flags) for hit in result.hits) == [("big.txt", 1, ("long-line",)), ("small.txt", 1, ())]


async def test_a_long_line_still_counts_for_its_keyword(tmp_path: Path) -> None:
    root = make_repository(tmp_path / "r", {"big.txt": "x\n" + "a" * 200_000 + " needle\n", "none.txt": "nothing\n"})
    (hit,) = (await expert("ripgrep").search(ask("needle", projects=(as_project(root),), form=QueryForm.KEYWORDS))).hits
    assert (hit.path, hit.start_line, hit.flags) == ("big.txt", 2, ("long-line",))
    assert hit.native_score is not None and hit.native_score > 0


async def test_a_file_that_turns_out_binary_is_said_aloud(tmp_path: Path) -> None:
    files = {"early.bin": b"\0needle\n", "late.bin": b"needle\n" + b"x\n" * 100_000 + b"\0\nneedle\n"}
    root = make_repository(tmp_path / "r", files)
    result = await expert("ripgrep").search(ask("needle", projects=(as_project(root),)))
    assert [(hit.path, hit.start_line, hit.flags) for hit in result.hits] == [("late.bin", 1, ("binary",))]
    assert any("binary" in note and "late.bin" in note for note in result.notes)


@pytest.mark.parametrize(
    "question", ["-rf", "--pre=sh", "$(id)", "test(", "name\\s*=", "😀", "検索", "a'b\"c", "-e", "--", "C:\\dir", "*.py", "[x", "e\u0301t"]
)
async def test_hostile_looking_text_is_only_text(tmp_path: Path, engine: Engine, question: str) -> None:
    root = make_repository(tmp_path / "r", {"a.txt": f"nothing\nhere: {question} .\n", "b.txt": "nothing\n"})
    for form in (QueryForm.LITERAL, QueryForm.SYMBOL, QueryForm.KEYWORDS):
        result = await expert(engine).search(ask(question, projects=(as_project(root),), form=form))
        assert places(result) == [("a.txt", 2, 2)], form


async def test_a_regex_is_a_regex(tmp_path: Path, engine: Engine) -> None:
    root = make_repository(tmp_path / "r", {"a.py": 'name   = "x"\nname = y\n'})
    result = await expert(engine).search(ask(r'name\s*=\s*"x', projects=(as_project(root),), form=QueryForm.REGEX))
    assert places(result) == [("a.py", 1, 1)]


@pytest.mark.parametrize("pattern", ["test(", "[z-a]", "a{2,1}"])
async def test_a_bad_regex_is_a_bad_query_and_no_outage(tmp_path: Path, engine: Engine, pattern: str) -> None:
    root = make_repository(tmp_path / "r", {"a.py": "test(\n"})
    with pytest.raises(ExpertError) as caught:
        await expert(engine).search(ask(pattern, projects=(as_project(root),), form=QueryForm.REGEX))
    assert caught.value.failure is FailureClass.REJECTED
    assert "\n" not in caught.value.message and "not a regular expression" in caught.value.message


@pytest.mark.parametrize("pattern", [r"(a)\1", r"(\w{1000}){1000}", r"a\nb"])
async def test_a_regex_that_ripgrep_cannot_run_is_a_bad_query(tmp_path: Path, pattern: str) -> None:
    root = make_repository(tmp_path / "r", {"a.py": "a\n"})
    with pytest.raises(ExpertError) as caught:
        await expert("ripgrep").search(ask(pattern, projects=(as_project(root),), form=QueryForm.REGEX))
    assert caught.value.failure is FailureClass.REJECTED


@pytest.mark.parametrize("term", ["a\nb", "a\0b", "\ud800"])
async def test_a_term_that_no_line_can_have_is_refused(tmp_path: Path, engine: Engine, term: str) -> None:
    root = make_repository(tmp_path / "r", {"a.py": "a\n"})
    with pytest.raises(ExpertError) as caught:
        await expert(engine).search(ask(term, projects=(as_project(root),)))
    assert caught.value.failure is FailureClass.REJECTED


async def test_a_symbol_is_a_whole_word_in_its_own_case(tmp_path: Path, engine: Engine) -> None:
    root = make_repository(tmp_path / "r", {"a.py": "save = 1\nsaved = 1\nSave = 1\nx.save()\n"})
    result = await expert(engine).search(ask("save", projects=(as_project(root),), form=QueryForm.SYMBOL))
    assert sorted(places(result)) == [("a.py", 1, 1), ("a.py", 4, 4)]


async def test_the_definition_comes_before_its_uses(tmp_path: Path, engine: Engine) -> None:
    files = {
        "a/uses.py": "from jar import CookieJar\n" + "jar = CookieJar()\n" * 30,
        "tests/test_jar.py": "class CookieJar:\n    pass\n",
        "z/deep/er/jar.py": "import os\n\n\nclass CookieJar(AbstractJar):\n    pass\n",
    }
    root = make_repository(tmp_path / "r", files)
    for form in (QueryForm.SYMBOL, QueryForm.LITERAL):
        result = await expert(engine).search(ask("CookieJar", projects=(as_project(root),), form=form))
        assert places(result)[0] == ("z/deep/er/jar.py", 4, 4)
        assert sum(hit.path == "a/uses.py" for hit in result.hits) == 5


async def test_keywords_rank_the_file_that_has_more_and_rarer_words(tmp_path: Path, engine: Engine) -> None:
    filler = {f"src/m{i}.py": "request = make_request()\nrequest.send()\n" * 5 for i in range(20)}
    files = {
        "src/limits.py": "import time\n" * 30 + "def throttle(request):\n    # token bucket\n    wait()\n",
        "src/other.py": "bucket = 1\n",
        **filler,
    }
    root = make_repository(tmp_path / "r", files)
    result = await expert(engine).search(
        ask("requests", "throttled", "token", "bucket", projects=(as_project(root),), form=QueryForm.KEYWORDS, limit=5)
    )
    assert places(result)[0] == ("src/limits.py", 31, 32)
    assert len(result.hits) == 5 and not result.hits[0].is_exact


async def test_answers_are_the_same_every_time(tmp_path: Path, engine: Engine) -> None:
    root = make_repository(tmp_path / "r", {f"d{i % 7}/f{i}.py": "alpha beta\n" * (i % 5 + 1) for i in range(200)})
    call = ask("alpha", "beta", projects=(as_project(root),), form=QueryForm.KEYWORDS)
    grep = expert(engine)
    answers = {(await grep.search(call)).hits for _ in range(4)}
    assert len(answers) == 1


async def test_text_without_terms_is_searched_by_its_words(tmp_path: Path, engine: Engine) -> None:
    root = make_repository(tmp_path / "r", {"a.py": "def open_door():\n", "b.py": "nothing\n"})
    result = await expert(engine).search(ask(projects=(as_project(root),), form=QueryForm.TEXT, text="Opening the doors?"))
    assert paths(result) == {"a.py"}


async def test_text_in_another_unicode_form_is_found(tmp_path: Path, engine: Engine) -> None:
    root = make_repository(tmp_path / "r", {"nfd.txt": "cafe\u0301\n", "nfc.txt": "caf\u00e9\n"})
    result = await expert(engine).search(ask("caf\u00e9", projects=(as_project(root),)))
    assert paths(result) == {"nfd.txt", "nfc.txt"}


async def test_keywords_ignore_case_beyond_ascii(tmp_path: Path, engine: Engine) -> None:
    root = make_repository(tmp_path / "r", {"a.txt": "ПРИВЕТ\n"})
    assert paths(await expert(engine).search(ask("привет", projects=(as_project(root),), form=QueryForm.KEYWORDS))) == {"a.txt"}


# ------------------------------------------------------------------ which files


async def test_ignore_rules_are_those_of_git(tmp_path: Path, engine: Engine) -> None:
    files = {
        ".gitignore": "node_modules/\n*.log\n!keep.log\n",
        ".ignore": "dot.txt\n",
        ".rgignore": "dot.txt\n",
        ".github/workflows/ci.yml": "needle\n",
        ".hidden": "needle\n",
        "dot.txt": "needle\n",
        "keep.log": "needle\n",
        "node_modules/x.js": "needle\n",
        "drop.log": "needle\n",
        "excluded.txt": "needle\n",
    }
    root = make_repository(tmp_path / "r", commit=False)
    (root / ".git/info").mkdir(exist_ok=True)
    (root / ".git/info/exclude").write_text("excluded.txt\n")
    write(root, files)
    (root / ".git/needle.txt").write_text("needle\n")
    git(root, "add", "-A")
    write(root, {"untracked.py": "needle\n"})
    result = await expert(engine).search(ask("needle", projects=(as_project(root),)))
    assert paths(result) == {".github/workflows/ci.yml", ".hidden", "dot.txt", "keep.log", "untracked.py"}


async def test_a_tracked_file_is_searched_although_an_ignore_rule_matches_it(tmp_path: Path, engine: Engine) -> None:
    root = make_repository(tmp_path / "r", {".gitignore": "*\n"}, commit=False)
    write(root, {"kept.py": "needle\n", "sub/kept.go": "needle\n", "other.py": "needle\n"})
    git(root, "add", "-f", "kept.py", "sub/kept.go")
    grep = expert(engine)
    assert paths(await grep.search(ask("needle", projects=(as_project(root),)))) == {"kept.py", "sub/kept.go"}
    assert paths(await grep.search(ask("needle", projects=(as_project(root),), language="python"))) == {"kept.py"}
    assert paths(await grep.search(ask("needle", projects=(as_project(root),), path="sub"))) == {"sub/kept.go"}


async def test_a_tracked_link_out_of_the_project_is_not_followed(tmp_path: Path, engine: Engine) -> None:
    write(tmp_path, {"outside/secret.txt": "needle\n"})
    root = make_repository(tmp_path / "r", {".gitignore": "*\n"}, commit=False)
    (root / "link.txt").symlink_to(tmp_path / "outside/secret.txt")
    (root / "dir").symlink_to(tmp_path / "outside")
    git(root, "add", "-f", "link.txt", "dir")
    assert (await expert(engine).search(ask("needle", projects=(as_project(root),)))).hits == ()


async def test_a_linked_worktree_follows_the_exclude_file_of_its_repository(tmp_path: Path, engine: Engine) -> None:
    root = make_repository(tmp_path / "r", {"a.txt": "nothing\n"})
    (root / ".git/info").mkdir(exist_ok=True)
    (root / ".git/info/exclude").write_text("excluded.txt\n")
    git(root, "worktree", "add", "-q", str(tmp_path / "w"))
    write(tmp_path / "w", {"excluded.txt": "needle\n", "seen.txt": "needle\n"})
    result = await expert(engine).search(ask("needle", projects=(as_project(tmp_path / "w", "worktree"),)))
    assert paths(result) == {"seen.txt"}


async def test_links_in_a_circle_are_no_trap(tmp_path: Path, engine: Engine) -> None:
    root = make_repository(tmp_path / "r", {"sub/a.txt": "needle\n"})
    (root / "sub/loop").symlink_to("..")
    (root / "dangling").symlink_to("nowhere")
    assert places(await expert(engine).search(ask("needle", projects=(as_project(root),)))) == [("sub/a.txt", 1, 1)]


@pytest.mark.parametrize("commit", [True, False])
async def test_an_empty_repository_has_no_matches_and_says_that_it_has_no_files(tmp_path: Path, engine: Engine, commit: bool) -> None:
    root = make_repository(tmp_path / "r", commit=commit)
    result = await expert(engine).search(ask("needle", projects=(as_project(root),)))
    assert result.hits == () and result.partial is None
    assert any("no files" in note or "no text file" in note for note in result.notes)


async def test_a_repository_without_a_commit_is_searched(tmp_path: Path, engine: Engine) -> None:
    root = make_repository(tmp_path / "r", {"a.py": "needle\n"}, commit=False)
    assert paths(await expert(engine).search(ask("needle", projects=(as_project(root),)))) == {"a.py"}


async def test_a_plain_directory_has_its_own_ignore_file_and_not_its_parents(tmp_path: Path, engine: Engine) -> None:
    write(
        tmp_path,
        {".gitignore": "*\n", "d/.gitignore": "*.log\n", "d/a.txt": "needle\n", "d/sub/b.txt": "needle\n", "d/sub/b.log": "needle\n"},
    )
    project = as_project(tmp_path / "d", "directory")
    grep = expert(engine)
    assert paths(await grep.search(ask("needle", projects=(project,)))) == {"a.txt", "sub/b.txt"}
    assert paths(await grep.search(ask("needle", projects=(project,), path="sub"))) == {"sub/b.txt"}


async def test_a_rule_that_hides_every_file_is_named(tmp_path: Path) -> None:
    root = make_repository(tmp_path / "r", {}, commit=False)
    write(root, {".gitignore": "*\n", "a.py": "needle\n", "b.py": "needle\n"})
    result = await expert("ripgrep").search(ask("needle", projects=(as_project(root),)))
    assert result.hits == ()
    assert any("every file of p is ignored" in note and "'*'" in note and ".gitignore" in note for note in result.notes)


async def test_no_note_is_made_of_an_ordinary_empty_answer(tmp_path: Path) -> None:
    root = make_repository(tmp_path / "r", {"a.py": "nothing\n"})
    result = await expert("ripgrep").search(ask("needle", projects=(as_project(root),)))
    assert (result.hits, result.notes, result.partial) == ((), (), None)


async def test_files_over_the_size_limit_are_counted_in_an_empty_answer(tmp_path: Path) -> None:
    root = make_repository(tmp_path / "r", {"a.py": "nothing\n", "big.py": "needle\n" * 1000})
    result = await expert("ripgrep", max_file_bytes=1024).search(ask("needle", projects=(as_project(root),)))
    assert result.hits == () and result.notes == ("1 file(s) of p over 1024 bytes were not read",)


# ------------------------------------------------------------------ scope and projects


async def test_scope_is_a_folder_or_a_file(tmp_path: Path, engine: Engine) -> None:
    root = make_repository(tmp_path / "r", {"a/x.py": "needle\n", "a b/y.py": "needle\n", "ab/z.py": "needle\n"})
    grep = expert(engine)
    for path, expected in (("a", {"a/x.py"}), ("./a/", {"a/x.py"}), ("a b/y.py", {"a b/y.py"}), (".", {"a/x.py", "a b/y.py", "ab/z.py"})):
        assert paths(await grep.search(ask("needle", projects=(as_project(root),), path=path))) == expected, path


@pytest.mark.parametrize("path", ["..", "a/../..", "/etc", "a/../../r", ".git", ".git/config", "sub/.git/x", "a\0b", "\ud800"])
async def test_a_scope_outside_of_the_work_tree_is_refused(tmp_path: Path, engine: Engine, path: str) -> None:
    root = make_repository(tmp_path / "r", {"a/x.py": "needle\n"})
    with pytest.raises(ExpertError) as caught:
        await expert(engine).search(ask("needle", projects=(as_project(root),), path=path))
    assert caught.value.failure is FailureClass.REJECTED


async def test_a_scope_that_a_link_takes_outside_is_refused(tmp_path: Path, engine: Engine) -> None:
    write(tmp_path, {"outside/x.py": "needle\n"})
    root = make_repository(tmp_path / "r", {"a.py": "needle\n"})
    (root / "link").symlink_to(tmp_path / "outside")
    with pytest.raises(ExpertError) as caught:
        await expert(engine).search(ask("needle", projects=(as_project(root),), path="link"))
    assert caught.value.failure is FailureClass.REJECTED


async def test_a_scope_that_only_one_project_has_is_noted_for_the_other(tmp_path: Path, engine: Engine) -> None:
    one = as_project(make_repository(tmp_path / "one", {"lib/x.py": "needle\n"}), id="one")
    two = as_project(make_repository(tmp_path / "two", {"y.py": "needle\n"}), id="two")
    result = await expert(engine).search(ask("needle", projects=(one, two), path="lib"))
    assert [(hit.project, hit.path) for hit in result.hits] == [("one", "lib/x.py")]
    assert "two has no path 'lib'" in result.notes


async def test_language_is_a_filter_that_does_not_wake_ignored_files(tmp_path: Path, engine: Engine) -> None:
    files = {".gitignore": "gone.py\n", "a.py": "needle\n", "a.go": "needle\n", "gone.py": "needle\n"}
    root = make_repository(tmp_path / "r", files)
    grep = expert(engine)
    assert paths(await grep.search(ask("needle", projects=(as_project(root),), language="python"))) == {"a.py"}
    with pytest.raises(ExpertError) as caught:
        await grep.search(ask("needle", projects=(as_project(root),), language="klingon"))
    assert caught.value.failure is FailureClass.REJECTED


async def test_a_language_that_no_file_has_is_said_aloud(tmp_path: Path) -> None:
    root = make_repository(tmp_path / "r", {"a.py": "needle\n"})
    result = await expert("ripgrep").search(ask("needle", projects=(as_project(root),), language="rust"))
    assert result.hits == () and result.notes == ("p has no file of the asked language",)


async def test_only_the_projects_of_the_call_are_searched_and_each_keeps_its_name(tmp_path: Path, engine: Engine) -> None:
    one = as_project(make_repository(tmp_path / "one", {"x.py": "needle\n"}), id="one")
    two = as_project(make_repository(tmp_path / "two", {"x.py": "needle\n"}), id="two")
    make_repository(tmp_path / "three", {"x.py": "needle\n"})
    grep = expert(engine)
    assert [(hit.project, hit.path) for hit in (await grep.search(ask("needle", projects=(two, one)))).hits] == [
        ("one", "x.py"),
        ("two", "x.py"),
    ]
    assert (await grep.search(ask("needle", projects=()))).hits == ()


@pytest.mark.parametrize("name", ["sub", "we[i]rd {x}!"])
async def test_a_project_inside_another_is_found_once(tmp_path: Path, engine: Engine, name: str) -> None:
    outer = make_repository(tmp_path / "r", {"a.py": "needle\n"})
    inner = make_repository(outer / "libs" / name, {"b.py": "needle\n"})
    both = (as_project(outer, id="outer"), as_project(inner, "submodule", id="inner"))
    result = await expert(engine).search(ask("needle", projects=both))
    assert sorted((hit.project, hit.path) for hit in result.hits) == [("inner", "b.py"), ("outer", "a.py")]
    assert not any("left out" in note for note in result.notes)


async def test_a_worktree_inside_its_repository_is_never_answered_as_the_repository(tmp_path: Path, engine: Engine) -> None:
    root = make_repository(tmp_path / "r", {"a.py": "needle\n"})
    git(root, "worktree", "add", "-q", str(root / ".worktrees/feature"))
    result = await expert(engine).search(ask("needle", projects=(as_project(root),)))
    assert paths(result) == {"a.py"}


async def test_a_nested_plain_directory_is_found_once(tmp_path: Path, engine: Engine) -> None:
    write(tmp_path, {"d/a.py": "needle\n", "d/in/b.py": "needle\n"})
    both = (as_project(tmp_path / "d", "directory", id="outer"), as_project(tmp_path / "d/in", "directory", id="inner"))
    result = await expert(engine).search(ask("needle", projects=both))
    assert sorted((hit.project, hit.path) for hit in result.hits) == [("inner", "b.py"), ("outer", "a.py")]


async def test_one_missing_root_does_not_hide_the_other_projects(tmp_path: Path, engine: Engine) -> None:
    one = as_project(make_repository(tmp_path / "one", {"x.py": "needle\n"}), id="one")
    gone = Project("gone", tmp_path / "gone", "git")
    result = await expert(engine).search(ask("needle", projects=(gone, one)))
    assert [(hit.project, hit.path) for hit in result.hits] == [("one", "x.py")]
    assert result.partial is not None and "gone" in result.partial
    with pytest.raises(ExpertError) as caught:
        await expert(engine).search(ask("needle", projects=(gone,)))
    assert caught.value.failure is FailureClass.UNAVAILABLE


# ------------------------------------------------------------------ bounds and faults


async def test_words_that_are_everywhere_do_not_crowd_out_the_rare_one(tmp_path: Path, engine: Engine) -> None:
    files = {f"src/f{i:02}.py": "common line\n" * 1500 for i in range(20)}
    files["src/rare.py"] = "nothing\n" * 10 + "common needle\n"
    root = make_repository(tmp_path / "r", files)
    result = await expert(engine).search(ask("common", "needle", projects=(as_project(root),), form=QueryForm.KEYWORDS))
    assert places(result)[0] == ("src/rare.py", 11, 11)
    assert result.partial is None


async def test_with_many_matches_every_kind_of_file_is_still_found(tmp_path: Path, engine: Engine) -> None:
    """Lines are then read of chosen files only: those with odd names, untracked, and tracked in spite of a rule are among them."""
    crowd = {f"src/f{i:02}.py": "common line\n" * 1500 for i in range(4)}
    root = make_repository(tmp_path / "r", {**crowd, **dict.fromkeys(ODD_NAMES, "common needle\n"), "kept.log": "common needle\n"})
    write(root, {".gitignore": "*.log\n", "new.txt": "common needle\n", "not.log": "common needle\n"})
    result = await expert(engine).search(ask("common", "needle", projects=(as_project(root),), form=QueryForm.KEYWORDS, limit=50))
    assert {hit.path for hit in result.hits} >= {*ODD_NAMES, "kept.log", "new.txt"}
    assert "not.log" not in paths(result) and result.partial is None


async def test_many_matches_in_several_projects_stay_in_their_projects_and_scope(tmp_path: Path, engine: Engine) -> None:
    files = {f"a/f{i}.py": "common line\n" * 1500 for i in range(3)} | {"a/x.py": "common needle\n", "b/x.py": "common needle\n"}
    projects = tuple(as_project(make_repository(tmp_path / name, files), id=name) for name in ("one", "two"))
    result = await expert(engine).search(ask("common", "needle", projects=projects, form=QueryForm.KEYWORDS, path="a"))
    assert [(hit.project, hit.path) for hit in result.hits[:2]] == [("one", "a/x.py"), ("two", "a/x.py")]
    assert not any(str(hit.path).startswith("b/") for hit in result.hits)


async def test_more_matches_than_the_cap_are_partial(tmp_path: Path, engine: Engine) -> None:
    root = make_repository(tmp_path / "r", {f"f{i:02}.txt": "needle\n" * 1500 for i in range(20)})
    result = await expert(engine).search(ask("needle", projects=(as_project(root),), limit=10))
    assert len(result.hits) == 10 and result.partial is not None and "too many matches" in result.partial


def script(path: Path, body: str) -> Path:
    path.write_text(f'#!/bin/sh\nif [ "$1" = --version ]; then echo "ripgrep 99.0"; exit 0; fi\n{body}\n')
    path.chmod(0o755)
    return path


async def test_an_engine_that_hangs_is_a_timeout_and_is_dead_afterwards(tmp_path: Path) -> None:
    root = make_repository(tmp_path / "r", {"a.py": "needle\n"})
    program = script(tmp_path / "rg", f"echo $$ > {tmp_path}/pid\nexec sleep 600")
    with pytest.raises(ExpertError) as caught:
        await expert(rg=str(program)).search(ask("needle", projects=(as_project(root),), budget_ms=1000))
    assert caught.value.failure is FailureClass.TIMEOUT
    with pytest.raises(ProcessLookupError):
        os.kill(int((tmp_path / "pid").read_text()), 0)


async def test_what_was_found_before_the_time_was_up_is_answered_as_partial(tmp_path: Path) -> None:
    root = make_repository(tmp_path / "r", {"a.py": "needle\n"})
    begin = '{"type":"begin","data":{"path":{"text":"./a.py"}}}'
    match = '{"type":"match","data":{"path":{"text":"./a.py"},"lines":{"text":"needle"},"line_number":1,"submatches":[]}}'
    program = script(tmp_path / "rg", f"echo '{begin}'\necho '{match}'\nexec sleep 600")
    result = await expert(rg=str(program)).search(ask("needle", projects=(as_project(root),), budget_ms=1000))
    assert places(result) == [("a.py", 1, 1)]
    assert result.partial is not None and "1000 ms" in result.partial


@pytest.mark.parametrize(
    ("body", "failure"),
    [
        ("echo this is no json", FailureClass.PROTOCOL_ERROR),
        ('echo \'{"type":"match","data":{}}\'', FailureClass.PROTOCOL_ERROR),
        ("echo boom >&2; exit 2", FailureClass.CRASHED),
        ("kill -SEGV $$", FailureClass.CRASHED),
    ],
)
async def test_a_broken_engine_is_a_failure_and_never_an_empty_answer(tmp_path: Path, body: str, failure: FailureClass) -> None:
    root = make_repository(tmp_path / "r", {"a.py": "needle\n"})
    program = script(tmp_path / "rg", body)
    with pytest.raises(ExpertError) as caught:
        await expert(rg=str(program)).search(ask("needle", projects=(as_project(root),)))
    assert caught.value.failure is failure


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads every file; test_exit_code_two_with_matches_is_a_note covers the same path")
async def test_an_unreadable_file_is_a_note_beside_the_matches(tmp_path: Path) -> None:
    root = make_repository(tmp_path / "r", {"a.py": "needle\n", "b.py": "needle\n"})
    (root / "b.py").chmod(0)
    result = await expert("ripgrep").search(ask("needle", projects=(as_project(root),)))
    assert paths(result) == {"a.py"} and any("Permission denied" in note for note in result.notes)


async def test_exit_code_two_with_matches_is_a_note(tmp_path: Path) -> None:
    # The real ripgrep, told to read one path more, which is not there: root would be able to read a file without permissions.
    program = script(tmp_path / "rg", f'exec {Path(sys.executable).parent}/rg "$@" ./not-there')
    root = make_repository(tmp_path / "r", {"a.py": "needle\n"})
    grep = expert(rg=str(program))
    found = await grep.search(ask("needle", projects=(as_project(root),)))
    assert paths(found) == {"a.py"} and any("not-there" in note for note in found.notes)
    nothing = await grep.search(ask("absent", projects=(as_project(root),)))
    assert nothing.hits == () and any("not-there" in note for note in nothing.notes)


# ------------------------------------------------------------------ engines and health


async def test_health_names_the_engine_and_its_version() -> None:
    by_ripgrep, by_git = await expert("ripgrep").health(()), await expert("git").health(())
    assert by_ripgrep.available and by_ripgrep.version is not None and by_ripgrep.version.startswith("ripgrep ")
    assert by_git.available and by_git.version is not None and by_git.version.startswith("git grep ")


@pytest.mark.parametrize("program", ["/nonexistent/rg", "/bin/true"])
async def test_a_configured_ripgrep_that_is_none_is_an_error_and_not_replaced(tmp_path: Path, program: str) -> None:
    health = await expert(rg=program).health(())
    assert not health.available and health.failure is ExpertStatus.UNCONFIGURED and program in health.reason
    with pytest.raises(ExpertError) as caught:
        await expert(rg=program).search(ask("x", projects=(as_project(tmp_path, "directory"),)))
    assert caught.value.failure is FailureClass.UNCONFIGURED


SEARCH = r"""
import anyio, sys
from pathlib import Path
from tests.adapters.local.grep_workspace import as_project, ask, expert, paths
root, engine = Path(sys.argv[1]), sys.argv[2]
calls = [ask("\u691c\u7d22", projects=(as_project(root),)), ask("\u691c\u7d22", projects=(as_project(root),), path="\u65e5\u672c\u8a9e")]
found = [anyio.run(expert(engine).search, call) for call in calls]
assert sys.getfilesystemencoding() == "ascii"
print([[(ascii(h.path), h.start_line, h.flags) for h in result.hits] for result in found])
"""


def test_other_scripts_survive_a_locale_without_them(tmp_path: Path, engine: Engine) -> None:
    root = make_repository(tmp_path / "r", {"日本語/検索.txt": "x\n検索\n"})
    here = Path(__file__).parents[3]
    env = {"PATH": os.environ["PATH"], "PYTHONPATH": str(here), "LC_ALL": "C", "PYTHONUTF8": "0"}
    done = subprocess.run([sys.executable, "-c", SEARCH, str(root), engine], cwd=here, env=env, check=True, capture_output=True, text=True)
    name = ascii("日本語/検索.txt".encode().decode("ascii", "surrogateescape"))
    assert done.stdout.strip() == str([[(name, 2, ())]] * 2)


HEALTH = """
import anyio, sys
from tests.adapters.local.grep_workspace import expert
health = anyio.run(expert(sys.argv[1]).health, ())
print(health.version, health.failure, health.reason)
"""


def health_with_path(engine: str, path: str) -> str:
    root = Path(__file__).parents[3]
    done = subprocess.run(
        [sys.executable, "-c", HEALTH, engine],
        cwd=root,
        env={"PATH": path, "PYTHONPATH": str(root)},
        check=True,
        capture_output=True,
        text=True,
    )
    return done.stdout


def test_the_wheels_ripgrep_is_found_without_any_path(tmp_path: Path) -> None:
    assert health_with_path("auto", str(tmp_path)).startswith("ripgrep ")


def test_no_engine_at_all_is_unavailable_with_a_remedy(tmp_path: Path) -> None:
    said = health_with_path("git", str(tmp_path))
    assert said.startswith("None unavailable") and "Install ripgrep" in said


async def test_the_expert_closes_twice_and_declares_its_card() -> None:
    grep = expert()
    await grep.aclose()
    await grep.aclose()
    assert (grep.card.id, grep.card.kind, grep.card.engine, grep.card.transport) == ("grep", "grep", "ripgrep", "embedded")
