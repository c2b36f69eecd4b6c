"""Vectors are found again by bytes and maker, and bases by the files that they were made of."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import numpy as np

from search_router.adapters.local.code_terms import derive_terms
from search_router.adapters.local.embed_lsa import Basis, make_basis
from search_router.adapters.local.symbol_packing import compact_syntax
from search_router.adapters.local.symbol_table import IndexedFile
from search_router.adapters.local.syntax import Extracted
from search_router.adapters.local.vector_cache import BASES_KEPT, FILE_NAME, VectorCache

ROWS = np.array([[1.0, 2.0], [0.5, -1.0]], np.float32)


def file_at(path: str, blob: str = "ab" * 20, language: str = "python") -> IndexedFile:
    return IndexedFile(path, language, blob, "cd" * 32, compact_syntax(Extracted((), ())))


def basis_of(word: str, blobs: list[str]) -> Basis:
    return make_basis([derive_terms(f"{word} other words", "python", [])], blobs, 1)


def blob(number: int) -> str:
    return f"{number:040x}"


def test_a_file_is_found_by_its_bytes_wherever_it_lies(tmp_path: Path) -> None:
    cache = VectorCache(tmp_path)
    cache.keep_files("maker", [(file_at("a.py"), ROWS)])
    cache.close()
    found = cache.load_files("maker", [file_at("moved/b.py"), file_at("c.py", blob(1))])
    assert found.keys() == {"moved/b.py"} and np.array_equal(found["moved/b.py"], ROWS)
    assert cache.load_files("another maker", [file_at("a.py")]) == {}
    assert cache.load_files("maker", [file_at("a.ts", language="typescript")]) == {}  # its chunks are cut in another way
    assert cache.notes == ()
    cache.close()


def test_short_texts_are_found_by_their_text(tmp_path: Path) -> None:
    cache = VectorCache(tmp_path)
    cache.keep_texts("maker", {"net/retry": ROWS[0], "bad\udcff": ROWS[1]})
    assert {text: rows.tolist() for text, rows in cache.load_texts("maker", ["net/retry", "bad\udcff", "x"]).items()} == {
        "net/retry": [[1.0, 2.0]],
        "bad\udcff": [[0.5, -1.0]],
    }
    cache.close()


def test_a_basis_is_found_when_half_of_its_files_are_there(tmp_path: Path) -> None:
    cache = VectorCache(tmp_path)
    plum, fig = basis_of("plum", [blob(1), blob(2)]), basis_of("fig", [blob(2), blob(3), blob(4)])
    for basis in (plum, fig, plum):
        cache.keep_basis(basis)

    def found(*numbers: int) -> str | None:
        basis = cache.find_basis(frozenset(map(blob, numbers)))
        return basis.digest if basis else None

    assert found(1, 9) == plum.digest == found(1, 2, 3)
    assert found(3, 4, 2) == fig.digest == found(3, 4)
    assert found(3) is None is found()
    cache.close()


def test_the_oldest_basis_is_forgotten(tmp_path: Path) -> None:
    cache = VectorCache(tmp_path)
    for number in range(BASES_KEPT + 1):
        cache.keep_basis(basis_of(f"word{number}", [blob(number)]))
    assert cache.find_basis(frozenset({blob(0)})) is None
    assert cache.find_basis(frozenset({blob(1)})) is not None
    cache.close()


def test_damaged_rows_are_as_if_they_were_not_there_and_said(tmp_path: Path) -> None:
    cache = VectorCache(tmp_path)
    cache.keep_files("maker", [(file_at("a.py"), ROWS), (file_at("b.py", blob(1)), ROWS)])
    cache.keep_basis(basis_of("plum", [blob(1)]))
    cache.close()
    with sqlite3.connect(tmp_path / FILE_NAME) as connection:
        connection.execute("UPDATE derived SET payload = x'0102' WHERE blob = ?", (bytes.fromhex(blob(1)),))
        connection.execute("UPDATE derived SET payload = x'0102' WHERE kind = 'basis'")
    connection.close()
    assert cache.load_files("maker", [file_at("a.py"), file_at("b.py", blob(1))]).keys() == {"a.py"}
    assert cache.find_basis(frozenset({blob(1)})) is None
    assert any("damaged" in note for note in cache.notes)
    cache.close()
