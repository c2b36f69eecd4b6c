"""Words of code and words of questions are made alike, so that they meet."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from search_router.adapters.local.code_words import (
    GENERIC_WEIGHT,
    MAX_IDENTIFIER,
    count_words,
    names_in,
    question_words,
    told_words,
    topic_words,
    words_of,
)
from search_router.adapters.local.qualified_names import stem


@pytest.mark.parametrize("asked", ["parse", "parser", "parsing", "parsed", "Parsers"])
@pytest.mark.parametrize("written", ["parse", "Parser", "parsing", "parse_header", "HeaderParser"])
def test_forms_of_a_verb_meet(asked: str, written: str) -> None:
    assert question_words(asked).keys() & count_words(written).keys()


@pytest.mark.parametrize("written", ["getCookieJar", "GetCookieJar", "get_cookie_jar", "GET_COOKIE_JAR"])
def test_a_whole_identifier_is_a_word_however_it_is_spelled(written: str) -> None:
    assert words_of(written)[-1] == "getcookiejar"
    assert question_words("where is getCookieJar set")["getcookiejar"] == 1.0
    assert {"cook", "jar"} <= set(words_of(written)) & question_words("cookies in jars").keys()


def test_stop_words_are_left_out_and_generic_words_count_less() -> None:
    assert question_words("How is the retry logic handled?") == {"retr": 1.0, "logic": GENERIC_WEIGHT, "handl": GENERIC_WEIGHT}
    assert question_words("what is it") == {} and question_words("") == {}


def test_words_are_counted_over_the_whole_text() -> None:
    assert count_words("jar = cookieJar(jar)") == {"jar": 3, "cook": 1, "cookiejar": 1}


def test_data_is_no_word() -> None:
    assert words_of("a" * (MAX_IDENTIFIER + 1)) == () and question_words("b" * (MAX_IDENTIFIER + 1)) == {}
    assert words_of("7") == () and words_of("_") == ()


@pytest.mark.parametrize("text", ["検索エンジン", "检", "поиск файлов", "🙂🙂", "İstanbul ß ſ", "e\u0301\u200d", "²", "\ud800"])
def test_any_script_is_read(text: str) -> None:
    assert set(question_words(text)) <= set(count_words(text)) | {"²"}


def test_one_letter_of_a_script_without_case_is_a_word() -> None:
    assert question_words("检").keys() == count_words("检").keys() == {"检"}


@pytest.mark.parametrize(
    ("question", "names"),
    [
        ("where is getCookieJar defined", ("getCookieJar",)),
        ("max_retries and the pool", ("max_retries",)),
        ("Session", ("Session",)),
        ("How does a Session end politely", ()),
        ("retry", ()),
    ],
)
def test_names_are_told_from_words(question: str, names: tuple[str, ...]) -> None:
    assert names_in(question) == names


@given(st.text(max_size=200))
@example("_" * 300)
@example("\ud800 ǅabc")
def test_no_text_is_refused_and_weights_are_shares(text: str) -> None:
    assert all(0 < weight <= 1 and word for word, weight in question_words(text).items())
    assert all(count > 0 and word for word, count in count_words(text).items())
    assert all(name in text for name in names_in(text))


def test_words_for_documents_are_no_topic_unless_nothing_else_is_asked() -> None:
    assert set(topic_words("documentation of closing a ledger")) == {stem("closing"), stem("ledger")}
    assert set(topic_words("the docs")) == {"doc"}
    assert topic_words("closing a ledger") == question_words("closing a ledger")


def test_a_name_tells_two_neighbours_as_one_word_too() -> None:
    assert question_words("websocket reader").keys() <= told_words("WebSocketReader")
    assert question_words("filename").keys() <= told_words("file_name_of")
    assert not question_words("webreader").keys() <= told_words("WebSocketReader")
    assert told_words("_" * 300) == frozenset()
