"""Counting the words of a question in every file, and choosing the files to read."""

from __future__ import annotations

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from search_router.adapters.local.grep_census import LEAST_FILES, MOST_LINES, Census, CensusReader
from search_router.adapters.local.grep_patterns import read_patterns
from search_router.schema import Intent, QueryForm, SubQuery

NAMES = st.text(alphabet="ab/\n.", min_size=1).filter(lambda name: not name.startswith("./"))
RECORDS = st.lists(st.tuples(NAMES, st.sampled_from(["alpha", "Beta"])), max_size=30)


def census(*words: str) -> Census:
    return Census(read_patterns(SubQuery(QueryForm.KEYWORDS, words, "")))


@given(records=RECORDS, cuts=st.lists(st.integers(1, 9), max_size=60))
def test_records_are_counted_however_they_are_cut_and_whatever_the_paths_are(records: list[tuple[str, str]], cuts: list[int]) -> None:
    data = b"".join(f"{path}\0{word}\n".encode() for path, word in records) + b"\n4 matches\n12 files searched\n0.1 seconds\n"
    reader = CensusReader()
    for cut in cuts:
        reader.feed(data[:cut])
        if cut % 2:
            reader.close()
        data = data[cut:]
    reader.feed(data)
    reader.close()
    assert Counter({(path, word): times for path, word, times in reader}) == Counter(records)
    assert reader.files_searched == 12


def test_a_longer_word_counts_for_the_shorter_one_in_it() -> None:
    counted = census("art", "start")
    assert counted.longest_first.spellings == ("start", "art")
    counted.add(("p", "a.c"), "START", 3)
    counted.add(("p", "a.c"), "Art", 2)
    assert counted.counts["p", "a.c"] == [5, 3] and counted.frequency == [1, 1]


def test_a_decomposed_accent_counts_for_its_word() -> None:
    counted = census("caf\u00e9")
    counted.add(("p", "a"), "Cafe\u0301", 2)
    assert counted.counts["p", "a"] == [2]


def test_the_chosen_files_are_bounded_by_their_lines_and_are_never_too_few() -> None:
    def chosen(matches: int) -> list[tuple[str, str]]:
        counted = census("common", "seldom")
        for number in range(1000):
            counted.add(("p", f"{number:03}.c"), "common", matches)
        counted.add(("p", "r.c"), "seldom", 1)
        return counted.best_files(Intent.CONCEPTUAL, 50, 0)

    assert [len(chosen(matches)) for matches in (1, 200, 2 * MOST_LINES)] == [150, LEAST_FILES, 1]
    assert all(chosen(matches)[0] == ("p", "r.c") for matches in (1, 200, 2 * MOST_LINES))
