from __future__ import annotations

import itertools

from hypothesis import given
from hypothesis import strategies as st

from search_router.adapters.local.commit_log import CommitLog
from search_router.adapters.local.commit_stream import Change, Commit
from search_router.adapters.local.commit_summary import MAX_WORDS, Summary, SummaryParser

ONE, TWO = "a" * 40, "b" * 40
STREAM = (
    f"\0{ONE}\n\ndiff --git a.py a.py\n--- a.py\n+++ a.py\n@@ -1,0 +2 @@ def retryLimit(self):\n+    return max_tries\n-    old\n"
    f"diff --git CHANGELOG.md CHANGELOG.md\n--- CHANGELOG.md\n+++ CHANGELOG.md\n@@ -1 +1 @@\n+secret entry\n"
    f"\0{TWO}\n\ndiff --git b.py b.py\nnew file mode 100644\n--- /dev/null\n+++ b.py\n@@ -0,0 +1 @@\n+zebra\n"
).encode()


def summaries(*chunks: bytes) -> list[Summary]:
    parser = SummaryParser()
    return [s for chunk in chunks for s in parser.feed(chunk)] + parser.close()


def test_a_summary_has_the_words_of_lines_and_functions_without_the_change_log() -> None:
    first, second = summaries(STREAM)
    assert first == Summary(ONE, ("def", "retry", "limit", "retrylimit", "self", "return", "max", "tries", "maxtries", "old"))
    assert second == Summary(TWO, ("zebra",))


@given(st.lists(st.integers(0, len(STREAM)), max_size=8))
def test_it_does_not_matter_where_the_stream_is_cut(places: list[int]) -> None:
    cuts = [0, *sorted(places), len(STREAM)]
    assert summaries(*(STREAM[a:b] for a, b in itertools.pairwise(cuts))) == summaries(STREAM)


@given(st.binary(max_size=400))
def test_no_bytes_of_a_patch_break_it(data: bytes) -> None:
    assert all(len(s.words) <= MAX_WORDS for s in summaries(f"\0{ONE}\n".encode(), data))


def test_changes_are_found_by_their_words_and_summarised_once() -> None:
    log = CommitLog(None)
    rows = log.add([Commit(sha, n, "2020-01-01", "Ada", "work", "", False, (Change("a.py"),)) for n, sha in enumerate((ONE, TWO))])
    assert log.without_summary(rows) == rows
    log.add_summaries([(rows[0], ("retry", "limit")), (rows[1], ("zebra",))])
    log.add_summaries([(rows[0], ("other",))])
    assert log.without_summary(rows) == []
    assert [row for row, score in log.matching_changes(["zebra"], rows, 10) if score > 0] == [rows[1]]
    assert log.matching_changes(["other"], rows, 10) == []
    assert log.matching_changes(["zebra"], rows[:1], 10) == []
    log.close()
