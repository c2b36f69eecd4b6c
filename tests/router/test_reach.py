"""Hits that nobody will see are not looked at: those that a quiet expert alone points at, where others fill the pages."""

from __future__ import annotations

from search_router.router.identity import FileKey
from search_router.router.reach import within_reach
from search_router.schema import CommitRecord, Hit


def hits(*paths: str) -> list[Hit]:
    return [Hit(project="p", path=path, start_line=1) for path in paths]


def keys(*answers: list[Hit]) -> dict[tuple[str, str], FileKey | None]:
    return {("p", hit.path or ""): ("p", (hit.path or "").removeprefix("./")) for each in answers for hit in each}


LOUD = hits(*(f"f{at}.py" for at in range(20)))
QUIET = hits("./f3.py", "other.py")


def test_where_others_fill_two_pages_a_quiet_expert_only_agrees() -> None:
    kept, unseen = within_reach({"code": LOUD, "notes": QUIET}, keys(LOUD, QUIET), {"notes"}, 10)
    assert kept == {"code": LOUD, "notes": QUIET[:1]} and unseen == 1, "paths are compared as they are meant, not as they are written"


def test_where_they_do_not_everything_is_kept() -> None:
    answers = {"code": LOUD[:19], "notes": QUIET}
    assert within_reach(answers, keys(LOUD, QUIET), {"notes"}, 10) == (answers, 0)
    assert within_reach({"notes": QUIET}, keys(QUIET), {"notes"}, 1) == ({"notes": QUIET}, 0)


def test_what_is_no_file_is_kept() -> None:
    commit = Hit(project="p", commit=CommitRecord("a" * 40, "2026-01-01", "a", "s"))
    kept, unseen = within_reach({"code": LOUD, "history": [commit]}, keys(LOUD), {"history"}, 10)
    assert kept["history"] == [commit] and unseen == 0


def test_files_that_are_outside_count_for_nobody() -> None:
    outside = hits(*(f"/elsewhere/{at}.py" for at in range(30)))
    answers = {"code": outside, "notes": QUIET}
    none = {("p", hit.path or ""): None for hit in outside}
    assert within_reach(answers, {**keys(QUIET), **none}, {"notes"}, 10) == (answers, 0)
