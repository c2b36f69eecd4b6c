from __future__ import annotations

import sqlite3
from array import array
from collections.abc import Iterator
from pathlib import Path

import pytest

from search_router.adapters.local.commit_log import KEPT_READINGS, MAX_LINEAGE, CommitLog, Reading
from search_router.adapters.local.commit_stream import Change, Commit


def commit(number: int, subject: str = "Tidy", *changes: Change, body: str = "", is_merge: bool = False) -> Commit:
    return Commit(f"{number:040x}", number, f"2020-01-{number:02}T00:00:00+00:00", "Ada", subject, body, is_merge, changes)


@pytest.fixture
def log() -> Iterator[CommitLog]:
    opened = CommitLog(None)
    yield opened
    opened.close()


def test_a_commit_is_written_once_and_keeps_its_row(log: CommitLog) -> None:
    first = log.add([commit(1), commit(2)])
    assert log.add([commit(2), commit(3), commit(1)]) == [first[1], 3, first[0]]
    assert log.rows_of([f"{2:040x}", "f" * 40]) == {f"{2:040x}": first[1]}
    stored = log.commits(first)[first[1]]
    assert (stored.sha, stored.time, stored.author, stored.subject) == (f"{2:040x}", 2, "Ada", "Tidy")


def test_words_are_found_in_subjects_bodies_and_paths_and_a_subject_weighs_most(log: CommitLog) -> None:
    subject, body, path, other = log.add(
        [
            commit(4, "Cache GetHeader"),
            commit(3, "One thing", body="about the header"),
            commit(2, "Another thing", Change("src/header.py")),
            commit(1, "None of them"),
        ]
    )
    found = log.matching(["header"], {subject, body, path, other}, 10)
    assert found[0][0] == subject
    assert {row for row, _ in found} == {subject, body, path}
    assert all(score > 0 for _, score in found)


def test_only_the_rows_asked_for_are_found_however_many_others_match(log: CommitLog) -> None:
    rows = log.add([commit(n % 28 + 1, "same words")._replace(sha=f"{n:040x}") for n in range(1, 301)])
    assert log.matching(["words"], {rows[-1]}, 2) == [(rows[-1], pytest.approx(log.matching(["words"], set(rows), 1)[0][1]))]
    assert log.matching(["words"], set(), 2) == []
    assert log.matching([], set(rows), 2) == []


@pytest.mark.parametrize("token", ['"', "AND", "NEAR(", "*", "subject:x", "-a", "()", "'; DROP TABLE commits; --"])
def test_a_token_is_never_query_syntax(log: CommitLog, token: str) -> None:
    rows = log.add([commit(1, "plain")])
    assert log.matching([token, "plain"], rows, 5)[0][0] == rows[0]


def test_a_file_is_followed_back_through_its_renames(log: CommitLog) -> None:
    newest, moved, made, other = log.add(
        [
            commit(4, "Edit", Change("lib/new.py")),
            commit(3, "Move", Change("lib/new.py", "old.py")),
            commit(2, "Make", Change("old.py")),
            commit(1, "Else", Change("else.py")),
        ]
    )
    assert log.paths_named("new.py") == ["lib/new.py"]
    assert log.paths_named("lib/new.py") == ["lib/new.py"]
    assert log.paths_named("ib/new.py") == []
    assert log.lineage(["lib/new.py"]) == ["lib/new.py", "old.py"]
    assert log.touching(log.lineage(["lib/new.py"])) == {newest, moved, made}
    assert log.touching(["old.py"]) == {moved, made}
    assert log.below("lib/") == {newest, moved}
    assert log.below("else.py") == {other}
    assert log.below("li") == set()
    assert log.paths_of(moved) == ("lib/new.py",)


def test_a_ring_of_renames_ends_and_a_long_chain_is_cut(log: CommitLog) -> None:
    log.add([commit(1, "a", Change("a", "b"), Change("b", "a"))])
    assert log.lineage(["a"]) == ["a", "b"]
    log.add([commit(2, "chain", *(Change(f"p{n}", f"p{n + 1}") for n in range(100)))])
    assert len(log.lineage(["p0"])) == MAX_LINEAGE + 1


def test_merges_are_left_out_of_what_is_scanned(log: CommitLog) -> None:
    rows = log.add([commit(2, "Merge branch", is_merge=True), commit(1, "Work")])
    assert log.plain_shas(rows) == [(rows[1], f"{1:040x}")]


def test_readings_survive_the_process_and_only_a_few_are_kept(tmp_path: Path) -> None:
    path = tmp_path / "cache" / "history.sqlite"
    log = CommitLog(path)
    rows = array("I", log.add([commit(2), commit(1)]))
    log.add([commit(3)], ("unfinished", 10, rows))
    for number in range(KEPT_READINGS + 1):
        log.save(Reading(f"head{number}", rows, complete=True), 10)
    log.close()
    again = CommitLog(path)
    assert again.latest_reading(10) == Reading(f"head{KEPT_READINGS}", rows, complete=True)
    assert again.latest_reading(11) is None
    assert again.reading("head0", 10) is None
    assert again.reading("unfinished", 10) is None
    again.close()
    again.close()


def test_what_was_read_before_an_early_end_is_there(tmp_path: Path) -> None:
    log = CommitLog(tmp_path / "h.sqlite")
    first = array("I", log.add([commit(2)], ("head", 10, array("I"))))
    log.add([commit(1)], ("head", 10, first))
    log.close()
    again = CommitLog(tmp_path / "h.sqlite")
    assert again.reading("head", 10) == Reading("head", array("I", [1, 2]), complete=False)
    again.close()


def test_a_file_that_is_no_database_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "h.sqlite").write_bytes(b"garbage" * 1000)
    with pytest.raises(sqlite3.DatabaseError):
        CommitLog(tmp_path / "h.sqlite")


def test_a_reading_that_names_rows_that_are_gone_is_an_error(log: CommitLog) -> None:
    with pytest.raises(sqlite3.DatabaseError, match="commit row 7 is gone"):
        log.commits([7])
