"""The readers of ripgrep's and git's output: the same events however the stream is cut into chunks, in bounded memory."""

from __future__ import annotations

import base64
import json
import os
import tracemalloc
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from search_router.adapters.local.git_grep import GitGrepReader, judge_git_grep
from search_router.adapters.local.grep_matches import LINE_KEPT, FileEnd, LineMatch, MatchEvent, MatchReader, RunEnd
from search_router.adapters.local.ripgrep import RipgrepReader, judge_ripgrep
from search_router.errors import ExpertError, FailureClass

COLUMNS = 100


def record(kind: str, **data: object) -> bytes:
    return json.dumps({"type": kind, "data": data}, ensure_ascii=False, separators=(",", ":")).encode() + b"\n"


def raw(value: bytes) -> dict[str, str]:
    try:
        return {"text": value.decode()}
    except UnicodeDecodeError:
        return {"bytes": base64.b64encode(value).decode()}


def ripgrep_stream(files: Sequence[tuple[bytes, Sequence[tuple[int, bytes]]]]) -> bytes:
    out = b""
    for path, lines in files:
        out += record("begin", path=raw(b"./" + path))
        for number, text in lines:
            submatches = [{"match": raw(b"needle"), "start": 0, "end": 6}]
            out += record(
                "match", path=raw(b"./" + path), lines=raw(text + b"\n"), line_number=number, absolute_offset=0, submatches=submatches
            )
        out += record("end", path=raw(b"./" + path), binary_offset=None, stats={"bytes_searched": 1})
    return out + record("summary", elapsed_total={}, stats={"searches": len(files)})


def read(reader: MatchReader, stream: bytes, cuts: Sequence[int]) -> list[MatchEvent]:
    edges = [0, *sorted(c % (len(stream) + 1) for c in cuts), len(stream)]
    return [event for start, end in pairwise(edges) for event in reader.feed(stream[start:end])]


names = st.binary(min_size=1, max_size=12).filter(lambda b: b"\0" not in b and b"/" not in b)
texts = st.binary(max_size=150).map(lambda b: b.replace(b"\n", b" ").replace(b"\0", b" "))
matches = st.lists(st.tuples(names, st.lists(st.tuples(st.integers(1, 10**6), texts), min_size=1, max_size=3)), max_size=4)


@given(files=matches, cuts=st.lists(st.integers(min_value=0), max_size=6))
def test_a_ripgrep_stream_reads_the_same_however_it_is_cut(files: list[tuple[bytes, list[tuple[int, bytes]]]], cuts: list[int]) -> None:
    events = read(RipgrepReader(COLUMNS), ripgrep_stream(files), cuts)
    found = [(event.path, event.line) for event in events if isinstance(event, LineMatch)]
    assert found == [(os.fsdecode(path), number) for path, lines in files for number, _ in lines]
    assert sum(isinstance(event, FileEnd) for event in events) == len(files)
    assert events[-1] == RunEnd(len(files))


@given(files=matches, cuts=st.lists(st.integers(min_value=0), max_size=6))
def test_a_git_stream_reads_the_same_however_it_is_cut(files: list[tuple[bytes, list[tuple[int, bytes]]]], cuts: list[int]) -> None:
    stream = b"".join(b"%s\0%d\0%d\0%s\n" % (path, number, 1, text) for path, lines in files for number, text in lines)
    whole = read(GitGrepReader(COLUMNS), stream, ())
    assert read(GitGrepReader(COLUMNS), stream, cuts) == whole
    assert [(e.path, e.line) for e in whole if isinstance(e, LineMatch)] == [(os.fsdecode(p), n) for p, lines in files for n, _ in lines]


@pytest.mark.parametrize("around", [LINE_KEPT - 300, LINE_KEPT, 3 * LINE_KEPT])
@pytest.mark.parametrize("step", [1000, 65536, 10**9])
@pytest.mark.parametrize("tail", [b"", b'"},"line_number":99,"', b'\\"},\\"line_number\\":98,'])
def test_a_record_of_any_length_keeps_its_line_number_and_what_matched(around: int, step: int, tail: bytes) -> None:
    stream = ripgrep_stream([(b"big.txt", [(7, b"x" * around + tail)]), (b"next.txt", [(3, b"needle")])])
    found = [e for e in read(RipgrepReader(COLUMNS), stream, range(0, len(stream), step)) if isinstance(e, LineMatch)]
    assert [(e.path, e.line, e.is_cut) for e in found] == [("big.txt", 7, True), ("next.txt", 3, False)]
    assert "needle" in found[0].text and len(found[0].text) < 2 * COLUMNS + 200


def test_ten_megabytes_in_one_record_are_read_in_less_than_one() -> None:
    chunks = [
        b'{"type":"match","data":{"path":{"text":"./b"},"lines":{"text":"',
        *[b"x" * 65536] * 160,
        b'\\n"},"line_number":1,"submatches":[]}}\n',
    ]
    for reader in (RipgrepReader(COLUMNS), GitGrepReader(COLUMNS)):
        parts = chunks if isinstance(reader, RipgrepReader) else [b"b\0001\0001\0", *chunks[1:-1], b"\n"]
        tracemalloc.start()
        events = [event for part in parts for event in reader.feed(part)]
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert [(e.line, e.is_cut) for e in events if isinstance(e, LineMatch)] == [(1, True)]
        assert peak < 2**20


def test_a_binary_offset_is_the_end_of_a_binary_file() -> None:
    stream = record("begin", path={"text": "a"}) + record("end", path={"text": "a"}, binary_offset=7, stats={})
    assert read(RipgrepReader(COLUMNS), stream, ()) == [FileEnd("a", True)]


@pytest.mark.parametrize("code", [0, 1])
def test_exit_codes_of_success_have_no_note(code: int) -> None:
    assert judge_ripgrep(code, "", found=code == 0) is None


def test_exit_code_two_with_matches_is_a_note_and_without_is_a_crash() -> None:
    assert judge_ripgrep(2, "rg: ./x: Permission denied (os error 13)\n", found=True) is not None
    assert judge_ripgrep(2, "rg: ./x: Permission denied (os error 13)\n", found=False) is not None
    assert judge_ripgrep(2, "rg: something odd\n", found=True) == "ripgrep ended with exit code 2: rg: something odd"
    with pytest.raises(ExpertError) as caught:
        judge_ripgrep(2, "rg: something odd\n", found=False)
    assert (caught.value.failure, caught.value.detail) == (FailureClass.CRASHED, "rg: something odd\n")


def test_notes_are_bounded() -> None:
    note = judge_ripgrep(2, f"rg: ./{'x' * 5000}: No such file (os error 2)\n", found=True)
    assert note is not None and len(note) < 300


def test_a_refused_pattern_is_not_repeated() -> None:
    with pytest.raises(ExpertError) as caught:
        judge_git_grep(Path("/"), 128, "fatal: -e option, 'my secret(': missing closing parenthesis\n", found=False)
    assert "secret" not in str(caught.value) and "missing closing parenthesis" in caught.value.message
