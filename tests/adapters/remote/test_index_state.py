"""What a system says its index was made of, against what the files are now: real servers on pipes, real git, real commands."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st

from search_router.adapters.remote.index_state import read_time, relative_path
from search_router.schema import ExpertCall, Project
from tests.adapters.remote.desk import call_for, config_of, expert_of, stdio_config
from tests.adapters.remote.test_remote_router import QUESTION, router_of, statement, stdio
from tests.repositories import commit_all, git, make_repository, write_files

pytestmark = [pytest.mark.anyio, pytest.mark.network]
FILES = {"src/app.py": "a = 1\nb = 2\nc = 3\nd = 4\ne = 5\nf = 6\n", "notes.txt": "start\n"}
STATUS = "{root}/.git/index-state"


def probe(**more: Any) -> dict[str, Any]:
    how = {"tool": "status", "arguments": {"file": STATUS}, "commit": "index.commit", "keep_ms": 0, **more}
    return {"freshness": "probe", "freshness_probe": how}


def asked(root: Path, **more: Any) -> ExpertCall:
    return call_for(root, projects=(Project("work", root, "git"),), budget_ms=20_000, **more)


def say(root: Path, **index: object) -> None:
    (root / ".git/index-state").write_text(json.dumps({"index": index}))


def set_time(path: Path, seconds: float) -> None:
    os.utime(path, (seconds, seconds))


async def test_hits_in_files_that_changed_since_the_servers_commit_are_stale(tmp_path: Path) -> None:
    root = make_repository(tmp_path / "work", FILES)
    first = git(root, "rev-parse", "HEAD")
    say(root, commit=first)
    async with expert_of(stdio_config(**probe())) as expert:

        async def flags() -> dict[str | None, tuple[str, ...]]:
            result = await expert.search(asked(root))
            assert result.notes == ()
            assert result.index_commit == json.loads((root / ".git/index-state").read_text())["index"]["commit"]
            return {hit.path: hit.flags for hit in result.hits}

        assert await flags() == {"src/app.py": (), "notes.txt": ()}
        write_files(root, {"src/app.py": "changed\n" * 6})
        assert await flags() == {"src/app.py": ("stale-index",), "notes.txt": ()}  # uncommitted
        second = commit_all(root, "second")
        assert await flags() == {"src/app.py": ("stale-index",), "notes.txt": ()}  # the index is a commit behind
        say(root, commit=second)
        assert await flags() == {"src/app.py": (), "notes.txt": ()}  # it was made anew
        git(root, "checkout", "--quiet", first)
        assert await flags() == {"src/app.py": ("stale-index",), "notes.txt": ()}  # a commit ahead is not this tree either
        assert (await expert.health((Project("work", root, "git"),))).details["index.work"].startswith(second)


async def test_an_index_of_uncommitted_work_has_seen_that_work(tmp_path: Path) -> None:
    root = make_repository(tmp_path / "work", FILES)
    write_files(root, {"src/app.py": "changed\n" * 6, "notes.txt": "changed\n"})
    set_time(root / "src/app.py", 1_700_000_000)
    set_time(root / "notes.txt", 1_700_000_500)
    say(root, commit=git(root, "rev-parse", "HEAD"), at="2023-11-14T22:15:00Z")  # 1 700 000 100
    async with expert_of(stdio_config(**probe(time="index.at"))) as expert:
        hits = (await expert.search(asked(root))).hits
        assert {hit.path: hit.flags for hit in hits} == {"src/app.py": (), "notes.txt": ("stale-index",)}


async def test_a_time_alone_is_compared_with_the_files_times(tmp_path: Path) -> None:
    write_files(tmp_path, FILES)
    (tmp_path / ".git").mkdir()
    set_time(tmp_path / "src/app.py", 1_700_000_000)
    set_time(tmp_path / "notes.txt", 1_700_000_500)
    say(tmp_path, at=1_700_000_100_000)
    async with expert_of(stdio_config(**probe(commit="", time="index.at"))) as expert:
        hits = (await expert.search(call_for(tmp_path, budget_ms=20_000))).hits
        assert {hit.path: hit.flags for hit in hits} == {"src/app.py": (), "notes.txt": ("stale-index",)}


@pytest.mark.parametrize(
    ("said", "words"),
    [
        ('{"index": {"commit": "' + "ab" * 20 + '"}}', "cannot be compared with the work tree"),
        ('{"index": {"commit": "--output=/tmp/owned"}}', "no commit and no time"),
        ("the index is fine", "no commit and no time"),
        (None, "no status"),
    ],
)
async def test_what_cannot_be_told_is_a_note_and_the_hits_are_there(tmp_path: Path, said: str | None, words: str) -> None:
    root = make_repository(tmp_path / "work", FILES)
    if said is not None:
        (root / ".git/index-state").write_text(said)
    async with expert_of(stdio_config(**probe())) as expert:
        result = await expert.search(asked(root))
        assert len(result.hits) == 2
        (note,) = result.notes
        assert note.startswith("how old its index of work is, nobody can tell: ") and words in note
        assert len((await expert.search(asked(root))).hits) == 2


async def test_a_server_that_does_not_say_holds_the_hits_up_for_half_a_second_at_most(tmp_path: Path) -> None:
    root = make_repository(tmp_path / "work", FILES)
    (root / ".git/index-state").write_text("never")
    async with expert_of(stdio_config(**probe())) as expert:
        await expert.search(asked(root))
        begun = anyio.current_time()
        result = await expert.search(asked(root))
        assert len(result.hits) == 2 and "has not said so yet" in result.notes[0]
        assert anyio.current_time() - begun < 2


async def test_a_command_may_say_it_in_text(tmp_path: Path) -> None:
    root = make_repository(tmp_path / "work", FILES)
    argv = ["git", "log", "-1", "--format=indexed at commit %H"]
    how = {"freshness": "probe", "freshness_probe": {"command": argv, "commit": "~ commit ([0-9a-f]{40})", "keep_ms": 0}}
    async with expert_of(stdio_config(**how)) as expert:
        write_files(root, {"notes.txt": "changed\n"})
        result = await expert.search(asked(root))
        assert {hit.path: hit.flags for hit in result.hits} == {"src/app.py": (), "notes.txt": ("stale-index",)}
    printed = config_of("command", command=[sys.executable, "-c", "print('src/app.py:1:x')"], **how)
    answer = {"form": "pattern", "pattern": r"^(?P<path>[^:\n]+):(?P<start>\d+):"}
    async with expert_of(printed.model_validate({**printed.model_dump(), "answer": answer})) as expert:
        result = await expert.search(asked(root))
        assert [(h.path, h.flags) for h in result.hits] == [("src/app.py", ())] and result.index_commit is not None


async def test_the_flag_is_in_the_answer_and_the_commit_in_the_receipt(tmp_path: Path) -> None:
    root = make_repository(tmp_path / "work", FILES)
    async with router_of(tmp_path, {"near": stdio(**probe())}) as router:  # it writes files of its own
        first = commit_all(root, "second")
        say(root, commit=first)
        write_files(root, {"src/app.py": "changed\n" * 6})
        answer = await router.search(QUESTION)
        assert {item.path: "stale-index" in item.flags for item in answer.evidence} == {"src/app.py": True, "notes.txt": False}
        body = (await statement(router, answer))["predicate"]
        assert [e["index_commit"] for e in body["experts"] if e["expert"] == "near"] == [first]


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        ("2023-11-14T22:13:20Z", 1_700_000_000.0),
        ("2023-11-14T22:13:20", 1_700_000_000.0),
        ("2023-11-15T00:13:20.5+02:00", 1_700_000_000.5),
        (1_700_000_000, 1_700_000_000.0),
        (1_700_000_000_500, 1_700_000_000.5),
        ("1700000000", 1_700_000_000.0),
        ("11/30/2026, 7:08:13 AM", None),
        ("yesterday", None),
        (0, None),
        (None, None),
        (True, None),
    ],
)
def test_times_are_read_in_the_forms_that_systems_use(value: object, seconds: float | None) -> None:
    assert read_time(value) == seconds


@given(st.text() | st.floats() | st.integers() | st.none())
def test_no_time_is_an_error(value: object) -> None:
    found = read_time(value)
    assert found is None or found == found


@pytest.mark.parametrize("raw", ["src/a b.py", "./src/a b.py", "src\\a b.py", "{root}/src/a b.py", "file://{root}/src/a%20b.py"])
def test_a_path_in_any_form_is_the_same_file(tmp_path: Path, raw: str) -> None:
    assert relative_path(tmp_path, raw.replace("{root}", tmp_path.as_posix())) == "src/a b.py"
