"""The reader of indexes: what was written comes back, in every form; what is no index is said to be none."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from search_router.adapters.local.scip_reader import FoundDocument, Occurrence, find_symbols, read_table
from search_router.adapters.local.scip_symbols import symbol_pattern
from search_router.errors import ExpertError, FailureClass
from tests.adapters.local.scip_writer import Document, index_bytes, message, number, python, write_index

SEND = python("net.client/Client#send().")
OTHER = python("net.client/Client#close().")
LARGE = 1 << 30


def sending() -> re.Pattern[bytes]:
    return re.compile(symbol_pattern("send"))


def find(file: Path) -> tuple[FoundDocument, ...]:
    return find_symbols(read_table(file, max_bytes=LARGE), sending()).documents


@pytest.mark.parametrize("form", ["packed", "one by one", "typed"])
def test_ranges_of_every_form_are_read(tmp_path: Path, form: str) -> None:
    document = Document("net/client.py").occurrence(SEND, (3, 8, 12), 1, around=(3, 4, 9, 0), form=form)
    document.occurrence(SEND, (20, 2, 21, 3), form=form)
    (found,) = find(write_index(tmp_path / "index.scip", document))
    assert found.occurrences == (
        Occurrence(SEND, (3, 8), (3, 12), is_definition=True, span=(3, 9)),
        Occurrence(SEND, (20, 2), (21, 3)),
    )


def test_only_occurrences_of_the_name_are_decoded_and_only_its_documents(tmp_path: Path) -> None:
    near = Document("a.py").occurrence(OTHER, (1, 0, 5)).occurrence(SEND, (2, 0, 4), 2).occurrence(OTHER, (3, 0, 5))
    far = Document("b.py").occurrence(OTHER, (1, 0, 5))
    found = find(write_index(tmp_path / "index.scip", far, near, far))
    assert [(d.path, [(o.symbol, o.is_import) for o in d.occurrences]) for d in found] == [("a.py", [(SEND, True)])]


def test_metadata_documents_encoding_and_relations_are_read(tmp_path: Path) -> None:
    base = python("net.base/Base#send().")
    document = Document("a.py", encoding=2).occurrence(SEND, (0, 4, 8), 1).implements(SEND, base)
    file = write_index(tmp_path / "index.scip", document, tool="ty-scip", root="file:///work")
    table = read_table(file, max_bytes=LARGE)
    assert (table.tool, table.version, table.root, [d.path for d in table.documents]) == ("ty-scip", "0.6.6", "file:///work", ["a.py"])
    (found,) = find(file)
    assert (found.language, found.encoding, [tuple(r) for r in found.implements]) == ("python", 2, [(SEND, base)])


def test_unknown_fields_are_stepped_over(tmp_path: Path) -> None:
    inside = message(2, message(1, "a.py") + message(2, number(99, 1) + message(98, b"x") + b"\x0a\x03\x01\x00\x04" + message(2, SEND)))
    file = tmp_path / "index.scip"
    file.write_bytes(message(1, b"") + message(77, b"later") + inside)
    assert [o.start for o in find(file)[0].occurrences] == [(1, 0)]


def test_a_document_whose_path_stands_last_is_found(tmp_path: Path) -> None:
    occurrence = message(2, b"\x0a\x03\x01\x00\x04" + message(2, SEND))
    file = tmp_path / "index.scip"
    file.write_bytes(message(2, occurrence + message(1, "late.py")))
    assert [d.path for d in find(file)] == ["late.py"]


@pytest.mark.parametrize("place", [(), (1,), (1, 2), (1, 2, 2**40)], ids=repr)
def test_an_occurrence_without_a_range_is_left_out(tmp_path: Path, place: tuple[int, ...]) -> None:
    file = write_index(tmp_path / "index.scip", Document("a.py").occurrence(SEND, place).occurrence(SEND, (4, 0, 4)))
    assert [o.start for o in find(file)[0].occurrences] == [(4, 0)]


@pytest.mark.parametrize(
    ("data", "failure"),
    [
        (b"", FailureClass.INDEX_MISSING),
        (index_bytes(), FailureClass.INDEX_MISSING),
        (b"not an index at all", FailureClass.PROTOCOL_ERROR),
        (b"\x12\xff\xff\xff\xff\x7f", FailureClass.PROTOCOL_ERROR),
        (index_bytes(Document("a.py").occurrence(SEND, (1, 0, 4)))[:-3], FailureClass.PROTOCOL_ERROR),
        (b"\x7fELF" + b"\0" * 64, FailureClass.PROTOCOL_ERROR),
    ],
    ids=["nothing", "no document", "text", "hostile length", "cut", "another format"],
)
def test_what_is_no_whole_index_is_said_with_its_class(tmp_path: Path, data: bytes, failure: FailureClass) -> None:
    file = tmp_path / "index.scip"
    file.write_bytes(data)
    with pytest.raises(ExpertError) as caught:
        read_table(file, max_bytes=LARGE)
    assert (caught.value.failure, bool(caught.value.remedy)) == (failure, True)


def test_damage_inside_a_document_is_said_when_it_is_read(tmp_path: Path) -> None:
    file = tmp_path / "index.scip"
    file.write_bytes(message(2, message(1, "a.py") + message(2, b"\x0a\x7f" + SEND.encode())))
    with pytest.raises(ExpertError) as caught:
        find(file)
    assert caught.value.failure is FailureClass.PROTOCOL_ERROR


def test_a_missing_and_a_too_large_index_are_told_apart(tmp_path: Path) -> None:
    with pytest.raises(ExpertError) as missing:
        read_table(tmp_path / "index.scip", max_bytes=LARGE)
    file = write_index(tmp_path / "index.scip", Document("a.py").occurrence(SEND, (1, 0, 4)))
    with pytest.raises(ExpertError) as large:
        read_table(file, max_bytes=10)
    assert (missing.value.failure, large.value.failure) == (FailureClass.INDEX_MISSING, FailureClass.REJECTED)


def test_an_index_that_was_rewritten_since_is_not_read_with_the_old_table(tmp_path: Path) -> None:
    file = write_index(tmp_path / "index.scip", Document("a.py").occurrence(SEND, (1, 0, 4)))
    table = read_table(file, max_bytes=LARGE)
    file.write_bytes(b"\0")
    with pytest.raises(ExpertError) as caught:
        find_symbols(table, sending())
    assert caught.value.failure is FailureClass.UNAVAILABLE


def test_a_pipe_in_place_of_an_index_does_not_hang(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "index.scip")
    with pytest.raises(ExpertError):
        read_table(tmp_path / "index.scip", max_bytes=LARGE)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=200)
@given(data=st.binary(max_size=300), at=st.integers(0, 300), byte=st.integers(0, 255))
def test_any_bytes_and_any_changed_byte_give_an_answer_or_a_classified_error(tmp_path: Path, data: bytes, at: int, byte: int) -> None:
    whole = bytearray(index_bytes(Document("a.py").occurrence(SEND, (1, 0, 4), 1, around=(1, 0, 9, 0)).implements(SEND, OTHER)))
    whole[at % len(whole)] = byte
    for content in (data, bytes(whole), bytes(whole[: at % len(whole)])):
        file = tmp_path / "index.scip"
        file.write_bytes(content)
        try:
            find(file)
        except ExpertError:
            continue
