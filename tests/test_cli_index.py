"""`search-router index` as a shell sees it: words, JSON and exit codes."""

from __future__ import annotations

import json
import sqlite3
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from search_router.cli import main
from tests.command_line import run_cli
from tests.repositories import make_repository, write_files


@dataclass(frozen=True, slots=True)
class Said:
    code: int
    stdout: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.stdout)


@pytest.fixture
def work(tmp_path: Path) -> Path:
    return make_repository(tmp_path / "work", {"a.py": "def one(): pass\n", "b.go": "package b\nfunc Two() {}\n", "z.png": "png"})


def cli(folder: Path, *arguments: str) -> Said:
    """In this process: the commands only translate, and starting Python takes longer than all of them."""
    environ = {"SEARCH_ROUTER_HOME": str(folder / "home"), "SEARCH_ROUTER_CONFIG": str(folder / "user.toml")}
    (folder / "user.toml").touch()
    done = CliRunner(env=environ).invoke(main, ["index", *arguments, "--root", str(folder / "work")])
    assert done.exception is None or isinstance(done.exception, SystemExit), done.exception
    return Said(done.exit_code, done.stdout_bytes)


def test_the_command_is_there_in_a_process_of_its_own(tmp_path: Path, work: Path) -> None:
    ended = run_cli(tmp_path, "index", "refresh", "--root", "work")
    assert ended.code == 0 and b"work: 2 files indexed, 2 parsed, 0 reused" in ended.stdout


def test_an_index_is_made_looked_at_checked_mended_and_cleaned(tmp_path: Path, work: Path) -> None:
    before = cli(tmp_path, "status", "--json")
    (project,) = before.json["projects"]
    assert before.code == 1 and not before.json["current"]
    assert (project["indexed"], project["waiting"]) == (0, 2)
    assert project["left_out"] == [{"reason": "not text by its name", "count": 1, "paths": ["z.png"]}]

    made = cli(tmp_path, "refresh", "--json")
    assert made.code == 0 and made.json["complete"] and made.json["projects"][0]["parsed"] == 2

    after = cli(tmp_path, "status")
    assert after.code == 0 and b"2 rows, 0 outdated" in after.stdout and b"1 left out, not text by its name: z.png" in after.stdout
    assert set(cli(tmp_path, "status", "--json").json["versions"]) == {"python", "go"}

    again = cli(tmp_path, "refresh")
    assert again.code == 0 and b"work: 2 files indexed, 0 parsed, 2 reused" in again.stdout

    (store,) = (tmp_path / "home").rglob("index-1.sqlite3")
    with sqlite3.connect(store) as connection:
        connection.execute("UPDATE derived SET payload = x'00' WHERE kind = 'symbols/go'")
    connection.close()
    assert cli(tmp_path, "status", "--json").json["projects"][0]["damaged"] == ["b.go"]
    wrong = cli(tmp_path, "verify")
    assert wrong.code == 1 and b"1 damaged" in wrong.stdout and b"--repair" in wrong.stdout
    mended = cli(tmp_path, "verify", "--repair", "--json")
    assert mended.code == 0 and mended.json["repaired"] and len(mended.json["damaged"]) == 1
    assert cli(tmp_path, "refresh", "--json").json["projects"][0]["parsed"] == 1
    assert cli(tmp_path, "verify", "--all", "--json").json["compared"] == 2

    (work / "b.go").unlink()
    assert cli(tmp_path, "refresh").code == 0
    cleaned = cli(tmp_path, "gc", "--unused-days", "0", "--json")
    assert cleaned.code == 0 and (cleaned.json["deleted"], cleaned.json["kept"]) == (1, 1)
    assert cli(tmp_path, "gc").code == 0


def test_a_store_that_cannot_be_used_is_a_failure_and_not_an_empty_one(tmp_path: Path, work: Path) -> None:
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "cache").write_text("in the way")
    status = cli(tmp_path, "status", "--json")
    assert status.code == 1 and "in memory only" in status.json["notes"][0]
    refreshed = cli(tmp_path, "refresh", "--json")
    assert refreshed.code == 1 and refreshed.json["projects"][0]["indexed"] == 2 and not refreshed.json["complete"]
    assert cli(tmp_path, "gc", "--json").code == 1


def test_a_root_that_is_not_there_and_a_wrong_option_have_their_exit_codes(tmp_path: Path) -> None:
    assert cli(tmp_path, "status").code == 5
    write_files(tmp_path / "work", {"a.py": "x = 1\n"})
    assert cli(tmp_path, "gc", "--unused-days", "-1").code == 2
