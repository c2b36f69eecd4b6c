from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from search_router.adapters.local.commit_stream import BODY_CHARACTERS, Change, Record, RecordParser, commit_of

A, B = b"a" * 40, b"b" * 64


def parsed(stream: bytes, fields: int, cuts: list[int]) -> list[Record]:
    parser, records, start = RecordParser(fields), list[Record](), 0
    for cut in [*sorted(cuts), len(stream)]:
        records += parser.feed(stream[start:cut])
        start = cut
    return records + parser.close()


@given(st.lists(st.integers(0, 400), max_size=20))
def test_records_are_the_same_wherever_the_stream_is_cut(cuts: list[int]) -> None:
    stream = A + b"\0one\0\nM\0src/a.py\0R100\0old\0new\0" + B + b"\0\nM\0" + B + b"\0three\0\nA\0" + A + b"\0"
    assert parsed(stream, 2, [min(cut, len(stream)) for cut in cuts]) == [
        Record((A, b"one"), (Change("src/a.py"), Change("new", "old"))),
        Record((B, b"\nM"), ()),
        Record((B, b"three"), (Change("a" * 40),)),
    ]


message = st.binary(max_size=30).map(lambda raw: raw.replace(b"\0", b""))


@given(st.lists(st.tuples(message, st.lists(message.filter(bool), max_size=3)), max_size=5), st.integers(1, 50))
def test_any_bytes_but_nul_survive_in_messages_and_paths(commits: list[tuple[bytes, list[bytes]]], step: int) -> None:
    stream = b"".join(A + b"\0" + said + b"\0" + b"".join(b"M\0" + path + b"\0" for path in paths) for said, paths in commits)
    records = parsed(stream, 2, list(range(0, len(stream), step)))
    assert [record.fields[1] for record in records] == [said for said, _ in commits]
    assert [[change.path for change in record.changes] for record in records] == [
        [p.decode("utf-8", "replace") for p in ps] for _, ps in commits
    ]


@pytest.mark.parametrize("stream", [A + b"\0one\0M\0", A + b"\0", A + b"\0one\0M\0pa"])
def test_a_stream_that_stops_inside_a_commit_is_an_error(stream: bytes) -> None:
    with pytest.raises(ValueError, match="middle of a commit"):
        parsed(stream, 2, [])


@pytest.mark.parametrize("stream", [b"hello\0", b"M\0path\0", A + b"\0one\0Z9\0"])
def test_a_stream_of_another_format_is_an_error(stream: bytes) -> None:
    with pytest.raises(ValueError, match="where a commit or a status belongs"):
        parsed(stream, 2, [])


def test_a_body_is_kept_without_trailers_and_up_to_its_limit() -> None:
    body = b"Why it was done.\nSigned-off-by: Ada <a@b.c>\n" + b"x" * 9000
    fields = (A, A + b" " + A, b"1600000000", b"2020-09-13T12:26:40+00:00", b"\xffAda", b"Subject", body)
    commit = commit_of(Record(fields, (Change("a"),)))
    assert commit.is_merge
    assert commit.author == "�Ada"
    assert commit.body.startswith("Why it was done.\n\nxxx")
    assert len(commit.body) == BODY_CHARACTERS
