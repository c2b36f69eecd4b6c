"""The shell sessions in the documents print what they say, run as a reader would type them."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import anyio
import pytest

from tests.command_line import run_cli
from tests.doc_sessions import PAGES, TOP, Step, file_of, matches, prepared, run_page, steps_of
from tests.scripted_router import hit, scripted_router


def shown(page: str, home: Path) -> None:
    wrong = [
        f"$ {said.command}\n{came.printed}\n(exit code {came.code})\nthe page says:\n{said.printed}\n(exit code {said.code})"
        for said, came in run_page(prepared(page, home), home)
        if said.code != came.code or not matches(said.printed, came.printed)
    ]
    assert not wrong, f"{page}: mend it, or run `python -m tests.doc_sessions {page}`\n\n" + "\n\n".join(wrong)


@pytest.mark.timeout(300)
def test_the_first_question_goes_as_its_page_says(tmp_path: Path) -> None:
    shown("docs/first-question.md", tmp_path)


@pytest.mark.heavy
@pytest.mark.timeout(300)
@pytest.mark.parametrize("page", [page for page in PAGES if page != "docs/first-question.md"])
def test_the_guides_go_as_they_say(page: str, tmp_path: Path) -> None:
    shown(page, tmp_path)


@pytest.mark.heavy
@pytest.mark.anyio
async def test_the_backup_takes_whole_logs_from_a_process_that_writes_them(tmp_path: Path) -> None:
    script, home = tmp_path / "backup.py", tmp_path / "home"
    script.write_text(file_of(TOP / "docs/operating.md", "backup.py"), "utf-8")
    copies = [tmp_path / f"copy{n}" for n in range(3)]
    done = anyio.Event()

    async def ask() -> None:
        while not done.is_set():
            answer = await router.search({"question": "start"})
            assert answer.receipt is not None

    async with scripted_router(tmp_path, {"one": [{"hits": [hit()]}]}) as router:
        await router.search({"question": "start"})
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(ask)
            for copy in copies:
                await anyio.run_process([sys.executable, str(script), str(home), str(copy)])
            done.set()
    counted = [run_cli(tmp_path, "receipts", "verify", "--all", environ={"SEARCH_ROUTER_HOME": str(copy)}) for copy in copies]
    assert [each.code for each in counted] == [0, 0, 0], counted
    sizes = [int(re.findall(rb"(\d+) receipts", each.stdout)[0]) for each in counted]
    assert 0 < sizes[0] < sizes[-1], sizes


def test_every_page_with_a_session_is_run() -> None:
    pages = {str(page.relative_to(TOP)) for page in (TOP / "docs").rglob("*.md") if "<!-- session:" in page.read_text("utf-8")}
    assert pages == set(PAGES)


def test_commands_go_on_and_may_end_with_a_code() -> None:
    assert steps_of("$ one \\\n>   two\nout\n\nmore\n$ false  # exit code 1") == [
        Step("one \\\n  two", "out\n\nmore", 0),
        Step("false  # exit code 1", "", 1),
    ]


@pytest.mark.parametrize(
    ("said", "printed", "same"),
    [
        ("took 3 ms · receipt 00a615e3bd8a:1", "took 214.5 ms · receipt 681abe9a4185:1", True),
        ("receipt 00a615e3bd8a:1", "receipt 00a615e3bd8a:2", False),
        ("a\n…\nz", "a\nb\nc\nz", True),
        ("a\n…\nz", "a\nz", True),
        ("a\n…\nz", "a\nb", False),
        ("…\nvalid log …", "one\nvalid log x", True),
        ("a … c", "a b c", True),
        ("a … c", "a b d", False),
        ("", "", True),
        ("", "a word", False),
        ("a", "a\nb", False),
    ],
)
def test_a_page_says_what_was_printed_up_to_what_differs_each_time(said: str, printed: str, same: bool) -> None:
    assert matches(said, printed) is same
