"""Files that are hard to read: the lines of an answer are the file's own, every id can be fetched, and what is odd is said."""

from __future__ import annotations

import json
import os
import socket
import time
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager, chdir
from pathlib import Path

import pytest

from search_router.router.opening import open_router
from search_router.router.service import Router
from search_router.schema import Answer, EmptyReason, Evidence, ExpertStatus
from tests.privileges import needs_readable_checkout
from tests.repositories import commit_all, directory_of_nobody, git, make_repository, unprivileged, write_files
from tests.scripted_router import environ

pytestmark = pytest.mark.anyio
SECONDS = 3.0
EXACT = ("experts.codesearch.enabled=false",)
"""Without the expert that also finds what is only like the question: then a name has one place."""


@asynccontextmanager
async def over(folder: Path, *roots: Path, flags: tuple[str, ...] = EXACT) -> AsyncGenerator[Router]:
    async with open_router(roots=roots, environ=environ(folder), flags=flags) as router:
        yield router


async def ask(router: Router, question: str, **more: object) -> Answer:
    """An answer in time that can be encoded, whose every id can be fetched and gives the lines that the snippet shows."""
    started = time.perf_counter()
    answer = await router.search({"question": question, **more})
    assert time.perf_counter() - started < SECONDS + 1.0  # the whole budget, and the way back on a busy machine
    json.dumps(answer.model_dump(mode="json", by_alias=True), ensure_ascii=False).encode()
    router.render(answer).encode()
    for start in range(0, len(answer.evidence), 20):
        page = answer.evidence[start : start + 20]
        fetched = await router.fetch({"ids": [item.id for item in page], "max_characters": 1_000_000})
        assert fetched.problems == ()
        json.dumps(fetched.model_dump(mode="json"), ensure_ascii=False).encode()
        for item, text in zip(page, fetched.items, strict=True):
            assert (text.id, text.path, text.fresh) == (item.id, item.path, True)
            assert item.commit or (text.start_line, text.end_line) == (item.start_line, item.end_line)
    return answer


def only(answer: Answer) -> Evidence:
    (item,) = answer.evidence
    return item


def status_of(answer: Answer, expert: str) -> tuple[ExpertStatus, str]:
    (report,) = [e for e in answer.experts if e.id == expert]
    return report.status, report.reason


# ------------------------------------------------------------------ encodings and line ends

DEFINED = "def {0}():\n    return 1\n"
TEXTS: dict[str, tuple[bytes, str, int, str, set[str]]] = {
    # file name: (bytes, the name to ask for, its line, that line, flags)
    "utf16le.txt": ("one\r\ntwo zebra_le ü\r\nfour\r\n".encode("utf-16"), "zebra_le", 2, "two zebra_le ü", {"utf-16", "crlf"}),
    "utf16be.txt": (b"\xfe\xff" + "a\nzebra_be 設定\n".encode("utf-16-be"), "zebra_be", 2, "zebra_be 設定", {"utf-16"}),
    "marked.txt": (b"\xef\xbb\xbfzebra_mark\nb\n", "zebra_mark", 1, "zebra_mark", set()),
    "latin.txt": ("café\nzebra_latin naïve\n".encode("latin-1"), "zebra_latin", 2, "zebra_latin naïve", {"latin-1"}),
    "crlf.txt": (b"a\r\n\r\nzebra_crlf\r\n", "zebra_crlf", 3, "zebra_crlf", {"crlf"}),
    "old_mac.txt": (b"a\rzebra_cr\rb\nlast\n", "zebra_cr", 1, "a\rzebra_cr\rb", set()),
    "separators.txt": ("a\x0bb\x0c\u2028c\x85d\nzebra_sep\n".encode(), "zebra_sep", 2, "zebra_sep", set()),
    "no_end.txt": (b"a\nzebra_end", "zebra_end", 2, "zebra_end", set()),
    "late_nul.txt": (b"a\nzebra_nul\n" + b"x\n" * 60_000 + b"\0\1\2", "zebra_nul", 2, "zebra_nul", {"binary"}),
    "bidi.txt": ("a\nzebra_bidi \u202etxet\u202c\n".encode(), "zebra_bidi", 2, "zebra_bidi \u202etxet\u202c", {"bidi"}),
}


async def test_every_encoding_and_line_end_gives_the_line_of_the_file(tmp_path: Path) -> None:
    root = make_repository(tmp_path / "repo", {"a.py": "A = 1\n"})
    for name, (data, *_) in TEXTS.items():
        (root / name).write_bytes(data)
    async with over(tmp_path, root) as router:
        for path, (_, name, line, text, flags) in TEXTS.items():
            answer = await ask(router, name)
            item = only(answer)
            assert (item.path, item.start_line, item.end_line, item.snippet) == (path, line, line, text)
            assert set(item.flags) >= flags, path
            assert "stale-index" not in item.flags, path
            (fetched,) = (await router.fetch({"ids": [item.id]})).items
            assert fetched.text == f"{line}\t{text}"
            assert set(fetched.flags) >= flags, path


async def test_a_match_inside_one_line_of_ten_megabytes_is_found_cut_and_said(tmp_path: Path) -> None:
    root = make_repository(tmp_path / "repo", {"a.py": "A = 1\n"})
    (root / "bundle.js").write_bytes(b"var a=1;" * 600_000 + b"zebra_long();" + b"var b=2;" * 700_000 + b"\nvar zebra_behind = 1;\n")
    async with over(tmp_path, root) as router:
        item = only(await ask(router, "zebra_long"))
        assert (item.path, item.start_line, item.end_line) == ("bundle.js", 1, 1)
        assert "long-line" in item.flags
        assert len(item.snippet) < 1000
        (fetched,) = (await router.fetch({"ids": [item.id]})).items
        assert len(fetched.text) <= 40_000
        assert fetched.cut is not None and "raise max_characters" in fetched.cut
        (more,) = (await router.fetch({"ids": [item.id], "max_characters": 1_000_000})).items
        assert len(more.text) == 1_000_000
        behind = only(await ask(router, "zebra_behind"))
        assert (behind.start_line, behind.snippet) == (2, "var zebra_behind = 1;")
        assert "long-line" in behind.flags


async def test_a_binary_file_is_searched_by_nobody_and_fetched_as_what_it_is(tmp_path: Path) -> None:
    root = make_repository(tmp_path / "repo", {"a.py": "zebra_bin = 1\n"})
    (root / "a.bin").write_bytes(b"zebra_bin\0\1\2" * 100)
    (root / "empty.txt").write_bytes(b"")
    async with over(tmp_path, root) as router:
        assert only(await ask(router, "zebra_bin")).path == "a.py"
        for path in ("a.bin", "empty.txt"):
            (fetched,) = (await router.fetch({"ids": [f"repo/{path}#L1-L1@0123456789ab"]})).items
            assert (fetched.text, fetched.total_lines, fetched.start_line) == ("", 0, None)
            assert fetched.cut == "the file has no text: it is empty or binary"


# ------------------------------------------------------------------ names

NAMES: tuple[bytes, ...] = (
    b"with space.py",
    b'it\'s "quoted".py',
    b"new\nline.py",
    b"tab\there.py",
    "emoji\U0001f984.py".encode(),
    "設定.py".encode(),
    "cafe\u0301.py".encode(),
    "\u202egnp.py".encode(),
    b"hash#1%20@x.py",
    b"-e.py",
    b"--pre=sh.py",
    b"back\\slash.py",
    b":(glob)star*.py",
    b"[a]{b}!.py",
    b"$(id)`id`;&|.py",
    b"bad\xff\xfe.py",
    b"src/#/@/a.py",
    b"x" * 251 + b".py",
)


async def test_a_file_of_any_name_is_found_by_both_and_its_id_can_be_fetched(tmp_path: Path) -> None:
    root = make_repository(tmp_path / "repo", {"a.py": "A = 1\n"})
    for number, name in enumerate(NAMES):
        path = os.fsencode(root) + b"/" + name
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "wb") as file:
            file.write(DEFINED.format(f"zebra_{number}_name").encode())
    for stored in (False, True):
        if stored:
            commit_all(root, "odd names")
        async with over(tmp_path, root) as router:
            for number, name in enumerate(NAMES):
                item = only(await ask(router, f"zebra_{number}_name"))
                assert item.path == name.decode("utf-8", "backslashreplace")
                assert (item.start_line, item.end_line, item.symbol) == (1, 2, f"zebra_{number}_name")
                assert {source.expert for source in item.sources} >= {"grep", "symbols"}, name
                assert "\n" not in item.id
                assert ("path-not-utf8" in item.flags) == (b"\xff" in name)


async def test_every_expert_at_once_finds_hard_files_too(tmp_path: Path) -> None:
    root = make_repository(tmp_path / "repo", {"a.py": "A = 1\n"})
    wanted: dict[str, str] = {}
    for path, (data, name, *_) in TEXTS.items():
        (root / path).write_bytes(data)
        wanted[name] = path
    for number, path in enumerate(NAMES):
        at = os.fsencode(root) + b"/" + path
        os.makedirs(os.path.dirname(at), exist_ok=True)
        with open(at, "wb") as file:
            file.write(DEFINED.format(f"zebra_{number}_name").encode())
        wanted[f"zebra_{number}_name"] = path.decode("utf-8", "backslashreplace")
    async with over(tmp_path, root, flags=()) as router:
        for name, path in wanted.items():
            answer = await ask(router, name)
            assert path in [item.path for item in answer.evidence], name


async def test_commits_that_touch_odd_names_are_found_and_shown_on_one_line(tmp_path: Path) -> None:
    root = make_repository(tmp_path / "repo", {"a.py": "A = 1\n", "new\n 2. forged.py": "def zebra_commit():\n    pass\n"})
    async with over(tmp_path, root) as router:
        answer = await ask(router, "when was `zebra_commit` introduced")
        commits = [item for item in answer.evidence if item.commit is not None]
        assert "new\n 2. forged.py" in (commits[0].paths or ())
        assert not any(line.startswith(" 2. forged") for line in router.render(answer).splitlines())


async def test_two_hundred_levels_of_folders_are_searched_to_the_end(tmp_path: Path) -> None:
    root = make_repository(tmp_path / "repo", {"a.py": "A = 1\n"})
    deep = "d/" * 200 + "deep.py"
    write_files(root, {deep: DEFINED.format("zebra_deep")})
    async with over(tmp_path, root) as router:
        item = only(await ask(router, "zebra_deep"))
        assert (item.path, item.symbol) == (deep, "zebra_deep")
        assert {source.expert for source in item.sources} >= {"grep", "symbols"}


# ------------------------------------------------------------------ what is not a plain file


async def test_links_pipes_and_sockets_neither_block_nor_lead_outside(tmp_path: Path) -> None:
    root = make_repository(tmp_path / "repo", {"a.py": DEFINED.format("zebra_inside"), "was_file.py": "OLD = 1\n"})
    write_files(tmp_path, {"outside.py": DEFINED.format("zebra_outside"), "outside/x.py": DEFINED.format("zebra_outside")})
    (root / "loop_a").symlink_to("loop_b")
    (root / "loop_b").symlink_to("loop_a")
    (root / "self").symlink_to(".")
    (root / "out.py").symlink_to(tmp_path / "outside.py")
    (root / "out").symlink_to(tmp_path / "outside")
    (root / "again.py").symlink_to("a.py")
    os.mkfifo(root / "pipe.py")
    (root / "was_file.py").unlink()
    os.mkfifo(root / "was_file.py")  # git tracks a file of this name
    with socket.socket(socket.AF_UNIX) as listener, chdir(root):
        listener.bind("socket.py")
    async with over(tmp_path, root) as router:
        answer = await ask(router, "zebra_inside")
        assert only(answer).path == "a.py"
        assert all(e.status in (ExpertStatus.OK, ExpertStatus.EMPTY, ExpertStatus.SKIPPED) for e in answer.experts), [
            (e.id, e.status, e.reason) for e in answer.experts
        ]
        assert any("not-a-file" in note and "symlink" not in note for note in answer.notes)
        nothing = await ask(router, "zebra_outside")
        assert nothing.empty_reason is EmptyReason.NO_MATCHES
        started = time.perf_counter()
        for path in ("pipe.py", "was_file.py", "socket.py", "out.py", "out/x.py", "loop_a", "self/a.py", "again.py"):
            fetched = await router.fetch({"ids": [f"repo/{path}#L1-L1@0123456789ab"]})
            assert fetched.items == ()
            assert fetched.problems[0].code in ("evidence-not-visible", "evidence-refused", "evidence-unreadable")
        assert time.perf_counter() - started < SECONDS


@pytest.mark.behaviour("absence-with-unread-files-is-not-proven")
@needs_readable_checkout
async def test_an_unreadable_folder_and_file_are_said_and_the_rest_is_searched(tmp_path: Path) -> None:
    with directory_of_nobody() as folder:
        environ(folder)
        root = make_repository(folder / "repo", {"a.py": DEFINED.format("zebra_open"), "locked/b.py": DEFINED.format("zebra_locked")})
        write_files(root, {"closed/c.py": DEFINED.format("zebra_closed"), "secret.py": DEFINED.format("zebra_secret")})
        async with over(tmp_path, make_repository(tmp_path / "other", {"a.py": "A = 1\n"})) as router:
            await ask(router, "zebra_open")  # what is loaded once may lie where another user cannot go
        with unprivileged(folder):
            for name, mode in (("locked", 0), ("closed", 0), ("secret.py", 0)):
                (root / name).chmod(mode)
            try:
                async with over(folder, root) as router:
                    answer = await ask(router, "zebra_open")
                    assert only(answer).path == "a.py"
                    said = " ".join(answer.notes)
                    assert "could not be read" in said  # grep
                    assert "unreadable" in said  # symbols
                    nothing = await ask(router, "zebra_secret")
                    assert (nothing.status.value, nothing.evidence) == ("failed", ())
                    assert {status_of(nothing, name)[0] for name in ("grep", "symbols")} == {ExpertStatus.SUSPECT_EMPTY}
                    told = router.render(nothing)
                    assert "Nothing was found, and absence is not proven: " in told
                    assert "3 path(s) could not be read (the first: " in told
                    assert "Make them readable" in told
                    elsewhere = await ask(router, "zebra_secret", scope={"path": "a.py"})
                    assert elsewhere.empty_reason is EmptyReason.NO_MATCHES
                    assert not any("absence" in note for note in elsewhere.notes)
                    inside = await ask(router, '"zebra_locked"', scope={"path": "locked/b.py"})
                    assert inside.status.value == "failed"
                    assert "cannot be seen" in router.render(inside)
                async with over(folder, root, flags=("experts.grep.enabled=false", "experts.symbols.enabled=false")) as router:
                    alone = await ask(router, "quagga", intent="conceptual")
                    assert status_of(alone, "codesearch")[0] is ExpertStatus.SUSPECT_EMPTY
            finally:
                for name in ("locked", "closed", "secret.py"):
                    (root / name).chmod(0o700)


@needs_readable_checkout
async def test_what_was_indexed_and_may_not_be_read_any_more_is_no_proof_of_absence(tmp_path: Path) -> None:
    with directory_of_nobody() as folder:
        root = make_repository(folder / "repo", {"a.py": "A = 1\n", "secret.py": DEFINED.format("zebra_secret")})
        environ(folder)
        async with over(folder, root) as router:
            assert only(await ask(router, "zebra_secret")).path == "secret.py"
            with unprivileged(folder):
                (root / "secret.py").chmod(0)
                answer = await router.search({"question": "zebra_secret", "scope": {"path": "secret.py"}})
            assert answer.evidence == ()
            assert "absence is not proven" in router.render(answer)


async def test_where_one_expert_could_read_everything_the_answer_is_empty_and_says_that_absence_is_not_proven(tmp_path: Path) -> None:
    root = make_repository(tmp_path / "repo", {"a.py": DEFINED.format("zebra_open")})
    (root / "wide.py").write_bytes("zebra_wide = 1\n".encode("utf-32"))
    async with over(tmp_path, root) as router:
        answer = await ask(router, '"zebra absent"')
        assert (answer.status.value, answer.empty_reason) == ("empty", EmptyReason.NO_MATCHES)
        told = router.render(answer)
        assert "absence is not proven: grep suspect-empty" in told
        assert "1 file(s) are UTF-32" in told
        assert only(await ask(router, "zebra_wide")).path == "wide.py"  # by symbols, which reads it


# ------------------------------------------------------------------ odd repositories


async def test_an_empty_repository_says_that_it_has_no_content(tmp_path: Path) -> None:
    async with over(tmp_path, make_repository(tmp_path / "repo")) as router:
        answer = await ask(router, "zebra_any")
        assert (answer.status.value, answer.empty_reason) == ("empty", EmptyReason.NO_INDEXED_CONTENT)
        assert any("no file" in note for note in answer.notes)
        past = await ask(router, "when was `zebra_any` introduced")
        assert past.status.value in ("empty", "failed")
        status, reason = status_of(past, "history")
        assert status is ExpertStatus.EMPTY or "no commit" in reason
        assert any("no commit" in note for note in past.notes) or "no commit" in reason


async def test_a_repository_without_a_commit_is_searched_and_its_lack_of_history_said(tmp_path: Path) -> None:
    root = make_repository(tmp_path / "repo")
    write_files(root, {"a.py": DEFINED.format("zebra_new")})
    async with over(tmp_path, root) as router:
        assert only(await ask(router, "zebra_new")).path == "a.py"
        past = await ask(router, "when was `zebra_new` introduced")
        assert any("no commit" in text for text in (*past.notes, status_of(past, "history")[1]))


async def test_a_shallow_clone_says_that_its_history_is_cut(tmp_path: Path) -> None:
    origin = make_repository(tmp_path / "origin", {"a.py": DEFINED.format("zebra_old")})
    write_files(origin, {"b.py": "B = 1\n"})
    commit_all(origin, "second")
    git(tmp_path, "clone", "--quiet", "--depth", "1", f"file://{origin}", "clone")
    async with over(tmp_path, tmp_path / "clone") as router:
        answer = await ask(router, "when was `zebra_old` introduced")
        assert any("shallow" in text for text in (*answer.notes, status_of(answer, "history")[1]))
        assert (await router.registry()).projects[0].shallow


async def test_a_submodule_is_a_project_of_its_own_and_found_once(tmp_path: Path) -> None:
    inner = make_repository(tmp_path / "inner", {"lib.py": DEFINED.format("zebra_sub")})
    outer = make_repository(tmp_path / "outer", {"a.py": "A = 1\n"})
    git(outer, "submodule", "--quiet", "add", str(inner), "vendored")
    commit_all(outer, "with a submodule")
    async with over(tmp_path, outer) as router:
        item = only(await ask(router, "zebra_sub"))
        assert (item.project, item.path) == ("vendored", "lib.py")


async def test_a_linked_worktree_answers_from_its_own_branch(tmp_path: Path) -> None:
    main = make_repository(tmp_path / "main", {"a.py": "# main\n" + DEFINED.format("zebra_tree")})
    git(main, "worktree", "add", "--quiet", "-b", "side", str(tmp_path / "side"))
    write_files(tmp_path / "side", {"a.py": "\n" * 9 + DEFINED.format("zebra_tree"), "b.py": DEFINED.format("zebra_side")})
    async with over(tmp_path, main, tmp_path / "side") as router:
        answer = await ask(router, "zebra_tree")
        assert {(item.project, item.start_line) for item in answer.evidence} == {("main", 2), ("side", 10)}
        assert only(await ask(router, "zebra_side")).project == "side"
        scoped = await ask(router, "zebra_tree", scope={"project": "side"})
        assert [(item.project, item.start_line) for item in scoped.evidence] == [("side", 10)]


@pytest.mark.parametrize("rule", ["*\n", "*\n" * 2000], ids=["one rule", "2000 rules"])
async def test_a_repository_that_ignores_everything_says_so_aloud(tmp_path: Path, rule: str) -> None:
    root = make_repository(tmp_path / "repo")
    write_files(root, {".gitignore": rule, "a.py": DEFINED.format("zebra_hidden")})
    async with over(tmp_path, root) as router:
        answer = await ask(router, "zebra_hidden")
        assert answer.status.value == "empty"
        assert answer.empty_reason is EmptyReason.NO_INDEXED_CONTENT
        assert any("ignore rule matches every one" in note for note in answer.notes), answer.notes


async def test_ignore_rules_that_ripgrep_cannot_hold_are_said(tmp_path: Path) -> None:
    root = make_repository(tmp_path / "repo")
    write_files(root, {".gitignore": "*\n" * 25_000, "a.py": DEFINED.format("zebra_hidden")})
    async with over(tmp_path, root) as router:
        answer = await router.search({"question": "zebra_hidden"})  # found or timed out, never silently either
        said = " ".join((*answer.notes, status_of(answer, "grep")[1]))
        assert "could not apply every ignore rule" in said or "not everything was read" in said
        for item in answer.evidence:
            (problem,) = (await router.fetch({"ids": [item.id]})).problems
            assert problem.code == "evidence-not-visible"


async def test_what_is_ignored_in_a_plain_folder_is_not_found_by_naming_it_either(tmp_path: Path) -> None:
    root = tmp_path / "plain"
    write_files(root, {".gitignore": "build/\n", "a.py": DEFINED.format("zebra_kept"), "build/sub/x.py": DEFINED.format("zebra_built")})
    async with over(tmp_path, root) as router:
        for path in ("build", "build/sub", "build/sub/x.py"):
            answer = await ask(router, "zebra_built", scope={"path": path})
            assert answer.evidence == (), path
            assert any("is ignored" in note or "an ignore rule matches it" in note for note in answer.notes), (path, answer.notes)


async def test_what_is_ignored_is_not_found_by_naming_it_in_the_scope(tmp_path: Path) -> None:
    root = make_repository(tmp_path / "repo", {".gitignore": "build/\n*.log\n", "a.py": DEFINED.format("zebra_kept")})
    write_files(
        root, {"build/x.py": DEFINED.format("zebra_built"), "build/sub/y.py": DEFINED.format("zebra_built"), "b.log": "zebra_built\n"}
    )
    async with over(tmp_path, root) as router:
        for path in ("build", "build/x.py", "build/sub", "b.log"):
            answer = await ask(router, "zebra_built", scope={"path": path})
            assert answer.evidence == (), path
            assert any("is ignored" in note or "an ignore rule matches it" in note for note in answer.notes), (path, answer.notes)
        git(root, "add", "--force", "b.log", "build/sub/y.py")
        assert only(await ask(router, "zebra_built", scope={"path": "b.log"})).path == "b.log"
        assert only(await ask(router, "zebra_built", scope={"path": "build"})).path == "build/sub/y.py"


async def test_a_known_file_that_has_no_symbols_is_searched_as_text(tmp_path: Path) -> None:
    root = make_repository(tmp_path / "repo", {"notes.txt": "zebra_noted here\n", "a.py": "A = 'zebra_text here'\n"})
    async with over(tmp_path, root) as router:
        assert only(await ask(router, "zebra_noted", scope={"path": "notes.txt"})).path == "notes.txt"
        nothing = await ask(router, "zebra_text", scope={"path": "a.py"})  # symbols alone is asked, and it is no symbol
        assert nothing.evidence == ()
        assert any("only symbols was asked" in note for note in nothing.notes)
        assert only(await ask(router, '"zebra_text"', scope={"path": "a.py"})).path == "a.py"


# ------------------------------------------------------------------ files that change


async def test_a_file_that_goes_or_changes_between_search_and_fetch_is_never_passed_off_as_the_old_one(tmp_path: Path) -> None:
    root = make_repository(tmp_path / "repo", {name: DEFINED.format(f"zebra_{name[0]}x") for name in ("a.py", "b.py", "c.py", "d.py")})
    async with over(tmp_path, root) as router:
        ids = [only(await ask(router, f"zebra_{name}x")).id for name in "abcd"]
        (root / "a.py").write_text("X = 1\n")
        (root / "b.py").unlink()
        (root / "c.py").unlink()
        (root / "c.py").symlink_to("/etc/passwd")
        (root / "d.py").unlink()
        (root / "d.py").mkdir()
        fetched = await router.fetch({"ids": ids})
        (changed,) = fetched.items
        assert (changed.path, changed.fresh, changed.text) == ("a.py", False, "1\tX = 1")
        assert {p.id: p.code for p in fetched.problems} == {
            ids[1]: "evidence-gone",
            ids[2]: "evidence-not-visible",
            ids[3]: "evidence-not-visible",
        }
        for name in "abcd":
            answer = await ask(router, f"zebra_{name}x")
            assert answer.evidence == (), "what is gone must not be found"
            assert answer.empty_reason is EmptyReason.NO_MATCHES


# ------------------------------------------------------------------ many


async def test_a_file_of_a_hundred_thousand_definitions_answers_in_time_and_says_what_is_missing(tmp_path: Path) -> None:
    root = make_repository(tmp_path / "repo", {"a.py": DEFINED.format("zebra_small")})
    lines = [f"def zebra_{number}_many(): pass" for number in range(100_000)]
    (root / "many.py").write_text("\n".join(lines) + "\n")
    async with over(tmp_path, root) as router:
        item = only(await ask(router, "zebra_77777_many"))
        assert (item.path, item.start_line, item.snippet) == ("many.py", 77_778, lines[77_777])
        answer = await ask(router, "zebra_small")
        assert only(answer).path == "a.py"
        assert any("many.py" in note for note in answer.notes)


async def many_files(tmp_path: Path, count: int, wait: float) -> None:
    root = make_repository(tmp_path / "repo", {"a.py": "A = 1\n"})
    (root / "many").mkdir()
    for number in range(count):
        (root / "many" / f"f{number}.py").write_text(f"def zebra_{number}_file(): pass\n")
    async with over(tmp_path, root) as router:
        first = await ask(router, "zebra_17_file")
        assert only(first).path == "many/f17.py"
        status, reason = status_of(first, "symbols")
        said = " ".join((reason, *first.notes))  # nothing is missing unsaid
        assert status in (ExpertStatus.OK, ExpertStatus.TIMEOUT) or "indexing goes on" in said, (status, reason, first.notes)
        until = time.monotonic() + wait
        while True:
            answer = await ask(router, "zebra_18_file")
            assert only(answer).path == "many/f18.py"
            if {source.expert for source in answer.evidence[0].sources} >= {"grep", "symbols"}:
                break
            assert time.monotonic() < until, answer.notes


async def test_a_folder_of_four_thousand_files_answers_at_once_and_completely_soon(tmp_path: Path) -> None:
    await many_files(tmp_path, 4000, 30.0)


@pytest.mark.slow
async def test_a_folder_of_twenty_thousand_files_answers_at_once_and_completely_soon(tmp_path: Path) -> None:
    await many_files(tmp_path, 20_000, 90.0)


def snapshot(root: Path) -> Mapping[str, float]:
    return {str(path): path.lstat().st_mtime_ns for path in sorted(root.rglob("*"))}


async def test_nothing_is_written_into_a_searched_repository(tmp_path: Path) -> None:
    root = make_repository(tmp_path / "repo", {"a.py": DEFINED.format("zebra_kept")})
    before = snapshot(root)
    async with over(tmp_path, root) as router:
        await ask(router, "zebra_kept")
        await ask(router, "when was `zebra_kept` introduced")
    assert snapshot(root) == before
