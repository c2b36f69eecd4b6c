"""A search over bytes with exact floats for the best finds what a search over all floats finds."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from search_router.adapters.local.embed_protocol import Floats, unit_rows
from search_router.adapters.local.vector_matrix import RECENT_CHUNKS, Packed, VectorMatrix, quantise

DIMENSIONS = 32


def vectors(seed: int, count: int, spread: float = 1.0) -> Floats:
    """Rows around a few centres, as text of one repository is."""
    random = np.random.default_rng(seed)
    centres = random.standard_normal((5, DIMENSIONS))
    rows = centres[random.integers(0, 5, count)] + spread * random.standard_normal((count, DIMENSIONS))
    return unit_rows(rows.astype(np.float32))


def best_by_hand(files: Mapping[str, Floats], query: Floats) -> dict[str, tuple[float, int]]:
    scores = {path: unit_rows(rows) @ unit_rows(query) for path, rows in files.items() if len(rows)}
    return {path: (float(score.max()), int(score.argmax())) for path, score in scores.items()}


def check(matrix: VectorMatrix, files: Mapping[str, Floats], query: Floats) -> None:
    found, expected = matrix.best_of_files(query), best_by_hand(files, query)
    assert found.keys() == expected.keys()
    paths = ("nowhere", *files)
    for asked in (paths, paths, paths[::-1]):  # the second time from what is remembered
        told = matrix.scores_of(query)(asked).tolist()
        assert told == pytest.approx([max(0.0, found[path].score) if path in found else 0.0 for path in asked], abs=1e-5)
    assert matrix.file_count == len(found)
    assert len(matrix) == sum(map(len, files.values()))
    for path, (score, chunk) in expected.items():
        assert found[path].score == pytest.approx(score, abs=1e-5)
        assert found[path].chunk == chunk or abs((unit_rows(files[path]) @ unit_rows(query))[found[path].chunk] - score) < 1e-5


@settings(max_examples=40, deadline=None)
@given(st.lists(st.integers(0, 5), max_size=12), st.integers(0, 99), st.lists(st.integers(0, 11), max_size=4))
def test_every_file_has_its_best_chunk_before_and_after_changes(sizes: list[int], seed: int, touched: list[int]) -> None:
    files = {f"f{at}": vectors(seed + at, size) for at, size in enumerate(sizes)}
    query = vectors(seed + 1000, 1)[0]
    matrix = VectorMatrix.build(files, DIMENSIONS)
    check(matrix, files, query)
    changed = {f"f{at}": vectors(seed + 50 + at, 2) for at in touched}
    gone = [path for path in files if path == "f0" and path not in changed]
    after = {path: rows for path, rows in (files | changed).items() if path not in gone}
    check(matrix.successor(changed, gone), after, query)
    check(matrix.successor(changed, gone).successor({"f1": vectors(7, 3)}, []), after | {"f1": vectors(7, 3)}, query)
    check(matrix, files, query)


def test_bytes_err_by_little() -> None:
    rows = vectors(1, 500)
    codes, scales = quantise(rows)
    query = vectors(2, 1)[0]
    assert np.abs(codes.astype(np.float32) @ query * scales - rows @ query).max() < 0.005
    assert not quantise(np.zeros((2, DIMENSIONS), np.float32))[0].any()


def test_the_exact_best_are_found_among_many_though_few_are_scored_exactly() -> None:
    rows = vectors(3, 20_000, spread=0.4)
    packed = Packed([("f", rows)], DIMENSIONS)
    met = 0
    for seed in range(50):
        query = vectors(100 + seed, 1, spread=0.4)[0]
        scores = packed.scores(query)
        exact = rows @ query
        met += len(set(np.argsort(-scores)[:10]) & set(np.argsort(-exact)[:10]))
    assert met / 500 >= 0.999


def test_new_vectors_are_packed_when_they_are_many() -> None:
    matrix = VectorMatrix.build({"a": vectors(1, 10)}, DIMENSIONS)
    few = matrix.successor({"b": vectors(2, 10)}, [])
    many = few.successor({"c": vectors(3, RECENT_CHUNKS)}, ["a"])
    assert few.resident_bytes == 10 * (DIMENSIONS + 8) + 10 * DIMENSIONS * 4
    assert many.resident_bytes == (RECENT_CHUNKS + 10) * (DIMENSIONS + 8)
    check(many, {"b": vectors(2, 10), "c": vectors(3, RECENT_CHUNKS)}, vectors(9, 1)[0])


def test_a_question_of_zeros_finds_nothing() -> None:
    assert VectorMatrix.build({"a": vectors(1, 3)}, DIMENSIONS).best_of_files(np.zeros(DIMENSIONS, np.float32)) == {}


def test_the_floats_lie_in_a_file_without_a_name(tmp_path: Path) -> None:
    files = {"a": vectors(1, 30), "b": vectors(2, 3)}
    matrix = VectorMatrix.build(files, DIMENSIONS, tmp_path / "cache")
    assert list((tmp_path / "cache").iterdir()) == []
    check(matrix, files, vectors(3, 1)[0])
    blocked = tmp_path / "file"
    blocked.write_text("not a folder")
    check(VectorMatrix.build(files, DIMENSIONS, blocked), files, vectors(3, 1)[0])
