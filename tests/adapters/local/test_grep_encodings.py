"""Words beyond ASCII are found in Latin-1 files too; what an engine cannot read makes an empty answer suspect."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from search_router.adapters.local.git_grep import unread_by_git_grep
from search_router.adapters.local.grep_engine import EngineChoice
from search_router.adapters.local.grep_matches import Unread, decode_line
from search_router.adapters.local.ripgrep import in_latin_1, unread_by_ripgrep
from search_router.errors import ExpertError, FailureClass
from search_router.schema import QueryForm
from tests.adapters.local.grep_workspace import as_project, ask, expert, make_repository, paths
from tests.privileges import needs_readable_checkout
from tests.repositories import directory_of_nobody, unprivileged

pytestmark = pytest.mark.anyio
LATIN_LETTERS = st.text(st.characters(min_codepoint=0xC0, max_codepoint=0xFF), min_size=1, max_size=6)


@pytest.mark.parametrize(
    ("form", "term"),
    [
        (QueryForm.LITERAL, "naïve café (été)"),
        (QueryForm.LITERAL, "é"),
        (QueryForm.SYMBOL, "été"),
        (QueryForm.KEYWORDS, "CAFÉ"),
        (QueryForm.KEYWORDS, "naïve"),
    ],
)
async def test_a_word_is_found_in_every_encoding_of_it(tmp_path: Path, form: QueryForm, term: str) -> None:
    line = "one\na naïve café (été)\nÉtienne\n"
    files = {"utf8.txt": line, "latin.txt": line.encode("latin-1"), "utf16.txt": line.encode("utf-16"), "none.txt": "naive cafe\n"}
    root = make_repository(tmp_path / "r", files)
    result = await expert().search(ask(term, form=form, projects=(as_project(root),)))
    assert paths(result) == {"latin.txt", "utf16.txt", "utf8.txt"}
    assert {hit.start_line for hit in result.hits} == {2}


async def test_a_crowded_word_is_counted_in_latin_1_too(tmp_path: Path) -> None:
    body = "le café\n" * 600
    files = {f"utf8_{n}.txt": body for n in range(4)} | {"latin.txt": body.encode("latin-1")}
    root = make_repository(tmp_path / "r", files)
    result = await expert().search(ask("café", form=QueryForm.KEYWORDS, projects=(as_project(root),)))
    scores = {hit.path: hit.native_score for hit in result.hits}
    assert scores.keys() == files.keys()
    assert len({round(score or 0, 3) for path, score in scores.items() if path != "latin.txt"} | {round(scores["latin.txt"] or 0, 3)}) == 1


@pytest.mark.parametrize(("engine", "form"), [("git", QueryForm.LITERAL), ("ripgrep", QueryForm.REGEX)])
async def test_where_only_utf8_is_matched_it_is_said(tmp_path: Path, engine: EngineChoice, form: QueryForm) -> None:
    root = make_repository(tmp_path / "r", {"utf8.txt": "café\n", "latin.txt": b"caf\xe9\n"})
    result = await expert(engine).search(ask("café", form=form, projects=(as_project(root),)))
    assert paths(result) == {"utf8.txt"}
    assert any("looked for as UTF-8 only" in note for note in result.notes)
    plain = await expert(engine).search(ask("caf", form=form, projects=(as_project(root),)))
    assert not any("UTF-8 only" in note for note in plain.notes)


@pytest.mark.parametrize("encoding", ["utf-32", "utf-32-be"])
async def test_a_utf_32_file_makes_an_empty_answer_suspect(tmp_path: Path, encoding: str) -> None:
    data = (b"\0\0\xfe\xff" if encoding == "utf-32-be" else b"") + "needle\n".encode(encoding)
    root = make_repository(
        tmp_path / "r", {"wide.txt": data, "plain.txt": "other \xff\xfe\n", "ignored.log": data, ".gitignore": "*.log\n"}
    )
    with pytest.raises(ExpertError, match=r"1 file\(s\) are UTF-32") as raised:
        await expert().search(ask("needle", projects=(as_project(root),)))
    assert raised.value.failure is FailureClass.SUSPECT_EMPTY
    assert paths(await expert().search(ask("other", projects=(as_project(root),)))) == {"plain.txt"}
    nothing = await expert().search(ask("needle", projects=(as_project(root),), path="plain.txt"))
    assert nothing.hits == ()


@needs_readable_checkout
@pytest.mark.parametrize("engine", ["ripgrep", "git"])
async def test_what_may_not_be_read_makes_an_empty_answer_suspect(engine: EngineChoice) -> None:
    with directory_of_nobody() as folder:
        root = make_repository(folder / "r", {"a.py": "open\n", "shut/b.py": "needle\n", "secret.py": "needle\n"})
        project = as_project(root)
        grep = expert(engine)
        await grep.search(ask("open", projects=(project,)))  # what is loaded once may lie where another user cannot go
        with unprivileged(folder):
            (root / "shut").chmod(0)
            (root / "secret.py").chmod(0)
            try:
                with pytest.raises(ExpertError, match=r"2 path\(s\) could not be read .*absence is not proven") as raised:
                    await grep.search(ask("needle", projects=(project,)))
                assert raised.value.failure is FailureClass.SUSPECT_EMPTY
                assert raised.value.remedy
                found = await grep.search(ask("open", projects=(project,)))
                assert paths(found) == {"a.py"}
                assert any("could not be read" in note for note in found.notes)
                elsewhere = await grep.search(ask("needle", projects=(project,), path="a.py"))
                assert elsewhere.hits == ()
                if engine == "ripgrep":
                    other = await grep.search(ask("needle", projects=(project,), path="secret.py", language="go"))
                    assert other.hits == ()
            finally:
                (root / "shut").chmod(0o700)
                (root / "secret.py").chmod(0o600)


def test_what_has_gone_while_it_was_read_hides_nothing() -> None:
    said = (
        "rg: ./gone.py: No such file or directory (os error 2)\nrg: ./a: b.py: Permission denied (os error 13)\nrg: ./l: Loop (os error 40)"
    )
    assert unread_by_ripgrep(said) == (Unread("a: b.py", "Permission denied"), Unread("l", "Loop"))
    git = (
        "warning: could not open directory 'shut/': Permission denied\nerror: failed to stat 'x.py': No such file or directory\n"
        "error: failed to stat 'secret.py': Permission denied\nerror: 'other.py': Is a directory\n"
    )
    assert [each.path for each in unread_by_git_grep(git)] == ["shut", "secret.py", "other.py"]


@given(st.text())
def test_utf8_lines_are_read_as_they_are(text: str) -> None:
    assert decode_line(text.encode("utf-8", "replace")) == text.encode("utf-8", "replace").decode()


@given(st.binary())
def test_any_bytes_are_a_line(data: bytes) -> None:
    decode_line(data).encode("utf-8")


@given(LATIN_LETTERS, st.text(st.characters(max_codepoint=127, exclude_categories=["Cs"]), max_size=6), st.booleans())
def test_the_pattern_for_latin_1_is_its_very_bytes(letters: str, ascii_text: str, ignore_case: bool) -> None:
    text = ascii_text + letters + ascii_text
    pattern = in_latin_1(text, ignore_case=ignore_case).replace("(?-u:", "(?:").encode("ascii")
    assert re.fullmatch(pattern, text.encode("latin-1"), re.DOTALL)
    assert not re.fullmatch(pattern, text.encode("latin-1") + b"\xe9", re.DOTALL)
