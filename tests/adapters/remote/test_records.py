"""Reading items out of answers, form by form."""

from __future__ import annotations

from typing import Any

import pytest

from search_router.adapters.remote.judge import Received, judge, read_result
from search_router.adapters.remote.records import Unreadable, read_records
from search_router.config.remote import AnswerConfig
from search_router.errors import ExpertError, FailureClass


def answer(form: str, **more: Any) -> AnswerConfig:
    return AnswerConfig.model_validate({"form": form, **more})


def test_a_star_goes_through_members_and_keeps_their_keys() -> None:
    config = answer("json", items="*.*", fields={"path": "@1", "start_line": r"~ >\s*(\d+):"})
    found = read_records(config, '{"a.py": ["  >   6:class X", " > 9:y"], "b.py": ["no line"]}')
    assert found == [{"path": "a.py", "start_line": "6"}, {"path": "a.py", "start_line": "9"}, {"path": "b.py", "start_line": None}]


def test_a_dotted_path_reaches_into_arrays() -> None:
    config = answer("json", items="r.found", fields={"path": "p", "start_line": "lines.0", "end_line": "lines.1"})
    assert read_records(config, '{"r": {"found": [{"p": "a", "lines": [3, 4]}]}}') == [{"path": "a", "start_line": 3, "end_line": 4}]


@pytest.mark.parametrize("text", ["not json", '{"other": []}', '{"r": 5}', "[1,"])
def test_what_does_not_have_the_form_is_unreadable_and_not_empty(text: str) -> None:
    with pytest.raises(Unreadable):
        read_records(answer("json", items="r.found", fields={"path": "p"}), text)


def test_grep_like_lines() -> None:
    config = answer("pattern", pattern=r"^(?P<path>[^:\n]+):(?P<start>\d+):")
    assert read_records(config, "a.py:3:x = 1\nb.py:4: y\nBinary file matches\n") == [
        {"path": "a.py", "start_line": "3"},
        {"path": "b.py", "start_line": "4"},
    ]


def test_what_stands_in_a_fence_is_no_heading_however_long_the_fence() -> None:
    config = answer("pattern", pattern=r"^## `(?P<path>.+?)`", fenced=True)
    text = "## `a.md`\n\n````markdown\n## `not.py`\n```\nx\n```\n````\n\n---\n\n## `b.py`\n\n```python\ny\n"
    assert [r["path"] for r in read_records(config, text)] == ["a.md", "b.py"]


def test_an_ordinal_out_of_order_is_no_item() -> None:
    config = answer("pattern", pattern=r"^(?P<ordinal>\d+)\. (?P<path>\S+)")
    assert [r["path"] for r in read_records(config, "1. a.py\n7. quoted.py\n2. b.py\n")] == ["a.py", "b.py"]


def test_weak_scores_are_left_out_where_the_page_is_always_full() -> None:
    config = answer("json", fields={"path": "p", "score": "s"}, min_score=0.5)
    assert [r["path"] for r in read_records(config, '[{"p": "a", "s": 0.9}, {"p": "b", "s": 0.1}, {"p": "c"}]')] == ["a", "c"]


def test_a_cut_answer_gives_its_whole_items() -> None:
    config = answer("json", items="items", fields={"path": "p"})
    assert read_records(config, '{"items": [{"p": "a"}, {"p": "b"}, {"p": "c', cut=True) == [{"path": "a"}]
    with pytest.raises(Unreadable):
        read_records(config, '{"items": [{"p": "a"}, {"p": "b"}, {"p": "c')


@pytest.mark.parametrize(
    ("text", "is_error", "expected"),
    [
        ("Failed to index: gone", False, FailureClass.UNAVAILABLE),
        ("Failed to index: gone", True, FailureClass.UNAVAILABLE),
        ("something else", True, FailureClass.REJECTED),
        ("something else", False, FailureClass.PROTOCOL_ERROR),
        ("", False, FailureClass.PROTOCOL_ERROR),
    ],
)
def test_words_count_before_flags_and_flags_before_the_form(text: str, is_error: bool, expected: FailureClass) -> None:
    config = answer("json", fields={"path": "p"}, errors=[{"pattern": "^Failed to index", "failure": "unavailable"}], empty=["^Nothing"])
    with pytest.raises(ExpertError) as caught:
        judge(config, Received(text, is_error=is_error))
    assert caught.value.failure is expected


def test_nothing_found_counts_before_the_flag() -> None:
    config = answer("json", fields={"path": "p"}, empty=["^Nothing"])
    assert judge(config, Received("Nothing there", is_error=True)) == []


def test_texts_of_resources_and_blocks_are_joined_and_other_blocks_left_out() -> None:
    content = [{"type": "text", "text": "a"}, {"type": "image", "data": "x"}, {"type": "resource", "resource": {"text": "b"}}, 7]
    assert read_result({"content": content}).text == "a\n\nb"
