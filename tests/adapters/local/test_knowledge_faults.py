"""Documents that are made to break a reader: whatever they hold, the others are found, and what could not be read is said."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from search_router.adapters.local.knowledge_document import derive_document
from tests.adapters.local.knowledge_workspace import call_for, expert_over, paths, write
from tests.adapters.local.test_knowledge_index import one_page_pdf
from tests.privileges import needs_readable_checkout

pytestmark = pytest.mark.anyio

BODY = "# Zebra rule\n\nA zebra has stripes.\n"
LAUGHS = "".join(f"{chr(98 + n)}: &{chr(98 + n)} [{','.join(['*' + chr(97 + n)] * 9)}]\n" for n in range(9))
FRONTS = {
    "aliases": f"a: &a [x, x, x]\n{LAUGHS}tags: *j\nstatus: accepted",
    "merges": "a: &a {k: v}\nb: &b {<<: [*a, *a]}\nc:\n  <<: [*b, *b]\nstatus: accepted",
    "digits": f"n: {'9' * 6000}\nb: 190:{'59:' * 2000}1\nstatus: accepted",
    "dates": "date: 0000-00-00\nupdated: 2026-13-45T99:99:99Z\nreviewed: !!timestamp no\nstatus: accepted",
    "nothing": "superseded_by: null\nsupersedes: ~\nvalid_until:\nstatus: accepted",
}


@pytest.mark.parametrize("front", FRONTS.values(), ids=list(FRONTS))
async def test_a_front_matter_of_any_kind_costs_nothing_but_its_own_fields(tmp_path: Path, front: str) -> None:
    project = write(tmp_path / "work", {"a.md": f"---\n{front}\n---\n{BODY}"})
    async with expert_over(tmp_path) as expert:
        result = await expert.search(call_for("zebra rule", project))
    (hit,) = result.hits
    assert hit.about is not None
    assert (hit.about.title, hit.about.status, result.notes) == ("Zebra rule", "current", ())


async def test_a_front_matter_that_cannot_be_read_at_all_is_said_and_the_text_is_found(tmp_path: Path) -> None:
    itself = derive_document("a.md", "markdown", f"---\ntags: &t [*t, horse]\n---\n{BODY}")
    assert (itself.title, itself.damaged) == ("Zebra rule", "front matter: found unconstructable recursive node")
    nested = {
        "a.md": f"---\na: {'[' * 3000}{']' * 3000}\n---\n{BODY}",
        "b.md": f"+++\na = {'[' * 3000}{']' * 3000}\n+++\n{BODY}",
    }
    async with expert_over(tmp_path) as expert:
        result = await expert.search(call_for("zebra", write(tmp_path / "work", nested)))
    assert paths(result) == ["a.md", "b.md"]
    assert any("front matter" in note for note in result.notes)


async def test_a_limit_of_validity_that_is_no_date_limits_nothing_and_is_said(tmp_path: Path) -> None:
    files = {
        "a.md": f"---\nvalid_until: 2020-02-30\n---\n{BODY}",
        "b.md": f"---\nvalid_until: 9999-12-31\nvalid_from: 2020-1-5\n---\n{BODY}",
        "c.md": f"---\nvalid_until: never\n---\n{BODY}",
    }
    async with expert_over(tmp_path) as expert:
        result = await expert.search(call_for("zebra", write(tmp_path / "work", files)))
    assert set(paths(result)) == set(files)
    assert [note for note in result.notes if "no date" in note] == ["a.md: valid_until: '2020-02-30' is no date, and limits nothing"]
    limits = {hit.path: (hit.about.valid_from, hit.about.valid_until) for hit in result.hits if hit.about}
    assert limits["b.md"] == ("2020-01-05", "9999-12-31")


async def test_records_that_replace_each_other_in_a_circle_are_all_found(tmp_path: Path) -> None:
    circle = {f"{name}.md": f"---\nsuperseded_by: {new}.md\nsupersedes: {name}.md\n---\n{BODY}" for name, new in ("ab", "bc", "ca")}
    twins = {f"{folder}/t.md": f"---\nsupersedes: Zebra rule twin\n---\n# Zebra rule twin\n\nzebra {folder}\n" for folder in ("x", "y")}
    async with expert_over(tmp_path) as expert:
        result = await expert.search(call_for("zebra rule", write(tmp_path / "work", circle | twins)))
    assert set(paths(result)) == set(circle | twins)


async def test_titles_without_letters_and_texts_from_right_to_left_are_found(tmp_path: Path) -> None:
    files = {
        "a.md": "# 🦓🎉\n\nzebra\n",
        "b.md": "# مرحبا بالعالم\n\nzebra \u202eseirots\n",
        "c.md": "# \u200f\u200e\n\nzebra\n",
        "🦓.md": "zebra\n",
    }
    async with expert_over(tmp_path) as expert:
        project = write(tmp_path / "work", files)
        assert set(paths(await expert.search(call_for("zebra", project)))) == set(files)
        assert paths(await expert.search(call_for("مرحبا", project))) == ["b.md"]


async def test_a_broken_notebook_is_said(tmp_path: Path) -> None:
    good = {"cells": [{"cell_type": "markdown", "source": ["# Zebra\n"]}, 5, None, {"source": {"a": 1}}]}
    files = {"a.ipynb": '{"cells": [', "b.ipynb": "[" * 100_000, "c.ipynb": json.dumps(good), "d.ipynb": ""}
    async with expert_over(tmp_path) as expert:
        result = await expert.search(call_for("zebra", write(tmp_path / "work", files)))
    assert paths(result) == ["c.ipynb"]
    assert [note for note in result.notes if "notebook" in note] == [
        "2 document(s) not read, it is no notebook of format 4 (JSON with cells): work/a.ipynb …"
    ]


async def test_scripts_and_styles_of_a_page_are_no_text(tmp_path: Path) -> None:
    page = (
        "<html><head><title>Zebra</title><script>secret()</script><style>.secret{}</style></head><body><h1>Zebra</h1>"
        "<p onclick='secret()'>stripes</p><script>unterminated secret"
    )
    async with expert_over(tmp_path) as expert:
        project = write(tmp_path / "work", {"a.html": page, "b.html": "<p>" * 20_000 + "horse &#x110000; &#0;"})
        assert paths(await expert.search(call_for("zebra stripes", project))) == ["a.html"]
        assert paths(await expert.search(call_for("secret", project))) == []
        assert paths(await expert.search(call_for("horse", project))) == ["b.html"]


async def test_a_document_that_is_too_large_is_said_and_the_others_are_found(tmp_path: Path) -> None:
    project = write(tmp_path / "work", {"a.md": b"zebra word\n" * 4_700_000, "b.md": "zebra\n"})
    async with expert_over(tmp_path) as expert:
        result = await expert.search(call_for("zebra", project))
    assert paths(result) == ["b.md"]
    assert any("larger than" in note and "a.md" in note for note in result.notes)


@pytest.mark.parametrize("text", ["[" * 200_000, "# " + "[" * 200_000, "`" * 200_000, "~a" * 100_000, "=b" * 100_000, "*" * 200_000])
def test_marks_without_an_end_take_time_in_proportion(text: str) -> None:
    began = time.process_time()
    derive_document("a.md", "markdown", text)
    assert time.process_time() - began < 2.0  # a square of it takes minutes


async def test_links_out_of_the_project_are_not_followed(tmp_path: Path) -> None:
    write(tmp_path / "outside", {"secret.md": "zebra secret\n"})
    project = write(tmp_path / "work", {"a.md": "zebra\n"})
    (project.root / "link.md").symlink_to(tmp_path / "outside" / "secret.md")
    (project.root / "folder").symlink_to(tmp_path / "outside", target_is_directory=True)
    (project.root / "circle").symlink_to(project.root, target_is_directory=True)
    async with expert_over(tmp_path) as expert:
        assert paths(await expert.search(call_for("zebra", project))) == ["a.md"]


ASK = """
import asyncio, sys
sys.modules.update({name: None for name in sys.argv[3:]})
from pathlib import Path
from search_router.schema import Project
from tests.adapters.local.knowledge_workspace import call_for, expert_over, paths

async def ask():
    async with expert_over(Path(sys.argv[1])) as expert:
        project = Project(id="work", root=Path(sys.argv[1]) / "work", kind="directory")
        result = await expert.search(call_for(sys.argv[2], project))
        print(paths(result), *result.notes, sep="\\n")

asyncio.run(ask())
"""


def ask_in_a_child(folder: Path, question: str, *absent: str) -> list[str]:
    """Its paths and notes, a line each; the modules of `absent` cannot be imported there."""
    done = subprocess.run(
        [sys.executable, "-c", ASK, str(folder), question, *absent], capture_output=True, text=True, timeout=60, check=True
    )
    return done.stdout.splitlines()


def test_without_the_extra_a_pdf_is_said_with_what_installs_it(tmp_path: Path) -> None:
    write(tmp_path / "work", {"a.md": "zebra\n", "b.pdf": one_page_pdf("zebra")})
    found = ask_in_a_child(tmp_path, "zebra", "pypdf")
    assert found[0] == "['a.md']"
    assert found[1] == "1 document(s) not read, PDF is not read: install search-router[pdf]: work/b.pdf"


def test_a_process_that_is_killed_while_it_indexes_leaves_a_store_that_works(tmp_path: Path) -> None:
    write(tmp_path / "work", {f"{n}.md": f"# Note {n}\n\n" + "zebra word horse\n\n" * 1000 for n in range(120)})
    child = subprocess.Popen([sys.executable, "-c", ASK, str(tmp_path), "zebra"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    store = tmp_path / "cache" / "index-1.sqlite3"
    until = time.monotonic() + 30
    while time.monotonic() < until and child.poll() is None and not (store.exists() and store.stat().st_size):
        os.sched_yield()
    child.send_signal(signal.SIGKILL)
    child.wait(10)
    found = ask_in_a_child(tmp_path, "zebra")
    assert "damaged" not in "".join(found)
    assert found[0].count(".md") == 20


@needs_readable_checkout
async def test_a_folder_that_cannot_be_read_is_said(tmp_path: Path) -> None:
    project = write(tmp_path / "work", {"a.md": "zebra\n", "closed/b.md": "zebra\n"})
    (project.root / "closed").chmod(0)
    try:
        if os.access(project.root / "closed", os.R_OK):
            pytest.skip("this user reads everything")
        async with expert_over(tmp_path) as expert:
            result = await expert.search(call_for("zebra", project))
    finally:
        (project.root / "closed").chmod(0o700)
    assert paths(result) == ["a.md"]
    assert any("closed" in note for note in result.notes)
